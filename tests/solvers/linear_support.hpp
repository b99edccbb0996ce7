// SPDX-License-Identifier: BSD-3-Clause
// Parts of the tests of linear solvers and preconditioners: dense systems, complete on every rank,
// their dense solutions, and operators that fail.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {

/// The oracle computes in complex double.
using Dense = Eigen::MatrixXcd;

template <class T>
Dense dense(const Global<T>& a) {
    Dense result(a.rows, a.cols);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (int j = 0; j < a.cols; ++j) {
            result(i, j) = static_cast<std::complex<double>>(a(i, j));
        }
    }
    return result;
}

/// Rounds to T; a real T drops the imaginary part.
template <class T>
Global<T> rounded(const Dense& a) {
    Global<T> result(a.rows(), static_cast<int>(a.cols()));
    for (std::int64_t i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < result.cols; ++j) {
            if constexpr (is_complex_v<T>) {
                result(i, j) = static_cast<T>(a(i, j));
            } else {
                result(i, j) = static_cast<T>(a(i, j).real());
            }
        }
    }
    return result;
}

/// A product of three random reflections.
template <class T>
Dense random_unitary(std::mt19937_64& generator, int n) {
    Dense u = Dense::Identity(n, n);
    for (int k = 0; k < 3; ++k) {
        const Dense v = dense(random_global<T>(generator, n, 1));
        u -= oracle::product(oracle::product(u, 2 / v.squaredNorm() * v), v.adjoint());
    }
    return u;
}

/// A Hermitian matrix with these eigenvalues, up to rounding of T.
template <class T>
Global<T> hermitian(std::mt19937_64& generator, const std::vector<double>& eigenvalues) {
    const auto n = static_cast<int>(eigenvalues.size());
    const Dense u = random_unitary<T>(generator, n);
    const Eigen::VectorXd values = Eigen::Map<const Eigen::VectorXd>(eigenvalues.data(), n);
    const Dense a =
        oracle::product(Dense(u * values.cast<std::complex<double>>().asDiagonal()), u.adjoint());
    return rounded<T>(Dense(0.5 * (a + a.adjoint())));
}

/// n equidistant numbers from `low` to `high`.
inline std::vector<double> spread(int n, double low, double high) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
        values.push_back(n == 1 ? low : low + (high - low) * i / (n - 1));
    }
    return values;
}

/// The rows of a dense matrix as a SparseMatrix; zeros are not stored.
template <class T>
CsrRows<T> rows_of(const Context& ctx, const Global<T>& a, Symmetry symmetry = Symmetry::general) {
    return rows_from_callback<T>(ctx.comm(), a.rows, symmetry,
                                 [&](std::int64_t row, RowEntries<T>& entries) {
                                     for (int j = 0; j < a.cols; ++j) {
                                         if (a(row, j) != T(0)) {
                                             entries.add(j, a(row, j));
                                         }
                                     }
                                 });
}
template <class T>
SparseMatrix<T> sparse(Context& ctx, const Global<T>& a) {
    return SparseMatrix<T>(ctx, rows_of(ctx, a));
}

/// Gathers the rows of all ranks on every rank.
template <class T>
Global<T> whole(const Context& ctx, const RowMap& map, const Global<T>& local) {
    Global<T> all(map.global_rows(), local.cols);
    for (std::int64_t i = 0; i < local.rows; ++i) {
        for (int j = 0; j < local.cols; ++j) {
            all(map.first_row() + i, j) = local(i, j);
        }
    }
    ctx.comm().sum(std::span<T>(all.values));
    return all;
}

/// A wrapper of an operator that counts its products and their columns, and makes a chosen product
/// fail.
template <class T>
class Watched final : public Operator<T> {
  public:
    explicit Watched(Operator<T>& inner) : inner_(inner) {}
    const RowMap& row_map() const override { return inner_.row_map(); }
    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override {
        widths.push_back(x.cols);
        products += x.cols;
        if (static_cast<int>(widths.size()) == throw_at) {
            throw std::runtime_error("the user's operator fails");
        }
        inner_.apply(ctx, x, y);
        if (static_cast<int>(widths.size()) == nan_at && y.rows > 0) {
            fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y.row_range(0, 1));
        }
    }

    std::vector<int> widths;
    int products = 0;
    int nan_at = -1;
    int throw_at = -1;

  private:
    Operator<T>& inner_;
};

