// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/block_lanczos.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/iteration_monitor.hpp"
#include "solvers/eigen/search/verification.hpp"

namespace quiver {
namespace {

/// A pair is locked only if its residual is this factor below the tolerance, so that the fresh
/// residual meets it.
constexpr double lock_margin = 0.7;
/// If refinements do not help, the tolerance is raised to the fresh residuals, up to this many
/// times the residual that is usually attainable.
constexpr double attainable_slack = 16;
/// Matrices with up to this many rows get a basis that may span the whole space.
constexpr std::int64_t small_rows = 512;
constexpr int max_refinements = 5;

int block_width(const EigenOptions& options) {
    return options.block > 0 ? options.block : std::min(4, options.k);
}

/// Checks problem and options; returns the dimension of the searched space.
template <class T>
std::int64_t checked_dimensions(const Context& ctx, const EigenProblem<T>& problem,
                                const EigenOptions& options) {
    check_problem(ctx, problem, options);
    require_standard(problem, "block Lanczos");
    check_options(options, dimensions(problem));
    return dimensions(problem);
}

/// Columns of the search space: the requested number or about k + 16 blocks, but at least as many
/// as a restart needs.
int search_width(const EigenOptions& options, int block, std::int64_t rows) {
    int wanted = options.max_basis;
    if (wanted == 0) {
        wanted = std::max({2 * options.k + 4 * block, options.k + 16 * block, 24});
        if (rows <= small_rows) {
            wanted = static_cast<int>(rows);
        }
    }
    return static_cast<int>(
        std::min(rows, std::max<std::int64_t>(wanted, least_basis(options, rows))));
}

/// How a search ended, and how a verification ended.
enum class SearchEnd { found, stopped };
enum class VerifyEnd { nothing_inside, taken_in, stopped };

template <class T>
class BlockLanczos {
  public:
    BlockLanczos(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                 int candidates = 0)
        : ctx_(ctx),
          problem_(problem),
          dimensions_(checked_dimensions(ctx, problem, options)),
          options_(options),
          monitor_(ctx, options_, "lanczos", problem.checkpoint),
          block_(block_width(options)),
          tol_(attainable_tolerance<T>(options.tol)),
          max_search_(search_width(options, block_, dimensions_)),
          basis_(ctx, problem, options.which, options.seed, max_search_,
                 static_cast<int>(std::min<std::int64_t>(
                     dimensions_, std::max(options.k + 2 * verify_width(), candidates))),
                 verify_width()) {}

    /// Locks candidates for the wanted pairs from another solver; `norm` is its estimate of ||A||.
    void lock(BlockView<const T> x, double norm) {
        basis_.lock(x);
        basis_.raise_norm(norm);
    }

    EigenResult<T> run() {
        EigenResult<T> result;
        result.method = Method::lanczos;
        if (const SavedState<T>* saved = saved_state(problem_)) {
            restore(*saved);
        } else if (problem_.start.cols > 0 && basis_.locked() == 0) {
            basis_.start_from(problem_.start, block_);
        }
        for (bool finished = false; !finished;) {
            if (!verifying_) {
                if (search() == SearchEnd::stopped) {
                    result.message = stopped() + " with " +
                                     std::to_string(std::min(basis_.locked(), options_.k)) +
                                     " of " + std::to_string(options_.k) + " pairs converged";
                    keep_best_unconverged();
                    break;
                }
                basis_.refine();
                if (const int above = wanted_above_tolerance(); above > 0) {
                    if (++refinements_ <= max_refinements) {
                        basis_.drop_beyond(options_.k);
                        basis_.search_again_above(threshold());
                        continue;
                    }
                    if (!raise_tolerance()) {
                        result.message = "fresh residuals of " + std::to_string(above) +
                                         " pairs stay above the tolerance";
                        break;
                    }
                }
            }
            switch (verify()) {
                case VerifyEnd::nothing_inside:
                    result.multiplicity = Multiplicity::verified;
                    finished = true;
                    break;
                case VerifyEnd::taken_in:
                    break;
                case VerifyEnd::stopped:
                    result.message = stopped() + ", before the multiplicity was verified";
                    finished = true;
                    break;
            }
        }
        fill_in(result);
        return result;
    }

