// SPDX-License-Identifier: BSD-3-Clause
// The common entry point of all eigensolvers.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// An algorithm and a short reason for its choice.
struct MethodChoice {
    Method method = Method::lanczos;
    std::string reason;
    /// Iterations after which a direct method may continue if this one has not converged; 0: never.
    std::int64_t hand_over_after = 0;
};

/// Resolves Method::automatic; any other method is returned unchanged. Collective.
///
/// A dense solve is chosen by shape alone, where it takes less time than an iteration that is not
/// easy: up to 1,024 rows; up to 4,096 rows for k of at least an eighth of the rows, or a window
/// with as many. The limits but the last are half as large without LAPACK. An operator without
/// stored entries is gathered by products and gets a dense solve up to 512 rows.
///
/// For a window, or a target without an inverse, with stored entries of at most 50,000 rows (on the
/// host with MUMPS 200,000), the symbolic analysis of A - sigma B predicts the work of
/// shift_invert(), which is chosen if it is cheap (some 5 s on one core) and its factors fit the
/// memory; a dense solve up to 3,000 rows if that is cheaper. This gathers the matrix on rank 0.
///
/// Other problems begin with the method that is fastest if they are easy. With stored entries of
/// at most 50,000 rows (on the host with MUMPS: of any number that rank 0 can gather) it hands over
/// after 500 iterations (20 sweeps of a filter), with the pairs that it has found: it continues
/// while a factorisation would take more than four times the work done, up to half of
/// max_iterations, then shift_invert() follows, and a dense solve up to 3,000 rows if that is
/// cheaper or finds what shift_invert() does not. Problems with a checkpoint or protection never
/// get a direct method; those with constraints only a dense solve, after n^2 / 1000 iterations.
template <class T>
MethodChoice choose_method(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options);

/// Solves A x = lambda B x by options.method: the k eigenpairs at an end of the spectrum, at both
/// ends, of largest or smallest |lambda|, or nearest a target, or all in a window. Except by a
/// dense solve, eigenvalues at both ends and of largest |lambda| take two solves (Which). The
/// matrices may have any norm: if squares of the norm overflow or underflow, methods that iterate
/// solve a problem scaled by powers of two, which is undone exactly, unless there is a checkpoint
/// (InputError), protection, or an operator without stored entries (NumericalError). The
/// result names the method that answered and the reason; all methods verify multiplicities in the
/// same sense. Throws the errors of check_problem() (for instance if options differ between the
/// ranks), check_options() and the chosen method, and InputError if the method cannot solve the
/// problem. Collective.
template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options);

}  // namespace quiver
