// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"

namespace quiver::cuda {

template <class T>
void run(Context& ctx, const GramFactorArgs<T>& args) {
    // A thread for each element of a small matrix: more would only wait at the barriers.
    const int threads = std::clamp((args.n * args.n + 31) / 32 * 32, 32, 256);
    launch(ctx,
           ctx.service<Specialiser>().get("gram_factor.cuh",
                                          instance("gram_factor", device_name<T>())),
           {.threads = static_cast<unsigned>(threads)}, args);
}

template void run(Context&, const GramFactorArgs<float>&);
template void run(Context&, const GramFactorArgs<double>&);
template void run(Context&, const GramFactorArgs<std::complex<float>>&);
template void run(Context&, const GramFactorArgs<std::complex<double>>&);

}  // namespace quiver::cuda
