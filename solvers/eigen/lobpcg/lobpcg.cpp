// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lobpcg.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/prepare.hpp"
#include "solvers/eigen/lobpcg/lobpcg_solver.hpp"
#include "solvers/eigen/pencil/balanced_pencil.hpp"
#include "solvers/eigen/search/annotated_checkpoint.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {

template <class T>
Lobpcg<T>::Lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
    : VerifiedSearch<T>(ctx, problem, options, {Method::lobpcg, "iterations"}),
      k_(options.k),
      which_(options.which),
      width_(block_width()),
      dense_(this->dimensions() <
             std::max({std::int64_t{3} * k_, std::int64_t{k_} + 3 * width_,
                       std::int64_t{std::max(k_, width_)} + 3 * verify_block})) {
    bounds_ = estimate(problem.a);
    inner_ = inner_product<T>(ctx, problem.b);
    if (problem.b != nullptr) {
        inner_.norm = std::max(inner_.norm, static_cast<Real>(estimate(*problem.b).norm));
    }
}

/// Default: k plus guard vectors. The first eigenvalue beyond the block then takes the place of the
/// (k + 1)-st one in the convergence factor.
template <class T>
int Lobpcg<T>::block_width() const {
    const int guarded = k_ + std::clamp(k_ / 4, 2, 8) + 1;
    const int asked = this->options().block;
    const int wanted = asked > 0 ? asked : std::min(guarded, max_block_width);
    return static_cast<int>(std::min<std::int64_t>(wanted, this->dimensions()));
}

/// Requests kernels for all widths that occur: a block loses columns one by one, and the basis
/// holds up to three blocks.
template <class T>
void Lobpcg<T>::prepare_kernels(int width, int fixed) {
    constexpr int widest = 64;
    if (width <= widest) {
        prepare_products<T>(this->ctx(), {.rows = this->problem().a.row_map().local_rows(),
                                          .blocks = narrowing(width),
                                          .bases = growing(3 * width, std::max(1, width / 2)),
                                          .stride = fixed + 2 * width,
                                          .kept = {width},
                                          .pairs = true});
        std::vector<int> widths = narrowing(width);
        widths.push_back(2 * width);  // [X P] together, where products are refreshed
        this->problem().a.prepare(this->ctx(), widths);
    }
}

template <class T>
LobpcgSpace<T> Lobpcg<T>::make_space(int width, int locked) {
    prepare_kernels(width, fixed() + locked);
    LobpcgSpace<T> space(this->ctx(), this->problem(), inner_, which_,
                         this->options().seed + ++spaces_, width, fixed() + locked, bounds_);
    if (const int rank = space.fix(this->problem().constraints); rank < fixed()) {
        InputError error("eigensolver: " + std::to_string(fixed()) +
                         " constraint vectors are linearly dependent, of rank " +
                         std::to_string(rank));
        error.set_collective();
        throw error;
    }
    return space;
}

/// Spectral bounds of A or B. For B, throws if a Ritz value shows that it is not positive definite.
template <class T>
SpectrumBounds Lobpcg<T>::estimate(Operator<T>& m) {
    const std::uint64_t seed = this->options().seed;
    if (&m == &this->problem().a) {
        const CountedBounds found = bounds_of_spectrum(this->ctx(), m, seed);
        total_.applications += found.applications;
        return found.bounds;
    }
    const CountedBounds found = bounds_of_mass(this->ctx(), m, seed, "LOBPCG");
    if (found.least <= this->eps() * found.bounds.norm) {
        throw_indefinite(IndefiniteError::Operand::mass,
                         "LOBPCG: B is not positive definite to rounding: " +
                             number_text(found.least) + " is one of its Ritz values, its norm " +
                             "about " + number_text(found.bounds.norm) + singular_mass_cure);
    }
    return found.bounds;
}

template <class T>
void Lobpcg<T>::begin() {
    if (dense_) {
        // The space spans everything; the refresh removes the rounding errors of the first Ritz
        // vectors.
        space_.emplace(make_space(static_cast<int>(this->dimensions()), 0));
        space_->absorb_random(static_cast<int>(this->dimensions()));
        space_->refresh();
        space_->measure();
        return;
    }
    space_.emplace(make_space(width_, k_ > width_ ? k_ : 0));
    space_->absorb(this->problem().start);
    if (space_->width() < width_) {
        space_->absorb_random(width_ - space_->width());
    }
    start_counting();
}

/// Starts a new search from the Ritz vectors of `candidates`.
template <class T>
void Lobpcg<T>::search_from(BlockVector<T> candidates) {
    space_.emplace(make_space(candidates.width(), 0));
    space_->absorb(std::as_const(candidates).view());
    progress_ = {};
    false_ends_ = 0;
    ending_ = false;
    attained_ = false;
    start_counting();
}

