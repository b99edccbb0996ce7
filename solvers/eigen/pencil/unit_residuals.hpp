// SPDX-License-Identifier: BSD-3-Clause
// Residuals of A x = lambda B x in units of the unknowns in which the rows of A and B have similar
// norms. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/pencil/balanced_problem.hpp"
#include "solvers/eigen/pencil/unit_balance.hpp"

namespace quiver {

/// In balanced units rounding may allow no smaller residuals.
constexpr double attainable_in_units = 1e-10;

/// Residuals in the units y = D^-1 x of UnitBalance. A residual in other units may be small
/// relative to ||A|| although no digit of the eigenvalue is right, because ||A|| belongs to a few
/// rows with large units. All functions are collective.
template <class T>
class UnitResiduals {
  public:
    struct Residual {
        /// ||D (A x - lambda B x)|| / ||y|| / (||D A D|| + |lambda| ||D B D||).
        double relative = 0;
        /// ||D A D|| + |lambda| ||D B D||.
        double scale = 0;
        /// ||y||_2.
        double length = 0;
    };

    /// Throws the errors of UnitBalance.
    UnitResiduals(Context& ctx, const EigenProblem<T>& problem, Method method, std::uint64_t seed);
    UnitResiduals(const UnitResiduals&) = delete;
    UnitResiduals& operator=(const UnitResiduals&) = delete;

    /// False if other units would change nothing: if the rows of B differ by little and, for
    /// shift_invert, A is not stiff. Only if it is true may the functions below be called.
    bool is_needed() const { return units_.is_needed(); }
    /// Chooses D for eigenvalues of this size; if it is 0, for the smallest ones. A no-op if the
    /// present D is for eigenvalues whose size differs by a factor of at most 256. Cost: that of
    /// UnitBalance::balance(), a product of A and of B with 8 columns for the norms, and a product
    /// of B with the constraints.
    void choose_for(double size);
    /// The size for which the present D was chosen.
    double size() const { return size_.value_or(0); }
    /// The residuals of the pairs (values[j], x_j), without components along B times the
    /// constraints, each in units for an eigenvalue of its size. Cost: a product with A and B for
    /// each pair, and the same again for each factor of 2^16 between the sizes of the values.
    std::vector<Residual> residuals(BlockView<const T> x, const std::vector<double>& values);
    /// The exponents of D of this rank's rows.
    const std::vector<int>& exponents() const { return units_.exponents(); }
    /// Products with A so far, counted by column.
    std::int64_t applications() const { return applications_ + units_.applications(); }
    /// UnitBalance::largest_row() of A and B.
    double norm_a() const { return norm_a_; }
    double norm_b() const { return norm_b_; }

    /// The distance of each value from an exact eigenvalue is at most ||r|| in the norm of B^-1,
    /// for r = A x - lambda B x and x^H B x = 1. These are bounds of that norm: ||D r|| /
    /// sqrt(lambda_min(D B D)) for a D that equilibrates B alone, with an estimate of lambda_min.
    /// Infinity if that is not positive. Cost: a product with A and B for each pair, and a
    /// short Lanczos run with B.
    std::vector<double> distances(BlockView<const T> x, const std::vector<double>& values);

  private:
    /// Makes everything that belongs to the present units of units_.
    void take_units();
    std::vector<Residual> in_present_units(BlockView<const T> x, const std::vector<double>& values);

    Context& ctx_;
    const EigenProblem<T>& problem_;
    Method method_;
    UnitBalance<T> units_;
    std::optional<BalancedProblem<T>> balanced_;
    /// An orthonormal basis of D B times the constraints.
    BlockVector<T> normals_;
    std::optional<double> size_;
    double norm_a_ = 0;
    double norm_b_ = 0;
    std::int64_t applications_ = 0;
};

}  // namespace quiver
