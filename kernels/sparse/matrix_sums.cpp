// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/matrix_sums.hpp"

#include <algorithm>
#include <cmath>

#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

/// sum += entry w; `rest` gets the rounding errors of product and sum (Knuth's two-sum, and fma).
void add_product(double& sum, double& rest, double entry, double w) {
    const double term = entry * w;
    const double total = sum + term;
    const double part = total - sum;
    rest += (sum - (total - part)) + (term - part) + std::fma(entry, w, -term);
    sum = total;
}
void add_product(std::complex<double>& sum, std::complex<double>& rest, std::complex<double> entry,
                 double w) {
    double parts[4] = {sum.real(), sum.imag(), rest.real(), rest.imag()};
    add_product(parts[0], parts[2], entry.real(), w);
    add_product(parts[1], parts[3], entry.imag(), w);
    sum = {parts[0], parts[1]};
    rest = {parts[2], parts[3]};
}

template <class V>
V largest(const std::vector<V>& values) {
    return values.empty() ? V(0) : *std::max_element(values.begin(), values.end());
}

}  // namespace

template <class T>
MatrixSums<T> matrix_sums(Context& ctx, const SparseMatrix<T>& a, int log_chunk) {
    using S = checksum_t<T>;
    const auto own = static_cast<std::size_t>(a.row_map().local_rows());
    const std::size_t columns = own + static_cast<std::size_t>(a.halo_size());
    const std::size_t chunk_mask = (std::size_t{1} << log_chunk) - 1;
    MatrixSums<T> result;
    result.sums.assign(2 * columns, S(0));
    std::vector<S> rest(2 * columns, S(0));
    std::vector<double> row_sum(own, 0.0);
    std::vector<double> column_sum(columns, 0.0);
    std::vector<std::int64_t> length(own, 0);
    a.for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
        const auto j = static_cast<std::size_t>(column);
        const S entry = static_cast<S>(conjugate(value));
        const double mixed = mixed_weight(static_cast<std::int64_t>(row & chunk_mask));
        add_product(result.sums[2 * j], rest[2 * j], entry, 1.0);
        add_product(result.sums[2 * j + 1], rest[2 * j + 1], entry, mixed);
        const double size = std::abs(entry);
        row_sum[row] += size;
        column_sum[j] += size;
        ++length[row];
    });
    // Add the rest to the sums, which then contain only the error of this last rounding.
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const S sum = result.sums[i] + rest[i];
        result.lost[i % 2] += std::norm((result.sums[i] - sum) + rest[i]);
        result.sums[i] = sum;
    }
    for (double& square : result.lost) {
        square = std::sqrt(square);
    }
    result.row_norm = largest(row_sum);
    result.column_norm = largest(column_sum);
    result.longest_row = largest(length);
    return result;
}

#define QUIVER_INSTANTIATE(T) \
    template MatrixSums<T> matrix_sums(Context&, const SparseMatrix<T>&, int);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
