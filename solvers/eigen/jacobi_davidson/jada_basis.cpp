// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/jacobi_davidson/jada_basis.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/prepare.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/jacobi_davidson/projected_operator.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/search/block_memory.hpp"
#include "solvers/eigen/search/rayleigh_ritz.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// Columns that a refinement multiplies at once.
constexpr int refine_width = 32;
/// Steps and columns of the block Lanczos run that estimates ||A||.
constexpr int norm_steps = 6;
constexpr int norm_width = 2;
/// Elements of W^H W below this many units of round-off of ||A||^2 are noise.
constexpr double gram_noise = 16;
/// Eigenvalues of G whose relative difference is at most this count as equal: in a search space
/// that is not yet accurate, their eigenvectors are mixtures.
constexpr double fold_gap = 0.05;

std::vector<int> sequence(int count) {
    std::vector<int> result(static_cast<std::size_t>(count));
    std::iota(result.begin(), result.end(), 0);
    return result;
}

}  // namespace

template <class T>
JadaBasis<T>::JadaBasis(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                        int max_search, int max_locked)
    : ctx_(ctx),
      a_(problem.a),
      b_operator_(problem.b),
      inner_(inner_product(ctx, problem.b)),
      which_(options.which),
      target_(options.which == Which::target ? options.target : 0),
      seed_(options.seed),
      fixed_(problem.constraints.cols),
      rows_(dimensions(problem)),
      max_search_(max_search),
      max_locked_(max_locked) {
    if (problem.b != nullptr) {
        b_.emplace(*problem.b);
    }
    const int columns = fixed_ + max_locked + max_search;
    const int products = std::max(max_locked, max_search);
    const RowMap& map = a_.row_map();
    claim_block_memory<T>(ctx, map, (b_ ? 2 : 1) * columns + products, "Jacobi-Davidson: blocks");
    const std::vector<int> widths = shrinking(std::max(1, (max_locked - options.k) / 2));
    prepare_products<T>(ctx, {.rows = map.local_rows(),
                              .blocks = widths,
                              .bases = growing(columns),
                              .stride = columns,
                              .kept = {max_search / 2},
                              .rotations = true});
    a_.prepare(ctx, widths, true);
    ctx.comm().agree([&] {
        basis_ = BlockVector<T>(ctx, map, 0, columns);
        w_ = BlockVector<T>(ctx, map, 0, products);
        if (b_) {
            b_basis_ = BlockVector<T>(ctx, map, 0, columns);
        }
    });
    take_constraints(problem.constraints);
    estimate_norm(problem.a);
}

template <class T>
void JadaBasis<T>::fail(const std::string& text) {
    a_.rethrow_pending();
    if (b_) {
        b_->rethrow_pending();
    }
    NumericalError error("Jacobi-Davidson: " + text);
    error.set_collective();  // all ranks hold the same small matrices
    throw error;
}

template <class T>
void JadaBasis<T>::take_constraints(BlockView<const T> x) {
    if (x.cols == 0) {
        return;
    }
    copy(ctx_, x, basis_.columns(0, x.cols));
    const int rank = orthonormalise(0, x.cols, false);
    if (rank < x.cols) {
        InputError error("eigensolver: " + std::to_string(x.cols) +
                         " constraint vectors are linearly dependent, of rank " +
                         std::to_string(rank));
        error.set_collective();
        throw error;
    }
}

/// Estimates ||A|| by a few steps of block Lanczos with A alone, which also check whether A is
/// Hermitian.
template <class T>
void JadaBasis<T>::estimate_norm(Operator<T>& a) {
    LanczosBasis<T> lanczos(ctx_, EigenProblem<T>{a}, Which::largest, seed_,
                            (norm_steps + 1) * norm_width, 0, norm_width);
    lanczos.start(norm_width);
    for (int step = 0; step < norm_steps && lanczos.next_width() > 0 && !lanczos.full(); ++step) {
        lanczos.step();
    }
    if (lanczos.size() > 0) {
        lanczos.ritz();
    }
    norm_ = lanczos.norm();
    // If A is negligible beside the target, A - target I rounds to -target I.
    if (norm_ <= static_cast<double>(epsilon_v<T>) * std::abs(target_)) {
        norm_ = std::abs(target_);
    }
    norm_applications_ = lanczos.applications();
    products_ = lanczos.steps();
}

