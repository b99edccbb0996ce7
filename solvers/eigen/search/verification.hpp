// SPDX-License-Identifier: BSD-3-Clause
// The meaning of "verified" for every eigensolver: the rule, and a search with which any solver can
// end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The verdict on the extreme Ritz pair of a search in the complement of k locked pairs. The search
/// must begin with at least 2 fresh random columns, orthogonal to the locked pairs.
enum class ComplementVerdict : std::uint8_t {
    open,     ///< undecided: continue the search
    outside,  ///< no copy of a wanted eigenvalue is missing
    tied,     ///< as outside, but the next eigenvalue equals the last wanted one
    inside,   ///< an eigenvalue inside the wanted set was found
};

/// Key of the k-th best locked pair of a basis.
template <class Basis>
double last_wanted_key(const Basis& basis, int k) {
    std::vector<double> keys;
    for (const double value : basis.locked_values()) {
        keys.push_back(basis.key(value));
    }
    const auto at = keys.begin() + (k - 1);
    std::nth_element(keys.begin(), at, keys.end());
    return *at;
}

/// `last`, `theta`: the keys of the k-th locked pair and of the complement's extreme Ritz pair
/// (key: the eigenvalue, negated if the largest are wanted). `rho`: the residual of that Ritz pair.
/// `threshold`: tol ||A||. `settled`: a residual at the level of rounding noise, independent of the
/// tolerance, because with a loose tolerance a mixture of eigenvectors could pass. The verdict is
/// open until rho <= settled, or until theta - last > threshold and theta - last >= 100
/// sqrt(dimensions) rho; docs/solvers.md bounds the probability of an error. Then theta is inside
/// or outside if it differs from last by more than threshold + rho, else tied. Numbers that are not
/// finite leave the verdict open.
ComplementVerdict judge_complement(double last, double theta, double rho, double threshold,
                                   double settled, std::int64_t dimensions);

/// The fewest start columns that must remain for a missing copy beside the columns that the found
/// copies take.
constexpr int least_free_columns = 4;

/// A lower bound, at most 1, of how much a missing eigenvector inside the wanted set has grown
/// beside the next Ritz vector, in the Krylov space of `columns` random start columns that has
/// found the wanted pairs. `keys` and `residuals`: those pairs; `next`: the key of the next Ritz
/// pair, which must lie behind all of them. Combinations of the start columns avoid the nearest
/// columns - least_free_columns pairs; polynomials have zeros at all others. 0 if the space cannot
/// have seen the missing vector. docs/notes/solvers.md has the derivation.
double missing_growth(const std::vector<double>& keys, const std::vector<double>& residuals,
                      double next, int columns);

/// Turns candidates for the k wanted pairs into a verified result. Three stages: Rayleigh-Ritz on
/// all candidates with fresh products; a search for the pairs that are missing or above the
/// tolerance, starting from the candidates; a search of the complement as in block_lanczos(). The
/// candidates may be dependent and in any order. `norm`: a close lower bound of ||A||; the
/// tolerance is relative to it. Iterations, products and seconds of the result count this call
/// only. Standard problems only. Collective. Cost: that of block_lanczos's verification, a search
/// for the (k + 1)-st pair.
template <class T>
EigenResult<T> verify_pairs(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options, BlockView<const T> candidates,
                            double norm);

}  // namespace quiver
