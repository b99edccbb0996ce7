// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/matrix_market.hpp"

#include <algorithm>
#include <complex>
#include <memory>
#include <numeric>
#include <optional>

#include <sys/stat.h>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/matrix_market_parser.hpp"
#include "kernels/sparse/text_source.hpp"

namespace quiver {
namespace {

constexpr int text_tag = 71;

std::int64_t bytes_of_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_size) : 0;
}

/// Opens a text; an InputError gets the name of the source as prefix.
template <class Open>
auto open_named(const MatrixMarketSource& source, Open&& open) {
    try {
        return open();
    } catch (const InputError& error) {
        throw InputError(source.name + ": " + error.what());
    }
}

MatrixMarketLayout read_layout(const Comm& comm, const MatrixMarketSource& source) {
    MatrixMarketLayout layout;
    comm.agree([&] {
        if (comm.rank() == 0) {
            // The file is opened more than once, which a pipe does not support.
            struct stat status {};
            if (::stat(source.path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
                !S_ISDIR(status.st_mode)) {
                throw InputError(source.name +
                                 ": not a regular file; write the matrix to a regular file first");
            }
            auto text = open_named(source, [&] { return InflatedText(source.path); });
            layout = parse_header(source.name, text);
        }
    });
    comm.broadcast(&layout, sizeof(layout), 0);
    return layout;
}

/// Rank r parses the lines that start in the r-th part of the data.
template <class T>
void parse_plain(const Comm& comm, const MatrixMarketSource& source,
                 const MatrixMarketLayout& layout, EntryParser<T>& parser) {
    std::optional<PlainText> text;
    comm.agree([&] {
        open_named(source, [&] {
            const std::int64_t begin = layout.data_offset;
            const std::int64_t length =
                std::max<std::int64_t>(bytes_of_file(source.path) - begin, 0);
            const std::int64_t part = length / comm.size();
            const std::int64_t extra = length % comm.size();
            const auto cut = [&](std::int64_t rank) {
                return begin + part * rank + std::min(extra, rank);
            };
            text.emplace(source.path, begin, cut(comm.rank()), cut(comm.rank() + 1));
        });
    });
    parser.begin_piece(comm.rank());
    try {
        for (std::string_view block = text->next(); !block.empty(); block = text->next()) {
            parser.parse(block.data(), block.size());
        }
    } catch (const Error& error) {
        parser.fail(error.kind(), error.what());
    }
}

/// Rank 0 sends the text to the ranks in turn, one block at a time; block k is piece k of the file.
class TextDealer {
  public:
    TextDealer(const Comm& comm, const std::string& path, std::int64_t data_offset) : comm_(comm) {
        text_.emplace(path);
        std::string header_line;
        while (text_->position() < data_offset && text_->next_line(header_line)) {
        }
        const auto slots = static_cast<std::size_t>(std::min(comm.size(), 8));
        for (std::size_t slot = 0; slot < slots; ++slot) {
            slots_.push_back(
                {std::make_unique_for_overwrite<char[]>(text_block_bytes), MPI_REQUEST_NULL});
        }
    }

    template <class T>
    void run(EntryParser<T>& parser) {
        const std::int64_t ranks = comm_.size();
        for (std::int64_t piece = 0;; ++piece) {
            Slot& slot = slots_[static_cast<std::size_t>(piece) % slots_.size()];
            wait(slot);
            std::size_t bytes = 0;
            bool more = true;
            try {
                bytes = text_->next_block(slot.text.get());
                more = bytes > 0;
            } catch (const Error& error) {
                // Report this error after the text that was sent before it.
                parser.begin_piece(piece);
                parser.fail(error.kind(), error.what());
                more = false;
            }
            if (!more) {
                break;
            }
            if (piece % ranks == 0) {
                parser.begin_piece(piece);
                parser.parse(slot.text.get(), bytes);
            } else {
                check_mpi(MPI_Isend(slot.text.get(), static_cast<int>(bytes), MPI_CHAR,
                                    static_cast<int>(piece % ranks), text_tag, comm_.handle(),
                                    &slot.request),
                          "MPI_Isend");
            }
        }
        for (Slot& slot : slots_) {
            wait(slot);
        }
        for (int rank = 1; rank < comm_.size(); ++rank) {
            check_mpi(MPI_Send(nullptr, 0, MPI_CHAR, rank, text_tag, comm_.handle()), "MPI_Send");
        }
    }

  private:
    struct Slot {
        std::unique_ptr<char[]> text;
        MPI_Request request;
    };
    static void wait(Slot& slot) {
        if (slot.request != MPI_REQUEST_NULL) {
            check_mpi(MPI_Wait(&slot.request, MPI_STATUS_IGNORE), "MPI_Wait");
        }
    }
    const Comm& comm_;
    std::optional<InflatedText> text_;
    std::vector<Slot> slots_;
};

/// Rank 0 reads the text and sends it to the ranks.
template <class T>
void parse_dealt(const Comm& comm, const MatrixMarketSource& source,
                 const MatrixMarketLayout& layout, EntryParser<T>& parser) {
    std::optional<TextDealer> dealer;
    std::unique_ptr<char[]> block;
    comm.agree([&] {
        if (comm.rank() == 0) {
            open_named(source, [&] { dealer.emplace(comm, source.path, layout.data_offset); });
        } else {
            block = std::make_unique_for_overwrite<char[]>(text_block_bytes);
        }
    });
    if (comm.rank() == 0) {
        dealer->run(parser);
        return;
    }
    for (std::int64_t piece = comm.rank();; piece += comm.size()) {
        MPI_Status status;
        check_mpi(MPI_Recv(block.get(), static_cast<int>(text_block_bytes), MPI_CHAR, 0, text_tag,
                           comm.handle(), &status),
                  "MPI_Recv");
        int bytes = 0;
        MPI_Get_count(&status, MPI_CHAR, &bytes);
        if (bytes == 0) {
            return;
        }
        parser.begin_piece(piece);
        parser.parse(block.get(), static_cast<std::size_t>(bytes));
    }
}

/// Numbers of lines and entries before each piece of the file, and in total.
struct PieceStarts {
    std::vector<std::int64_t> lines{0};
    std::vector<std::int64_t> entries{0};
};

PieceStarts count_pieces(const Comm& comm, const std::vector<TextPiece>& pieces) {
    const std::int64_t count = comm.max(pieces.empty() ? 0 : pieces.back().index + 1);
    PieceStarts starts;
    comm.agree([&] {
        starts.lines.resize(static_cast<std::size_t>(count) + 1);
        starts.entries.resize(static_cast<std::size_t>(count) + 1);
    });
    for (const TextPiece& piece : pieces) {
        starts.lines[static_cast<std::size_t>(piece.index) + 1] = piece.lines;
        starts.entries[static_cast<std::size_t>(piece.index) + 1] = piece.entries;
    }
    comm.sum(std::span<std::int64_t>(starts.lines));
    comm.sum(std::span<std::int64_t>(starts.entries));
    std::partial_sum(starts.lines.begin(), starts.lines.end(), starts.lines.begin());
    std::partial_sum(starts.entries.begin(), starts.entries.end(), starts.entries.begin());
    return starts;
}

/// Throws the first failure in file order, on all ranks.
void settle_failures(const Comm& comm, const std::string& path, const MatrixMarketLayout& layout,
                     const TextFailure& failure, const PieceStarts& starts) {
    const std::int64_t first = -comm.max(-failure.piece);
    comm.agree([&] {
        if (first != TextFailure::nowhere && failure.piece == first) {
            if (failure.kind == ErrorKind::memory) {
                throw MemoryError(path + ": " + failure.text);
            }
            throw InputError(
                path,
                layout.data_line + starts.lines[static_cast<std::size_t>(first)] + failure.line,
                failure.text);
        }
    });
}

/// Throws InputError unless the number of entries is right: at the first surplus entry, or at the
/// last line of the file.
void check_count(const Comm& comm, const std::string& path, const MatrixMarketLayout& layout,
                 const std::vector<TextPiece>& pieces, const PieceStarts& starts) {
    const std::int64_t promised = layout.header.entries;
    const std::int64_t found = starts.entries.back();
    comm.agree([&] {
        if (found < promised) {
            throw InputError(path, layout.data_line + starts.lines.back() - 1,
                             "the file ends after " + std::to_string(found) + " of " +
                                 std::to_string(promised) + " entries");
        }
        for (const TextPiece& piece : pieces) {
            const auto index = static_cast<std::size_t>(piece.index);
            if (found > promised && starts.entries[index] <= promised &&
                promised < starts.entries[index + 1]) {
                throw InputError(
                    path,
                    layout.data_line + starts.lines[index] +
                        piece.line_of(promised - starts.entries[index]),
                    "more entries than the " + std::to_string(promised) + " of the size line");
            }
        }
    });
}

/// Converts the ordinals of a file in array format to rows and columns.
template <class T>
std::vector<Entry<T>> place_array_entries(const std::string& path, const MatrixMarketLayout& layout,
                                          const std::vector<TextPiece>& pieces,
                                          const PieceStarts& starts,
                                          const std::vector<Entry<T>>& listed) {
    std::vector<Entry<T>> entries;
    entries.reserve(listed.size() * (layout.header.symmetry == Symmetry::general ? 1 : 2));
    for (const Entry<T>& entry : listed) {
        const TextPiece& piece = pieces[static_cast<std::size_t>(entry.column)];
        const auto index = static_cast<std::size_t>(piece.index);
        const auto [row, column] = array_place(layout.header, starts.entries[index] + entry.row);
        if constexpr (is_complex_v<T>) {
            if (layout.header.symmetry == Symmetry::hermitian && row == column &&
                entry.value.imag() != 0) {
                throw InputError(path,
                                 layout.data_line + starts.lines[index] + piece.line_of(entry.row),
                                 "the diagonal entry of row " + std::to_string(row + 1) +
                                     " of a hermitian file is not real");
            }
        }
        append_expanded(entries, layout.header.symmetry, {row, column, entry.value});
    }
    return entries;
}

/// Reserves memory for this rank's share of the entries that the size line promises, limited by the
/// size of the file.
template <class T>
void reserve_entries(const Comm& comm, std::int64_t bytes, const MatrixMarketLayout& layout,
                     std::vector<Entry<T>>& entries) {
    constexpr std::int64_t shortest_line = 4;
    constexpr std::int64_t usual_inflation = 16;
    const std::int64_t text_bytes = bytes * (layout.gzip ? usual_inflation : 1);
    std::int64_t share = std::min(layout.header.entries, text_bytes / shortest_line);
    share = share / comm.size() + share / comm.size() / 32 + 64;
    if (layout.header.symmetry != Symmetry::general) {
        share *= 2;
    }
    entries.reserve(static_cast<std::size_t>(share));
}

}  // namespace

