// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/device.hpp"
#include "kernels/cuda/mixed_products.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::cuda {
namespace {

template <class In>
Layout layout_of(const In* data, int columns, std::int64_t ld) {
    return Layout::of(data, columns, ld, sizeof(In));
}

const Planner::Ready& ready_for(Context& ctx, const MixedTsmttsmArgs<float, double>& args) {
    return ctx.service<Planner>().ready<WidePlan>(ctx, {args.m, args.n, 1});
}
const Planner::Ready& ready_for(Context& ctx, const TwofoldTsmttsmArgs& args) {
    return ctx.service<Planner>().ready<WidePlan>(ctx, {args.m, args.n, 2});
}
template <class Args>
const Planner::Ready& ready_for(Context& ctx, const Args& args) {
    return ctx.service<Planner>().ready<MixedPlan>(ctx, mixed_shape(args));
}

unsigned blocks_of(const Context& ctx, std::int64_t rows, const PlannedKernel& kernel) {
    return blocks_for(ctx, rows, kernel.rows, kernel.blocks_per_multiprocessor);
}

LaunchShape launch_shape(const Context& ctx, std::int64_t rows, const PlannedKernel& planned) {
    return launch_shape(planned, blocks_of(ctx, rows, planned));
}

template <class Args>
void launch_sums(Context& ctx, const Args& args, const PlannedKernel& planned, Kernel& kernel,
                 void* workspace) {
    const LaunchShape shape = launch_shape(ctx, args.rows, planned);
    launch(ctx, kernel, shape, args, workspace, ctx.counters(),
           reduction_group(shape.blocks, args.m * args.n));
}

std::size_t partial_bytes(const Context& ctx, std::int64_t rows, const PlannedKernel& planned,
                          int m, int n, std::size_t sum_bytes) {
    return blocks_of(ctx, rows, planned) * static_cast<std::size_t>(m) *
           static_cast<std::size_t>(n) * sum_bytes;
}

/// Calls f(i, j, part of the arguments) for every panel of C; the panel starts at (i, j).
template <class Args, class F>
void for_each_panel(const Args& args, F&& f) {
    const Panels panels_m(args.m, widest_mixed);
    const Panels panels_n(args.n, widest_mixed);
    for (int i = 0; i < panels_m.count; ++i) {
        for (int j = 0; j < panels_n.count; ++j) {
            Args part = args;
            part.m = panels_m.size(i, args.m);
            part.n = panels_n.size(j, args.n);
            part.a += panels_m.begin(i);
            part.b += panels_n.begin(j);
            f(panels_m.begin(i), panels_n.begin(j), part);
        }
    }
}

/// Panels of the columns of Y and X. A row of X is summed at once, so Y has narrow panels if X is
/// wide; X has several panels if it is wider still.
struct TsmmPanels {
    static constexpr int widest_row = 256;
    static constexpr int narrow = 16;
    Panels m, n;
    TsmmPanels(int m_, int n_)
        : m(m_, m_ <= widest_mixed ? widest_mixed : widest_row),
          n(n_, m_ <= widest_mixed ? widest_mixed : narrow) {}
};

/// Y = beta Y for an X without columns, computed as a product with a column of zeros.
template <class T, class Small, class Out>
void scale_only(Context& ctx, const MixedTsmmArgs<T, Small, Out>& args) {
    if (args.beta == 1) {
        return;
    }
    const auto rows = static_cast<std::size_t>(args.rows);
    const std::size_t bytes = (rows + static_cast<std::size_t>(args.n)) * sizeof(float);
    const Scratch zeros = ctx.scratch(MemoryKind::device, bytes);
    device::set_zero(zeros.as<void>(), bytes, ctx.stream());
    MixedTsmmArgs<T, Small, Out> scaled = args;
    scaled.m = 1;
    scaled.x = reinterpret_cast<const T*>(zeros.as<float>() + args.n);
    scaled.ldx = 1;
    scaled.c = reinterpret_cast<const Small*>(zeros.as<float>());
    scaled.ldc = args.n;
    tsmm_mixed(ctx, scaled);
}

}  // namespace

