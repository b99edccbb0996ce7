// SPDX-License-Identifier: BSD-3-Clause
// The eigenvalues and eigenvectors of a dense Hermitian pencil in the memory of one process.
// Private to solvers/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/dense/cusolver.hpp"
#include "solvers/dense/lapack.hpp"

namespace quiver {

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

    /// Computes all eigenvalues except those of constrained dimensions. The columns of
    /// `constraints`, n x c, must be linearly independent. Returns false if B is not positive
    /// definite, or if the Cholesky factor of B shows a common null vector of A and B. Throws
    /// NumericalError if the iteration of an eigensolver fails, and the errors of
    /// Cusolver::eigen().
    bool solve(const SmallMatrix<W>& constraints);
    /// After solve(): true if A v and B v vanish to rounding for a v found. Each of the
    /// first 8 vanishing pivots of B gives a candidate v. The answer does not depend on the units
    /// of the unknowns.
    bool has_common_null_vector() const { return has_common_null_vector_; }
    /// All eigenvalues, ascending, without the constrained dimensions.
    const std::vector<double>& values() const { return values_; }
    /// The B-orthonormal eigenvectors of values()[order[j]], n x order.size().
    SmallMatrix<W> vectors(std::span<const int> order);

  private:
    bool reduce_to_standard();
    bool find_common_null_vector(const std::vector<double>& diagonal, int failed_pivot) const;
    bool vanishes(const std::vector<W>& v, const std::vector<double>& diagonal) const;
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
    bool has_common_null_vector_ = false;
    std::vector<double> values_;
    std::vector<W> tau_;
    /// Eigenvectors of the tridiagonal matrix, by columns.
    std::vector<double> z_;
    /// Eigen's eigenvectors of the reduced matrix.
    SmallMatrix<W> eigenvectors_;
};

}  // namespace quiver
