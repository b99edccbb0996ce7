// SPDX-License-Identifier: BSD-3-Clause
// The options of every eigensolver, their check, and the range of norms that the solvers support.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "blockvec/comm.hpp"
#include "blockvec/event.hpp"
#include "blockvec/scalar.hpp"

namespace quiver {

/// The wanted eigenvalues: an end of the spectrum, or those nearest EigenOptions::target (methods
/// jacobi_davidson, dense, shift_invert). largest_magnitude: the largest |value|;
/// smallest_magnitude: the target 0; both_ends: k / 2 of the smallest and k - k / 2 of the largest.
/// dense_eigen() and shift_invert() take these three themselves; for the other methods call
/// eigensolve(), which takes largest_magnitude and both_ends by a solve for each end.
enum class Which : std::uint8_t {
    smallest,
    largest,
    target,
    largest_magnitude,
    smallest_magnitude,
    both_ends,
};

/// True for largest_magnitude and both_ends.
constexpr bool wants_both_ends(Which which) {
    return which == Which::largest_magnitude || which == Which::both_ends;
}

/// "smallest", "largest", "target", "largest-magnitude", ...
const char* to_string(Which which);

/// The algorithms; automatic lets eigensolve() choose.
enum class Method : std::uint8_t {
    automatic,
    lanczos,
    chebyshev,
    lobpcg,
    filter,
    jacobi_davidson,
    dense,
    shift_invert,
};

/// "auto", "lanczos", "chebyshev", "lobpcg", "filter", "jd", "dense", "shift-invert".
const char* to_string(Method method);

/// True for dense and shift_invert, which take every Which, scale the matrix themselves and judge
/// residuals in balanced units.
constexpr bool is_direct(Method method) {
    return method == Method::dense || method == Method::shift_invert;
}

/// The solver of the correction equations of jacobi_davidson(). cg: only at an end of the spectrum.
/// gmres: for a preconditioner that is not Hermitian positive definite. jdqmr: minres whose columns
/// also stop when the estimated residual of their eigenpair no longer falls.
enum class InnerSolver : std::uint8_t { minres, cg, gmres, jdqmr };

/// "minres", "cg", "gmres", "jdqmr".
const char* to_string(InnerSolver inner);

/// Upper limits: columns of a block; eigenpairs or columns of a basis.
constexpr int max_block_width = 64;
constexpr int max_pairs = 1 << 20;

/// All eigenvalues in [low, high] are wanted.
struct Window {
    double low = 0;
    double high = 0;
};

struct EigenOptions {
    /// Number of wanted eigenpairs; each copy of a multiple eigenvalue counts.
    int k = 10;
    Which which = Which::smallest;
    double target = 0;
    /// Columns that a step multiplies at once, 1 to 64; 0 lets the solver choose (block Lanczos:
    /// min(4, k)).
    int block = 0;
    /// A pair has converged when ||A x - lambda x|| <= tol ||A|| with ||x|| = 1 (with B: ||A x -
    /// lambda B x|| <= tol (||A|| + |lambda| ||B||)). A tolerance below what the scalar type can
    /// attain is raised to that value.
    double tol = 1e-10;
    /// Limit of EigenResult::iterations, which counts block products, but in lobpcg() iterations,
    /// in window_filter() filters and in shift_invert() factorisations. 0: the solve ends if it
    /// stagnates. That is, neither has another pair converged nor the residual of the next ones
    /// halved in the last 5000 iterations (lobpcg: 2000, filter: 50) and in the last third of all.
    /// shift_invert() also gives up after 300 factorisations that have found no pair.
    std::int64_t max_iterations = 0;
    /// Limit of the seconds of a solve; 0: none. Then the solve ends after its current step (a
    /// factorisation or a dense solve is one step), with EigenResult::interrupted. The clocks of
    /// all ranks are read: one all-reduce of one number for each iteration.
    double max_seconds = 0;
    /// Seed of the start block and of every random column. Equal seeds give equal results.
    std::uint64_t seed = 1;
    /// Columns of the search basis, at least k + 3 max(block, 2) or all rows; 0 lets the solver
    /// choose. Block Lanczos: columns before a restart, by default max(2 k + 4 block, k + 16 block,
    /// 24), or all of up to 512 dimensions; a larger basis needs fewer steps and more memory.
    /// Chebyshev: columns of the subspace.
    int max_basis = 0;
    /// If set, all eigenvalues in this interval are wanted; k, `which` and `target` are ignored.
    std::optional<Window> window = {};
    /// shift_invert() with a window gives up if more than this many eigenvalues may lie in it,
    /// those included that rounding errors of ||A|| may move there. 0: no limit, but with
    /// Method::automatic, where a dense solve is possible, an eighth of the rows or, if that is
    /// more, what a dense solve has found. Other methods ignore it.
    std::int64_t max_in_window = 0;
    /// The algorithm that eigensolve() runs.
    Method method = Method::automatic;
    /// Used by jacobi_davidson() without EigenProblem::inverse; other methods ignore it.
    InnerSolver inner = InnerSolver::minres;
    /// Called after each iteration; if it returns false, the solver ends regularly and returns the
    /// pairs found so far. Must be set on all ranks or on none; the return values may differ
    /// between ranks: one all-reduce of one number makes the ranks agree.
    std::function<bool(const IterationEvent&)> keep_going = {};
};

/// Columns of a step of block Lanczos, Jacobi-Davidson and shift-invert: the requested block, or
/// min(4, k).
int step_width(const EigenOptions& options);

/// The smallest allowed number of columns of a search basis: k + 3 max(block, 2), or all rows if
/// there are fewer, with the block of step_width().
std::int64_t least_basis(const EigenOptions& options, std::int64_t rows);

/// The checks that all solvers share; `rows` is the dimension of the searched space. Throws
/// InputError, identically on all ranks, for k < 1 or > rows or > max_pairs, block < 0 or > 64 or >
/// rows, tol not between 0 and 1, max_basis below least_basis() or above max_pairs, max_iterations
/// < 0, max_in_window < 0, max_seconds < 0 or not finite, a target that is not finite, inner == cg
/// with a target (the correction equations are indefinite), and a `which` other than smallest,
/// largest and target. A window must be finite and in order; k, `which` and the target are then
/// ignored.
void check_options(const EigenOptions& options, std::int64_t rows);

/// max_seconds for a solve that follows after `spent` seconds of the same call, by the clock of the
/// slowest rank: at least a millisecond, so that its first step ends it; 0 if there is no limit.
/// Collective.
double remaining_seconds(const Comm& comm, const EigenOptions& options, double spent);

/// Residuals below this many units of round-off of ||A|| are rounding noise of the products.
constexpr double attainable_units = 32;

/// The tolerance in force: the requested one, or the attainable one if that is larger.
template <class T>
double attainable_tolerance(double asked) {
    return std::max(asked, attainable_units * static_cast<double>(epsilon_v<T>));
}

/// The range of norms ||A|| for which the squares, and their rounding errors, are normal numbers of
/// T.
template <class T>
struct NormRange {
    double least = std::sqrt(static_cast<double>(std::numeric_limits<real_t<T>>::min())) /
                   static_cast<double>(epsilon_v<T>);
    double most = std::sqrt(static_cast<double>(std::numeric_limits<real_t<T>>::max())) / 4;
};

}  // namespace quiver
