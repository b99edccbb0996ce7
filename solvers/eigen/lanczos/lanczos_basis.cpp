// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/lanczos_basis.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/gram_factor.hpp"
#include "kernels/prepare.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/search/given_columns.hpp"
#include "solvers/eigen/search/rayleigh_ritz.hpp"
#include "solvers/small_blocks.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// Columns that a refinement multiplies at once.
constexpr int refine_width = 32;
/// Number of steps that read their results at once after a step that had to be made again.
constexpr int steps_of_care = 4;
constexpr const char* not_finite = "NaN, infinity or squares that overflow";

/// All ranks hold the same small matrices, so all of them throw.
[[noreturn]] void fail(const std::string& text) {
    NumericalError error("block Lanczos: " + text);
    error.set_collective();
    throw error;
}

[[noreturn]] void fail_in_step(std::int64_t step, const std::string& why) {
    fail("in step " + std::to_string(step) +
         " the operator failed on some rank, or its product is not finite (" + why + ")");
}

}  // namespace

template <class T>
LanczosBasis<T>::LanczosBasis(Context& ctx, const EigenProblem<T>& problem, Which which,
                              std::uint64_t seed, int max_search, int max_locked, int block)
    : ctx_(ctx),
      a_(problem.a),
      which_(which),
      seed_(seed),
      fixed_(problem.constraints.cols),
      rows_(dimensions(problem)),
      max_search_(max_search),
      max_locked_(max_locked),
      protection_(problem.protection == &problem.a && problem.protection->mode() != AbftMode::off
                      ? problem.protection
                      : nullptr),
      sums_(protection_ != nullptr ? protection_->log_chunk() : least_log_chunk) {
    // A search may start from all locked pairs; refine() stores their fresh products behind them.
    const int columns = fixed_ + max_locked + max_search + max_locked;
    const int all_columns = columns + 2 * block;
    // Ranks on GPUs request 0 bytes but take part in the collective check: other ranks may be on
    // the host.
    require_host_memory(
        ctx.comm(),
        ctx.place() == Place::host ? static_cast<double>(sizeof(T)) * all_columns *
                                         static_cast<double>(a_.row_map().local_rows())
                                   : 0,
        "block Lanczos: the basis of " + std::to_string(all_columns) + " columns takes");
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
int LanczosBasis<T>::capacity() const {
    return static_cast<int>(std::min<std::int64_t>(max_search_, rows_ - locked_));
}

template <class T>
OrthOptions LanczosBasis<T>::orth_options() {
    return {true, seed_ + 0x9e3779b97f4a7c15u * ++random_streams_};
}

template <class T>
void LanczosBasis<T>::forget_search_space() {
    look_at_rotation();  // uses the first rotated columns, which may have been locked
    forget_steps_under_way();
    packed_width_ = 0;
    size_ = 0;
    next_ = 0;
    h_ = SmallMatrix<T>(0, 0);
    coupling_ = SmallMatrix<T>(0, 0);
    last_width_ = 0;
    size_at_ritz_ = 0;
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
    if (protection_ == nullptr) {
        a_.apply(ctx_, x, y);
        two_passes_->project(v, y);
    } else if (begin_checked_product(x, y)) {
        finish_checked_product(x, y);
    } else {
        return;  // the step before had to be made again
    }
    two_passes_->begin_projected(v, y);
    under_way_.push_back({size_, width, ++steps_});
    size_ += width;
    copy(ctx_, y, next_block());
    if (protection_ != nullptr) {
        protection_->begin_encoding(ctx_, y, f_sums_);
    }
    std::swap(current_, product_);
    packed_width_ = width;
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
}

template <class T>
void LanczosBasis<T>::append_to_h(const SmallMatrix<T>& coefficients, int columns, int width,
                                  std::int64_t step) {
    const int old = columns - width;
    const int first = fixed_ + locked_;  // the columns before belong to C and Q
    SmallMatrix<T> h(columns, columns);
    for (int i = 0; i < old; ++i) {
        for (int j = 0; j < old; ++j) {
            h(i, j) = h_(i, j);
        }
    }
    HermitianDefect defect(norm_);
    for (int j = 0; j < width; ++j) {
        for (int i = 0; i < columns; ++i) {
            const T above = coefficients(first + i, j);
            defect.see(above);
            if (i < old) {
                h(i, old + j) = above;
                h(old + j, i) = conjugate(above);
            } else {
                const T mirrored = conjugate(coefficients(first + old + j, i - old));
                defect.compare(above, mirrored);
                h(i, old + j) = (above + mirrored) / Real(2);
            }
        }
    }
    // The coefficients on the columns before must be the adjoint of the residual R that produced
    // them.
    for (int j = 0; j < std::min(coupling_.rows(), width) && old > 0; ++j) {
        for (int i = 0; i < coupling_.cols(); ++i) {
            defect.compare(coefficients(first + old - coupling_.cols() + i, j),
                           conjugate(coupling_(j, i)));
        }
    }
    norm_ = defect.norm();
    if (norm_ > 0 && norm_ < NormRange<T>().least) {
        fail("a norm of about " + number_text(norm_) +
             " is so small that squares underflow; scale the matrix");
    }
    defect.check<T>([&](const std::string& text) { fail(text); },
                    "in step " + std::to_string(step) + " ");
    h_ = std::move(h);
}

template <class T>
bool LanczosBasis<T>::ritz_due() {
    if (size_ - size_at_ritz_ < std::max(next_, size_ / 4)) {
        return false;
    }
    size_at_ritz_ = size_;
    return true;
}

template <class T>
std::vector<T> LanczosBasis<T>::residual_coefficients(int j) const {
    std::vector<T> result(static_cast<std::size_t>(next_), T(0));
    for (int i = 0; i < next_; ++i) {
        for (int l = 0; l < last_width_; ++l) {
            result[static_cast<std::size_t>(i)] +=
                multiply(coupling_(i, l), ritz_vector_(size_ - last_width_ + l, j));
        }
    }
    return result;
}

template <class T>
double LanczosBasis<T>::coupling_norm() const {
    double squares = 0;
    for (int i = 0; i < next_; ++i) {
        for (int j = 0; j < coupling_.cols(); ++j) {
            squares += static_cast<double>(abs_squared(coupling_(i, j)));
        }
    }
    return std::sqrt(squares);
}

template <class T>
void LanczosBasis<T>::ritz() {
    settle();
    size_at_ritz_ = std::min(size_at_ritz_, size_);
    const HermitianEigen<T> eigen = hermitian_eigen(h_);
    if (!eigen.converged) {
        fail("the dense eigensolver failed on a projected matrix of " + std::to_string(size_) +
             " rows");
    }
    ritz_value_.clear();
    ritz_residual_.clear();
    ritz_vector_ = SmallMatrix<T>(size_, size_);
    for (int j = 0; j < size_; ++j) {
        const int from = which_ == Which::smallest ? j : size_ - 1 - j;
        ritz_value_.push_back(static_cast<double>(eigen.values[static_cast<std::size_t>(from)]));
        norm_ = std::max(norm_, std::abs(ritz_value_.back()));
        for (int i = 0; i < size_; ++i) {
            ritz_vector_(i, j) = eigen.vectors(i, from);
        }
        double squares = 0;
        for (const T value : residual_coefficients(j)) {
            squares += static_cast<double>(abs_squared(value));
        }
        ritz_residual_.push_back(std::sqrt(squares));
    }
}

template <class T>
int LanczosBasis<T>::converged_prefix(double bound) const {
    int count = 0;
    while (count < std::min(size_, max_locked_ - locked_) && ritz_residual(count) <= bound) {
        ++count;
    }
    return count;
}

template <class T>
void LanczosBasis<T>::restart(int lock, int wanted) {
    if (corrects()) {
        protection_->audit(ctx_);  // before faults below the error bounds accumulate
    }
    check_basis(fixed_ + locked_ + (rotation_places_faults() ? 0 : size_));
    const int free = size_ - lock;
    const int room = capacity() - lock - 2 * std::max(next_, 1);
    const int kept = std::clamp(wanted + (free - wanted) / 2, 0, std::max(0, std::min(free, room)));
    const int keep = lock + kept;
    const int first = fixed_ + locked_;
    SmallMatrix<T> rotation(size_, keep);
    for (int i = 0; i < size_; ++i) {
        for (int j = 0; j < keep; ++j) {
            rotation(i, j) = ritz_vector_(i, j);
        }
    }
    tsmm(ctx_, T(1), search_space(), rotation.view(), T(0), search_space().columns(0, keep));
    move_columns(first + size_, first + keep, next_);
    // H is diagonal now, and the next block couples to every kept Ritz vector.
    SmallMatrix<T> coupling(next_, kept);
    SmallMatrix<T> h(kept, kept);
    for (int j = 0; j < kept; ++j) {
        h(j, j) = static_cast<Real>(ritz_value(lock + j));
        const std::vector<T> column = residual_coefficients(lock + j);
        for (int i = 0; i < next_; ++i) {
            coupling(i, j) = column[static_cast<std::size_t>(i)];
        }
    }
    for (int j = 0; j < lock; ++j) {
        locked_value_.push_back(ritz_value(j));
        locked_residual_.push_back(ritz_residual(j));
    }
    h_ = std::move(h);
    coupling_ = std::move(coupling);
    last_width_ = kept;
    corrects() ? check_rotation(rotation, lock) : sums_.rotate(first, rotation);
    locked_ += lock;
    size_ = size_at_ritz_ = kept;
    refined_ = refined_ && lock == 0;
    take_snapshot();
    ctx_.emit(RestartEvent{"lanczos", steps_, size_ + next_, kept, locked_});
}

template <class T>
void LanczosBasis<T>::move_columns(int from, int to, int count) {
    // Source and target may overlap: copy in pieces no wider than their distance.
    const int stride = from - to;
    for (int first = 0; stride > 0 && first < count; first += stride) {
        const int width = std::min(stride, count - first);
        copy(ctx_, basis_.columns(from + first, width), basis_.columns(to + first, width));
    }
}

template <class T>
void LanczosBasis<T>::refine() {
    forget_search_space();
    // Many restarts accumulate a loss of orthogonality.
    OrthOptions options = orth_options();
    options.replace_deficient = false;
    locked_ = block_gram_schmidt<T>(ctx_, basis_.row_map(), constraints(), locked_block(), options)
                  .columns;
    const int n = locked_;
    const BlockView<T> x = locked_block();
    const BlockView<T> ax = basis_.columns(fixed_ + n, n);
    for (int first = 0; first < n; first += refine_width) {
        const int width = std::min(refine_width, n - first);
        a_.apply(ctx_, x.columns(first, width), ax.columns(first, width));
    }
    if (fixed_ > 0) {
        SmallMatrix<T> beyond(fixed_, n);
        tsmttsm(ctx_, T(1), constraints(), ax, T(0), beyond);
        tsmm(ctx_, T(-1), constraints(), beyond.view(), T(1), ax);
    }
    const auto check = [&](const SmallMatrix<T>& h) {
        a_.rethrow_pending();
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
             ctx_, x, x, ax, 0, [&](double value) { return key(value); }, check,
             [&](const std::string& text) { fail(text); })) {
        locked_value_.push_back(pair.value);
        locked_residual_.push_back(pair.residual);
        norm_ = std::max(norm_, std::abs(pair.value));
    }
    refined_ = true;
}

template <class T>
void LanczosBasis<T>::drop_beyond(int count) {
    locked_ = std::min(locked_, count);
    locked_value_.resize(static_cast<std::size_t>(locked_));
    locked_residual_.resize(static_cast<std::size_t>(locked_));
}

template <class T>
void LanczosBasis<T>::search_again_above(double bound) {
    std::vector<int> order;
    std::vector<int> above;
    std::vector<double> value;
    std::vector<double> residual;
    for (int j = 0; j < locked_; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (locked_residual_[at] <= bound) {
            order.push_back(j);
            value.push_back(locked_value_[at]);
            residual.push_back(locked_residual_[at]);
        } else {
            above.push_back(j);
        }
    }
    order.insert(order.end(), above.begin(), above.end());
    gather_columns(ctx_, locked_block(), order, locked_block());
    forget_search_space();
    locked_value_ = std::move(value);
    locked_residual_ = std::move(residual);
    next_ = static_cast<int>(above.size());
    locked_ -= next_;
    take_snapshot();
}

template <class T>
void LanczosBasis<T>::extract(const std::vector<int>& order, BlockView<T> y) {
    gather_columns(ctx_, locked_block(), order, y);
}

#define QUIVER_INSTANTIATE(T) template class LanczosBasis<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
