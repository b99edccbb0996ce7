// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/mtsm_products.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {
namespace {

/// Number of counters of a Context.
constexpr std::int64_t most_blocks = 1024;

int log_of(std::int64_t size) {
    return static_cast<int>(
        std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1))));
}

template <class A, class T>
const Planner::Ready& ready_for(Context& ctx, const MtsmArgs<A, T>& args) {
    return ctx.service<Planner>().ready<MtsmPlan>(ctx, mtsm_shape(args));
}

template <class A, class T>
unsigned blocks_of(const Context& ctx, const MtsmArgs<A, T>& args, const PlannedKernel& planned) {
    if (planned.rows_a_block > 0) {
        return static_cast<unsigned>((args.m + planned.rows_a_block - 1) / planned.rows_a_block);
    }
    const std::int64_t parts =
        planned.depth == 0
            ? 1
            : std::max<std::int64_t>((args.k + planned.depth - 1) / planned.depth, 1);
    const std::int64_t units = (args.m + planned.rows - 1) / planned.rows * parts;
    return static_cast<unsigned>(
        std::min({units, std::int64_t{multiprocessors(ctx)} * planned.blocks_per_multiprocessor,
                  most_blocks}));
}

template <class A, class T>
void launch_planned(Context& ctx, const MtsmArgs<A, T>& args, const PlannedKernel& planned,
                    Kernel& kernel, void* workspace) {
    launch(ctx, kernel, launch_shape(planned, blocks_of(ctx, args, planned)), args,
           static_cast<T*>(workspace), ctx.counters());
}

/// Calls f(part of the arguments) for panels of the columns.
template <class A, class T, class F>
void for_each_panel(const MtsmArgs<A, T>& args, F&& f) {
    if (args.m == 0) {
        return;
    }
    const Panels panels(args.n, widest_mtsm);
    for (int panel = 0; panel < panels.count; ++panel) {
        MtsmArgs<A, T> part = args;
        part.n = panels.size(panel, args.n);
        part.x += panels.begin(panel) * args.x_col;
        part.y += panels.begin(panel) * args.y_col;
        f(part);
    }
}

}  // namespace

template <class A, class T>
MtsmShape mtsm_shape(const MtsmArgs<A, T>& args) {
    MtsmShape shape;
    shape.a = dtype_v<A>;
    shape.scalar = dtype_v<T>;
    shape.n = args.n;
    shape.along_sum = args.along_sum;
    shape.conjugated = args.conjugated;
    // The lines may be longer than an int can count, but only their alignment matters.
    const auto length = static_cast<int>((args.along_sum ? args.k : args.m) % 16);
    shape.unit_a = Layout::of(args.a, length, args.lda, sizeof(A)).unit;
    shape.x_rows = args.x_col == 1;
    shape.unit_x =
        shape.x_rows
            ? Layout::of(args.x, args.n, args.x_row, sizeof(T)).unit
            : std::min<int>(sizeof(T), Layout::of(args.x, static_cast<int>(args.x_row % 16),
                                                  args.x_col, sizeof(T))
                                           .unit);
    if (!args.along_sum && args.y_row == 1 && args.k <= most_direct_terms) {
        shape.unit_y = Layout::of(args.y, 0, args.y_col, sizeof(T)).unit;
    }
    shape.log_m = std::min(log_of(args.m - 1), 20);
    shape.log_k = std::min(log_of(args.k - 1), 15);
    return shape;
}

template <class A, class T>
std::size_t workspace_bytes(Context& ctx, const MtsmArgs<A, T>& args, const MtsmPlan& plan) {
    const PlannedKernel planned = kernel_for(ctx, mtsm_shape(args), plan);
    return mtsm_workspace(blocks_of(ctx, args, planned), planned, args.n) * sizeof(T);
}
template <class A, class T>
void mtsm(Context& ctx, const MtsmArgs<A, T>& args, const MtsmPlan& plan, void* workspace) {
    const PlannedKernel planned = kernel_for(ctx, mtsm_shape(args), plan);
    launch_planned(ctx, args, planned, load(ctx, planned), workspace);
}

template <class A, class T>
std::size_t workspace_bytes(Context& ctx, const MtsmArgs<A, T>& args) {
    std::size_t most = 0;
    for_each_panel(args, [&](const MtsmArgs<A, T>& part) {
        const PlannedKernel& planned = ready_for(ctx, part).planned;
        most = std::max(most, mtsm_workspace(blocks_of(ctx, part, planned), planned, part.n));
    });
    return most * sizeof(T);
}

template <class A, class T>
void mtsm(Context& ctx, const MtsmArgs<A, T>& args, void* workspace) {
    // The panels run one after another on the stream, and share workspace and counters.
    for_each_panel(args, [&](const MtsmArgs<A, T>& part) {
        const Planner::Ready& ready = ready_for(ctx, part);
        launch_planned(ctx, part, ready.planned, *ready.kernel, workspace);
    });
}

#define QUIVER_INSTANTIATE(T)                                                               \
    template MtsmShape mtsm_shape(const MtsmArgs<T, T>&);                                   \
    template std::size_t workspace_bytes(Context&, const MtsmArgs<T, T>&, const MtsmPlan&); \
    template void mtsm(Context&, const MtsmArgs<T, T>&, const MtsmPlan&, void*);            \
    template std::size_t workspace_bytes(Context&, const MtsmArgs<T, T>&);                  \
    template void mtsm(Context&, const MtsmArgs<T, T>&, void*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

template MtsmShape mtsm_shape(const MtsmArgs<half_t, float>&);
template std::size_t workspace_bytes(Context&, const MtsmArgs<half_t, float>&, const MtsmPlan&);
template void mtsm(Context&, const MtsmArgs<half_t, float>&, const MtsmPlan&, void*);
template MtsmShape mtsm_shape(const MtsmArgs<bfloat16_t, float>&);
template std::size_t workspace_bytes(Context&, const MtsmArgs<bfloat16_t, float>&, const MtsmPlan&);
template void mtsm(Context&, const MtsmArgs<bfloat16_t, float>&, const MtsmPlan&, void*);
template std::size_t workspace_bytes(Context&, const MtsmArgs<half_t, float>&);
template std::size_t workspace_bytes(Context&, const MtsmArgs<bfloat16_t, float>&);
template void mtsm(Context&, const MtsmArgs<half_t, float>&, void*);
template void mtsm(Context&, const MtsmArgs<bfloat16_t, float>&, void*);

}  // namespace quiver::cuda
