// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/jacobi_davidson.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/jacobi_davidson/jada_basis.hpp"
#include "solvers/eigen/jacobi_davidson/jada_correction.hpp"
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"
#include "solvers/eigen/pencil/balanced_pencil.hpp"
#include "solvers/eigen/search/verified_search.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// Maximal number of successive expansions that add no direction; without this limit such a search
/// would never end.
constexpr int most_idle = 20;
/// After this many steps without progress a residual that rounding explains is accepted.
constexpr int patience = 12;
/// Maximal number of steps in a correction equation, for an end and for a target:
/// indefinite systems need more steps before a solution is useful.
constexpr int end_steps = 20;
constexpr int target_steps = 60;
/// After so many steps the estimated residual of the pair may end a column. For a target, shorter
/// solves improve V too little (docs/notes/solvers.md has the measurements).
constexpr int end_free_steps = 3;
constexpr int target_free_steps = 20;

/// Fresh columns that start a verification; for a target they must find eigenvalues on both sides.
int verify_width(const EigenOptions& options, int block) {
    return std::max(block, options.which == Which::target ? 8 : 2);
}

/// The smallest number of Ritz vectors that a restart keeps.
int least_width(int block) {
    return 16 + block;
}
/// The maximal number of columns of V.
int davidson_width(const EigenOptions& options, int block, std::int64_t rows) {
    const int width =
        options.max_basis > 0 ? options.max_basis : least_width(block) + std::max(20, 6 * block);
    return static_cast<int>(std::min<std::int64_t>(rows, width));
}

template <class T>
class JacobiDavidson : public VerifiedSearch<T> {
  public:
    JacobiDavidson(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : VerifiedSearch<T>(ctx, problem, options, {Method::jacobi_davidson, "block products"}),
          k_(options.k),
          which_(options.which),
          block_(step_width(options)),
          verify_width_(verify_width(options, block_)),
          max_search_(davidson_width(options, verify_width_, this->dimensions())),
          max_locked_(
              static_cast<int>(std::min<std::int64_t>(this->dimensions(), k_ + 2 * verify_width_))),
          basis_(ctx, problem, options, max_search_, max_locked_),
          correction_(ctx, basis_, problem, options, problem.constraints.cols + max_locked_,
                      verify_width_) {}

  private:
    void begin() override { basis_.start(this->problem().start, block_); }
    void begin_search() override { expand_by_residuals(block_); }

    /// The next expansions use residuals as directions, until the basis has the least width.
    void expand_by_residuals(int width) {
        krylov_until_ = std::min(max_search_ - width, least_width(width));
        age_.clear();
    }

    /// Forms the first Ritz pairs, up to `width` of them, and their residuals.
    void form(int width) {
        basis_.ritz();
        width_ = std::min(width, basis_.pairs());
        residual_ =
            basis_.form(correction_.x(width_), correction_.bx(width_), correction_.r(width_));
    }

    void report_first(const char* stage) {
        const double scale = basis_.scale(width_ > 0 ? basis_.value(0) : 0);
        const double residual = width_ > 0 && scale > 0 ? residual_.front() / scale : 0;
        char text[96];
        std::snprintf(text, sizeof(text), "the residual of pair %d is at %.1e %s",
                      basis_.locked() + 1, residual,
                      this->problem().b != nullptr ? "(||A|| + |lambda| ||B||)" : "||A||");
        last_residual_ = text;
        this->report(std::min(k_, basis_.locked()), residual, stage);
    }

    /// Resets the detection of stagnation.
    void expect_progress() {
        stalled_ = 0;
        best_residual_ = std::numeric_limits<double>::infinity();
    }

    /// True if the first residual has stopped falling and rounding can explain it.
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
               residual_.front() <= attainable_slack * this->attainable(basis_.value(0));
    }

