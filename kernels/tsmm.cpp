// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmm.hpp"

#include "kernels/dispatch.hpp"

namespace quiver {
namespace {

constexpr const char* operation = "tsmm";

template <class T>
void check(const Context& ctx, const BlockView<const T>& x, const BlockView<const T>& c,
           const BlockView<T>& y) {
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_valid(c, operation, "C");
    require_shape(c.empty() || c.place == Place::host || ctx.place() == Place::device, operation,
                  "C is in device memory, the Context works on the host",
                  [&] { return "C: " + describe(c); });
    require_shape(x.rows == y.rows, operation, "X and Y differ in rows",
                  [&] { return describe("X", x, "Y", y); });
    require_shape(c.rows == x.cols && c.cols == y.cols, operation,
                  "C is not (columns of X) x (columns of Y)",
                  [&] { return describe("X", x, "Y", y) + "; C: " + describe(c); });
    require_shape(!overlap(x, y) || same_block(x, y), operation,
                  "X and Y overlap and are not the same block",
                  [&] { return describe("X", x, "Y", y); });
    require_shape(!overlap(c, y) && !overlap(c, x), operation, "C overlaps X or Y",
                  [&] { return describe("X", x, "Y", y) + "; C: " + describe(c); });
}

}  // namespace

template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<BlockView<const T>> c, std::type_identity_t<T> beta,
          BlockView<T> y) {
    check(ctx, x, c, y);
    if (y.empty()) {
        return;
    }
    const double rows = static_cast<double>(y.rows);
    const double columns = static_cast<double>(x.cols) + y.cols * (beta == T(0) ? 1.0 : 2.0);
    const auto product = [&](const T* c_data, std::int64_t ldc) {
        const Ledger::Entry entry(ctx.ledger(),
                                  {operation, dtype_v<T>, ctx.place(), y.rows, x.cols, y.cols,
                                   static_cast<double>(sizeof(T)) * rows * columns,
                                   multiply_add_flops_v<T> * rows * x.cols * y.cols});
        run_leaf(ctx, TsmmArgs<T>{y.rows, x.cols, y.cols, alpha, x.data, x.ld, c_data, ldc, beta,
                                  y.data, y.ld});
    };
    if (c.place == ctx.place()) {
        product(c.data, c.ld);
    } else {
        const LeafArray<T> uploaded(ctx, c);
        product(uploaded.data(), uploaded.ld());
    }
}

template void tsmm(Context&, float, BlockView<const float>, BlockView<const float>, float,
                   BlockView<float>);
template void tsmm(Context&, double, BlockView<const double>, BlockView<const double>, double,
                   BlockView<double>);
template void tsmm(Context&, std::complex<float>, BlockView<const std::complex<float>>,
                   BlockView<const std::complex<float>>, std::complex<float>,
                   BlockView<std::complex<float>>);
template void tsmm(Context&, std::complex<double>, BlockView<const std::complex<double>>,
                   BlockView<const std::complex<double>>, std::complex<double>,
                   BlockView<std::complex<double>>);

}  // namespace quiver
