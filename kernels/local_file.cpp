// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/local_file.hpp"

#include <algorithm>
#include <complex>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5/parts.hpp"

namespace quiver {
namespace {

using namespace hdf5;

template <class T>
void write_block(Context& ctx, PartFile& file, const NamedBlock<T>& named) {
    const BlockView<const T> x = named.block;
    const Handle type = type_of<T>();
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    // Every element will be written, so initial fill values would only double the traffic.
    H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
    const Handle space = make_space({x.rows, x.cols});
    Handle data(H5Dcreate2(file.get(), named.name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                           properties.get(), H5P_DEFAULT),
                H5Dclose);
    file.check(static_cast<bool>(data));
    const std::int64_t step = rows_in_chunk<T>(x.cols);
    std::vector<T> buffer(static_cast<std::size_t>(std::min(step, x.rows) * x.cols));
    for (std::int64_t first = 0; first < x.rows; first += step) {
        const std::int64_t rows = std::min(step, x.rows - first);
        copy(ctx, x.row_range(first, rows), BlockView<T>(buffer.data(), rows, x.cols, x.cols));
        const Handle from = make_space({rows, x.cols});
        const Handle to = select_rows(data.get(), first, rows, x.cols);
        file.check(H5Dwrite(data.get(), type.get(), from.get(), to.get(), H5P_DEFAULT,
                            buffer.data()) >= 0);
    }
    file.check(H5Dflush(data.get()) >= 0 && data.close());
}

}  // namespace

template <class T>
void write_local_file(Context& ctx, const std::string& path,
                      std::span<const NamedBlock<T>> blocks) {
    const QuietErrors quiet;
    PartFile file(path);
    std::int64_t bytes = 0;
    for (const NamedBlock<T>& named : blocks) {
        bytes += named.block.rows * named.block.cols * static_cast<std::int64_t>(sizeof(T));
    }
    file.reserve(bytes);
    for (const NamedBlock<T>& named : blocks) {
        if (named.block.cols > 0) {
            write_block(ctx, file, named);
        }
    }
    constexpr bool durable = true;
    file.finish(durable);
}

template <class T>
void read_local_rows(Context& ctx, const std::string& path, const std::string& dataset,
                     std::int64_t first, BlockView<T> x) {
    const QuietErrors quiet;
    const BlockFileReader reader(path, dataset);
    if (reader.cols() != x.cols || first < 0 || x.rows > reader.rows() - first) {
        throw InputError(path + ": dataset " + dataset + " is " + std::to_string(reader.rows()) +
                         " x " + std::to_string(reader.cols()) + "; rows " + std::to_string(first) +
                         " to " + std::to_string(first + x.rows) + " of " + std::to_string(x.cols) +
                         " columns were requested");
    }
    const std::int64_t step = rows_in_chunk<T>(x.cols);
    std::vector<T> buffer(static_cast<std::size_t>(std::min(step, x.rows) * x.cols));
    for (std::int64_t at = 0; at < x.rows; at += step) {
        const std::int64_t rows = std::min(step, x.rows - at);
        reader.read_rows(first + at, rows, buffer.data());
        copy(ctx, BlockView<const T>(buffer.data(), rows, x.cols, x.cols), x.row_range(at, rows));
    }
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template void write_local_file(Context&, const std::string&, std::span<const NamedBlock<T>>); \
    template void read_local_rows(Context&, const std::string&, const std::string&, std::int64_t, \
                                  BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
