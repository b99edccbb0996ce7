// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/verified_search.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {

template <class T>
VerifiedSearch<T>::VerifiedSearch(Context& ctx, const EigenProblem<T>& problem,
                                  const EigenOptions& options, const Description& description)
    : ctx_(ctx),
      problem_(problem),
      options_(options),
      description_(description),
      dimensions_(quiver::dimensions(problem)),
      monitor_(ctx, options_, to_string(description.method), problem.checkpoint),
      tolerance_(attainable_tolerance<T>(options.tol)) {
    check_problem(ctx, problem, options);
    check_options(options, dimensions_);
}

template <class T>
EigenResult<T> VerifiedSearch<T>::run() {
    // V: a space of guesses and random columns, or the space of a state.
    if (const SavedState<T>* saved = saved_state(problem_)) {
        restore_all(*saved);
    } else {
        begin();
    }
    while (!verified_ && !has_given_up()) {
        if (!verifying_) {
            // Extend V until V^H A V y = lambda y gives the wanted pairs (lambda, x = V y) with
            // ||A x - lambda B x|| <= tol ||A||. Lock them in Q.
            if (!search()) {
                break;
            }
            // A method may let another solver verify the pairs: LOBPCG lets block Lanczos do it,
            // because that needs fewer columns.
            if (std::optional<EigenResult<T>> result = verify_elsewhere()) {
                return std::move(*result);
            }
            // R = A Q - B Q Lambda from fresh products. If a column exceeds the tolerance, search
            // its pair again; if that does not help and rounding explains it, raise the tolerance.
            if (!refine()) {
                continue;
            }
        }
        // From fresh random columns, find the extreme pair (theta, y) of P^H A P, P = I - Q Q^H B.
        // If theta lies beyond the last eigenvalue of Q, every copy is found. If theta lies inside,
        // absorb y in Q and search again.
        verify();
    }
    return result();
}

/// False if the solve ends unfinished.
template <class T>
bool VerifiedSearch<T>::search() {
    if (!std::exchange(resumed_, false)) {
        begin_search();
    }
    while (!found()) {
        save_if_asked();
        if (must_stop()) {
            const std::string text = stopped();
            const int converged = give_up();
            message_ = options_.window
                           ? text
                           : text + " with " + std::to_string(converged) + " of " +
                                 std::to_string(options_.k) + " pairs converged" + standing();
            return false;
        }
        extend();
        if (has_given_up()) {
            return false;
        }
    }
    return true;
}

/// True if the wanted pairs meet the tolerance by fresh residuals.
template <class T>
bool VerifiedSearch<T>::refine() {
    refine_pairs();
    const std::vector<RitzPair> found = pairs();
    const std::size_t count = wanted(found);
    if (!options_.window && count < static_cast<std::size_t>(options_.k)) {
        return false;  // some locked pairs were dependent
    }
    int above = 0;
    double worst = 0;
    for (std::size_t j = 0; j < count; ++j) {
        above += relative_residual(found[j]) > tolerance_ ? 1 : 0;
        worst = std::max(worst, relative_residual(found[j]));
    }
    if (above == 0) {
        return true;
    }
    if (++refinements_ <= max_refinements && search_again()) {
        return false;
    }
    if (worst <= largest_rounding()) {
        tolerance_ = worst;
        return true;
    }
    constexpr double small = 1e-6;  // a larger residual shows a failure, not rounding errors
    give_up_because(
        "fresh residuals of " + std::to_string(above) + " pairs stay above the tolerance" +
        (worst < small ? " (" + number_text(1.1 * worst, 2) + " would accept them)" : "") + ": " +
        doubt());
    return false;
}

template <class T>
void VerifiedSearch<T>::verify() {
    if (!std::exchange(verifying_, true)) {
        absorbed_ = false;
        begin_complement();
    }
    resumed_ = false;
    ComplementVerdict verdict = complement();
    while (verdict == ComplementVerdict::open) {
        save_if_asked();
        if (must_stop()) {
            give_up_because(stopped() + ", before the multiplicity was verified" + standing());
        } else {
            extend_complement();
        }
        if (has_given_up()) {
            return;
        }
        verdict = complement();
    }
    verifying_ = false;
    if (verdict != ComplementVerdict::inside) {
        tied_ = verdict == ComplementVerdict::tied;
        verified_ = !absorbed_;
    }
}

template <class T>
void VerifiedSearch<T>::visit_all(const StateVisit<T>& visit) {
    visit("tolerance", tolerance_);
    visit.optional("refinements", refinements_);
    visit.optional("verifying", verifying_);
    visit.optional("taken_in", absorbed_);
    visit_numbers(visit);
}

template <class T>
StateNumbers VerifiedSearch<T>::numbers() {
    StateNumbers all;
    visit_all(StateVisit<T>(all));
    return all;
}

