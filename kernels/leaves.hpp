// SPDX-License-Identifier: BSD-3-Clause
// Leaf: the host and the CUDA form of each operation, and run_leaf, which calls the form for the
// Context's place. Private to kernels/.
#pragma once

#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver {

/// The two forms of one operation. The host form takes (threads, args) or (threads, args,
/// workspace); the CUDA form takes the Context instead of the thread count.
template <class Host, class Cuda>
struct Leaf {
    Host host;
    Cuda cuda;
};
// Deduction guide: clang 14 does not deduce the template arguments of aggregates.
template <class Host, class Cuda>
Leaf(Host, Cuda) -> Leaf<Host, Cuda>;

/// The host and the CUDA leaf of one name.
#define QUIVER_LEAF(name)                                 \
    Leaf {                                                \
        [](auto&&... given) { host::name(given...); },    \
            [](auto&&... given) { cuda::name(given...); } \
    }

/// Calls the leaf for the Context's place with the workspace that it requests. On a device the work
/// is only enqueued; `device_options` are appended to the arguments of the CUDA form.
template <class Leaf, class Args, class... Options>
void run_leaf(Context& ctx, const Leaf& leaf, const Args& args, const Options&... device_options) {
    if (ctx.place() == Place::host) {
        if constexpr (requires { host::workspace_bytes(ctx.threads(), args); }) {
            const Scratch workspace =
                ctx.scratch(MemoryKind::host, host::workspace_bytes(ctx.threads(), args));
            leaf.host(ctx.threads(), args, workspace.template as<void>());
        } else {
            leaf.host(ctx.threads(), args);
        }
        return;
    }
    if constexpr (config::have_cuda) {
        if constexpr (requires { cuda::workspace_bytes(ctx, args); }) {
            const Scratch workspace =
                ctx.scratch(MemoryKind::device, cuda::workspace_bytes(ctx, args));
            leaf.cuda(ctx, args, workspace.template as<void>(), device_options...);
        } else {
            leaf.cuda(ctx, args, device_options...);
        }
    }
}

}  // namespace quiver
