// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/protected_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {
namespace {

/// Maximal number of times that the steps since a snapshot are made again; after that their results
/// are accepted.
constexpr int most_attempts = 5;
/// With at least this many chunks, two faults in one chunk between two restarts are unlikely.
constexpr std::int64_t many_chunks = 16;

}  // namespace

template <class T>
ProtectedSteps<T>::ProtectedSteps(Context& ctx, const EigenProblem<T>& problem, Which which,
                                  std::uint64_t seed, int max_search, int max_locked)
    : Base(ctx, problem, which, seed, max_search, max_locked),
      protection_(problem.protection == &problem.a && problem.protection->mode() != AbftMode::off
                      ? problem.protection
                      : nullptr),
      sums_(protection_ != nullptr ? protection_->log_chunk() : least_log_chunk) {}

template <class T>
bool ProtectedSteps<T>::may_step_again() const {
    return corrects() && attempts_ < most_attempts;
}

template <class T>
void ProtectedSteps<T>::take_snapshot() {
    attempts_ = 0;
    dirty_ = false;
    found_ = 0;
    if (corrects()) {
        snapshot_ = {size_, next_, h_, coupling_, last_width_, norm_};
    }
}

template <class T>
void ProtectedSteps<T>::return_to_snapshot() {
    ++attempts_;
    look_at_rotation();
    forget_steps_under_way();
    dirty_ = false;
    found_ = 0;
    size_ = snapshot_.size;
    size_at_ritz_ = std::min(size_at_ritz_, size_);
    next_ = snapshot_.next;
    h_ = snapshot_.h;
    coupling_ = snapshot_.coupling;
    last_width_ = snapshot_.last_width;
    norm_ = snapshot_.norm;
    // The snapshot has no copies of F and of the columns before F: compare these with their
    // checksums.
    check_basis(fixed_ + locked_ + size_ + next_);
    sums_.forget_from(fixed_ + locked_ + size_);
    next_sums_ = {};
}

/// Counts the failed checks as redone.
template <class T>
void ProtectedSteps<T>::count_redone() {
    if (found_ > 0) {
        protection_->counts().redone += found_;
        ctx_.emit(
            FaultEvent{"basis", "redone", protection_->counts().products, ctx_.comm().rank()});
    }
}

template <class T>
void ProtectedSteps<T>::step_again_to(int size) {
    while (size_ < size && !this->full()) {
        make_step();
    }
}

/// Makes the steps up to `size` columns again, after an error on all ranks or on this rank only.
template <class T>
void ProtectedSteps<T>::step_again_from_snapshot(int size) {
    a_.forget_pending();
    count_redone();
    return_to_snapshot();
    step_again_to(size);
}

template <class T>
void ProtectedSteps<T>::settle() {
    if (!corrects()) {
        finish_steps_under_way();
        return;
    }
    look_at_rotation();
    while (true) {
        const int before = size_;
        try {
            finish_steps_under_way();
        } catch (const NumericalError&) {
            if (!may_step_again()) {
                throw;
            }
            step_again_from_snapshot(before);
            continue;
        }
        if (ctx_.comm().sum(std::int64_t{dirty_ ? 1 : 0}) == 0) {
            break;
        }
        if (attempts_ == most_attempts) {
            // The same failure in every attempt is not a transient fault. The fresh residuals
            // decide about the result.
            protection_->counts().faults -= found_;
            protection_->counts().rounding += found_;
            break;
        }
        count_redone();
        const int size = size_;
        return_to_snapshot();
        step_again_to(size);
    }
    take_snapshot();
}

/// Forms the missing checksums of the columns before F, which later steps do not change.
template <class T>
void ProtectedSteps<T>::know_columns(int at_rest) {
    sums_.forget_from(at_rest);
    sums_.learn(ctx_, basis_.columns(0, fixed_ + locked_));
    sums_.learn(ctx_, basis_.columns(0, at_rest));
}

/// Forms the checksums of F, unless they are known, before a product that is checked at once.
template <class T>
void ProtectedSteps<T>::know_current(BlockView<T> current) {
    if (protection_ == nullptr) {
        return;
    }
    look_at_rotation();
    know_columns(fixed_ + locked_ + size_ - current.cols);
    if (next_sums_.columns() != current.cols) {
        next_sums_ = protection_->encode_input(ctx_, current);
    }
    protection_->strike_basis(ctx_, everything());
    sums_.append(next_sums_);
}

