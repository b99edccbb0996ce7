// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/jacobi_davidson.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/jacobi_davidson/jada_basis.hpp"
#include "solvers/eigen/jacobi_davidson/jada_correction.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/iteration_monitor.hpp"
#include "solvers/eigen/search/verification.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// A pair is locked only if its residual is this factor below the tolerance, so that the fresh
/// residual meets it.
constexpr double lock_margin = 0.7;
/// Fresh residuals up to this many times the attainable one raise the tolerance.
constexpr double attainable_slack = 16;
constexpr int max_refinements = 5;
/// Limit for expansions in a row that add no direction: such a search would never end.
constexpr int most_idle = 20;
/// After this many steps without progress a residual that rounding explains is accepted.
constexpr int patience = 12;
/// Maximal number of block MINRES steps in a correction equation, for an end and for a target:
/// indefinite systems need more steps before a solution is useful.
constexpr int end_steps = 20;
constexpr int target_steps = 60;

int block_width(const EigenOptions& options) {
    return options.block > 0 ? options.block : std::min(4, options.k);
}
/// Fresh columns that start a verification; for a target they must find eigenvalues on both sides.
int verify_width(const EigenOptions& options, int block) {
    return std::max(block, options.which == Which::target ? 8 : 2);
}

/// Checks problem and options; returns the dimension of the searched space.
template <class T>
std::int64_t checked_dimensions(const Context& ctx, const EigenProblem<T>& problem,
                                const EigenOptions& options) {
    check_problem(ctx, problem, options);
    check_options(options, dimensions(problem));
    return dimensions(problem);
}

/// The smallest number of Ritz vectors that a restart keeps; below, the columns of V.
int least_width(int block) {
    return 16 + block;
}
int search_width(const EigenOptions& options, int block, std::int64_t rows) {
    const int width =
        options.max_basis > 0 ? options.max_basis : least_width(block) + std::max(20, 6 * block);
    return static_cast<int>(std::min<std::int64_t>(rows, width));
}

enum class SearchEnd { found, stopped };
enum class VerifyEnd { nothing_inside, taken_in, stopped };