template <class T>
int JadaBasis<T>::capacity() const {
    return static_cast<int>(std::min<std::int64_t>(max_search_, rows_ - locked_));
}

template <class T>
double JadaBasis<T>::key(double value) const {
    switch (which_) {
        case Which::smallest:
            return value;
        case Which::largest:
            return -value;
        default:
            return std::abs(value - target_);
    }
}

template <class T>
double JadaBasis<T>::scale(double value) const {
    return b_ ? norm_ + std::abs(value) * static_cast<double>(inner_.norm) : norm_;
}

template <class T>
OrthOptions JadaBasis<T>::orth_options() {
    OrthOptions options;
    options.seed = seed_ + 0x9e3779b97f4a7c15u * ++random_streams_;
    return options;
}

template <class T>
int JadaBasis<T>::orthonormalise(int begin, int width, bool replace) {
    OrthOptions options = orth_options();
    options.replace_deficient = replace;
    const BlockView<T> none;
    try {
        return block_gram_schmidt<T>(ctx_, a_.row_map(), inner_, basis_.columns(0, begin),
                                     b_ ? b_basis_.columns(0, begin) : none,
                                     basis_.columns(begin, width),
                                     b_ ? b_basis_.columns(begin, width) : none, options)
            .columns;
    } catch (const IndefiniteError&) {
        throw;
    } catch (const NumericalError& error) {
        fail(std::string("after ") + std::to_string(products_) +
             " block products: " + error.what());
    }
}

template <class T>
void JadaBasis<T>::forget_search_space() {
    size_ = 0;
    pairs_ = 0;
    h_ = SmallMatrix<T>(0, 0);
    g_ = SmallMatrix<T>(0, 0);
    rotated_ = false;
}

template <class T>
void JadaBasis<T>::start(BlockView<const T> guesses, int width) {
    forget_search_space();
    const int columns = std::min(std::max(width, guesses.cols), room());
    const int given = std::min(guesses.cols, columns);
    const BlockView<T> block = next(columns);
    if (given > 0) {
        copy(ctx_, guesses.columns(0, given), block.columns(0, given));
    }
    fill_random(ctx_, orth_options().seed, a_.row_map().first_row(), 0,
                block.columns(given, columns - given));
    expand(columns);
}

template <class T>
void JadaBasis<T>::multiply(int begin, int width, BlockView<T> w) {
    const BlockView<T> x = basis_.columns(begin, width);
    ++products_;
    a_.apply(ctx_, x, w);
    if (target_ != 0) {
        axpby(ctx_, T(static_cast<Real>(-target_)), b_basis().columns(begin, width), T(1), w);
    }
}

template <class T>
int JadaBasis<T>::expand(int width) {
    const int before = first() + size_;
    const int added = std::min(orthonormalise(before, width, true), room());
    if (added == 0) {
        return 0;
    }
    const BlockView<T> w = w_.columns(size_, added);
    multiply(before, added, w);
    SmallMatrix<T> coefficients(before + added, added);
    tsmttsm(ctx_, T(1), basis_.columns(0, before + added), w, T(0), coefficients);
    for (int j = 0; j < added; ++j) {
        for (int i = 0; i < coefficients.rows(); ++i) {
            if (!is_finite(coefficients(i, j))) {
                fail("the operator failed on some rank or its product is not finite, in column " +
                     std::to_string(j) + " of block product " + std::to_string(products_));
            }
        }
    }
    if (first() > 0) {
        tsmm(ctx_, T(-1), b_basis().columns(0, first()), coefficients.view().row_range(0, first()),
             T(1), w);
    }
    // Until the first rotation W is as accurate as the products, so H can be checked for symmetry.
    SmallMatrix<T> mirrored(0, 0);
    if (!rotated_ && size_ > 0) {
        mirrored = SmallMatrix<T>(size_, added);
        tsmttsm(ctx_, T(1), w_.columns(0, size_), basis_.columns(before, added), T(0), mirrored);
    }
    append(coefficients, mirrored, added);
    if (which_ == Which::target) {
        append_gram(added);
    }
    size_ += added;
    return added;
}

