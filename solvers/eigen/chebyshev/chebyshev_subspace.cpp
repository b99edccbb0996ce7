// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/chebyshev_subspace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"
#include "solvers/eigen/chebyshev/ritz_block.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/lanczos/short_lanczos.hpp"
#include "solvers/eigen/pencil/reduced_pencil.hpp"
#include "solvers/eigen/search/verification.hpp"
#include "solvers/eigen/search/verified_search.hpp"

namespace quiver {
namespace {

/// Steps of the Lanczos run that finds the bounds.
constexpr int bound_steps = 20;
constexpr int most_degree = 400;
constexpr int least_degree = 6;
/// The first filter follows the Lanczos run: its maximal degree, and the index of the Ritz value
/// from which it damps.
constexpr int most_first_degree = 24;
constexpr int first_ritz_value = 2;
/// The degree of one piece of a verification filter is at most the number of block products so far,
/// clamped to these bounds.
constexpr std::int64_t least_patience = 100;
constexpr std::int64_t most_patience = 4000;
/// Maximal number of pieces of a verification filter.
constexpr int max_pieces = 8;
/// Maximal number of sweeps for the guard vectors between two attempts to verify.
constexpr int max_polishes = 4;
/// Growth limit of the first sweeps.
constexpr double first_growth = 1e3;
/// Residuals up to this many times the spread of the Ritz values are normal; larger ones indicate
/// that copies of one eigenvalue fill the subspace.
constexpr double clustered = 4;
/// Number of fresh columns of a verification, and the length below which filtered columns show that
/// nothing is missing.
constexpr int fresh_columns = 8;
constexpr double short_column = 0.05;
/// Block Lanczos tries to verify if the number of failed attempts is a multiple of this one and
/// copies of one eigenvalue made the last attempt fail. The next two constants are its number of
/// columns and its step limit.
constexpr int attempts_among_copies = 12;
constexpr int lanczos_columns = 4;
constexpr std::int64_t lanczos_steps = 500;
/// Failed attempts beyond this number do not increase the growth further, so that it stays finite.
constexpr int most_growing_attempts = 250;
/// If this many sweeps in a row do not halve the residual of the slowest pair, it stagnates.
constexpr int stagnant_sweeps = 3;

/// Columns of the subspace: the wanted pairs and guard vectors.
int subspace_width(const EigenOptions& options, std::int64_t rows) {
    const int wanted = options.max_basis > 0
                           ? options.max_basis
                           : options.k + std::clamp(options.k, 6, 12 + options.k / 8);
    return 2 * std::int64_t{wanted} >= rows ? static_cast<int>(rows) : wanted;
}

template <class T>
class ChebyshevSubspace : public VerifiedSearch<T> {
  public:
    ChebyshevSubspace(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : VerifiedSearch<T>(ctx, problem, options, {Method::chebyshev, "block products"}),
          k_(options.k),
          width_(subspace_width(options, this->dimensions())),
          block_(ctx, problem, options.which, options.seed,
                 {k_ + fresh_columns, width_ + 2 * fresh_columns, fresh_columns}),
          filter_(ctx, block_.a(), block_.constraints(),
                  std::min(width_ + fresh_columns,
                           options.block > 0 ? options.block : default_panel<T>(ctx.place()))) {}

  private:
    /// True if locked and active pairs span the whole space.
    bool whole_space() const { return block_.locked() + block_.active() >= this->dimensions(); }
    /// The filter interval that damps from key `from` to the far end and is 1 at key `one`.
    ChebyshevInterval interval(double from, double one) const {
        const double least = 64 * this->eps() * block_.norm();
        const double to = std::max(bound_, from + least);
        return this->options().which == Which::smallest ? ChebyshevInterval{from, to, one}
                                                        : ChebyshevInterval{-to, -from, -one};
    }
    double value(double key) const { return this->options().which == Which::smallest ? key : -key; }

    void begin() override {
        find_bounds();
        block_.start(this->problem().start, width_);
        if (!whole_space() && block_.norm() > 0) {
            first_sweep();
        } else {
            rayleigh_ritz("search");
        }
    }

    void visit_numbers(const StateVisit<T>& visit) override {
        visit("bound", bound_);
        visit("reach", reach_);
        visit("worst_before", worst_before_);
        visit.optional("failed_attempts", failed_attempts_);
        visit("iterations", iterations_);
        visit("applications_before", applications_before_);
        visit("locked_before", locked_before_);
        visit("stagnant", stagnant_);
        visit("polishes", polishes_);
        visit("tied", tied_);
        double depth = this->cut_depth();
        visit.optional("cut_depth", depth);
        this->set_cut_depth(depth);
    }
    void save(SolverState<T>& state) override { block_.save(state); }
    void restore(const SavedState<T>& state) override {
        block_.restore(state);
        if (block_.active() + block_.locked() < std::min<std::int64_t>(k_, this->dimensions())) {
            state.refuse("the state has fewer columns than wanted pairs");
        }
        if (this->is_verifying() && block_.locked() < k_) {
            state.refuse("the state cannot resume a verification: it has " +
                         std::to_string(block_.locked()) + " locked pairs");
        }
    }

    /// Estimates the far end of the spectrum, ||A||, and the interval of the first filter.
    void find_bounds() {
        const int steps = static_cast<int>(std::min<std::int64_t>(this->dimensions(), bound_steps));
        const ShortLanczos run = short_lanczos<T>(
            this->ctx(), this->problem().a, block_.constraints(), steps, this->options().seed);
        iterations_ = applications_before_ = run.products;
        if (!run.complete) {
            find_bounds_carefully(steps);
            return;
        }
        const auto count = static_cast<int>(run.values.size());
        // Index of Ritz value j, counted from the wanted end.
        const auto at = [&](int j) {
            return static_cast<std::size_t>(
                this->options().which == Which::smallest ? j : count - 1 - j);
        };
        const auto key = [&](int j) { return value(run.values[at(j)]); };
        bound_ = key(count - 1) + std::min(run.coupling, 2 * run.residuals[at(count - 1)]);
        block_.raise_norm(run.norm);
        first_one_ = key(0);
        first_low_ = key(std::min(first_ritz_value, count - 1));
    }

    /// The same with a fully orthogonalised basis, which works for every spectrum.
    void find_bounds_carefully(int steps) {
        LanczosBasis<T> basis(this->ctx(), this->problem(), this->options().which,
                              this->options().seed, steps, 1, 1);
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

    /// Limit for the growth of the fastest active column relative to the damped ones in one sweep.
    /// Locked pairs may grow by 1 / eps, because the block is orthogonal to them up to rounding.
    double growth_limit() const { return 1 / std::sqrt(this->eps()); }

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
        const int converged = block_.converged_prefix(this->lockable());
        const bool any = converged < block_.active() && block_.norm() > 0;
        this->report(std::min(k_, block_.locked() + converged),
                     any ? block_.residual(converged) / block_.norm() : 0, stage);
    }

    /// The key from which to damp: usually the last Ritz value. That value is useless if the whole
    /// block is close to one eigenvalue with many copies: with a component phi of eigenvectors at
    /// distance D, the Ritz values spread by only phi^2 D while the residuals are phi D.
    double damp_from() const {
        const int last = block_.active() - 1;
        const double spread = block_.key(last) - block_.key(0);
        const double rho = block_.residual(last);
        if (spread <= this->threshold()) {
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
                               range.degree_for(value(lowest), 1 / this->eps(), most_degree)});
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
        return stagnant_ >= stagnant_sweeps && worst <= attainable_slack * this->attainable();
    }

