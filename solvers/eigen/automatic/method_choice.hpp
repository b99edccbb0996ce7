// SPDX-License-Identifier: BSD-3-Clause
// The costs by which eigensolve() chooses a method, and the choices that depend on the kind of
// problem alone. Private to solvers/eigen. choose_method() is in eigensolver.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "solvers/eigen/automatic/direct_limits.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"

namespace quiver {

/// Work is counted in multiply-adds of SparseLdlt, some 0.8 ns each on one core. A solve with up to
/// this many is cheap: some 5 s.
constexpr double cheap_products = 5e9;
/// An iteration continues if a direct solve takes more than this many times the work that the
/// iteration has done.
constexpr double patient_work = 16;
/// The small dense problems of lobpcg for each product, some 0.16 ms, in multiply-adds of
/// SparseLdlt.
constexpr double lobpcg_overhead = 2e5;

/// The time of a product of a method that iterates, with one column, on one core or one GPU, in
/// multiply-adds of SparseLdlt.
template <class T>
double product_work(const EigenProblem<T>& problem, bool on_gpu);

/// The number of factorisations after which a dense solve replaces shift_invert(): at least 30, and
/// as many as take as long as the dense solve. 0 (no limit) where no dense solve is possible.
std::int64_t patient_shifts(const DirectLimits& limits, const FactorForecast& forecast);

/// The number of wanted pairs; for a window `inside`, but at least `few`.
double likely_pairs(const EigenOptions& options, double inside, double few = 20);

/// "1000 rows are few enough for a dense solve"
std::string words_of_few_rows(std::int64_t rows);

/// The method that iterates for this problem, by the wanted eigenvalues, B, the preconditioner and
/// the number of dimensions. No communication.
template <class T>
MethodChoice choose_iteration(const EigenProblem<T>& problem, const EigenOptions& options);

}  // namespace quiver