template <class T>
void JadaBasis<T>::append(const SmallMatrix<T>& coefficients, const SmallMatrix<T>& mirrored,
                          int width) {
    SmallMatrix<T> h = enlarged(h_, size_ + width);
    HermitianDefect defect(coefficient_norm_);
    for (int j = 0; j < width; ++j) {
        for (int i = 0; i < size_ + width; ++i) {
            const T above = coefficients(first() + i, j);
            defect.see(above);
            if (i < size_) {
                h(i, size_ + j) = above;
                h(size_ + j, i) = conjugate(above);
                if (mirrored.rows() > 0) {
                    defect.compare(above, mirrored(i, j));
                }
            } else {
                const T below = conjugate(coefficients(first() + size_ + j, i - size_));
                defect.compare(above, below);
                h(i, size_ + j) = (above + below) / Real(2);
            }
        }
    }
    coefficient_norm_ = defect.norm();
    defect.see(norm_);
    defect.check<T>([&](const std::string& text) { fail(text); },
                    "in block product " + std::to_string(products_) + " ");
    h_ = std::move(h);
}

template <class T>
void JadaBasis<T>::append_gram(int width) {
    const int all = size_ + width;
    SmallMatrix<T> columns(all, width);
    tsmttsm(ctx_, T(1), w_.columns(0, all), w_.columns(size_, width), T(0), columns);
    g_ = enlarged(g_, all);
    for (int i = 0; i < all; ++i) {
        for (int j = 0; j < width; ++j) {
            g_(i, size_ + j) = columns(i, j);
            g_(size_ + j, i) = conjugate(columns(i, j));
        }
    }
}

template <class T>
void JadaBasis<T>::ritz() {
    value_.clear();
    order_key_.clear();
    if (which_ == Which::target) {
        ritz_at_target();
    } else {
        ritz_at_end();
    }
    for (int j = 0; j < pairs_ && !b_; ++j) {
        norm_ = std::max(norm_, std::abs(value(j)));
    }
}

template <class T>
void JadaBasis<T>::ritz_at_end() {
    const HermitianEigen<T> eigen = hermitian_eigen(h_);
    if (!eigen.converged) {
        fail("the dense eigensolver failed on a projected matrix of " + std::to_string(size_) +
             " rows");
    }
    std::vector<int> order = sequence(size_);
    if (which_ == Which::largest) {
        std::reverse(order.begin(), order.end());
    }
    for (const int j : order) {
        value_.push_back(static_cast<double>(eigen.values[static_cast<std::size_t>(j)]));
        order_key_.push_back(key(value_.back()));
    }
    s_ = select_columns(eigen.vectors, order, 0, size_);
    pairs_ = size_;
}