    bool found() override {
        targets_ = k_ - block_.locked();
        if (targets_ > 0) {
            const int lock = std::min(block_.converged_prefix(this->lockable()), targets_);
            block_.lock(lock);
            targets_ -= lock;
        }
        return targets_ <= 0;
    }

    /// Makes a sweep for the missing pairs, or raises the tolerance if they stagnate.
    void extend() override {
        if (stagnates(targets_)) {
            this->accept(worst_residual(targets_));
        } else {
            sweep(targets_, this->lockable(), "search");
        }
    }

    int give_up() override { return block_.locked(); }

    /// Active pairs take the places of those that are missing.
    std::vector<RitzPair> pairs() override {
        return block_.pairs(std::clamp(k_ - block_.locked(), 0, block_.active()));
    }
    void extract(const std::vector<int>& order, BlockView<T> y) override {
        block_.extract(order, y);
    }
    void refine_pairs() override {
        if (!block_.refined()) {
            block_.refine(iterations_);
            ++iterations_;
        }
    }
    bool search_again() override {
        release();
        return true;
    }
    /// Pairs above the tolerance, and those beyond the k-th, become active.
    void release() {
        block_.release(this->threshold(), k_);
        rayleigh_ritz("search");
    }

    void begin_complement() override {
        if (block_.locked() > k_) {
            release();
        }
        verdict_ = ComplementVerdict::open;
    }
    ComplementVerdict complement() override { return verdict_; }
    /// One attempt to show that the complement of the k locked pairs holds no wanted eigenvalue. A
    /// wanted pair found instead is locked, or its columns join the active block.
    void extend_complement() override {
        const auto outside = [&] {
            return tied_ ? ComplementVerdict::tied : ComplementVerdict::outside;
        };
        const double last = block_.locked_key(k_ - 1);
        if (block_.active() == 0) {
            tied_ = false;
            verdict_ = outside();
            return;
        }
        const double gap = block_.key(0) - last;
        const double rho = block_.residual(0);
        const double resolution = this->threshold() + rho;
        const bool settled = rho <= this->lockable() || stagnates(1);
        double cut = 0;
        if (gap > 2 * resolution && rho <= gap / 8) {
            tied_ = false;
            cut = last + gap / 2;
        } else if (settled && gap < -resolution) {
            block_.lock(1);
            verdict_ = ComplementVerdict::inside;
            return;
        } else if (settled) {
            tied_ = std::abs(gap) <= resolution;
            this->note_next(last, block_.key(0), rho);
            cut = last - 2 * std::sqrt(2.0 * columns()) * std::max(this->threshold(), rho);
        } else {
            sweep(1, std::max(this->lockable(), std::abs(gap) / 10), "verify");
            return;
        }
        if (whole_space() || block_.norm() == 0 || fresh_columns_vanish(cut)) {
            verdict_ = outside();
        } else if (hands_over_) {
            verdict_ = ComplementVerdict::inside;  // undecided: verify_elsewhere() follows
        }
    }

