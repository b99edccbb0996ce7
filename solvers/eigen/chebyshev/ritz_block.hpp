// SPDX-License-Identifier: BSD-3-Clause
// The columns of a subspace iteration: locked pairs and an active block with its Ritz pairs.
// Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/search/packed.hpp"
#include "solvers/eigen/search/spectral_order.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// [C Q] and X: C the constraints, Q the locked pairs, X the active pairs; all orthonormal after a
/// Rayleigh-Ritz step. Pairs are ordered by their key, the most wanted first.
template <class T>
class RitzBlock {
    using Real = real_t<T>;

  public:
    /// Columns that a Rayleigh-Ritz step multiplies at once.
    static constexpr int product_width = 64;
    /// Maximal numbers of columns.
    struct Room {
        int locked = 0;
        int active = 0;
        int fresh = 0;
    };
    RitzBlock(Context& ctx, const EigenProblem<T>& problem, SpectralOrder order, std::uint64_t seed,
              const Room& room);

    GuardedOperator<T>& a() { return a_; }
    BlockView<const T> constraints() { return outer_.columns(0, fixed_); }
    int locked() const { return static_cast<int>(locked_pair_.size()); }
    int active() const { return active_; }
    double key(int j) const { return order_.key(active_pair(j).value); }
    double residual(int j) const { return active_pair(j).residual; }
    double locked_key(int j) const { return order_.key(locked_pair(j).value); }
    double locked_residual(int j) const { return locked_pair(j).residual; }
    /// The largest |Ritz value| seen: a lower bound of ||A||.
    double norm() const { return norm_; }
    void raise_norm(double least) { norm_ = std::max(norm_, least); }

    /// X <- guesses and random columns (see fill_start_block).
    void start(BlockView<const T> guesses, int width);
    BlockView<T> active_block() { return packed(x_, active_); }
    /// Orthonormalises X against [C Q], then Rayleigh-Ritz with fresh products: the keys ascend,
    /// and the residuals are ||A x - lambda x||. Throws NumericalError, naming `step`, if products
    /// are not finite or the operator is not Hermitian.
    void rayleigh_ritz(std::int64_t step);
    /// Number of consecutive active pairs, counted from the first, with residuals up to `bound`.
    int converged_prefix(double bound) const;
    /// Moves the `unfit` active pairs behind the others and returns the number of the others. Keeps
    /// the order within both groups.
    int move_back(const std::function<bool(int)>& unfit);
    /// Locks the first `count` active pairs.
    void lock(int count);
    /// Rayleigh-Ritz on Q with fresh products; sorts the pairs.
    void refine(std::int64_t step);
    /// True if nothing was locked since the last refine().
    bool refined() const { return refined_; }
    /// Makes locked pairs active again: those with residuals above `bound`, and of the others those
    /// after the first `most`. Call rayleigh_ritz() afterwards.
    void release(double bound, int most);

    /// Fresh random columns (I - D D^H) Y with entries of Y in [-1, 1), not scaled; D = [C Q] and
    /// the first `deflating` active columns.
    BlockView<T> make_fresh(int columns, int deflating);
    /// Projects filtered columns onto the complement of [C Q] and returns their lengths.
    std::vector<double> fresh_lengths(BlockView<T> fresh, std::int64_t step);
    /// Appends the columns to the active block; they replace its last columns if there is no room.
    /// Call rayleigh_ritz() afterwards.
    void append(BlockView<const T> fresh);
    /// An upper bound for the components of y_j (in the span of the active block) along
    /// eigenvectors with keys up to `cut`: the largest sum over the Ritz vectors x_i of |x_i^H y_j|
    /// min(1, residual_i / (key_i - cut)). The quotient bounds the component of x_i along such
    /// eigenvectors. One all-reduce.
    double hidden_length(BlockView<const T> y, double cut);

    /// The locked pairs and the first `active` active pairs.
    std::vector<RitzPair> pairs(int active) const;
    /// Y(:, j) = [Q X](:, order[j]).
    void extract(const std::vector<int>& order, BlockView<T> y);

    /// Products, counted by column, including those before a restored state.
    std::int64_t applications() const { return applications_before_ + a_.applications(); }
    /// Adds [Q X] and their pairs to a state; call it after a Rayleigh-Ritz step.
    void save(SolverState<T>& state) const;
    /// Restores them from a state. Throws the errors of SavedState.
    void restore(const SavedState<T>& state);

  private:
    BlockView<T> outer() { return outer_.columns(0, fixed_ + locked()); }
    std::vector<RitzPair> read_pairs(const SavedState<T>& state, const std::string& name,
                                     int most) const;
    BlockView<T> locked_block() { return outer_.columns(fixed_, locked()); }
    void project(BlockView<T> x, BlockView<const T> basis);
    /// Rotates X and AX to Ritz pairs; AX then becomes the residuals.
    void rotate_to_ritz(BlockView<T> x, BlockView<T> ax, std::int64_t step,
                        std::vector<RitzPair>& pairs);
    const RitzPair& active_pair(int j) const { return pair_[static_cast<std::size_t>(j)]; }
    const RitzPair& locked_pair(int j) const { return locked_pair_[static_cast<std::size_t>(j)]; }
    std::uint64_t next_seed() { return seed_ + 0x9e3779b97f4a7c15u * ++random_streams_; }

    Context& ctx_;
    GuardedOperator<T> a_;
    SpectralOrder order_;
    std::uint64_t seed_;
    int fixed_;
    Room room_;
    BlockVector<T> outer_;
    BlockVector<T> x_;
    BlockVector<T> ax_;
    BlockVector<T> fresh_;
    int active_ = 0;
    std::vector<RitzPair> pair_;
    std::vector<RitzPair> locked_pair_;
    double norm_ = 0;
    bool refined_ = false;
    std::uint64_t random_streams_ = 0;
    std::int64_t applications_before_ = 0;
};

}  // namespace quiver
