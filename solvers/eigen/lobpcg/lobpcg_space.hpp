// SPDX-License-Identifier: BSD-3-Clause
// The blocks of LOBPCG with their products and Ritz values. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {

/// x^H B x is rounding noise if it is at most this many units of rounding times ||B|| ||x||^2.
constexpr double singular_units = 16;

/// [Q X P] and new directions W, all B-orthonormal. Q is fixed (constraints and locked pairs), X
/// holds the best Ritz vectors of the last space, P completes X by the directions from which it was
/// updated. A X, A P, B X and B P take the same updates as X and P; refresh() replaces them by
/// fresh products. Ritz pairs are ordered by their keys, wanted end first.
template <class T>
class LobpcgSpace {
    using Real = real_t<T>;

  public:
    /// Up to `width` columns in each of X, P and W, `max_fixed` in Q. `bounds`: estimates for A's
    /// spectrum.
    LobpcgSpace(Context& ctx, const EigenProblem<T>& problem, const InnerProduct<T>& inner,
                Which which, std::uint64_t seed, int width, int max_fixed,
                const SpectrumBounds& bounds);

    /// Columns of X, the maximal number of columns of X, and columns of Q.
    int width() const { return x_; }
    int max_width() const { return max_width_; }
    int fixed() const { return fixed_; }
    std::int64_t steps() const { return steps_; }
    std::int64_t applications() const { return a_.applications(); }
    /// Steps since the last fresh products.
    int age() const { return age_; }
    /// The largest |Ritz value| seen if B = I, else the estimate given to the constructor.
    double norm_a() const { return bounds_.norm; }

    /// Q <- [Q block], orthonormalised; X and P must still be empty. Returns the rank of the block.
    int fix(BlockView<const T> block);
    /// Q <- [Q X(:, 0:count)].
    void fix_first(int count);
    /// X <- the best Ritz vectors of [X block], with fresh products of the block. Dependent columns
    /// are dropped.
    void absorb(BlockView<const T> block);
    /// The same with random columns.
    void absorb_random(int count);
    /// Orthonormalises [X P] again, makes fresh products and takes its Ritz vectors.
    void refresh();

    /// Key of a Ritz value; the wanted end comes first.
    double key(int j) const { return which_ == Which::smallest ? ritz_value(j) : -ritz_value(j); }
    double ritz_value(int j) const { return value_[static_cast<std::size_t>(j)]; }
    /// W <- (I - B Q Q^H) (A X - B X diag(ritz values)), and its column norms.
    void measure();
    /// ||w_j|| / ||x_j||_2 of column j, from the last measure().
    double residual(int j) const { return sizes_[static_cast<std::size_t>(j)].residual; }
    /// The residual over scale(j): ||A|| + |theta| ||B||, or ||A|| if B = I; 0 for a residual of 0.
    double relative_residual(int j) const;
    /// The norm to which the residual of column j is relative.
    double scale(int j) const;
    /// x^H B x / (||B|| ||x||^2) of column j, from the last measure(); 1 if B = I.
    double length_in_b(int j) const;
    /// Throws IndefiniteError if x^H B x of one of the first `count` columns, from the last
    /// measure(), is rounding noise of ||B|| ||x||^2: its Ritz value is then arbitrary.
    void require_length(int count) const;
    /// One step after measure(): W <- T W of the `active` columns, orthonormalised; Rayleigh-Ritz
    /// on [X P W]. T is the problem's preconditioner; without a preconditioner and without B, T is
    /// a polynomial of A.
    void advance(const std::vector<int>& active);

    BlockView<T> x() { return basis_.columns(fixed_, x_); }
    /// Adds columns `first` .. of [Q X P] to a state; call it after measure().
    void save(int first, SolverState<T>& state) const;
    /// Appends saved columns to Q, X and P, with fresh products; before, Q must hold only the
    /// constraints, and X and P nothing. `as_they_are`: does not rotate X to Ritz vectors, and
    /// drops P. Throws the errors of SavedState.
    void restore(const SavedState<T>& state, bool as_they_are);
    /// Columns first .. of [Q X].
    BlockView<T> fixed_and_x(int first, int count) { return basis_.columns(first, count); }
    /// The same of B [Q X]; no columns where B = I.
    BlockView<T> product_with_b(int first, int count) { return b_basis(first, count); }

  private:
    /// Orthonormal directions D = V on_v + W on_w beside V = [X P], and their products with A.
    struct Directions {
        SmallMatrix<T> on_v;
        SmallMatrix<T> on_w;
        SmallMatrix<T> v_a_d;  // V^H A D
        SmallMatrix<T> d_a_d;  // D^H A D
    };
    struct ColumnSizes {
        double residual = 0;
        double length = 1;  // ||x_j||_2
    };
    struct Ritz {
        std::vector<double> values;  // in the order of their keys
        SmallMatrix<T> vectors;
    };

    BlockView<T> v() { return basis_.columns(fixed_, x_ + p_); }
    BlockView<T> av() { return av_.columns(0, x_ + p_); }
    BlockView<T> w(int count) { return waw_.columns(0, count); }
    /// A W follows W directly in memory, so that one product can use both.
    BlockView<T> aw(int count) { return waw_.columns(count, count); }
    /// No columns where B = I.
    BlockView<T> b_basis(int first, int count) {
        return b_basis_.columns(with_b_ ? first : 0, with_b_ ? count : 0);
    }
    BlockView<T> bw(int count) { return bw_.columns(0, with_b_ ? count : 0); }
    int orthonormalise(BlockView<const T> against, BlockView<const T> b_against, BlockView<T> x,
                       BlockView<T> bx, bool replace);
    int orthonormalise_in_place(int first, int count, bool replace);
    void take_in(int count, bool replace);
    void ritz_of_v();
    Ritz ritz_of(const SmallMatrix<T>& h);
    Directions directions(const std::vector<int>& active);
    bool precondition(int count);
    bool project(int count, SmallMatrix<T>& gram);
    std::optional<Directions> implicit_directions(int count, const SmallMatrix<T>& gram);
    Directions explicit_directions(int count);
    void update(const Directions& d, const SmallMatrix<T>& coefficients);
    void check_product(const SmallMatrix<T>& projected, const char* of);
    void check_hermitian(const SmallMatrix<T>& projected, double scale);
    void refuse_long_columns(BlockView<const T> x) const;
    [[noreturn]] void fail(const std::string& text) const;
    void require_positive(BlockView<const T> x, BlockView<const T> y, const std::string& name);

    Context& ctx_;
    GuardedOperator<T> a_;
    std::optional<GuardedOperator<T>> preconditioner_;
    InnerProduct<T> inner_;
    bool with_b_;
    bool polynomial_;
    Which which_;
    std::uint64_t seed_;
    int max_width_;

    BlockVector<T> basis_;    // [Q X P]
    BlockVector<T> b_basis_;  // B [Q X P]
    BlockVector<T> av_;       // A [X P]
    BlockVector<T> waw_;      // [W A W]
    BlockVector<T> bw_;       // B W
    BlockVector<T> y_;        // workspace of the polynomial
    BlockVector<T> z_;
    int fixed_ = 0;
    int x_ = 0;
    int p_ = 0;

    SmallMatrix<T> h_;  // V^H A V
    std::vector<double> value_;
    std::vector<ColumnSizes> sizes_;
    SmallMatrix<T> residual_gram_;

    SpectrumBounds bounds_;
    int age_ = 0;
    std::int64_t steps_ = 0;
    std::uint64_t random_streams_ = 0;
};

}  // namespace quiver
