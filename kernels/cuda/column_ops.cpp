// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/error.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

constexpr int rows_per_thread = 4;

/// For kernels that walk as src/columns.cuh does. Panels of few columns, since a block's threads
/// beyond the last whole row are idle.
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
    launch(ctx, ctx.service<Specialiser>().get(source, expression), columns.shape, args,
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
    // A narrower last panel has more rows a block, so no more blocks.
    const auto panel = Panels(args.cols).width;
    return blocks_of_dots(ctx, args.rows, panel) * static_cast<std::size_t>(panel) * sizeof(T);
}

template <class T>
void run(Context& ctx, const DotsArgs<T>& args, void* workspace) {
    const Panels panels(args.cols);
    for (int p = 0; p < panels.count; ++p) {
        DotsArgs<T> part = args;
        part.cols = panels.size(p, args.cols);
        part.x += panels.begin(p);
        part.y += panels.begin(p);
        part.result += panels.begin(p);
        const unsigned blocks = blocks_of_dots(ctx, args.rows, part.cols);
        launch(ctx,
               ctx.service<Specialiser>().get("column_ops.cuh", instance("dots", device_name<T>())),
               {.blocks = blocks, .threads = block_threads}, part, static_cast<T*>(workspace),
               ctx.counters(), reduction_group(blocks, part.cols));
    }
}

template <class T>
void run(Context& ctx, const AxpbyArgs<T>& args) {
    run_by_columns(ctx, "column_ops.cuh", instance("axpby", device_name<T>()), args, args.cols);
}

template <class U, class T>
void run(Context& ctx, const ConvertArgs<U, T>& args) {
    run_by_columns(ctx, "convert.cuh", instance("convert", device_name<U>(), device_name<T>()),
                   args, args.cols);
}

template <class T>
void run(Context& ctx, const GatherColumnsArgs<T>& args) {
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
        "column_ops.cuh", instance("gather_columns_in_place", device_name<T>()));
    launch(ctx, kernel,
           {.blocks = blocks_for(ctx, args.rows, rows, 8),
            .threads = block_threads,
            .shared_bytes = shared_bytes},
           args, rows);
}

template <class T>
void run(Context& ctx, const FillArgs<T>& args) {
    run_by_columns(ctx, "column_ops.cuh", instance("fill", device_name<T>()), args, args.cols);
}

template <class T>
void run(Context& ctx, const RandomArgs<T>& args) {
    run_by_columns(ctx, "random.cuh", instance("fill_random", device_name<T>()), args, args.cols);
}

template <class T>
void run(Context& ctx, const GatherRowsArgs<T>& args) {
    run_by_columns(ctx, "column_ops.cuh", instance("gather_rows", device_name<T>()), args,
                   args.cols);
}

template std::size_t workspace_bytes(const Context&, const DotsArgs<float>&);
template std::size_t workspace_bytes(const Context&, const DotsArgs<double>&);
template std::size_t workspace_bytes(const Context&, const DotsArgs<std::complex<float>>&);
template std::size_t workspace_bytes(const Context&, const DotsArgs<std::complex<double>>&);
template void run(Context&, const DotsArgs<float>&, void*);
template void run(Context&, const DotsArgs<double>&, void*);
template void run(Context&, const DotsArgs<std::complex<float>>&, void*);
template void run(Context&, const DotsArgs<std::complex<double>>&, void*);
template void run(Context&, const AxpbyArgs<float>&);
template void run(Context&, const AxpbyArgs<double>&);
template void run(Context&, const AxpbyArgs<std::complex<float>>&);
template void run(Context&, const AxpbyArgs<std::complex<double>>&);
template void run(Context&, const GatherColumnsArgs<float>&);
template void run(Context&, const GatherColumnsArgs<double>&);
template void run(Context&, const GatherColumnsArgs<std::complex<float>>&);
template void run(Context&, const GatherColumnsArgs<std::complex<double>>&);
template void run(Context&, const FillArgs<float>&);
template void run(Context&, const FillArgs<double>&);
template void run(Context&, const FillArgs<std::complex<float>>&);
template void run(Context&, const FillArgs<std::complex<double>>&);
template void run(Context&, const RandomArgs<float>&);
template void run(Context&, const RandomArgs<double>&);
template void run(Context&, const RandomArgs<std::complex<float>>&);
template void run(Context&, const RandomArgs<std::complex<double>>&);
template void run(Context&, const GatherRowsArgs<float>&);
template void run(Context&, const GatherRowsArgs<double>&);
template void run(Context&, const GatherRowsArgs<std::complex<float>>&);
template void run(Context&, const GatherRowsArgs<std::complex<double>>&);
template void run(Context&, const ConvertArgs<float, float>&);
template void run(Context&, const ConvertArgs<float, double>&);
template void run(Context&, const ConvertArgs<float, half_t>&);
template void run(Context&, const ConvertArgs<float, bfloat16_t>&);
template void run(Context&, const ConvertArgs<double, float>&);
template void run(Context&, const ConvertArgs<double, double>&);
template void run(Context&, const ConvertArgs<double, half_t>&);
template void run(Context&, const ConvertArgs<double, bfloat16_t>&);
template void run(Context&, const ConvertArgs<half_t, float>&);
template void run(Context&, const ConvertArgs<half_t, double>&);
template void run(Context&, const ConvertArgs<half_t, half_t>&);
template void run(Context&, const ConvertArgs<half_t, bfloat16_t>&);
template void run(Context&, const ConvertArgs<bfloat16_t, float>&);
template void run(Context&, const ConvertArgs<bfloat16_t, double>&);
template void run(Context&, const ConvertArgs<bfloat16_t, half_t>&);
template void run(Context&, const ConvertArgs<bfloat16_t, bfloat16_t>&);
template void run(Context&, const ConvertArgs<std::complex<float>, std::complex<float>>&);
template void run(Context&, const ConvertArgs<std::complex<float>, std::complex<double>>&);
template void run(Context&, const ConvertArgs<std::complex<double>, std::complex<float>>&);
template void run(Context&, const ConvertArgs<std::complex<double>, std::complex<double>>&);

}  // namespace quiver::cuda
