// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/block_lanczos.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/lanczos/lanczos_basis.hpp"
#include "solvers/eigen/pencil/reduced_pencil.hpp"
#include "solvers/eigen/search/verified_search.hpp"

namespace quiver {
namespace {

/// In spaces of up to this many dimensions the default basis may span the whole space.
constexpr std::int64_t small_rows = 512;

/// Columns of the search space: the requested number, or max(2 k + 4 block, k + 16 block, 24), or
/// all dimensions of a small space; at least least_basis().
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

/// Candidates for the wanted pairs from another solver, and its estimate of ||A||.
template <class T>
struct Candidates {
    BlockView<const T> x = {};
    double norm = 0;
};

template <class T>
class BlockLanczos : public VerifiedSearch<T> {
  public:
    BlockLanczos(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                 const Candidates<T>& candidates = {})
        : VerifiedSearch<T>(ctx, problem, options, {Method::lanczos, "block steps"}),
          k_(options.k),
          block_(step_width(options)),
          max_search_(search_width(options, block_, this->dimensions())),
          basis_(ctx, problem, options.which, options.seed, max_search_,
                 static_cast<int>(std::min<std::int64_t>(
                     this->dimensions(), std::max(k_ + 2 * verify_width(), candidates.x.cols))),
                 verify_width()) {
        if (candidates.x.cols > 0) {
            basis_.lock(candidates.x);
            basis_.raise_norm(candidates.norm);
        }
    }

  private:
    int verify_width() const { return std::max(block_, 2); }
    int converged_prefix() const { return basis_.converged_prefix(this->lockable()); }

    void begin() override {
        if (this->problem().start.cols > 0 && basis_.locked() == 0) {
            basis_.start_from(this->problem().start, block_);
        }
    }

    bool found() override { return basis_.locked() >= k_; }

    /// A block step; at times Ritz pairs, and a restart if the wanted pairs have converged or the
    /// basis is full.
    void extend() override {
        if (basis_.next_width() == 0) {
            const bool is_first = basis_.locked() == 0;
            basis_.start(block_);
            start_columns_ = is_first ? basis_.next_width() : 0;
        }
        basis_.step();
        const int wanted = k_ - basis_.locked();
        if (!basis_.full() && !(basis_.size() >= wanted && basis_.ritz_due())) {
            return;
        }
        form_pairs("search");
        const int lock = std::min(converged_prefix(), wanted);
        if (lock == wanted && awaits_proof()) {
            if (basis_.full()) {
                basis_.restart(0, wanted);
            }
        } else if (lock == wanted || basis_.full()) {
            basis_.restart(lock, wanted - lock);
        }
    }

    /// Called when all wanted pairs have converged: proves, if possible, that the search itself has
    /// seen every copy. True if the search should continue for this proof, which costs less than a
    /// search of the complement.
    bool awaits_proof() {
        const int wanted = k_ - basis_.locked();
        if (start_columns_ < least_free_columns || basis_.size() <= wanted) {
            return false;
        }
        if (waits_from_ == 0) {
            waits_from_ = basis_.steps();
        }
        std::vector<double> keys;
        std::vector<double> residuals;
        const auto add = [&](double value, double residual) {
            keys.push_back(basis_.key(value));
            residuals.push_back(residual);
        };
        for (const RitzPair& pair : basis_.locked_pairs()) {
            add(pair.value, pair.residual);
        }
        for (int j = 0; j < wanted; ++j) {
            add(basis_.ritz_value(j), basis_.ritz_residual(j));
        }
        const double last = *std::max_element(keys.begin(), keys.end());
        const double next = basis_.key(basis_.ritz_value(wanted));
        const double noise = this->settled(basis_.ritz_value(wanted));
        const double rho = std::max(basis_.ritz_residual(wanted), noise);
        const double growth =
            next > last ? missing_growth(keys, residuals, next, start_columns_) : 0;
        const auto verdict = [&](double residual) {
            return growth > 0 && residual / growth < next - last
                       ? judge_complement(last, next, residual / growth, this->threshold(), 0,
                                          this->dimensions())
                       : ComplementVerdict::open;
        };
        proven_ = verdict(rho) == ComplementVerdict::outside;
        next_key_ = next;
        return !proven_ && basis_.steps() < 2 * waits_from_ &&
               verdict(2 * noise) == ComplementVerdict::outside;
    }

    void form_pairs(const char* stage) {
        basis_.ritz();
        const int converged = converged_prefix();
        const int next = std::min(basis_.size() - 1, converged);
        this->report(std::min(k_, basis_.locked() + converged),
                     norm() > 0 ? basis_.ritz_residual(next) / norm() : 0, stage);
    }

