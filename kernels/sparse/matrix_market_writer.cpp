// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/matrix_market_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <complex>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <unistd.h>
#include <zlib.h>

#include "blockvec/error.hpp"
#include "blockvec/mpi.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/output_file.hpp"

namespace quiver {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 22;
// Two indices of 19 digits, two numbers of 24 characters, blanks and the newline.
constexpr std::size_t longest_line = 96;
constexpr int go_tag = 1;
constexpr int text_tag = 2;

/// The text of an output, gzip-compressed if its name ends in ".gz".
class TextSink {
  public:
    explicit TextSink(const std::string& path) : output_(path) {
        const int descriptor = output_.open();
        // Mode T: no compression.
        file_ = gzdopen(descriptor, path.ends_with(".gz") ? "wb" : "wbT");
        if (file_ == nullptr) {
            ::close(descriptor);
            output_.fail(ENOMEM);
        }
    }
    TextSink(const TextSink&) = delete;
    TextSink& operator=(const TextSink&) = delete;
    ~TextSink() {
        if (file_ != nullptr) {
            gzclose(file_);
        }
    }

    void write(std::string_view text) {
        errno = 0;
        if (!text.empty() && gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) <= 0) {
            output_.fail(errno == 0 ? EIO : errno);
        }
    }
    void finish() {
        errno = 0;
        if (gzclose(std::exchange(file_, nullptr)) != Z_OK) {
            output_.fail(errno == 0 ? EIO : errno);
        }
        output_.publish();
    }

  private:
    OutputFile output_;
    gzFile file_ = nullptr;
};

/// True if the file contains this entry.
bool is_listed(Symmetry symmetry, std::int64_t row, std::int64_t column) {
    return symmetry == Symmetry::general || column < row ||
           (column == row && symmetry != Symmetry::skew_symmetric);
}

template <class T>
void check_entry(Symmetry symmetry, std::int64_t row, std::int64_t column, T value) {
    const auto refuse = [&](const std::string& what) {
        throw InputError("writing a matrix: row " + std::to_string(row + 1) + ", column " +
                         std::to_string(column + 1) + ": " + what);
    };
    if (!is_finite(value)) {
        refuse("the value is not finite");
    }
    if (row == column && symmetry == Symmetry::skew_symmetric && value != T(0)) {
        refuse("the diagonal of a skew-symmetric matrix is not zero");
    }
    if (row == column && symmetry == Symmetry::hermitian && value != conjugate(value)) {
        refuse("the diagonal of a hermitian matrix is not real");
    }
}

/// Checks this rank's entries and counts those that the file contains.
template <class T>
std::int64_t count_listed(const CsrRows<T>& rows) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i + 1 < rows.row_start.size(); ++i) {
        const std::int64_t row = rows.map.first_row() + static_cast<std::int64_t>(i);
        for (auto k = static_cast<std::size_t>(rows.row_start[i]);
             k < static_cast<std::size_t>(rows.row_start[i + 1]); ++k) {
            check_entry(rows.symmetry, row, rows.column[k], rows.value[k]);
            count += is_listed(rows.symmetry, row, rows.column[k]) ? 1 : 0;
        }
    }
    return count;
}

/// Prints this rank's entries as text, one block at a time.
template <class T>
class EntryPrinter {
  public:
    explicit EntryPrinter(const CsrRows<T>& rows) : rows_(rows) {
        block_.reserve(block_bytes + longest_line);
    }

    /// The next block of lines, valid until the next call; empty at the end. Does not allocate.
    std::string_view next() {
        block_.clear();
        for (; row_ + 1 < rows_.row_start.size(); ++row_) {
            const std::int64_t row = rows_.map.first_row() + static_cast<std::int64_t>(row_);
            const auto end = static_cast<std::size_t>(rows_.row_start[row_ + 1]);
            for (; entry_ < end; ++entry_) {
                if (block_.size() >= block_bytes) {
                    return block_;
                }
                if (is_listed(rows_.symmetry, row, rows_.column[entry_])) {
                    add_line(row, rows_.column[entry_], rows_.value[entry_]);
                }
            }
        }
        return block_;
    }

