// SPDX-License-Identifier: BSD-3-Clause
// The basis of a thick-restart block Lanczos method: locked pairs, search space, next block.
// Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/abft/basis_checksums.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/search/packed.hpp"
#include "solvers/eigen/search/spectral_order.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/orth/two_passes.hpp"

namespace quiver {

/// One block of columns [C Q V F]: C the constraints, Q the locked pairs, V the search space, F the
/// next block, all orthonormal. They satisfy P A V = V H + F R E^T with E the last columns of the
/// identity and P = I - C C^H (the products below are with P A). Pairs are ordered by their key,
/// wanted end first; Ritz pairs are those of the last call of ritz().
///
/// A step optimistically assumes that its block keeps full rank and that two passes make it
/// orthonormal (see TwoPasses). The outcome is read only after the next step has been enqueued, or
/// by ritz(). If the assumption was wrong, the block is made again by block_gram_schmidt and later
/// steps are discarded: step() and ritz() may therefore shrink the sizes.
template <class T>
class LanczosBasis {
    using Real = real_t<T>;

  public:
    /// At most max_search columns in V and F, max_locked in Q; steps of up to `block` columns work
    /// in memory beside the basis. Throws InputError for linearly dependent constraints.
    LanczosBasis(Context& ctx, const EigenProblem<T>& problem, Which which, std::uint64_t seed,
                 int max_search, int max_locked, int block);

    int locked() const { return locked_; }
    int max_locked() const { return max_locked_; }
    int size() const { return size_; }
    int next_width() const { return next_; }
    /// True if no room is left for another step: restart() is due.
    bool full() const { return next_ == 0 || size_ + next_ > capacity(); }
    /// Key of an eigenvalue; the wanted end comes first.
    double key(double value) const { return which_ == Which::smallest ? value : -value; }
    /// The largest |Ritz value| seen: a lower bound of ||A||.
    double norm() const { return norm_; }
    void raise_norm(double least) { norm_ = std::max(norm_, least); }
    std::int64_t steps() const { return steps_; }
    std::int64_t applications() const { return applications_before_ + a_.applications(); }

    /// Empties the search space; the next block is `width` fresh random columns orthogonal to Q.
    void start(int width);
    /// The same from guesses: random columns fill up if the guesses are too few or dependent,
    /// random combinations replace them if they are too many.
    void start_from(BlockView<const T> guesses, int width);
    /// Q <- an orthonormal basis of the span of `x` in the complement of the constraints, at most
    /// max_locked columns. refine() computes the values.
    void lock(BlockView<const T> x);
    void forget_search_space();
    /// V <- [V F], F <- A F orthonormalised against [Q V]; H grows by the coefficients. Throws
    /// NumericalError if the coefficients show that A is not Hermitian or that a product is not
    /// finite, in this step or the one before. If an operator throws on some ranks, all ranks
    /// throw, without an additional all-reduce. On a device and one rank the call returns without
    /// waiting for the step.
    ///
    /// With a protection, the step also checks A F = [Q V F] h + F' r on the checksums of this
    /// rank, once the next product has been enqueued. A failed check is recorded until ritz() (mode
    /// `correct`); a product that is not finite returns at once to the last search space that
    /// passed its checks.
    void step();
    /// Whether ritz() is worth its cost of size^3: true when the basis has grown by a quarter
    /// since.
    bool ritz_due();
    /// Computes Ritz values of H and residual estimates ||R E^T s||. With a protection that
    /// corrects, one all-reduce of one number first tells all ranks whether a check has failed
    /// since the last time; if so, those steps are made again.
    void ritz();
    double ritz_value(int j) const { return ritz_value_[static_cast<std::size_t>(j)]; }
    /// ||R||_F, the residual of the whole search space.
    double coupling_norm() const;
    double ritz_residual(int j) const { return ritz_residual_[static_cast<std::size_t>(j)]; }
    /// How many consecutive Ritz pairs, counted from the wanted end, have residuals up to `bound`;
    /// at most as many as can be locked.
    int converged_prefix(double bound) const;
    /// Rotates V to its best Ritz vectors: locks the first `lock` of them, keeps the next `wanted`
    /// and about half of the rest.
    void restart(int lock, int wanted);

    /// Rayleigh-Ritz on Q with fresh products, which overwrite the search space. Sorts the pairs by
    /// key.
    void refine();
    /// True if nothing was locked since the last refine().
    bool refined() const { return refined_; }
    const std::vector<double>& locked_values() const { return locked_value_; }
    /// Their residuals are fresh after refine(), estimates before.
    std::vector<RitzPair> locked_pairs() const {
        return ritz_pairs(locked_value_, locked_residual_);
    }
    /// Keeps the first `count` pairs of a sorted Q.
    void drop_beyond(int count);
    /// Unlocks the pairs with residuals above `bound` and makes them the next block.
    void search_again_above(double bound);
    /// Y(:, j) = Q(:, order[j])
    void extract(const std::vector<int>& order, BlockView<T> y);

