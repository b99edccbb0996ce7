// SPDX-License-Identifier: BSD-3-Clause
// The eigenvalues of a dense Hermitian pencil near a shift, in the memory of one process. Private
// to solvers/.
#pragma once

#include <optional>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// The eigenpairs of A x = lambda B x near a shift sigma: with B = R^H R, C = R (A - sigma B)^-1
/// R^H and C y = mu y, lambda = sigma + 1 / mu and x = (A - sigma B)^-1 R^H y / |mu|. The errors of
/// DensePencil are relative to the largest eigenvalue; here they are 8 eps n max|mu| (lambda -
/// sigma)^2, so that a B with tiny eigenvalues does not disturb the others. A may be indefinite,
/// and B semidefinite. Costs two dense eigenproblems of order n. Source: the spectral
/// transformation of Ericsson and Ruhe, Math. Comp. 35 (1980) 1251.
template <class W>
struct ShiftedSpectrum {
    struct Pair {
        /// The number of smaller eigenvalues; infinite ones count by the sign of v^H A v.
        int index = 0;
        double value = 0;
        /// A bound of the error of `value`.
        double error = 0;
    };

    /// The pairs whose |mu| exceeds its error: those below sigma, then those above it, each by
    /// descending |mu|. Eigenvalues farther from sigma are missing.
    std::vector<Pair> pairs;
    /// The B-orthonormal eigenvectors of `pairs`, n x pairs.size().
    SmallMatrix<W> vectors;
};

/// R = D^(1/2) Q^H of a semidefinite B = Q D Q^H, so that B = R^H R. Eigenvalues up to
/// max(rounding, 4 sqrt(n) eps) ||B|| (of a diagonal B: rounding ||B||) count as 0. Costs one dense
/// eigenproblem, unless B is diagonal. Throws NumericalError if the eigensolver fails, and the
/// errors of Cusolver::eigen().
template <class W>
SmallMatrix<W> semidefinite_root(Context& ctx, const SmallMatrix<W>& b, double rounding);

/// Takes n x n matrices A and B whose largest entries are near 1, and the root R of B. Returns
/// nothing if A - sigma B is singular to rounding. Throws as semidefinite_root().
template <class W>
std::optional<ShiftedSpectrum<W>> shifted_spectrum(Context& ctx, const SmallMatrix<W>& a,
                                                   const SmallMatrix<W>& b,
                                                   const SmallMatrix<W>& root, double sigma);

}  // namespace quiver
