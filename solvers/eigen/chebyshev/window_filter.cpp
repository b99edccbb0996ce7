// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/window_filter.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/eigen/chebyshev/ritz_block.hpp"
#include "solvers/eigen/chebyshev/window_series.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/iteration_monitor.hpp"

namespace quiver {
namespace {

// Margins as in chebyshev_subspace.cpp.
constexpr double lock_margin = 0.7;
constexpr double attainable_slack = 16;
constexpr int bound_steps = 24;
/// Random columns, and limits for the products, of the density of states.
constexpr int density_columns = 16;
constexpr int least_density_products = 32;
constexpr int most_density_products = 1000;
/// Width of the window in steps of the filter, and limits of the filter's degree.
constexpr double steps_in_window = 6;
constexpr int least_degree = 16;
constexpr int most_degree = 20000;
/// The subspace holds what the filter passes up to this many steps beside the window.
constexpr double steps_beside = 5;
constexpr int spare_columns = 16;
constexpr int fresh_columns = 8;
constexpr double short_column = 0.05;
constexpr int max_refinements = 5;
constexpr int max_attempts = 10;
constexpr int stagnant_sweeps = 2;
constexpr int window_samples = 200;

template <class T>
class WindowFilter {
  public:
    WindowFilter(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : ctx_(ctx),
          problem_(problem),
          options_(options),
          low_(options.window->low),
          high_(options.window->high),
          monitor_(ctx, options_, "filter", problem.checkpoint),
          tol_(attainable_tolerance<T>(options.tol)),
          rows_(dimensions(problem)) {}

    EigenResult<T> run() {
        EigenResult<T> result;
        result.method = Method::filter;
        const SavedState<T>* const saved = saved_state(problem_);
        if (saved != nullptr) {
            restore(*saved, result);
        } else {
            norm_ = find_bounds();
            columns_ = choose_filter(result);
        }
        RitzBlock<T> block(ctx_, problem_, SpectralOrder::window(low_, high_), options_.seed,
                           {room(), room(), fresh_columns});
        ChebyshevFilter<T> filter(
            ctx_, block.a(), block.constraints(),
            options_.block > 0 ? options_.block : default_panel<T>(ctx_.place()));
        block_ = &block;
        filter_ = &filter;
        block.raise_norm(norm_);
        if (saved != nullptr) {
            block.restore(*saved);
        } else {
            block.start(problem_.start, columns_);
            sweep("search");
            if (!monitor_.interrupted()) {
                sweep("search");  // one sweep does not separate a pair of the window from a mixture
            }
        }
        while (result.message.empty() && result.multiplicity == Multiplicity::unverified) {
            if (monitor_.take_save_request(must_stop())) {
                save(result);
            }
            if (must_stop()) {
                result.message = stopped();
            } else if (!window_converged()) {
                search(result.message);
            } else {
                lock_window();
                if (verified(result.message)) {
                    result.multiplicity = Multiplicity::verified;
                }
            }
        }
        fill_in(result);
        return result;
    }

  private:
    int room() const {
        return static_cast<int>(
            std::min<std::int64_t>(rows_, columns_ + columns_ / 2 + 4 * fresh_columns));
    }
    static double eps() { return static_cast<double>(epsilon_v<T>); }
    double threshold() const { return tol_ * block_->norm(); }
    double attainable() const { return attainable_units * eps() * block_->norm(); }
    bool whole_space() const { return block_->locked() + block_->active() >= rows_; }
    bool must_stop() const {
        return monitor_.interrupted() || iterations_ >= options_.max_iterations;
    }
    std::string stopped() const {
        return (monitor_.interrupted() ? "interrupted after " : "stopped after ") +
               std::to_string(iterations_) + " sweeps";
    }

    /// Visits the numbers that are saved between two sweeps, with their names.
    template <class Visit>
    void visit_numbers(EigenResult<T>& result, Visit&& visit) {
        visit("tolerance", tol_);
        visit("spectrum_low", spectrum_.low);
        visit("spectrum_high", spectrum_.high);
        visit("least_inside", least_inside_);
        visit("step", step_);
        visit("columns", columns_);
        visit("iterations", iterations_);
        visit("applications_before", applications_);
        visit("worst_before", worst_before_);
        visit("stagnant", stagnant_);
        visit("refinements", refinements_);
        visit("attempts", attempts_);
        visit("expected_count", result.expected_count);
        visit("expected_error", result.expected_error);
    }

    void save(EigenResult<T>& result) {
        SolverState<T> state;
        state.solver = "filter";
        visit_numbers(result, [&](const char* name, auto value) {
            state.numbers[name] = {static_cast<double>(value)};
        });
        state.numbers["series"] = series_;
        block_->save(state);
        problem_.checkpoint->save(ctx_, state);
    }

    /// Restores everything except the block, which needs to be allocated first.
    void restore(const SavedState<T>& state, EigenResult<T>& result) {
        state.require_solver("filter");
        visit_numbers(result,
                      [&]<class V>(const char* name, V& value) { state.take(name, value); });
        norm_ = state.number("norm");
        series_ = state.values("series");
        columns_ = state.count("columns", std::min<std::int64_t>(rows_, max_pairs));
        if (series_.empty() || !(spectrum_.low < spectrum_.high) || !(step_ > 0)) {
            state.refuse("the state has no valid filter");
        }
    }

    /// Finds outer bounds of both ends of the spectrum; returns ||A||.
    double find_bounds() {
        const int steps = static_cast<int>(std::min<std::int64_t>(rows_, bound_steps));
        LanczosBasis<T> basis(ctx_, problem_, Which::smallest, options_.seed, steps, 1, 1);
        basis.start(1);
        while (!basis.full()) {
            basis.step();
        }
        basis.ritz();
        const int last = basis.size() - 1;
        const double margin = basis.coupling_norm() + 64 * eps() * basis.norm();
        spectrum_ = {basis.ritz_value(0) - margin, basis.ritz_value(last) + margin, 0};
        if (basis.norm() == 0) {
            spectrum_ = {-1, 1, 0};
        }
        applications_ = basis.applications();
        return basis.norm();
    }

    /// Chooses the filter from the density of states; returns the number of columns of the
    /// subspace.
    int choose_filter(EigenResult<T>& result) {
        const double half = spectrum_.half_width();
        const double window = std::max(high_ - low_, 1e-6 * half);
        double step = window / steps_in_window;
        const auto degree_of = [&](double width) {
            return std::clamp(static_cast<int>(3.2 * half / width), least_degree, most_degree);
        };
        GuardedOperator<T> a(problem_.a);
        const int products =
            std::clamp(degree_of(step) / 2, least_density_products, most_density_products);
        const SpectralMoments moments =
            spectral_moments(ctx_, a, spectrum_, density_columns, products, options_.seed + 17);
        applications_ += a.applications();
        const auto inside = moments.count(low_, high_);
        result.expected_count = inside.value;
        result.expected_error = inside.error;
        int degree = degree_of(step);
        step = 3.2 * half / degree;
        step_ = step;
        const auto around = moments.count(low_ - steps_beside * step, high_ + steps_beside * step);
        const double wanted = 1.2 * around.value + 3 * around.error + spare_columns;
        const double most = options_.max_basis > 0 ? options_.max_basis : max_pairs;
        if (wanted > most) {
            InputError error(
                "filter: the window [" + number_text(low_, 15) + ", " + number_text(high_, 15) +
                "] needs a subspace of about " + std::to_string(static_cast<std::int64_t>(wanted)) +
                " columns, but only " + std::to_string(static_cast<std::int64_t>(most)) +
                " are allowed; use a smaller window");
            error.set_collective();
            throw error;
        }
        // The filter's steps lie outside the window, so that the filter is close to 1 inside.
        series_ = window_series(spectrum_, low_ - 2 * step, high_ + 2 * step, degree);
        least_inside_ = 1;
        for (int i = 0; i <= window_samples; ++i) {
            const double at = low_ + (high_ - low_) * i / window_samples;
            least_inside_ = std::min(least_inside_, series_at(series_, spectrum_, at));
        }
        return 2 * wanted >= static_cast<double>(rows_) ? static_cast<int>(rows_)
                                                        : static_cast<int>(wanted);
    }

    /// Filters the columns. Because a filter takes long, the callback may end it between two
    /// panels.
    void filter(BlockView<T> x, const char* stage) {
        filter_->apply_series(x, spectrum_, series_, [&] {
            return monitor_.report_within(iterations_, block_->locked(), worst_shown_, stage);
        });
        ++iterations_;
    }

    void sweep(const char* stage) {
        if (!whole_space()) {
            filter(block_->active_block(), stage);
        }
        rayleigh_ritz(stage);
    }

    void rayleigh_ritz(const char* stage) {
        block_->rayleigh_ritz(iterations_);
        // Move back mixtures of eigenvectors from both sides of the window.
        block_->move_back(
            [&](int j) { return block_->key(j) <= 0 && block_->residual(j) > step_; });
        int converged = 0;
        while (converged < inside() && block_->residual(converged) <= lock_margin * threshold()) {
            ++converged;
        }
        const double worst = worst_inside();
        worst_shown_ = block_->norm() > 0 ? worst / block_->norm() : 0;
        monitor_.report(iterations_, block_->locked() + converged, worst_shown_, stage);
    }

    /// Number of active pairs in the window.
    int inside() const {
        int count = 0;
        while (count < block_->active() && block_->key(count) <= 0) {
            ++count;
        }
        return count;
    }
    double worst_inside() const {
        double worst = 0;
        for (int j = 0; j < inside(); ++j) {
            worst = std::max(worst, block_->residual(j));
        }
        return worst;
    }
    bool window_converged() const { return worst_inside() <= lock_margin * threshold(); }

    /// Makes another sweep, with more columns if the last sweeps did not help.
    void search(std::string& message) {
        const double worst = worst_inside();
        stagnant_ = worst <= worst_before_ / 4 ? 0 : stagnant_ + 1;
        worst_before_ = worst;
        if (stagnant_ > stagnant_sweeps) {
            stagnant_ = 0;
            if (worst <= attainable_slack * attainable()) {
                tol_ = std::max(tol_, worst / (lock_margin * block_->norm()));
                return;
            }
            if (block_->locked() + block_->active() + fresh_columns > room()) {
                message = "pairs in the window do not converge; try a smaller window";
                return;
            }
            block_->append(block_->make_fresh(fresh_columns, 0));
        }
        sweep("search");
    }

    /// Locks the pairs in the window, and converged pairs so close to it that their residuals do
    /// not exclude them.
    void lock_window() {
        const double edge =
            2 * std::sqrt(2.0 * (block_->locked() + block_->active())) * threshold();
        int count = 0;
        while (count < block_->active() && block_->key(count) <= edge &&
               block_->residual(count) <= lock_margin * threshold()) {
            ++count;
        }
        block_->lock(count);
    }

    /// Checks fresh residuals of the locked pairs, then filters fresh columns; false if another
    /// sweep is needed.
    bool verified(std::string& message) {
        if (block_->locked() > 0) {
            block_->refine(iterations_);
        }
        double worst = 0;
        for (int j = 0; j < block_->locked(); ++j) {
            worst = std::max(worst, block_->locked_residual(j));
        }
        if (worst > threshold()) {
            if (++refinements_ > max_refinements) {
                message = "fresh residuals stay above the tolerance";
                return false;
            }
            block_->release(threshold(), block_->locked());
            sweep("search");
            return false;
        }
        if (whole_space()) {
            return true;
        }
        if (++attempts_ > max_attempts) {
            message = std::to_string(max_attempts) +
                      " attempts to verify the result failed; try a smaller window";
            return false;
        }
        return fresh_columns_vanish();
    }

    bool fresh_columns_vanish() {
        const int columns = block_->locked() + block_->active();
        const int deflating = block_->move_back(
            [&](int j) { return block_->residual(j) * std::sqrt(2.0 * columns) > block_->key(j); });
        const int count = static_cast<int>(
            std::min<std::int64_t>(fresh_columns, rows_ - block_->locked() - deflating));
        const BlockView<T> fresh = block_->make_fresh(count, deflating);
        // Filter until the components that the filter passes beside the window have vanished.
        double kept = 1;
        for (int pass = 0; pass < 3; ++pass) {
            filter(fresh, "verify");
            kept *= least_inside_;
            const std::vector<double> lengths = block_->fresh_lengths(fresh, iterations_);
            if (*std::max_element(lengths.begin(), lengths.end()) <= short_column * kept) {
                return true;
            }
        }
        block_->append(fresh);
        rayleigh_ritz("verify");
        if (block_->hidden_length(fresh, 0) <= short_column * kept) {
            return true;
        }
        sweep("verify");  // let the guard vectors converge, too
        return false;
    }

    void fill_in(EigenResult<T>& result) {
        // If the search is unfinished, include the unconverged pairs in the window.
        const int count = block_->locked() + (result.message.empty() ? 0 : inside());
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        BlockVector<T> unsorted;
        ctx_.comm().agree([&] {
            unsorted = BlockVector<T>(ctx_, problem_.a.row_map(), count);
            result.vectors = BlockVector<T>(ctx_, problem_.a.row_map(), count);
        });
        block_->extract(order, unsorted.view());
        const auto value = [&](int j) { return block_->pair(j).value; };
        std::stable_sort(order.begin(), order.end(),
                         [&](int i, int j) { return value(i) < value(j); });
        gather_columns(ctx_, unsorted.view(), order, result.vectors.view());
        bool within = true;
        for (const int j : order) {
            result.eigenvalues.push_back(value(j));
            result.residuals.push_back(block_->pair(j).residual);
            within = within && result.residuals.back() <= threshold();
        }
        result.norm_estimate = block_->norm();
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.converged = within && result.multiplicity == Multiplicity::verified;
        result.iterations = iterations_;
        result.operator_applications = applications_ + block_->applications();
        result.block = filter_->width();
        result.basis = columns_;
        result.interrupted = monitor_.interrupted();
        result.seconds = monitor_.seconds();
    }

    Context& ctx_;
    EigenProblem<T> problem_;
    EigenOptions options_;
    double low_;
    double high_;
    IterationMonitor monitor_;
    double tol_;
    std::int64_t rows_;
    RitzBlock<T>* block_ = nullptr;
    ChebyshevFilter<T>* filter_ = nullptr;

    ChebyshevInterval spectrum_;
    std::vector<double> series_;
    /// The smallest value of the filter in the window.
    double least_inside_ = 1;
    /// Width of the filter's steps. A pair in the window with a larger residual is a mixture of
    /// eigenvectors beside the window.
    double step_ = 0;
    int columns_ = 0;
    double norm_ = 0;
    std::int64_t iterations_ = 0;
    std::int64_t applications_ = 0;
    double worst_before_ = 0;
    double worst_shown_ = 1;
    int stagnant_ = 0;
    int refinements_ = 0;
    int attempts_ = 0;
};

}  // namespace

template <class T>
EigenResult<T> window_filter(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options) {
    check_problem(ctx, problem, options);
    require_standard(problem, "Chebyshev filter diagonalisation");
    check_options(options, dimensions(problem));
    if (!options.window) {
        InputError error("Chebyshev filter diagonalisation: no window is given");
        error.set_collective();
        throw error;
    }
    return audited_solve<T>(ctx, problem,
                            [&] { return WindowFilter<T>(ctx, problem, options).run(); });
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> window_filter(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
