// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/hdf5_file.hpp"

#include <algorithm>
#include <climits>
#include <complex>
#include <exception>
#include <memory>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5/parts.hpp"

namespace quiver {
namespace {

using namespace hdf5;

constexpr int rows_tag = 73;

/// The output file, as rank 0 writes it.
class BlockFileWriter {
  public:
    BlockFileWriter(const std::string& path, const std::string& dataset, std::int64_t rows,
                    std::int64_t cols, Handle type)
        : file_(path), cols_(cols), type_(std::move(type)), data_(declare(dataset, rows)) {}
    BlockFileWriter(const BlockFileWriter&) = delete;
    BlockFileWriter& operator=(const BlockFileWriter&) = delete;
    ~BlockFileWriter() { file_.abandon(); }

    void write_rows(std::int64_t first, std::int64_t rows, const void* values) {
        const Handle from = make_space({rows, cols_});
        const Handle to = select_rows(data_.get(), first, rows, cols_);
        file_.check(H5Dwrite(data_.get(), type_.get(), from.get(), to.get(), H5P_DEFAULT, values) >=
                    0);
    }

    void write_notes(const BlockFileNotes& notes) {
        for (const auto& [name, values] : notes.numbers) {
            const Handle space = make_space({static_cast<std::int64_t>(values.size())});
            const Handle numbers(H5Dcreate2(file_.get(), name.c_str(), H5T_NATIVE_DOUBLE,
                                            space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                 H5Dclose);
            file_.check(numbers && H5Dwrite(numbers.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                                            H5P_DEFAULT, values.data()) >= 0);
        }
        for (const BlockFileNotes::Matrix& matrix : notes.matrices) {
            write_matrix(matrix);
        }
        for (const auto& [name, text] : notes.texts) {
            const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
            const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
            H5Tset_size(type.get(), std::max<std::size_t>(1, text.size()));
            H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
            H5Tset_cset(type.get(), H5T_CSET_UTF8);
            const Handle attribute(H5Acreate2(file_.get(), name.c_str(), type.get(), space.get(),
                                              H5P_DEFAULT, H5P_DEFAULT),
                                   H5Aclose);
            file_.check(attribute && H5Awrite(attribute.get(), type.get(), text.c_str()) >= 0);
        }
    }

    void finish() {
        file_.check(H5Dflush(data_.get()) >= 0 && data_.close());
        file_.finish();
    }

  private:
    void write_matrix(const BlockFileNotes::Matrix& matrix) {
        const std::complex<double>* const values = matrix.values.data();
        const int count = matrix.values.rows() * matrix.values.cols();
        std::vector<double> reals;
        reals.reserve(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            reals.push_back(values[i].real());
        }
        const Handle type = matrix.complex ? type_of<std::complex<double>>() : type_of<double>();
        const Handle space = make_space({matrix.values.rows(), matrix.values.cols()});
        const Handle data(H5Dcreate2(file_.get(), matrix.name.c_str(), type.get(), space.get(),
                                     H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                          H5Dclose);
        const void* const from = matrix.complex ? static_cast<const void*>(values) : reals.data();
        file_.check(data &&
                    H5Dwrite(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, from) >= 0);
    }
    Handle declare(const std::string& dataset, std::int64_t rows) {
        file_.reserve(rows * cols_ * static_cast<std::int64_t>(H5Tget_size(type_.get())));
        const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        // Every element will be written, so initial fill values would only double the traffic.
        H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
        const Handle space = make_space({rows, cols_});
        Handle data(H5Dcreate2(file_.get(), dataset.c_str(), type_.get(), space.get(), H5P_DEFAULT,
                               properties.get(), H5P_DEFAULT),
                    H5Dclose);
        file_.check(static_cast<bool>(data));
        return data;
    }

    PartFile file_;
    std::int64_t cols_;
    Handle type_;
    Handle data_;
};

/// Copies rows first .. first + rows - 1 of this rank to the host, packed.
template <class T>
void fetch_rows(Context& ctx, const BlockVector<T>& x, std::int64_t first, std::int64_t rows,
                T* to) {
    copy(ctx, x.view().row_range(first, rows), BlockView<T>(to, rows, x.width(), x.width()));
}

/// Sends every chunk of every rank, in order, to the writer of rank 0. A rank that fails keeps
/// sending and receiving, so that no other rank waits for it; its error is returned in `failure`.
template <class T>
void stream_rows(Context& ctx, const BlockVector<T>& x, BlockFileWriter* writer, T* buffer,
                 std::exception_ptr& failure) {
    const Comm& comm = ctx.comm();
    const auto attempt = [&failure](auto&& step) {
        try {
            if (!failure) {
                step();
            }
        } catch (...) {
            failure = std::current_exception();
        }
    };
    const std::int64_t step = rows_in_chunk<T>(x.width());
    for (int rank = comm.rank(); rank < comm.size(); ++rank) {
        const std::int64_t all = x.row_map().local_rows(rank);
        for (std::int64_t first = 0; first < all; first += step) {
            const std::int64_t rows = std::min(step, all - first);
            const int count = static_cast<int>(rows * x.width());
            if (rank == comm.rank()) {
                attempt([&] { fetch_rows(ctx, x, first, rows, buffer); });
                if (rank != 0) {
                    check_mpi(MPI_Send(buffer, count, mpi_type<T>(), 0, rows_tag, comm.handle()),
                              "MPI_Send");
                }
            } else {
                check_mpi(MPI_Recv(buffer, count, mpi_type<T>(), rank, rows_tag, comm.handle(),
                                   MPI_STATUS_IGNORE),
                          "MPI_Recv");
            }
            if (writer != nullptr) {
                attempt(
                    [&] { writer->write_rows(x.row_map().first_row(rank) + first, rows, buffer); });
            }
        }
        if (comm.rank() != 0) {
            return;
        }
    }
}

}  // namespace

void require_hdf5() {}

template <class T>
void write_block_vector(Context& ctx, const std::string& path, const BlockVector<T>& x,
                        const BlockFileNotes& notes) {
    const Comm& comm = ctx.comm();
    const QuietErrors quiet;
    std::unique_ptr<BlockFileWriter> writer;
    std::vector<T> buffer;
    comm.agree([&] {
        if (x.row_map().ranks() != comm.size()) {
            throw ShapeError("write_block_vector: the rows are distributed over " +
                             std::to_string(x.row_map().ranks()) + " ranks, but the Context has " +
                             std::to_string(comm.size()));
        }
        const std::int64_t most =
            comm.rank() == 0 ? x.row_map().global_rows() : x.row_map().local_rows();
        buffer.resize(
            static_cast<std::size_t>(std::min(rows_in_chunk<T>(x.width()), most) * x.width()));
        if (comm.rank() == 0) {
            writer = std::make_unique<BlockFileWriter>(
                path, notes.dataset, x.row_map().global_rows(), x.width(), type_of<T>());
        }
    });
    std::exception_ptr failure;
    if (x.width() > 0) {
        stream_rows(ctx, x, writer.get(), buffer.data(), failure);
    }
    // Rename the file only if no rank has failed.
    comm.agree([&] {
        if (failure) {
            std::rethrow_exception(failure);
        }
    });
    comm.agree([&] {
        if (writer) {
            writer->write_notes(notes);
            writer->finish();
        }
    });
}

BlockFileInfo inspect_block_file(const std::string& path, const std::string& dataset) {
    const QuietErrors quiet;
    const BlockFileReader reader(path, dataset);
    return {reader.rows(), reader.cols(), reader.is_complex()};
}

template <class T>
BlockVector<T> read_block_vector(Context& ctx, const std::string& path, std::optional<RowMap> map,
                                 const std::string& dataset) {
    const Comm& comm = ctx.comm();
    const QuietErrors quiet;
    BlockVector<T> x;
    comm.agree([&] {
        const BlockFileReader reader(path, dataset);
        if (!map) {
            map = RowMap::by_rows(comm, reader.rows());
        }
        if (map->global_rows() != reader.rows() || map->ranks() != comm.size()) {
            throw InputError(path + ": dataset " + dataset + " has " +
                             std::to_string(reader.rows()) + " rows; " +
                             std::to_string(map->global_rows()) + " rows on " +
                             std::to_string(map->ranks()) + " ranks were requested");
        }
        x = BlockVector<T>(ctx, *map, reader.cols());
        const std::int64_t step = rows_in_chunk<T>(x.width());
        std::vector<T> buffer(static_cast<std::size_t>(std::min(step, x.rows()) * x.width()));
        for (std::int64_t first = 0; first < x.rows() && x.width() > 0; first += step) {
            const std::int64_t rows = std::min(step, x.rows() - first);
            reader.read_rows(map->first_row() + first, rows, buffer.data());
            copy(ctx, BlockView<const T>(buffer.data(), rows, x.width(), x.width()),
                 x.view().row_range(first, rows));
        }
    });
    return x;
}

#define QUIVER_INSTANTIATE(T)                                                                      \
    template void write_block_vector(Context&, const std::string&, const BlockVector<T>&,          \
                                     const BlockFileNotes&);                                       \
    template BlockVector<T> read_block_vector(Context&, const std::string&, std::optional<RowMap>, \
                                              const std::string&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
