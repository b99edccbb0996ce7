// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/dense_pencil.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <utility>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "blockvec/error.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"
#include "solvers/small_dense_svd.hpp"

namespace quiver {
namespace {

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

/// Smaller orders are solved by one thread. Two threads save a third of 0.1 s for 1000 rows of a
/// free machine; while other programs use the cores, the threads wait for each other at each of
/// several thousand products, and 727 rows took 30 s instead of 0.14 s.
constexpr int least_threaded_order = 1024;

/// |v|^T |A| |v| for each column v of V.
template <class W>
std::vector<double> sizes_of_forms(const SmallMatrix<W>& a, const SmallMatrix<W>& v) {
    const auto moduli = [](const SmallMatrix<W>& x) {
        SmallMatrix<double> result(x.rows(), x.cols());
        for (int i = 0; i < x.rows(); ++i) {
            for (int j = 0; j < x.cols(); ++j) {
                result(i, j) = std::abs(x(i, j));
            }
        }
        return result;
    };
    const SmallMatrix<double> sizes = moduli(v);
    const SmallMatrix<double> images = product(moduli(a), sizes);
    std::vector<double> result(static_cast<std::size_t>(v.cols()));
    for (int i = 0; i < v.rows(); ++i) {
        for (int j = 0; j < v.cols(); ++j) {
            result[static_cast<std::size_t>(j)] += sizes(i, j) * images(i, j);
        }
    }
    return result;
}

template <class W>
SmallMatrix<W> columns_of(const SmallMatrix<W>& a, const std::vector<int>& columns) {
    SmallMatrix<W> result(a.rows(), static_cast<int>(columns.size()));
    for (int i = 0; i < a.rows(); ++i) {
        for (int j = 0; j < result.cols(); ++j) {
            result(i, j) = a(i, columns[static_cast<std::size_t>(j)]);
        }
    }
    return result;
}

/// True if A v vanishes to rounding for a unit vector v in the span of an orthonormal V. The rows
/// of `images`, A V, count relative to the rows of A, because rounding errors of v change them so.
template <class W>
bool has_common_null_vector(const SmallMatrix<W>& a, SmallMatrix<W> images, double noise) {
    for (int i = 0; i < a.rows(); ++i) {
        double sum = 0;
        for (int j = 0; j < a.cols(); ++j) {
            sum += std::abs(a(i, j));
        }
        for (int j = 0; j < images.cols() && sum > 0; ++j) {
            images(i, j) /= sum;
        }
    }
    return images.cols() > 0 && small_svd(images).values.back() <= noise;
}

/// B is singular to rounding if a pivot of its Cholesky factorisation is at most this many units of
/// rounding of its diagonal entry.
constexpr double pivot_noise_units = 16;
/// v^H A v is rounding noise up to this many units of rounding times n, relative to the sum of
/// |conj(v_i) a_ij v_j|, and A v relative to ||A||.
constexpr double image_noise_units = 16;

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
      threads_(ctx.service<Lapack>(), threads_for(ctx, n_)),
      lapack_(ctx.service<Lapack>().routines<W>()),
      a_(std::move(a)),
      b_(std::move(b)) {
    if (uses_cusolver(ctx, n_)) {
        cusolver_ = &ctx.service<Cusolver>();
    }
}

template <class W>
int DensePencil<W>::threads_for(const Context& ctx, std::int64_t n) {
    return n < least_threaded_order ? 1 : ctx.threads();
}

template <class W>
bool DensePencil<W>::uses_cusolver(Context& ctx, std::int64_t n) {
    return n >= least_device_order && ctx.place() == Place::device &&
           ctx.service<Lapack>().is_available() && ctx.service<Cusolver>().is_available();
}

template <class W>
PencilKind DensePencil<W>::solve(const SmallMatrix<W>& constraints, double rounding) {
    [[maybe_unused]] const FlushTinyNumbers flush;
    if (solve_definite(constraints)) {
        return PencilKind::regular;
    }
    SmallMatrix<W> removed = constraints.cols() > 0 ? constraints : SmallMatrix<W>(n_, 0);
    const PencilKind kind = deflate(rounding, removed);
    if (kind != PencilKind::regular) {
        return kind;
    }
    return solve_definite(removed) ? PencilKind::regular : PencilKind::indefinite;
}

template <class W>
bool DensePencil<W>::solve_definite(const SmallMatrix<W>& constraints) {
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

/// Returns false, with A and B as before, if B has no Cholesky factor or a pivot vanishes.
template <class W>
bool DensePencil<W>::reduce_to_standard() {
    std::vector<W> diagonal;
    diagonal.reserve(static_cast<std::size_t>(n_));
    for (int i = 0; i < n_; ++i) {
        diagonal.push_back(b_(i, i));
    }
    const auto is_regular = [&](const SmallMatrix<W>& r) {
        constexpr double noise = pivot_noise_units * std::numeric_limits<double>::epsilon();
        for (int i = 0; i < n_; ++i) {
            if (!(std::norm(r(i, i)) > noise * std::real(diagonal[static_cast<std::size_t>(i)]))) {
                return false;
            }
        }
        return true;
    };
    if (lapack_ == nullptr) {
        Cholesky<W> factor = cholesky(b_);
        if (!factor.positive || !is_regular(factor.r)) {
            return false;
        }
        b_ = inverse_of_upper(factor.r);
        a_ = product(adjoint(b_), product(a_, b_));
        return true;
    }
    int info = 0;
    lapack_->factorise("L", &n_, b_.data(), &n_, &info, 1);
    require_success(std::min(info, 0), "the Cholesky factorisation");
    if (info > 0 || !is_regular(b_)) {
        for (int i = 0; i < n_; ++i) {  // LAPACK has overwritten the upper triangle
            b_(i, i) = diagonal[static_cast<std::size_t>(i)];
            for (int j = 0; j < i; ++j) {
                b_(j, i) = conjugate(b_(i, j));
            }
        }
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

/// Multiplies A and B by D from both sides, and the constraints by D^-1.
template <class W>
void DensePencil<W>::set_units(const std::vector<double>& d, SmallMatrix<W>& constraints) {
    for (int i = 0; i < n_; ++i) {
        const double unit = d[static_cast<std::size_t>(i)];
        for (int j = 0; j < n_; ++j) {
            const double factor = unit * d[static_cast<std::size_t>(j)];
            a_(i, j) *= factor;
            b_(i, j) *= factor;
        }
        for (int j = 0; j < constraints.cols(); ++j) {
            constraints(i, j) /= unit;
        }
    }
    units_ = d;
}

/// An orthonormal basis of the null space of B to rounding, with as many columns as eigenvalues of
/// B lie within `rounding` ||B|| of 0. Empty if an eigenvalue is more negative.
template <class W>
std::optional<SmallMatrix<W>> DensePencil<W>::null_space_of_b(double rounding) const {
    DensePencil<W> eigen(ctx_, b_, {});
    eigen.solve({}, rounding);
    const double noise =
        std::max(rounding, 4 * std::sqrt(n_) * std::numeric_limits<double>::epsilon()) *
        std::max(eigen.values().back(), 0.0);
    std::vector<int> null;
    for (int i = 0; i < n_ && eigen.values()[static_cast<std::size_t>(i)] <= noise; ++i) {
        null.push_back(i);
    }
    if (eigen.values().front() < -noise || std::ssize(null) == n_) {
        return std::nullopt;
    }
    return eigen.vectors(null);
}

/// Separates the infinite eigenvalues of a pencil with a semidefinite B. Let N be an orthonormal
/// basis of the null space of B, and S = (N^H A N)^-1. The pencil of A - A N S N^H A and B + N N^H
/// has the same finite eigenvalues. An eigenvector x of it that is orthogonal to N gives x - N S
/// N^H A x. N becomes a constraint, which removes the other eigenvalues.
template <class W>
PencilKind DensePencil<W>::deflate(double rounding, SmallMatrix<W>& constraints) {
    // In units in which the diagonal of B is about 1, or that of A where B has a zero.
    std::vector<double> d;
    std::vector<double> back;
    for (int i = 0; i < n_; ++i) {
        const double mass = std::real(b_(i, i));
        const double size = mass > 0 ? mass : std::abs(a_(i, i));
        const int exponent = size > 0 ? std::ilogb(size) / 2 : 0;
        d.push_back(std::ldexp(1.0, -exponent));
        back.push_back(std::ldexp(1.0, exponent));
    }
    set_units(d, constraints);
    std::optional<SmallMatrix<W>> null = null_space_of_b(rounding);
    if (!null) {  // a B with small negative diagonal entries is semidefinite in its own units only
        set_units(back, constraints);
        units_.assign(static_cast<std::size_t>(n_), 1.0);
        null = null_space_of_b(rounding);
        if (!null) {
            return PencilKind::indefinite;
        }
    }
    null_space_ = std::move(*null);
    const SmallMatrix<W> n_adjoint = adjoint(null_space_);
    const SmallMatrix<W> an = product(a_, null_space_);
    const SmallMatrix<W> inner = product(n_adjoint, an);
    DensePencil<W> eigen(ctx_, inner, {});
    eigen.solve({}, 0);
    std::vector<int> all(eigen.values().size());
    std::iota(all.begin(), all.end(), 0);
    const SmallMatrix<W> u = eigen.vectors(all);
    const SmallMatrix<W> images = product(an, u);
    const double units = image_noise_units * n_ * std::numeric_limits<double>::epsilon();
    const double noise = units * largest_row_sum(a_);
    const std::vector<double> sizes = sizes_of_forms(a_, product(null_space_, u));
    std::vector<int> without_sign;
    SmallMatrix<W> u_by_values = u;
    for (int l = 0; l < u.cols(); ++l) {
        const double value = eigen.values()[static_cast<std::size_t>(l)];
        double image = 0;
        for (int i = 0; i < n_; ++i) {
            image = std::max(image, std::abs(images(i, l)));
        }
        // Rounding of v changes v^H A v by its products with A v and, squared, with A; rounding of
        // the entries of A is relative to them.
        if (std::abs(value) <= std::max(units, rounding) * sizes[static_cast<std::size_t>(l)] +
                                   units * (image + noise)) {
            without_sign.push_back(l);
            continue;
        }
        ++(value < 0 ? infinite_.negative : infinite_.positive);
        for (int i = 0; i < u.rows(); ++i) {
            u_by_values(i, l) /= value;
        }
    }
    if (has_common_null_vector(a_, columns_of(images, without_sign), std::max(units, rounding))) {
        return PencilKind::common_null_vector;
    }
    infinite_.unsigned_pairs = static_cast<int>(without_sign.size());
    if (infinite_.unsigned_pairs > 0) {
        return PencilKind::degenerate;
    }
    to_null_ = product(u_by_values, adjoint(images));
    add(a_, -1, product(an, to_null_));
    add(b_, 1, product(null_space_, n_adjoint));
    SmallMatrix<W> removed(n_, null_space_.cols() + constraints.cols());
    const SmallMatrix<W> along = product(null_space_, product(n_adjoint, constraints));
    for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < removed.cols(); ++j) {
            const int given = j - null_space_.cols();
            removed(i, j) = given < 0 ? null_space_(i, j) : constraints(i, given) - along(i, given);
        }
    }
    constraints = std::move(removed);
    return PencilKind::regular;
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
    SmallMatrix<W> x = vectors_of_reduced(order);
    if (null_space_.cols() > 0) {
        add(x, -1, product(null_space_, product(to_null_, x)));
        for (int i = 0; i < n_; ++i) {
            for (int j = 0; j < x.cols(); ++j) {
                x(i, j) *= units_[static_cast<std::size_t>(i)];
            }
        }
    }
    return x;
}

/// The eigenvectors x = R^-1 y of the pencil whose B has a Cholesky factor.
template <class W>
SmallMatrix<W> DensePencil<W>::vectors_of_reduced(std::span<const int> order) {
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
