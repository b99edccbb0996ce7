// SPDX-License-Identifier: BSD-3-Clause
// How a basis whose products are protected checks its steps, and goes back where one fails.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/lanczos_basis.hpp"

namespace quiver {
namespace {

/// How often the steps since a snapshot are made again before what they show is believed.
constexpr int most_attempts = 5;
/// From here on two faults of one chunk between two restarts are taken to be unlikely.
constexpr std::int64_t many_chunks = 16;

}  // namespace

template <class T>
bool LanczosBasis<T>::may_step_again() const {
    return corrects() && attempts_ < most_attempts;
}

template <class T>
void LanczosBasis<T>::take_snapshot() {
    attempts_ = 0;
    dirty_ = found_ = false;
    if (corrects()) {
        snapshot_ = {size_, next_, h_, coupling_, last_width_, norm_};
    }
}

template <class T>
void LanczosBasis<T>::return_to_snapshot() {
    ++attempts_;
    look_at_rotation();
    forget_steps_under_way();
    dirty_ = found_ = false;
    size_ = snapshot_.size;
    size_at_ritz_ = std::min(size_at_ritz_, size_);
    next_ = snapshot_.next;
    h_ = snapshot_.h;
    coupling_ = snapshot_.coupling;
    last_width_ = snapshot_.last_width;
    norm_ = snapshot_.norm;
    packed_width_ = 0;
    // F is where it was, and so are the columns before it, unless memory has changed.
    check_basis(fixed_ + locked_ + size_ + next_);
    sums_.forget_from(fixed_ + locked_ + size_);
    next_sums_ = {};
}

template <class T>
void LanczosBasis<T>::step_again_to(int size) {
    while (size_ < size && !full()) {
        step();
    }
}

/// After an error that all ranks have met, or one of this only rank.
template <class T>
void LanczosBasis<T>::step_again_from_snapshot(int size) {
    a_.forget_pending();
    return_to_snapshot();
    step_again_to(size);
}

template <class T>
void LanczosBasis<T>::settle() {
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
            // The same again and again is not a passing fault: fresh residuals will tell.
            protection_->counts().rounding += found_ ? 1 : 0;
            break;
        }
        if (found_) {
            ++protection_->counts().faults;
            ++protection_->counts().redone;
            ctx_.emit(
                FaultEvent{"basis", "redone", protection_->counts().products, ctx_.comm().rank()});
        }
        const int size = size_;
        return_to_snapshot();
        step_again_to(size);
    }
    take_snapshot();
}

/// Sums of the columns at rest: those before F.
template <class T>
void LanczosBasis<T>::know_columns(int at_rest) {
    sums_.forget_from(at_rest);
    sums_.learn(ctx_, basis_.columns(0, fixed_ + locked_));
    sums_.learn(ctx_, basis_.columns(0, at_rest));
}

/// Enqueues Y = A X, X a copy of F, and its sums, then looks at the step before. False where that
/// had to be made again: this one has not been made, then.
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

/// Looks at the sums of Y while the first product of Gram-Schmidt is made, which only reads.
template <class T>
void LanczosBasis<T>::finish_checked_product(BlockView<T> x, BlockView<T> y) {
    const int at_rest = fixed_ + locked_ + size_;
    const BlockView<T> v = basis_.columns(0, at_rest + x.cols);
    // With several ranks it has a sum over them, which one of them can not make again.
    const bool early = !corrects() || ctx_.comm().size() == 1;
    if (early) {
        two_passes_->project(v, y);
    }
    sums_.append(next_sums_);
    bool agreed = true;
    a_.run_part(ctx_, y, false,
                [&] { agreed = protection_->finish(ctx_, std::move(next_sums_), early); });
    next_sums_ = {};
    check_current(basis_.columns(at_rest, x.cols), x);
    if (!early || (corrects() && !agreed)) {
        two_passes_->project(v, y);
    }
}

/// F's sums, for a product to be checked with that is made at once.
template <class T>
void LanczosBasis<T>::expect_current(BlockView<T> current, BlockView<T> x) {
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
    protection_->expect_input(x.data, std::move(next_sums_));
    next_sums_ = {};
}

/// After the product: an X that it found changed and restored was copied from F.
template <class T>
void LanczosBasis<T>::check_current(BlockView<T> current, BlockView<T> x) {
    if (protection_ == nullptr) {
        return;
    }
    if (protection_->input_lost()) {
        dirty_ = true;  // F itself, if it was hit, is looked at on the return
    } else if (protection_->input_restored()) {
        if (current.data != x.data) {
            copy(ctx_, BlockView<const T>(x), current);
        }
        // Other ranks have multiplied with what this one had sent them.
        dirty_ = dirty_ || ctx_.comm().size() > 1;
    }
}

