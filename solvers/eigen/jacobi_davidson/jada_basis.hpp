// SPDX-License-Identifier: BSD-3-Clause
// The search space of block Jacobi-Davidson: constraints, locked pairs, basis and its product.
// Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/search/spectral_order.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {

/// One block of B-orthonormal columns [C Q V]: C the constraints, Q the locked pairs, V the search
/// space. The class also holds B [C Q V] and W = P (A - tau B) V, with P = I - B[C Q] [C Q]^H and
/// tau the target (0 for an end). With H = V^H W and G = W^H W, Ritz vectors V s come from
///
///    an end:   H s = theta s, from the wanted end on
///    a target: G f = sigma^2 f; the columns of F are the half of the vectors f with the smallest
///              sigma, extended so that no sigma outside is close to one inside (with B: all f);
///              (F^H H F) y = theta y, s = F y, ordered by ||W s||, smallest first
///
/// The Ritz value is tau + theta. `Ritz pairs` below are those of the last ritz(), in that order.
template <class T>
class JadaBasis {
    using Real = real_t<T>;

  public:
    /// At most max_search columns in V, max_locked in Q. Throws InputError for linearly dependent
    /// constraints, NumericalError if A is found not to be Hermitian or B not to be positive
    /// definite.
    JadaBasis(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
              int max_search, int max_locked);

    int locked() const { return locked_; }
    int max_locked() const { return max_locked_; }
    int size() const { return size_; }
    /// The number of columns by which V can grow before a restart.
    int room() const { return capacity() - size_; }
    /// True if V spans the complement of [C Q].
    bool spans_all() const { return size_ == rows_ - locked_; }
    /// Increases with every change of Q.
    std::int64_t epoch() const { return epoch_; }
    GuardedOperator<T>& a() { return a_; }
    GuardedOperator<T>* b() { return b_ ? &*b_ : nullptr; }
    const InnerProduct<T>& inner() const { return inner_; }
    BlockView<const T> fixed_columns() { return basis_.columns(0, fixed_ + locked_); }
    BlockView<const T> b_fixed_columns() { return b_basis().columns(0, fixed_ + locked_); }

    /// Key of an eigenvalue: the most wanted eigenvalue has the smallest key.
    double key(double value) const;
    /// A lower bound of ||A||_2, close in practice.
    double norm() const { return norm_; }
    /// The norm to which residuals of this eigenvalue are relative: ||A||, or ||A|| + |lambda|
    /// ||B|| with a B.
    double scale(double value) const;

    /// Empties V.
    void forget_search_space();
    /// V <- the span of the guesses and random columns: max(width, guesses.cols) columns, as far as
    /// there is room.
    void start(BlockView<const T> guesses, int width);
    /// Memory for the next `width` columns of V; `width` is at most room().
    BlockView<T> next(int width) { return basis_.columns(fixed_ + locked_ + size_, width); }
    /// Orthonormalises the columns in next(width) and appends them to V, with one block product.
    /// Returns the number of added columns.
    int expand(int width);

    void ritz();
    /// The number of Ritz pairs; for a target without B half the columns of V, or some more.
    int pairs() const { return pairs_; }
    double value(int j) const { return value_[static_cast<std::size_t>(j)]; }
    /// The key by which Ritz pairs are ordered; for a target ||W s|| >= |theta|.
    double order_key(int j) const { return order_key_[static_cast<std::size_t>(j)]; }
    /// Forms X, B X (unchanged if B = I) and R = P (A - theta B) X of the first X.cols Ritz pairs;
    /// returns ||r_j|| / ||x_j||_2.
    std::vector<double> form(BlockView<T> x, BlockView<T> bx, BlockView<T> r);
    /// Locks the Ritz vectors at `places`; V <- its other Ritz vectors.
    void lock(const std::vector<int>& places, const std::vector<double>& residuals);
    /// V <- its first `keep` Ritz vectors.
    void restart(int keep);

    /// Rayleigh-Ritz on Q with fresh products, which overwrite the search space. Sorts the pairs by
    /// key.
    void refine();
    /// True if nothing was locked since the last refine().
    bool refined() const { return refined_; }
    const std::vector<double>& locked_values() const { return locked_value_; }
    /// The residuals are those of fresh products after refine(), and those at locking for pairs
    /// locked later.
    std::vector<RitzPair> locked_pairs() const {
        return ritz_pairs(locked_value_, locked_residual_);
    }
    /// Keeps the first `count` locked pairs.
    void drop_beyond(int count);
    /// Unlocks the pairs with residuals above tol scale(value) and makes them the new V.
    void search_again_above(double tol);
    /// Y(:, j) = Q(:, order[j]).
    void extract(const std::vector<int>& order, BlockView<T> y);
    BlockView<const T> locked_columns() { return basis_.columns(fixed_, locked_); }
    /// Throws on all ranks: the exception of an operator on this rank if there is one, else
    /// NumericalError.
    [[noreturn]] void fail(const std::string& text);

    /// Adds [Q V] and the values and residuals of the locked pairs to a state.
    void save(SolverState<T>& state) const;
    /// Restores them from a state, with a fresh product with V (jada_state.cpp). Throws the errors
    /// of SavedState.
    void restore(const SavedState<T>& state);

    std::int64_t applications() const { return norm_applications_ + a_.applications(); }
    /// Block products made by this class.
    std::int64_t products() const { return products_; }

  private:
    int capacity() const;
    int first() const { return fixed_ + locked_; }
    BlockView<T> space() { return basis_.columns(first(), size_); }
    /// B [C Q V]; the basis itself if B = I.
    BlockVector<T>& b_basis() { return b_ ? b_basis_ : basis_; }
    OrthOptions orth_options();
    /// Orthonormalises columns `begin` .. of the basis against the columns before them; returns the
    /// number of remaining columns.
    int orthonormalise(int begin, int width, bool replace);
    void take_constraints(BlockView<const T> x);
    void estimate_norm(Operator<T>& a);
    /// W <- (A - tau B) X.
    void multiply(int begin, int width, BlockView<T> w);
    void append(const SmallMatrix<T>& coefficients, const SmallMatrix<T>& mirrored, int width);
    void append_gram(int width);
    void ritz_at_end();
    void ritz_at_target();
    /// V <- V S(:, columns); the first `lock` of these columns move to Q.
    void rotate(const std::vector<int>& columns, int lock);

    Context& ctx_;
    GuardedOperator<T> a_;
    std::optional<GuardedOperator<T>> b_;
    Operator<T>* b_operator_;
    InnerProduct<T> inner_;
    Which which_;
    double target_;
    std::uint64_t seed_;
    int fixed_;          // columns of C
    std::int64_t rows_;  // dimension of the complement of C
    int max_search_;
    int max_locked_;

    BlockVector<T> basis_;
    BlockVector<T> b_basis_;
    BlockVector<T> w_;
    int locked_ = 0;
    int size_ = 0;
    std::vector<double> locked_value_;
    std::vector<double> locked_residual_;
    std::int64_t epoch_ = 1;
    bool refined_ = false;

    SmallMatrix<T> h_;
    SmallMatrix<T> g_;
    SmallMatrix<T> s_;
    int pairs_ = 0;
    std::vector<double> value_;
    std::vector<double> order_key_;
    bool rotated_ = false;

    double norm_ = 0;
    double coefficient_norm_ = 0;
    std::int64_t norm_applications_ = 0;
    std::int64_t products_ = 0;
    std::uint64_t random_streams_ = 0;
};

}  // namespace quiver
