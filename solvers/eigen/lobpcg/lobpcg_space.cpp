// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lobpcg/lobpcg_space.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/lobpcg/chebyshev_inverse.hpp"
#include "solvers/eigen/search/block_memory.hpp"
#include "solvers/eigen/search/rayleigh_ritz.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// Steps of the Chebyshev iteration that replaces a preconditioner: a polynomial of one degree
/// less.
constexpr int polynomial_degree = 6;
constexpr double flat = 1e-6;  // narrower spectra, relative to ||A||, need no polynomial
/// The polynomial covers at least this fraction of the spectrum, even while X is still at the far
/// end: components beyond sigma grow with their distance to the power of the degree.
constexpr double least_reach = 0.1;

}  // namespace

template <class T>
LobpcgSpace<T>::LobpcgSpace(Context& ctx, const EigenProblem<T>& problem,
                            const InnerProduct<T>& inner, Which which, std::uint64_t seed,
                            int width, int max_fixed, const SpectrumBounds& bounds)
    : ctx_(ctx),
      a_(problem.a),
      inner_(inner),
      with_b_(inner.b != nullptr),
      polynomial_(!with_b_ && problem.preconditioner == nullptr),
      which_(which),
      seed_(seed),
      max_width_(width),
      bounds_(bounds) {
    if (problem.preconditioner != nullptr) {
        preconditioner_.emplace(*problem.preconditioner);
    }
    const RowMap& map = problem.a.row_map();
    const int all = max_fixed + 2 * width;
    const int columns =
        (with_b_ ? 2 : 1) * all + (4 + (with_b_ ? 1 : 0) + (polynomial_ ? 2 : 0)) * width;
    claim_block_memory<T>(ctx, map, columns, "LOBPCG: blocks");
    ctx.comm().agree([&] {
        basis_ = BlockVector<T>(ctx, map, all);
        b_basis_ = BlockVector<T>(ctx, map, with_b_ ? all : 0);
        av_ = BlockVector<T>(ctx, map, 2 * width);
        waw_ = BlockVector<T>(ctx, map, 2 * width);
        bw_ = BlockVector<T>(ctx, map, with_b_ ? width : 0);
        y_ = BlockVector<T>(ctx, map, polynomial_ ? width : 0);
        z_ = BlockVector<T>(ctx, map, polynomial_ ? width : 0);
    });
    // Updates multiply unused columns by zero, so they must be finite.
    fill(ctx, T(0), basis_.view());
    fill(ctx, T(0), b_basis_.view());
    fill(ctx, T(0), av_.view());
}

template <class T>
void LobpcgSpace<T>::fail(const std::string& text) const {
    NumericalError error("LOBPCG: in iteration " + std::to_string(steps_) + ' ' + text);
    error.set_collective();  // all ranks hold the same small matrices
    throw error;
}

template <class T>
void LobpcgSpace<T>::check_product(const SmallMatrix<T>& projected, const char* of) {
    for (int j = 0; j < projected.cols(); ++j) {
        for (int i = 0; i < projected.rows(); ++i) {
            if (!is_finite(projected(i, j))) {
                a_.rethrow_pending();
                fail("the operator failed on some rank, or its product with column " +
                     std::to_string(j) + " of " + of + " is not finite");
            }
        }
    }
}

template <class T>
void LobpcgSpace<T>::check_hermitian(const SmallMatrix<T>& projected, double scale) {
    HermitianDefect defect(scale);
    defect.see_matrix(projected);
    defect.check<T>([&](const std::string& text) {
        if (with_b_) {
            refuse_long_columns(v());
        }
        fail(text);
    });
}

