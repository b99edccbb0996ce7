// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/tsmttsm.hpp"

#include "kernels/dispatch.hpp"

namespace quiver {
namespace {

constexpr const char* operation = "tsmttsm";

template <class T>
void check(const Context& ctx, const BlockView<const T>& a, const BlockView<const T>& b,
           const BlockView<T>& c) {
    require_operand(ctx, a, operation, "A");
    require_operand(ctx, b, operation, "B");
    require_valid(c, operation, "C");
    require_shape(c.empty() || c.place == Place::host || ctx.place() == Place::device, operation,
                  "C is in device memory, the Context works on the host",
                  [&] { return "C: " + describe(c); });
    require_shape(a.rows == b.rows, operation, "A and B differ in rows",
                  [&] { return describe("A", a, "B", b); });
    require_shape(c.rows == a.cols && c.cols == b.cols, operation,
                  "C is not (columns of A) x (columns of B)",
                  [&] { return describe("A", a, "B", b) + "; C: " + describe(c); });
    require_shape(!overlap(a, c) && !overlap(b, c), operation, "C overlaps A or B",
                  [&] { return describe("A", a, "B", b) + "; C: " + describe(c); });
}

}  // namespace

template <class T>
void tsmttsm(Context& ctx, std::type_identity_t<T> alpha,
             std::type_identity_t<BlockView<const T>> a, std::type_identity_t<BlockView<const T>> b,
             std::type_identity_t<T> beta, BlockView<T> c, Reduce reduce) {
    check(ctx, a, b, c);
    if (c.empty()) {
        return;
    }
    const auto product = [&](T factor, T* target, std::int64_t ld) {
        const bool same = same_block(a, b) && a.cols == b.cols;
        const double rows = static_cast<double>(a.rows);
        const Ledger::Entry entry(
            ctx.ledger(),
            {operation, dtype_v<T>, ctx.place(), a.rows, a.cols, b.cols,
             static_cast<double>(sizeof(T)) * rows * (same ? a.cols : a.cols + b.cols),
             multiply_add_flops_v<T> * rows * a.cols * b.cols});
        run_leaf(ctx, TsmttsmArgs<T>{a.rows, a.cols, b.cols, alpha, a.data, a.ld, b.data, b.ld,
                                     factor, target, ld});
    };
    if (c.place == ctx.place() && !needs_ranks(ctx, reduce)) {
        product(beta, c.data, c.ld);
        return;
    }
    const std::size_t count = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.cols);
    reduce_to_host<T>(
        ctx, count, reduce, [&](T* partial) { product(T(0), partial, c.cols); },
        [&](const T* sum) { add_scaled(ctx, sum, beta, c); });
}

template void tsmttsm(Context&, float, BlockView<const float>, BlockView<const float>, float,
                      BlockView<float>, Reduce);
template void tsmttsm(Context&, double, BlockView<const double>, BlockView<const double>, double,
                      BlockView<double>, Reduce);
template void tsmttsm(Context&, std::complex<float>, BlockView<const std::complex<float>>,
                      BlockView<const std::complex<float>>, std::complex<float>,
                      BlockView<std::complex<float>>, Reduce);
template void tsmttsm(Context&, std::complex<double>, BlockView<const std::complex<double>>,
                      BlockView<const std::complex<double>>, std::complex<double>,
                      BlockView<std::complex<double>>, Reduce);

}  // namespace quiver
