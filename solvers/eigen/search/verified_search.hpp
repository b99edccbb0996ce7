// SPDX-License-Identifier: BSD-3-Clause
// The sequence of every eigensolver: search, refine, verify. Private to solvers/eigen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/eigen/eigen_result.hpp"
#include "solvers/eigen/search/audited_solve.hpp"
#include "solvers/eigen/search/iteration_monitor.hpp"
#include "solvers/eigen/search/spectral_order.hpp"
#include "solvers/eigen/search/state_visit.hpp"
#include "solvers/eigen/search/verification.hpp"

namespace quiver {

/// A pair is locked only if its residual is at most this fraction of the tolerance, so that its
/// fresh residual meets the tolerance.
constexpr double lock_margin = 0.7;
/// The bound of the residuals of locked pairs.
constexpr double lockable_residual(double tolerance, double norm) {
    return lock_margin * (tolerance * norm);
}
/// A tolerance at which a pair with this residual is locked. Four operations round here and in
/// lockable_residual(). Without the last factor the bound could therefore lie one ulp below the
/// residual, and a search that accepts the residual would repeat forever.
constexpr double locking_tolerance(double residual, double norm) {
    return residual / (lock_margin * norm) * (1 + 4 * std::numeric_limits<double>::epsilon());
}
/// If rounding keeps residuals above the tolerance, the tolerance is raised to them, up to this
/// many times the residual that is usually attainable.
constexpr double attainable_slack = 16;
/// Maximal number of searches for pairs whose fresh residuals are above the tolerance.
constexpr int max_refinements = 5;

/// One solve. A method derives from this class and supplies how its space grows, how the complement
/// is searched, and what a checkpoint holds; run() calls these functions in order. This class
/// contains what all methods share: the tolerance, stopping, the shared numbers of a checkpoint,
/// the result.
///
/// All virtual functions are collective and get the same arguments on all ranks.
template <class T>
class VerifiedSearch {
  public:
    /// The method's name and units in messages and results.
    struct Description {
        /// Also the name of its states.
        Method method;
        /// The unit of iterations(), such as "block products".
        const char* unit;
    };

    VerifiedSearch(const VerifiedSearch&) = delete;
    VerifiedSearch& operator=(const VerifiedSearch&) = delete;
    virtual ~VerifiedSearch() = default;

    /// The whole solve.
    EigenResult<T> run();

  protected:
    /// Checks problem and options, and throws their errors.
    VerifiedSearch(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options,
                   const Description& description);

    // How the method extends its space.

    /// Makes the first space.
    virtual void begin() = 0;
    /// Called when a search begins, but not when it is resumed from a state.
    virtual void begin_search() {}
    /// Locks converged pairs. True if all wanted pairs are found.
    virtual bool found() = 0;
    /// One step of the search. An override may call give_up_because() to end the solve.
    virtual void extend() = 0;
    /// Called when the search is stopped: the best unconverged pairs take the missing places.
    /// Returns the number of converged pairs.
    virtual int give_up() = 0;

    // The pairs found.

    /// The k wanted pairs, or those found so far; the locked pairs come first.
    virtual std::vector<RitzPair> pairs() = 0;
    /// Y(:, j) = the vector of pair order[j].
    virtual void extract(const std::vector<int>& order, BlockView<T> y) = 0;
    /// Computes the residuals of the wanted pairs from fresh products.
    virtual void refine_pairs() = 0;
    /// Returns the pairs above the tolerance to the search; false if a search cannot improve them.
    virtual bool search_again() = 0;
    /// Makes the residuals of the pairs fresh at the end of a solve that was stopped.
    virtual void finish() {}
    /// Lets another solver verify the pairs. Its result, if there is one, is the result of the
    /// solve.
    virtual std::optional<EigenResult<T>> verify_elsewhere() { return std::nullopt; }

    // The search of the complement.

    /// Starts the search of the complement of the k wanted pairs.
    virtual void begin_complement() = 0;
    /// The verdict on the complement. `inside`: the method has absorbed the pairs that it found;
    /// the search and its refinement follow again.
    virtual ComplementVerdict complement() = 0;
    /// One step of the search of the complement. An override calls absorb() if it has absorbed a
    /// wanted pair but continues this search.
    virtual void extend_complement() = 0;

    // The method's part of a checkpoint, besides the numbers that all methods have.

    virtual void visit_numbers(const StateVisit<T>& /*visit*/) {}
    virtual void save(SolverState<T>& state) = 0;
    /// Called after visit_numbers().
    virtual void restore(const SavedState<T>& state) = 0;
    /// True if this method can resume from a state of the other method `solver`.
    virtual bool resumes_from(const std::string& /*solver*/) const { return false; }

    // The method's part of the result.