/// The sums of the new F.
template <class T>
void LanczosBasis<T>::encode_next(BlockView<T> f) {
    if (protection_ != nullptr && f.cols > 0) {
        next_sums_ = protection_->encode_input(ctx_, f);
    }
}

/// Compares the sums of F with those of the product and of the basis.
template <class T>
void LanczosBasis<T>::check_step(const OrthResult<T>& orth) {
    if (protection_ == nullptr || orth.columns == 0) {
        return;
    }
    const Checksum<T>& product = protection_->output_sums();
    if (product.columns() != orth.h.cols()) {
        return;  // the operand was not finite, and so is the product
    }
    ++protection_->counts().basis_checks;
    if (sums_.relation_holds(product, orth.h, next_sums_, orth.r, orth.passes)) {
        return;
    }
    ++protection_->counts().alarms;
    dirty_ = found_ = true;
    if (!corrects()) {
        ++protection_->counts().faults;
        ctx_.emit(FaultEvent{"basis", "found", protection_->counts().products, ctx_.comm().rank()});
    }
}

template <class T>
void LanczosBasis<T>::count_at_rest(const typename BasisChecksums<T>::Verdict& verdict) {
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

/// The first columns, which are at rest: bit for bit.
template <class T>
void LanczosBasis<T>::check_basis(int columns) {
    if (corrects() && columns > 0) {
        count_at_rest(
            sums_.verify(ctx_, basis_.columns(0, std::min(columns, sums_.columns())), true));
    }
}

/// Whether sums of V S tell where V has changed, on this rank. Rounding hides the row in single
/// precision. A chunk names one row of all of V, where sums of V name one of each of its blocks.
template <class T>
bool LanczosBasis<T>::rotation_places_faults() const {
    return std::is_same_v<Real, double> &&
           (basis_.row_map().local_rows() >> sums_.log_chunk()) >= many_chunks;
}

/// V S has to have the sums of V times S, by chunk, which tells of V as it was read and of the
/// product. The host makes those sums while the device makes V S and its sums, and looks once the
/// next product is on its way. They are known from then on, but where some columns become locked,
/// and part from the others.
template <class T>
void LanczosBasis<T>::check_rotation(const SmallMatrix<T>& rotation, int lock) {
    const int first = fixed_ + locked_;
    kept_sums_.begin(ctx_, basis_.columns(first, rotation.cols()), {}, protection_->log_chunk());
    rotation_ = {first, rotation.cols(), sums_.rotated(first, rotation)};
    sums_.forget_from(first);
    if (lock > 0) {
        look_at_rotation();
        sums_.forget_from(first);
    }
}

template <class T>
void LanczosBasis<T>::look_at_rotation(bool later_work) {
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

#define QUIVER_INSTANTIATE(T)                                                          \
    template bool LanczosBasis<T>::may_step_again() const;                             \
    template void LanczosBasis<T>::take_snapshot();                                    \
    template void LanczosBasis<T>::return_to_snapshot();                               \
    template void LanczosBasis<T>::step_again_to(int);                                 \
    template void LanczosBasis<T>::step_again_from_snapshot(int);                      \
    template void LanczosBasis<T>::settle();                                           \
    template void LanczosBasis<T>::know_columns(int);                                  \
    template bool LanczosBasis<T>::begin_checked_product(BlockView<T>, BlockView<T>);  \
    template void LanczosBasis<T>::finish_checked_product(BlockView<T>, BlockView<T>); \
    template void LanczosBasis<T>::expect_current(BlockView<T>, BlockView<T>);         \
    template void LanczosBasis<T>::check_current(BlockView<T>, BlockView<T>);          \
    template void LanczosBasis<T>::encode_next(BlockView<T>);                          \
    template void LanczosBasis<T>::check_step(const OrthResult<T>&);                   \
    template void LanczosBasis<T>::check_basis(int);                                   \
    template bool LanczosBasis<T>::rotation_places_faults() const;                     \
    template void LanczosBasis<T>::look_at_rotation(bool);                             \
    template void LanczosBasis<T>::check_rotation(const SmallMatrix<T>&, int);         \
    template void LanczosBasis<T>::count_at_rest(const BasisChecksums<T>::Verdict&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
