// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/inertia.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <Eigen/SparseCholesky>

#include "blockvec/error.hpp"

namespace quiver {

template <class T>
Inertia inertia(const CsrRows<T>& rows, double shift) {
    const std::int64_t n = rows.map.local_rows();
    if (n > most_inertia_rows) {
        throw InputError("inertia: " + std::to_string(n) + " rows, " +
                         std::to_string(most_inertia_rows) + " are the most");
    }
    using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
    std::vector<Eigen::Triplet<Wide>> entries;
    entries.reserve(static_cast<std::size_t>(rows.nonzeros() + n));
    double norm = std::abs(shift);
    for (std::int64_t i = 0; i < n; ++i) {
        entries.emplace_back(static_cast<int>(i), static_cast<int>(i), Wide(-shift));
        for (auto at = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i)]);
             at < static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i) + 1]); ++at) {
            if (rows.column[at] <= i) {
                entries.emplace_back(static_cast<int>(i), static_cast<int>(rows.column[at]),
                                     static_cast<Wide>(rows.value[at]));
            }
            norm = std::max(norm, static_cast<double>(std::abs(rows.value[at])));
        }
    }
    Eigen::SparseMatrix<Wide> lower(static_cast<int>(n), static_cast<int>(n));
    lower.setFromTriplets(entries.begin(), entries.end());
    const Eigen::SimplicialLDLT<Eigen::SparseMatrix<Wide>> factor(lower);
    Inertia result;
    result.reliable = factor.info() == Eigen::Success;
    if (!result.reliable) {
        return result;
    }
    const double noise = std::numeric_limits<double>::epsilon() * norm;
    for (const Wide& pivot : factor.vectorD()) {
        const double value = std::real(pivot);
        result.reliable = result.reliable && std::abs(value) > noise && std::isfinite(value);
        ++(value < 0 ? result.below : result.above);
    }
    return result;
}

template Inertia inertia(const CsrRows<float>&, double);
template Inertia inertia(const CsrRows<double>&, double);
template Inertia inertia(const CsrRows<std::complex<float>>&, double);
template Inertia inertia(const CsrRows<std::complex<double>>&, double);

}  // namespace quiver