template <class T>
void JadaBasis<T>::ritz_at_target() {
    const HermitianEigen<T> folded = hermitian_eigen(g_);
    // Only if B = I does the better half of V contain all components of V along eigenvectors near
    // the target. The half must not end between equal values: eigenvectors for tau - d and tau + d
    // share the folded value d^2, and a part of their space holds only mixtures of both.
    pairs_ = b_ ? size_ : (size_ + 1) / 2;
    const auto folded_value = [&](int j) {
        return static_cast<double>(folded.values[static_cast<std::size_t>(j)]);
    };
    const double noise = gram_noise * static_cast<double>(epsilon_v<T>) * norm_ * norm_;
    while (pairs_ < size_ && folded_value(pairs_) - folded_value(pairs_ - 1) <=
                                 noise + fold_gap * std::abs(folded_value(pairs_))) {
        ++pairs_;
    }
    // ||y||_2^2 / ||B|| <= ||y||^2 in the norm of B^-1, and in that norm ||W s|| >= |theta|. The
    // factor 2 allows for an estimate of ||B|| that is too small.
    const double mass = b_ ? 2 * static_cast<double>(inner_.norm) : 1;
    const SmallMatrix<T> best = select_columns(folded.vectors, sequence(size_), 0, pairs_);
    const HermitianEigen<T> eigen = hermitian_eigen(congruence(best, h_));
    if (!folded.converged || !eigen.converged) {
        fail("the dense eigensolver failed on a projected matrix of " + std::to_string(size_) +
             " rows");
    }
    std::vector<double> length;
    for (int j = 0; j < pairs_; ++j) {
        double squares = 0;
        for (int i = 0; i < pairs_; ++i) {
            squares +=
                static_cast<double>(abs_squared(eigen.vectors(i, j))) *
                std::max(0.0, static_cast<double>(folded.values[static_cast<std::size_t>(i)]));
        }
        const double theta =
            std::abs(static_cast<double>(eigen.values[static_cast<std::size_t>(j)]));
        // Values of G below its rounding errors carry no information.
        const bool known = squares > noise;
        length.push_back(known ? std::max(std::sqrt(squares / mass), theta) : theta);
    }
    std::vector<int> order = sequence(pairs_);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
        return length[static_cast<std::size_t>(i)] < length[static_cast<std::size_t>(j)];
    });
    const SmallMatrix<T> s = product(best, select_columns(eigen.vectors, order, 0, pairs_));
    s_ = folded.vectors;
    for (int j = 0; j < pairs_; ++j) {
        const auto from = static_cast<std::size_t>(order[static_cast<std::size_t>(j)]);
        value_.push_back(target_ + static_cast<double>(eigen.values[from]));
        order_key_.push_back(length[from]);
        for (int i = 0; i < size_; ++i) {
            s_(i, j) = s(i, j);
        }
    }
}

template <class T>
std::vector<double> JadaBasis<T>::form(BlockView<T> x, BlockView<T> bx, BlockView<T> r) {
    const SmallMatrix<T> s = select_columns(s_, sequence(x.cols), 0, x.cols);
    tsmm(ctx_, T(1), space(), s.view(), T(0), x);
    tsmm(ctx_, T(1), w_.columns(0, size_), s.view(), T(0), r);
    if (b_) {
        tsmm(ctx_, T(1), b_basis_.columns(first(), size_), s.view(), T(0), bx);
    }
    const auto width = static_cast<std::size_t>(x.cols);
    std::vector<T> minus_theta;
    minus_theta.reserve(width);
    for (int j = 0; j < x.cols; ++j) {
        minus_theta.push_back(T(static_cast<Real>(target_ - value(j))));
    }
    axpby<T>(ctx_, minus_theta, b_ ? bx : x, std::vector<T>(width, T(1)), r);
    std::vector<Real> length(width);
    norms(ctx_, r, std::span<Real>(length));
    std::vector<double> result(length.begin(), length.end());
    if (b_) {
        norms(ctx_, x, std::span<Real>(length));
        for (std::size_t j = 0; j < width; ++j) {
            result[j] /= static_cast<double>(length[j]);
        }
    }
    return result;
}

template <class T>
void JadaBasis<T>::rotate(const std::vector<int>& columns, int lock) {
    const int keep = static_cast<int>(columns.size());
    const SmallMatrix<T> s = select_columns(s_, columns, 0, keep);
    const SmallMatrix<T> rest = select_columns(s_, columns, lock, keep);
    tsmm(ctx_, T(1), space(), s.view(), T(0), space().columns(0, keep));
    if (b_) {
        const BlockView<T> b_space = b_basis_.columns(first(), size_);
        tsmm(ctx_, T(1), b_space, s.view(), T(0), b_space.columns(0, keep));
    }
    tsmm(ctx_, T(1), w_.columns(0, size_), rest.view(), T(0), w_.columns(0, keep - lock));
    h_ = congruence(rest, h_);
    if (which_ == Which::target) {
        g_ = congruence(rest, g_);
    }
    std::vector<double> value;
    std::vector<double> order_key;
    for (int j = lock; j < keep; ++j) {
        const int from = columns[static_cast<std::size_t>(j)];
        if (from < pairs_) {
            value.push_back(this->value(from));
            order_key.push_back(this->order_key(from));
        }
    }
    value_ = std::move(value);
    order_key_ = std::move(order_key);
    pairs_ = static_cast<int>(value_.size());
    const BlockView<T> q = basis_.columns(first(), lock);
    const BlockView<T> bq = b_basis().columns(first(), lock);
    locked_ += lock;
    size_ = keep - lock;
    s_ = SmallMatrix<T>::identity(size_);
    rotated_ = true;
    remove_components<T>(ctx_, q, bq, w_.columns(0, size_));
}

