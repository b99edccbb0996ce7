// SPDX-License-Identifier: BSD-3-Clause
// The search of the complement of LOBPCG's pairs, which shows that no copy is missing.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/lobpcg/lobpcg_solver.hpp"

namespace quiver {

template <class T>
std::uint64_t Lobpcg<T>::complement_seed() {
    return this->options().seed + 0x51ed270b27b4d1ffu * ++verifications_;
}

template <class T>
void Lobpcg<T>::begin_complement() {
    complement_.reset();
    pencil_.reset();
}

template <class T>
ComplementVerdict Lobpcg<T>::complement() {
    if (dense_) {  // the whole space was decomposed, so no copy can be missing
        const bool cut = space_->width() > k_ && space_->key(k_) - space_->key(k_ - 1) <=
                                                     this->tolerance() * space_->scale(k_ - 1);
        return cut ? ComplementVerdict::tied : ComplementVerdict::outside;
    }
    if (this->problem().b == nullptr) {
        if (!complement_) {
            make_complement(true);
        }
        return judge_columns();
    }
    if (!pencil_ && verdict_ == ComplementVerdict::open) {
        make_pencil();
    }
    return std::exchange(verdict_, ComplementVerdict::open);
}

template <class T>
void Lobpcg<T>::extend_complement() {
    if (complement_) {
        extend_columns();
    } else {
        extend_pencil();
    }
}

/// LOBPCG from random columns in the complement of the known pairs. Fixing guard vectors that are
/// certainly outside makes a later eigenvalue the next one of the complement.
template <class T>
void Lobpcg<T>::make_complement(bool use_guards) {
    LobpcgSpace<T>& space = *space_;
    const double last = space.key(k_ - 1);
    std::vector<int> known(static_cast<std::size_t>(k_));
    std::iota(known.begin(), known.end(), 0);
    bool copy_known = false;
    double coupling = 0;
    double nearest = std::numeric_limits<double>::infinity();
    for (int j = k_; j < space.width() && use_guards; ++j) {
        const double gap = space.key(j) - last;
        const double rho = space.residual(j);
        if (gap <= this->threshold() && rho <= this->threshold()) {
            copy_known = true;
        } else if (gap > guard_margin * (this->threshold() + rho)) {
            coupling += rho * rho;
            nearest = std::min(nearest, gap);
        } else {
            continue;
        }
        known.push_back(j);
    }
    const int count = fixed() + static_cast<int>(known.size());
    BlockVector<T> block;
    this->ctx().comm().agree(
        [&] { block = BlockVector<T>(this->ctx(), this->problem().a.row_map(), count); });
    copy(this->ctx(), space.fixed_and_x(0, fixed()), block.columns(0, fixed()));
    gather_columns(this->ctx(), space.x(), known, block.columns(fixed(), count - fixed()));
    const std::int64_t room = this->dimensions() + fixed() - count;
    const int width = static_cast<int>(std::min<std::int64_t>(verify_block, room / 3));
    start_counting();
    complement_.emplace(
        LobpcgComplement<T>{LobpcgSpace<T>(this->ctx(), this->problem(), inner_, which_,
                                           complement_seed(), width, count, bounds_),
                            copy_known, coupling, nearest});
    LobpcgSpace<T>& complement = complement_->space;
    complement.fix(std::as_const(block).view());
    block = {};
    if (resumed_ != nullptr) {
        const SavedState<T>& state = *std::exchange(resumed_, nullptr);
        const int saved = state.count("complement", width);
        BlockVector<T> x;
        this->ctx().comm().agree(
            [&] { x = BlockVector<T>(this->ctx(), this->problem().a.row_map(), saved); });
        if (saved > 0) {
            state.read(this->ctx(), "complement", x.view());
            complement.absorb(std::as_const(x).view());
        }
    }
    if (complement.width() < width) {
        complement.absorb_random(width - complement.width());
    }
}

template <class T>
ComplementVerdict Lobpcg<T>::judge_columns() {
    LobpcgSpace<T>& complement = complement_->space;
    complement.measure();
    count(complement);
    const double rho = complement.residual(0);
    if (!this->report(k_, norm() > 0 ? rho / norm() : 0, "verify")) {
        return ComplementVerdict::open;
    }
    const double last = space_->key(k_ - 1);
    const double theta = complement.key(0);
    const double threshold = this->threshold();
    // The tolerance alone does not decide the verdict: with a loose tolerance a mixture of
    // eigenvectors could pass.
    complement_->settled = complement_->stalled ? rho : this->settled(0);
    const ComplementVerdict verdict =
        judge_complement(last, theta, rho, threshold, complement_->settled, this->dimensions());
    if (verdict == ComplementVerdict::open) {
        if (complement_->progress.since > search_patience) {
            this->stop();
        }
        return verdict;
    }
    if (verdict == ComplementVerdict::inside) {
        int inside = 1;
        while (inside < complement.width() &&
               complement.key(inside) < last - threshold - complement.residual(inside)) {
            ++inside;
        }
        return absorb_columns(complement.x().columns(0, inside));
    }
    this->note_next(last, theta, rho);
    const double gap = std::max(theta - last, 0.0) + 2 * threshold;
    if (complement_->coupling > 0 && complement_->coupling > gap * complement_->nearest / 4) {
        make_complement(false);
        return judge_columns();
    }
    return complement_->copy_known ? ComplementVerdict::tied : verdict;
}

template <class T>
void Lobpcg<T>::extend_columns() {
    LobpcgSpace<T>& complement = complement_->space;
    if (complement.age() >= refresh_period) {
        complement.refresh();
        return;
    }
    complement_->stalled = !complement_->progress.made(complement, 1, 0, stall_patience) &&
                           complement.residual(0) <= attainable_slack * this->attainable();
    std::vector<int> active(static_cast<std::size_t>(complement.width()));
    std::iota(active.begin(), active.end(), 0);
    std::erase_if(active, [&](int j) { return complement.residual(j) <= complement_->settled; });
    complement.advance(active);
}

/// Called if wanted pairs were found beside X: starts a new search from [X inside].
template <class T>
ComplementVerdict Lobpcg<T>::absorb_columns(BlockView<const T> inside) {
    const int old = space_->width();
    BlockVector<T> more;
    this->ctx().comm().agree([&] {
        more = BlockVector<T>(this->ctx(), this->problem().a.row_map(), old + inside.cols);
    });
    copy(this->ctx(), space_->x(), more.columns(0, old));
    copy(this->ctx(), inside, more.columns(old, inside.cols));
    begin_complement();
    search_from(std::move(more));
    return ComplementVerdict::inside;
}

/// Block Lanczos on P^H (A - sigma B) P from random columns orthogonal to [C X].
template <class T>
void Lobpcg<T>::make_pencil() {
    const int known = fixed() + k_;
    const std::int64_t room = this->dimensions() - k_;
    const int width = static_cast<int>(std::min<std::int64_t>(verify_block, room));
    pencil_.emplace(this->ctx(), this->problem(), space_->ritz_value(k_ - 1),
                    which_ == Which::smallest ? 1 : -1, space_->fixed_and_x(0, known),
                    space_->product_with_b(0, known), complement_seed(),
                    static_cast<int>(std::min<std::int64_t>(verify_basis, room)), width);
    LanczosBasis<T>& basis = pencil_->basis;
    // If A = sigma B in the complement, the products are rounding noise and give no norm.
    basis.raise_norm(space_->scale(k_ - 1));
    if (resumed_ != nullptr) {
        basis.restore(*std::exchange(resumed_, nullptr), "pencil_");
    } else {
        basis.start(width);
    }
    before_ = {total_.iterations - basis.steps(), total_.applications - basis.applications()};
}

template <class T>
void Lobpcg<T>::extend_pencil() {
    LanczosBasis<T>& basis = pencil_->basis;
    if (basis.next_width() > 0) {
        basis.step();
    }
    count(basis);
    if (!basis.full() && !basis.ritz_due()) {
        return;
    }
    basis.ritz();
    const double rho = basis.ritz_residual(0);
    const double threshold = this->tolerance() * basis.norm();
    const double noise =
        lock_margin * std::min(this->tolerance(), attainable_tolerance<T>(0)) * basis.norm();
    this->report(k_, basis.norm() > 0 ? rho / basis.norm() : 0, "verify");
    verdict_ = judge_complement(0, basis.ritz_value(0), rho, threshold, noise, this->dimensions());
    this->note_next(0, basis.ritz_value(0), rho);
    if (verdict_ == ComplementVerdict::inside) {
        int inside = 0;
        const int converged = std::max(1, basis.converged_prefix(threshold));
        while (inside < converged && basis.ritz_value(inside) < -threshold - rho) {
            ++inside;
        }
        basis.restart(inside, 0);
        std::vector<int> order(static_cast<std::size_t>(inside));
        std::iota(order.begin(), order.end(), 0);
        BlockVector<T> found;
        this->ctx().comm().agree(
            [&] { found = BlockVector<T>(this->ctx(), this->problem().a.row_map(), inside); });
        basis.extract(order, found.view());
        verdict_ = absorb_columns(std::as_const(found).view());
    } else if (verdict_ == ComplementVerdict::open && basis.full()) {
        basis.restart(0, pencil_->width);
    }
}

#define QUIVER_INSTANTIATE(T)                            \
    template std::uint64_t Lobpcg<T>::complement_seed(); \
    template void Lobpcg<T>::begin_complement();         \
    template ComplementVerdict Lobpcg<T>::complement();  \
    template void Lobpcg<T>::extend_complement();
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
