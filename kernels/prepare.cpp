// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/prepare.hpp"

#include "blockvec/config.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"

namespace quiver {

template <class T>
void prepare_products(Context& ctx, const BlockDemand& demand) {
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device && demand.rows > 0) {
            cuda::request_products<T>(ctx, demand);
        }
    }
}

#define QUIVER_INSTANTIATE(T) template void prepare_products<T>(Context&, const BlockDemand&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
