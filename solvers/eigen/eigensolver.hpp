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
    /// Iterations, in the unit of EigenOptions::max_iterations, after which another method may
    /// continue if this one has not converged; 0: never.
    std::int64_t hand_over_after = 0;
};

/// Resolves Method::automatic; any other method is returned unchanged. For both ends and the
/// largest magnitude, the result is dense or the method for the largest eigenvalues; each end then
/// chooses for itself. Throws UnsupportedError or
/// DeviceError if QUIVER_CUSOLVER or QUIVER_CUDSS names a file that cannot be used. Collective.
///
/// A dense solve is chosen by sizes alone where it takes less time than an iteration for a problem
/// that is not easy: up to 1,024 rows; up to 512 rows of an operator without stored entries, which
/// is gathered by products; up to 3,000 rows if A or B is a DenseOperator (and the other operator
/// dense or sparse), without an inverse or a preconditioner; up to 4,096 rows of stored matrices if
/// k, or the number of eigenvalues in a window, is at least an eighth of the rows. Without LAPACK
/// all limits of dense solves except 4,096 are halved. On a GPU with LAPACK and cuSOLVER the limits
/// of stored matrices are doubled for interior eigenvalues (3,000) and for large k (4,096).
///
/// For a window or a target, without an inverse, with stored entries and at most 50,000 rows (on
/// the host with MUMPS 200,000, on a GPU with cuDSS 100,000), the symbolic analysis of A - sigma B
/// predicts the work of shift_invert(). It is chosen if its factors fit the memory, if its work is
/// less than that of a possible dense solve, and if one of these holds: its work is at most some
/// 5 s on one core; the problem is a window with a B; the problem is a window without B whose
/// eigenvalues two factorisations have counted, and there are at most 3,000 rows, or the work is at
/// most two thirds of that predicted for window_filter(). Otherwise up to 3,000 rows get a dense
/// solve. This gathers the matrix on rank 0.
///
/// A pencil of 256 to 1,024 rows whose a_ii / b_ii differ by a factor of 1e6 or more gets
/// shift_invert() if at most an eighth of the eigenvalues are wanted, not at the upper end, and the
/// predicted work is less than that of a dense solve with a shift.
///
/// On the host, an end of the spectrum that is crowded (a short Lanczos run finds this), or any end
/// with a B, gets shift_invert() if its predicted work is small: up to 20,000 rows, with a B
/// 100,000. With a B it otherwise gets a dense solve if that takes some 5 s at most. Up to 3,000
/// rows, shift_invert(), if it is the first method, hands over to a dense solve after 30
/// factorisations or, if that is more, once they have taken as long as that solve, and with a
/// window if more than an eighth of all eigenvalues may lie in it. Interior problems with up to
/// 4,096 rows, for which shift_invert() has not converged, are solved densely, too.
///
/// Other problems begin with the method that is fastest for easy problems. With stored entries and
/// at most 50,000 rows (on the host with MUMPS, on a GPU with cuDSS: as many as rank 0 can gather)
/// this method hands over the pairs that it has found after max(500, 3 k) iterations (lobpcg()
/// without a preconditioner: max(150, 3 k)), a filter after 20 sweeps; on a GPU with more than
/// 50,000 rows after max(5,000, 3 k) iterations or 60 sweeps. If a direct solve is predicted to
/// take more than 16 times as long as the method has taken, the method first continues for as long
/// as the direct solve, up to half of max_iterations (without a possible direct solve: up to
/// max_iterations). Then shift_invert() follows, or up to 3,000 rows a dense solve if that is
/// cheaper and A is not known to be stiff, or if shift_invert() does not converge. A converged
/// result is also handed over, that of a dense solve, too, if more than half of its eigenvalues
/// have no certain digit (if A is stiff: fewer than four) and the next solve takes some 5 s at
/// most. shift_invert() also follows a method that refuses B as not positive definite, and a dense
/// solve with B whose residuals stay above the tolerance, because B may be singular to rounding.
/// Problems with a checkpoint or protection never get a direct method. Problems with constraints
/// never get shift_invert(); up to 3,000 rows a dense solve follows n^2 / 1000 iterations.
template <class T>
MethodChoice choose_method(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options);

/// Solves A x = lambda B x by options.method: the k eigenpairs at an end of the spectrum, at both
/// ends, of largest or smallest |lambda|, or nearest a target, or all in a window. Except by
/// methods dense and shift_invert, eigenvalues at both ends and of largest |lambda| take a solve
/// for each end, after which the vectors are made orthonormal. The matrices may have any norm: if
/// squares of the norm overflow or underflow, methods that iterate solve a problem scaled by powers
/// of two, and the scaling is undone exactly. Such norms are errors with a checkpoint (InputError),
/// with protection, and for an operator without stored entries (NumericalError). The result names
/// the method that answered and the reason; all methods verify multiplicities in the same sense.
/// EigenResult::errors is computed at the end. With B, residuals are also judged in balanced units
/// (solve_with_errors()), so that up to three solves may run. Throws the errors of check_problem()
/// (for instance if options differ between the ranks), check_options() and the chosen method, and
/// InputError if the method cannot solve the problem. Collective.
template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options);

}  // namespace quiver
