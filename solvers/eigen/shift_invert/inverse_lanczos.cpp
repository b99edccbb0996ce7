// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/inverse_lanczos.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <utility>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {
namespace {

/// The largest component of a basis vector along a far vector that leaves the basis orthonormal to
/// rounding once it is removed.
constexpr double most_far_share = 1e-9;

}  // namespace

template <class W>
InverseLanczos<W>::InverseLanczos(ShiftedPencil<W>& pencil, const ShiftedFactor& factor,
                                  const std::vector<BlockVector<W>>& known, int far, int block,
                                  int columns, std::uint64_t seed)
    : pencil_(pencil), factor_(factor), far_(far), columns_(columns), block_(block), seed_(seed) {
    for (const BlockVector<W>& part : known) {
        known_ += part.width();
    }
    const int capacity = known_ + columns_ + block;
    basis_ = BlockVector<W>(pencil_.ctx(), pencil_.map(), capacity);
    b_basis_ = BlockVector<W>(pencil_.ctx(), pencil_.map(), pencil_.has_b() ? capacity : 0);
    take_known(known);
    start();
}

template <class W>
BlockView<const W> InverseLanczos<W>::images(int first, int count) const {
    return pencil_.has_b() ? b_basis_.columns(first, count) : basis_.columns(first, count);
}

template <class W>
void InverseLanczos<W>::take_known(const std::vector<BlockVector<W>>& known) {
    Context& ctx = pencil_.ctx();
    int to = 0;
    for (const BlockVector<W>& part : known) {
        copy(ctx, part.view(), basis_.columns(to, part.width()));
        to += part.width();
    }
    if (pencil_.has_b() && known_ > 0) {
        pencil_.inner().b->apply(ctx, std::as_const(basis_).columns(0, known_),
                                 b_basis_.columns(0, known_));
    }
}

template <class W>
void InverseLanczos<W>::start() {
    Context& ctx = pencil_.ctx();
    projected_ = SmallMatrix<W>(columns_, columns_);
    size_ = 0;
    const int width = std::min(block_, columns_);
    const BlockView<W> first = basis_.columns(known_, width);
    fill_random(ctx, seed_, 0, 0, first);
    if (pencil_.has_b()) {
        // (A - sigma B)^-1 B X has no components in the null space of a singular B, where the
        // B-norm would not limit their growth.
        BlockVector<W> bx(ctx, pencil_.map(), width);
        pencil_.inner().b->apply(ctx, BlockView<const W>(first), bx.view());
        pencil_.solve(factor_, std::as_const(bx).view(), first);
    }
    OrthOptions options;
    options.seed = ++seed_;
    const BlockView<W> none = {};
    next_ = block_gram_schmidt(ctx, pencil_.map(), pencil_.inner(),
                               std::as_const(basis_).columns(0, known_), images(0, known_),
                               basis_.columns(known_, width),
                               pencil_.has_b() ? b_basis_.columns(known_, width) : none, options)
                .columns;
    multiply_next(next_, known_);
}

/// B Q of new columns Q. The updates of block_gram_schmidt lose digits that every further block
/// would inherit.
template <class W>
void InverseLanczos<W>::multiply_next(int count, int at) {
    if (pencil_.has_b() && count > 0) {
        pencil_.inner().b->apply(pencil_.ctx(), std::as_const(basis_).columns(at, count),
                                 b_basis_.columns(at, count));
    }
}

template <class W>
void InverseLanczos<W>::step() {
    Context& ctx = pencil_.ctx();
    const int width = next_;
    const int all = known_ + size_ + width;
    // Z = (A - sigma B)^-1 B V_next; V H + V_new R = Z
    const BlockView<W> z = basis_.columns(all, width);
    pencil_.solve(factor_, images(known_ + size_, width), z);
    OrthOptions options;
    options.seed = ++seed_;
    const BlockView<W> none = {};
    const int held = all - far_;
    const OrthResult<W> orth = block_gram_schmidt(
        ctx, pencil_.map(), pencil_.inner(), std::as_const(basis_).columns(far_, held),
        images(far_, held), z, pencil_.has_b() ? b_basis_.columns(all, width) : none, options);
    for (int j = 0; j < width; ++j) {
        for (int i = 0; i < size_ + width; ++i) {
            projected_(i, size_ + j) = orth.h(known_ - far_ + i, j);
        }
    }
    multiply_next(orth.columns, all);
    size_ += width;
    coupling_ = orth.r;
    next_ = orth.columns;
}

template <class W>
bool InverseLanczos<W>::purge_far() {
    if (far_ == 0) {
        return true;
    }
    Context& ctx = pencil_.ctx();
    const int count = size_ + next_;
    SmallMatrix<W> share(far_, count);
    tsmttsm(ctx, W(1), images(0, far_), std::as_const(basis_).columns(known_, count), W(0), share);
    double largest = 0;
    for (int i = 0; i < far_; ++i) {
        for (int j = 0; j < count; ++j) {
            largest = std::max(largest, std::abs(share(i, j)));
        }
    }
    if (!(largest <= most_far_share)) {
        return false;
    }
    tsmm(ctx, W(-1), std::as_const(basis_).columns(0, far_), share.view(), W(1),
         basis_.columns(known_, count));
    if (pencil_.has_b()) {
        tsmm(ctx, W(-1), std::as_const(b_basis_).columns(0, far_), share.view(), W(1),
             b_basis_.columns(known_, count));
    }
    return true;
}

