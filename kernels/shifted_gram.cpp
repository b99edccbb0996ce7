// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/shifted_gram.hpp"

#include <algorithm>

#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver {

template <class In>
void shifted_gram(Context& ctx, std::type_identity_t<BlockView<const In>> x,
                  std::span<const double> shift, double factor, SmallMatrix<double>& sums,
                  Reduce reduce) {
    constexpr const char* operation = operations::shifted_gram.name;
    require_operand(ctx, x, operation, "X");
    require_shape(x.cols >= 1 && shift.size() == static_cast<std::size_t>(x.cols) &&
                      sums.rows() == x.cols + 1 && sums.cols() == x.cols,
                  operation, "the shift or S does not fit the columns of X", [&] {
                      return describe("X", x, "S", sums.view()) +
                             "; shift: " + std::to_string(shift.size());
                  });
    dispatch<operations::shifted_gram, In>(ctx, [&](const auto& kernel) {
        const LeafArray<double> given(ctx, shift);
        const std::size_t count =
            static_cast<std::size_t>(sums.rows()) * static_cast<std::size_t>(sums.cols());
        const auto compute = [&](double* partial) {
            kernel(
                ShiftedGramArgs<In>{x.rows, x.cols, x.data, x.ld, given.data(), factor, partial});
        };
        reduce_to_host<double>(ctx, count, reduce, compute, [&](const double* values) {
            std::copy_n(values, count, sums.data());
        });
    });
}

#define QUIVER_INSTANTIATE(In)                                                                     \
    template void shifted_gram<In>(Context&, BlockView<const In>, std::span<const double>, double, \
                                   SmallMatrix<double>&, Reduce);
QUIVER_FOR_EACH_REAL_ELEMENT(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
