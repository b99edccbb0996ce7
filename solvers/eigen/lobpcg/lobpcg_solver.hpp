// SPDX-License-Identifier: BSD-3-Clause
// The class behind lobpcg(). Its search of the complement is in lobpcg_verify.cpp. Private to
// solvers/eigen.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/lobpcg/lobpcg_progress.hpp"
#include "solvers/eigen/lobpcg/lobpcg_space.hpp"
#include "solvers/eigen/lobpcg/projected_pencil.hpp"
#include "solvers/eigen/search/verified_search.hpp"

namespace quiver {

struct LobpcgLimits {
    /// After this many steps fresh products replace the carried ones.
    static constexpr int refresh_period = 40;
    /// Limits after which a search accepts that rounding prevents progress. max_false_ends: how
    /// often fresh residuals may exceed the tolerance after carried ones met it. search_patience,
    /// stall_patience: steps without progress in a search, and in the search of the complement.
    static constexpr int max_false_ends = 5;
    static constexpr int search_patience = 500;
    static constexpr int stall_patience = 60;
    /// The verification fixes guard vectors that lie outside the wanted set by more than this many
    /// times the sum of tolerance and residual.
    static constexpr double guard_margin = 10;
    /// Columns of the search of the complement; columns of its basis for a generalised problem.
    static constexpr int verify_block = 4;
    static constexpr int verify_basis = 64;
};

/// The complement of LOBPCG's pairs and its guard vectors, searched by LOBPCG itself (B = I).
template <class T>
struct LobpcgComplement {
    LobpcgSpace<T> space;
    /// True if a guard vector belongs to a further copy of the last wanted eigenvalue.
    bool copy_known = false;
    /// Because the guard vectors are only approximate eigenvectors: the sum of the squares of their
    /// residuals, and the smallest distance of their eigenvalues from the last wanted one.
    double coupling = 0;
    double nearest = std::numeric_limits<double>::infinity();
    LobpcgProgress progress = {};
    bool stalled = false;
    /// A residual up to this decides the verdict.
    double settled = 0;
};

/// The complement of the pairs of A x = lambda B x, searched by block Lanczos on ProjectedPencil.
template <class T>
struct PencilComplement {
    /// `x`, `bx`: [C X] and its product with B. The basis has up to `columns` columns and grows by
    /// blocks of `block`.
    PencilComplement(Context& ctx, const EigenProblem<T>& problem, double sigma, int sign,
                     BlockView<const T> x, BlockView<const T> bx, std::uint64_t seed, int columns,
                     int block)
        : width(block),
          pencil(ctx, problem.a, *problem.b, sigma, sign, x, bx),
          basis(ctx, {.a = pencil, .constraints = x}, Which::smallest, seed, columns, block,
                block) {}

    int width;
    ProjectedPencil<T> pencil;
    LanczosBasis<T> basis;
};

/// One call of lobpcg(). If k exceeds the columns of the block, converged pairs are locked in the
/// space; at the end all pairs go without B to block Lanczos, with B to a block of k columns.
template <class T>
class Lobpcg : public VerifiedSearch<T>, private LobpcgLimits {
    using Real = real_t<T>;

  public:
    Lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options);

  private:
    /// Iterations, and products counted by column.
    struct Work {
        std::int64_t iterations = 0;
        std::int64_t applications = 0;
    };

    void begin() override;
    bool found() override;
    void extend() override;
    int give_up() override;
    std::vector<RitzPair> pairs() override;
    void extract(const std::vector<int>& order, BlockView<T> y) override;
    void refine_pairs() override {}  // found() counts fresh residuals only
    bool search_again() override { return false; }
    std::optional<EigenResult<T>> verify_elsewhere() override;
    void begin_complement() override;
    ComplementVerdict complement() override;
    void extend_complement() override;
    void visit_numbers(const StateVisit<T>& visit) override;
    void save(SolverState<T>& state) override;
    void restore(const SavedState<T>& state) override;
    /// True for a state of the block Lanczos run that verifies the pairs.
    bool resumes_from(const std::string& solver) const override { return solver == "lanczos"; }
    std::int64_t iterations() const override { return total_.iterations; }
    void describe(EigenResult<T>& result) const override;
    double norm() const override { return space_->norm_a(); }
    double scale(double value) const override;
    std::string doubt() const override;

    int block_width() const;
    void prepare_kernels(int width, int fixed);
    LobpcgSpace<T> make_space(int width, int locked);
    SpectrumBounds estimate(Operator<T>& m);
    int fixed() const { return this->problem().constraints.cols; }
    double bound() const { return (space_->age() == 0 ? 1 : lock_margin) * this->tolerance(); }
    int converged_prefix() const;
    bool all_pairs_in_block();
    bool rounding_explains(int wanted) const;
    std::vector<int> above_tolerance() const;
    BlockVector<T> copy_of(BlockView<const T> x);
    void search_from(BlockVector<T> candidates);
    EigenResult<T> verify_by_lanczos(BlockView<const T> candidates, double norm);
    std::uint64_t complement_seed();

    void make_complement(bool use_guards);
    ComplementVerdict judge_columns();
    void extend_columns();
    ComplementVerdict absorb_columns(BlockView<const T> inside);
    void make_pencil();
    void extend_pencil();

    void start_counting() { before_ = total_; }
    /// Sets the total work to that at start_counting() plus that of `space`.
    template <class Space>
    void count(const Space& space) {
        total_ = {before_.iterations + space.steps(), before_.applications + space.applications()};
    }

    int k_;
    Which which_;
    int width_ = 0;
    bool dense_ = false;  // the space spans everything
    SpectrumBounds bounds_;
    InnerProduct<T> inner_;
    std::optional<LobpcgSpace<T>> space_;
    Work total_;
    Work before_;
    std::uint64_t spaces_ = 0;
    std::uint64_t verifications_ = 0;
    LobpcgProgress progress_;
    /// ending_: fresh products have just replaced carried ones that met the tolerance. false_ends_:
    /// how often the fresh residuals then did not meet it.
    bool ending_ = false;
    int false_ends_ = 0;
    /// True if rounding keeps some pairs above the tolerance.
    bool attained_ = false;
    /// The state from which the search of the complement resumes; null once it has resumed.
    const SavedState<T>* resumed_ = nullptr;
    std::optional<LobpcgComplement<T>> complement_;
    std::optional<PencilComplement<T>> pencil_;
    ComplementVerdict verdict_ = ComplementVerdict::open;
};

}  // namespace quiver
