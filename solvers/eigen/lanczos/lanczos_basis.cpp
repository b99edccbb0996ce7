// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/lanczos_basis.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/gram_factor.hpp"
#include "kernels/prepare.hpp"
#include "solvers/eigen/search/block_memory.hpp"
#include "solvers/eigen/search/given_columns.hpp"

namespace quiver {
namespace {

/// Number of steps that read their results at once after a step that was made again.
constexpr int steps_of_care = 4;
constexpr const char* not_finite = "NaN, infinity or squares that overflow";

}  // namespace

template <class T>
LanczosBasis<T>::LanczosBasis(Context& ctx, const EigenProblem<T>& problem, Which which,
                              std::uint64_t seed, int max_search, int max_locked, int block)
    : Base(ctx, problem, which, seed, max_search, max_locked) {
    // The second max_locked columns: a search may start from all locked pairs, and refine() stores
    // the products with the locked pairs behind these pairs.
    const int columns = fixed_ + max_locked + max_search + max_locked;
    claim_block_memory<T>(ctx, a_.row_map(), columns + 2 * block, "block Lanczos: blocks");
    prepare_products<T>(ctx, {.rows = a_.row_map().local_rows(),
                              .blocks = {block},
                              .bases = growing(fixed_ + max_locked + max_search),
                              .stride = columns,
                              .kept = {max_search / 2, max_search / 2 + block, max_search}});
    const int wanted = std::max(1, max_locked - 2 * block);
    prepare_products<T>(ctx,
                        {.rows = a_.row_map().local_rows(), .blocks = {wanted}, .stride = columns});
    a_.prepare(ctx, std::span(&block, 1));
    ctx.comm().agree([&] {
        basis_ = BlockVector<T>(ctx, a_.row_map(), 0, columns);
        current_ = BlockVector<T>(ctx, a_.row_map(), 0, block);
        product_ = BlockVector<T>(ctx, a_.row_map(), 0, block);
        two_passes_.emplace(ctx, fixed_ + max_locked + max_search,
                            std::min(block, largest_gram_factor));
    });
    const std::int64_t devices = ctx.comm().sum(std::int64_t{ctx.place() == Place::device ? 1 : 0});
    in_one_place_ = devices == 0 || devices == ctx.comm().size();
    take_constraints<T>(ctx, a_.row_map(), problem.constraints, constraints());
}

template <class T>
void LanczosBasis<T>::forget_search_space() {
    look_at_rotation();  // compares the rotated columns before they are overwritten
    forget_steps_under_way();
    this->empty_search_space();
    sums_.forget_from(0);
    next_sums_ = {};
}

template <class T>
void LanczosBasis<T>::start(int width) {
    start_from({}, width);
}

template <class T>
void LanczosBasis<T>::start_from(BlockView<const T> guesses, int width) {
    forget_search_space();
    if (this->norm() == 0) {
        this->raise_norm(largest_image<T>(ctx_, a_, constraints()));
        // Products with null vectors are rounding errors, against which no error can be judged.
        if (guesses.cols > 0) {
            this->raise_norm(random_image<T>(ctx_, a_, seed_));
        }
    }
    next_ = static_cast<int>(std::min<std::int64_t>(width, rows_ - locked_));
    const OrthOptions options = orth_options();
    fill_start_block<T>(ctx_, basis_.row_map(), options.seed + 1, guesses, next_block());
    next_ =
        block_gram_schmidt<T>(ctx_, basis_.row_map(), everything(), next_block(), options).columns;
    take_snapshot();
}

template <class T>
void LanczosBasis<T>::lock(BlockView<const T> x) {
    locked_ = 0;
    forget_search_space();
    next_ = std::min(x.cols, max_locked_);
    copy(ctx_, x.columns(0, next_), next_block());
    OrthOptions options = orth_options();
    options.replace_deficient = false;
    locked_ =
        block_gram_schmidt<T>(ctx_, basis_.row_map(), everything(), next_block(), options).columns;
    next_ = 0;
    locked_value_.assign(static_cast<std::size_t>(locked_), 0);
    locked_residual_ = locked_value_;
    refined_ = false;
}

template <class T>
bool LanczosBasis<T>::may_take_two_passes() const {
    return in_one_place_ && careful_steps_ == 0 && next_ > 0 &&
           next_ <= std::min(current_.capacity(), largest_gram_factor) &&
           size_ + 2 * next_ <= rows_ - locked_;
}

template <class T>
void LanczosBasis<T>::step() {
    const int before = size_;
    try {
        if (may_take_two_passes()) {
            go_ahead();
            if (two_passes_->under_way() == 2) {
                settle_oldest();
            }
            return;
        }
        finish_steps_under_way();
        careful_steps_ = std::max(0, careful_steps_ - 1);
        if (next_ > 0) {
            careful_step();
        }
    } catch (const NumericalError&) {
        if (!may_step_again()) {
            throw;
        }
        step_again_from_snapshot(before + 1);
    }
}

/// The number of leading columns of [Q V F] to which A F is orthogonal up to rounding, because A is
/// Hermitian: A V = V H + F R E^T couples only the last columns of V, those of E, to F.
template <class T>
int LanczosBasis<T>::uncoupled() const {
    const int coupled = under_way_.empty() ? last_width_ : under_way_.back().width;
    return locked_ + size_ - coupled;
}

template <class T>
void LanczosBasis<T>::go_ahead() {
    const int width = next_;
    // Copies without gaps: a product with a few columns of the wide basis would read a cache line
    // for each row.
    const BlockView<T> x = packed(current_, width);
    const BlockView<T> y = packed(product_, width);
    if (packed_width_ != width) {
        copy(ctx_, next_block(), x);
    }
    const BlockView<T> v = basis_.columns(0, fixed_ + locked_ + size_ + width);
    const int skipped = protection_ == nullptr && fixed_ == 0 ? uncoupled() : 0;
    if (protection_ == nullptr) {
        a_.apply(ctx_, x, y);
        two_passes_->project(v, y, skipped);
    } else if (begin_checked_product(x, y)) {
        finish_checked_product(x, y);
    } else {
        return;  // the previous step was made again
    }
    two_passes_->begin_projected(v, y, skipped);
    under_way_.push_back({size_, width, ++steps_});
    size_ += width;
    copy(ctx_, y, next_block());
    if (protection_ != nullptr) {
        protection_->begin_encoding(ctx_, y, f_sums_);
    }
    std::swap(current_, product_);
    packed_width_ = width;
}

/// Enqueues Y = A X and its checksums, where X is a copy of F, then resolves the previous step.
/// Returns false if the previous step was made again: Y is then invalid.
template <class T>
bool LanczosBasis<T>::begin_checked_product(BlockView<T> x, BlockView<T> y) {
    const int at_rest = fixed_ + locked_ + size_;
    if (!rotation_) {
        know_columns(at_rest);
    }
    if (!f_sums_.under_way() && next_sums_.columns() != x.cols) {
        protection_->begin_encoding(ctx_, next_block(), f_sums_);
    }
    protection_->strike_basis(ctx_, basis_.columns(0, at_rest + next_));
    a_.run_part(ctx_, y, true, [&] { protection_->begin(ctx_, x, y); });
    if (rotation_) {
        look_at_rotation(true);
        know_columns(at_rest);
    }
    while (!under_way_.empty()) {
        settle_oldest(true);
    }
    if (careful_steps_ > 0) {
        return false;
    }
    if (f_sums_.under_way()) {
        next_sums_ = f_sums_.take(true);
    }
    return true;
}

/// Checks Y by its checksums while the first product of Gram-Schmidt runs, which only reads Y.
template <class T>
void LanczosBasis<T>::finish_checked_product(BlockView<T> x, BlockView<T> y) {
    const int at_rest = fixed_ + locked_ + size_;
    const BlockView<T> v = basis_.columns(0, at_rest + x.cols);
    // With several ranks this Gram-Schmidt product includes an all-reduce, which one rank alone
    // cannot repeat.
    const bool early = !corrects() || ctx_.comm().size() == 1;
    if (early) {
        two_passes_->project(v, y);
    }
    sums_.append(next_sums_);
    bool agreed = true;
    a_.run_part(ctx_, y, false,
                [&] { agreed = protection_->finish(ctx_, std::move(next_sums_), early).agreed; });
    next_sums_ = {};
    check_current(basis_.columns(at_rest, x.cols), x);
    if (!early || (corrects() && !agreed)) {
        two_passes_->project(v, y);
    }
}

template <class T>
void LanczosBasis<T>::fail_in_step(std::int64_t step, const std::string& why) {
    fail("in step " + std::to_string(step) +
         " the operator failed on some rank, or its product is not finite (" + why + ")");
}

template <class T>
void LanczosBasis<T>::careful_step() {
    const int width = next_;
    const BlockView<T> current = next_block();
    size_ += width;
    const bool side_by_side = width <= current_.capacity();
    const BlockView<T> x = side_by_side ? packed(current_, width) : current;
    const BlockView<T> y = side_by_side ? packed(product_, width) : next_block();
    know_current(current);
    if (side_by_side && packed_width_ != width) {
        copy(ctx_, current, x);
    }
    packed_width_ = 0;
    if (protection_ != nullptr) {
        a_.run_part(ctx_, y, true,
                    [&] { protection_->apply(ctx_, x, y, std::exchange(next_sums_, {})); });
    } else {
        a_.apply(ctx_, x, y);
    }
    ++steps_;
    check_current(current, x);
    OrthResult<T> orth;
    try {
        orth = block_gram_schmidt<T>(ctx_, basis_.row_map(), everything(), y, orth_options());
    } catch (const NumericalError& error) {
        if (!may_step_again()) {
            a_.rethrow_pending();
        }
        fail_in_step(steps_, error.what());
    }
    if (side_by_side) {
        copy(ctx_, y, next_block());
    }
    encode_next(y.columns(0, orth.columns));
    check_step(orth);
    append_to_h(orth.h, size_, width, steps_);
    coupling_ = std::move(orth.r);
    next_ = static_cast<int>(std::min<std::int64_t>(orth.columns, rows_ - locked_ - size_));
    last_width_ = width;
    if (side_by_side && next_ == width) {
        std::swap(current_, product_);
        packed_width_ = width;
    }
}

template <class T>
void LanczosBasis<T>::settle_oldest(bool later_work) {
    using Verdict = typename TwoPasses<T>::Verdict;
    const StepUnderWay step = under_way_.front();
    under_way_.erase(under_way_.begin());
    auto [verdict, orth] = two_passes_->finish(later_work);
    switch (verdict) {
        case Verdict::sound:
            if (protection_ != nullptr) {
                next_sums_ = f_sums_.take(later_work);
                check_step(orth);
            }
            append_to_h(orth.h, step.size + step.width, step.width, step.number);
            coupling_ = std::move(orth.r);
            last_width_ = step.width;
            break;
        case Verdict::not_finite:
            if (!may_step_again()) {
                a_.rethrow_pending();
            }
            fail_in_step(step.number, not_finite);
        case Verdict::unsound:
            forget_steps_under_way();
            if (protection_ != nullptr) {
                next_sums_ =
                    sums_.take_last(step.width);  // checksums of the block that the step multiplied
            }
            make_carefully(step.size, step.width, step.number);
            break;
    }
}

/// Makes step `number` again, whose block was overwritten.
template <class T>
void LanczosBasis<T>::make_carefully(int size, int width, std::int64_t number) {
    size_ = size;
    next_ = width;
    steps_ = number - 1;
    packed_width_ = 0;
    careful_steps_ = steps_of_care;
    careful_step();
}

template <class T>
void LanczosBasis<T>::finish_steps_under_way() {
    while (!under_way_.empty()) {
        settle_oldest();
    }
}

template <class T>
void LanczosBasis<T>::forget_steps_under_way() {
    for (; !under_way_.empty(); under_way_.pop_back()) {
        two_passes_->finish();
    }
    f_sums_.forget();
    packed_width_ = 0;
}

template <class T>
void LanczosBasis<T>::ritz() {
    settle();
    this->form_ritz_pairs();
}

template <class T>
void LanczosBasis<T>::restart(int lock, int wanted) {
    if (corrects()) {
        protection_->audit(ctx_);  // before faults below the error bounds accumulate
    }
    check_basis(fixed_ + locked_ + (rotation_places_faults() ? 0 : size_));
    const int first = fixed_ + locked_;
    const int keep = kept_at_restart(lock, wanted);
    SmallMatrix<T> rotation(size_, keep);
    for (int i = 0; i < size_; ++i) {
        for (int j = 0; j < keep; ++j) {
            rotation(i, j) = ritz_vector_(i, j);
        }
    }
    this->rotate(rotation, lock);
    corrects() ? check_rotation(rotation, first, lock) : sums_.rotate(first, rotation);
    take_snapshot();
    ctx_.emit(RestartEvent{"lanczos", steps_, size_ + next_, keep - lock, locked_});
}

template <class T>
void LanczosBasis<T>::refine() {
    forget_search_space();
    this->refine_locked_pairs();
}

template <class T>
void LanczosBasis<T>::search_again_above(double bound) {
    forget_search_space();
    this->unlock_above(bound);
    take_snapshot();
}

template <class T>
void LanczosBasis<T>::save(SolverState<T>& state, const std::string& prefix) {
    settle();
    this->add_to(state, prefix);
}

template <class T>
void LanczosBasis<T>::restore(const SavedState<T>& state, const std::string& prefix) {
    this->take_from(state, prefix);
    take_snapshot();
}

#define QUIVER_INSTANTIATE(T) template class LanczosBasis<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