/// After the product: if the check has restored a changed X, copies X back to F.
template <class T>
void ProtectedSteps<T>::check_current(BlockView<T> current, BlockView<T> x) {
    if (protection_ == nullptr) {
        return;
    }
    if (protection_->outcome().input_lost) {
        dirty_ = true;  // return_to_snapshot() checks F itself
    } else if (protection_->outcome().input_restored) {
        if (current.data != x.data) {
            copy(ctx_, BlockView<const T>(x), current);
        }
        // Other ranks have used the wrong values that this rank had sent.
        dirty_ = dirty_ || ctx_.comm().size() > 1;
    }
}

/// Forms the checksums of the new F.
template <class T>
void ProtectedSteps<T>::encode_next(BlockView<T> f) {
    if (protection_ != nullptr && f.cols > 0) {
        next_sums_ = protection_->encode_input(ctx_, f);
    }
}

/// Checks A F = [C Q V F] h + F' r: compares the checksums of the product with those of the basis
/// and of the new F.
template <class T>
void ProtectedSteps<T>::check_step(const OrthResult<T>& orth) {
    if (protection_ == nullptr || orth.columns == 0) {
        return;
    }
    const Checksum<T>& product = protection_->outcome().sums;
    if (product.columns() != orth.h.cols()) {
        return;  // no checksums: the operand, and so the product, is not finite
    }
    ++protection_->counts().basis_checks;
    if (sums_.relation_holds(product, orth.h, next_sums_, orth.r, orth.passes)) {
        return;
    }
    ++protection_->counts().alarms;
    ++protection_->counts().faults;
    dirty_ = true;
    ++found_;
    if (!corrects()) {
        ctx_.emit(FaultEvent{"basis", "found", protection_->counts().products, ctx_.comm().rank()});
    }
}

template <class T>
void ProtectedSteps<T>::count_at_rest(const typename BasisChecksums<T>::Verdict& verdict) {
    AbftCounts& counts = protection_->counts();
    ++counts.basis_checks;
    counts.faults += verdict.found;
    counts.mended += verdict.restored;
    counts.failed += verdict.found - verdict.restored;
    if (verdict.found > 0) {
        ctx_.emit(FaultEvent{"basis", verdict.restored == verdict.found ? "mended" : "not mended",
                             counts.products, ctx_.comm().rank()});
    }
}

/// Checks the first columns, which do not change between steps, bit for bit.
template <class T>
void ProtectedSteps<T>::check_basis(int columns) {
    if (corrects() && columns > 0) {
        count_at_rest(
            sums_.verify(ctx_, basis_.columns(0, std::min(columns, sums_.columns())), true));
    }
}

/// True if the checksums of V S suffice to locate a changed row of V on this rank. In single
/// precision rounding hides the row. The checksums of V S locate one row in each chunk, so that
/// there must be many chunks; the checksums of V locate one row in each chunk of each block of V.
template <class T>
bool ProtectedSteps<T>::rotation_places_faults() const {
    return std::is_same_v<Real, double> &&
           (basis_.row_map().local_rows() >> sums_.log_chunk()) >= many_chunks;
}

/// Checks V S by its checksums: chunk by chunk they must equal the checksums of V times S. The
/// check covers V as it was read, and the product. The host computes the expected checksums while
/// the device computes V S and its checksums. The host compares them once the next product is in
/// flight, or at once if columns of V S are locked. Without locked columns the checksums of V S are
/// kept for later checks.
template <class T>
void ProtectedSteps<T>::check_rotation(const SmallMatrix<T>& rotation, int first, int lock) {
    kept_sums_.begin(ctx_, basis_.columns(first, rotation.cols()), {}, protection_->log_chunk());
    rotation_ = {first, rotation.cols(), sums_.rotated(first, rotation)};
    sums_.forget_from(first);
    if (lock > 0) {
        look_at_rotation();
        sums_.forget_from(first);
    }
}

template <class T>
void ProtectedSteps<T>::look_at_rotation(bool later_work) {
    if (!rotation_) {
        return;
    }
    const Rotation rotation = *std::exchange(rotation_, std::nullopt);
    Checksum<T> sums = kept_sums_.take(later_work);
    if (rotation.wanted) {
        count_at_rest(sums_.restore_rows(ctx_, basis_.columns(rotation.first, rotation.columns),
                                         *rotation.wanted, sums));
    }
    if (sums_.columns() == rotation.first) {
        sums_.append(std::move(sums));
    }
}

#define QUIVER_INSTANTIATE(T) template class ProtectedSteps<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
