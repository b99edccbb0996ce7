// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>

#include "blockvec/device.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cublas.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/planned_products.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

/// The kernel that the library chooses. If there is no shared kernel, the product uses a kernel of
/// its own widths.
template <class T>
Served served_or_own(Planner& planner, const TsmmArgs<T>& args) {
    const Served shared = served(planner, args);
    return planner.exists<TsmmPlan>(shared.shape) ? shared : OperandsOf(args).own;
}

/// Panels of the columns of Y and, if C or rows of X are too large for shared memory, of the
/// columns of X. streamed: true if streamed kernels compute the panels.
struct PanelPair {
    Panels m, n;
    bool streamed = false;
    bool single() const { return m.count == 1 && n.count == 1; }
};

/// The request for the streamed kernel of a panel.
template <class T>
Served streamed_request(const TsmmArgs<T>& part) {
    return Served::streams(dtype_v<T>, part.m, part.n, Layout::of(part.x, 0, part.ldx, sizeof(T)),
                           Layout::of(part.y, part.n, part.ldy, sizeof(T)));
}

/// The request for the kernel of one panel.
template <class T>
Served request_of(Planner& planner, const TsmmArgs<T>& part, const PanelPair& panels) {
    return panels.streamed ? streamed_request(part) : served_or_own(planner, part);
}

/// The panels for streamed kernels; nothing if other kernels are preferred, or if shared memory has
/// no room for C.
template <class T>
std::optional<PanelPair> streamed_panels(Planner& planner, const TsmmArgs<T>& args) {
    if (args.d != nullptr || !prefers_streams(dtype_v<T>, args.m, args.n)) {
        return std::nullopt;
    }
    constexpr int widest = 2048;
    const Panels n(args.n, widest_streamed_panel);
    for (int count = ceil_div(args.m, widest); args.m > count * widest_panel; ++count) {
        const Panels m(args.m, ceil_div(args.m, count));
        if (planner.exists<TsmmPlan>(ProductShape::streams(dtype_v<T>, m.width, n.width))) {
            return PanelPair{m, n, true};
        }
    }
    return std::nullopt;
}

/// Widest panel of X for the tensor cores: a longer sum in one accumulator would be bound by its
/// latency, and few rows would fit. One more addition to Y costs less.
constexpr int widest_tensor_panel = 128;

/// The smallest number of panels for which there are kernels; nothing if there are none.
template <class T>
std::optional<PanelPair> panels_if(Planner& planner, const TsmmArgs<T>& args) {
    if (const auto panels = streamed_panels(planner, args)) {
        return panels;
    }
    const Panels n(args.n);
    const bool tensor = sizeof(real_t<T>) == sizeof(double);
    const int widest = planner.most_columns(
        n.width, OperandsOf(args).bytes,
        tensor && args.x != args.y ? std::min(args.m, widest_tensor_panel) : args.m);
    for (int limit = widest;; limit = ceil_div(limit, 2)) {
        TsmmArgs<T> part = args;
        const Panels m(args.m, limit);
        part.m = m.width;
        part.n = n.width;
        if (planner.exists<TsmmPlan>(served_or_own(planner, part).shape)) {
            return PanelPair{m, n};
        }
        if (limit == 1) {
            return std::nullopt;
        }
    }
}

template <class T>
PanelPair panels_of(Planner& planner, const TsmmArgs<T>& args) {
    const auto panels = panels_if(planner, args);
    if (!panels) {
        throw DeviceError("no kernel for " + Planner::name<TsmmPlan>(OperandsOf(args).own));
    }
    return *panels;
}

/// The two parts of the product: Y = beta Y D, then Y = alpha X C + Y.
template <class T>
TsmmArgs<T> in_place_part(const TsmmArgs<T>& args) {
    return {args.rows, args.n,   args.n, args.beta, args.y,  args.ldy,
            args.d,    args.ldd, T(0),   args.y,    args.ldy};
}
template <class T>
TsmmArgs<T> added_part(const TsmmArgs<T>& args) {
    return {args.rows, args.m,   args.n, args.alpha, args.x,  args.ldx,
            args.c,    args.ldc, T(1),   args.y,     args.ldy};
}

/// True if Y D shares a pass with the first panel of X C. False if Y has several panels, which all
/// need the old Y, or if the smaller panels of X that fit beside Y cost more passes than a separate
/// Y D.
template <class T>
bool joins(Planner& planner, const TsmmArgs<T>& args) {
    if (Panels(args.n).count > 1) {
        return false;
    }
    const auto together = panels_if(planner, args);
    return together && together->m.count <= 1 + panels_of(planner, added_part(args)).m.count;
}

/// True for an in-place product in several panels: X must be copied first.
template <class T>
bool needs_copy(const TsmmArgs<T>& args, const PanelPair& panels) {
    return args.x == args.y && !panels.single();
}

/// The most bytes that are copied at once.
constexpr std::int64_t copied_bytes = std::int64_t{1} << 30;

template <class T>
std::size_t row_bytes(const TsmmArgs<T>& args) {
    return static_cast<std::size_t>(args.m) * sizeof(T);
}