  private:
    double threshold() const { return tol_ * basis_.norm(); }
    double attainable() const {
        return attainable_units * static_cast<double>(epsilon_v<T>) * basis_.norm();
    }

    /// Raises the tolerance to the largest fresh residual of the wanted pairs, if rounding can
    /// explain it.
    bool raise_tolerance() {
        const auto begin = basis_.locked_residuals().begin();
        const double worst = *std::max_element(begin, begin + options_.k);
        if (worst > attainable_slack * attainable()) {
            return false;
        }
        tol_ = std::max(tol_, worst / basis_.norm());
        return true;
    }

    int converged_prefix() const { return basis_.converged_prefix(lock_margin * threshold()); }
    int verify_width() const { return std::max(block_, 2); }
    bool must_stop() const {
        return monitor_.interrupted() || basis_.steps() >= options_.max_iterations;
    }
    std::string stopped() const {
        return (monitor_.interrupted() ? "interrupted after " : "stopped after ") +
               std::to_string(basis_.steps()) + " block steps";
    }

    void report(const char* stage) {
        const int converged = converged_prefix();
        const int next = std::min(basis_.size() - 1, converged);
        monitor_.report(basis_.steps(), std::min(options_.k, basis_.locked() + converged),
                        basis_.norm() > 0 ? basis_.ritz_residual(next) / basis_.norm() : 0, stage);
    }

    /// Called between two steps, where the basis is consistent.
    void save_if_asked() {
        if (!monitor_.take_save_request(must_stop())) {
            return;
        }
        SolverState<T> state;
        state.solver = "lanczos";
        state.numbers["verifying"] = {verifying_ ? 1.0 : 0.0};
        state.numbers["taken_in"] = {taken_in_ ? 1.0 : 0.0};
        state.numbers["refinements"] = {static_cast<double>(refinements_)};
        state.numbers["tolerance"] = {tol_};
        basis_.save(state);
        problem_.checkpoint->save(ctx_, state);
    }

    void restore(const SavedState<T>& state) {
        state.require_solver("lanczos");
        verifying_ = state.flag("verifying");
        taken_in_ = state.flag("taken_in");
        refinements_ = state.count("refinements", max_pairs);
        tol_ = std::max(tol_, state.number("tolerance"));
        basis_.restore(state);
        if (verifying_ &&
            (basis_.locked() < options_.k || basis_.size() + basis_.next_width() == 0)) {
            state.refuse("the state cannot resume the verification of " +
                         std::to_string(options_.k) + " pairs: it has " +
                         std::to_string(basis_.locked()) + " locked pairs and too small a basis");
        }
    }

    /// Searches until k pairs are locked.
    SearchEnd search() {
        while (basis_.locked() < options_.k) {
            save_if_asked();
            if (must_stop()) {
                return SearchEnd::stopped;
            }
            if (basis_.next_width() == 0) {
                basis_.start(block_);
            }
            basis_.step();
            const int wanted = options_.k - basis_.locked();
            if (!basis_.full() && !(basis_.size() >= wanted && basis_.ritz_due())) {
                continue;
            }
            basis_.ritz();
            report("search");
            const int lock = std::min(converged_prefix(), wanted);
            if (lock == wanted || basis_.full()) {
                basis_.restart(lock, wanted - lock);
            }
        }
        return SearchEnd::found;
    }

    int wanted_above_tolerance() const {
        const auto begin = basis_.locked_residuals().begin();
        return static_cast<int>(
            std::count_if(begin, begin + std::min(basis_.locked(), options_.k),
                          [&](double residual) { return residual > threshold(); }));
    }

    /// Out of iterations: locks the best Ritz vectors in place of the missing pairs.
    void keep_best_unconverged() {
        if (basis_.size() > 0) {
            basis_.ritz();
            basis_.restart(std::min(basis_.size(), options_.k - basis_.locked()), 0);
        }
    }

