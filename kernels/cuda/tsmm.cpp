// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/device.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class T>
TsmmTiling tiling_of(const Context& ctx, const TsmmArgs<T>& args) {
    return TsmmTiling(sizeof(T), args.m, args.n, shared_bytes_per_block(ctx));
}

/// Rows too long for shared memory, several panels, in place: X must be kept elsewhere.
template <class T>
bool needs_copy(const TsmmArgs<T>& args, const TsmmTiling& tiling) {
    return args.x == args.y && !tiling.can_run_in_place();
}

template <class T>
std::size_t row_bytes(const TsmmArgs<T>& args) {
    return static_cast<std::size_t>(args.m) * sizeof(T);
}

}  // namespace

template <class T>
std::size_t workspace_bytes(const Context& ctx, const TsmmArgs<T>& args) {
    if (args.m == 0 || args.n == 0 || !needs_copy(args, tiling_of(ctx, args))) {
        return 0;
    }
    return static_cast<std::size_t>(args.rows) * row_bytes(args);
}

template <class T>
void run(Context& ctx, const TsmmArgs<T>& args, void* workspace) {
    if (args.rows == 0 || args.n == 0) {
        return;
    }
    if (args.m == 0) {
        run(ctx, AxpbyArgs<T>{args.rows, args.n, T(0), nullptr, nullptr, 0, args.beta, nullptr,
                              args.y, args.ldy});
        return;
    }
    const TsmmTiling tiling = tiling_of(ctx, args);
    TsmmArgs<T> actual = args;
    if (needs_copy(args, tiling)) {
        device::copy_2d(workspace, row_bytes(args), args.x,
                        static_cast<std::size_t>(args.ldx) * sizeof(T), row_bytes(args),
                        static_cast<std::size_t>(args.rows), ctx.stream());
        actual.x = static_cast<const T*>(workspace);
        actual.ldx = args.m;
    }
    Kernel& kernel = ctx.service<Specialiser>().get("tsmm.cuh", expression<T>(tiling));
    launch(ctx, kernel,
           {.blocks = blocks_for(ctx, args.rows, tiling.rows(), tiling.blocks),
            .threads = static_cast<unsigned>(tiling.threads),
            .shared_bytes = tiling.shared_bytes},
           actual);
}

template std::size_t workspace_bytes(const Context&, const TsmmArgs<float>&);
template std::size_t workspace_bytes(const Context&, const TsmmArgs<double>&);
template std::size_t workspace_bytes(const Context&, const TsmmArgs<std::complex<float>>&);
template std::size_t workspace_bytes(const Context&, const TsmmArgs<std::complex<double>>&);
template void run(Context&, const TsmmArgs<float>&, void*);
template void run(Context&, const TsmmArgs<double>&, void*);
template void run(Context&, const TsmmArgs<std::complex<float>>&, void*);
template void run(Context&, const TsmmArgs<std::complex<double>>&, void*);

}  // namespace quiver::cuda
