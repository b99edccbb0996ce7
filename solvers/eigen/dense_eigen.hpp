// SPDX-License-Identifier: BSD-3-Clause
// Dense solve: all eigenvalues of a small Hermitian problem, and the wanted eigenvectors.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The pairs of A x = lambda B x that options.which, options.target or options.window select, for
/// every Which and k up to the number of dimensions.
///
/// The matrix is gathered on rank 0: from its entries if `a` is a SparseMatrix on one rank, else by
/// products with the columns of the identity. Rank 0 scales A and B to entries near 1, reduces the
/// pencil by the Cholesky factor of B, and computes all eigenvalues in double precision:
/// tridiagonal form, divide and conquer, the eigenvectors of the wanted pairs. The other ranks
/// receive these numbers, so that all ranks have the same bits.
///
/// Multiplicity::verified rests on the whole spectrum instead of a search: the computed eigenvalues
/// are those of a matrix that differs from A by a modest multiple of the round-off of ||A||, and
/// each copy of an eigenvalue is counted. Residuals come from fresh products as in all methods. If
/// the rows of B differ by more than a factor of 256, they must also be small in the units of
/// UnitResiduals; otherwise eigenvalues are computed again near shifts, in these units. To make
/// vectors of several solves B-orthonormal enlarges the residuals: then up to 1e-10 is accepted in
/// these units, and EigenResult::tolerance may be raised to 32 n 2^-52.
/// B may be singular to rounding: its null vectors then have infinite eigenvalues, which are left
/// out (DensePencil); a NoticeEvent tells their number. ||A|| may have any size; NormRange does not
/// apply. `start`, `preconditioner`, `inverse`, options.block and options.max_basis are ignored;
/// more than 40,000 rows are an InputError, and so is a checkpoint, because there is no state to
/// save. The callback can end the solve only before the arithmetic begins. Throws the errors of
/// check_problem() and check_options(), IndefiniteError for a B with a negative eigenvalue beyond
/// rounding, for wanted eigenvalues that are infinite, for a k above the number of finite
/// eigenvalues, for a null vector v of B with v^H A v = 0, and for a common null vector of A and B;
/// NumericalError if a product holds NaN or infinity; on a GPU, from 2048 rows on, the errors of
/// cuSOLVER. Collective.
///
/// Cost: about 4 n^3 flops on rank 0 (14 n^3 for complex scalars), and 2 n^2 k for the vectors, by
/// LAPACK with the Context's threads; n products for each matrix that is not gathered from its
/// entries. Memory of rank 0: 3 n^2 + 2 n k numbers. LAPACK is loaded at run time (OpenBLAS, else
/// liblapack; the variable QUIVER_LAPACK names another file, or `none`); without it Eigen computes,
/// in about four times the time for 1000 rows. On a GPU with LAPACK and cuSOLVER, cuSOLVER computes
/// the eigenpairs of 2048 and more rows (QUIVER_CUSOLVER names its file, or `none`). Source:
/// Cuppen, Numer. Math. 36 (1981) 177; LAPACK xSYTRD, xSTEDC, xORMTR, xSYGST.
template <class T>
EigenResult<T> dense_eigen(Context& ctx, const EigenProblem<T>& problem,
                           const EigenOptions& options);

/// The version of the cuSOLVER that QUIVER_CUSOLVER names or, without this variable, the loader
/// finds; an empty string if there is none. Loads the library.
std::string cusolver_version();

}  // namespace quiver