template <class T>
int Lobpcg<T>::converged_prefix() const {
    int count = 0;
    while (count < space_->width() && space_->relative_residual(count) <= bound()) {
        ++count;
    }
    return count;
}

/// Called when the search has found all pairs, or as much as rounding permits. False if another
/// search follows, or if pairs are missing.
template <class T>
bool Lobpcg<T>::all_pairs_in_block() {
    const int count = space_->fixed() - fixed() + space_->width();
    if (count < k_) {
        this->stop();
        return false;
    }
    if (space_->fixed() > fixed() && this->problem().b != nullptr) {
        search_from(copy_of(space_->fixed_and_x(fixed(), k_)));
        return false;
    }
    return true;
}

template <class T>
bool Lobpcg<T>::found() {
    while (!dense_ && resumed_ == nullptr) {
        if (attained_) {
            if (all_pairs_in_block()) {
                return true;
            }
            if (this->must_stop()) {
                return false;
            }
        }
        space_->measure();
        count(*space_);
        const int locked = space_->fixed() - fixed();
        const int wanted = k_ - locked;
        const int prefix = converged_prefix();
        space_->require_length(wanted);
        const int next = std::min(space_->width() - 1, std::min(prefix, wanted - 1));
        if (!this->report(std::min(k_, locked + prefix), space_->relative_residual(next),
                          "search")) {
            return false;
        }
        const bool all = prefix >= wanted;
        const bool lock = wanted > space_->width() && prefix >= std::max(1, space_->width() / 4);
        if (all && space_->age() == 0) {
            if (all_pairs_in_block()) {
                return true;
            }
        } else if (lock && space_->age() == 0) {
            space_->fix_first(prefix);
            if (space_->width() < (width_ + 1) / 2) {
                space_->absorb_random(width_ - space_->width());
            }
            progress_ = {};
            false_ends_ = 0;
            ending_ = false;
        } else if (ending_ && ++false_ends_ >= max_false_ends && rounding_explains(wanted)) {
            attained_ = true;
        } else if (all || lock) {
            space_->refresh();  // convergence by carried products does not count
            ending_ = true;
        } else {
            ending_ = false;
            return false;
        }
    }
    return true;
}

/// True if rounding can explain the size of the first `wanted` residuals.
template <class T>
bool Lobpcg<T>::rounding_explains(int wanted) const {
    double worst = 0;
    for (int j = 0; j < std::min(wanted, space_->width()); ++j) {
        worst = std::max(worst, space_->relative_residual(j));
    }
    return worst <= attainable_slack * attainable_tolerance<T>(0);
}

template <class T>
std::vector<int> Lobpcg<T>::above_tolerance() const {
    std::vector<int> active;
    for (int j = 0; j < space_->width(); ++j) {
        if (space_->relative_residual(j) > bound()) {
            active.push_back(j);
        }
    }
    return active;
}

template <class T>
void Lobpcg<T>::extend() {
    const int wanted = k_ - (space_->fixed() - fixed());
    if (space_->age() < refresh_period && progress_.made(*space_, std::min(wanted, space_->width()),
                                                         this->tolerance(), search_patience)) {
        space_->advance(above_tolerance());
    } else if (space_->age() > 0) {
        space_->refresh();
    } else {
        attained_ = true;
    }
}

template <class T>
BlockVector<T> Lobpcg<T>::copy_of(BlockView<const T> x) {
    BlockVector<T> result;
    this->ctx().comm().agree(
        [&] { result = BlockVector<T>(this->ctx(), this->problem().a.row_map(), x.cols); });
    copy(this->ctx(), x, result.view());
    return result;
}

/// X <- fresh Ritz pairs of the columns found so far.
template <class T>
int Lobpcg<T>::give_up() {
    const int count = std::min(k_, space_->fixed() - fixed() + space_->width());
    LobpcgSpace<T> pool = make_space(count, 0);
    pool.absorb(space_->fixed_and_x(fixed(), count));
    pool.measure();
    space_.emplace(std::move(pool));
    int good = 0;
    for (int j = 0; j < std::min(k_, space_->width()); ++j) {
        good += space_->relative_residual(j) <= this->tolerance() ? 1 : 0;
    }
    return good;
}

template <class T>
std::vector<RitzPair> Lobpcg<T>::pairs() {
    std::vector<RitzPair> all;
    all.reserve(static_cast<std::size_t>(space_->width()));
    for (int j = 0; j < space_->width(); ++j) {
        all.push_back({space_->ritz_value(j), space_->residual(j)});
    }
    return all;
}

