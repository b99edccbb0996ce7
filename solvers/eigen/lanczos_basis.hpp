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
#include "solvers/eigen/guarded_operator.hpp"
#include "solvers/eigen/packed.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/orth/two_passes.hpp"

namespace quiver {

/// One block of columns [C Q V F]: C the constraints, Q the locked pairs, V the search space, F the
/// next block, all orthonormal, with P A V = V H + F R E^T, E the last columns of V, P = I - C C^H
/// (the products below are with P A). Pairs are ordered by their key,
/// wanted end first; Ritz pairs are those of the last call of ritz().
///
/// A step goes ahead as if its block kept all directions and two passes made it orthonormal (see
/// TwoPasses); what came of it is looked at after the next step has been enqueued, or by ritz(). A
/// block for which that was wrong is made again, by block_gram_schmidt, and what was built on it
/// forgotten: sizes may have shrunk after step() and ritz() then.
template <class T>
class LanczosBasis {
    using Real = real_t<T>;

  public:
    /// At most max_search columns in V and F, max_locked in Q; steps of up to `block` columns are
    /// made beside the basis. Throws InputError for constraints
    /// that are linearly dependent.
    LanczosBasis(Context& ctx, const EigenProblem<T>& problem, Which which, std::uint64_t seed,
                 int max_search, int max_locked, int block);

    int locked() const { return locked_; }
    int max_locked() const { return max_locked_; }
    int size() const { return size_; }
    int next_width() const { return next_; }
    /// No room for another step: time to restart.
    bool full() const { return next_ == 0 || size_ + next_ > capacity(); }
    /// Ordering in which the wanted end comes first.
    double key(double value) const { return which_ == Which::smallest ? value : -value; }
    /// The largest |Ritz value| seen: a lower bound of ||A||.
    double norm() const { return norm_; }
    void raise_norm(double least) { norm_ = std::max(norm_, least); }
    std::int64_t steps() const { return steps_; }
    std::int64_t applications() const { return applications_before_ + a_.applications(); }

    /// Empties the search space; the next block is `width` fresh random columns orthogonal to Q.
    void start(int width);
    /// The same from guesses: these, with random columns where there are fewer or they are
    /// dependent, or random combinations of them where there are more.
    void start_from(BlockView<const T> guesses, int width);
    /// Q <- what `x` spans beyond the constraints; max_locked columns at most. refine() gives them
    /// values.
    void lock(BlockView<const T> x);
    void forget_search_space();
    /// V <- [V F], F <- A F orthonormalised against [Q V]; H grows by the coefficients. Throws
    /// NumericalError when they show that A is not Hermitian, or that a product is not finite, of
    /// this step or of the one before. An operator that throws on some ranks makes all of them
    /// throw, without a sum more than there are. On a device and one rank nothing waits for this
    /// step.
    ///
    /// With a protection, checks of this rank's sums follow: A F = [Q V F] h + F' r, looked at once
    /// the next product is on its way. One that fails is remembered until ritz() (`correct`);
    /// products that are not finite lead back at once to the last search space known to be right.
    void step();
    /// The dense eigenproblem costs size^3: true when the basis has grown by a quarter since.
    bool ritz_due();
    /// Ritz values of H and residual estimates ||R E^T s||. With a protection that corrects, the
    /// ranks first tell each other, in one all-reduce of a word, whether a check has failed since
    /// the last time, and if so make those steps again.
    void ritz();
    double ritz_value(int j) const { return ritz_value_[static_cast<std::size_t>(j)]; }
    /// ||R||_F, the residual of the whole search space.
    double coupling_norm() const;
    double ritz_residual(int j) const { return ritz_residual_[static_cast<std::size_t>(j)]; }
    /// How many Ritz pairs at the wanted end have residuals up to `bound`, without a gap; no more
    /// than can be locked.
    int converged_prefix(double bound) const;
    /// Rotates V to its best Ritz vectors, locks the first `lock` of them, keeps `wanted` of the
    /// rest and half of what is beyond them.
    void restart(int lock, int wanted);

    /// Rayleigh-Ritz on Q with fresh products, which take the place of the search space. Sorts the
    /// pairs by key.
    void refine();
    /// Nothing was locked since the last refine().
    bool refined() const { return refined_; }
    const std::vector<double>& locked_values() const { return locked_value_; }
    /// ||A x - lambda x||: fresh after refine(), estimates before.
    const std::vector<double>& locked_residuals() const { return locked_residual_; }
    /// Keeps the first `count` pairs of a sorted Q.
    void drop_beyond(int count);
    /// Pairs with residuals up to `bound` stay locked, the others start a search.
    void search_again_above(double bound);
    /// Y(:, j) = Q(:, order[j])
    void extract(const std::vector<int>& order, BlockView<T> y);

    /// Adds what [Q V F], H and R are, between two steps, to a state; names begin with `prefix`.
    void save(SolverState<T>& state, const std::string& prefix = "");
    /// Takes them from one. Throws what SavedState does.
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
    /// Looks at what it does before it goes on.
    void careful_step();
    /// What came of the oldest step under way, or of all.
    void settle_oldest(bool later_work = false);
    void make_carefully(int size, int width, std::int64_t number);
    void finish_steps_under_way();
    void forget_steps_under_way();
    /// H of `columns` columns, the last `width` of them by that step.
    void append_to_h(const SmallMatrix<T>& coefficients, int columns, int width, std::int64_t step);
    /// What undoes steps: V only grows by them.
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
    /// On all ranks alike.
    bool may_step_again() const;
    void take_snapshot();
    void return_to_snapshot();
    void step_again_to(int size);
    /// No step is under way, and no check since the last snapshot has failed for good.
    void settle();
    void step_again_from_snapshot(int size);
    bool begin_checked_product(BlockView<T> x, BlockView<T> y);
    void finish_checked_product(BlockView<T> x, BlockView<T> y);
    void know_columns(int at_rest);
    void expect_current(BlockView<T> current, BlockView<T> x);
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

    /// A step that nobody has looked at yet: it found `size` columns in V and made `width` more.
    struct StepUnderWay {
        int size = 0;
        int width = 0;
        std::int64_t number = 0;
    };
    std::optional<TwoPasses<T>> two_passes_;
    std::vector<StepUnderWay> under_way_;
    /// Of ranks on the host and on devices each would have a Cholesky factor of its own, which
    /// differs in the last bits.
    bool in_one_place_ = true;
    /// Steps that look, after one that had to be made again.
    int careful_steps_ = 0;
    /// Of F as current_ holds it, too; 0: not there.
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
    std::int64_t applications_before_ = 0;  // until the state that was restored
    std::uint64_t random_streams_ = 0;

    ProtectedMatrix<T>* protection_;  // null: nothing is checked
    BasisChecksums<T> sums_;          // of [C Q V]
    Checksum<T> next_sums_;           // of F
    ChecksumUnderWay<T> f_sums_;      // the same on their way
    /// A rotation that nobody has looked at yet: so many columns from `first` on.
    struct Rotation {
        int first = 0;
        int columns = 0;
        std::optional<WantedSums<T>> wanted;
    };
    std::optional<Rotation> rotation_;
    ChecksumUnderWay<T> kept_sums_;  // of what it made
    Snapshot snapshot_;
    int attempts_ = 0;    // since the last snapshot
    bool dirty_ = false;  // a check on this rank has failed since the last snapshot
    bool found_ = false;  // and it is not counted yet
};

}  // namespace quiver