    /// Many copies of one eigenvalue fill the fresh columns, and no filter shortens them.
    /// The bound of what they hide then has rounding errors of eps sqrt(rows), against a resolution
    /// of some hundred eps for a tolerance of some eps. Block Lanczos needs no such bound. If it
    /// does not converge in a few steps either, this search continues.
    std::optional<EigenResult<T>> verify_elsewhere() override {
        if (!std::exchange(hands_over_, false)) {
            return std::nullopt;
        }
        EigenOptions options = this->options();
        options.block = lanczos_columns;
        options.max_basis = 0;
        const std::int64_t left = options.max_iterations - iterations_;
        options.max_iterations = options.max_iterations > 0
                                     ? std::clamp<std::int64_t>(left, 1, lanczos_steps)
                                     : lanczos_steps;
        options.max_seconds =
            remaining_seconds(this->ctx().comm(), options, this->monitor().seconds());
        BlockVector<T> candidates;
        this->ctx().comm().agree([&] {
            candidates = BlockVector<T>(this->ctx(), this->problem().a.row_map(), block_.locked());
        });
        std::vector<int> all(static_cast<std::size_t>(block_.locked()));
        std::iota(all.begin(), all.end(), 0);
        block_.extract(all, candidates.view());
        EigenProblem<T> problem = this->problem();
        problem.checkpoint = nullptr;  // the last state resumes before this short search
        EigenResult<T> result = verify_pairs<T>(this->ctx(), problem, options,
                                                std::as_const(candidates).view(), norm());
        iterations_ += result.iterations;
        applications_before_ += result.operator_applications;
        if (!result.converged && !result.interrupted) {
            return std::nullopt;
        }
        tied_ = result.cluster_cut;
        this->set_cut_depth(result.cut_depth);
        describe(result);
        result.method = Method::chebyshev;
        result.iterations = iterations_;
        result.seconds = this->monitor().seconds();
        return result;
    }

    int columns() const { return block_.locked() + block_.active(); }