    int give_up() override {
        const int converged = std::min(basis_.locked(), k_);
        if (basis_.size() > 0) {
            basis_.ritz();
            basis_.restart(std::min(basis_.size(), k_ - basis_.locked()), 0);
        }
        return converged;
    }

    std::vector<RitzPair> pairs() override { return basis_.locked_pairs(); }
    void extract(const std::vector<int>& order, BlockView<T> y) override {
        basis_.extract(order, y);
    }
    void refine_pairs() override { basis_.refine(); }
    bool search_again() override {
        start_columns_ = 0;
        proven_ = false;
        basis_.drop_beyond(k_);
        basis_.search_again_above(this->threshold());
        return true;
    }
    void finish() override {
        if (!basis_.refined()) {
            basis_.refine();
        }
    }

    void begin_complement() override {
        basis_.drop_beyond(k_);
        if (std::exchange(proven_, false) &&
            next_key_ > last_wanted_key(basis_, k_) + this->threshold()) {
            verdict_ = ComplementVerdict::outside;
            return;
        }
        start_columns_ = 0;
        basis_.start(verify_width());
    }

    ComplementVerdict complement() override {
        const bool exhausted = basis_.next_width() == 0 && basis_.size() == 0;
        return exhausted && verdict_ == ComplementVerdict::open
                   ? ComplementVerdict::outside
                   : std::exchange(verdict_, ComplementVerdict::open);
    }

    void extend_complement() override {
        if (basis_.next_width() > 0) {
            basis_.step();
        }
        if (!basis_.full() && !basis_.ritz_due()) {
            return;
        }
        form_pairs("verify");
        const double last = last_wanted_key(basis_, k_);
        const double rho = basis_.ritz_residual(0);
        const double theta = basis_.ritz_value(0);
        verdict_ = judge_complement(last, basis_.key(theta), rho, this->threshold(),
                                    this->settled(theta), this->dimensions());
        this->note_next(last, basis_.key(theta), rho);
        if (verdict_ == ComplementVerdict::inside) {
            int inside = 0;
            const int converged = converged_prefix();
            while (inside < converged &&
                   basis_.key(basis_.ritz_value(inside)) < last - this->threshold() - rho) {
                ++inside;
            }
            this->absorb();
            basis_.restart(inside, verify_width());
            if (basis_.locked() < basis_.max_locked()) {
                verdict_ = ComplementVerdict::open;
            }
        } else if (verdict_ == ComplementVerdict::open && basis_.full()) {
            basis_.restart(0, verify_width());
        }
    }

    void visit_numbers(const StateVisit<T>& visit) override {
        visit.optional("start_columns", start_columns_);
        visit.optional("waits_from", waits_from_);
    }
    void save(SolverState<T>& state) override { basis_.save(state); }
    void restore(const SavedState<T>& state) override {
        basis_.restore(state);
        // Fewer columns than there were prove less.
        start_columns_ = std::clamp(start_columns_, 0, block_);
        if (this->is_verifying() && basis_.size() + basis_.next_width() == 0) {
            state.refuse("the state has no basis from which to resume the verification");
        }
    }

    std::int64_t iterations() const override { return basis_.steps(); }
    double norm() const override { return basis_.norm(); }
    void describe(EigenResult<T>& result) const override {
        result.operator_applications = basis_.applications();
        result.block = block_;
        result.basis = max_search_;
    }

    int k_;
    int block_;
    int max_search_;
    LanczosBasis<T> basis_;
    /// Random columns from which the present search space began, without other columns; 0 if it
    /// began otherwise.
    int start_columns_ = 0;
    /// True if this space has proven that no copy is missing; next_key_: the key of its next Ritz
    /// pair. waits_from_: the step in which all wanted pairs had converged.
    bool proven_ = false;
    double next_key_ = 0;
    std::int64_t waits_from_ = 0;
    ComplementVerdict verdict_ = ComplementVerdict::open;
};

}  // namespace

template <class T>
EigenResult<T> block_lanczos(Context& ctx, const EigenProblem<T>& problem,
                             const EigenOptions& options) {
    if (problem.b != nullptr) {
        const auto solve = [](Context& on, const EigenProblem<T>& standard,
                              const EigenOptions& asked) {
            return block_lanczos<T>(on, standard, asked);
        };
        return solve_reduced<T>(ctx, problem, options, Method::lanczos, solve);
    }
    return verified_search<BlockLanczos>(ctx, problem, options);
}

template <class T>
EigenResult<T> verify_pairs(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options, BlockView<const T> candidates,
                            double norm) {
    return verified_search<BlockLanczos>(ctx, problem, options, Candidates<T>{candidates, norm});
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template EigenResult<T> block_lanczos(Context&, const EigenProblem<T>&, const EigenOptions&); \
    template EigenResult<T> verify_pairs(Context&, const EigenProblem<T>&, const EigenOptions&,   \
                                         BlockView<const T>, double);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
