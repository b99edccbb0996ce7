// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/chebyshev_subspace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/eigen/chebyshev/ritz_block.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/lanczos/short_lanczos.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/iteration_monitor.hpp"

namespace quiver {
namespace {

/// A pair is locked only if its residual is this factor below the tolerance, so that the fresh
/// residual meets it.
constexpr double lock_margin = 0.7;
/// As in block Lanczos: the tolerance may be raised to this many times the attainable residual.
constexpr double attainable_slack = 16;
/// Steps of the Lanczos run that finds the bounds.
constexpr int bound_steps = 20;
constexpr int most_degree = 400;
constexpr int least_degree = 6;
/// The first filter follows the Lanczos run: its maximal degree, and the index of the Ritz value
/// from which it damps.
constexpr int most_first_degree = 24;
constexpr int first_ritz_value = 2;
constexpr std::int64_t least_patience = 100;
constexpr std::int64_t most_patience = 4000;
constexpr int max_pieces = 8;
/// Sweeps for the guard vectors between two attempts to verify.
constexpr int max_polishes = 4;
/// Growth limit of the first sweeps.
constexpr double first_growth = 1e3;
/// Residuals up to this many times the spread of the Ritz values are normal; larger ones indicate
/// that copies of one eigenvalue fill the subspace.
constexpr double clustered = 4;
/// Number of fresh columns of a verification, and the length below which a filtered column shows
/// that nothing is missing.
constexpr int fresh_columns = 8;
constexpr double short_column = 0.05;
constexpr int max_refinements = 5;
/// So many sweeps in a row that do not halve the residual of the slowest pair count as stagnation.
constexpr int stagnant_sweeps = 3;

/// Columns of the subspace: the wanted pairs and guard vectors.
int subspace_width(const EigenOptions& options, std::int64_t rows) {
    const int wanted = options.max_basis > 0
                           ? options.max_basis
                           : options.k + std::clamp(options.k, 6, 12 + options.k / 8);
    return 2 * std::int64_t{wanted} >= rows ? static_cast<int>(rows) : wanted;
}

/// Checks problem and options; returns the dimension of the searched space.
template <class T>
std::int64_t checked_dimensions(const Context& ctx, const EigenProblem<T>& problem,
                                const EigenOptions& options) {
    check_problem(ctx, problem, options);
    require_standard(problem, "Chebyshev subspace iteration");
    check_options(options, dimensions(problem));
    return dimensions(problem);
}

template <class T>
class ChebyshevSubspace {
  public:
    ChebyshevSubspace(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : ctx_(ctx),
          problem_(problem),
          rows_(checked_dimensions(ctx, problem, options)),
          options_(options),
          monitor_(ctx, options_, "chebyshev", problem.checkpoint),
          tol_(attainable_tolerance<T>(options.tol)),
          width_(subspace_width(options, rows_)),
          block_(ctx, problem, options.which, options.seed,
                 {options.k + fresh_columns, width_ + 2 * fresh_columns, fresh_columns}),
          filter_(ctx, block_.a(), block_.constraints(),
                  std::min(width_ + fresh_columns,
                           options.block > 0 ? options.block : default_panel<T>(ctx.place()))) {}

    EigenResult<T> run() {
        EigenResult<T> result;
        result.method = Method::chebyshev;
        if (const SavedState<T>* saved = saved_state(problem_)) {
            restore(*saved);
        } else {
            begin();
        }
        for (bool verified = false; !verified && result.message.empty();) {
            if (monitor_.take_save_request(must_stop())) {
                save();
            }
            if (const int missing = options_.k - block_.locked(); missing > 0) {
                const int lock = std::min(block_.converged_prefix(lockable()), missing);
                block_.lock(lock);
                if (lock < missing) {
                    search(missing - lock, result.message);
                }
            } else if (!block_.refined()) {
                refine(result.message);
            } else if (must_stop()) {
                result.message = stopped() + ", before the multiplicity was verified";
            } else {
                verified = complement_is_outside();
                result.multiplicity = verified ? Multiplicity::verified : result.multiplicity;
            }
        }
        fill_in(result);
        return result;
    }

  private:
    double threshold() const { return tol_ * block_.norm(); }
    double lockable() const { return lock_margin * threshold(); }
    double attainable() const { return attainable_units * eps() * block_.norm(); }
    /// True if locked and active pairs span the whole space.
    bool whole_space() const { return block_.locked() + block_.active() >= rows_; }
    bool must_stop() const {
        return monitor_.interrupted() || iterations_ >= options_.max_iterations;
    }
    std::string stopped() const {
        return (monitor_.interrupted() ? "interrupted after " : "stopped after ") +
               std::to_string(iterations_) + " block products";
    }
    /// The filter interval that damps from key `from` to the far end and is 1 at key `one`.
    ChebyshevInterval interval(double from, double one) const {
        const double least = 64 * eps() * block_.norm();
        const double to = std::max(bound_, from + least);
        return options_.which == Which::smallest ? ChebyshevInterval{from, to, one}
                                                 : ChebyshevInterval{-to, -from, -one};
    }
    double value(double key) const { return options_.which == Which::smallest ? key : -key; }

    void begin() {
        find_bounds();
        block_.start(problem_.start, width_);
        if (!whole_space() && block_.norm() > 0) {
            first_sweep();
        } else {
            rayleigh_ritz("search");
        }
    }

    /// Visits the numbers that are saved between two sweeps, with their names.
    template <class Visit>
    void visit_numbers(Visit&& visit) {
        visit("tolerance", tol_);
        visit("bound", bound_);
        visit("reach", reach_);
        visit("worst_before", worst_before_);
        visit("doubt", doubt_);
        visit("iterations", iterations_);
        visit("applications_before", applications_before_);
        visit("locked_before", locked_before_);
        visit("stagnant", stagnant_);
        visit("refinements", refinements_);
        visit("polishes", polishes_);
        visit("tied", tied_);
    }

    void save() {
        SolverState<T> state;
        state.solver = "chebyshev";
        visit_numbers([&](const char* name, auto value) {
            state.numbers[name] = {static_cast<double>(value)};
        });
        block_.save(state);
        problem_.checkpoint->save(ctx_, state);
    }

    void restore(const SavedState<T>& state) {
        state.require_solver("chebyshev");
        visit_numbers([&]<class V>(const char* name, V& value) { state.take(name, value); });
        block_.restore(state);
        if (block_.active() + block_.locked() < std::min<std::int64_t>(options_.k, rows_)) {
            state.refuse("the state has fewer columns than wanted pairs");
        }
    }

    /// Estimates the far end of the spectrum, ||A||, and the interval of the first filter.
    void find_bounds() {
        const int steps = static_cast<int>(std::min<std::int64_t>(rows_, bound_steps));
        const ShortLanczos run =
            short_lanczos<T>(ctx_, problem_.a, block_.constraints(), steps, options_.seed);
        iterations_ = applications_before_ = run.products;
        if (!run.complete) {
            find_bounds_carefully(steps);
            return;
        }
        const auto count = static_cast<int>(run.values.size());
        // Index of Ritz value j, counted from the wanted end.
        const auto at = [&](int j) {
            return static_cast<std::size_t>(options_.which == Which::smallest ? j : count - 1 - j);
        };
        const auto key = [&](int j) { return value(run.values[at(j)]); };
        bound_ = key(count - 1) + std::min(run.coupling, 2 * run.residuals[at(count - 1)]);
        block_.raise_norm(run.norm);
        first_one_ = key(0);
        first_low_ = key(std::min(first_ritz_value, count - 1));
    }

    /// The same with a fully orthogonalised basis, which works for every spectrum.
    void find_bounds_carefully(int steps) {
        LanczosBasis<T> basis(ctx_, problem_, options_.which, options_.seed, steps, 1, 1);
        basis.start(1);
        while (!basis.full()) {
            basis.step();
        }
        basis.ritz();
        iterations_ += basis.steps();
        applications_before_ += basis.applications();
        const int last = basis.size() - 1;
        bound_ = basis.key(basis.ritz_value(last)) +
                 std::min(basis.coupling_norm(), 2 * basis.ritz_residual(last));
        block_.raise_norm(basis.norm());
        first_one_ = basis.key(basis.ritz_value(0));
        first_low_ = basis.key(basis.ritz_value(std::min(first_ritz_value, last)));
    }

    void first_sweep() {
        reach_ = first_low_ - first_one_;
        const ChebyshevInterval range = interval(first_low_, first_one_);
        filter(block_.active_block(), range,
               std::max(least_degree,
                        range.degree_for(value(first_one_), growth_limit(), most_first_degree)));
        rayleigh_ritz("search");
    }

    static double eps() { return static_cast<double>(epsilon_v<T>); }
    /// Limit for the growth of the fastest active column relative to the damped ones in one sweep.
    /// Locked pairs may grow by 1 / eps, because the block is orthogonal to them up to rounding.
    static double growth_limit() { return 1 / std::sqrt(eps()); }

    void filter(BlockView<T> x, const ChebyshevInterval& range, int degree) {
        filter_.apply(x, range, degree);
        iterations_ += degree;
    }

    void rayleigh_ritz(const char* stage) {
        block_.rayleigh_ritz(iterations_);
        ++iterations_;
        if (block_.active() > 0) {
            const int highest = block_.active() - 1;
            bound_ = std::max(bound_, block_.key(highest));
        }
        const int converged = block_.converged_prefix(lockable());
        const bool any = converged < block_.active() && block_.norm() > 0;
        monitor_.report(iterations_, std::min(options_.k, block_.locked() + converged),
                        any ? block_.residual(converged) / block_.norm() : 0, stage);
    }

    /// The key from which to damp: usually the last Ritz value. That value is no guide if the whole
    /// block is close to one eigenvalue with many copies: with a component phi of eigenvectors at
    /// distance D, the Ritz values spread by only phi^2 D while the residuals are phi D.
    double damp_from() const {
        const int last = block_.active() - 1;
        const double spread = block_.key(last) - block_.key(0);
        const double rho = block_.residual(last);
        if (spread <= threshold()) {
            return block_.key(0) + std::max(spread, reach_);  // the reach of the last sweep
        }
        if (rho <= clustered * spread) {
            return block_.key(last);
        }
        const double far = (bound_ - block_.key(0)) / 2;
        return block_.key(0) + std::clamp(rho * rho / spread, spread, std::max(spread, far));
    }

    /// Filters the active columns so that the residuals of the first `targets` pairs fall to
    /// `wanted`, as far as the growth limit allows, and makes them Ritz pairs.
    void sweep(int targets, double wanted, const char* stage) {
        if (!whole_space()) {
            const int last = block_.active() - 1;
            const double from = damp_from();
            reach_ = from - block_.key(0);
            const double lowest =
                block_.locked() > 0 ? std::min(block_.locked_key(0), block_.key(0)) : block_.key(0);
            const ChebyshevInterval range = interval(from, lowest);
            int degree = least_degree;
            for (int j = 0; j < targets; ++j) {
                degree = std::max(
                    degree, range.degree_for(value(block_.key(j)), 2 * block_.residual(j) / wanted,
                                             most_degree));
            }
            // While the last Ritz value is far from an eigenvalue, a filter of high degree is
            // wasted.
            const double settled = (from - block_.key(0)) / block_.residual(last);
            const double growth =
                std::min(growth_limit(), first_growth * std::max(1.0, settled * settled));
            degree = std::min({degree, range.degree_for(value(block_.key(0)), growth, most_degree),
                               range.degree_for(value(lowest), 1 / eps(), most_degree)});
            filter(block_.active_block(), range, std::max(1, degree));
        }
        rayleigh_ritz(stage);
    }

    double worst_residual(int targets) const {
        double worst = 0;
        for (int j = 0; j < std::min(targets, block_.active()); ++j) {
            worst = std::max(worst, block_.residual(j));
        }
        return worst;
    }

    /// True if the slowest of the next pairs has not improved for some sweeps and is at the level
    /// of rounding.
    bool stagnates(int targets) {
        const double worst = worst_residual(targets);
        if (block_.locked() != locked_before_ || worst <= worst_before_ / 2) {
            stagnant_ = 0;
            worst_before_ = worst;
            locked_before_ = block_.locked();
        } else {
            ++stagnant_;
        }
        return stagnant_ >= stagnant_sweeps && worst <= attainable_slack * attainable();
    }

    /// Makes one more sweep for the next `targets` pairs, raises a stagnant tolerance, or sets the
    /// message.
    void search(int targets, std::string& message) {
        if (must_stop()) {
            message = stopped() + " with " + std::to_string(block_.locked()) + " of " +
                      std::to_string(options_.k) + " pairs converged";
        } else if (stagnates(targets)) {
            tol_ = std::max(tol_, worst_residual(targets) / (lock_margin * block_.norm()));
        } else {
            sweep(targets, lockable(), "search");
        }
    }

    /// Computes fresh residuals of the locked pairs; pairs above the tolerance become active again.
    void refine(std::string& message) {
        block_.refine(iterations_);
        ++iterations_;
        double worst = 0;
        for (int j = 0; j < options_.k; ++j) {
            worst = std::max(worst, block_.locked_residual(j));
        }
        if (worst > threshold() && refinements_ >= max_refinements) {
            if (worst > attainable_slack * attainable()) {
                message = "fresh residuals stay above the tolerance";
                return;
            }
            tol_ = worst / block_.norm();
        }
        if (worst > threshold() || block_.locked() > options_.k) {
            refinements_ += worst > threshold() ? 1 : 0;
            block_.release(threshold(), options_.k);
            rayleigh_ritz("search");
        }
    }

    /// One attempt to show that the complement of the k locked pairs holds no wanted eigenvalue. A
    /// wanted pair found instead is locked, or its columns join the active block.
    bool complement_is_outside() {
        const double last = block_.locked_key(options_.k - 1);
        if (block_.active() == 0) {
            tied_ = false;
            return true;
        }
        const double gap = block_.key(0) - last;
        const double rho = block_.residual(0);
        const double resolution = threshold() + rho;
        const bool settled = rho <= lockable() || stagnates(1);
        double cut = 0;
        if (gap > 2 * resolution && rho <= gap / 8) {
            tied_ = false;
            cut = last + gap / 2;
        } else if (settled && gap < -resolution) {
            block_.lock(1);
            return false;
        } else if (settled) {
            tied_ = std::abs(gap) <= resolution;
            cut = last - 2 * std::sqrt(2.0 * columns()) * std::max(threshold(), rho);
        } else {
            sweep(1, std::max(lockable(), std::abs(gap) / 10), "verify");
            return false;
        }
        return whole_space() || block_.norm() == 0 || fresh_columns_vanish(cut);
    }

    int columns() const { return block_.locked() + block_.active(); }

    /// Filters fresh columns with p(cut) = 1; returns whether nothing is left of them.
    bool fresh_columns_vanish(double cut) {
        // Deflate guard vectors with at most a component 1 / (2 columns) of eigenvectors below the
        // cut.
        int deflating = 0;
        while (deflating < block_.active() &&
               block_.residual(deflating) * std::sqrt(2.0 * columns()) <=
                   block_.key(deflating) - cut) {
            ++deflating;
        }
        const double next = block_.key(std::min(deflating, block_.active() - 1));
        const bool all_tied = next - block_.key(0) <= threshold();
        const ChebyshevInterval range = interval(all_tied ? next + reach_ : next, cut);
        const double length = std::sqrt(static_cast<double>(rows_) * (is_complex_v<T> ? 2 : 1) / 3);
        const double growth = 2 * length / short_column * doubt_;
        const int patience =
            static_cast<int>(std::clamp<std::int64_t>(iterations_, least_patience, most_patience));
        // Split the filter into pieces so short that no locked pair grows out of the rounding
        // noise.
        const int most = range.degree_for(value(block_.locked_key(0)), growth_limit(), patience);
        int pieces = 1;
        int degree = range.degree_for(value(cut), growth, patience);
        if (degree == patience && deflating < block_.active() && polishes_ < max_polishes) {
            ++polishes_;  // guard vectors close to the cut: let them converge first
            sweep(deflating + 1, lockable(), "verify");
            return false;
        }
        polishes_ = 0;
        while (degree > most && pieces < max_pieces) {
            ++pieces;
            degree = range.degree_for(value(cut), std::pow(growth, 1.0 / pieces), patience);
        }
        degree = std::min(degree, most);
        const int fresh = static_cast<int>(
            std::min<std::int64_t>(fresh_columns, rows_ - block_.locked() - deflating));
        const BlockView<T> y = block_.make_fresh(fresh, deflating);
        std::vector<double> lengths;
        for (int piece = 0; piece < pieces; ++piece) {
            filter(y, range, degree);
            lengths = block_.fresh_lengths(y, iterations_);
        }
        if (*std::max_element(lengths.begin(), lengths.end()) <= short_column) {
            return true;
        }
        doubt_ *= 10;
        block_.append(y);
        rayleigh_ritz("verify");
        if (block_.hidden_length(y, cut) <= short_column) {
            return true;
        }
        // Let all pairs that may be wanted, at least the copies that were cut off, converge first.
        int targets = 1;
        while (targets < block_.active() &&
               block_.key(targets) <= block_.locked_key(options_.k - 1) + threshold()) {
            ++targets;
        }
        sweep(targets, lockable(), "verify");
        return false;
    }

    void fill_in(EigenResult<T>& result) {
        // Unconverged pairs fill the missing places.
        const int count = std::min(options_.k, block_.locked() + block_.active());
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        BlockVector<T> unsorted;
        ctx_.comm().agree([&] {
            unsorted = BlockVector<T>(ctx_, problem_.a.row_map(), count);
            result.vectors = BlockVector<T>(ctx_, problem_.a.row_map(), count);
        });
        block_.extract(order, unsorted.view());
        std::stable_sort(order.begin(), order.end(),
                         [&](int i, int j) { return block_.pair(i).value < block_.pair(j).value; });
        gather_columns(ctx_, unsorted.view(), order, result.vectors.view());
        bool within = count == options_.k;
        for (const int j : order) {
            result.eigenvalues.push_back(block_.pair(j).value);
            result.residuals.push_back(block_.pair(j).residual);
            within = within && result.residuals.back() <= threshold();
        }
        result.norm_estimate = block_.norm();
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.converged = within && result.multiplicity == Multiplicity::verified;
        result.cluster_cut = tied_;
        result.iterations = iterations_;
        result.operator_applications = applications_before_ + block_.applications();
        result.block = filter_.width();
        result.basis = width_;
        result.interrupted = monitor_.interrupted();
        result.seconds = monitor_.seconds();
    }

    Context& ctx_;
    EigenProblem<T> problem_;
    std::int64_t rows_;
    EigenOptions options_;
    IterationMonitor monitor_;
    double tol_;
    int width_;
    RitzBlock<T> block_;
    ChebyshevFilter<T> filter_;

    /// In keys: the far end of the spectrum, and where the first filter is 1 and from which key it
    /// damps.
    double bound_ = 0;
    double first_one_ = 0;
    double first_low_ = 0;
    /// Distance from the first active key to the key from which the last sweep damped.
    double reach_ = 0;
    std::int64_t iterations_ = 0;
    std::int64_t applications_before_ = 0;
    double worst_before_ = 0;
    int locked_before_ = -1;
    int stagnant_ = 0;
    int refinements_ = 0;
    int polishes_ = 0;
    /// Factor by which failed attempts increase the growth that the next attempt requires.
    double doubt_ = 1;
    bool tied_ = false;
};

}  // namespace

template <class T>
EigenResult<T> chebyshev_subspace(Context& ctx, const EigenProblem<T>& problem,
                                  const EigenOptions& options) {
    return audited_solve<T>(ctx, problem,
                            [&] { return ChebyshevSubspace<T>(ctx, problem, options).run(); });
}

#define QUIVER_INSTANTIATE(T)                                                    \
    template EigenResult<T> chebyshev_subspace(Context&, const EigenProblem<T>&, \
                                               const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
