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
#include "solvers/eigen/guarded_operator.hpp"
#include "solvers/eigen/packed.hpp"
#include "solvers/eigen/spectral_order.hpp"

namespace quiver {

struct RitzPair {
    double value = 0;
    double residual = 0;
};

/// [C Q] and X: C the constraints, Q the locked pairs, X the active ones, all orthonormal after a
/// Rayleigh-Ritz step. Pairs are ordered by their key, the most wanted first.
template <class T>
class RitzBlock {
    using Real = real_t<T>;

  public:
    /// Room for so many columns.
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
    /// Eigenvalue and residual of number j of the locked, then the active ones.
    const RitzPair& pair(int j) const {
        return j < locked() ? locked_pair(j) : active_pair(j - locked());
    }
    /// The largest |Ritz value| seen: a lower bound of ||A||.
    double norm() const { return norm_; }
    void raise_norm(double least) { norm_ = std::max(norm_, least); }

    /// X <- guesses and random columns; see fill_start_block.
    void start(BlockView<const T> guesses, int width);
    BlockView<T> active_block() { return packed(x_, active_); }
    /// X orthonormal against [C Q], then Rayleigh-Ritz with fresh products: keys ascending, and
    /// ||A x - lambda x||. `step` is named in errors: NumericalError for products that are not
    /// finite or not of a Hermitian operator.
    void rayleigh_ritz(std::int64_t step);
    /// How many of the first active pairs have residuals up to `bound`, without a gap.
    int converged_prefix(double bound) const;
    /// Moves the active pairs that are `unfit` behind the others, whose number it returns; the
    /// order within both stays.
    int move_back(const std::function<bool(int)>& unfit);
    /// The first `count` active pairs become locked ones.
    void lock(int count);
    /// Rayleigh-Ritz on Q with fresh products; sorts the pairs.
    void refine(std::int64_t step);
    /// Nothing was locked since.
    bool refined() const { return refined_; }
    /// Locked pairs with residuals above `bound`, and those from number `most` on, become active
    /// ones; rayleigh_ritz() has to follow.
    void release(double bound, int most);

    /// Fresh random columns, (I - D D^H) of entries in [-1, 1), not scaled; D = [C Q] and the first
    /// `deflating` active columns.
    BlockView<T> make_fresh(int columns, int deflating);
    /// What filtering has left of them beyond [C Q]: lengths.
    std::vector<double> fresh_lengths(BlockView<T> fresh, std::int64_t step);
    /// They join the active block, in the place of its last columns where there is no room;
    /// rayleigh_ritz() has to follow.
    void append(BlockView<const T> fresh);
    /// What of columns in the span of the active block could belong to an eigenvector with a key up
    /// to `cut`, at most: the largest sum over the Ritz vectors of |x_i^H y_j| times residual /
    /// (key
    /// - cut), the most that x_i can have of such an eigenvector. One all-reduce.
    double hidden_length(BlockView<const T> y, double cut);

    /// Y(:, j) = [Q X](:, order[j]); those of Q come first.
    void extract(const std::vector<int>& order, BlockView<T> y);

    /// Products, counted by column, those before a restored state included.
    std::int64_t applications() const { return applications_before_ + a_.applications(); }
    /// Adds [Q X] and their pairs, after a Rayleigh-Ritz step, to a state.
    void save(SolverState<T>& state) const;
    /// Takes them from one. Throws what SavedState does.
    void restore(const SavedState<T>& state);

  private:
    BlockView<T> outer() { return outer_.columns(0, fixed_ + locked()); }
    std::vector<RitzPair> read_pairs(const SavedState<T>& state, const std::string& name,
                                     int most) const;
    BlockView<T> locked_block() { return outer_.columns(fixed_, locked()); }
    void project(BlockView<T> x, BlockView<const T> basis);
    /// Rotates X and AX to Ritz pairs, of which AX becomes the residuals.
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
