// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/planned_products.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class T>
TsmttsmArgs<T> sums_of(const TsmmGramArgs<T>& args) {
    const TsmmArgs<T>& update = args.update;
    return {update.rows, update.n,   update.n, T(1),   update.y, update.ldy,
            update.y,    update.ldy, T(0),     args.g, args.ldg};
}

/// The update in two parts: an update by the first columns of X, then a fused kernel that updates
/// by the last columns of X and forms the Gram matrix.
template <class T>
struct Parts {
    TsmmArgs<T> before;
    TsmmGramArgs<T> fused;
};

/// Returns nothing if there is no fused kernel or it would not be faster.
template <class T>
std::optional<Parts<T>> separate_parts_of(Planner& planner, const TsmmGramArgs<T>& args) {
    if (args.update.m == 0 || args.update.n > widest_panel) {
        return std::nullopt;
    }
    for (int width = args.update.m; width > 0; width /= 2) {
        Parts<T> parts{args.update, args};
        const int first = args.update.m - width;
        parts.before.m = first;
        TsmmArgs<T>& last = parts.fused.update;
        last.m = width;
        last.x += first;
        last.c += first * last.ldc;
        last.beta = first > 0 ? T(1) : last.beta;
        if (planner.exists<TsmmGramPlan>(served(planner, parts.fused).shape)) {
            return parts;
        }
        if (args.update.x == args.update.y) {
            break;  // the first columns would overwrite the last ones
        }
    }
    return std::nullopt;
}

template <class T>
std::size_t partial_bytes(const Context& ctx, const TsmmGramArgs<T>& args,
                          const ProductShape& shape, const PlannedKernel& planned) {
    const auto n = static_cast<std::size_t>(shape.n);
    return blocks_for(ctx, args.update.rows, planned.rows, planned.blocks_per_multiprocessor) * n *
           n * sizeof(T);
}

template <class T>
void launch_fused(Context& ctx, const TsmmGramArgs<T>& args, const PlannedKernel& planned,
                  Kernel& kernel, void* workspace) {
    const unsigned blocks =
        blocks_for(ctx, args.update.rows, planned.rows, planned.blocks_per_multiprocessor);
    launch(ctx, kernel, launch_shape(planned, blocks), args, static_cast<T*>(workspace),
           ctx.counters(), reduction_group(blocks, args.update.n * args.update.n));
}

template <class T>
const Planner::Ready& ready_for(Context& ctx, const TsmmGramArgs<T>& args) {
    Planner& planner = ctx.service<Planner>();
    return planner.ready<TsmmGramPlan>(ctx, served(planner, args));
}

}  // namespace

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmGramArgs<T>& args, const TsmmGramPlan& plan) {
    return partial_bytes(ctx, args, OperandsOf(args).own.shape,
                         kernel_for(ctx, OperandsOf(args).own, plan));
}

template <class T>
void tsmm_gram(Context& ctx, const TsmmGramArgs<T>& args, const TsmmGramPlan& plan,
               void* workspace) {
    const PlannedKernel planned = kernel_for(ctx, OperandsOf(args).own, plan);
    launch_fused(ctx, args, planned, load(ctx, planned), workspace);
}

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmGramArgs<T>& args) {
    if (const auto parts = separate_parts_of(ctx.service<Planner>(), args)) {
        const std::size_t before = parts->before.m > 0 ? workspace_bytes(ctx, parts->before) : 0;
        return std::max(before, partial_bytes(ctx, parts->fused,
                                              served(ctx.service<Planner>(), parts->fused).shape,
                                              ready_for(ctx, parts->fused).planned));
    }
    return std::max(workspace_bytes(ctx, args.update), workspace_bytes(ctx, sums_of(args)));
}

template <class T>
void tsmm_gram(Context& ctx, const TsmmGramArgs<T>& args, void* workspace) {
    // The kernels run one after another on the stream, and share workspace and counters.
    const auto parts = separate_parts_of(ctx.service<Planner>(), args);
    if (!parts) {
        tsmm(ctx, args.update, workspace);
        tsmttsm(ctx, sums_of(args), workspace);
        return;
    }
    if (parts->before.m > 0) {
        tsmm(ctx, parts->before, workspace);
    }
    const Planner::Ready& ready = ready_for(ctx, parts->fused);
    launch_fused(ctx, parts->fused, ready.planned, *ready.kernel, workspace);
}

template <class T>
void append_kernels(Planner& planner, const TsmmGramArgs<T>& args, KernelList& list) {
    const auto parts = separate_parts_of(planner, args);
    if (!parts) {
        append_kernels(planner, args.update, list);
        append_kernels(planner, sums_of(args), list);
        return;
    }
    if (parts->before.m > 0) {
        append_kernels(planner, parts->before, list);
    }
    planner.append<TsmmGramPlan>(served(planner, parts->fused), list);
}

#define QUIVER_INSTANTIATE(T)                                                                    \
    template std::size_t workspace_bytes(Context&, const TsmmGramArgs<T>&, const TsmmGramPlan&); \
    template void tsmm_gram(Context&, const TsmmGramArgs<T>&, const TsmmGramPlan&, void*);       \
    template std::size_t workspace_bytes(Context&, const TsmmGramArgs<T>&);                      \
    template void tsmm_gram(Context&, const TsmmGramArgs<T>&, void*);                            \
    template void append_kernels(Planner&, const TsmmGramArgs<T>&, KernelList&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
