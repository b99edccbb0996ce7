// SPDX-License-Identifier: BSD-3-Clause
// Checks that the result of every eigensolver must pass. They compute products and sums again, with
// the kernels of the library but without the solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/column_ops.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver::test {

/// max |X^H X - I|.
template <class T>
double orthonormality_defect(Context& ctx, BlockView<const T> x) {
    SmallMatrix<T> gram(x.cols, x.cols);
    tsmttsm(ctx, T(1), x, x, T(0), gram);
    double defect = 0;
    for (int i = 0; i < x.cols; ++i) {
        for (int j = 0; j < x.cols; ++j) {
            defect = std::max(defect,
                              static_cast<double>(std::abs(gram(i, j) - (i == j ? T(1) : T(0)))));
        }
    }
    return defect;
}

/// ||A x_j - lambda_j x_j|| of every pair.
template <class T>
std::vector<double> fresh_residuals(Context& ctx, Operator<T>& a, const EigenResult<T>& result) {
    const BlockView<const T> x = result.vectors.view();
    BlockVector<T> residual(ctx, a.row_map(), x.cols);
    a.apply(ctx, x, residual.view());
    std::vector<T> minus;
    for (const double value : result.eigenvalues) {
        minus.push_back(T(static_cast<real_t<T>>(-value)));
    }
    const std::vector<T> ones(minus.size(), T(1));
    axpby(ctx, minus, x, ones, residual.view());
    std::vector<real_t<T>> length(minus.size());
    norms(ctx, residual.view(), std::span<real_t<T>>(length));
    return {length.begin(), length.end()};
}

/// Checks that the result is converged and verified, that it has the k wanted eigenvalues of
/// `spectrum` (ascending), that the residuals are within the tolerance, and that the vectors are
/// orthonormal up to rounding. The bounds use the larger of `norm` and the largest magnitude of the
/// spectrum as ||A||.
template <class T>
void check_pairs(Context& ctx, Operator<T>& a, const EigenResult<T>& result,
                 const std::vector<double>& spectrum, int k, Which which, double norm = 0) {
    norm = std::max({norm, std::abs(spectrum.front()), std::abs(spectrum.back())});
    const double eps = static_cast<double>(epsilon_v<T>);
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
    const auto count = static_cast<std::size_t>(k);
    ASSERT_EQ(result.eigenvalues.size(), count);
    const std::size_t first = which == Which::smallest ? 0 : spectrum.size() - count;
    for (std::size_t j = 0; j < count; ++j) {
        EXPECT_NEAR(result.eigenvalues[j], spectrum[first + j],
                    result.tolerance * norm + 10 * eps * norm)
            << "eigenvalue " << j;
    }
    const std::vector<double> residuals = fresh_residuals(ctx, a, result);
    for (std::size_t j = 0; j < count; ++j) {
        EXPECT_LE(residuals[j], result.tolerance * norm * (1 + 1e-3) + 20 * eps * norm)
            << "residual " << j;
    }
    EXPECT_LE(orthonormality_defect(ctx, BlockView<const T>(result.vectors.view())),
              100 * eps * std::sqrt(static_cast<double>(k)));
}

}  // namespace quiver::test
