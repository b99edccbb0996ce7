// SPDX-License-Identifier: BSD-3-Clause
// The recurrence of a thick-restart block Lanczos method: locked pairs, search space, next block
// and the projected matrix. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/search/spectral_order.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {

/// One block of columns [C Q V F]: C the constraints, Q the locked pairs, V the search space, F the
/// next block, all orthonormal. They satisfy P A V = V H + F R E^T with E the last columns of the
/// identity and P = I - C C^H (the products below are with P A). Pairs are ordered by their key,
/// wanted end first; Ritz pairs are those of the last call of form_ritz_pairs().
///
/// This class has the columns and the small matrices. LanczosBasis makes the steps.
template <class T>
class LanczosRecurrence {
    using Real = real_t<T>;

  public:
    LanczosRecurrence(const LanczosRecurrence&) = delete;
    LanczosRecurrence& operator=(const LanczosRecurrence&) = delete;

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

    /// True if new Ritz pairs are worth their cost of size^3: the basis has grown by a quarter, and
    /// by at least one block, since the last ones.
    bool ritz_due();
    double ritz_value(int j) const { return ritz_value_[static_cast<std::size_t>(j)]; }
    /// ||R||_F, the residual of the whole search space.
    double coupling_norm() const;
    /// ||R E^T s_j||
    double ritz_residual(int j) const { return ritz_residual_[static_cast<std::size_t>(j)]; }
    /// Number of consecutive Ritz pairs, counted from the wanted end, with residuals up to `bound`;
    /// at most as many as can be locked.
    int converged_prefix(double bound) const;

    /// True if nothing was locked since the last refine().
    bool refined() const { return refined_; }
    const std::vector<double>& locked_values() const { return locked_value_; }
    /// The residuals are fresh after refine(), and estimates for pairs locked later.
    std::vector<RitzPair> locked_pairs() const {
        return ritz_pairs(locked_value_, locked_residual_);
    }
    /// Keeps the first `count` pairs of a sorted Q.
    void drop_beyond(int count);
    /// Y(:, j) = Q(:, order[j])
    void extract(const std::vector<int>& order, BlockView<T> y);

  protected:
    LanczosRecurrence(Context& ctx, const EigenProblem<T>& problem, Which which, std::uint64_t seed,
                      int max_search, int max_locked);
    ~LanczosRecurrence() = default;

    BlockView<T> constraints() { return basis_.columns(0, fixed_); }
    BlockView<T> locked_block() { return basis_.columns(fixed_, locked_); }
    BlockView<T> search_space() { return basis_.columns(fixed_ + locked_, size_); }
    BlockView<T> everything() { return basis_.columns(0, fixed_ + locked_ + size_); }
    BlockView<T> next_block() { return basis_.columns(fixed_ + locked_ + size_, next_); }
    int capacity() const;
    OrthOptions orth_options();
    /// Throws NumericalError. All ranks hold the same small matrices, so all of them throw.
    [[noreturn]] static void fail(const std::string& text);

    /// Removes all columns of V, F, H and R.
    void empty_search_space();
    /// Enlarges H to `columns` columns, of which step number `step` computed the last `width`.
    /// Throws if the coefficients show that A is not Hermitian.
    void append_to_h(const SmallMatrix<T>& coefficients, int columns, int width, std::int64_t step);
    void form_ritz_pairs();
    /// Number of Ritz vectors that a restart keeps: the first `lock`, which it locks, the next
    /// `wanted` and about half of the rest.
    int kept_at_restart(int lock, int wanted) const;
    /// V <- V S with the first S.cols() Ritz vectors, of which the first `lock` join Q.
    void rotate(const SmallMatrix<T>& rotation, int lock);
    /// Rayleigh-Ritz on Q with fresh products, which overwrite the search space.
    void refine_locked_pairs();
    /// Unlocks the pairs with residuals above `bound` and makes them the next block of an empty
    /// search space.
    void unlock_above(double bound);
    void add_to(SolverState<T>& state, const std::string& prefix);
    void take_from(const SavedState<T>& state, const std::string& prefix);

    Context& ctx_;
    GuardedOperator<T> a_;
    Which which_;
    std::uint64_t seed_;
    int fixed_;          // columns of C
    std::int64_t rows_;  // dimension of the complement of C
    int max_search_;
    int max_locked_;

    BlockVector<T> basis_;
    int locked_ = 0;
    int size_ = 0;
    int next_ = 0;
    std::vector<double> locked_value_;
    std::vector<double> locked_residual_;
    bool refined_ = false;

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

  private:
    void move_columns(int from, int to, int count);
    /// R E^T s_j for Ritz vector j.
    std::vector<T> residual_coefficients(int j) const;
};

}  // namespace quiver
