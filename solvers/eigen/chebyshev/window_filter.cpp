// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/window_filter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/eigen/chebyshev/filter_step.hpp"
#include "solvers/eigen/chebyshev/ritz_block.hpp"
#include "solvers/eigen/chebyshev/window_series.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/pencil/reduced_pencil.hpp"
#include "solvers/eigen/search/verified_search.hpp"

namespace quiver {
namespace {

constexpr int bound_steps = 24;
/// The estimate of the density of states: number of random columns, and limits of the number of
/// products.
constexpr int density_columns = 16;
constexpr int least_density_products = 32;
constexpr int most_density_products = 1000;
/// Terms of the density of states for the width of the window.
constexpr double terms_in_window = 20;
constexpr int fresh_columns = 8;
constexpr double short_column = 0.05;
constexpr int max_attempts = 10;
constexpr int stagnant_sweeps = 2;
constexpr int window_samples = 200;

template <class T>
class WindowFilter : public VerifiedSearch<T> {
  public:
    WindowFilter(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : VerifiedSearch<T>(ctx, problem, options, {Method::filter, "sweeps"}) {
        if (!options.window) {
            InputError error("Chebyshev filter diagonalisation: no window is given");
            error.set_collective();
            throw error;
        }
        low_ = options.window->low;
        high_ = options.window->high;
    }

  private:
    void begin() override {
        this->problem().a.prepare(this->ctx(), std::array{density_columns}, true);
        norm_ = find_bounds();
        columns_ = choose_filter();
        make_block();
        prepare_kernels();
        block_->start(this->problem().start, columns_);
        if (this->interrupted()) {
            rayleigh_ritz("search");
            return;
        }
        sweep("search");
        if (!this->interrupted()) {
            sweep("search");  // one sweep does not separate a pair of the window from a mixture
        }
    }

    void make_block() {
        const Window widened = with_slack({low_, high_}, norm_, attainable_tolerance<T>(0));
        block_.emplace(this->ctx(), this->problem(), SpectralOrder::window(widened),
                       this->options().seed,
                       typename RitzBlock<T>::Room{room(), room(), fresh_columns});
        filter_.emplace(this->ctx(), block_->a(), block_->constraints(),
                        this->options().block > 0 ? this->options().block
                                                  : default_panel<T>(this->ctx().place()));
        block_->raise_norm(norm_);
    }

    /// Requests the sparse kernels of the first sweeps: the panels of the filter, and the products
    /// of the whole block.
    void prepare_kernels() {
        const int width = filter_->panel_width(columns_);
        this->problem().a.prepare(this->ctx(),
                                  std::array{std::min(width, columns_), columns_ % width,
                                             std::min(columns_, RitzBlock<T>::product_width),
                                             columns_ % RitzBlock<T>::product_width});
    }

    int room() const {
        return static_cast<int>(std::min<std::int64_t>(
            this->dimensions(), columns_ + columns_ / 2 + 4 * fresh_columns));
    }
    bool whole_space() const { return block_->locked() + block_->active() >= this->dimensions(); }

    void visit_numbers(const StateVisit<T>& visit) override {
        visit("spectrum_low", spectrum_.low);
        visit("spectrum_high", spectrum_.high);
        visit("least_inside", least_inside_);
        visit("columns", columns_);
        visit("iterations", iterations_);
        visit("applications_before", applications_);
        visit("worst_before", worst_before_);
        visit("stagnant", stagnant_);
        visit("attempts", attempts_);
        visit("expected_count", expected_.value);
        visit("expected_error", expected_.error);
        visit("series", series_);
    }
    void save(SolverState<T>& state) override { block_->save(state); }
    void restore(const SavedState<T>& state) override {
        norm_ = state.number("norm");
        columns_ = state.count("columns", std::min<std::int64_t>(this->dimensions(), max_pairs));
        if (series_.empty() || !(spectrum_.low < spectrum_.high)) {
            state.refuse("the state has no valid filter");
        }
        make_block();
        block_->restore(state);
    }

    /// Finds outer bounds of both ends of the spectrum; returns an estimate of ||A||.
    double find_bounds() {
        const int steps = static_cast<int>(std::min<std::int64_t>(this->dimensions(), bound_steps));
        LanczosBasis<T> basis(this->ctx(), this->problem(), Which::smallest, this->options().seed,
                              steps, 1, 1);
        basis.start(1);
        while (!basis.full()) {
            basis.step();
        }
        basis.ritz();
        const int last = basis.size() - 1;
        // A spectrum that is one point to rounding needs an interval that is much wider than the
        // rounding errors of products.
        const double point = std::max(1e-6, 4096 * this->eps());
        const double width = basis.ritz_value(last) - basis.ritz_value(0);
        const double least = width > point * basis.norm() ? 64 * this->eps() : point;
        const double margin = basis.coupling_norm() + least * basis.norm();
        spectrum_ = {basis.ritz_value(0) - margin, basis.ritz_value(last) + margin, 0};
        if (basis.norm() == 0) {
            spectrum_ = {-1, 1, 0};
        }
        applications_ = basis.applications();
        return basis.norm();
    }

    /// Chooses the filter from the density of states; returns the number of columns of the
    /// subspace.
    int choose_filter() {
        const double window = spectrum_.angle(low_) - spectrum_.angle(high_);
        GuardedOperator<T> a(this->problem().a);
        const int products =
            static_cast<int>(std::clamp(terms_in_window / (2 * std::max(window, 1e-6)),
                                        least_density_products * 1.0, most_density_products * 1.0));
        const SpectralMoments moments =
            spectral_moments(this->ctx(), a, spectrum_, density_columns, products,
                             this->options().seed + 17, [this] {
                                 // A state that is saved at the end needs the whole filter.
                                 return this->problem().checkpoint != nullptr || go_on("density");
                             });
        applications_ += a.applications();
        expected_ = moments.count(low_, high_);
        const FilterStep step = choose_step(moments);
        const double wanted = step.columns;
        // The series of a window much narrower than its steps would be nearly 0.
        const double wider = std::max(0.0, step.design.step - window) / 2;
        series_ = filter_series(spectrum_, spectrum_.at_angle(spectrum_.angle(low_) + wider),
                                spectrum_.at_angle(spectrum_.angle(high_) - wider), step.design);
        least_inside_ = 1;
        for (int i = 0; i <= window_samples; ++i) {
            const double at = low_ + (high_ - low_) * i / window_samples;
            least_inside_ = std::min(least_inside_, series_at(series_, spectrum_, at));
        }
        return 2 * wanted >= static_cast<double>(this->dimensions())
                   ? static_cast<int>(this->dimensions())
                   : static_cast<int>(wanted);
    }

    FilterStep choose_step(const SpectralMoments& moments) const {
        const double most = this->options().max_basis > 0 ? this->options().max_basis : max_pairs;
        const FilterStep chosen = choose_filter_step(this->tolerance(), most, [&](double step) {
            if (this->interrupted()) {
                return filter_columns(0, 0);
            }
            const auto around = moments.count(spectrum_.at_angle(spectrum_.angle(low_) + step),
                                              spectrum_.at_angle(spectrum_.angle(high_) - step));
            return filter_columns(around.value, around.error);
        });
        if (chosen.columns > most) {
            InputError error("filter: the window [" + number_text(low_, 15) + ", " +
                             number_text(high_, 15) + "] needs a subspace of about " +
                             std::to_string(static_cast<std::int64_t>(chosen.columns)) +
                             " columns, but only " +
                             std::to_string(static_cast<std::int64_t>(most)) +
                             " are allowed; use a smaller window");
            error.set_collective();
            throw error;
        }
        return chosen;
    }

    /// Filters the columns. Because a filter takes long, the callback may end it.
    void filter(BlockView<T> x, const char* stage) {
        filter_->apply_series(x, spectrum_, series_, [&] { return go_on(stage); });
        ++iterations_;
    }

    bool go_on(const char* stage) {
        return this->monitor().report_within(iterations_, block_ ? block_->locked() : 0,
                                             worst_shown_, stage);
    }

    void sweep(const char* stage) {
        if (!whole_space()) {
            filter(block_->active_block(), stage);
        }
        rayleigh_ritz(stage);
    }

    void rayleigh_ritz(const char* stage) {
        block_->rayleigh_ritz(iterations_);
        // Move back mixtures of eigenvectors from both sides of the window, whose residuals are
        // large.
        block_->move_back(
            [&](int j) { return block_->key(j) <= 0 && block_->residual(j) > mixture(); });
        int converged = 0;
        while (converged < inside() && block_->residual(converged) <= this->lockable()) {
            ++converged;
        }
        const double worst = worst_inside();
        worst_shown_ = block_->norm() > 0 ? worst / block_->norm() : 0;
        this->report(block_->locked() + converged, worst_shown_, stage);
    }

    /// The least residual of a pair that may be a mixture of eigenvectors from both sides of the
    /// window.
    double mixture() const { return std::max(high_ - low_, 1e-6 * spectrum_.half_width()) / 6; }

    /// The number of active pairs in the window or, if their residuals allow eigenvalues in it,
    /// very close to it: copies of an eigenvalue at an end have Ritz values on both sides.
    int inside() const {
        const double close = 1e-3 * mixture();
        int count = 0;
        while (count < block_->active() &&
               block_->key(count) <= std::min(block_->residual(count), close)) {
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
    /// A window that has converged is locked only if its verification can follow.
    bool found() override { return worst_inside() <= this->lockable() && !this->must_stop(); }

    /// A sweep, with more columns if the last sweeps did not help.
    void extend() override {
        const double worst = worst_inside();
        stagnant_ = worst <= worst_before_ / 4 ? 0 : stagnant_ + 1;
        worst_before_ = worst;
        if (stagnant_ > stagnant_sweeps) {
            stagnant_ = 0;
            if (worst <= attainable_slack * this->attainable()) {
                this->accept(worst);
                return;
            }
            if (block_->locked() + block_->active() + fresh_columns > room()) {
                this->give_up_because("pairs in the window do not converge; try a smaller window");
                return;
            }
            block_->append(block_->make_fresh(fresh_columns, 0));
        }
        sweep("search");
    }

    int give_up() override { return block_->locked(); }

    /// The places in [Q X] of the pairs in the window: those that are locked and, after a search
    /// that was given up, the active ones. Locked pairs beside the window are no result.
    std::vector<int> places() const {
        // With a tolerance near the rounding level, the residual is all that is known of a value.
        // With a larger one, values are far more accurate than their residuals.
        const double rounding = this->threshold() <= attainable_slack * this->attainable()
                                    ? HUGE_VAL
                                    : 8 * this->attainable();
        std::vector<int> places;
        for (int j = 0; j < block_->locked(); ++j) {
            if (block_->locked_key(j) <= std::min(block_->locked_residual(j), rounding)) {
                places.push_back(j);
            }
        }
        for (int j = 0; this->has_given_up() && j < inside(); ++j) {
            places.push_back(block_->locked() + j);
        }
        return places;
    }
    std::vector<RitzPair> pairs() override {
        const std::vector<RitzPair> all = block_->pairs(block_->active());
        std::vector<RitzPair> pairs;
        for (const int place : places()) {
            pairs.push_back(all[static_cast<std::size_t>(place)]);
        }
        return pairs;
    }
    void extract(const std::vector<int>& order, BlockView<T> y) override {
        const std::vector<int> all = places();
        std::vector<int> chosen;
        chosen.reserve(order.size());
        for (const int j : order) {
            chosen.push_back(all[static_cast<std::size_t>(j)]);
        }
        block_->extract(chosen, y);
    }

    void refine_pairs() override {
        lock_window();
        if (block_->locked() > 0) {
            block_->refine(iterations_);
        }
    }
    bool search_again() override {
        block_->release(this->threshold(), block_->locked());
        sweep("search");
        return true;
    }

    /// Locks the pairs in the window, and converged pairs so close to it that their residuals do
    /// not exclude them.
    void lock_window() {
        const double edge =
            2 * std::sqrt(2.0 * (block_->locked() + block_->active())) * this->threshold();
        int count = 0;
        while (count < block_->active() && block_->key(count) <= edge &&
               block_->residual(count) <= this->lockable()) {
            ++count;
        }
        block_->lock(count);
    }

    void begin_complement() override { verdict_ = ComplementVerdict::open; }
    ComplementVerdict complement() override { return verdict_; }

    /// Filters fresh columns. If they do not vanish, they join the block, and the search continues.
    void extend_complement() override {
        if (whole_space()) {
            verdict_ = ComplementVerdict::outside;
        } else if (++attempts_ > max_attempts) {
            this->give_up_because(std::to_string(max_attempts) +
                                  " attempts to verify the result failed; try a smaller window");
        } else {
            verdict_ =
                fresh_columns_vanish() ? ComplementVerdict::outside : ComplementVerdict::inside;
        }
    }

    bool fresh_columns_vanish() {
        const int columns = block_->locked() + block_->active();
        const int deflating = block_->move_back(
            [&](int j) { return block_->residual(j) * std::sqrt(2.0 * columns) > block_->key(j); });
        const int count = static_cast<int>(std::min<std::int64_t>(
            fresh_columns, this->dimensions() - block_->locked() - deflating));
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

    std::int64_t iterations() const override { return iterations_; }
    double norm() const override { return block_->norm(); }
    void describe(EigenResult<T>& result) const override {
        result.expected_count = expected_.value;
        result.expected_error = expected_.error;
        result.operator_applications = applications_ + block_->applications();
        result.block = filter_->width();
        result.basis = columns_;
    }

    double low_ = 0;
    double high_ = 0;
    std::optional<RitzBlock<T>> block_;
    std::optional<ChebyshevFilter<T>> filter_;
    SpectralMoments::Count expected_;

    ChebyshevInterval spectrum_;
    std::vector<double> series_;
    /// The smallest value of the filter in the window.
    double least_inside_ = 1;
    int columns_ = 0;
    double norm_ = 0;
    std::int64_t iterations_ = 0;
    std::int64_t applications_ = 0;
    double worst_before_ = 0;
    double worst_shown_ = 1;
    int stagnant_ = 0;
    int attempts_ = 0;
    ComplementVerdict verdict_ = ComplementVerdict::open;
};

}  // namespace

template <class T>
EigenResult<T> window_filter(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options) {
    if (problem.b != nullptr) {
        return solve_reduced<T>(ctx, problem, options, Method::filter, window_filter<T>);
    }
    return verified_search<WindowFilter>(ctx, problem, options);
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> window_filter(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