template <class T>
MixedShape mixed_shape(const MixedTsmttsmArgs<T, float>& args) {
    MixedShape shape;
    shape.scalar = dtype_v<T>;
    shape.m = args.m;
    shape.n = args.n;
    shape.same = args.a == args.b && args.lda == args.ldb && args.m == args.n;
    shape.unit = mixed_unit(layout_of(args.a, args.m, args.lda), args.m,
                            layout_of(args.b, args.n, args.ldb), args.n);
    return shape;
}

template <class T, class Small, class Out>
MixedShape mixed_shape(const MixedTsmmArgs<T, Small, Out>& args) {
    MixedShape shape;
    shape.tsmm = true;
    shape.scalar = dtype_v<T>;
    shape.m = args.m;
    shape.n = args.n;
    const Layout x = layout_of(args.x, args.m, args.ldx);
    const Layout y = layout_of(args.y, args.n, args.ldy);
    shape.unit = mixed_unit(x, args.m, x, args.m);
    shape.small_is_float = std::is_same_v<Small, float>;
    shape.out_is_float = std::is_same_v<Out, float>;
    shape.adds = args.beta != 0 && !shape.out_is_float;
    const bool whole_rows = shape.unit == 0 || args.n * static_cast<int>(sizeof(Out)) % 16 == 0;
    shape.flat = y.contiguous && y.aligned && whole_rows;
    return shape;
}

template <class T>
std::size_t workspace_bytes(Context& ctx, const MixedTsmttsmArgs<T, float>& args,
                            const MixedPlan& plan) {
    return partial_bytes(ctx, args.rows, kernel_for(ctx, mixed_shape(args), plan), args.m, args.n,
                         sizeof(float));
}
template <class T>
void tsmttsm_mixed(Context& ctx, const MixedTsmttsmArgs<T, float>& args, const MixedPlan& plan,
                   void* workspace) {
    const PlannedKernel planned = kernel_for(ctx, mixed_shape(args), plan);
    launch_sums(ctx, args, planned, load(ctx, planned), workspace);
}
template <class T, class Small, class Out>
void tsmm_mixed(Context& ctx, const MixedTsmmArgs<T, Small, Out>& args, const MixedPlan& plan) {
    const PlannedKernel planned = kernel_for(ctx, mixed_shape(args), plan);
    launch(ctx, load(ctx, planned), launch_shape(ctx, args.rows, planned), args);
}

template <class In, class Sum>
std::size_t workspace_bytes(Context& ctx, const MixedTsmttsmArgs<In, Sum>& args) {
    std::size_t most = 0;
    for_each_panel(args, [&](int, int, const MixedTsmttsmArgs<In, Sum>& part) {
        most = std::max(most, partial_bytes(ctx, part.rows, ready_for(ctx, part).planned, part.m,
                                            part.n, sizeof(Sum)));
    });
    return most;
}

template <class In, class Sum>
void tsmttsm_mixed(Context& ctx, const MixedTsmttsmArgs<In, Sum>& args, void* workspace) {
    // The panels run one after another on the stream, and share workspace and counters.
    for_each_panel(args, [&](int i, int j, MixedTsmttsmArgs<In, Sum> part) {
        part.c += i * args.ldc + j;
        const Planner::Ready& ready = ready_for(ctx, part);
        launch_sums(ctx, part, ready.planned, *ready.kernel, workspace);
    });
}

/// Partial sums of the blocks, followed by the sums of a panel before they are moved to their final
/// position.
std::size_t workspace_bytes(Context& ctx, const TwofoldTsmttsmArgs& args) {
    constexpr std::size_t sum_bytes = 2 * sizeof(double);
    std::size_t most = 0;
    for_each_panel(args, [&](int, int, const TwofoldTsmttsmArgs& part) {
        most = std::max(most, partial_bytes(ctx, part.rows, ready_for(ctx, part).planned, part.m,
                                            part.n, sum_bytes));
    });
    return most + sum_bytes * widest_mixed * widest_mixed;
}

