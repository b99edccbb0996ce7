// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/dense_pencil.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "blockvec/error.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

template <class W>
SmallMatrix<W> adjoint(const SmallMatrix<W>& a) {
    SmallMatrix<W> result(a.cols(), a.rows());
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < a.cols(); ++j) {
            result(j, i) = conjugate(a(i, j));
        }
    }
    return result;
}

/// Y += alpha X.
template <class W>
void add(SmallMatrix<W>& y, double alpha, const SmallMatrix<W>& x) {
    for (int i = 0; i < y.rows(); ++i) {
        for (int j = 0; j < y.cols(); ++j) {
            y(i, j) += alpha * x(i, j);
        }
    }
}

/// The largest sum of |a_ij| over a row: an upper bound of the 2-norm of a Hermitian matrix.
template <class W>
double largest_row_sum(const SmallMatrix<W>& a) {
    double largest = 0;
    for (int i = 0; i < a.rows(); ++i) {
        double sum = 0;
        for (int j = 0; j < a.cols(); ++j) {
            sum += std::abs(a(i, j));
        }
        largest = std::max(largest, sum);
    }
    return largest;
}

/// Pivots of B up to this many units of rounding of their diagonal entry vanish.
constexpr double pivot_noise_units = 16;
/// The same, times the number of rows, for a pivot at which the factorisation has failed, and for
/// (A v)_i relative to the sum of |a_ij v_j| of the row with the largest sum.
constexpr double image_noise_units = 16;
/// A v is computed for up to this many vanishing pivots.
constexpr int most_null_vectors = 8;

/// Makes this thread replace numbers below the normal range by 0, during the object's lifetime.
/// Sparse pencils with rows of very different size fill up with such numbers, and products then
/// take several times as long. All entries are scaled to at most 1, so that they do not count.
class FlushTinyNumbers {
  public:
#if defined(__SSE2__)
    FlushTinyNumbers() : before_(_mm_getcsr()) {
        constexpr unsigned flush_to_zero = 0x8000;
        constexpr unsigned denormals_are_zero = 0x0040;
        _mm_setcsr(before_ | flush_to_zero | denormals_are_zero);
    }
    ~FlushTinyNumbers() {
        _mm_setcsr(before_);
    }
#else
    FlushTinyNumbers() = default;
#endif
    FlushTinyNumbers(const FlushTinyNumbers&) = delete;
    FlushTinyNumbers& operator=(const FlushTinyNumbers&) = delete;

#if defined(__SSE2__)
  private:
    unsigned before_;
#endif
};

/// Replaces the upper triangle of B by R of B = R^H R up to the first pivot that is not positive,
/// whose column R(0:p, p) is complete. Returns p, or -1 if all pivots are positive.
template <class W>
int factorise_until_failure(SmallMatrix<W>& b) {
    for (int p = 0; p < b.rows(); ++p) {
        double pivot = std::real(b(p, p));
        for (int i = 0; i < p; ++i) {
            W sum = b(i, p);
            for (int l = 0; l < i; ++l) {
                sum -= conjugate(b(l, i)) * b(l, p);
            }
            b(i, p) = sum / b(i, i);
            pivot -= std::norm(b(i, p));
        }
        if (!(pivot > 0)) {
            return p;
        }
        b(p, p) = W(std::sqrt(pivot));
    }
    return -1;
}

void require_success(int info, const char* step) {
    if (info != 0) {
        throw NumericalError(std::string("dense: ") + step + " failed with code " +
                             std::to_string(info));
    }
}

}  // namespace

template <class W>
DensePencil<W>::DensePencil(Context& ctx, SmallMatrix<W> a, SmallMatrix<W> b)
    : ctx_(ctx),
      n_(a.rows()),
      threads_(ctx.service<Lapack>(), ctx.threads()),
      lapack_(ctx.service<Lapack>().routines<W>()),
      a_(std::move(a)),
      b_(std::move(b)) {
    if (uses_cusolver(ctx, n_)) {
        cusolver_ = &ctx.service<Cusolver>();
    }
}

template <class W>
bool DensePencil<W>::uses_cusolver(Context& ctx, std::int64_t n) {
    return n >= least_device_order && ctx.place() == Place::device &&
           ctx.service<Lapack>().is_available() && ctx.service<Cusolver>().is_available();
}

