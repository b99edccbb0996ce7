// SPDX-License-Identifier: BSD-3-Clause
// The class behind lobpcg(). Its search of the complement is in lobpcg_verify.cpp. Private to
// solvers/eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/prepare.hpp"
#include "solvers/eigen/eigen_result.hpp"
#include "solvers/eigen/lobpcg/lobpcg_progress.hpp"
#include "solvers/eigen/lobpcg/lobpcg_space.hpp"
#include "solvers/eigen/search/annotated_checkpoint.hpp"
#include "solvers/eigen/search/iteration_monitor.hpp"
#include "solvers/eigen/search/verification.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {

struct LobpcgLimits {
    /// Residuals from carried (updated) products must be this factor below the tolerance, so that
    /// the fresh residuals meet it.
    static constexpr double carried_margin = 0.7;
    /// After this many steps fresh products replace the carried ones.
    static constexpr int refresh_period = 40;
    /// Limits after which a search accepts that rounding prevents further progress: how often fresh
    /// residuals may fail after carried ones met the tolerance, and steps without progress in a
    /// search, or in the search of the complement.
    static constexpr int max_false_ends = 5;
    static constexpr int search_patience = 500;
    static constexpr int stall_patience = 60;
    /// If residuals stagnate above the tolerance, the tolerance is raised to them, up to this many
    /// times the attainable one.
    static constexpr double attainable_slack = 16;
    /// Guard vectors this many residuals outside the wanted set are used in its verification.
    static constexpr double guard_margin = 10;
    /// Columns of the search of the complement; columns of its basis for a generalised problem.
    static constexpr int verify_block = 4;
    static constexpr int verify_basis = 64;
};

/// One call of lobpcg().
template <class T>
class Lobpcg : private LobpcgLimits {
    using Real = real_t<T>;

  public:
    Lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : ctx_(ctx),
          problem_(problem),
          options_(options),
          monitor_(ctx, options_, "lobpcg", problem.checkpoint),
          tol_(attainable_tolerance<T>(options.tol)) {
        check_problem(ctx, problem, options);
        dimensions_ = dimensions(problem);
        check_options(options, dimensions_);
        width_ = block_width();
        dense_ = dimensions_ <
                 std::max({std::int64_t{3} * options.k, std::int64_t{options.k} + 3 * width_,
                           std::int64_t{std::max(options.k, width_)} + 3 * verify_block});
    }

    EigenResult<T> run() {
        bounds_ = estimate(problem_.a);
        inner_ = inner_product<T>(ctx_, problem_.b);
        if (problem_.b != nullptr) {
            inner_.norm = std::max(inner_.norm, static_cast<Real>(estimate(*problem_.b).norm));
        }
        const int fixed = problem_.constraints.cols;
        std::optional<LobpcgSpace<T>> space;
        SearchEnd end = SearchEnd::found;
        resumed_ = saved_state(problem_);
        if (resumed_ != nullptr && resumed_->solver() == "lanczos") {
            restore_numbers();
            return verify_by_lanczos({}, 0);
        }
        if (resumed_ != nullptr && !dense_) {
            resumed_->require_solver("lobpcg");
            end = restore(space);
        } else if (dense_) {
            // The space spans everything; the refresh removes the rounding errors of the first Ritz
            // vectors.
            space.emplace(make_space(static_cast<int>(dimensions_), 0));
            space->absorb_random(static_cast<int>(dimensions_));
            space->refresh();
            space->measure();
        } else {
            space.emplace(make_space(width_, options_.k > width_ ? options_.k : 0));
            space->absorb(problem_.start);
            if (space->width() < width_) {
                space->absorb_random(width_ - space->width());
            }
            end = search(*space);
        }
        const int count = std::min(options_.k, space->fixed() - fixed + space->width());
        if (end == SearchEnd::stopped || count < options_.k) {
            return give_up(*space, count);
        }
        if (dense_) {
            return finish_dense(*space);
        }
        if (space->fixed() > fixed) {
            BlockVector<T> candidates = copy_of(space->fixed_and_x(fixed, count));
            const double norm = space->norm_a();
            space.reset();
            if (problem_.b == nullptr) {
                return verify_by_lanczos(std::as_const(candidates).view(), norm);
            }
            end = search_from(std::move(candidates), space);
        }
        return verify(space, end);
    }

  private:
    /// How a search ended: k pairs met the tolerance; rounding keeps some pairs above it; the
    /// solver ran out of iterations or was interrupted.
    enum class SearchEnd { found, attained, stopped };

    /// Default: k plus guard vectors. The first eigenvalue beyond the block then takes the place of
    /// the (k + 1)-st one in the convergence factor.
    int block_width() const {
        const int guarded = options_.k + std::clamp(options_.k / 4, 2, 8) + 1;
        const int wanted = options_.block > 0 ? options_.block : std::min(guarded, max_block_width);
        return static_cast<int>(std::min<std::int64_t>(wanted, dimensions_));
    }