template <class W>
const std::vector<InversePair>& InverseLanczos<W>::fill_basis() {
    do {
        while (next_ > 0 && size_ + next_ <= columns_) {
            step();
        }
        if (purge_far()) {
            break;
        }
        far_ = 0;
        start();
    } while (true);
    SmallMatrix<W> h(size_, size_);
    for (int i = 0; i < size_; ++i) {
        for (int j = 0; j <= i; ++j) {
            h(i, j) = conjugate(projected_(j, i));
        }
    }
    HermitianEigen<W> eigen = projected_eigen(pencil_.ctx(), h);
    if (!eigen.converged) {
        throw Error(ErrorKind::other, "shift-invert: the dense eigensolver failed on " +
                                          std::to_string(size_) + " rows");
    }
    eigenvectors_ = std::move(eigen.vectors);
    order_.resize(static_cast<std::size_t>(size_));
    std::iota(order_.begin(), order_.end(), 0);
    const auto theta = [&](int j) { return eigen.values[static_cast<std::size_t>(j)]; };
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int i, int j) { return std::abs(theta(i)) > std::abs(theta(j)); });
    pairs_.clear();
    for (const int j : order_) {
        // The residual of x = V s is V_next R s_last.
        double squares = 0;
        const int first = size_ - coupling_.cols();
        for (int i = 0; i < coupling_.rows(); ++i) {
            W sum = 0;
            for (int l = 0; l < coupling_.cols(); ++l) {
                sum += coupling_(i, l) * eigenvectors_(first + l, j);
            }
            squares += std::norm(sum);
        }
        pairs_.push_back({theta(j), std::sqrt(squares)});
    }
    return pairs_;
}

template <class W>
SmallMatrix<W> InverseLanczos<W>::coordinates(const std::vector<int>& pairs) const {
    SmallMatrix<W> s(size_, static_cast<int>(pairs.size()));
    for (int j = 0; j < s.cols(); ++j) {
        const int from = order_[static_cast<std::size_t>(pairs[static_cast<std::size_t>(j)])];
        for (int i = 0; i < size_; ++i) {
            s(i, j) = eigenvectors_(i, from);
        }
    }
    return s;
}

template <class W>
void InverseLanczos<W>::restart(int keep) {
    Context& ctx = pencil_.ctx();
    std::vector<int> first(static_cast<std::size_t>(keep));
    std::iota(first.begin(), first.end(), 0);
    const SmallMatrix<W> s = coordinates(first);
    BlockVector<W> kept(ctx, pencil_.map(), keep + next_);
    for (BlockVector<W>* const block : {&basis_, &b_basis_}) {
        if (block->width() == 0) {
            continue;
        }
        // V <- V S, followed by the next block
        tsmm(ctx, W(1), std::as_const(*block).columns(known_, size_), s.view(), W(0),
             kept.columns(0, keep));
        copy(ctx, std::as_const(*block).columns(known_ + size_, next_), kept.columns(keep, next_));
        copy(ctx, std::as_const(kept).view(), block->columns(known_, keep + next_));
    }
    projected_ = SmallMatrix<W>(columns_, columns_);
    for (int j = 0; j < keep; ++j) {
        projected_(j, j) = W(pairs_[static_cast<std::size_t>(j)].theta);
    }
    size_ = keep;
    coupling_ = {};
}

template <class W>
BlockVector<W> InverseLanczos<W>::vectors(const std::vector<int>& pairs) {
    Context& ctx = pencil_.ctx();
    const SmallMatrix<W> s = coordinates(pairs);
    BlockVector<W> bx(ctx, pencil_.map(), s.cols());
    BlockVector<W> x(ctx, pencil_.map(), s.cols());
    tsmm(ctx, W(1), images(known_, size_), s.view(), W(0), bx.view());
    pencil_.solve(factor_, std::as_const(bx).view(), x.view());
    std::vector<W> factors;
    factors.reserve(pairs.size());
    for (const int j : pairs) {
        factors.push_back(W(1 / pairs_[static_cast<std::size_t>(j)].theta));
    }
    scale(ctx, factors, x.view());
    OrthOptions options;
    options.replace_deficient = false;
    const int columns = block_gram_schmidt(ctx, pencil_.map(), pencil_.inner(),
                                           std::as_const(basis_).columns(0, known_),
                                           images(0, known_), x.view(), BlockView<W>{}, options)
                            .columns;
    x.set_width(columns);
    return x;
}

template class InverseLanczos<double>;
template class InverseLanczos<std::complex<double>>;

}  // namespace quiver