void tsmttsm_twofold(Context& ctx, const TwofoldTsmttsmArgs& args, void* workspace) {
    for_each_panel(args, [&](int i, int j, TwofoldTsmttsmArgs part) {
        double* const panel = static_cast<double*>(workspace);
        part.sums = panel;
        const Planner::Ready& ready = ready_for(ctx, part);
        launch_sums(ctx, part, ready.planned, *ready.kernel,
                    panel + 2 * widest_mixed * widest_mixed);
        const auto row_bytes = static_cast<std::size_t>(part.n) * sizeof(double);
        for (int half = 0; half < 2; ++half) {
            device::copy_2d(args.sums + (std::int64_t{half} * args.m + i) * args.n + j,
                            static_cast<std::size_t>(args.n) * sizeof(double),
                            panel + std::int64_t{half} * part.m * part.n, row_bytes, row_bytes,
                            static_cast<std::size_t>(part.m), ctx.stream());
        }
    });
}

template <class T, class Small, class Out>
void tsmm_mixed(Context& ctx, const MixedTsmmArgs<T, Small, Out>& args) {
    if (args.rows == 0 || args.n == 0) {
        return;
    }
    if (args.m == 0) {
        scale_only(ctx, args);
        return;
    }
    const TsmmPanels panels(args.m, args.n);
    for (int j = 0; j < panels.n.count; ++j) {
        for (int i = 0; i < panels.m.count; ++i) {
            MixedTsmmArgs<T, Small, Out> part = args;
            part.m = panels.m.size(i, args.m);
            part.n = panels.n.size(j, args.n);
            part.x += panels.m.begin(i);
            part.c += panels.m.begin(i) * args.ldc + panels.n.begin(j);
            part.y += panels.n.begin(j);
            part.beta = i == 0 ? args.beta : 1.0F;
            const Planner::Ready& ready = ready_for(ctx, part);
            launch(ctx, *ready.kernel, launch_shape(ctx, part.rows, ready.planned), part);
        }
    }
}

#define QUIVER_INSTANTIATE(In, Sum)                                                   \
    template std::size_t workspace_bytes(Context&, const MixedTsmttsmArgs<In, Sum>&); \
    template void tsmttsm_mixed(Context&, const MixedTsmttsmArgs<In, Sum>&, void*);
QUIVER_FOR_EACH_MIXED_TSMTTSM(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(In, Small, Out) \
    template void tsmm_mixed(Context&, const MixedTsmmArgs<In, Small, Out>&);
QUIVER_FOR_EACH_MIXED_TSMM(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

template MixedShape mixed_shape(const MixedTsmttsmArgs<half_t, float>&);
template MixedShape mixed_shape(const MixedTsmttsmArgs<bfloat16_t, float>&);
template MixedShape mixed_shape(const MixedTsmmArgs<half_t, float, float>&);
template MixedShape mixed_shape(const MixedTsmmArgs<bfloat16_t, bfloat16_t, bfloat16_t>&);
template std::size_t workspace_bytes(Context&, const MixedTsmttsmArgs<half_t, float>&,
                                     const MixedPlan&);
template std::size_t workspace_bytes(Context&, const MixedTsmttsmArgs<bfloat16_t, float>&,
                                     const MixedPlan&);
template void tsmttsm_mixed(Context&, const MixedTsmttsmArgs<half_t, float>&, const MixedPlan&,
                            void*);
template void tsmttsm_mixed(Context&, const MixedTsmttsmArgs<bfloat16_t, float>&, const MixedPlan&,
                            void*);
template void tsmm_mixed(Context&, const MixedTsmmArgs<half_t, float, float>&, const MixedPlan&);
template void tsmm_mixed(Context&, const MixedTsmmArgs<bfloat16_t, bfloat16_t, bfloat16_t>&,
                         const MixedPlan&);

}  // namespace quiver::cuda