  private:
    void add_line(std::int64_t row, std::int64_t column, T value) {
        char line[longest_line + 4];  // plus a separator after each of four numbers
        char* at = line;
        const auto add = [&](auto number, char after) {
            at = std::to_chars(at, line + longest_line, number).ptr;
            *at++ = after;
        };
        add(row + 1, ' ');
        add(column + 1, ' ');
        // Print a float as a double. Readers parse a double and round it to float; from the shorter
        // text of a float these two roundings may give another float. Adding 0.0 turns the -0 that
        // conjugation leaves into 0.
        if constexpr (is_complex_v<T>) {
            add(static_cast<double>(value.real()) + 0.0, ' ');
            add(static_cast<double>(value.imag()) + 0.0, '\n');
        } else {
            add(static_cast<double>(value) + 0.0, '\n');
        }
        block_.append(line, static_cast<std::size_t>(at - line));
    }

    const CsrRows<T>& rows_;
    std::string block_;
    std::size_t row_ = 0;
    std::size_t entry_ = 0;
};

/// Rank 0 requests the blocks of each other rank in turn and writes them. After a write error it
/// tells the remaining ranks to send no more blocks.
template <class T>
void gather_blocks(const Comm& comm, EntryPrinter<T>& printer, TextSink& sink,
                   std::string& received) {
    std::exception_ptr failure;
    const auto write = [&](std::string_view text) {
        try {
            sink.write(text);
        } catch (const Error&) {
            failure = std::current_exception();
        }
    };
    for (std::string_view text = printer.next(); !text.empty() && !failure; text = printer.next()) {
        write(text);
    }
    for (int rank = 1; rank < comm.size(); ++rank) {
        int bytes = 0;
        do {
            const int go = failure ? 0 : 1;
            check_mpi(MPI_Send(&go, 1, MPI_INT, rank, go_tag, comm.handle()), "MPI_Send");
            if (go == 0) {
                break;
            }
            MPI_Status status;
            check_mpi(MPI_Recv(received.data(), static_cast<int>(received.size()), MPI_CHAR, rank,
                               text_tag, comm.handle(), &status),
                      "MPI_Recv");
            MPI_Get_count(&status, MPI_CHAR, &bytes);
            write({received.data(), static_cast<std::size_t>(bytes)});
        } while (bytes > 0);
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

/// The other ranks' part of gather_blocks: prepares the next block before rank 0 requests it.
template <class T>
void send_blocks(const Comm& comm, EntryPrinter<T>& printer) {
    std::string_view text;
    do {
        text = printer.next();
        int go = 0;
        check_mpi(MPI_Recv(&go, 1, MPI_INT, 0, go_tag, comm.handle(), MPI_STATUS_IGNORE),
                  "MPI_Recv");
        if (go == 0) {
            return;
        }
        check_mpi(MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, text_tag,
                           comm.handle()),
                  "MPI_Send");
    } while (!text.empty());
}

template <class T>
std::string header_of(const CsrRows<T>& rows, std::int64_t entries, const std::string& comment) {
    Symmetry symmetry = rows.symmetry;
    if (!is_complex_v<T> && symmetry == Symmetry::hermitian) {
        symmetry = Symmetry::symmetric;
    }
    std::string text = std::string("%%MatrixMarket matrix coordinate ") +
                       (is_complex_v<T> ? "complex " : "real ") + to_string(symmetry) + "\n";
    if (!comment.empty()) {
        text += "% " + comment;
        std::replace(text.end() - static_cast<std::ptrdiff_t>(comment.size()), text.end(), '\n',
                     ' ');
        text += '\n';
    }
    return text + std::to_string(rows.map.global_rows()) + " " + std::to_string(rows.global_cols) +
           " " + std::to_string(entries) + "\n";
}

}  // namespace

void check_matrix_market_path(const Comm& comm, const std::string& path) {
    comm.agree([&] {
        if (comm.rank() == 0) {
            OutputFile(path).check();
        }
    });
}

template <class T>
std::int64_t write_matrix_market(const Comm& comm, const std::string& path, const CsrRows<T>& rows,
                                 const std::string& comment) {
    std::int64_t entries = 0;
    comm.agree([&] { entries = count_listed(rows); });
    entries = comm.sum(entries);
    std::optional<EntryPrinter<T>> printer;
    std::optional<TextSink> sink;
    std::string received;
    comm.agree([&] {
        printer.emplace(rows);
        if (comm.rank() == 0) {
            received.resize(comm.size() > 1 ? block_bytes + longest_line : 0);
            sink.emplace(path);
            sink->write(header_of(rows, entries, comment));
        }
    });
    if (comm.rank() != 0) {
        send_blocks(comm, *printer);
    }
    comm.agree([&] {
        if (sink) {
            gather_blocks(comm, *printer, *sink, received);
            sink->finish();
        }
    });
    return entries;
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template std::int64_t write_matrix_market(const Comm&, const std::string&, const CsrRows<T>&, \
                                              const std::string&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