    /// Searches the complement of the k best locked pairs from fresh random columns.
    VerifyEnd verify() {
        if (!std::exchange(verifying_, true)) {
            basis_.drop_beyond(options_.k);
            basis_.start(verify_width());
            taken_in_ = false;
        }
        while (basis_.next_width() > 0 || basis_.size() > 0) {
            save_if_asked();
            if (must_stop()) {
                return VerifyEnd::stopped;
            }
            if (basis_.next_width() > 0) {
                basis_.step();
            }
            if (!basis_.full() && !basis_.ritz_due()) {
                continue;
            }
            basis_.ritz();
            report("verify");
            const double last = last_wanted_key(basis_, options_.k);
            const double rho = basis_.ritz_residual(0);
            const ComplementVerdict verdict =
                judge_complement(last, basis_.key(basis_.ritz_value(0)), rho, threshold(),
                                 lock_margin * std::min(threshold(), attainable()), dimensions_);
            if (verdict == ComplementVerdict::outside || verdict == ComplementVerdict::tied) {
                cluster_cut_ = verdict == ComplementVerdict::tied;
                break;
            }
            if (verdict == ComplementVerdict::inside) {
                int inside = 0;
                const int converged = converged_prefix();
                while (inside < converged &&
                       basis_.key(basis_.ritz_value(inside)) < last - threshold() - rho) {
                    ++inside;
                }
                taken_in_ = true;
                basis_.restart(inside, verify_width());
                if (basis_.locked() == basis_.max_locked()) {
                    break;
                }
            } else if (basis_.full()) {
                basis_.restart(0, verify_width());
            }
        }
        verifying_ = false;
        return taken_in_ ? VerifyEnd::taken_in : VerifyEnd::nothing_inside;
    }

    void fill_in(EigenResult<T>& result) {
        if (!basis_.refined()) {
            basis_.refine();
        }
        // The locked pairs are sorted by key; the result ascends.
        const int count = std::min(basis_.locked(), options_.k);
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        if (options_.which == Which::largest) {
            std::reverse(order.begin(), order.end());
        }
        ctx_.comm().agree(
            [&] { result.vectors = BlockVector<T>(ctx_, problem_.a.row_map(), count); });
        basis_.extract(order, result.vectors.view());
        bool within = count == options_.k;
        for (const int j : order) {
            const auto at = static_cast<std::size_t>(j);
            result.eigenvalues.push_back(basis_.locked_values()[at]);
            result.residuals.push_back(basis_.locked_residuals()[at]);
            within = within && result.residuals.back() <= threshold();
        }
        result.norm_estimate = basis_.norm();
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.converged = within && result.multiplicity == Multiplicity::verified;
        result.cluster_cut = cluster_cut_;
        result.iterations = basis_.steps();
        result.operator_applications = basis_.applications();
        result.block = block_;
        result.basis = max_search_;
        result.interrupted = monitor_.interrupted();
        result.seconds = monitor_.seconds();
        if (!result.converged && result.message.empty()) {
            result.message = "fresh residuals are above the tolerance";
        }
    }

    Context& ctx_;
    EigenProblem<T> problem_;
    std::int64_t dimensions_;
    EigenOptions options_;
    IterationMonitor monitor_;
    int block_;
    double tol_;
    int max_search_;
    LanczosBasis<T> basis_;
    bool cluster_cut_ = false;
    int refinements_ = 0;
    /// verifying_: the complement is being searched; taken_in_: that search has found a wanted
    /// pair.
    bool verifying_ = false;
    bool taken_in_ = false;
};

}  // namespace

template <class T>
EigenResult<T> block_lanczos(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options) {
    return audited_solve<T>(ctx, problem,
                            [&] { return BlockLanczos<T>(ctx, problem, options).run(); });
}

template <class T>
EigenResult<T> verify_pairs(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options, BlockView<const T> candidates,
                            double norm) {
    return audited_solve<T>(ctx, problem, [&] {
        BlockLanczos<T> solver(ctx, problem, options, candidates.cols);
        if (candidates.cols > 0) {
            solver.lock(candidates, norm);
        }
        return solver.run();
    });
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template EigenResult<T> block_lanczos(Context&, const EigenProblem<T>&, const EigenOptions&); \
    template EigenResult<T> verify_pairs(Context&, const EigenProblem<T>&, const EigenOptions&,   \
                                         BlockView<const T>, double);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