    /// Requests kernels for all widths that occur: blocks lose columns one by one, and stand beside
    /// two others in the basis.
    void prepare_kernels(int width, int fixed) {
        constexpr int widest = 64;
        if (width <= widest) {
            prepare_products<T>(ctx_, {.rows = problem_.a.row_map().local_rows(),
                                       .blocks = narrowing(width),
                                       .bases = growing(3 * width, std::max(1, width / 2)),
                                       .stride = fixed + 2 * width,
                                       .kept = {width},
                                       .pairs = true});
            problem_.a.prepare(ctx_, narrowing(width));
        }
    }

    LobpcgSpace<T> make_space(int width, int locked) {
        const int fixed = problem_.constraints.cols;
        prepare_kernels(width, fixed + locked);
        LobpcgSpace<T> space(ctx_, problem_, inner_, options_.which, options_.seed + ++spaces_,
                             width, fixed + locked, bounds_);
        if (const int rank = space.fix(problem_.constraints); rank < fixed) {
            InputError error("eigensolver: " + std::to_string(fixed) +
                             " constraint vectors are linearly dependent, of rank " +
                             std::to_string(rank));
            error.set_collective();
            throw error;
        }
        return space;
    }

    /// Spectral bounds of A or B. For B, throws if a Ritz value shows that it is not positive
    /// definite.
    SpectrumBounds estimate(Operator<T>& m) {
        const CountedBounds found = bounds_of_spectrum(ctx_, m, options_.seed);
        if (&m == &problem_.a) {
            applications_ += found.applications;
        } else if (found.least <= static_cast<double>(epsilon_v<T>) * found.bounds.norm) {
            throw_indefinite(IndefiniteError::Operand::mass,
                             "LOBPCG: B is not positive definite: " + number_text(found.least) +
                                 " is one of its Ritz values, its norm about " +
                                 number_text(found.bounds.norm));
        }
        return found.bounds;
    }

    /// Visits the numbers that are saved between two steps, with their names.
    template <class Visit>
    void visit_numbers(Visit&& visit) {
        visit("tolerance", tol_);
        visit("lobpcg_steps", steps_);
        visit("lobpcg_applications", applications_);
        visit("spaces", spaces_);
        visit("verifications", verifications_);
        visit("verifying", verifying_);
    }
    StateNumbers numbers() {
        StateNumbers all;
        visit_numbers(
            [&](const char* name, auto value) { all[name] = {static_cast<double>(value)}; });
        return all;
    }
    void restore_numbers() {
        visit_numbers([&]<class V>(const char* name, V& value) { resumed_->take(name, value); });
    }

    /// After measure(): saves [Q X P] if requested. `add` appends the columns of the search of the
    /// complement, if any.
    template <class Add>
    void save_if_asked(LobpcgSpace<T>& space, bool ends_early, Add&& add) {
        if (monitor_.take_save_request(ends_early)) {
            SolverState<T> state{"lobpcg", numbers(), {}, {}};
            state.numbers["width"] = {static_cast<double>(space.max_width())};
            space.save(problem_.constraints.cols, state);
            add(state);
            problem_.checkpoint->save(ctx_, state);
        }
    }

    SearchEnd restore(std::optional<LobpcgSpace<T>>& space) {
        restore_numbers();
        const int width = static_cast<int>(resumed_->whole("width", 1, dimensions_));
        space.emplace(make_space(width, width == width_ && options_.k > width_ ? options_.k : 0));
        space->restore(*resumed_, verifying_);
        space->measure();
        if (!verifying_) {
            resumed_ = nullptr;
            return search(*space);
        }
        if (space->width() < options_.k) {
            resumed_->refuse("the state has fewer columns than wanted pairs");
        }
        return SearchEnd::found;
    }

    double bound(const LobpcgSpace<T>& space) const {
        return (space.age() == 0 ? 1 : carried_margin) * tol_;
    }

    int converged_prefix(const LobpcgSpace<T>& space) const {
        int count = 0;
        while (count < space.width() && space.relative_residual(count) <= bound(space)) {
            ++count;
        }
        return count;
    }

