// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/prepare.hpp"

#include "blockvec/config.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"

namespace quiver {

std::vector<int> growing(int last, int step) {
    std::vector<int> widths;
    for (int width = step; width <= last; width += step) {
        widths.push_back(width);
    }
    return widths;
}

std::vector<int> narrowing(int first) {
    const std::vector<int> widths = growing(first);
    return {widths.rbegin(), widths.rend()};
}

std::vector<int> shrinking(int width) {
    std::vector<int> widths;
    for (; width > 0; width /= 2) {
        widths.push_back(width);
    }
    return widths;
}

template <class T>
void prepare_products(Context& ctx, const BlockDemand& demand) {
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device && demand.rows > 0) {
            cuda::request_products<T>(ctx, demand);
        }
    }
}

void wait_for_kernels(Context& ctx) {
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device) {
            cuda::wait_for_kernels(ctx);
        }
    }
}

#define QUIVER_INSTANTIATE(T) template void prepare_products<T>(Context&, const BlockDemand&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
