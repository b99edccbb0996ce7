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

template <class T>
void weighted_tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
                      std::type_identity_t<BlockView<const T>> a,
                      std::type_identity_t<BlockView<const real_t<T>>> w,
                      std::type_identity_t<BlockView<const T>> b, std::type_identity_t<T> beta,
                      BlockView<T> c, Reduce reduce) {
    const auto product = [&](const auto& kernel) {
        const char* const name = operations::weighted_tsmttsm.name;
        require_product(ctx, name, a, b, c);
        require_operand(ctx, w, name, "w");
        require_shape(w.rows == a.rows && w.cols == 1, name, "w is not a weight per row of A",
                      [&] { return describe("A", a, "w", w); });
        require_shape(!overlap(c, w), name, "C overlaps w",
                      [&] { return describe("C", c, "w", w); });
        if (c.empty()) {
            return;
        }
        sum_small(ctx, beta, c, reduce, [&](T factor, T* target, std::int64_t ld) {
            kernel(WeightedTsmttsmArgs<T, real_t<T>>{
                {a.rows, a.cols, b.cols, alpha, a.data, a.ld, b.data, b.ld, factor, target, ld},
                w.data,
                w.ld});
        });
    };
    dispatch<operations::weighted_tsmttsm, T>(ctx, product, alpha, a, w, b, beta, c, reduce);
}

template <class T>
using WeightView = BlockView<const real_t<T>>;

#define QUIVER_INSTANTIATE(T)                                                                   \
    template void tsmttsm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>, \
                          Reduce);                                                              \
    template void weighted_tsmttsm(Context&, T, BlockView<const T>, WeightView<T>,              \
                                   BlockView<const T>, T, BlockView<T>, Reduce);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
