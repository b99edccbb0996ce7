// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/audited_solve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/abft/checksum.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"

namespace quiver {
namespace {

/// ||A x_j - lambda_j B x_j|| / ||x_j|| for the pairs of a result. Collective.
template <class T>
std::vector<double> fresh_residuals(Context& ctx, const EigenProblem<T>& problem,
                                    const EigenResult<T>& result) {
    using Real = real_t<T>;
    const BlockView<const T> x = result.vectors.view();
    BlockVector<T> r(ctx, problem.a.row_map(), x.cols);
    // The audit has just compared the matrix; a fault in this product can only withdraw a result.
    Operator<T>& a = problem.protection != nullptr
                         ? static_cast<Operator<T>&>(problem.protection->matrix())
                         : problem.a;
    a.apply(ctx, x, r.view());
    // Scaled, so that squares neither overflow nor underflow for any norm of A.
    constexpr int most = std::numeric_limits<Real>::max_exponent - 8;
    const int exponent = std::clamp(even_exponent(result.norm_estimate), -most, most);
    const double factor = std::ldexp(1.0, -exponent);
    std::vector<T> factors;
    factors.reserve(result.eigenvalues.size());
    for (int j = 0; j < x.cols; ++j) {
        const double value = result.eigenvalues[static_cast<std::size_t>(j)];
        factors.push_back(T(static_cast<Real>(-factor * value)));
    }
    const std::vector<T> ones(factors.size(), T(static_cast<Real>(factor)));
    if (problem.b != nullptr) {
        BlockVector<T> bx(ctx, problem.a.row_map(), x.cols);
        problem.b->apply(ctx, x, bx.view());
        axpby(ctx, factors, bx.view(), ones, r.view());
    } else {
        axpby(ctx, factors, x, ones, r.view());
    }
    std::vector<Real> lengths(factors.size());
    std::vector<Real> residuals(factors.size());
    norms(ctx, x, std::span<Real>(lengths));
    norms(ctx, r.view(), std::span<Real>(residuals));
    std::vector<double> quotients;
    for (std::size_t j = 0; j < factors.size(); ++j) {
        const double quotient = static_cast<double>(residuals[j]) / static_cast<double>(lengths[j]);
        quotients.push_back(std::ldexp(quotient, exponent));
    }
    return quotients;
}

template <class T>
bool is_protected(const EigenProblem<T>& problem) {
    return problem.protection != nullptr && problem.protection->mode() != AbftMode::off;
}

}  // namespace

template <class T>
Operator<T>& checked_operator(const EigenProblem<T>& problem) {
    return problem.protection != nullptr ? static_cast<Operator<T>&>(*problem.protection)
                                         : problem.a;
}

template <class T>
void withdraw(EigenResult<T>& result, const std::string& reason) {
    result.converged = false;
    result.multiplicity = Multiplicity::unverified;
    result.message += (result.message.empty() ? "" : "; ") + reason;
}

template <class T>
void judge_faults(Context& ctx, const EigenProblem<T>& problem, const SolveFaults& faults,
                  EigenResult<T>& result) {
    if (faults.left > 0) {
        withdraw(result, faults.reason());
        return;
    }
    const bool claims = result.converged || result.multiplicity == Multiplicity::verified;
    const bool repaired = faults.repaired > 0;
    const bool has_constraints = problem.constraints.cols > 0;
    if (!claims || result.vectors.view().cols == 0 || (!repaired && has_constraints) ||
        (!repaired && !is_protected(problem))) {
        return;
    }
    bool sound = !has_constraints;  // else residuals refer to a projected matrix
    if (sound) {
        const BlockView<const T> x = result.vectors.view();
        const Checksum<T> before(ctx, x);
        const std::vector<double> fresh = fresh_residuals(ctx, problem, result);
        const double bound = (result.tolerance + attainable_tolerance<T>(0)) * result.norm_estimate;
        sound = std::all_of(fresh.begin(), fresh.end(),
                            [&](double residual) { return residual <= bound; });
        sound = unchanged_since(ctx, before, x) && sound;
        if (repaired) {
            result.residuals = fresh;
        }
    }
    if (!sound) {
        withdraw(result, repaired ? "the matrix had changed in memory and was repaired only after "
                                    "the last step, so the result is not verified: solve again"
                                  : "a residual computed at the end is above the tolerance, so a "
                                    "vector has changed in memory: solve again");
    }
}

#define QUIVER_INSTANTIATE(T)                                                        \
    template Operator<T>& checked_operator(const EigenProblem<T>&);                  \
    template void withdraw(EigenResult<T>&, const std::string&);                     \
    template void judge_faults(Context&, const EigenProblem<T>&, const SolveFaults&, \
                               EigenResult<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