template <class W>
bool DensePencil<W>::solve(const SmallMatrix<W>& constraints) {
    [[maybe_unused]] const FlushTinyNumbers flush;
    // C = R^-H A R^-1 with B = R^H R: C y = lambda y, x = R^-1 y.
    if (b_.rows() > 0 && !reduce_to_standard()) {
        return false;
    }
    if (constraints.cols() > 0) {
        project(constraints);
    }
    if (cusolver_ != nullptr) {
        require_success(cusolver_->eigen(ctx_, a_, values_), "cuSOLVER");
    } else {
        // C = Q T Q^H, T Z = Z Lambda: Y = Q Z.
        tridiagonalise();
    }
    values_.resize(static_cast<std::size_t>(n_ - constraints.cols()));
    return true;
}

template <class W>
bool DensePencil<W>::reduce_to_standard() {
    std::vector<double> diagonal;
    diagonal.reserve(static_cast<std::size_t>(n_));
    for (int i = 0; i < n_; ++i) {
        diagonal.push_back(std::real(b_(i, i)));
    }
    if (lapack_ == nullptr) {
        Cholesky<W> factor = cholesky(b_);
        const int failed_pivot = factor.positive ? -1 : factorise_until_failure(b_);
        b_ = factor.positive ? std::move(factor.r) : std::move(b_);
        has_common_null_vector_ = find_common_null_vector(diagonal, failed_pivot);
        if (!factor.positive || has_common_null_vector_) {
            return false;
        }
        b_ = inverse_of_upper(b_);
        a_ = product(adjoint(b_), product(a_, b_));
        return true;
    }
    int info = 0;
    lapack_->factorise("L", &n_, b_.data(), &n_, &info, 1);
    require_success(std::min(info, 0), "the Cholesky factorisation");
    has_common_null_vector_ = find_common_null_vector(diagonal, info - 1);
    if (info > 0 || has_common_null_vector_) {
        return false;
    }
    const int type = 1;
    lapack_->reduce(&type, "L", &n_, a_.data(), &n_, b_.data(), &n_, &info, 1);
    require_success(info, "the reduction by B");
    for (int i = 0; i < n_; ++i) {  // LAPACK has written only the upper triangle
        for (int j = 0; j < i; ++j) {
            a_(i, j) = conjugate(a_(j, i));
        }
    }
    return true;
}

/// True if A v vanishes for a v with B v = 0 to rounding. If the pivot of column p vanishes, v is
/// the solution of R v = r_pp e_p with v_p = 1. `failed_pivot`: the column at which the
/// factorisation ended, or negative.
template <class W>
bool DensePencil<W>::find_common_null_vector(const std::vector<double>& diagonal,
                                             int failed_pivot) const {
    constexpr double eps = std::numeric_limits<double>::epsilon();
    const int last = failed_pivot >= 0 ? failed_pivot : n_ - 1;
    int tried = 0;
    for (int p = 0; p <= last && tried < most_null_vectors; ++p) {
        const double size = diagonal[static_cast<std::size_t>(p)];
        double pivot = std::norm(b_(p, p));
        if (p == failed_pivot) {
            pivot = size;
            for (int i = 0; i < p; ++i) {
                pivot -= std::norm(b_(i, p));
            }
        }
        const double units = p == failed_pivot ? image_noise_units * n_ : pivot_noise_units;
        if (!(std::abs(pivot) <= units * eps * size)) {
            continue;
        }
        ++tried;
        std::vector<W> v(static_cast<std::size_t>(n_), W(0));
        v[static_cast<std::size_t>(p)] = W(1);
        for (int i = p - 1; i >= 0; --i) {
            W sum = b_(i, p);
            for (int j = i + 1; j < p; ++j) {
                sum += b_(i, j) * v[static_cast<std::size_t>(j)];
            }
            v[static_cast<std::size_t>(i)] = -sum / b_(i, i);
        }
        if (vanishes(v, diagonal)) {
            return true;
        }
    }
    return false;
}

/// True if A v is rounding noise of its terms, in units of the unknowns in which the diagonal of B
/// is 1.
template <class W>
bool DensePencil<W>::vanishes(const std::vector<W>& v, const std::vector<double>& diagonal) const {
    const double noise = image_noise_units * n_ * std::numeric_limits<double>::epsilon();
    double image = 0;
    double terms = 0;
    for (int i = 0; i < n_; ++i) {
        W sum = 0;
        double sizes = 0;
        for (int j = 0; j < n_; ++j) {
            const W term = a_(i, j) * v[static_cast<std::size_t>(j)];
            sum += term;
            sizes += std::abs(term);
        }
        const double unit = diagonal[static_cast<std::size_t>(i)];
        if (unit > 0) {
            image = std::max(image, std::abs(sum) / std::sqrt(unit));
            terms = std::max(terms, sizes / std::sqrt(unit));
        } else if (std::abs(sum) > noise * sizes) {
            return false;
        }
    }
    return image <= noise * terms;
}

