// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cublas.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/planned_products.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

/// One panel of C. streamed: true if a streamed kernel computes it.
template <class T>
struct Panel {
    TsmttsmArgs<T> args;
    bool streamed;
};

/// The request for the streamed kernel of a panel.
template <class T>
Served streamed_request(const TsmttsmArgs<T>& args) {
    return Served::streams_of_sums(dtype_v<T>, args.m, args.n, OperandsOf(args).own.a);
}
template <class T>
Served request_of(const Planner& planner, const Panel<T>& panel, const OperandsOf& operands) {
    return panel.streamed ? streamed_request(panel.args) : served(planner, operands);
}
/// The request for the kernel of a given plan.
template <class T>
Served request_of(const TsmttsmArgs<T>& args, const TsmttsmPlan& plan) {
    return plan.streamed ? streamed_request(args) : OperandsOf(args).own;
}
template <class T>
Served request_of(const Planner& planner, const Panel<T>& panel) {
    return request_of(planner, panel, OperandsOf(panel.args));
}

template <class T>
const Planner::Ready& ready_for(Context& ctx, const Panel<T>& panel) {
    Planner& planner = ctx.service<Planner>();
    return planner.ready<TsmttsmPlan>(ctx, request_of(planner, panel));
}

/// A weighted product with A = B is not planned as a Gram matrix, because the weights scale only
/// one of the two factors.
template <class T>
Served request_apart(const Planner& planner, const Panel<T>& panel) {
    OperandsOf operands(panel.args);
    operands.own.shape.same = false;
    return request_of(planner, panel, operands);
}
template <class T>
const Planner::Ready& weighted_ready_for(Context& ctx, const Panel<T>& panel) {
    Planner& planner = ctx.service<Planner>();
    return planner.ready<TsmttsmPlan>(
        ctx, request_apart(planner, panel),
        panel.streamed ? "streamed_weighted_tsmttsm" : "weighted_tsmttsm");
}

/// Calls f(panel) for every panel of C.
template <class T, class F>
void for_each_panel(const Planner& planner, const TsmttsmArgs<T>& args, F&& f) {
    const Panels panels_n(args.n);
    const int widest_streams =
        streamed_sums_panel(dtype_v<T>, args.m, OperandsOf(args).own.a.unit == 16);
    const bool streamed =
        prefers_streamed_sums(dtype_v<T>, Panels(args.m, widest_streams).width, args.n);
    const int widest = streamed
                           ? widest_streams
                           : planner.most_columns(panels_n.width, OperandsOf(args).bytes,
                                                  widest_tsmttsm_panel(dtype_v<T>, panels_n.width));
    const Panels panels_m(args.m, widest);
    for (int i = 0; i < panels_m.count; ++i) {
        for (int j = 0; j < panels_n.count; ++j) {
            TsmttsmArgs<T> part = args;
            part.m = panels_m.size(i, args.m);
            part.n = panels_n.size(j, args.n);
            part.a += panels_m.begin(i);
            part.b += panels_n.begin(j);
            part.c += panels_m.begin(i) * args.ldc + panels_n.begin(j);
            f(Panel<T>{part, streamed});
        }
    }
}

/// The number of blocks, smaller for few rows. With b blocks, the rows take rows * row / b, and
/// adding the partial sums in two levels takes 2 sqrt(b) part; `best` is the b with the shortest
/// total.
template <class T>
unsigned blocks_of(const Context& ctx, const TsmttsmArgs<T>& args, const PlannedKernel& kernel) {
    const unsigned blocks =
        blocks_for(ctx, args.rows, kernel.rows, kernel.blocks_per_multiprocessor);
    // Times of one multiprocessor of an H200, in microseconds. row: to read and multiply a row.
    // part: to wait for sixteen loads that are in flight together.
    const double row = std::max((args.m + args.n) * static_cast<double>(sizeof(T)) / 50e3,
                                multiply_add_flops_v<T> * args.m * args.n / 400e3);
    const double part = 0.09 * std::max(0.1, args.m * args.n / 1024.0);
    const double best = std::pow(static_cast<double>(args.rows) * row / part, 2.0 / 3.0);
    return blocks_for_classes(kernel, best < multiprocessors(ctx)
                                          ? std::min(blocks, static_cast<unsigned>(best) + 1)
                                          : blocks);
}

template <class T>
std::size_t partial_bytes(const Context& ctx, const TsmttsmArgs<T>& args, const ProductShape& shape,
                          const PlannedKernel& planned) {
    if (planned.atomics) {
        return 0;
    }
    const auto entries = static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.n);
    return blocks_of(ctx, args, planned) * entries * sizeof(T);
}

