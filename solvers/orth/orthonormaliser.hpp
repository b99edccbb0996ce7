// SPDX-License-Identifier: BSD-3-Clause
// The passes of block_gram_schmidt: project, factor the Gram matrix, scale, repeat if necessary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tsmttsm.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/orth/gram_factors.hpp"

namespace quiver {

/// Orthonormal columns and, if stored, their product with B.
template <class T>
struct OrthBasis {
    BlockView<const T> x;
    BlockView<const T> bx = {};
};

/// The block to orthonormalise, the columns to orthonormalise against, and the method.
template <class T>
struct OrthTask {
    InnerProduct<T> inner = {};
    OrthBasis<T> v;
    OrthBasis<T> q;
    BlockView<T> w;
    /// With B: memory for B W; it already holds B W if `bw_given`.
    BlockView<T> bw = {};
    bool bw_given = false;
    OrthMethod method = OrthMethod::robust;
    Projection projection = Projection::classical_twice;
    int panel = 1;
    /// The number that messages give to W's first column.
    int first_column = 0;
    /// this_rank: only this rank's rows count, as if there were no other ranks; errors are then not
    /// collective.
    Reduce reduce = Reduce::all_ranks;
};

/// The widest panel of block_gram_schmidt() and of complete(). In wider ones the small matrices on
/// the host would take longer than the products of blocks.
inline constexpr int widest_orth_panel = 256;

/// Orthonormalises one block; missing directions are dropped if the method reveals the rank.
template <class T>
class Orthonormaliser {
  public:
    Orthonormaliser(Context& ctx, const OrthTask<T>& task);
    /// Runs all passes; Q is then in the first columns of W. May be called once.
    OrthResult<T> run();
    /// After run(): the coefficients G of W_in = V h + task.q G + Q r.
    const SmallMatrix<T>& on_q() const { return g_; }

  private:
    using Real = real_t<T>;

    int bases() const { return task_.v.x.cols + task_.q.x.cols; }
    /// Whether passes after the first one also project.
    bool projects_again() const {
        return bases() > 0 && task_.projection == Projection::classical_twice;
    }
    bool reveals_rank() const {
        return task_.method == OrthMethod::robust || task_.method == OrthMethod::svqb;
    }
    struct Pass;
    bool make_pass(int number, OrthResult<T>& result);
    Pass project_block(int number);
    bool is_last(int number, bool good) const;
    bool householder_pass(const SmallMatrix<T>& on_v, const SmallMatrix<T>& on_q);
    GramStep<T> factor(const SmallMatrix<T>& unit, int number) const;
    void enlarge_tiny_columns(Pass& pass);
    int measure_columns(Pass& pass);
    void grow_drift(const Pass& pass, const SmallMatrix<T>& s);
    SmallMatrix<T> project(const OrthBasis<T>& basis, SmallMatrix<T>* gram);
    void project_panel(const OrthBasis<T>& panel, BlockView<T> coefficients, SmallMatrix<T>* gram);
    void gram_of_w(SmallMatrix<T>& gram);
    void add_coefficients(const SmallMatrix<T>& on_v, const SmallMatrix<T>& on_q);
    void multiply();
    void see_projected_norms();
    void make_hermitian(SmallMatrix<T>& gram, bool first);
    void apply(const GramStep<T>& step, const Pass& pass, bool again);
    bool is_missing(int j, Real left) const;
    void drop(int j);
    void check_finite(const SmallMatrix<T>& projection, const SmallMatrix<T>& gram);
    std::string column_name(int j) const { return std::to_string(task_.first_column + j); }
    [[noreturn]] void fail(const std::string& text) const;
    template <class Failure>
    [[noreturn]] void fail(Failure error) const;
    void compact(OrthResult<T>& result);

    Context& ctx_;
    OrthTask<T> task_;
    BlockView<T> w_;
    BlockView<T> bw_;
    // Invariant: W_in = V h_ + task.q g_ + W t_.
    SmallMatrix<T> h_;
    SmallMatrix<T> g_;
    SmallMatrix<T> t_;
    std::vector<bool> dead_;
    std::vector<Real> input_norm_;
    Real noise_;
    /// The Gram matrix of W after the last pass, if the next pass begins with it.
    std::optional<SmallMatrix<T>> scaled_gram_;
    // With B only. two_norm_: ||w||_2 of the input columns; drift_: growth of the relative error of
    // BW by cancellation since its last product, because BW takes the same updates as W; guarded_:
    // failures of B.
    std::vector<Real> two_norm_;
    Real drift_ = 1;
    GuardedProduct guarded_;
};

/// Fills up an orthonormal block: appends random directions, orthonormal to V and to the first
/// `have` columns of task.w, until there are `wanted` columns or several attempts have failed.
/// `first_row` is the global index of W's first row; task.q is ignored. Adds the number of passes
/// to `passes`; returns the number of columns.
template <class T>
int complete(Context& ctx, OrthTask<T> task, int have, int wanted, std::int64_t first_row,
             std::uint64_t seed, int& passes);

}  // namespace quiver
