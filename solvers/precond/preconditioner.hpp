// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners: approximate inverses of a matrix, selected by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/operator.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

enum class PreconditionerKind : std::uint8_t {
    none,
    jacobi,
    block_jacobi,
    chebyshev,
    ic,
    ilu,
    ldlt
};

const char* to_string(PreconditionerKind kind);

struct PreconditionerOptions {
    PreconditionerKind kind = PreconditionerKind::none;
    /// block_jacobi: rows of a block, 1 to 64.
    int block_size = 8;
    /// chebyshev: the number of products with the matrix plus one; 1 to 1000.
    int degree = 8;
    /// chebyshev: the interval of eigenvalues on which to approximate the inverse. upper = 0: a
    /// bound from Lanczos steps; lower = 0: upper / ratio.
    double lower = 0;
    double upper = 0;
    double ratio = 30;
    /// ic and ilu: 0 makes triangular solves; 1 to 1000 replaces each solve by that many Jacobi
    /// sweeps, which are products.
    int sweeps = 0;
    /// ldlt: sigma; 0 if not given.
    std::optional<double> shift = {};
    /// ldlt: use |D|, which makes M positive definite. If false, M uses D and is the inverse of A -
    /// sigma B even if that is indefinite; with several ranks, rank 0 then factorises all rows.
    bool absolute = true;
    /// ldlt: for an eigensolver at an end, which unlike minres needs a definite A - sigma B. Sigma
    /// then moves only downwards, and a NoticeEvent reports an indefinite A - sigma B.
    bool wants_definite = false;
};

/// Parses "none", "jacobi", "block-jacobi,size=8", "chebyshev,degree=8,lower=0.1,upper=8,ratio=30",
/// "ic,sweeps=0", "ilu,sweeps=0", "ldlt,shift=0.5"; keys may be omitted. Throws InputError,
/// identically on all ranks; its message lists the known names or keys.
PreconditionerOptions parse_preconditioner(const std::string& text);

/// Makes an operator M that approximates the inverse of A; returns null for `none`. A user's own
/// preconditioner can be any Operator and does not need this function. M is Hermitian (positive
/// definite) if A is, except that ilu is Hermitian only up to rounding.
///
/// jacobi, block_jacobi: the inverses of diagonal blocks (within the rows of a rank), stored as a
/// SparseMatrix: one product without communication, on the host and on a device. A device also
/// inverts the blocks if the rank has at least 2^19 rows (block_jacobi.hpp). Memory: rows x
/// block_size entries, during the set-up three times as many. InputError names the rows of a
/// singular block.
/// chebyshev: the polynomial of degree `degree` - 1 in A whose residual polynomial is smallest on
/// [lower, upper]; degree - 1 products, no all-reduce, on the host and on a device. A must be
/// Hermitian positive definite and outlive M. InputError if Lanczos finds an eigenvalue estimate
/// below 0.
/// ic, ilu: factors without fill of the rank's diagonal block (kernels/sparse/incomplete_lu.hpp)
/// and their triangular solves, on a device by cuSPARSE. With s sweeps the inverses of the unit
/// triangles I + N become I - N + ... + (-N)^s: 2 s + 1 products without communication, and M stays
/// Hermitian positive definite for ic. If a pivot of ic is not positive, the diagonal is enlarged
/// by 0.1%, then by ten times as much, up to 100% (FallbackEvent). InputError names the row of a
/// pivot of ic that is still not positive, and the row of a zero pivot of ilu.
/// ldlt: |A - sigma B|^-1 as (L |D| L^H)^-1, where P (A - sigma B) P^T = L D L^H is a complete
/// factorisation of the rank's diagonal block (up to 50000 rows) in double precision. On one rank
/// it is the exact inverse if A - sigma B is positive definite, or without `absolute`. Without
/// `absolute` on several ranks, rank 0 gathers and factorises all rows (up to 50000), and solves
/// for every product: one all-reduce and one broadcast of the whole block, two all-reduces of one
/// number. With `absolute` M is Hermitian positive definite for every Hermitian A; M (A - sigma B)
/// then has eigenvalues +-1, so that minres needs two or three steps. Place and solves as for ic.
/// If a pivot of an indefinite matrix is below 1e-6 of its largest entry, sigma moves by that much
/// or more (FallbackEvent). InputError for a matrix that is not Hermitian. Only ldlt reads `b`;
/// null means B = I.
///
/// Collective. Sources: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., sections 10.2,
/// 10.3, 12.3; Manteuffel, Math. Comp. 34 (1980) 473 (shifts); Anzt, Chow, Dongarra, Euro-Par 2015
/// (sweeps); Zhou and Li, J. Comput. Phys. 230 (2011) (bound of the spectrum from Lanczos steps);
/// Gill, Murray, Ponceleon, Saunders, SIAM J. Matrix Anal. Appl. 13 (1992) 292 (|D|).
template <class T>
std::unique_ptr<Operator<T>> make_preconditioner(Context& ctx, SparseMatrix<T>& a,
                                                 const PreconditionerOptions& options,
                                                 SparseMatrix<T>* b = nullptr);

}  // namespace quiver