    virtual std::int64_t iterations() const = 0;
    /// Fills in the fields operator_applications, block and basis, and those that only this method
    /// has.
    virtual void describe(EigenResult<T>& result) const = 0;
    /// An estimate of ||A||, and the norm to which the residual of an eigenvalue is relative.
    virtual double norm() const = 0;
    virtual double scale(double /*value*/) const { return norm(); }
    /// The largest fresh residual that rounding explains: the tolerance is raised to it.
    virtual double largest_rounding() const {
        return attainable_slack * attainable_tolerance<T>(0);
    }
    /// A likely cause if fresh residuals stay above the tolerance; the end of a message.
    virtual std::string doubt() const {
        return problem_.b == nullptr
                   ? "is A Hermitian, with both triangles stored?"
                   : "are A and B Hermitian, with both triangles stored? If B is nearly singular, "
                     "use shift-invert or dense";
    }
    /// Appended to the message of a solve that was stopped.
    virtual std::string standing() const { return ""; }

    // Functions that the methods call.

    Context& ctx() const { return ctx_; }
    const EigenProblem<T>& problem() const { return problem_; }
    const EigenOptions& options() const { return options_; }
    /// The dimension of the searched space.
    std::int64_t dimensions() const { return dimensions_; }
    const char* name() const { return to_string(description_.method); }
    static double eps() { return static_cast<double>(epsilon_v<T>); }

    double tolerance() const { return tolerance_; }
    double threshold() const { return tolerance_ * norm(); }
    double threshold(double value) const { return tolerance_ * scale(value); }
    /// Pairs with residuals up to this are locked.
    double lockable() const { return lockable_residual(tolerance_, norm()); }
    double attainable() const { return attainable_units * eps() * norm(); }
    double attainable(double value) const { return attainable_units * eps() * scale(value); }
    /// A residual up to this decides the verdict on the complement: the level of rounding noise,
    /// also if the tolerance is loose.
    double settled(double value) const {
        return lock_margin * std::min(threshold(value), attainable(value));
    }
    /// Raises the tolerance so that a pair with this residual is locked.
    void accept(double residual) {
        tolerance_ = std::max(tolerance_, locking_tolerance(residual, norm()));
    }

    bool interrupted() const { return monitor_.interrupted(); }
    bool must_stop() const {
        return stopped_ || monitor_.interrupted() ||
               (options_.max_iterations > 0 ? iterations() >= options_.max_iterations
                                            : stagnates());
    }
    /// Ends the solve at the next step, as if it were out of iterations.
    void stop() { stopped_ = true; }
    /// Ends the solve as not converged.
    void give_up_because(const std::string& message) { message_ = message; }
    bool has_given_up() const { return !message_.empty(); }
    bool is_verifying() const { return verifying_; }
    void absorb() { absorbed_ = true; }
    /// Notes the keys of the last wanted and the next eigenvalue, and the residual of the latter,
    /// for EigenResult::cut_depth; used only if the verdict is `tied`.
    void note_next(double last, double next, double residual) {
        cut_depth_ = std::max(0.0, last - next) + residual;
    }
    double cut_depth() const { return cut_depth_; }
    void set_cut_depth(double depth) { cut_depth_ = depth; }

    /// Reports an iteration; `residual` is relative. False once a callback has asked to stop.
    bool report(int converged, double residual, const char* stage) {
        note_progress(converged, residual, stage);
        return monitor_.report(iterations(), converged, residual, stage);
    }
    IterationMonitor& monitor() { return monitor_; }
    /// The numbers common to all states, and those of visit_numbers().
    StateNumbers numbers();

  private:
    bool search();
    bool refine();
    void verify();
    void restore_all(const SavedState<T>& state);
    void visit_all(const StateVisit<T>& visit);
    void save_if_asked();
    void note_progress(int converged, double residual, const std::string& stage);
    bool stagnates() const;
    std::string stopped() const;
    std::size_t wanted(const std::vector<RitzPair>& pairs) const;
    double relative_residual(const RitzPair& pair) const;
    /// max(1, ||x||^2) of eigenvectors: with B, an eigenvalue changes by this times its residual.
    double largest_growth(const BlockVector<T>& x) const;
    EigenResult<T> result();

    Context& ctx_;
    EigenProblem<T> problem_;
    EigenOptions options_;
    Description description_;
    std::int64_t dimensions_;
    IterationMonitor monitor_;
    double tolerance_;
    int refinements_ = 0;
    /// True if the current search resumes from a state.
    bool resumed_ = false;
    /// verifying_: the complement is being searched. absorbed_: that search has absorbed a wanted
    /// pair.
    bool verifying_ = false;
    bool absorbed_ = false;
    bool tied_ = false;
    /// In keys, before largest_growth().
    double cut_depth_ = 0;
    bool verified_ = false;
    bool stopped_ = false;
    std::string message_;
    /// The last progress: its iteration, stage, number of pairs and residual.
    std::int64_t progress_at_ = 0;
    std::string stage_;
    int converged_ = 0;
    double residual_ = 0;
};

/// Solves by the method `Search<T>`, whose constructor gets the arguments, and audits a protected
/// matrix.
template <template <class> class Search, class T, class... Arguments>
EigenResult<T> verified_search(Context& ctx, const EigenProblem<T>& problem,
                               const EigenOptions& options, const Arguments&... arguments) {
    return audited_solve<T>(ctx, problem,
                            [&] { return Search<T>(ctx, problem, options, arguments...).run(); });
}

}  // namespace quiver
