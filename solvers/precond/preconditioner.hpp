// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners: operators close to the inverse of a matrix, made from it by name.
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
    /// Of block_jacobi: rows of a block, 1 to 64.
    int block_size = 8;
    /// Of chebyshev: products with the matrix, and one; 1 to 1000.
    int degree = 8;
    /// Of chebyshev: the interval of eigenvalues to invert well. upper = 0: from Lanczos steps;
    /// lower = 0: upper / ratio.
    double lower = 0;
    double upper = 0;
    double ratio = 30;
    /// Of ic and ilu: 0: triangular solves; 1 to 1000: that many Jacobi sweeps in place of each,
    /// products.
    int sweeps = 0;
    /// Of ldlt: sigma, 0 where none is given.
    std::optional<double> shift = {};
    /// Of ldlt: |D|, which makes it positive definite; with D it is the inverse of an indefinite
    /// A - sigma B, too, on one rank (UnsupportedError on several).
    bool absolute = true;
};

/// "none", "jacobi", "block-jacobi,size=8", "chebyshev,degree=8,lower=0.1,upper=8,ratio=30",
/// "ic,sweeps=0", "ilu,sweeps=0", "ldlt,shift=0.5"; keys may be left out. Throws InputError, the
/// same on all ranks, that lists what there is.
PreconditionerOptions parse_preconditioner(const std::string& text);

/// An operator M close to the inverse of A; none gives a null pointer. A user's own preconditioner
/// is an Operator like any other and needs none of this. M is Hermitian (positive definite) where A
/// is, except that ilu is Hermitian to rounding only.
///
/// jacobi, block_jacobi: the inverses of diagonal blocks (within the rows of a rank), kept as a
/// SparseMatrix: one product without communication, on the host and on a device. Memory rows
/// block_size entries. InputError names the rows of a singular block.
/// chebyshev: the polynomial of degree `degree` - 1 in A whose residual polynomial is least on
/// [lower, upper]; degree - 1 products, no all-reduce, on the host and on a device. A is Hermitian
/// positive definite; `a` must outlive M. InputError when Lanczos finds a value below 0.
/// ic, ilu: factors without fill of the rank's diagonal block (kernels/sparse/incomplete_lu.hpp)
/// and their triangular solves, on a device by cuSPARSE. With sweeps s the
/// inverses of the unit triangles I + N become I - N + ... + (-N)^s: 2 s + 1 products without
/// communication, and M stays Hermitian positive definite for ic.
/// Where a pivot of ic is not positive, the diagonal is enlarged by 0.1%, then tenfold that and so
/// on up to 100% (FallbackEvent); InputError names the row where that does not help, and the row of
/// a pivot of ilu that is 0.
/// ldlt: |A - sigma B|^-1 in the form (L |D| L^H)^-1, P (A - sigma B) P^T = L D L^H a complete
/// factorisation of the rank's diagonal block (up to 50000 rows), in double precision: on one rank
/// the inverse itself where A - sigma B is positive definite, or without `absolute`. Hermitian
/// positive definite for every Hermitian A, with M (A - sigma B) of eigenvalues +-1, so that minres
/// takes two or three steps. Place and solves as ic. Where a pivot of an indefinite matrix is below
/// 1e-6 of its largest entry, sigma moves by that much or more (FallbackEvent). InputError for a
/// matrix that is not Hermitian. `b` is looked at by ldlt alone; none means B = I.
///
/// Collective. Sources: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., sections 10.2,
/// 10.3, 12.3; Manteuffel, Math. Comp. 34 (1980) 473 (shifts); Anzt, Chow,
/// Dongarra, Euro-Par 2015 (sweeps); Zhou and Li, J. Comput. Phys. 230
/// (2011) (bound of the spectrum from Lanczos steps); Gill, Murray, Ponceleon, Saunders, SIAM J.
/// Matrix Anal. Appl. 13 (1992) 292 (|D|).
template <class T>
std::unique_ptr<Operator<T>> make_preconditioner(Context& ctx, SparseMatrix<T>& a,
                                                 const PreconditionerOptions& options,
                                                 const SparseMatrix<T>* b = nullptr);

}  // namespace quiver
