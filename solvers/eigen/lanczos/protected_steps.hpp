// SPDX-License-Identifier: BSD-3-Clause
// Checks of the steps of block Lanczos by checksums, and the return to a snapshot if a check fails.
// Private to solvers/eigen.
#pragma once

#include <optional>

#include "solvers/abft/basis_checksums.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/lanczos/lanczos_recurrence.hpp"

namespace quiver {

/// The recurrence with checksums of its columns. A failed check of a step is recorded. With mode
/// `correct`, settle() then makes all steps since the last snapshot again. Without a protection
/// nothing is checked.
template <class T>
class ProtectedSteps : public LanczosRecurrence<T> {
    using Base = LanczosRecurrence<T>;
    using Real = real_t<T>;

  protected:
    ProtectedSteps(Context& ctx, const EigenProblem<T>& problem, Which which, std::uint64_t seed,
                   int max_search, int max_locked);
    virtual ~ProtectedSteps() = default;

    /// LanczosBasis implements these: one step; waiting for the steps in flight; discarding them.
    virtual void make_step() = 0;
    virtual void finish_steps_under_way() = 0;
    virtual void forget_steps_under_way() = 0;

    using Base::a_;
    using Base::basis_;
    using Base::coupling_;
    using Base::ctx_;
    using Base::everything;
    using Base::fixed_;
    using Base::h_;
    using Base::last_width_;
    using Base::locked_;
    using Base::next_;
    using Base::next_block;
    using Base::norm_;
    using Base::size_;
    using Base::size_at_ritz_;

    /// The state to which a failed step returns. V itself needs no copy: steps only append to it.
    struct Snapshot {
        int size = 0;
        int next = 0;
        SmallMatrix<T> h;
        SmallMatrix<T> coupling;
        int last_width = 0;
        double norm = 0;
    };
    bool corrects() const {
        return protection_ != nullptr && protection_->mode() == AbftMode::correct;
    }
    /// True if failed steps may be made again; the same on all ranks.
    bool may_step_again() const;
    void take_snapshot();
    void return_to_snapshot();
    void count_redone();
    void step_again_to(int size);
    /// Waits for all steps in flight, then, with mode `correct`, makes the steps since the last
    /// snapshot again until all their checks pass or the attempts are used up.
    void settle();
    void step_again_from_snapshot(int size);
    void know_columns(int at_rest);
    void know_current(BlockView<T> current);
    void check_current(BlockView<T> current, BlockView<T> x);
    void encode_next(BlockView<T> f);
    void check_step(const OrthResult<T>& orth);
    void check_basis(int columns);
    bool rotation_places_faults() const;
    void check_rotation(const SmallMatrix<T>& rotation, int first, int lock);
    void look_at_rotation(bool later_work = false);
    void count_at_rest(const typename BasisChecksums<T>::Verdict& verdict);

    ProtectedMatrix<T>* protection_;  // null: no checks
    BasisChecksums<T> sums_;          // checksums of [C Q V]
    Checksum<T> next_sums_;           // checksums of F
    ChecksumUnderWay<T> f_sums_;      // the same, in flight
    /// A rotation whose checksums have not been compared yet: `columns` columns from `first` on.
    struct Rotation {
        int first = 0;
        int columns = 0;
        std::optional<WantedSums<T>> wanted;
    };
    std::optional<Rotation> rotation_;
    ChecksumUnderWay<T> kept_sums_;  // of the rotated columns
    Snapshot snapshot_;
    int attempts_ = 0;    // repetitions since the last snapshot
    bool dirty_ = false;  // a check on this rank has failed since the last snapshot
    int found_ = 0;       // failed checks since the last snapshot: faults not yet redone
};

}  // namespace quiver
