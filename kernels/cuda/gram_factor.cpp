// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {

template <class T>
void gram_factor(Context& ctx, const GramFactorArgs<T>& args) {
    // One thread per element of a small matrix: additional threads would only wait at barriers.
    const int threads = std::clamp((args.n * args.n + 31) / 32 * 32, 32, 256);
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "gram_factor.cuh",
                                          instance("gram_factor", device_name<T>())),
           {.threads = static_cast<unsigned>(threads)}, args);
}

#define QUIVER_INSTANTIATE(T) template void gram_factor(Context&, const GramFactorArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