    /// Locks the converged pairs of the block; false if there are none.
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
                    lock_margin * this->threshold(basis_.value(j))) {
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
        if (basis_.locked() < k_) {
            return false;
        }
        if (basis_.locked() == basis_.max_locked() || basis_.pairs() == 0) {
            return true;
        }
        const double last = last_wanted_key(basis_, k_);
        return basis_.order_key(0) >= last - this->threshold(basis_.value(0));
    }

    void visit_numbers(const StateVisit<T>& visit) override {
        visit("krylov_until", krylov_until_);
        visit("inner_products", inner_products_);
    }
    void save(SolverState<T>& state) override {
        state.numbers["ages"] = {age_.begin(), age_.end()};
        basis_.save(state);
    }
    void restore(const SavedState<T>& state) override {
        krylov_until_ = std::min(krylov_until_, max_search_);
        constexpr double oldest = 1000;
        for (const double age : state.values("ages")) {
            age_.push_back(static_cast<int>(std::clamp(age, 0.0, oldest)));
        }
        basis_.restore(state);
        if (this->is_verifying() && basis_.size() == 0) {
            state.refuse("the state has no basis from which to resume the verification");
        }
        if (this->is_verifying() && basis_.locked() > 0) {
            shift_ = complement_shift();
        }
    }

    /// Locks converged pairs until none is left; true if found_all().
    bool found() override {
        while (true) {
            if (basis_.size() == 0) {
                basis_.start({}, block_);
                krylov_until_ = std::min(max_search_ - block_, least_width(block_));
            }
            form(block_);
            report_first("search");
            if (!lock_converged()) {
                return found_all();
            }
            basis_.ritz();
            if (found_all()) {
                return true;
            }
        }
    }

    void extend() override {
        expand([&](int j) { return search_shift(j); });
    }

    /// The shift of column j. For a target: the target while the residual exceeds the distance to
    /// it, then the Ritz value. For an end: the Ritz value, moved outwards by its estimated error
    /// unless there is a B.
    double search_shift(int j) const {
        const double theta = basis_.value(j);
        const double residual = residual_[static_cast<std::size_t>(j)];
        if (which_ == Which::target) {
            return residual > std::abs(theta - this->options().target) ? this->options().target
                                                                       : theta;
        }
        if (this->problem().b != nullptr) {
            return theta;
        }
        const double gap = j + 1 < basis_.pairs() ? std::abs(basis_.value(j + 1) - theta) : 0;
        const double error = gap > residual ? residual * residual / gap : residual;
        return which_ == Which::smallest ? theta - error : theta + error;
    }

    /// Expands V by the block T of new directions.
    template <class Shift>
    void expand(Shift&& shift_of) {
        const int least = std::min(
            {least_width(block_), max_search_ - 2 * width_, basis_.size() - 1, basis_.pairs()});
        if (basis_.room() < width_ && !basis_.spans_all() &&
            max_search_ < this->dimensions() - basis_.locked()) {
            basis_.restart(std::max(width_, least));
            krylov_until_ = 0;
        }
        const int width = std::min(width_, basis_.room());
        const BlockView<T> t = basis_.next(width);
        if (basis_.size() < krylov_until_ || this->problem().inverse != nullptr) {
            correction_.residual_directions(t);
        } else {
            CorrectionTarget target;
            age_.resize(static_cast<std::size_t>(width), 0);
            for (int j = 0; j < width; ++j) {
                const auto at = static_cast<std::size_t>(j);
                const double theta = basis_.value(j);
                target.columns.push_back(
                    {theta, shift_of(j), lock_margin * this->threshold(theta)});
                // Do not solve more accurately than the tolerance in force needs.
                const double enough =
                    residual_[at] > 0 ? 0.1 * this->threshold(theta) / residual_[at] : 0.5;
                target.tol.push_back(
                    std::clamp(std::ldexp(1.0, -++age_[at]), std::min(enough, 0.5), 0.5));
            }
            target.steps = which_ == Which::target ? target_steps : end_steps;
            target.free_steps = which_ == Which::target ? target_free_steps : end_free_steps;
            inner_products_ += correction_.solve(t, std::move(target));
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
            const std::string text = "Jacobi-Davidson: after " + std::to_string(iterations()) +
                                     " block products no new direction was found beside " +
                                     std::to_string(basis_.size()) + " searched and " +
                                     std::to_string(basis_.locked()) + " locked columns";
            // All ranks see the same sizes, so all of them throw.
            if (this->problem().b != nullptr) {
                throw_indefinite(IndefiniteError::Operand::mass,
                                 text + ": B is singular or close to it");
            }
            throw_collective(ErrorKind::numerical, text);
        }
    }

    /// Replaces the missing pairs: locks the best Ritz vectors, or random vectors if the basis has
    /// too few.
    int give_up() override {
        const int converged = std::min(basis_.locked(), k_);
        while (basis_.locked() < k_) {
            const int missing = k_ - basis_.locked();
            if (basis_.pairs() == 0) {
                basis_.start({}, std::min(2 * missing, basis_.room()));
                basis_.ritz();
            }
            std::vector<int> places(static_cast<std::size_t>(std::min(missing, basis_.pairs())));
            std::iota(places.begin(), places.end(), 0);
            basis_.lock(places, std::vector<double>(places.size(), 0));
        }
        return converged;
    }

    std::vector<RitzPair> pairs() override { return basis_.locked_pairs(); }
    void extract(const std::vector<int>& order, BlockView<T> y) override {
        basis_.extract(order, y);
    }
    void refine_pairs() override { basis_.refine(); }
    bool search_again() override {
        basis_.drop_beyond(k_);
        basis_.search_again_above(this->tolerance());
        return true;
    }
    void finish() override {
        if (!basis_.refined()) {
            basis_.refine();
        }
    }

    /// The shift of a verification. With this shift a correction damps no component inside the
    /// wanted set more strongly than a component outside it.
    double complement_shift() const {
        const std::vector<double>& values = basis_.locked_values();
        return which_ == Which::target     ? this->options().target
               : which_ == Which::smallest ? *std::min_element(values.begin(), values.end())
                                           : *std::max_element(values.begin(), values.end());
    }

    void begin_complement() override {
        basis_.drop_beyond(k_);
        basis_.start({}, verify_width_);
        expand_by_residuals(verify_width_);
        expect_progress();
        shift_ = complement_shift();
    }

    ComplementVerdict complement() override {
        while (basis_.size() > 0) {
            form(verify_width_);
            report_first("verify");
            const double theta = basis_.value(0);
            // A residual of r moves an eigenvalue by up to r ||B^-1||.
            const double unit = std::min(1.0, static_cast<double>(basis_.inner().norm));
            const double rho = residual_.front() / unit;
            const double last = last_wanted_key(basis_, k_);
            const double settled =
                stalled_at_rounding() || basis_.spans_all() ? rho : this->settled(theta) / unit;
            const ComplementVerdict verdict =
                judge_complement(last, basis_.key(theta), rho, this->threshold(theta) / unit,
                                 settled, this->dimensions());
            if (verdict != ComplementVerdict::inside) {
                this->note_next(last, basis_.key(theta), rho);
                return verdict;
            }
            this->absorb();
            basis_.lock({0}, residual_);
            age_.clear();
            expect_progress();
            if (basis_.locked() == basis_.max_locked()) {
                return verdict;
            }
        }
        return ComplementVerdict::outside;
    }

    void extend_complement() override {
        expand([&](int j) { return j == 0 ? search_shift(j) : shift_; });
    }

    std::int64_t iterations() const override { return inner_products_ + basis_.products(); }
    double norm() const override { return basis_.norm(); }
    double scale(double value) const override { return basis_.scale(value); }
    std::string standing() const override { return "; " + last_residual_; }
    void describe(EigenResult<T>& result) const override {
        result.operator_applications = basis_.applications();
        result.block = block_;
        result.basis = max_search_;
    }

    int k_;
    Which which_;
    int block_;
    int verify_width_;
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
    int idle_ = 0;  // successive expansions without a new direction
    /// Until the basis has this many columns, steps use the residuals as directions.
    int krylov_until_ = 0;
    std::int64_t inner_products_ = 0;
    /// The shift of the complement's columns after the first.
    double shift_ = 0;
    std::string last_residual_;
};

}  // namespace

template <class T>
EigenResult<T> jacobi_davidson(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options) {
    const auto solve = [](Context& on, const EigenProblem<T>& given, const EigenOptions& chosen) {
        if (given.b != nullptr) {
            // The basis, whose vectors have positive lengths, would not see the eigenvalues of a
            // negative direction of B.
            bounds_of_mass(on, *given.b, chosen.seed, "Jacobi-Davidson");
        }
        return verified_search<JacobiDavidson>(on, given, chosen);
    };
    // Checksums belong to the matrix in the units of the problem.
    return problem.b == nullptr || problem.protection != nullptr
               ? solve(ctx, problem, options)
               : solve_balanced<T>(ctx, problem, options, Method::jacobi_davidson, solve);
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> jacobi_davidson(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