    /// Iterates until k pairs are in Q (beyond the constraints) and X.
    SearchEnd search(LobpcgSpace<T>& space) {
        const int fixed = problem_.constraints.cols;
        const std::int64_t before = steps_;
        const std::int64_t applications = applications_;
        int false_ends = 0;
        bool ending = false;
        LobpcgProgress progress;
        for (;;) {
            space.measure();
            steps_ = before + space.steps();
            applications_ = applications + space.applications();
            const int locked = space.fixed() - fixed;
            const int wanted = options_.k - locked;
            const int prefix = converged_prefix(space);
            const int next = std::min(space.width() - 1, std::min(prefix, wanted - 1));
            const bool go_on = monitor_.report(steps_, std::min(options_.k, locked + prefix),
                                               space.relative_residual(next), "search");
            save_if_asked(space, !go_on || steps_ >= options_.max_iterations,
                          [](SolverState<T>&) {});
            if (!go_on) {
                return SearchEnd::stopped;
            }
            const bool all = prefix >= wanted;
            const bool lock = wanted > space.width() && prefix >= std::max(1, space.width() / 4);
            if ((all || lock) && space.age() == 0) {
                if (all) {
                    return SearchEnd::found;
                }
                space.fix_first(prefix);
                if (space.width() < (width_ + 1) / 2) {
                    space.absorb_random(width_ - space.width());
                }
                progress = {};
                false_ends = 0;
                continue;
            }
            if (ending && ++false_ends >= max_false_ends) {
                return SearchEnd::attained;
            }
            ending = false;
            if (all || lock) {
                space.refresh();  // carried products do not count
                ending = true;
                continue;
            }
            if (steps_ >= options_.max_iterations) {
                return SearchEnd::stopped;
            }
            if (space.age() >= refresh_period) {
                space.refresh();
                continue;
            }
            if (!progress.made(space, std::min(wanted, space.width()), tol_, search_patience)) {
                if (space.age() == 0) {
                    return SearchEnd::attained;
                }
                space.refresh();
                continue;
            }
            space.advance(above_tolerance(space));
        }
    }

    std::vector<int> above_tolerance(const LobpcgSpace<T>& space) const {
        std::vector<int> active;
        for (int j = 0; j < space.width(); ++j) {
            if (space.relative_residual(j) > bound(space)) {
                active.push_back(j);
            }
        }
        return active;
    }

    BlockVector<T> copy_of(BlockView<const T> x) {
        BlockVector<T> result;
        ctx_.comm().agree([&] { result = BlockVector<T>(ctx_, problem_.a.row_map(), x.cols); });
        copy(ctx_, x, result.view());
        return result;
    }

    std::string stopped() const {
        return (monitor_.interrupted() ? "interrupted after " : "stopped after ") +
               std::to_string(steps_) + " iterations";
    }

    /// Returns fresh Ritz pairs of the columns found so far.
    EigenResult<T> give_up(LobpcgSpace<T>& space, int count) {
        LobpcgSpace<T> pool = make_space(count, 0);
        pool.absorb(space.fixed_and_x(problem_.constraints.cols, count));
        pool.measure();
        EigenResult<T> result = fill_in(pool);
        const int good = static_cast<int>(std::count_if(
            result.residuals.begin(), result.residuals.end(),
            [&](double residual) { return residual <= tol_ * result.norm_estimate; }));
        result.message = stopped() + " with " + std::to_string(good) + " of " +
                         std::to_string(options_.k) + " pairs converged";
        return result;
    }

    /// Verifies many locked pairs: block Lanczos needs fewer columns per pair.
    EigenResult<T> verify_by_lanczos(BlockView<const T> candidates, double norm) {
        EigenOptions options = options_;
        options.block = 0;
        options.max_basis = 0;
        options.max_iterations = std::max<std::int64_t>(1, options.max_iterations - steps_);
        const bool within = resumed_ != nullptr && resumed_->solver() == "lanczos";
        AnnotatedCheckpoint<T> checkpoint(problem_.checkpoint, numbers(),
                                          within ? resumed_ : nullptr);
        EigenProblem<T> problem = problem_;
        problem.checkpoint = problem_.checkpoint == nullptr ? nullptr : &checkpoint;
        EigenResult<T> result = verify_pairs<T>(ctx_, problem, options, candidates, norm);
        stamp(result);
        return result;
    }

    void stamp(EigenResult<T>& result) const {
        result.method = Method::lobpcg;
        result.iterations += steps_;
        result.operator_applications += applications_;
        result.block = width_;
        result.basis = 3 * width_;
        result.seconds = monitor_.seconds();
    }

    /// Raises the tolerance to the largest residual of the wanted pairs, if rounding can explain
    /// it.
    bool raise_tolerance(const LobpcgSpace<T>& space) {
        double worst = 0;
        for (int j = 0; j < std::min(options_.k, space.width()); ++j) {
            worst = std::max(worst, space.relative_residual(j));
        }
        if (worst > attainable_slack * attainable_tolerance<T>(0)) {
            return false;
        }
        tol_ = std::max(tol_, worst);
        return true;
    }

