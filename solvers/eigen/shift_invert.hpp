// SPDX-License-Identifier: BSD-3-Clause
// Shift and invert: eigenpairs by factorisations of A - sigma B, counted by their inertia.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// The pairs of A x = lambda B x that options.which, options.target or options.window select, for
/// every Which. A and B are SparseMatrix objects; their entries are gathered on rank 0, which
/// solves in double precision and sends the vectors. The factorisation is that of the first library
/// that is available:
/// - from 20,000 rows on cuDSS on the GPU of rank 0, if the Context has one and version 1 of the
///   library is found in the loader's path or in the environment variable QUIVER_CUDSS (`none`: not
///   used);
/// - MUMPS, if the build has it, MPI is initialised and the environment variable QUIVER_MUMPS is
///   not `none`; from 20,000 rows on with all ranks;
/// - SparseLdlt.
///
/// Thick-restart block Lanczos on (A - sigma B)^-1 in the inner product of B finds the eigenvalues
/// nearest sigma. The shift moves to where wanted eigenvalues are missing: below the spectrum's
/// end, to the target, through a window slice by slice. Every factorisation L D L^H counts, by
/// Sylvester's law of inertia, the eigenvalues below its shift; the search ends when exactly as
/// many are found as lie between two shifts around the wanted set. The pairs found are projected
/// out of further searches, so that no copy of a multiple eigenvalue is lost or counted twice.
///
/// Multiplicity::verified rests on these counts. They are exact if no eigenvalue lies within the
/// rounding error of the factorisation from the outer shifts (SparseLdlt::error(), or for MUMPS and
/// cuDSS a bound from the backward errors of 8 random solves; with B times ||x||^2 of the pairs
/// found); shifts that are closer to a found eigenvalue are moved. cluster_cut: the k-th eigenvalue
/// and the next one differ by less than this rounding error.
///
/// MUMPS pivots, cuDSS pivots inside supernodes, SparseLdlt does not. If a pivot is zero or so
/// small that it costs digits, the shift moves by 1e4 to 1e8 units of rounding of ||A||
/// (FallbackEvent). If the factors still lack digits, their solves are refined iteratively. Without
/// an acceptable factorisation the solve ends unconverged, with a message.
///
/// options.block: columns of a step, by default min(4, k); max_basis: columns of a basis, by
/// default twice the wanted pairs of one shift, or 20 or five blocks more than the pairs if that is
/// larger; max_iterations limits the factorisations. The matrix may have any norm: it is scaled by
/// a power of two. An end of a window far beyond the spectrum is replaced by a nearer shift with
/// the same count. `start`, `preconditioner` and `inverse` are ignored. Throws InputError for
/// constraints, a checkpoint, a protected matrix, an operator without stored entries, more than
/// most_ldlt_rows rows if neither MUMPS nor cuDSS is available; MemoryError, with the megabytes,
/// before a factorisation by one of these that would not fit the memory; on a GPU, from 20,000 rows
/// on, UnsupportedError or DeviceError if QUIVER_CUDSS names a file that cannot be used; the errors
/// of check_problem() and check_options(); IndefiniteError if B has a negative eigenvalue beyond
/// rounding (32 eps of the largest row sum). Collective.
///
/// If the rows of B differ by more than a factor of 256, or those of A by more than 1 / sqrt(eps),
/// the search solves D A D y = lambda D B D y with powers of two in the diagonal D (UnitBalance), x
/// = D y, which changes neither eigenvalues nor counts. D depends on the size of the wanted
/// eigenvalues: if those found have another size, up to three more searches with another D follow.
/// A stiff A without B gets B = I (IdentityMass). If only the rows of A differ and A is nearly
/// singular in balanced units, the search begins in the units of the problem. Otherwise it begins
/// in balanced units, with a limit of 24 factorisations. If a search fails, a search in the units
/// not yet tried follows. Pairs meet the tolerance for x, and for y the larger of the tolerance and
/// 1e-10: rounding errors of entries of very different size may allow no smaller residuals.
///
/// B may be singular, or so ill-conditioned that its Cholesky factorisation fails. Eigenvalues that
/// are then infinite, or larger than 1e16 ||A|| / ||B||, are not found: a search for more
/// eigenvalues than are finite, or for an end that is infinite, ends unconverged, with a message.
///
/// Cost, measured with five matrices of 1,000 to 6,400 rows: 2 to 8 factorisations for 12 to 80
/// pairs at an end, and 21 for 8 interior pairs or a window; 9 to 20 products for each pair, nearly
/// all of them solves with the factors; more for graded spectra. Memory of rank 0: the factors (of
/// MUMPS: its share) and 3 k columns. Sources: Ericsson and Ruhe, Math. Comp. 35 (1980) 1251;
/// Grimes, Lewis, Simon, SIAM J. Matrix Anal. Appl. 15 (1994) 228; Parlett, The Symmetric
/// Eigenvalue Problem, section 3.3.
template <class T>
EigenResult<T> shift_invert(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options);

/// The version of the cuDSS library that QUIVER_CUDSS names or, without this variable, the loader
/// finds; an empty string if there is none or its version is not 1. Loads the library.
std::string cudss_version();

/// The version of MUMPS in this build, or an empty string without MUMPS.
const char* mumps_version();

}  // namespace quiver
