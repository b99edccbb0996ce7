// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::cuda {
namespace {

constexpr int rows_per_thread = 4;

/// The launch of kernels that divide the work as src/columns.cuh does. Panels have few columns,
/// because the threads of a block beyond its last whole row are idle.
struct ColumnLaunch {
    int panel;
    LaunchShape shape;

    ColumnLaunch(const Context& ctx, std::int64_t rows, int cols) {
        const Panels panels(cols);
        panel = panels.width;
        shape.blocks = static_cast<unsigned>(panels.count);
        shape.blocks_y = blocks_for(ctx, rows, block_threads / panel * rows_per_thread, 16);
        shape.threads = block_threads;
    }
};

/// Launches a kernel(args, panel) on rows x cols elements.
template <class Args>
void run_by_columns(Context& ctx, const char* source, const std::string& expression,
                    const Args& args, int cols) {
    if (args.rows == 0 || cols == 0) {
        return;
    }
    const ColumnLaunch columns(ctx, args.rows, cols);
    launch(ctx, ctx.service<Specialiser>().get(ctx, source, expression), columns.shape, args,
           columns.panel);
}

unsigned blocks_of_dots(const Context& ctx, std::int64_t rows, int panel) {
    return blocks_for(ctx, rows, block_threads / panel * rows_per_thread, 4);
}

}  // namespace

template <class T>
std::size_t workspace_bytes(const Context& ctx, const DotsArgs<T>& args) {
    if (args.cols == 0) {
        return 0;
    }
    // A narrower last panel fits more rows into a block and needs no more blocks.
    const auto panel = Panels(args.cols).width;
    return blocks_of_dots(ctx, args.rows, panel) * static_cast<std::size_t>(panel) * sizeof(T);
}

template <class T>
void dots(Context& ctx, const DotsArgs<T>& args, void* workspace) {
    const Panels panels(args.cols);
    for (int p = 0; p < panels.count; ++p) {
        DotsArgs<T> part = args;
        part.cols = panels.size(p, args.cols);
        part.x += panels.begin(p);
        part.y += panels.begin(p);
        part.result += panels.begin(p);
        const unsigned blocks = blocks_of_dots(ctx, args.rows, part.cols);
        launch(ctx,
               ctx.service<Specialiser>().get(ctx, "column_ops.cuh",
                                              instance("dots", device_name<T>())),
               {.blocks = blocks, .threads = block_threads}, part, static_cast<T*>(workspace),
               ctx.counters(), reduction_group(blocks, part.cols));
    }
}

template <class T>
void axpby(Context& ctx, const AxpbyArgs<T>& args) {
    run_by_columns(ctx, "column_ops.cuh", instance("axpby", device_name<T>()), args, args.cols);
}

template <class U, class T>
void convert(Context& ctx, const ConvertArgs<U, T>& args) {
    run_by_columns(ctx, "convert.cuh", instance("convert", device_name<U>(), device_name<T>()),
                   args, args.cols);
}

template <class T>
void gather_columns(Context& ctx, const GatherColumnsArgs<T>& args) {
    if (args.x != args.y) {
        run_by_columns(ctx, "column_ops.cuh", instance("gather_columns", device_name<T>()), args,
                       args.y_cols);
        return;
    }
    if (args.rows == 0 || args.y_cols == 0) {
        return;
    }
    constexpr std::size_t budget = 16 * 1024;
    const std::size_t row_bytes = static_cast<std::size_t>(args.y_cols) * sizeof(T);
    const int rows = static_cast<int>(std::max<std::size_t>(1, budget / row_bytes));
    const std::size_t shared_bytes = static_cast<std::size_t>(rows) * row_bytes;
    if (shared_bytes > shared_bytes_per_block(ctx)) {
        throw UnsupportedError("gather_columns in place: a row of " + std::to_string(args.y_cols) +
                               " columns does not fit into the GPU's shared memory of " +
                               std::to_string(shared_bytes_per_block(ctx)) +
                               " bytes; gather into another block");
    }
    Kernel& kernel = ctx.service<Specialiser>().get(
        ctx, "column_ops.cuh", instance("gather_columns_in_place", device_name<T>()));
    launch(ctx, kernel,
           {.blocks = blocks_for(ctx, args.rows, rows, 8),
            .threads = block_threads,
            .shared_bytes = shared_bytes},
           args, rows);
}

template <class T>
void fill(Context& ctx, const FillArgs<T>& args) {
    run_by_columns(ctx, "column_ops.cuh", instance("fill", device_name<T>()), args, args.cols);
}

template <class T>
void fill_random(Context& ctx, const RandomArgs<T>& args) {
    run_by_columns(ctx, "random.cuh", instance("fill_random", device_name<T>()), args, args.cols);
}

template <class T>
void gather_rows(Context& ctx, const GatherRowsArgs<T>& args) {
    run_by_columns(ctx, "column_ops.cuh", instance("gather_rows", device_name<T>()), args,
                   args.cols);
}

#define QUIVER_INSTANTIATE(T)                                                 \
    template std::size_t workspace_bytes(const Context&, const DotsArgs<T>&); \
    template void dots(Context&, const DotsArgs<T>&, void*);                  \
    template void axpby(Context&, const AxpbyArgs<T>&);                       \
    template void gather_columns(Context&, const GatherColumnsArgs<T>&);      \
    template void fill(Context&, const FillArgs<T>&);                         \
    template void fill_random(Context&, const RandomArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(T) template void gather_rows(Context&, const GatherRowsArgs<T>&);
QUIVER_FOR_EACH_ELEMENT(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(U, T) template void convert(Context&, const ConvertArgs<U, T>&);
QUIVER_FOR_EACH_CONVERSION(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