template <class T>
void Lobpcg<T>::extract(const std::vector<int>& order, BlockView<T> y) {
    gather_columns(this->ctx(), space_->x(), order, y);
}

/// If pairs are hard locked, block Lanczos verifies, because it needs fewer columns per pair.
template <class T>
std::optional<EigenResult<T>> Lobpcg<T>::verify_elsewhere() {
    if (resumed_ != nullptr) {
        return verify_by_lanczos({}, 0);
    }
    if (space_->fixed() == fixed()) {
        return std::nullopt;
    }
    BlockVector<T> candidates = copy_of(space_->fixed_and_x(fixed(), k_));
    const double norm = space_->norm_a();
    space_.reset();
    return verify_by_lanczos(std::as_const(candidates).view(), norm);
}

template <class T>
EigenResult<T> Lobpcg<T>::verify_by_lanczos(BlockView<const T> candidates, double norm) {
    EigenOptions options = this->options();
    options.block = 0;
    options.max_basis = 0;
    if (options.max_iterations > 0) {
        options.max_iterations = std::max<std::int64_t>(1, options.max_iterations - iterations());
    }
    options.max_seconds = remaining_seconds(this->ctx().comm(), options, this->monitor().seconds());
    Checkpoint<T>* const outer = this->problem().checkpoint;
    AnnotatedCheckpoint<T> checkpoint(outer, this->numbers(), resumed_);
    EigenProblem<T> problem = this->problem();
    problem.checkpoint = outer == nullptr ? nullptr : &checkpoint;
    EigenResult<T> result = verify_pairs<T>(this->ctx(), problem, options, candidates, norm);
    result.method = Method::lobpcg;
    result.iterations += iterations();
    const std::int64_t applications = result.operator_applications;
    describe(result);
    result.operator_applications += applications;
    result.seconds = this->monitor().seconds();
    return result;
}

template <class T>
void Lobpcg<T>::visit_numbers(const StateVisit<T>& visit) {
    visit("lobpcg_steps", total_.iterations);
    visit("lobpcg_applications", total_.applications);
    visit("spaces", spaces_);
    visit("verifications", verifications_);
}

template <class T>
void Lobpcg<T>::save(SolverState<T>& state) {
    state.numbers["width"] = {static_cast<double>(space_->max_width())};
    space_->save(fixed(), state);
    if (complement_) {
        state.numbers["complement"] = {static_cast<double>(complement_->space.width())};
        state.blocks["complement"] = complement_->space.x();
    }
    if (pencil_) {
        pencil_->basis.save(state, "pencil_");
    }
}

template <class T>
void Lobpcg<T>::restore(const SavedState<T>& state) {
    if (resumes_from(state.solver())) {
        resumed_ = &state;
        return;
    }
    if (dense_) {
        begin();
        return;
    }
    const int width = static_cast<int>(state.whole("width", 1, this->dimensions()));
    space_.emplace(make_space(width, width == width_ && k_ > width_ ? k_ : 0));
    space_->restore(state, this->is_verifying());
    space_->measure();
    start_counting();
    resumed_ = this->is_verifying() ? &state : nullptr;
}

template <class T>
void Lobpcg<T>::describe(EigenResult<T>& result) const {
    result.operator_applications = total_.applications;
    result.block = width_;
    result.basis = 3 * width_;
}

template <class T>
double Lobpcg<T>::scale(double value) const {
    return norm() +
           (this->problem().b != nullptr ? std::abs(value) * static_cast<double>(inner_.norm) : 0);
}

template <class T>
std::string Lobpcg<T>::doubt() const {
    constexpr double short_in_b = 1e-4;
    double least = 1;
    for (int j = 0; j < std::min(k_, space_->width()); ++j) {
        least = std::min(least, space_->length_in_b(j));
    }
    return least > short_in_b ? VerifiedSearch<T>::doubt()
                              : "x^H B x = " + number_text(least, 2) +
                                    " ||B|| ||x||^2 for one of their vectors, so that rounding "
                                    "errors are large; shift-invert takes a nearly singular B";
}

template <class T>
EigenResult<T> lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options) {
    const auto solve = [](Context& on, const EigenProblem<T>& given, const EigenOptions& chosen) {
        return verified_search<Lobpcg>(on, given, chosen);
    };
    return problem.b == nullptr ? solve(ctx, problem, options)
                                : solve_balanced<T>(ctx, problem, options, Method::lobpcg, solve);
}

#define QUIVER_INSTANTIATE(T) \
    template class Lobpcg<T>; \
    template EigenResult<T> lobpcg(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