/// C = P C P + s Y Y^H with P = I - Y Y^H, where Y is an orthonormal basis of R times the
/// constraints. The columns of Y are eigenvectors for s, which is above all other eigenvalues.
template <class W>
void DensePencil<W>::project(const SmallMatrix<W>& constraints) {
    SmallMatrix<W> y = constraints;
    if (b_.rows() > 0) {
        // Eigen's path holds R^-1, whose inverse is R.
        SmallMatrix<W> r = lapack_ == nullptr ? inverse_of_upper(b_) : b_;
        for (int i = 0; i < n_; ++i) {
            std::fill(r.data() + static_cast<std::ptrdiff_t>(i) * n_,
                      r.data() + static_cast<std::ptrdiff_t>(i) * n_ + i, W(0));
        }
        y = product(r, constraints);
    }
    y = orthonormal_columns(y, 0.0);
    if (y.cols() < constraints.cols()) {
        throw NumericalError(
            "dense: the constraint vectors are linearly dependent in the inner product of B");
    }
    const double shift = 2 * largest_row_sum(a_) + 1;
    const SmallMatrix<W> cy = product(a_, y);
    const SmallMatrix<W> yh = adjoint(y);
    SmallMatrix<W> inner = product(yh, cy);
    for (int i = 0; i < inner.rows(); ++i) {
        inner(i, i) += shift;
    }
    const SmallMatrix<W> cross = product(cy, yh);
    add(a_, -1, cross);
    add(a_, -1, adjoint(cross));
    add(a_, 1, product(product(y, inner), yh));
}

template <class W>
void DensePencil<W>::tridiagonalise() {
    if (lapack_ == nullptr) {
        HermitianEigen<W> eigen = hermitian_eigen(a_);
        require_success(eigen.converged ? 0 : 1, "the QR iteration");
        values_ = std::move(eigen.values);
        eigenvectors_ = std::move(eigen.vectors);
        return;
    }
    const auto n = static_cast<std::size_t>(n_);
    values_.resize(n);
    tau_.resize(n);
    z_.resize(n * n);
    std::vector<double> off_diagonal(n);
    int info = 0;
    {
        constexpr int panel = 64;
        std::vector<W> work(n * panel);
        const int size = static_cast<int>(work.size());
        lapack_->tridiagonalise("L", &n_, a_.data(), &n_, values_.data(), off_diagonal.data(),
                                tau_.data(), work.data(), &size, &info, 1);
        require_success(info, "the reduction to tridiagonal form");
    }
    std::vector<double> work(1 + 4 * n + n * n);
    std::vector<int> iwork(3 + 5 * n);
    const int size = static_cast<int>(work.size());
    const int isize = static_cast<int>(iwork.size());
    lapack_->divide_and_conquer("I", &n_, values_.data(), off_diagonal.data(), z_.data(), &n_,
                                work.data(), &size, iwork.data(), &isize, &info, 1);
    require_success(info, "divide and conquer");
}

template <class W>
SmallMatrix<W> DensePencil<W>::vectors(std::span<const int> order) {
    const int count = static_cast<int>(order.size());
    if (lapack_ == nullptr) {
        SmallMatrix<W> y(n_, count);
        for (int i = 0; i < n_; ++i) {
            for (int j = 0; j < count; ++j) {
                y(i, j) = eigenvectors_(i, order[static_cast<std::size_t>(j)]);
            }
        }
        return b_.rows() > 0 ? product(b_, y) : y;
    }
    SmallMatrix<W> x(count, n_);  // eigenvector j of conj(C) in row j
    for (int j = 0; j < count; ++j) {
        const auto from = static_cast<std::ptrdiff_t>(order[static_cast<std::size_t>(j)]) * n_;
        if (cusolver_ != nullptr) {
            std::copy_n(a_.data() + from, n_, &x(j, 0));
        } else {
            std::copy_n(z_.data() + from, n_, &x(j, 0));
        }
    }
    int info = 0;
    if (cusolver_ == nullptr) {
        std::vector<W> work(static_cast<std::size_t>(std::max(count, 1)) * 64 + 65 * 64);
        const int size = static_cast<int>(work.size());
        lapack_->multiply_by_q("L", "L", "N", &n_, &count, a_.data(), &n_, tau_.data(), x.data(),
                               &n_, work.data(), &size, &info, 1, 1, 1);
        require_success(info, "the product with Q");
    }
    if (b_.rows() > 0) {
        lapack_->solve_triangular("L", "C", "N", &n_, &count, b_.data(), &n_, x.data(), &n_, &info,
                                  1, 1, 1);
        require_success(info, "the solution with R");
    }
    return adjoint(x);
}

template class DensePencil<double>;
template class DensePencil<std::complex<double>>;

}  // namespace quiver
