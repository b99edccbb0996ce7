// SPDX-License-Identifier: BSD-3-Clause
// The eigenvalues and eigenvectors of a dense Hermitian pencil in the memory of one process.
// Private to solvers/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/dense/cusolver.hpp"
#include "solvers/dense/lapack.hpp"

namespace quiver {

/// The class of the pencil that DensePencil::solve() has found.
enum class PencilKind : std::uint8_t {
    /// B is positive definite, or semidefinite and A v and B v do not both vanish for any v.
    regular,
    indefinite,
    /// A v and B v vanish to rounding for some v.
    common_null_vector,
    /// v^H A v and B v vanish to rounding for some v, but not A v.
    degenerate
};

/// The number of infinite eigenvalues of a pencil, by the sign of v^H A v of their eigenvectors v,
/// for which B v = 0.
struct InfiniteEigenvalues {
    int negative = 0;
    int positive = 0;
    /// v^H A v vanishes to rounding, but not A v. Each such v has two infinite eigenvalues: a small
    /// number added to B gives them opposite signs.
    int unsigned_pairs = 0;
};

/// A x = lambda B x with entries near 1, in double precision. W is double or std::complex<double>.
template <class W>
class DensePencil {
  public:
    /// Takes n x n matrices; an empty B means B = I. LAPACK computes, or Eigen if there is no
    /// LAPACK. If uses_cusolver(), cuSOLVER computes the eigenpairs of the reduced matrix; LAPACK
    /// still reduces by B. Throws the errors of Lapack and Cusolver.
    DensePencil(Context& ctx, SmallMatrix<W> a, SmallMatrix<W> b);

    /// Matrices with fewer rows than this stay on the host.
    static constexpr int least_device_order = 2048;
    /// True if cuSOLVER computes the eigenpairs of n x n matrices: n is at least
    /// least_device_order, the Context has a GPU, and LAPACK and cuSOLVER are found. Opens the
    /// libraries. Throws their errors.
    static bool uses_cusolver(Context& ctx, std::int64_t n);

    /// The number of threads of LAPACK for n x n matrices.
    static int threads_for(const Context& ctx, std::int64_t n);

    /// Computes all finite eigenvalues except those of constrained dimensions. The columns of
    /// `constraints`, n x c, must be linearly independent. If B is positive semidefinite,
    /// eigenvalues of B up to `rounding` ||B|| count as 0, in units of the unknowns in which the
    /// diagonal of B is about 1; A and B then determine fewer than n - c eigenvalues. There are
    /// values only if the result is PencilKind::regular. Throws NumericalError if the iteration of
    /// an eigensolver fails, and the errors of Cusolver::eigen(). Source for a singular B: Fix and
    /// Heiberger, SIAM J. Numer. Anal. 9 (1972) 78.
    PencilKind solve(const SmallMatrix<W>& constraints, double rounding);
    /// The same for a positive definite B only: returns false, without values, if B is not, or if
    /// a pivot of its Cholesky factorisation vanishes to rounding.
    bool solve_definite(const SmallMatrix<W>& constraints);
    /// All counts are 0 if B is positive definite.
    const InfiniteEigenvalues& infinite() const { return infinite_; }
    /// All finite eigenvalues, ascending, without the constrained dimensions.
    const std::vector<double>& values() const { return values_; }
    /// The B-orthonormal eigenvectors of values()[order[j]], n x order.size().
    SmallMatrix<W> vectors(std::span<const int> order);

  private:
    bool reduce_to_standard();
    void set_units(const std::vector<double>& d, SmallMatrix<W>& constraints);
    std::optional<SmallMatrix<W>> null_space_of_b(double rounding) const;
    PencilKind deflate(double rounding, SmallMatrix<W>& constraints);
    SmallMatrix<W> vectors_of_reduced(std::span<const int> order);
    void project(const SmallMatrix<W>& constraints);
    void tridiagonalise();

    Context& ctx_;
    int n_;
    Lapack::Threads threads_;
    const LapackRoutines<W>* lapack_;
    /// Null if the host computes the eigenpairs.
    const Cusolver* cusolver_ = nullptr;
    /// The reduced matrix, then the reflectors of its tridiagonal form or, by cuSOLVER, the
    /// conjugates of its eigenvectors in the rows.
    SmallMatrix<W> a_;
    /// B, then R of B = R^H R in its upper triangle (R^-1 if Eigen computes).
    SmallMatrix<W> b_;
    InfiniteEigenvalues infinite_;
    /// D, N and S N^H A of deflate(); empty if B is positive definite.
    std::vector<double> units_;
    SmallMatrix<W> null_space_;
    SmallMatrix<W> to_null_;
    std::vector<double> values_;
    std::vector<W> tau_;
    /// Eigenvectors of the tridiagonal matrix, by columns.
    std::vector<double> z_;
    /// Eigen's eigenvectors of the reduced matrix.
    SmallMatrix<W> eigenvectors_;
};

}  // namespace quiver
