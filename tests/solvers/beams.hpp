// SPDX-License-Identifier: BSD-3-Clause
// Beams, whose eigenvalues are known and crowded at the lower end, and checks of results.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/dense_operator.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {

inline EigenOptions automatic(Which which, int k) {
    EigenOptions options;
    options.which = which;
    options.k = k;
    return options;
}

/// `size` times the square of the second-difference matrix: the eigenvalues are size times those of
/// beam_spectrum(), the condition is about n^4 / 6. Complex scalars get phases that do not change
/// the spectrum.
template <class T>
SparseMatrix<T> beam(Context& ctx, int n, double size = 1) {
    return matrix_from_rows<T>(ctx, n, [=](std::int64_t row, auto& entries) {
        const double weights[] = {1, -4, 6, -4, 1};
        for (int d = -2; d <= 2; ++d) {
            if (row + d < 0 || row + d >= n) {
                continue;
            }
            const bool corner = d == 0 && (row == 0 || row == n - 1);
            const double value = size * (weights[d + 2] - (corner ? 1 : 0));
            if constexpr (is_complex_v<T>) {
                entries.add(row + d, T(std::polar(value < 0 ? -value : value,
                                                  0.7 * d + (value < 0 ? std::numbers::pi : 0))));
            } else {
                entries.add(row + d, T(value));
            }
        }
    });
}

inline std::vector<double> beam_spectrum(int n) {
    std::vector<double> values;
    for (int i = 1; i <= n; ++i) {
        values.push_back(16 * std::pow(std::sin(0.5 * std::numbers::pi * i / (n + 1)), 4));
    }
    return values;
}

/// The k values at the wanted end of an ascending spectrum.
inline std::vector<double> at_end(const std::vector<double>& spectrum, Which which, int k) {
    const auto low = which == Which::smallest ? k : which == Which::both_ends ? k / 2 : 0;
    std::vector<double> values(spectrum.begin(), spectrum.begin() + low);
    values.insert(values.end(), spectrum.end() - (k - low), spectrum.end());
    return values;
}

/// Checks that the result is converged and verified, has the eigenvalues `exact`, small residuals
/// by fresh products, and orthonormal vectors.
template <class T>
void expect_result(Context& ctx, Operator<T>& a, const EigenResult<T>& result,
                   const std::vector<double>& exact, double norm) {
    EXPECT_TRUE(result.converged) << result.message;
    EXPECT_EQ(result.multiplicity, Multiplicity::verified);
    EXPECT_EQ(result.message, "");
    ASSERT_EQ(result.eigenvalues.size(), exact.size());
    const double rounding = 50 * static_cast<double>(epsilon_v<T>);
    for (std::size_t j = 0; j < exact.size(); ++j) {
        EXPECT_NEAR(result.eigenvalues[j], exact[j], (result.tolerance + rounding) * norm) << j;
    }
    for (const double residual : fresh_residuals(ctx, a, result)) {
        EXPECT_LE(residual, (result.tolerance + rounding) * norm);
    }
    EXPECT_LE(orthonormality_defect(ctx, BlockView<const T>(result.vectors.view())), 4 * rounding);
}

/// A matrix whose products cost as much as those of a dense matrix.
class DenseMatrix final : public DenseOperator<double> {
  public:
    explicit DenseMatrix(Operator<double>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const double> x, BlockView<double> y) override {
        a_.apply(ctx, x, y);
    }

  private:
    Operator<double>& a_;
};

}  // namespace quiver::test