/// Throws IndefiniteError if a B-orthonormal column of X is so long that products with A, of which
/// it is a factor twice, may differ from Hermitian ones by rounding.
template <class T>
void LobpcgSpace<T>::refuse_long_columns(BlockView<const T> x) const {
    std::vector<Real> lengths(static_cast<std::size_t>(x.cols));
    norms(ctx_, x, std::span<Real>(lengths));
    double longest = 1;
    for (const Real length : lengths) {
        longest = std::max(longest, static_cast<double>(length));
    }
    const double quotient = 1 / (longest * longest * static_cast<double>(inner_.norm));
    if (quotient <= std::sqrt(static_cast<double>(epsilon_v<T>))) {
        throw_indefinite(IndefiniteError::Operand::mass,
                         "LOBPCG: B is not positive definite to rounding: in iteration " +
                             std::to_string(steps_) + " x^H B x = " + number_text(quotient, 2) +
                             " ||B|| ||x||^2 for a vector x of the basis" + singular_mass_cure);
    }
}

template <class T>
int LobpcgSpace<T>::orthonormalise(BlockView<const T> against, BlockView<const T> b_against,
                                   BlockView<T> x, BlockView<T> bx, bool replace) {
    OrthOptions options;
    options.replace_deficient = replace;
    options.seed = seed_ + 0x9e3779b97f4a7c15u * ++random_streams_;
    try {
        return block_gram_schmidt<T>(ctx_, a_.row_map(), inner_, against, b_against, x, bx, options)
            .columns;
    } catch (const IndefiniteError&) {
        throw;
    } catch (const NumericalError& error) {
        a_.rethrow_pending();
        if (preconditioner_) {
            preconditioner_->rethrow_pending();
        }
        if (with_b_) {
            require_length(x_);
        }
        fail(std::string("the directions cannot be orthonormalised, or an operator failed on some "
                         "rank: ") +
             error.what());
    }
}

template <class T>
int LobpcgSpace<T>::orthonormalise_in_place(int first, int count, bool replace) {
    return orthonormalise(basis_.columns(0, first), b_basis(0, first), basis_.columns(first, count),
                          b_basis(first, count), replace);
}

template <class T>
int LobpcgSpace<T>::fix(BlockView<const T> block) {
    if (block.cols == 0) {
        return 0;
    }
    copy(ctx_, block, basis_.columns(fixed_, block.cols));
    const int columns = orthonormalise_in_place(fixed_, block.cols, false);
    fixed_ += columns;
    return columns;
}

template <class T>
void LobpcgSpace<T>::fix_first(int count) {
    const int all = x_ + p_;
    std::vector<int> order(static_cast<std::size_t>(all));
    for (int j = 0; j < all; ++j) {
        order[static_cast<std::size_t>(j)] = (j + count) % all;
    }
    gather_columns(ctx_, av_.columns(0, all), order, av_.columns(0, all));
    h_ = part(h_, count, all - count, count, all - count);
    value_.erase(value_.begin(), value_.begin() + count);
    fixed_ += count;
    x_ -= count;
}

template <class T>
void LobpcgSpace<T>::absorb(BlockView<const T> block) {
    for (int first = 0; first < block.cols; first += max_width_) {
        const int count = std::min(max_width_, block.cols - first);
        copy(ctx_, block.columns(first, count), basis_.columns(fixed_ + x_, count));
        take_in(count, false);
    }
}

/// With B the columns are B times random ones: a null vector of B has no component of them. If it
/// is one of A as well, residuals have no such component either; otherwise X would keep it, and its
/// length in proportion to its length in B would grow with every step.
template <class T>
void LobpcgSpace<T>::absorb_random(int count) {
    const BlockView<T> x = basis_.columns(fixed_ + x_, count);
    const bool multiplied = with_b_ && 3 * std::int64_t{count} <= a_.row_map().global_rows();
    const BlockView<T> random = multiplied ? w(count) : x;
    fill_random(ctx_, seed_ + 1 + 0x9e3779b97f4a7c15u * ++random_streams_, a_.row_map().first_row(),
                0, random);
    GuardedProduct product;
    if (multiplied) {
        product.apply<T>(ctx_, *inner_.b, random, x);
    }
    try {
        take_in(count, true);
    } catch (const NumericalError&) {
        product.rethrow();
        throw;
    }
}