MatrixMarketHeader read_matrix_market_header(const Comm& comm, const MatrixMarketSource& source) {
    return read_layout(comm, source).header;
}

template <class T>
CsrRows<T> read_matrix_market(const Comm& comm, const MatrixMarketSource& source,
                              Partition partition) {
    const std::string& name = source.name;
    const MatrixMarketLayout layout = read_layout(comm, source);
    const MatrixMarketHeader& header = layout.header;
    if (header.is_complex() && !is_complex_v<T>) {
        throw_collective(ErrorKind::input,
                         name + ":1: a complex matrix cannot be read into real numbers");
    }
    EntryParser<T> parser(header);
    const bool has_file = comm.rank() == 0 || !source.only_rank_0;
    const std::int64_t bytes = comm.max(has_file ? bytes_of_file(source.path) : 0);
    comm.agree([&] { reserve_entries(comm, bytes, layout, parser.entries()); });
    if (layout.gzip || source.only_rank_0) {
        parse_dealt(comm, source, layout, parser);
    } else {
        parse_plain(comm, source, layout, parser);
    }
    const PieceStarts starts = count_pieces(comm, parser.pieces());
    settle_failures(comm, name, layout, parser.failure(), starts);
    check_count(comm, name, layout, parser.pieces(), starts);
    if (header.format == MatrixMarketHeader::Format::array) {
        comm.agree([&] {
            parser.entries() =
                place_array_entries(name, layout, parser.pieces(), starts, parser.entries());
        });
    }
    return rows_from_entries(comm, header.rows, header.cols, header.symmetry,
                             std::move(parser.entries()), partition);
}

#define QUIVER_INSTANTIATE(T) \
    template CsrRows<T> read_matrix_market(const Comm&, const MatrixMarketSource&, Partition);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