/// `args`: the product; `given`: the arguments of the kernel, which contain those of the product.
template <class T, class Args>
void launch_product(Context& ctx, const TsmttsmArgs<T>& args, const Args& given,
                    const PlannedKernel& planned, Kernel& kernel, void* workspace) {
    if (planned.atomics && args.beta != T(1)) {
        axpby(ctx, AxpbyArgs<T>{args.m, args.n, T(0), nullptr, args.c, args.ldc, args.beta, nullptr,
                                args.c, args.ldc});
    }
    const unsigned blocks = blocks_of(ctx, args, planned);
    const bool is_reduced = ctx.service<Planner>().choice().reduction != Reduction::none;
    launch(ctx, kernel, launch_shape(planned, blocks), given, static_cast<T*>(workspace),
           ctx.counters(), is_reduced ? reduction_group(blocks, args.m * args.n) : 0);
}

}  // namespace

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmttsmArgs<T>& args, const TsmttsmPlan& plan) {
    const Served request = request_of(args, plan);
    return partial_bytes(ctx, args, request.shape, kernel_for(ctx, request, plan));
}

template <class T>
void tsmttsm(Context& ctx, const TsmttsmArgs<T>& args, const TsmttsmPlan& plan, void* workspace) {
    const PlannedKernel planned = kernel_for(ctx, request_of(args, plan), plan);
    launch_product(ctx, args, args, planned, load(ctx, planned), workspace);
}

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmttsmArgs<T>& args) {
    std::size_t most = 0;
    if (Cublas::for_product(ctx, args) != nullptr) {
        return most;
    }
    const Planner& planner = ctx.service<Planner>();
    for_each_panel(planner, args, [&](const Panel<T>& panel) {
        most = std::max(most, partial_bytes(ctx, panel.args, request_of(planner, panel).shape,
                                            ready_for(ctx, panel).planned));
    });
    return most;
}

template <class T>
void append_kernels(Planner& planner, const TsmttsmArgs<T>& args, KernelList& list) {
    if (Cublas::serves(planner.choice(), args)) {
        return;  // without cuBLAS, the first product compiles them
    }
    for_each_panel(planner, args, [&](const Panel<T>& panel) {
        planner.append<TsmttsmPlan>(request_of(planner, panel), list);
    });
}

template <class T>
void tsmttsm(Context& ctx, const TsmttsmArgs<T>& args, void* workspace) {
    if (const Cublas* const cublas = Cublas::for_product(ctx, args)) {
        cublas->tsmttsm(args);
        return;
    }
    // The panels run one after another on the stream, and share workspace and counters.
    for_each_panel(ctx.service<Planner>(), args, [&](const Panel<T>& panel) {
        const Planner::Ready& ready = ready_for(ctx, panel);
        launch_product(ctx, panel.args, panel.args, ready.planned, *ready.kernel, workspace);
    });
}

template <class T, class R>
std::size_t workspace_bytes(Context& ctx, const WeightedTsmttsmArgs<T, R>& args) {
    std::size_t most = 0;
    const Planner& planner = ctx.service<Planner>();
    for_each_panel(planner, args.product, [&](const Panel<T>& panel) {
        most = std::max(most, partial_bytes(ctx, panel.args, request_apart(planner, panel).shape,
                                            weighted_ready_for(ctx, panel).planned));
    });
    return most;
}

template <class T, class R>
void weighted_tsmttsm(Context& ctx, const WeightedTsmttsmArgs<T, R>& args, void* workspace) {
    for_each_panel(ctx.service<Planner>(), args.product, [&](const Panel<T>& panel) {
        const Planner::Ready& ready = weighted_ready_for(ctx, panel);
        launch_product(ctx, panel.args, WeightedTsmttsmArgs<T, R>{panel.args, args.w, args.ldw},
                       ready.planned, *ready.kernel, workspace);
    });
}

template <class T>
using WeightedArgs = WeightedTsmttsmArgs<T, real_t<T>>;

#define QUIVER_INSTANTIATE(T)                                                                  \
    template std::size_t workspace_bytes(Context&, const WeightedArgs<T>&);                    \
    template void weighted_tsmttsm(Context&, const WeightedArgs<T>&, void*);                   \
    template std::size_t workspace_bytes(Context&, const TsmttsmArgs<T>&, const TsmttsmPlan&); \
    template void tsmttsm(Context&, const TsmttsmArgs<T>&, const TsmttsmPlan&, void*);         \
    template std::size_t workspace_bytes(Context&, const TsmttsmArgs<T>&);                     \
    template void tsmttsm(Context&, const TsmttsmArgs<T>&, void*);                             \
    template void append_kernels(Planner&, const TsmttsmArgs<T>&, KernelList&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
