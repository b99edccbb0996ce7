// SPDX-License-Identifier: BSD-3-Clause
// Some singular triplets of a sparse matrix, square or rectangular.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/event.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

struct SvdsOptions {
    /// Number of wanted singular triplets; each copy of a multiple singular value counts.
    int k = 6;
    /// True: the smallest singular values, false: the largest.
    bool smallest = false;
    /// A triplet has converged when the norm of (A v - s u, A^H u - s v) is at most tol ||A||.
    double tol = 1e-10;
    /// As in EigenOptions.
    int block = 0;
    int max_basis = 0;
    std::int64_t max_iterations = 0;
    double max_seconds = 0;
    std::uint64_t seed = 1;
    Method method = Method::automatic;
    std::function<bool(const IterationEvent&)> keep_going = {};
};

/// The result of svds; numerical outcomes are data, not exceptions.
template <class T>
struct SparseSvd {
    /// Descending, also of the smallest ones; fewer than k if the solver gave up early.
    std::vector<double> values;
    /// sqrt(||A v - s u||^2 + ||A^H u - s v||^2) of each triplet, from fresh products. A value that
    /// is 0 to rounding has an arbitrary u, or v if A has fewer rows than columns: its residual is
    /// ||A v|| or ||A^H u||.
    std::vector<double> residuals;
    /// For each value a number d: A has a singular value in [s - d, s + d]. This is proved up to
    /// rounding: residual / sqrt(2) (of a value that is 0 to rounding: the residual) plus the
    /// rounding errors of the products.
    std::vector<double> errors;
    /// The largest singular value seen: a lower bound of ||A||_2, close in practice.
    double norm_estimate = 0;
    /// True if all wanted triplets were found, with residuals within tol ||A|| or, if that is
    /// larger, 64 eps ||A||, twice the tolerance that the eigensolver had to raise, or the smaller
    /// of 32 eps ||A||^2 / s and s / 16, and the multiplicity is verified.
    bool converged = false;
    /// True if a residual is above tol ||A||, because s is too small for products with A^H A.
    bool tolerance_raised = false;
    /// As in EigenResult, for the eigenvalues of A^H A or A A^H. `verified` also if all singular
    /// values were computed.
    Multiplicity multiplicity = Multiplicity::unverified;
    /// True if A was gathered as a dense block: all its singular values were computed.
    bool dense = false;
    /// The eigensolver of A^H A or A A^H; Method::dense for a dense block.
    Method method = Method::automatic;
    std::string method_reason;
    std::int64_t iterations = 0;
    /// Products with A and with A^H, counted by column.
    std::int64_t products = 0;
    bool interrupted = false;
    /// If the solver has not converged: the reason, as a sentence.
    std::string message;
    double seconds = 0;
    /// Left vectors (distributed like range_map()) and right vectors (domain_map()), orthonormal.
    /// The element of largest modulus of each right vector, the first of equals to a millionth, is
    /// positive.
    BlockVector<T> left;
    BlockVector<T> right;
};

/// The k largest or smallest singular triplets A v = s u, A^H u = s v.
///
/// If A has at most 512 rows or columns, the block fits 1 GiB and no method is requested, A becomes
/// a dense block and tall_svd computes all triplets, with errors of c eps ||A||. Otherwise
/// eigensolve() finds eigenvectors of A^H A or, if A has fewer rows than columns, of A A^H (by
/// products with both matrices; the product is not formed) and verifies multiplicities as
/// docs/solvers.md states. For up to 128 of the largest on hosts, block Lanczos comes first, unless
/// a block or a basis is requested; another method takes over if it makes slow progress. The
/// singular value decomposition of A V then gives values, left vectors and better right vectors, so
/// that values do not suffer from the square: their errors are quadratic in the errors of V. The
/// solve repeats with a stricter tolerance, from the vectors that it has and at most twice, until
/// the residuals of the triplets are small enough. Residuals of small values s cannot fall below
/// about 32 eps ||A||^2 / s.
///
/// Throws on all ranks: InputError for k < 1 or above min(rows, columns), options out of range or
/// different between ranks, entries that are not finite; and the errors of adjoint() and
/// eigensolve(). Collective. Memory: A and A^H, the basis of the eigensolver, 4 blocks of k
/// columns.
template <class T>
SparseSvd<T> svds(Context& ctx, SparseMatrix<T>& a, const SvdsOptions& options = {});

/// The same with a given A^H, for instance for several solves. Also throws ShapeError on all ranks
/// unless adjoint.range_map() is a.domain_map(), and the reverse.
template <class T>
SparseSvd<T> svds(Context& ctx, SparseMatrix<T>& a, SparseMatrix<T>& adjoint,
                  const SvdsOptions& options = {});

}  // namespace quiver
