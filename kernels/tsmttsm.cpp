// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmttsm.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"

namespace quiver {

template <class T>
void tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
             std::type_identity_t<BlockView<const T>> a, std::type_identity_t<BlockView<const T>> b,
             std::type_identity_t<T> beta, BlockView<T> c, Reduce reduce) {
    const auto product = [&](const auto& kernel) {
        require_product(ctx, operations::tsmttsm.name, a, b, c);
        if (c.empty()) {
            return;
        }
        sum_small(ctx, beta, c, reduce, [&](T factor, T* target, std::int64_t ld) {
            kernel(TsmttsmArgs<T>{a.rows, a.cols, b.cols, alpha, a.data, a.ld, b.data, b.ld, factor,
                                  target, ld});
        });
    };
    dispatch<operations::tsmttsm, T>(ctx, product, alpha, a, b, beta, c, reduce);
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template void tsmttsm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>, \
                          Reduce);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
