// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kmeans_step.hpp"

#include <algorithm>

#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver {
namespace {

template <class In>
void check_kmeans_step(const Context& ctx, const BlockView<const In>& x, std::size_t origin,
                       const SmallMatrix<centre_t<In>>& centres, const SmallMatrix<double>& sums,
                       const KmeansRows<In>& rows_out) {
    constexpr const char* operation = operations::kmeans_step.name;
    const int k = centres.rows();
    require_operand(ctx, x, operation, "X");
    const auto all = [&] {
        return describe("X", x, "C", centres.view()) + "; S: " + describe(sums.view()) +
               "; origin: " + std::to_string(origin);
    };
    const auto in_range = [](int size) { return size >= 1 && size <= largest_kmeans; };
    require_shape(in_range(x.cols) && in_range(k), operation,
                  "columns of X and centres must be from 1 to 64", all);
    require_shape(centres.cols() == x.cols && origin == static_cast<std::size_t>(x.cols), operation,
                  "X, C and the origin differ in columns", all);
    require_shape(sums.rows() == k && sums.cols() == x.cols + 2, operation,
                  "S is not centres x (columns + 2)", all);
    const auto fits = [&](std::size_t size) {
        return size == 0 || size == static_cast<std::size_t>(x.rows);
    };
    require_shape(fits(rows_out.labels.size()) && fits(rows_out.distances.size()), operation,
                  "the labels or distances are not one for each row of X", [&] {
                      return describe(x) + "; labels: " + std::to_string(rows_out.labels.size()) +
                             ", distances: " + std::to_string(rows_out.distances.size());
                  });
}

}  // namespace

template <class In>
void kmeans_step(Context& ctx, std::type_identity_t<BlockView<const In>> x,
                 std::span<const centre_t<In>> origin, const SmallMatrix<centre_t<In>>& centres,
                 SmallMatrix<double>& sums, const KmeansRows<In>& rows_out, Reduce reduce) {
    using T = centre_t<In>;
    check_kmeans_step(ctx, x, origin.size(), centres, sums, rows_out);
    dispatch<operations::kmeans_step, In>(ctx, [&](const auto& kernel) {
        const LeafArray<T> shift(ctx, origin);
        const LeafArray<T> given(ctx, centres.view());
        const auto pointer = [](const auto& span) { return span.empty() ? nullptr : span.data(); };
        const std::size_t count =
            static_cast<std::size_t>(sums.rows()) * static_cast<std::size_t>(sums.cols());
        const auto compute = [&](double* partial) {
            kernel(KmeansStepArgs<In, T>{x.rows, x.cols, centres.rows(), x.data, x.ld, shift.data(),
                                         given.data(), partial, pointer(rows_out.labels),
                                         pointer(rows_out.distances)});
        };
        reduce_to_host<double>(ctx, count, reduce, compute, [&](const double* values) {
            std::copy_n(values, count, sums.data());
        });
    });
}

#define QUIVER_INSTANTIATE(In, T)                                                    \
    template void kmeans_step<In>(Context&, BlockView<const In>, std::span<const T>, \
                                  const SmallMatrix<T>&, SmallMatrix<double>&,       \
                                  const KmeansRows<In>&, Reduce);
QUIVER_FOR_EACH_KMEANS(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