    /// Result of the dense solve: the whole space was decomposed, so no copy can be missing.
    EigenResult<T> finish_dense(LobpcgSpace<T>& space) {
        raise_tolerance(space);
        const auto k = static_cast<std::size_t>(options_.k);
        bool cut = false;
        if (space.width() > options_.k) {
            cut = space.key(options_.k) - space.key(options_.k - 1) <=
                  tol_ * space.scale(options_.k - 1);
        }
        EigenResult<T> result = fill_in(space);
        result.cluster_cut = cut;
        if (result.eigenvalues.size() == k) {
            conclude(result);
        }
        return result;
    }

    /// Starts a search whose X begins with `candidates`.
    SearchEnd search_from(BlockVector<T> candidates, std::optional<LobpcgSpace<T>>& space) {
        verifying_ = false;
        space.emplace(make_space(candidates.width(), 0));
        space->absorb(std::as_const(candidates).view());
        return search(*space);
    }

    /// Searches the complement in rounds, until a round finds nothing inside the wanted set.
    EigenResult<T> verify(std::optional<LobpcgSpace<T>>& space, SearchEnd end) {
        for (;;) {
            if (end == SearchEnd::stopped) {
                return give_up(*space, std::min(options_.k, space->width()));
            }
            if (end == SearchEnd::attained && !raise_tolerance(*space)) {
                EigenResult<T> result = fill_in(*space);
                result.message = "residuals stagnate above the tolerance";
                return result;
            }
            bool tied = false;
            verifying_ = true;
            std::optional<BlockVector<T>> inside;
            if (problem_.b != nullptr) {
                inside = search_pencil(*space, tied);
            } else {
                inside = search_complement(*space, true, tied);
            }
            if (!inside) {
                EigenResult<T> result = fill_in(*space);
                result.message = stopped() + ", before the multiplicity was verified";
                return result;
            }
            if (inside->width() == 0) {
                EigenResult<T> result = fill_in(*space);
                result.cluster_cut = tied;
                conclude(result);
                return result;
            }
            const int old = space->width();
            BlockVector<T> more;
            ctx_.comm().agree(
                [&] { more = BlockVector<T>(ctx_, problem_.a.row_map(), old + inside->width()); });
            copy(ctx_, space->x(), more.columns(0, old));
            copy(ctx_, inside->view(), more.columns(old, inside->width()));
            end = search_from(std::move(more), space);
        }
    }

    /// Continues the search of the complement with the columns of a state.
    void take_complement(LobpcgSpace<T>& complement, const SavedState<T>& state);
    /// LOBPCG from random columns in the complement of the known pairs. Returns the columns that
    /// lower the k-th eigenvalue, no columns if no copy is missing, nullopt if out of iterations.
    std::optional<BlockVector<T>> search_complement(LobpcgSpace<T>& space, bool use_guards,
                                                    bool& tied);
    /// The same by block Lanczos on P^H (A - sigma B) P from random columns orthogonal to [C X].
    std::optional<BlockVector<T>> search_pencil(LobpcgSpace<T>& pool, bool& tied);

    /// The first k pairs of X after measure(), ascending.
    EigenResult<T> fill_in(LobpcgSpace<T>& space) {
        EigenResult<T> result;
        const int count = std::min(options_.k, space.width());
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        if (options_.which == Which::largest) {
            std::reverse(order.begin(), order.end());
        }
        ctx_.comm().agree(
            [&] { result.vectors = BlockVector<T>(ctx_, problem_.a.row_map(), count); });
        gather_columns(ctx_, space.x(), order, result.vectors.view());
        result.norm_estimate = space.norm_a();
        for (const int j : order) {
            result.eigenvalues.push_back(space.ritz_value(j));
            result.residuals.push_back(space.residual(j));
            result.norm_estimate = std::max(result.norm_estimate, space.scale(j));
            within_ = within_ && space.relative_residual(j) <= tol_;
        }
        stamp(result);
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.interrupted = monitor_.interrupted();
        return result;
    }

    /// Marks the result as verified.
    void conclude(EigenResult<T>& result) const {
        result.multiplicity = Multiplicity::verified;
        result.converged = within_;
        if (!within_) {
            result.message = "fresh residuals are above the tolerance";
        }
    }

    Context& ctx_;
    EigenProblem<T> problem_;
    EigenOptions options_;
    IterationMonitor monitor_;
    double tol_;
    std::int64_t dimensions_ = 0;
    int width_ = 0;
    bool dense_ = false;
    SpectrumBounds bounds_;
    InnerProduct<T> inner_;
    std::int64_t steps_ = 0;
    std::int64_t applications_ = 0;
    std::uint64_t spaces_ = 0;
    std::uint64_t verifications_ = 0;
    bool within_ = true;
    bool verifying_ = false;
    /// The state from which the current stage resumes; null once it has.
    const SavedState<T>* resumed_ = nullptr;
};

}  // namespace quiver