template <class T>
class JacobiDavidson {
  public:
    JacobiDavidson(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : ctx_(ctx),
          problem_(problem),
          dimensions_(checked_dimensions(ctx, problem, options)),
          options_(options),
          monitor_(ctx, options_, "jd", problem.checkpoint),
          block_(block_width(options)),
          tol_(attainable_tolerance<T>(options.tol)),
          max_search_(search_width(options, verify_width(options, block_), dimensions_)),
          max_locked_(static_cast<int>(
              std::min<std::int64_t>(dimensions_, options.k + 2 * verify_width(options_, block_)))),
          basis_(ctx, problem, options, max_search_, max_locked_),
          correction_(ctx, basis_, problem, problem.constraints.cols + max_locked_,
                      verify_width(options_, block_)) {}

    EigenResult<T> run() {
        EigenResult<T> result;
        result.method = Method::jacobi_davidson;
        if (const SavedState<T>* saved = saved_state(problem_)) {
            restore(*saved);
        } else {
            basis_.start(problem_.start, block_);
        }
        for (bool finished = false; !finished;) {
            if (!verifying_) {
                if (search() == SearchEnd::stopped) {
                    result.message = stopped() + " with " +
                                     std::to_string(std::min(basis_.locked(), options_.k)) +
                                     " of " + std::to_string(options_.k) + " pairs converged; " +
                                     last_residual_;
                    keep_best_unconverged();
                    break;
                }
                basis_.refine();
                if (basis_.locked() < options_.k) {
                    continue;  // some locked pairs were dependent
                }
                if (const int above = wanted_above_tolerance(); above > 0) {
                    if (++refinements_ <= max_refinements) {
                        basis_.drop_beyond(options_.k);
                        basis_.search_again_above(tol_);
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
                    result.message =
                        stopped() + ", before the multiplicity was verified; " + last_residual_;
                    finished = true;
                    break;
            }
        }
        fill_in(result);
        return result;
    }

  private:
    std::int64_t products() const { return inner_products_ + basis_.products(); }
    bool must_stop() const {
        return monitor_.interrupted() || products() >= options_.max_iterations;
    }
    std::string stopped() const {
        return (monitor_.interrupted() ? "interrupted after " : "stopped after ") +
               std::to_string(products()) + " block products";
    }
    double attainable(double value) const {
        return attainable_units * static_cast<double>(epsilon_v<T>) * basis_.scale(value);
    }
    double threshold(double value) const { return tol_ * basis_.scale(value); }

    /// Forms the first Ritz pairs, up to `width` of them, and their residuals.
    void form(int width) {
        basis_.ritz();
        width_ = std::min(width, basis_.pairs());
        residual_ =
            basis_.form(correction_.x(width_), correction_.bx(width_), correction_.r(width_));
    }

    void report(const char* stage) {
        const double scale = basis_.scale(width_ > 0 ? basis_.value(0) : 0);
        const double residual = width_ > 0 && scale > 0 ? residual_.front() / scale : 0;
        char text[96];
        std::snprintf(text, sizeof(text), "the residual of pair %d is at %.1e ||A||",
                      basis_.locked() + 1, residual);
        last_residual_ = text;
        monitor_.report(products(), std::min(options_.k, basis_.locked()), residual, stage);
    }

    /// Resets the detection of stagnation.
    void expect_progress() {
        stalled_ = 0;
        best_residual_ = std::numeric_limits<double>::infinity();
    }

    /// True if the first residual no longer falls and rounding can explain it.
    bool stalled_at_rounding() {
        if (width_ == 0) {
            return false;
        }
        if (residual_.front() < 0.9 * best_residual_) {
            best_residual_ = residual_.front();
            stalled_ = 0;
        } else {
            ++stalled_;
        }
        return stalled_ >= patience &&
               residual_.front() <= attainable_slack * attainable(basis_.value(0));
    }

    /// Locks the pairs of the block that are within the tolerance; false if there are none.
    bool lock_converged() {
        std::vector<int> places;
        const bool stalled = stalled_at_rounding();
        for (int j = 0;
             j < width_ && basis_.locked() + static_cast<int>(places.size()) < basis_.max_locked();
             ++j) {
            // If V spans everything or rounding stops the residual, lock the pair anyway: refine()
            // decides by fresh products.
            if ((stalled && j == 0) || basis_.spans_all() ||
                residual_[static_cast<std::size_t>(j)] <=
                    lock_margin * threshold(basis_.value(j))) {
                places.push_back(j);
            }
        }
        if (places.empty()) {
            return false;
        }
        basis_.lock(places, residual_);
        expect_progress();
        for (auto j = places.rbegin(); j != places.rend(); ++j) {
            if (*j < static_cast<int>(age_.size())) {
                age_.erase(age_.begin() + *j);
            }
        }
        return true;
    }

    /// True if k pairs are locked and no Ritz pair comes before the last wanted one.
    bool found_all() const {
        if (basis_.locked() < options_.k) {
            return false;
        }
        if (basis_.locked() == basis_.max_locked() || basis_.pairs() == 0) {
            return true;
        }
        const double last = last_wanted_key(basis_, options_.k);
        return basis_.order_key(0) >= last - threshold(basis_.value(0));
    }

    /// Called between two expansions.
    void save_if_asked() {
        if (!monitor_.take_save_request(must_stop())) {
            return;
        }
        SolverState<T> state;
        state.solver = "jd";
        state.numbers["verifying"] = {verifying_ ? 1.0 : 0.0};
        state.numbers["taken_in"] = {taken_in_ ? 1.0 : 0.0};
        state.numbers["refinements"] = {static_cast<double>(refinements_)};
        state.numbers["tolerance"] = {tol_};
        state.numbers["krylov_until"] = {static_cast<double>(krylov_until_)};
        state.numbers["inner_products"] = {static_cast<double>(inner_products_)};
        state.numbers["ages"] = {age_.begin(), age_.end()};
        basis_.save(state);
        problem_.checkpoint->save(ctx_, state);
    }

    void restore(const SavedState<T>& state) {
        state.require_solver("jd");
        verifying_ = state.flag("verifying");
        taken_in_ = state.flag("taken_in");
        refinements_ = state.count("refinements", max_pairs);
        tol_ = std::max(tol_, state.number("tolerance"));
        krylov_until_ = state.count("krylov_until", max_search_);
        inner_products_ = state.whole("inner_products", 0, most_count);
        constexpr double oldest = 1000;
        for (const double age : state.values("ages")) {
            age_.push_back(static_cast<int>(std::clamp(age, 0.0, oldest)));
        }
        resumed_ = true;
        basis_.restore(state);
        if (verifying_ && (basis_.locked() < options_.k || basis_.size() == 0)) {
            state.refuse("the state cannot resume the verification of " +
                         std::to_string(options_.k) + " pairs: it has " +
                         std::to_string(basis_.locked()) + " locked pairs and too small a basis");
        }
    }

    /// Searches until k pairs are locked and no Ritz pair comes before the last wanted one.
    SearchEnd search() {
        if (!std::exchange(resumed_, false)) {
            krylov_until_ = std::min(max_search_ - block_, least_width(block_));
            age_.clear();
        }
        while (true) {
            if (basis_.size() == 0) {
                basis_.start({}, block_);
                krylov_until_ = std::min(max_search_ - block_, least_width(block_));
            }
            form(block_);
            report("search");
            if (lock_converged()) {
                basis_.ritz();
                if (found_all()) {
                    return SearchEnd::found;
                }
                continue;
            }
            if (found_all()) {
                return SearchEnd::found;
            }
            save_if_asked();
            if (must_stop()) {
                return SearchEnd::stopped;
            }
            expand([&](int j) { return search_shift(j); });
        }
    }

    /// The shift of column j. For a target: the target while the residual exceeds the distance to
    /// it, then the Ritz value. For an end: the Ritz value, moved outwards by its estimated error
    /// unless there is a B.
    double search_shift(int j) const {
        const double theta = basis_.value(j);
        const double residual = residual_[static_cast<std::size_t>(j)];
        if (options_.which == Which::target) {
            return residual > std::abs(theta - options_.target) ? options_.target : theta;
        }
        if (problem_.b != nullptr) {
            return theta;
        }
        const double gap = j + 1 < basis_.pairs() ? std::abs(basis_.value(j + 1) - theta) : 0;
        const double error = gap > residual ? residual * residual / gap : residual;
        return options_.which == Which::smallest ? theta - error : theta + error;
    }

    /// Expands V by the block T of new directions.
    template <class Shift>
    void expand(Shift&& shift_of) {
        const int least = std::min(
            {least_width(block_), max_search_ - 2 * width_, basis_.size() - 1, basis_.pairs()});
        if (basis_.room() < width_ && !basis_.spans_all() &&
            max_search_ < dimensions_ - basis_.locked()) {
            basis_.restart(std::max(width_, least));
            krylov_until_ = 0;
        }
        const int width = std::min(width_, basis_.room());
        const BlockView<T> t = basis_.next(width);
        if (basis_.size() < krylov_until_ || problem_.inverse != nullptr) {
            correction_.residual_directions(t);
        } else {
            std::vector<double> shift;
            std::vector<double> tol;
            age_.resize(static_cast<std::size_t>(width), 0);
            for (int j = 0; j < width; ++j) {
                const auto at = static_cast<std::size_t>(j);
                shift.push_back(shift_of(j));
                // Do not solve more accurately than the tolerance in force needs.
                const double enough =
                    residual_[at] > 0 ? 0.1 * threshold(basis_.value(j)) / residual_[at] : 0.5;
                tol.push_back(std::clamp(std::ldexp(1.0, -++age_[at]), std::min(enough, 0.5), 0.5));
            }
            const int steps = options_.which == Which::target ? target_steps : end_steps;
            inner_products_ += correction_.solve(t, {shift, tol, steps});
        }
        const int before = basis_.size();
        try {
            basis_.expand(width);
        } catch (const NumericalError&) {
            correction_
                .rethrow_pending();  // prefer the preconditioner's own error if it produced NaN
            throw;
        }
        idle_ = basis_.size() > before ? 0 : idle_ + 1;
        if (idle_ > most_idle) {
            const std::string text = "Jacobi-Davidson: after " + std::to_string(products()) +
                                     " block products no new direction was found beside " +
                                     std::to_string(basis_.size()) + " searched and " +
                                     std::to_string(basis_.locked()) + " locked columns";
            // All ranks see the same sizes, so all of them throw.
            if (problem_.b != nullptr) {
                throw_indefinite(IndefiniteError::Operand::mass,
                                 text + ": B is singular or close to it");
            }
            throw_collective(ErrorKind::numerical, text);
        }
    }

    int wanted_above_tolerance() const {
        int above = 0;
        for (int j = 0; j < std::min(basis_.locked(), options_.k); ++j) {
            const auto at = static_cast<std::size_t>(j);
            above += basis_.locked_residuals()[at] > threshold(basis_.locked_values()[at]) ? 1 : 0;
        }
        return above;
    }

    /// Raises the tolerance to the largest fresh residual of the wanted pairs, if rounding can
    /// explain it.
    bool raise_tolerance() {
        double worst = 0;
        for (int j = 0; j < options_.k; ++j) {
            const auto at = static_cast<std::size_t>(j);
            worst = std::max(
                worst, basis_.locked_residuals()[at] / basis_.scale(basis_.locked_values()[at]));
        }
        if (worst > attainable_slack * attainable_tolerance<T>(0)) {
            return false;
        }
        tol_ = std::max(tol_, worst);
        return true;
    }

    /// Out of iterations: locks the best Ritz vectors, or random vectors if the basis has too few,
    /// in place of the missing pairs.
    void keep_best_unconverged() {
        while (basis_.locked() < options_.k) {
            const int missing = options_.k - basis_.locked();
            if (basis_.pairs() == 0) {
                basis_.start({}, std::min(2 * missing, basis_.room()));
                basis_.ritz();
            }
            std::vector<int> places(static_cast<std::size_t>(std::min(missing, basis_.pairs())));
            std::iota(places.begin(), places.end(), 0);
            basis_.lock(places, std::vector<double>(places.size(), 0));
        }
    }

    /// The shift of a verification, chosen so that no eigenvalue inside the wanted set is damped
    /// more than one outside.
    double verify_shift() const {
        const std::vector<double>& values = basis_.locked_values();
        return options_.which == Which::target ? options_.target
               : options_.which == Which::smallest
                   ? *std::min_element(values.begin(), values.end())
                   : *std::max_element(values.begin(), values.end());
    }

    /// Searches the complement of the k best locked pairs from fresh random columns.
    VerifyEnd verify() {
        const int width = verify_width(options_, block_);
        if (!std::exchange(resumed_, false)) {
            basis_.drop_beyond(options_.k);
            basis_.start({}, width);
            krylov_until_ = std::min(max_search_ - width, least_width(width));
            age_.clear();
            taken_in_ = false;
        }
        verifying_ = true;
        expect_progress();
        const double shift = verify_shift();
        while (basis_.size() > 0) {
            form(width);
            report("verify");
            const double theta = basis_.value(0);
            const double rho = residual_.front();
            const double last = last_wanted_key(basis_, options_.k);
            const double settled =
                stalled_at_rounding() || basis_.spans_all()
                    ? rho
                    : lock_margin * std::min(threshold(theta), attainable(theta));
            const ComplementVerdict verdict = judge_complement(
                last, basis_.key(theta), rho, threshold(theta), settled, dimensions_);
            if (verdict == ComplementVerdict::outside || verdict == ComplementVerdict::tied) {
                cluster_cut_ = verdict == ComplementVerdict::tied;
                break;
            }
            if (verdict == ComplementVerdict::inside) {
                taken_in_ = true;
                basis_.lock({0}, residual_);
                age_.clear();
                expect_progress();
                if (basis_.locked() == basis_.max_locked()) {
                    break;
                }
                continue;
            }
            save_if_asked();
            if (must_stop()) {
                return VerifyEnd::stopped;
            }
            expand([&](int j) { return j == 0 ? search_shift(j) : shift; });
        }
        verifying_ = false;
        return taken_in_ ? VerifyEnd::taken_in : VerifyEnd::nothing_inside;
    }

    void fill_in(EigenResult<T>& result) {
        if (!basis_.refined()) {
            basis_.refine();
        }
        const int count = std::min(basis_.locked(), options_.k);
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        const std::vector<double>& values = basis_.locked_values();
        std::sort(order.begin(), order.end(), [&](int i, int j) {
            return values[static_cast<std::size_t>(i)] < values[static_cast<std::size_t>(j)];
        });
        ctx_.comm().agree(
            [&] { result.vectors = BlockVector<T>(ctx_, problem_.a.row_map(), count); });
        basis_.extract(order, result.vectors.view());
        bool within = count == options_.k;
        result.norm_estimate = basis_.norm();
        for (const int j : order) {
            const auto at = static_cast<std::size_t>(j);
            result.eigenvalues.push_back(values[at]);
            result.residuals.push_back(basis_.locked_residuals()[at]);
            result.norm_estimate = std::max(result.norm_estimate, basis_.scale(values[at]));
            within = within && result.residuals.back() <= threshold(values[at]);
        }
        result.tolerance = tol_;
        result.tolerance_raised = tol_ > options_.tol;
        result.converged = within && result.multiplicity == Multiplicity::verified;
        result.cluster_cut = cluster_cut_;
        result.iterations = products();
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
    int max_locked_;
    JadaBasis<T> basis_;
    JadaCorrection<T> correction_;
    /// width_: columns of X; residual_: their residuals; age_: how many steps each has been in the
    /// block.
    int width_ = 0;
    std::vector<double> residual_;
    std::vector<int> age_;
    double best_residual_ = std::numeric_limits<double>::infinity();
    int stalled_ = 0;
    int idle_ = 0;  // expansions in a row without a new direction
    /// Until the basis has this many columns, steps use the residuals as directions.
    int krylov_until_ = 0;
    std::int64_t inner_products_ = 0;
    std::string last_residual_;
    bool cluster_cut_ = false;
    int refinements_ = 0;
    /// verifying_: the complement is being searched; taken_in_: that search has found a wanted
    /// pair; resumed_: the current stage resumes from a state.
    bool verifying_ = false;
    bool taken_in_ = false;
    bool resumed_ = false;
};

}  // namespace

template <class T>
EigenResult<T> jacobi_davidson(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options) {
    return audited_solve<T>(ctx, problem,
                            [&] { return JacobiDavidson<T>(ctx, problem, options).run(); });
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> jacobi_davidson(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