template <class T>
void LobpcgSpace<T>::take_in(int count, bool replace) {
    p_ = 0;
    const int columns = orthonormalise_in_place(fixed_ + x_, count, replace);
    if (columns > 0) {
        a_.apply(ctx_, basis_.columns(fixed_ + x_, columns), av_.columns(x_, columns));
        p_ = columns;
        ritz_of_v();
        p_ = 0;
    }
    h_ = part(h_, 0, x_, 0, x_);
}

template <class T>
void LobpcgSpace<T>::refresh() {
    x_ = orthonormalise_in_place(fixed_, x_, false);
    p_ = orthonormalise_in_place(fixed_ + x_, p_, false);
    a_.apply(ctx_, v(), av());
    ritz_of_v();
    age_ = 0;
}

/// Computes the Ritz vectors of [X P]: the best become X, the others P.
template <class T>
void LobpcgSpace<T>::ritz_of_v() {
    const int n = x_ + p_;
    SmallMatrix<T> h(n, n);
    tsmttsm(ctx_, T(1), v(), av(), T(0), h);
    check_product(h, "the basis");
    // ||x||_2^2 >= 1 / ||B||: elements below rounding of ||A|| / ||B|| count as zero.
    check_hermitian(h, with_b_ ? bounds_.norm / static_cast<double>(inner_.norm) : bounds_.norm);
    const Ritz ritz = ritz_of(hermitian_part(h));
    tsmm(ctx_, T(1), v(), ritz.vectors.view(), T(0), v());
    tsmm(ctx_, T(1), av(), ritz.vectors.view(), T(0), av());
    if (with_b_) {
        tsmm(ctx_, T(1), b_basis(fixed_, n), ritz.vectors.view(), T(0), b_basis(fixed_, n));
    }
    h_ = SmallMatrix<T>(n, n);
    for (int j = 0; j < n; ++j) {
        h_(j, j) = T(static_cast<Real>(ritz.values[static_cast<std::size_t>(j)]));
    }
    x_ = std::min(max_width_, n);
    p_ = n - x_;
    value_ = ritz.values;
    value_.resize(static_cast<std::size_t>(x_));
}

template <class T>
typename LobpcgSpace<T>::Ritz LobpcgSpace<T>::ritz_of(const SmallMatrix<T>& h) {
    const HermitianEigen<T> eigen = projected_eigen(ctx_, h);
    if (!eigen.converged) {
        fail("the dense eigensolver failed on a projected matrix of " + std::to_string(h.rows()) +
             " rows");
    }
    const int n = h.rows();
    Ritz result{{}, SmallMatrix<T>(n, n)};
    for (int j = 0; j < n; ++j) {
        const int from = which_ == Which::smallest ? j : n - 1 - j;
        result.values.push_back(static_cast<double>(eigen.values[static_cast<std::size_t>(from)]));
        for (int i = 0; i < n; ++i) {
            result.vectors(i, j) = eigen.vectors(i, from);
        }
        if (!with_b_) {
            bounds_.norm = std::max(bounds_.norm, std::abs(result.values.back()));
            bounds_.low = std::min(bounds_.low, result.values.back());
            bounds_.high = std::max(bounds_.high, result.values.back());
        }
    }
    return result;
}

template <class T>
void LobpcgSpace<T>::measure() {
    SmallMatrix<T> values(x_, x_);
    for (int j = 0; j < x_; ++j) {
        values(j, j) = T(static_cast<Real>(ritz_value(j)));
    }
    residual_gram_ = SmallMatrix<T>(x_, x_);
    copy(ctx_, av_.columns(0, x_), w(x_));
    const BlockView<const T> bx = with_b_ ? b_basis(fixed_, x_) : x();
    if (fixed_ == 0) {
        tsmm_gram(ctx_, T(-1), bx, values.view(), T(1), w(x_), residual_gram_.view());
    } else {
        const BlockView<const T> bq = with_b_ ? b_basis(0, fixed_) : basis_.columns(0, fixed_);
        SmallMatrix<T> c(fixed_, x_);
        tsmm(ctx_, T(-1), bx, values.view(), T(1), w(x_));
        tsmttsm(ctx_, T(1), basis_.columns(0, fixed_), w(x_), T(0), c);
        tsmm_gram(ctx_, T(-1), bq, c.view(), T(1), w(x_), residual_gram_.view());
    }
    check_product(residual_gram_, "the Ritz vectors");
    std::vector<Real> length(static_cast<std::size_t>(x_), Real(1));
    if (with_b_) {
        norms(ctx_, x(), std::span<Real>(length));
    }
    sizes_.clear();
    for (int j = 0; j < x_; ++j) {
        const auto of_x = static_cast<double>(length[static_cast<std::size_t>(j)]);
        const auto square = static_cast<double>(real_part(residual_gram_(j, j)));
        sizes_.push_back({std::sqrt(std::max(0.0, square)) / of_x, of_x});
    }
}

