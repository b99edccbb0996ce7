// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmttsm.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/dispatch.hpp"

namespace quiver {
namespace {

constexpr const char* operation = "tsmttsm";

}  // namespace

template <class T>
void tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
             std::type_identity_t<BlockView<const T>> a, std::type_identity_t<BlockView<const T>> b,
             std::type_identity_t<T> beta, BlockView<T> c, Reduce reduce) {
    if (BlockOperations<T>* const operations = operations_of<T>(ctx)) {
        operations->tsmttsm(ctx, alpha, a, b, beta, c, reduce);
        return;
    }
    require_product(ctx, operation, a, b, c);
    if (c.empty()) {
        return;
    }
    sum_small(ctx, beta, c, reduce, [&](T factor, T* target, std::int64_t ld) {
        const bool same = same_block(a, b) && a.cols == b.cols;
        const double rows = static_cast<double>(a.rows);
        const Ledger::Entry entry(
            ctx.ledger(),
            {operation, dtype_v<T>, ctx.place(), a.rows, a.cols, b.cols,
             static_cast<double>(sizeof(T)) * rows * (same ? a.cols : a.cols + b.cols),
             multiply_add_flops_v<T> * rows * a.cols * b.cols});
        run_leaf(ctx, leaf::tsmttsm,
                 TsmttsmArgs<T>{a.rows, a.cols, b.cols, alpha, a.data, a.ld, b.data, b.ld, factor,
                                target, ld});
    });
}

#define QUIVER_INSTANTIATE(T)                                                                   \
    template void tsmttsm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>, \
                          Reduce);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