/// Called between two steps, where the space is consistent.
template <class T>
void VerifiedSearch<T>::save_if_asked() {
    if (monitor_.take_save_request(must_stop())) {
        SolverState<T> state{name(), numbers(), {}, {}};
        save(state);
        problem_.checkpoint->save(ctx_, state);
    }
}

template <class T>
void VerifiedSearch<T>::restore_all(const SavedState<T>& state) {
    if (!resumes_from(state.solver())) {
        state.require_solver(name());
    }
    const double asked = tolerance_;
    visit_all(StateVisit<T>(state));
    tolerance_ = std::max(asked, tolerance_);
    verifying_ = verifying_ && state.solver() == name();
    resumed_ = true;
    restore(state);
    const std::size_t found = verifying_ ? pairs().size() : 0;
    if (verifying_ && !options_.window && found < static_cast<std::size_t>(options_.k)) {
        state.refuse("the state cannot resume the verification of " + std::to_string(options_.k) +
                     " pairs: it has " + std::to_string(found));
    }
}

template <class T>
void VerifiedSearch<T>::note_progress(int converged, double residual, const std::string& stage) {
    if (stage != stage_ || converged > converged_ || residual <= residual_ / 2) {
        progress_at_ = iterations();
        stage_ = stage;
        converged_ = std::max(converged_, converged);
        residual_ = residual;
    }
}

template <class T>
bool VerifiedSearch<T>::stagnates() const {
    const std::int64_t patience = description_.method == Method::filter   ? 50
                                  : description_.method == Method::lobpcg ? 2000
                                                                          : 5000;
    return iterations() - progress_at_ >= std::max(patience, progress_at_ / 2);
}

template <class T>
std::string VerifiedSearch<T>::stopped() const {
    const std::string steps = std::to_string(iterations()) + " " + description_.unit;
    if (monitor_.late()) {
        return "ended by the limit of time (max_seconds) after " + steps;
    }
    if (!interrupted() && !stopped_ && options_.max_iterations == 0) {
        return "stopped after " + steps + " (the last " +
               std::to_string(iterations() - progress_at_) + " without progress)";
    }
    return (interrupted() ? "interrupted after " : "stopped after ") + steps;
}

template <class T>
std::size_t VerifiedSearch<T>::wanted(const std::vector<RitzPair>& pairs) const {
    return options_.window ? pairs.size()
                           : std::min(pairs.size(), static_cast<std::size_t>(options_.k));
}

template <class T>
double VerifiedSearch<T>::relative_residual(const RitzPair& pair) const {
    return pair.residual == 0 ? 0 : pair.residual / scale(pair.value);
}

template <class T>
double VerifiedSearch<T>::largest_growth(const BlockVector<T>& x) const {
    if (problem_.b == nullptr) {
        return 1;
    }
    std::vector<real_t<T>> lengths(static_cast<std::size_t>(x.width()), 1);
    norms(ctx_, x.view(), std::span<real_t<T>>(lengths));
    double largest = 1;
    for (const real_t<T> length : lengths) {
        largest = std::max(largest, static_cast<double>(length) * static_cast<double>(length));
    }
    return largest;
}

template <class T>
EigenResult<T> VerifiedSearch<T>::result() {
    finish();
    EigenResult<T> result;
    const std::vector<RitzPair> found = pairs();
    std::vector<int> order(wanted(found));
    std::iota(order.begin(), order.end(), 0);
    const auto pair = [&](int j) { return found[static_cast<std::size_t>(j)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int i, int j) { return pair(i).value < pair(j).value; });
    ctx_.comm().agree([&] {
        result.vectors = BlockVector<T>(ctx_, problem_.a.row_map(), static_cast<int>(order.size()));
    });
    extract(order, result.vectors.view());
    bool within = options_.window || order.size() == static_cast<std::size_t>(options_.k);
    result.norm_estimate = norm();
    for (const int j : order) {
        result.eigenvalues.push_back(pair(j).value);
        result.residuals.push_back(pair(j).residual);
        result.norm_estimate = std::max(result.norm_estimate, scale(pair(j).value));
        within = within && relative_residual(pair(j)) <= tolerance_;
    }
    result.tolerance = tolerance_;
    result.tolerance_raised = tolerance_ > options_.tol;
    result.multiplicity = verified_ ? Multiplicity::verified : Multiplicity::unverified;
    result.converged = within && verified_;
    result.cluster_cut = tied_;
    result.cut_depth = tied_ ? cut_depth_ * largest_growth(result.vectors) : 0;
    result.iterations = iterations();
    result.interrupted = interrupted();
    result.method = description_.method;
    result.message = !result.converged && message_.empty()
                         ? "fresh residuals are above the tolerance"
                         : message_;
    describe(result);
    result.seconds = monitor_.seconds();
    return result;
}

#define QUIVER_INSTANTIATE(T) template class VerifiedSearch<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