template <class T>
double LobpcgSpace<T>::length_in_b(int j) const {
    const double length = sizes_[static_cast<std::size_t>(j)].length;
    return with_b_ ? 1 / (length * length * static_cast<double>(inner_.norm)) : 1;
}

template <class T>
void LobpcgSpace<T>::require_length(int count) const {
    for (int j = 0; j < std::min(count, static_cast<int>(sizes_.size())); ++j) {
        if (length_in_b(j) <= singular_units * static_cast<double>(epsilon_v<T>)) {
            throw_indefinite(IndefiniteError::Operand::mass,
                             "LOBPCG: B is not positive definite to rounding: in iteration " +
                                 std::to_string(steps_) +
                                 " x^H B x = " + number_text(length_in_b(j), 2) +
                                 " ||B|| ||x||^2 for a wanted Ritz vector x" + singular_mass_cure);
        }
    }
}

template <class T>
double LobpcgSpace<T>::scale(int j) const {
    return bounds_.norm +
           (with_b_ ? std::abs(ritz_value(j)) * static_cast<double>(inner_.norm) : 0);
}

template <class T>
double LobpcgSpace<T>::relative_residual(int j) const {
    return residual(j) == 0 ? 0 : residual(j) / scale(j);
}

template <class T>
void LobpcgSpace<T>::advance(const std::vector<int>& active) {
    ++steps_;
    ++age_;
    const int count = static_cast<int>(active.size());
    if (count < x_) {
        gather_columns(ctx_, w(x_), active, w(count));
    }
    const Directions d = directions(active);

    const int n = x_ + p_;
    const int all = n + d.on_w.cols();
    SmallMatrix<T> h(all, all);
    put(h_, 0, 0, h);
    put(d.v_a_d, 0, n, h);
    put(adjoint(d.v_a_d), n, 0, h);
    put(d.d_a_d, n, n, h);
    const Ritz ritz = ritz_of(h);

    // P: the part of the old X that the new X lacks, combined from the other Ritz vectors. P is
    // therefore orthogonal to X and as accurate as these vectors, however small it is (Duersch et
    // al., section 4.2).
    const int new_x = std::min(max_width_, all);
    SmallMatrix<T> others = part(ritz.vectors, 0, all, new_x, all - new_x);
    SmallMatrix<T> old_x(all - new_x, count);
    for (int i = 0; i < all - new_x; ++i) {
        for (int j = 0; j < count; ++j) {
            old_x(i, j) = conjugate(others(active[static_cast<std::size_t>(j)], i));
        }
    }
    const SmallMatrix<T> p = product(others, orthonormal_columns(old_x, Real(4) * epsilon_v<T>));
    SmallMatrix<T> coefficients(all, new_x + p.cols());
    put(part(ritz.vectors, 0, all, 0, new_x), 0, 0, coefficients);
    put(p, 0, new_x, coefficients);
    update(d, coefficients);

    h_ = SmallMatrix<T>(new_x + p.cols(), new_x + p.cols());
    put(hermitian_part(product(adjoint(p), product(h, p))), new_x, new_x, h_);
    for (int j = 0; j < new_x; ++j) {
        h_(j, j) = T(static_cast<Real>(ritz.values[static_cast<std::size_t>(j)]));
    }
    x_ = new_x;
    p_ = p.cols();
    value_ = ritz.values;
    value_.resize(static_cast<std::size_t>(x_));
}

