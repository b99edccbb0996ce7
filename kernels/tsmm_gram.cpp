// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm_gram.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/dispatch.hpp"

namespace quiver {
namespace {

constexpr UpdateNames names{"tsmm_gram", "V", "H", "W"};

}  // namespace

template <class T>
void tsmm_gram(Context& ctx, std::type_identity_t<T> alpha,
               std::type_identity_t<BlockView<const T>> v,
               std::type_identity_t<BlockView<const T>> h, std::type_identity_t<T> beta,
               BlockView<T> w, std::type_identity_t<BlockView<T>> g, Reduce reduce) {
    if (BlockOperations<T>* const operations = operations_of<T>(ctx)) {
        operations->tsmm_gram(ctx, alpha, v, h, beta, w, g, reduce);
        return;
    }
    require_update(ctx, names, v, h, w);
    require_small(ctx, g, w.cols, w.cols, names.operation, "G",
                  "columns of the result on either side");
    require_shape(!overlap(g, w) && !overlap(g, v) && !overlap(g, h), names.operation,
                  "G overlaps an operand",
                  [&] { return describe("V", v, "W", w) + "; " + describe("H", h, "G", g); });
    if (w.cols == 0) {
        return;
    }
    const LeafArray<T> h_array(ctx, h);
    sum_small(ctx, T(0), g, reduce, [&](T, T* target, std::int64_t ld) {
        const double rows = static_cast<double>(w.rows);
        const double columns = static_cast<double>(v.cols) + w.cols * (beta == T(0) ? 1.0 : 2.0);
        const Ledger::Entry entry(ctx.ledger(),
                                  {names.operation, dtype_v<T>, ctx.place(), w.rows, v.cols, w.cols,
                                   static_cast<double>(sizeof(T)) * rows * columns,
                                   multiply_add_flops_v<T> * rows * w.cols * (v.cols + w.cols)});
        run_leaf(ctx, leaf::tsmm_gram,
                 TsmmGramArgs<T>{{w.rows, v.cols, w.cols, alpha, v.data, v.ld, h_array.data(),
                                  h_array.ld(), beta, w.data, w.ld},
                                 target,
                                 ld});
    });
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template void tsmm_gram(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>, \
                            BlockView<T>, Reduce);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
