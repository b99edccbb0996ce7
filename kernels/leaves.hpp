// SPDX-License-Identifier: BSD-3-Clause
// Leaf: the host and the CUDA form of each operation, and run_leaf, which calls the form for the
// Context's place. Private to kernels/.
#pragma once

#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/host/host_kernels.hpp"

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

namespace leaf {

inline constexpr Leaf tsmttsm{[](auto&&... given) { host::tsmttsm(given...); },
                              [](auto&&... given) { cuda::tsmttsm(given...); }};
inline constexpr Leaf tsmttsm_mixed{[](auto&&... given) { host::tsmttsm_mixed(given...); },
                                    [](auto&&... given) { cuda::tsmttsm_mixed(given...); }};
inline constexpr Leaf tsmttsm_twofold{[](auto&&... given) { host::tsmttsm_twofold(given...); },
                                      [](auto&&... given) { cuda::tsmttsm_twofold(given...); }};
inline constexpr Leaf tsmm{[](auto&&... given) { host::tsmm(given...); },
                           [](auto&&... given) { cuda::tsmm(given...); }};
inline constexpr Leaf tsmm_mixed{[](auto&&... given) { host::tsmm_mixed(given...); },
                                 [](auto&&... given) { cuda::tsmm_mixed(given...); }};
inline constexpr Leaf tsmm_gram{[](auto&&... given) { host::tsmm_gram(given...); },
                                [](auto&&... given) { cuda::tsmm_gram(given...); }};
inline constexpr Leaf mtsm{[](auto&&... given) { host::mtsm(given...); },
                           [](auto&&... given) { cuda::mtsm(given...); }};
inline constexpr Leaf spmmv{[](auto&&... given) { host::spmmv(given...); },
                            [](auto&&... given) { cuda::spmmv(given...); }};
inline constexpr Leaf gram_factor{[](auto&&... given) { host::gram_factor(given...); },
                                  [](auto&&... given) { cuda::gram_factor(given...); }};
inline constexpr Leaf axpby{[](auto&&... given) { host::axpby(given...); },
                            [](auto&&... given) { cuda::axpby(given...); }};
inline constexpr Leaf dots{[](auto&&... given) { host::dots(given...); },
                           [](auto&&... given) { cuda::dots(given...); }};
inline constexpr Leaf convert{[](auto&&... given) { host::convert(given...); },
                              [](auto&&... given) { cuda::convert(given...); }};
inline constexpr Leaf gather_columns{[](auto&&... given) { host::gather_columns(given...); },
                                     [](auto&&... given) { cuda::gather_columns(given...); }};
inline constexpr Leaf gather_rows{[](auto&&... given) { host::gather_rows(given...); },
                                  [](auto&&... given) { cuda::gather_rows(given...); }};
inline constexpr Leaf fill{[](auto&&... given) { host::fill(given...); },
                           [](auto&&... given) { cuda::fill(given...); }};
inline constexpr Leaf fill_random{[](auto&&... given) { host::fill_random(given...); },
                                  [](auto&&... given) { cuda::fill_random(given...); }};
inline constexpr Leaf checksum{[](auto&&... given) { host::checksum(given...); },
                               [](auto&&... given) { cuda::checksum(given...); }};
inline constexpr Leaf parity{[](auto&&... given) { host::parity(given...); },
                             [](auto&&... given) { cuda::parity(given...); }};
inline constexpr Leaf lu_factor{[](auto&&... given) { host::lu_factor(given...); },
                                [](auto&&... given) { cuda::lu_factor(given...); }};
inline constexpr Leaf cholesky_factor{[](auto&&... given) { host::cholesky_factor(given...); },
                                      [](auto&&... given) { cuda::cholesky_factor(given...); }};
inline constexpr Leaf batched_solve{[](auto&&... given) { host::batched_solve(given...); },
                                    [](auto&&... given) { cuda::batched_solve(given...); }};
inline constexpr Leaf batched_determinant{
    [](auto&&... given) { host::batched_determinant(given...); },
    [](auto&&... given) { cuda::batched_determinant(given...); }};

}  // namespace leaf

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