/// Throws if Y = T X shows that the preconditioner T is not positive definite. Allows violations at
/// the level of rounding, as an incomplete LU factorisation of a Hermitian matrix produces them.
template <class T>
void LobpcgSpace<T>::require_positive(BlockView<const T> x, BlockView<const T> y,
                                      const std::string& name) {
    const auto columns = static_cast<std::size_t>(x.cols);
    std::vector<T> sums(3 * columns);
    const std::span<T> all(sums);
    dots(ctx_, x, y, all.first(columns), Reduce::this_rank);
    dots(ctx_, x, x, all.subspan(columns, columns), Reduce::this_rank);
    dots(ctx_, y, y, all.last(columns), Reduce::this_rank);
    ctx_.comm().sum(all);
    for (std::size_t j = 0; j < columns; ++j) {
        if (!is_finite(sums[2 * columns + j])) {
            preconditioner_->rethrow_pending();
            fail("the preconditioner failed on some rank, or its product with column " +
                 std::to_string(j) + " is not finite");
        }
        const Real product = real_part(sums[j]);
        const Real lengths =
            std::sqrt(real_part(sums[columns + j])) * std::sqrt(real_part(sums[2 * columns + j]));
        if (product < -std::sqrt(epsilon_v<T>) * lengths) {
            throw_indefinite(IndefiniteError::Operand::preconditioner,
                             "LOBPCG: the preconditioner T is not positive definite: " + name +
                                 "^H T " + name + " = " +
                                 number_text(static_cast<double>(product / lengths)) + " ||" +
                                 name + "|| ||T " + name + "|| for column " + std::to_string(j) +
                                 " in iteration " + std::to_string(steps_));
        }
    }
}

/// W <- T W; returns false if there is no T.
template <class T>
bool LobpcgSpace<T>::precondition(int count) {
    if (preconditioner_) {
        const bool look = age_ == 1;  // the first step after fresh products
        if (look) {
            // X reveals an indefinite T best, because T resembles the inverse of A.
            const BlockView<T> tx = waw_.columns(count, x_);
            preconditioner_->apply(ctx_, x(), tx);
            require_positive(x(), tx, "x");
        }
        preconditioner_->apply(ctx_, w(count), aw(count));
        if (look) {
            require_positive(w(count), aw(count), "r");
        }
        copy(ctx_, aw(count), w(count));
        return true;
    }
    const double spread = bounds_.high - bounds_.low;
    if (!polynomial_ || spread <= flat * bounds_.norm) {
        return false;
    }
    const double sigma = ritz_value(0);
    const double reach = which_ == Which::smallest ? bounds_.high - sigma : sigma - bounds_.low;
    const double length = std::max(reach, least_reach * spread);
    const double far = which_ == Which::smallest ? sigma + length : sigma - length;
    apply_chebyshev_inverse(ctx_, a_, polynomial_degree, sigma, far, w(count), y_.columns(0, count),
                            z_.columns(0, count));
    return true;
}

/// W <- W - [Q X P] [Q X P]^H W, and its Gram matrix. Returns true if enough of each column is left
/// for implicit_directions() to finish the orthogonalisation by coefficients.
template <class T>
bool LobpcgSpace<T>::project(int count, SmallMatrix<T>& gram) {
    const BlockView<const T> against = basis_.columns(0, fixed_ + x_ + p_);
    SmallMatrix<T> c(against.cols, count);
    tsmttsm(ctx_, T(1), against, w(count), T(0), c);
    tsmm_gram(ctx_, T(-1), against, c.view(), T(1), w(count), gram.view());
    bool good = true;
    for (int j = 0; j < count; ++j) {
        Real taken = 0;
        for (int i = 0; i < c.rows(); ++i) {
            taken += abs_squared(c(i, j));
        }
        if (!std::isfinite(taken) || !is_finite(gram(j, j))) {
            a_.rethrow_pending();
            if (preconditioner_) {
                preconditioner_->rethrow_pending();
            }
            fail(
                "the preconditioner or the operator failed on some rank, or the product with "
                "column " +
                std::to_string(j) + " of the residuals is not finite");
        }
        // Compares the square of the cancellation with eps^(-1/2).
        good = good && taken * std::sqrt(epsilon_v<T>) <= real_part(gram(j, j));
    }
    return good;
}