    /// Filters fresh columns with p(cut) = 1; returns true if they show that nothing is missing.
    bool fresh_columns_vanish(double cut) {
        // Deflate the guard vectors whose component along eigenvectors below the cut is at most 1 /
        // sqrt(2 columns).
        int deflating = 0;
        while (deflating < block_.active() &&
               block_.residual(deflating) * std::sqrt(2.0 * columns()) <=
                   block_.key(deflating) - cut) {
            ++deflating;
        }
        const double next = block_.key(std::min(deflating, block_.active() - 1));
        const bool all_tied = next - block_.key(0) <= this->threshold();
        const ChebyshevInterval range = interval(all_tied ? next + reach_ : next, cut);
        const double length =
            std::sqrt(static_cast<double>(this->dimensions()) * (is_complex_v<T> ? 2 : 1) / 3);
        const double growth = 2 * length / short_column *
                              std::pow(10.0, std::min(failed_attempts_, most_growing_attempts));
        const int patience =
            static_cast<int>(std::clamp<std::int64_t>(iterations_, least_patience, most_patience));
        // Split the filter into pieces of such low degree that no locked pair grows out of the
        // rounding noise.
        const int most = range.degree_for(value(block_.locked_key(0)), growth_limit(), patience);
        int pieces = 1;
        int degree = range.degree_for(value(cut), growth, patience);
        if (degree == patience && deflating < block_.active() && polishes_ < max_polishes) {
            ++polishes_;  // guard vectors close to the cut: let them converge first
            sweep(deflating + 1, this->lockable(), "verify");
            return false;
        }
        polishes_ = 0;
        while (degree > most && pieces < max_pieces) {
            ++pieces;
            degree = range.degree_for(value(cut), std::pow(growth, 1.0 / pieces), patience);
        }
        degree = std::min(degree, most);
        const int fresh = static_cast<int>(std::min<std::int64_t>(
            fresh_columns, this->dimensions() - block_.locked() - deflating));
        const BlockView<T> y = block_.make_fresh(fresh, deflating);
        std::vector<double> lengths;
        for (int piece = 0; piece < pieces; ++piece) {
            filter(y, range, degree);
            lengths = block_.fresh_lengths(y, iterations_);
        }
        if (*std::max_element(lengths.begin(), lengths.end()) <= short_column) {
            return true;
        }
        ++failed_attempts_;
        block_.append(y);
        rayleigh_ritz("verify");
        if (block_.hidden_length(y, cut) <= short_column) {
            return true;
        }
        // First let all pairs converge that may be wanted, at least further copies of the last
        // wanted eigenvalue.
        int targets = 1;
        while (targets < block_.active() &&
               block_.key(targets) <= block_.locked_key(k_ - 1) + this->threshold()) {
            ++targets;
        }
        sweep(targets, this->lockable(), "verify");
        hands_over_ = all_tied && failed_attempts_ % attempts_among_copies == 0;
        return false;
    }

    std::int64_t iterations() const override { return iterations_; }
    double norm() const override { return block_.norm(); }
    void describe(EigenResult<T>& result) const override {
        result.cluster_cut = tied_;
        result.cut_depth = tied_ ? this->cut_depth() : 0;
        result.operator_applications = applications_before_ + block_.applications();
        result.block = filter_.width();
        result.basis = width_;
    }

    int k_;
    int width_;
    RitzBlock<T> block_;
    ChebyshevFilter<T> filter_;

    /// Three keys: the far end of the spectrum, the key at which the first filter is 1, and the key
    /// from which it damps.
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
    int polishes_ = 0;
    /// Failed attempts of a verification: each makes the next one require ten times the growth.
    int failed_attempts_ = 0;
    bool tied_ = false;
    bool hands_over_ = false;
    ComplementVerdict verdict_ = ComplementVerdict::open;
    /// Wanted pairs that are not locked.
    int targets_ = 0;
};

}  // namespace

template <class T>
EigenResult<T> chebyshev_subspace(Context& ctx, const EigenProblem<T>& problem,
                                  const EigenOptions& options) {
    if (problem.b != nullptr) {
        return solve_reduced<T>(ctx, problem, options, Method::chebyshev, chebyshev_subspace<T>);
    }
    return verified_search<ChebyshevSubspace>(ctx, problem, options);
}

#define QUIVER_INSTANTIATE(T)                                                    \
    template EigenResult<T> chebyshev_subspace(Context&, const EigenProblem<T>&, \
                                               const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
