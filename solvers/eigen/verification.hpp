// SPDX-License-Identifier: BSD-3-Clause
// What "verified" means, for every eigensolver: the rule, and a search that any of them can end
// with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// What the extreme Ritz pair of a search in the complement of k locked pairs says. The search
/// begins with at least 2 fresh random columns, orthogonal to the locked ones.
enum class ComplementVerdict : std::uint8_t {
    open,     ///< nothing yet: go on
    outside,  ///< no copy of a wanted eigenvalue is missing
    tied,     ///< as outside, and the next eigenvalue equals the last wanted one
    inside,   ///< an eigenvalue inside the wanted set was found
};

/// Key of the k-th best locked pair of a search space.
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

/// `last`, `theta`: the keys (the eigenvalue, negated for the largest ones) of the k-th locked pair
/// and of the extreme Ritz pair of the complement, `rho` its residual, `threshold` the tolerance
/// times ||A||, `settled` a residual that is noise of the products, whatever the tolerance (a loose
/// one would settle for a mixture of eigenvectors). Outside: theta - last > threshold and
/// >= 100 sqrt(dimensions) rho; docs/solvers.md has the probability of an error.
ComplementVerdict judge_complement(double last, double theta, double rho, double threshold,
                                   double settled, std::int64_t dimensions);

/// Makes candidates for the k wanted pairs a verified result. Rayleigh-Ritz on all columns with
/// fresh products; what is missing or above the tolerance is found, starting from these columns,
/// and the complement is searched as block_lanczos() does. The columns may be dependent and come in
/// any order. `norm`: a lower bound of ||A||, close to it, to which the tolerance refers.
/// Iterations, products and seconds of the result are those made here. Standard problems only.
/// Collective. Cost: that of block_lanczos's verification, a search for the (k + 1)-st pair.
template <class T>
EigenResult<T> verify_pairs(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options, BlockView<const T> candidates,
                            double norm);

}  // namespace quiver
