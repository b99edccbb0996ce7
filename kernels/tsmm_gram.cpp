// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm_gram.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"

namespace quiver {
namespace {

constexpr UpdateNames names{operations::tsmm_gram.name, "V", "H", "W"};

}  // namespace

template <class T>
void tsmm_gram(Context& ctx, std::type_identity_t<T> alpha,
               std::type_identity_t<BlockView<const T>> v,
               std::type_identity_t<BlockView<const T>> h, std::type_identity_t<T> beta,
               BlockView<T> w, std::type_identity_t<BlockView<T>> g, Reduce reduce) {
    const auto update = [&](const auto& kernel) {
        require_update(ctx, names, v, h, w);
        require_small(ctx, g, w.cols, w.cols, names.operation, "G",
                      "columns of the result x columns of the result");
        require_shape(!overlap(g, w) && !overlap(g, v) && !overlap(g, h), names.operation,
                      "G overlaps an operand",
                      [&] { return describe("V", v, "W", w) + "; " + describe("H", h, "G", g); });
        if (w.cols == 0) {
            return;
        }
        const LeafArray<T> h_array(ctx, h);
        sum_small(ctx, T(0), g, reduce, [&](T, T* target, std::int64_t ld) {
            kernel(TsmmGramArgs<T>{{w.rows, v.cols, w.cols, alpha, v.data, v.ld, h_array.data(),
                                    h_array.ld(), beta, w.data, w.ld},
                                   target,
                                   ld});
        });
    };
    dispatch<operations::tsmm_gram, T>(ctx, update, alpha, v, h, beta, w, g, reduce);
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template void tsmm_gram(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>, \
                            BlockView<T>, Reduce);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