template <class T>
typename LobpcgSpace<T>::Directions LobpcgSpace<T>::directions(const std::vector<int>& active) {
    const int count = static_cast<int>(active.size());
    const bool preconditioned = precondition(count);
    if (with_b_) {
        return explicit_directions(count);
    }
    // Residuals are orthogonal to [X P] up to rounding.
    SmallMatrix<T> gram = submatrix(residual_gram_, active);
    if ((preconditioned || fixed_ > 0) && !project(count, gram)) {
        return explicit_directions(count);
    }
    std::optional<Directions> d = implicit_directions(count, gram);
    return d ? *std::move(d) : explicit_directions(count);
}

/// Makes D orthonormal through its coefficients alone, for a W that is nearly orthogonal to [X P]
/// and has the Gram matrix `gram`. Returns nullopt if too much accuracy would be lost.
template <class T>
std::optional<typename LobpcgSpace<T>::Directions> LobpcgSpace<T>::implicit_directions(
    int count, const SmallMatrix<T>& gram) {
    if (!normaliser(gram).good) {
        return std::nullopt;
    }
    const int n = x_ + p_;
    a_.apply(ctx_, w(count), aw(count));
    SmallMatrix<T> on_v(n, 2 * count);
    SmallMatrix<T> w_a_w(count, count);
    tsmttsm(ctx_, T(1), v(), waw_.columns(0, 2 * count), T(0), on_v);
    tsmttsm(ctx_, T(1), w(count), aw(count), T(0), w_a_w);
    check_product(w_a_w, "the residuals");
    const SmallMatrix<T> c = part(on_v, 0, n, 0, count);
    const SmallMatrix<T> v_a_w = part(on_v, 0, n, count, count);
    check_product(v_a_w, "the residuals");
    const SmallMatrix<T> c_adjoint = adjoint(c);
    const Normaliser<T> unit = normaliser(sum(gram, Real(-1), product(c_adjoint, c)));
    if (!unit.good) {
        return std::nullopt;
    }
    const SmallMatrix<T> mixed = product(c_adjoint, v_a_w);
    SmallMatrix<T> inner = sum(w_a_w, Real(-1), sum(mixed, Real(1), adjoint(mixed)));
    inner = sum(inner, Real(1), product(c_adjoint, product(h_, c)));
    inner = product(adjoint(unit.s), product(inner, unit.s));
    check_hermitian(inner, bounds_.norm);
    Directions d;
    d.on_v = sum(SmallMatrix<T>(n, count), Real(-1), product(c, unit.s));
    d.on_w = unit.s;
    d.v_a_d = product(sum(v_a_w, Real(-1), product(h_, c)), unit.s);
    d.d_a_d = hermitian_part(inner);
    return d;
}

template <class T>
typename LobpcgSpace<T>::Directions LobpcgSpace<T>::explicit_directions(int count) {
    const int n = x_ + p_;
    const BlockView<const T> against = basis_.columns(0, fixed_ + n);
    const BlockView<const T> b_against = b_basis(0, fixed_ + n);
    int columns = orthonormalise(against, b_against, w(count), bw(count), false);
    if (columns == 0) {
        // All residuals lie in the space up to rounding: only a random direction leads out of it.
        fill_random(ctx_, seed_ + 2 + 0x9e3779b97f4a7c15u * ++random_streams_,
                    a_.row_map().first_row(), 0, w(1));
        columns = orthonormalise(against, b_against, w(1), bw(1), false);
    }
    a_.apply(ctx_, w(columns), aw(columns));
    Directions d{SmallMatrix<T>(n, columns), SmallMatrix<T>::identity(columns),
                 SmallMatrix<T>(n, columns), SmallMatrix<T>(columns, columns)};
    tsmttsm(ctx_, T(1), v(), aw(columns), T(0), d.v_a_d);
    tsmttsm(ctx_, T(1), w(columns), aw(columns), T(0), d.d_a_d);
    check_product(d.v_a_d, "the directions");
    check_product(d.d_a_d, "the directions");
    double scale = bounds_.norm;
    if (with_b_) {
        std::vector<Real> length(static_cast<std::size_t>(columns));
        norms(ctx_, w(columns), std::span<Real>(length));
        for (const Real l : length) {
            scale = std::max(scale, bounds_.norm * static_cast<double>(l * l));
        }
    }
    check_hermitian(d.d_a_d, scale);
    d.d_a_d = hermitian_part(d.d_a_d);
    return d;
}

