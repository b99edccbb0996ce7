// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/block_policy.hpp"
#include "kernels/dispatch.hpp"

namespace quiver {
namespace {

constexpr UpdateNames names{"tsmm", "X", "C", "Y"};

/// Y = alpha X C + beta Y, or beta Y D where D is not empty.
template <class T>
void run_update(Context& ctx, T alpha, const BlockView<const T>& x, const BlockView<const T>& c,
                T beta, const BlockView<T>& y, const BlockView<const T>& d) {
    if (y.empty()) {
        return;
    }
    const LeafArray<T> c_array(ctx, c);
    const LeafArray<T> d_array(ctx, d);
    const double rows = static_cast<double>(y.rows);
    const double columns = static_cast<double>(x.cols) + y.cols * (beta == T(0) ? 1.0 : 2.0);
    const double depth = static_cast<double>(x.cols) + d.cols;
    const Ledger::Entry entry(ctx.ledger(),
                              {names.operation, dtype_v<T>, ctx.place(), y.rows, x.cols, y.cols,
                               static_cast<double>(sizeof(T)) * rows * columns,
                               multiply_add_flops_v<T> * rows * depth * y.cols});
    run_leaf(ctx, leaf::tsmm,
             TsmmArgs<T>{y.rows, x.cols, y.cols, alpha, x.data, x.ld, c_array.data(), c_array.ld(),
                         beta, y.data, y.ld, d.empty() ? nullptr : d_array.data(), d_array.ld()});
}

}  // namespace

template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
          BlockView<T> y) {
    if (BlockOperations<T>* const operations = operations_of<T>(ctx)) {
        operations->tsmm(ctx, alpha, x, c, beta, y);
        return;
    }
    require_update(ctx, names, x, c, y);
    run_update<T>(ctx, alpha, x, c, beta, y, {});
}

template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta, BlockView<T> y,
          std::type_identity_t<BlockView<const T>> d) {
    if (BlockOperations<T>* const operations = operations_of<T>(ctx)) {
        operations->tsmm(ctx, alpha, x, c, beta, y, d);
        return;
    }
    require_update(ctx, names, x, c, y);
    require_small(ctx, d, y.cols, y.cols, names.operation, "D",
                  "columns of the result on either side");
    require_shape(!overlap(x, y), names.operation, "the blocks overlap",
                  [&] { return describe("X", x, "Y", y); });
    require_shape(!overlap(d, y) && !overlap(d, x), names.operation,
                  "the small matrix overlaps a block",
                  [&] { return describe("X", x, "Y", y) + "; D: " + describe(d); });
    if (beta == T(0)) {
        run_update<T>(ctx, alpha, x, c, beta, y, {});
    } else if (x.cols == 0) {
        run_update<T>(ctx, beta, y, d, T(0), y, {});
    } else {
        run_update<T>(ctx, alpha, x, c, beta, y, d);
    }
}

#define QUIVER_INSTANTIATE(T)                                                                 \
    template void tsmm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>); \
    template void tsmm(Context&, T, BlockView<const T>, BlockView<const T>, T, BlockView<T>,  \
                       BlockView<const T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