/// Solves a dense system on blocks in padded memory and compares with Eigen.
template <class T>
class LinearSystem {
  public:
    LinearSystem(Context& ctx, Global<T> a, Global<T> b)
        : ctx_(ctx), a_(std::move(a)), b_(std::move(b)), matrix_(sparse(ctx, a_)) {
        operator_ = &matrix_;
    }

    SparseMatrix<T>& matrix() { return matrix_; }
    void use(Operator<T>& a) { operator_ = &a; }
    void use_shift(std::vector<T> shift) { shift_ = std::move(shift); }
    void use_preconditioner(Operator<T>* m) { preconditioner_ = m; }
    void use_guess(Global<T> x) { guess_ = std::make_unique<Global<T>>(std::move(x)); }
    LinearWorkspace<T>& workspace() { return workspace_; }
    const Global<T>& x() const { return *x_; }
    const Global<T>& b() const { return b_; }

    LinearResult solve(LinearMethod method, LinearOptions options = {}) {
        const RowMap& map = matrix_.row_map();
        TestBlock<T> b(ctx_, b_, map, layouts[1]);
        options.x_is_guess = guess_ != nullptr;
        TestBlock<T> x(ctx_, guess_ ? *guess_ : poisoned_global<T>(b_.rows, b_.cols), map,
                       layouts[2]);
        LinearResult result = linear_solve(
            ctx_, method, LinearProblem<T>{*operator_, b.view(), shift_, preconditioner_}, x.view(),
            options, workspace_);
        b.expect_unchanged();
        x_ = std::make_unique<Global<T>>(whole(ctx_, map, x.result()));
        EXPECT_EQ(result.columns.size(), static_cast<std::size_t>(b_.cols));
        return result;
    }

    /// A - shift_j I.
    Dense shifted(int j) const {
        const std::complex<double> s =
            shift_.empty() ? 0.0
                           : static_cast<std::complex<double>>(
                                 shift_[shift_.size() == 1 ? 0 : static_cast<std::size_t>(j)]);
        return dense(a_) - s * Dense::Identity(a_.rows, a_.rows);
    }
    /// The rounding errors of the residual of column j: those of the product with x, and of b.
    double residual_noise(int j) const {
        const Dense x = dense(*x_).col(j);
        return 4 * (std::sqrt(static_cast<double>(a_.rows)) + 2) * epsilon_v<T> *
               (shifted(j).norm() * x.norm() + dense(b_).col(j).norm());
    }
    double residual(int j) const {
        return (dense(b_).col(j) - oracle::product(shifted(j), dense(*x_).col(j))).norm();
    }

    /// Checks that every column is within its tolerance, that its reported residual is right, and
    /// that X agrees with Eigen's solution: ||x - x*|| <= ||r|| / sigma_min.
    void expect_solved(const LinearResult& result, const LinearOptions& options) {
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_EQ(result.message, "");
        for (int j = 0; j < b_.cols; ++j) {
            SCOPED_TRACE("column " + std::to_string(j));
            const auto at = static_cast<std::size_t>(j);
            const LinearColumn& column = result.columns[at];
            EXPECT_EQ(column.status, LinearStatus::converged) << column.message;
            const double tol = options.column_tol.empty() ? options.tol : options.column_tol[at];
            const double length = dense(b_).col(j).norm();
            EXPECT_NEAR(column.b_norm, length, residual_noise(j));
            EXPECT_LE(column.residual, tol * column.b_norm);
            EXPECT_NEAR(residual(j), column.residual, residual_noise(j));
            const Dense a = shifted(j);
            const double least = oracle::least_singular_value(a);
            if (least > 100 * epsilon_v<T> * a.norm()) {
                const Dense exact = oracle::solution(a, dense(b_).col(j));
                EXPECT_LE((dense(*x_).col(j) - exact).norm(),
                          (residual(j) + residual_noise(j)) / least);
            }
        }
    }

  private:
    Context& ctx_;
    Global<T> a_;
    Global<T> b_;
    SparseMatrix<T> matrix_;
    Operator<T>* operator_;
    std::vector<T> shift_;
    Operator<T>* preconditioner_ = nullptr;
    std::unique_ptr<Global<T>> guess_;
    std::unique_ptr<Global<T>> x_;
    LinearWorkspace<T> workspace_;
};

inline constexpr LinearMethod all_methods[] = {LinearMethod::cg, LinearMethod::minres,
                                               LinearMethod::gmres, LinearMethod::bicgstab};

/// A tolerance that the scalar can easily attain for condition numbers up to about 100.
template <class T>
double usual_tolerance() {
    return std::is_same_v<real_t<T>, float> ? 1e-4 : 1e-10;
}

}  // namespace quiver::test