template <class T>
std::int64_t copied_rows(const TsmmArgs<T>& args) {
    return std::clamp<std::int64_t>(copied_bytes / static_cast<std::int64_t>(row_bytes(args)), 1,
                                    args.rows);
}

/// Calls f(part of the arguments) for every panel, in the required order.
template <class T, class F>
void for_each_panel(const TsmmArgs<T>& args, const PanelPair& panels, F&& f) {
    for (int j = 0; j < panels.n.count; ++j) {
        for (int i = 0; i < panels.m.count; ++i) {
            TsmmArgs<T> part = args;
            part.m = panels.m.size(i, args.m);
            part.n = panels.n.size(j, args.n);
            part.x += panels.m.begin(i);
            part.c += panels.m.begin(i) * args.ldc + panels.n.begin(j);
            part.y += panels.n.begin(j);
            if (i > 0) {
                part.beta = T(1);
                part.d = nullptr;
            }
            f(part);
        }
    }
}

template <class T>
void launch_product(Context& ctx, const TsmmArgs<T>& args, const PlannedKernel& planned,
                    Kernel& kernel) {
    const unsigned blocks =
        blocks_for(ctx, args.rows, planned.rows, planned.blocks_per_multiprocessor);
    launch(ctx, kernel, launch_shape(planned, blocks_for_classes(planned, blocks)), args);
}

}  // namespace

template <class T>
void tsmm(Context& ctx, const TsmmArgs<T>& args, const TsmmPlan& plan) {
    const PlannedKernel planned =
        kernel_for(ctx, plan.streamed ? streamed_request(args) : OperandsOf(args).own, plan);
    launch_product(ctx, args, planned, load(ctx, planned));
}

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmArgs<T>& args) {
    Planner& planner = ctx.service<Planner>();
    if (args.d != nullptr) {
        return joins(planner, args) ? 0 : workspace_bytes(ctx, in_place_part(args));
    }
    if (args.m == 0 || args.n == 0 || !needs_copy(args, panels_of(planner, args))) {
        return 0;
    }
    return static_cast<std::size_t>(copied_rows(args)) * row_bytes(args);
}

template <class T>
void tsmm(Context& ctx, const TsmmArgs<T>& args, void* workspace) {
    if (args.rows == 0 || args.n == 0) {
        return;
    }
    if (const Cublas* const cublas = Cublas::for_product(ctx, args)) {
        cublas->tsmm(args);
        return;
    }
    Planner& planner = ctx.service<Planner>();
    if (args.d != nullptr && !joins(planner, args)) {
        tsmm(ctx, in_place_part(args), workspace);
        tsmm(ctx, added_part(args), workspace);
        return;
    }
    if (args.m == 0) {
        axpby(ctx, AxpbyArgs<T>{args.rows, args.n, T(0), nullptr, nullptr, 0, args.beta, nullptr,
                                args.y, args.ldy});
        return;
    }
    const PanelPair panels = panels_of(planner, args);
    const auto launch_panels = [&](const TsmmArgs<T>& rows) {
        for_each_panel(rows, panels, [&](const TsmmArgs<T>& part) {
            const Planner::Ready& ready =
                planner.ready<TsmmPlan>(ctx, request_of(planner, part, panels));
            launch_product(ctx, part, ready.planned, *ready.kernel);
        });
    };
    if (!needs_copy(args, panels)) {
        launch_panels(args);
        return;
    }
    TsmmArgs<T> some = args;
    some.x = static_cast<const T*>(workspace);
    some.ldx = args.m;
    for (std::int64_t first = 0; first < args.rows; first += some.rows) {
        some.rows = std::min(copied_rows(args), args.rows - first);
        some.y = args.y + first * args.ldy;
        device::copy_2d(workspace, row_bytes(args), args.x + first * args.ldx,
                        static_cast<std::size_t>(args.ldx) * sizeof(T), row_bytes(args),
                        static_cast<std::size_t>(some.rows), ctx.stream());
        launch_panels(some);
    }
}

template <class T>
void append_kernels(Planner& planner, const TsmmArgs<T>& args, KernelList& list) {
    if (args.m == 0 || args.n == 0 || Cublas::serves(planner.choice(), args)) {
        return;  // without cuBLAS, the first product compiles its kernels
    }
    if (args.d != nullptr && !joins(planner, args)) {
        append_kernels(planner, in_place_part(args), list);
        append_kernels(planner, added_part(args), list);
        return;
    }
    const PanelPair panels = panels_of(planner, args);
    for_each_panel(args, panels, [&](const TsmmArgs<T>& part) {
        planner.append<TsmmPlan>(request_of(planner, part, panels), list);
    });
}

#define QUIVER_INSTANTIATE(T)                                           \
    template void tsmm(Context&, const TsmmArgs<T>&, const TsmmPlan&);  \
    template std::size_t workspace_bytes(Context&, const TsmmArgs<T>&); \
    template void tsmm(Context&, const TsmmArgs<T>&, void*);            \
    template void append_kernels(Planner&, const TsmmArgs<T>&, KernelList&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