/// [X P] <- [X P D] C, and the same for their products with A and B.
template <class T>
void LobpcgSpace<T>::update(const Directions& d, const SmallMatrix<T>& coefficients) {
    const int n = x_ + p_;
    const int count = d.on_w.cols();
    const int wide = std::max(n, coefficients.cols());
    const SmallMatrix<T> of_d = part(coefficients, n, count, 0, coefficients.cols());
    SmallMatrix<T> of_v(wide, wide);
    put(sum(part(coefficients, 0, n, 0, coefficients.cols()), Real(1), product(d.on_v, of_d)), 0, 0,
        of_v);
    SmallMatrix<T> of_w(count, wide);
    put(product(d.on_w, of_d), 0, 0, of_w);
    const auto combine = [&](BlockView<const T> w, BlockView<T> v) {
        if (count > 0) {
            tsmm(ctx_, T(1), w, of_w.view(), T(1), v, of_v.view());
        } else {
            tsmm(ctx_, T(1), v, of_v.view(), T(0), v);
        }
    };
    combine(w(count), basis_.columns(fixed_, wide));
    combine(aw(count), av_.columns(0, wide));
    if (with_b_) {
        combine(bw(count), b_basis(fixed_, wide));
    }
}

template <class T>
void LobpcgSpace<T>::save(int first, SolverState<T>& state) const {
    state.numbers["fixed"] = {static_cast<double>(fixed_ - first)};
    state.numbers["x"] = {static_cast<double>(x_)};
    state.numbers["p"] = {static_cast<double>(p_)};
    state.blocks["basis"] = basis_.columns(first, fixed_ - first + x_ + p_);
}

template <class T>
void LobpcgSpace<T>::restore(const SavedState<T>& state, bool as_they_are) {
    const int room = basis_.capacity() - fixed_;
    const int fixed = state.count("fixed", room);
    x_ = static_cast<int>(state.whole("x", 1, max_width_));
    p_ = state.count("p", max_width_);
    if (fixed + x_ + p_ > room) {
        state.refuse("a basis of " + std::to_string(fixed + x_ + p_) +
                     " columns, but there is room only for " + std::to_string(room));
    }
    state.read(ctx_, "basis", basis_.columns(fixed_, fixed + x_ + p_));
    if (fixed > 0 && orthonormalise_in_place(fixed_, fixed, false) < fixed) {
        state.refuse("its " + std::to_string(fixed) + " locked pairs are linearly dependent");
    }
    fixed_ += fixed;
    if (!as_they_are) {
        refresh();
        return;
    }
    p_ = 0;
    if (const int x = x_; (x_ = orthonormalise_in_place(fixed_, x, false)) < x) {
        state.refuse("its " + std::to_string(x) + " pairs are linearly dependent");
    }
    a_.apply(ctx_, v(), av());
    h_ = SmallMatrix<T>(x_, x_);
    tsmttsm(ctx_, T(1), v(), av(), T(0), h_);
    check_product(h_, "the basis");
    value_.clear();
    for (int j = 0; j < x_; ++j) {
        value_.push_back(static_cast<double>(std::real(h_(j, j))));
    }
}

#define QUIVER_INSTANTIATE(T) template class LobpcgSpace<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
