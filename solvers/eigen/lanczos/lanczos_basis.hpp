// SPDX-License-Identifier: BSD-3-Clause
// The steps of a thick-restart block Lanczos method. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "solvers/eigen/lanczos/protected_steps.hpp"
#include "solvers/eigen/search/packed.hpp"
#include "solvers/orth/two_passes.hpp"

namespace quiver {

/// The basis [C Q V F] of LanczosRecurrence, with its steps. A step optimistically assumes that its
/// block keeps full rank and that two passes make it orthonormal (see TwoPasses). The outcome is
/// read only after the next step has been enqueued, or by ritz(). If the assumption was wrong, the
/// block is made again by block_gram_schmidt and later steps are discarded: step() and ritz() may
/// therefore shrink the sizes.
template <class T>
class LanczosBasis final : public ProtectedSteps<T> {
    using Base = ProtectedSteps<T>;

  public:
    /// At most max_search columns in V and F together, and max_locked in Q. Steps of up to `block`
    /// columns use contiguous copies of their blocks. Throws InputError for linearly dependent
    /// constraints.
    LanczosBasis(Context& ctx, const EigenProblem<T>& problem, Which which, std::uint64_t seed,
                 int max_search, int max_locked, int block);

    /// Empties the search space; the next block is `width` fresh random columns orthogonal to C and
    /// Q.
    void start(int width);
    /// The same from guesses. Random columns complete a block of too few or dependent guesses;
    /// random combinations replace too many guesses.
    void start_from(BlockView<const T> guesses, int width);
    /// Q <- an orthonormal basis of the span of `x` in the complement of the constraints, at most
    /// max_locked columns. refine() computes the values.
    void lock(BlockView<const T> x);
    void forget_search_space();
    /// V <- [V F], F <- A F orthonormalised against [C Q V]; H grows by the coefficients. Throws
    /// NumericalError if the coefficients show that A is not Hermitian or that a product is not
    /// finite, in this step or the one before. If an operator throws on some ranks, all ranks
    /// throw, without an additional all-reduce. On a device and one rank the call returns without
    /// waiting for the step.
    ///
    /// With a protection, the step also checks A F = [C Q V F] h + F' r by the checksums of this
    /// rank, once the next product has been enqueued. With mode `correct`, ritz() repeats the steps
    /// since the last snapshot if a check has failed, and a step whose product is not finite
    /// returns to that snapshot at once.
    void step();
    /// Computes Ritz values of H and residual estimates ||R E^T s||. With a protection that
    /// corrects, one all-reduce of one number first tells all ranks whether a check has failed
    /// since the last snapshot; if so, the steps since then are made again.
    void ritz();
    /// Rotates V to its best Ritz vectors: locks the first `lock` of them, keeps the next `wanted`
    /// and about half of the rest.
    void restart(int lock, int wanted);

    /// Rayleigh-Ritz on Q with fresh products, which overwrite the search space. Sorts the pairs by
    /// key.
    void refine();
    /// Unlocks the pairs with residuals above `bound` and makes them the next block.
    void search_again_above(double bound);
    /// Adds [Q V F], H and R to a state, between two steps; the names begin with `prefix`.
    void save(SolverState<T>& state, const std::string& prefix = "");
    /// Restores them from a state. Throws the errors of SavedState.
    void restore(const SavedState<T>& state, const std::string& prefix = "");

  private:
    using Base::a_;
    using Base::append_to_h;
    using Base::basis_;
    using Base::check_basis;
    using Base::check_current;
    using Base::check_rotation;
    using Base::check_step;
    using Base::constraints;
    using Base::corrects;
    using Base::coupling_;
    using Base::ctx_;
    using Base::encode_next;
    using Base::everything;
    using Base::f_sums_;
    using Base::fail;
    using Base::fixed_;
    using Base::h_;
    using Base::kept_at_restart;
    using Base::know_columns;
    using Base::know_current;
    using Base::last_width_;
    using Base::locked_;
    using Base::locked_residual_;
    using Base::locked_value_;
    using Base::look_at_rotation;
    using Base::max_locked_;
    using Base::max_search_;
    using Base::may_step_again;
    using Base::next_;
    using Base::next_block;
    using Base::next_sums_;
    using Base::orth_options;
    using Base::protection_;
    using Base::refined_;
    using Base::ritz_vector_;
    using Base::rotation_;
    using Base::rotation_places_faults;
    using Base::rows_;
    using Base::seed_;
    using Base::settle;
    using Base::size_;
    using Base::step_again_from_snapshot;
    using Base::steps_;
    using Base::sums_;
    using Base::take_snapshot;

    void make_step() override { step(); }
    bool may_take_two_passes() const;
    int uncoupled() const;
    void go_ahead();
    /// A step that reads its results before it returns.
    void careful_step();
    /// Waits for the oldest step in flight and appends it to H, or makes it again.
    void settle_oldest(bool later_work = false);
    void make_carefully(int size, int width, std::int64_t number);
    void finish_steps_under_way() override;
    void forget_steps_under_way() override;
    [[noreturn]] static void fail_in_step(std::int64_t step, const std::string& why);
    bool begin_checked_product(BlockView<T> x, BlockView<T> y);
    void finish_checked_product(BlockView<T> x, BlockView<T> y);

    /// Blocks without gaps between their rows: F, and its product.
    BlockVector<T> current_;
    BlockVector<T> product_;
    /// Width of F if current_ holds a packed copy of it, else 0.
    int packed_width_ = 0;

    /// A step in flight whose result has not been read: V had `size` columns, the step made `width`
    /// more.
    struct StepUnderWay {
        int size = 0;
        int width = 0;
        std::int64_t number = 0;
    };
    std::optional<TwoPasses<T>> two_passes_;
    std::vector<StepUnderWay> under_way_;
    /// True if all ranks work on hosts, or all on devices. Otherwise the Cholesky factors of the
    /// ranks would differ in the last bits.
    bool in_one_place_ = true;
    /// Number of further steps that read their results at once, after a step that was made again.
    int careful_steps_ = 0;
};

}  // namespace quiver
