// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/lanczos_recurrence.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/eigen/search/rayleigh_ritz.hpp"
#include "solvers/small_blocks.hpp"

namespace quiver {
namespace {

/// Columns that a refinement multiplies at once.
constexpr int columns_at_once = 32;

}  // namespace

template <class T>
LanczosRecurrence<T>::LanczosRecurrence(Context& ctx, const EigenProblem<T>& problem, Which which,
                                        std::uint64_t seed, int max_search, int max_locked)
    : ctx_(ctx),
      a_(problem.a),
      which_(which),
      seed_(seed),
      fixed_(problem.constraints.cols),
      rows_(dimensions(problem)),
      max_search_(max_search),
      max_locked_(max_locked) {}

template <class T>
int LanczosRecurrence<T>::capacity() const {
    return static_cast<int>(std::min<std::int64_t>(max_search_, rows_ - locked_));
}

template <class T>
OrthOptions LanczosRecurrence<T>::orth_options() {
    return {true, seed_ + 0x9e3779b97f4a7c15u * ++random_streams_};
}

template <class T>
void LanczosRecurrence<T>::fail(const std::string& text) {
    NumericalError error("block Lanczos: " + text);
    error.set_collective();
    throw error;
}

template <class T>
void LanczosRecurrence<T>::empty_search_space() {
    size_ = 0;
    next_ = 0;
    h_ = SmallMatrix<T>(0, 0);
    coupling_ = SmallMatrix<T>(0, 0);
    last_width_ = 0;
    size_at_ritz_ = 0;
}

template <class T>
void LanczosRecurrence<T>::append_to_h(const SmallMatrix<T>& coefficients, int columns, int width,
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
    // The coefficients of A F on the last columns of V must equal R^H, because R coupled these
    // columns to F.
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
bool LanczosRecurrence<T>::ritz_due() {
    if (size_ - size_at_ritz_ < std::max(next_, size_ / 4)) {
        return false;
    }
    size_at_ritz_ = size_;
    return true;
}

template <class T>
std::vector<T> LanczosRecurrence<T>::residual_coefficients(int j) const {
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
double LanczosRecurrence<T>::coupling_norm() const {
    double squares = 0;
    for (int i = 0; i < next_; ++i) {
        for (int j = 0; j < coupling_.cols(); ++j) {
            squares += static_cast<double>(abs_squared(coupling_(i, j)));
        }
    }
    return std::sqrt(squares);
}

template <class T>
void LanczosRecurrence<T>::form_ritz_pairs() {
    size_at_ritz_ = std::min(size_at_ritz_, size_);
    const HermitianEigen<T> eigen = projected_eigen(ctx_, h_);
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
int LanczosRecurrence<T>::converged_prefix(double bound) const {
    int count = 0;
    while (count < std::min(size_, max_locked_ - locked_) && ritz_residual(count) <= bound) {
        ++count;
    }
    return count;
}

template <class T>
int LanczosRecurrence<T>::kept_at_restart(int lock, int wanted) const {
    const int free = size_ - lock;
    const int room = capacity() - lock - 2 * std::max(next_, 1);
    return lock + std::clamp(wanted + (free - wanted) / 2, 0, std::max(0, std::min(free, room)));
}

template <class T>
void LanczosRecurrence<T>::rotate(const SmallMatrix<T>& rotation, int lock) {
    const int keep = rotation.cols();
    const int kept = keep - lock;
    const int first = fixed_ + locked_;
    tsmm(ctx_, T(1), search_space(), rotation.view(), T(0), search_space().columns(0, keep));
    move_columns(first + size_, first + keep, next_);
    // In the Ritz basis H is diagonal, and the next block couples to every kept Ritz vector.
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
    locked_ += lock;
    size_ = size_at_ritz_ = kept;
    refined_ = refined_ && lock == 0;
}

template <class T>
void LanczosRecurrence<T>::move_columns(int from, int to, int count) {
    // Source and target may overlap: copy in pieces no wider than their distance.
    const int stride = from - to;
    for (int first = 0; stride > 0 && first < count; first += stride) {
        const int width = std::min(stride, count - first);
        copy(ctx_, basis_.columns(from + first, width), basis_.columns(to + first, width));
    }
}

template <class T>
void LanczosRecurrence<T>::refine_locked_pairs() {
    // Locked pairs lose orthogonality over many restarts.
    OrthOptions options = orth_options();
    options.replace_deficient = false;
    locked_ = block_gram_schmidt<T>(ctx_, basis_.row_map(), constraints(), locked_block(), options)
                  .columns;
    const int n = locked_;
    const BlockView<T> x = locked_block();
    const BlockView<T> ax = basis_.columns(fixed_ + n, n);
    for (int first = 0; first < n; first += columns_at_once) {
        const int width = std::min(columns_at_once, n - first);
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
void LanczosRecurrence<T>::drop_beyond(int count) {
    locked_ = std::min(locked_, count);
    locked_value_.resize(static_cast<std::size_t>(locked_));
    locked_residual_.resize(static_cast<std::size_t>(locked_));
}

template <class T>
void LanczosRecurrence<T>::unlock_above(double bound) {
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
    locked_value_ = std::move(value);
    locked_residual_ = std::move(residual);
    next_ = static_cast<int>(above.size());
    locked_ -= next_;
}

template <class T>
void LanczosRecurrence<T>::extract(const std::vector<int>& order, BlockView<T> y) {
    gather_columns(ctx_, locked_block(), order, y);
}

template <class T>
void LanczosRecurrence<T>::add_to(SolverState<T>& state, const std::string& prefix) {
    const auto number = [&](const char* name, auto value) {
        state.numbers[prefix + name] = {static_cast<double>(value)};
    };
    number("locked", locked_);
    number("size", size_);
    number("next", next_);
    number("last_width", last_width_);
    number("size_at_ritz", size_at_ritz_);
    number("refined", refined_);
    number("norm", norm_);
    number("steps", steps_);
    number("applications", applications());
    number("random_streams", random_streams_);
    state.numbers[prefix + "locked_values"] = locked_value_;
    state.numbers[prefix + "locked_residuals"] = locked_residual_;
    state.matrices[prefix + "h"] = h_;
    state.matrices[prefix + "coupling"] = part(coupling_, 0, next_, 0, last_width_);
    state.blocks[prefix + "basis"] = basis_.columns(fixed_, locked_ + size_ + next_);
}

template <class T>
void LanczosRecurrence<T>::take_from(const SavedState<T>& state, const std::string& prefix) {
    locked_ = state.count(prefix + "locked", max_locked_);
    size_ = state.count(prefix + "size", capacity());
    next_ = state.count(prefix + "next", rows_ - locked_ - size_);
    last_width_ = state.count(prefix + "last_width", size_);
    size_at_ritz_ = state.count(prefix + "size_at_ritz", size_);
    refined_ = state.flag(prefix + "refined");
    norm_ = std::max(norm_, state.number(prefix + "norm"));
    steps_ = state.whole(prefix + "steps", 0, most_count);
    applications_before_ = state.whole(prefix + "applications", 0, most_count);
    random_streams_ =
        static_cast<std::uint64_t>(state.whole(prefix + "random_streams", 0, most_count));
    locked_value_ = state.values(prefix + "locked_values", locked_);
    locked_residual_ = state.values(prefix + "locked_residuals", locked_);
    h_ = state.matrix(ctx_, prefix + "h", size_, size_);
    coupling_ = state.matrix(ctx_, prefix + "coupling", next_, last_width_);
    const int columns = locked_ + size_ + next_;
    if (columns > basis_.capacity() - fixed_) {
        state.refuse("a basis of " + std::to_string(columns) +
                     " columns, but there is room only for " +
                     std::to_string(basis_.capacity() - fixed_));
    }
    state.read(ctx_, prefix + "basis", basis_.columns(fixed_, columns));
}

#define QUIVER_INSTANTIATE(T) template class LanczosRecurrence<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