template <class T>
void JadaBasis<T>::lock(const std::vector<int>& places, const std::vector<double>& residuals) {
    std::vector<int> columns = places;
    for (int j = 0; j < size_; ++j) {
        if (std::find(places.begin(), places.end(), j) == places.end()) {
            columns.push_back(j);
        }
    }
    for (const int j : places) {
        locked_value_.push_back(value(j));
        locked_residual_.push_back(residuals[static_cast<std::size_t>(j)]);
    }
    rotate(columns, static_cast<int>(places.size()));
    ++epoch_;
    refined_ = false;
}

template <class T>
void JadaBasis<T>::restart(int keep) {
    rotate(sequence(keep), 0);
    ctx_.emit(RestartEvent{"jd", products_, size_, keep, locked_});
}

template <class T>
void JadaBasis<T>::refine() {
    forget_search_space();
    ++epoch_;
    locked_ = orthonormalise(fixed_, locked_, false);
    const int n = locked_;
    const BlockView<T> x = basis_.columns(fixed_, n);
    const BlockView<T> bx = b_basis().columns(fixed_, n);
    const BlockView<T> ax = w_.columns(0, n);
    for (int begin = 0; begin < n; begin += refine_width) {
        const int width = std::min(refine_width, n - begin);
        multiply(fixed_ + begin, width, ax.columns(begin, width));
    }
    remove_components<T>(ctx_, basis_.columns(0, fixed_), b_basis().columns(0, fixed_), ax);
    const auto check = [&](const SmallMatrix<T>& h) {
        for (int j = 0; j < n; ++j) {
            if (!is_finite(h(j, j))) {
                fail(
                    "the operator failed on some rank or its product is not finite, in fresh "
                    "products of " +
                    std::to_string(n) + " locked pairs");
            }
        }
    };
    locked_value_.clear();
    locked_residual_.clear();
    for (const RitzPair& pair : rayleigh_ritz<T>(
             ctx_, x, bx, ax, target_, [&](double value) { return key(value); }, check,
             [&](const std::string& text) { fail(text); })) {
        locked_value_.push_back(pair.value);
        locked_residual_.push_back(pair.residual);
        if (!b_) {
            norm_ = std::max(norm_, std::abs(pair.value));
        }
    }
    refined_ = true;
}

template <class T>
void JadaBasis<T>::drop_beyond(int count) {
    locked_ = std::min(locked_, count);
    locked_value_.resize(static_cast<std::size_t>(locked_));
    locked_residual_.resize(static_cast<std::size_t>(locked_));
    ++epoch_;
}

template <class T>
void JadaBasis<T>::search_again_above(double tol) {
    std::vector<int> order;
    std::vector<int> above;
    std::vector<double> value;
    std::vector<double> residual;
    for (int j = 0; j < locked_; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (locked_residual_[at] <= tol * scale(locked_value_[at])) {
            order.push_back(j);
            value.push_back(locked_value_[at]);
            residual.push_back(locked_residual_[at]);
        } else {
            above.push_back(j);
        }
    }
    order.insert(order.end(), above.begin(), above.end());
    const BlockView<T> q = basis_.columns(fixed_, locked_);
    gather_columns(ctx_, q, order, q);
    if (b_) {
        const BlockView<T> bq = b_basis_.columns(fixed_, locked_);
        gather_columns(ctx_, bq, order, bq);
    }
    forget_search_space();
    locked_value_ = std::move(value);
    locked_residual_ = std::move(residual);
    locked_ -= static_cast<int>(above.size());
    ++epoch_;
    expand(std::min(static_cast<int>(above.size()), room()));
}

template <class T>
void JadaBasis<T>::extract(const std::vector<int>& order, BlockView<T> y) {
    gather_columns(ctx_, locked_columns(), order, y);
}

#define QUIVER_INSTANTIATE(T) template class JadaBasis<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