    /// Adds [Q V F], H and R to a state, between two steps; the names begin with `prefix`.
    void save(SolverState<T>& state, const std::string& prefix = "");
    /// Restores them from a state. Throws the errors of SavedState.
    void restore(const SavedState<T>& state, const std::string& prefix = "");

  private:
    BlockView<T> constraints() { return basis_.columns(0, fixed_); }
    BlockView<T> locked_block() { return basis_.columns(fixed_, locked_); }
    BlockView<T> search_space() { return basis_.columns(fixed_ + locked_, size_); }
    BlockView<T> everything() { return basis_.columns(0, fixed_ + locked_ + size_); }
    BlockView<T> next_block() { return basis_.columns(fixed_ + locked_ + size_, next_); }
    int capacity() const;
    OrthOptions orth_options();
    bool may_take_two_passes() const;
    void go_ahead();
    /// A step that reads its results before it returns.
    void careful_step();
    /// Waits for the oldest step in flight and appends it to H, or makes it again.
    void settle_oldest(bool later_work = false);
    void make_carefully(int size, int width, std::int64_t number);
    void finish_steps_under_way();
    void forget_steps_under_way();
    /// Enlarges H to `columns` columns, the last `width` of which come from that step.
    void append_to_h(const SmallMatrix<T>& coefficients, int columns, int width, std::int64_t step);
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
    /// Whether failed steps may be made again; the same on all ranks.
    bool may_step_again() const;
    void take_snapshot();
    void return_to_snapshot();
    void count_redone();
    void step_again_to(int size);
    /// Waits for all steps in flight and makes steps again until no check since the last snapshot
    /// fails.
    void settle();
    void step_again_from_snapshot(int size);
    bool begin_checked_product(BlockView<T> x, BlockView<T> y);
    void finish_checked_product(BlockView<T> x, BlockView<T> y);
    void know_columns(int at_rest);
    void know_current(BlockView<T> current);
    void check_current(BlockView<T> current, BlockView<T> x);
    void encode_next(BlockView<T> f);
    void check_step(const OrthResult<T>& orth);
    void check_basis(int columns);
    bool rotation_places_faults() const;
    void check_rotation(const SmallMatrix<T>& rotation, int lock);
    void look_at_rotation(bool later_work = false);
    void count_at_rest(const typename BasisChecksums<T>::Verdict& verdict);
    void move_columns(int from, int to, int count);
    /// R E^T s_j for Ritz vector j.
    std::vector<T> residual_coefficients(int j) const;

    Context& ctx_;
    GuardedOperator<T> a_;
    Which which_;
    std::uint64_t seed_;
    int fixed_;          // columns of C
    std::int64_t rows_;  // dimensions of the complement of C
    int max_search_;
    int max_locked_;

    BlockVector<T> basis_;
    BlockVector<T> current_;
    BlockVector<T> product_;
    int locked_ = 0;
    int size_ = 0;
    int next_ = 0;
    std::vector<double> locked_value_;
    std::vector<double> locked_residual_;
    bool refined_ = false;

    /// A step in flight whose result has not been read: V had `size` columns, the step made `width`
    /// more.
    struct StepUnderWay {
        int size = 0;
        int width = 0;
        std::int64_t number = 0;
    };
    std::optional<TwoPasses<T>> two_passes_;
    std::vector<StepUnderWay> under_way_;
    /// All ranks work on hosts, or all on devices. Otherwise their Cholesky factors would differ in
    /// the last bits.
    bool in_one_place_ = true;
    /// How many further steps read their results at once, after a step that had to be made again.
    int careful_steps_ = 0;
    /// Width of F if current_ holds a packed copy of it, else 0.
    int packed_width_ = 0;

    SmallMatrix<T> h_;
    SmallMatrix<T> coupling_;  // R
    int last_width_ = 0;       // columns of E
    std::vector<double> ritz_value_;
    std::vector<double> ritz_residual_;
    SmallMatrix<T> ritz_vector_;
    int size_at_ritz_ = 0;

    double norm_ = 0;
    std::int64_t steps_ = 0;
    std::int64_t applications_before_ = 0;  // products made before the restored state
    std::uint64_t random_streams_ = 0;

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
    int attempts_ = 0;    // since the last snapshot
    bool dirty_ = false;  // a check on this rank has failed since the last snapshot
    int found_ = 0;       // checks that have failed since then: faults that are not redone yet
};

}  // namespace quiver
