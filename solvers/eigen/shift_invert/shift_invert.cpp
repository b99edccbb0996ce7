// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <exception>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/eigen/dense/dense_selection.hpp"
#include "solvers/eigen/pencil/identity_mass.hpp"
#include "solvers/eigen/pencil/unit_residuals.hpp"
#include "solvers/eigen/search/infinite_values.hpp"
#include "solvers/eigen/search/scaled_residuals.hpp"
#include "solvers/eigen/search/verified_search.hpp"
#include "solvers/eigen/shift_invert/common_null_vectors.hpp"
#include "solvers/eigen/shift_invert/cudss.hpp"
#include "solvers/eigen/shift_invert/cudss_factorisation.hpp"
#include "solvers/eigen/shift_invert/factor_forecast.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"
#include "solvers/eigen/shift_invert/mumps_factorisation.hpp"
#include "solvers/eigen/shift_invert/row_units.hpp"
#include "solvers/eigen/shift_invert/spectrum_slicer.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {
namespace {

/// The number of columns that are sent and multiplied at once.
int sent_width(std::int64_t rows) {
    constexpr std::int64_t most_numbers = std::int64_t{1} << 23;
    return static_cast<int>(
        std::clamp<std::int64_t>(most_numbers / std::max<std::int64_t>(rows, 1), 1, 64));
}

/// Below this number of rows, one rank factorises faster than several ranks.
constexpr std::int64_t few_shared_rows = 20000;

[[noreturn]] void refuse_problem(const std::string& text) {
    InputError error("shift-invert: " + text);
    error.set_collective();  // options and global sizes are the same on all ranks
    throw error;
}

/// The libraries that take more than most_ldlt_rows rows and why they do not, for a message.
std::string missing_libraries(Place place) {
    const std::string cudss =
        "cuDSS (pip's nvidia-cudss-cu13; set QUIVER_CUDSS to its file libcudss.so.1) or ";
    return (place == Place::host ? "" : cudss) + missing_mumps();
}

/// A message of rank 0 to the other ranks: a step has ended, a job of MUMPS begins, or the search
/// has ended.
struct Step {
    enum class Kind : int { progress, job, end };
    Kind kind = Kind::progress;
    int job = 0;
    SlicerProgress progress;
};

/// The outcome of the search on rank 0, sent to all ranks.
struct Facts {
    bool proven = false;
    bool is_indefinite = false;
    bool cluster_is_cut = false;
    std::int64_t found = 0;
    std::int64_t factorisations = 0;
    std::int64_t solves = 0;
    /// Of A and B, and of the pencil in the units in which it is solved.
    PencilExponents exponents;
    PencilExponents in_units;
    /// Norms of the matrices divided by 2^exponents.
    double norm = 0;
    double norm_b = 1;
    /// The quotient of the norms in the units, divided by 2^(in_units.a - in_units.b).
    double quotient = 0;
    bool has_units = false;
    double resolution = 0;
    double cut_width = 0;
    double largest_move = 0;
    std::array<char, 512> message{};
};

template <class T>
class ShiftInvertSearch : public VerifiedSearch<T> {
    using Wide = DoubleOf<T>;

  public:
    ShiftInvertSearch(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options)
        : VerifiedSearch<T>(ctx, problem, as_one_end(options),
                            {Method::shift_invert, "factorisations"}),
          which_(options.which),
          library_(factor_library(ctx, problem.a.row_map().global_rows())) {
        if (problem.checkpoint != nullptr) {
            refuse_problem("there is no state to save or to resume from; omit the checkpoint");
        }
        if (problem.constraints.cols > 0) {
            refuse_problem("constraints are not supported; use dense or a method that iterates");
        }
        if (problem.protection != nullptr) {
            refuse_problem(
                "the factorisation has no checksums, so that the method takes no protected matrix; "
                "omit the protection (--abft), or take a method with checksums: lanczos or, with "
                "a B, lobpcg for an end, jd for a target, filter (without a B) for a window");
        }
        const std::int64_t rows = problem.a.row_map().global_rows();
        if (rows > most_ldlt_rows && library_ == FactorLibrary::ldlt) {
            refuse_problem(std::to_string(rows) + " rows; at most " +
                           std::to_string(most_ldlt_rows) + " are possible without " +
                           missing_libraries(ctx.place()));
        }
    }

  private:
    struct Progress {
        std::int64_t steps = 0;
        /// True while callbacks run.
        bool reporting = false;
        /// True once a callback has ended the search on rank 0.
        bool is_interrupted = false;
        /// The limit of one search beside max_iterations; 0: none.
        std::int64_t most_factorisations = 0;
        /// The limit of the eigenvalues in a window, beside max_in_window.
        std::int64_t most_between = SlicerOptions::no_limit;
    };

    bool is_root() const { return this->ctx().comm().rank() == 0; }

    /// Solves on rank 0; the other ranks follow the steps, because the callback of any rank may end
    /// the solve.
    void begin() override {
        std::optional<CsrRows<Wide>> b;
        if (this->problem().b != nullptr) {
            b = gather_rows<T>(this->ctx(), *this->problem().b, "shift-invert: B");
        }
        CsrRows<Wide> a = gather_rows<T>(this->ctx(), this->problem().a, "shift-invert: A");
        prepare_factorisation(a, b ? &*b : nullptr);
        std::exception_ptr failure;
        if (is_root()) {
            try {
                solve(std::move(a), b);
            } catch (...) {
                if (progress_.reporting) {
                    throw;  // a callback failed, and all ranks know
                }
                failure = std::current_exception();
            }
            send({Step::Kind::end, 0, {}});
        } else {
            follow();
        }
        this->ctx().comm().agree([&] {
            if (failure) {
                std::rethrow_exception(failure);
            }
        });
        share_result();
    }

    /// Prepares cuDSS on rank 0, or MUMPS on all ranks or on rank 0. Collective.
    void prepare_factorisation(const CsrRows<Wide>& a, const CsrRows<Wide>* b) {
        if (library_ == FactorLibrary::mumps) {
            prepare_mumps(a, b);
        } else if (library_ == FactorLibrary::cudss) {
            this->ctx().comm().agree([&] {
                if (is_root()) {
                    cudss_ = std::make_unique<CudssFactorisation<Wide>>(this->ctx(), a, b);
                }
            });
            if (cudss_) {
                announce_factors(cudss_->forecast().entries, cudss_->forecast().bytes,
                                 "GPU " + std::to_string(this->ctx().device().id));
            }
        }
    }
    void prepare_mumps(const CsrRows<Wide>& a, const CsrRows<Wide>* b) {
        const Comm& comm = this->ctx().comm();
        const std::int64_t rows = this->problem().a.row_map().global_rows();
        const bool shared = comm.size() > 1 && rows >= few_shared_rows;
        const auto prepare = [&](const Comm& ranks) {
            mumps_ = std::make_unique<MumpsFactorisation<Wide>>(
                ranks, this->ctx().threads(), a, b, [this, shared](int job) {
                    if (shared) {
                        send({Step::Kind::job, job, {}});
                    }
                });
        };
        if (shared) {
            prepare(comm);
        } else {
            comm.agree([&] {
                if (is_root()) {
                    prepare(Comm());
                }
            });
        }
        require_host_memory(comm, mumps_ ? mumps_->forecast().bytes : 0,
                            "shift-invert: the factors (a method that iterates needs none) take");
        if (mumps_) {
            announce_factors(mumps_->forecast().entries, mumps_->forecast().all_bytes,
                             std::to_string(comm.size()) + (comm.size() > 1 ? " ranks" : " rank"));
        }
    }
    void announce_factors(double entries, double bytes, const std::string& where) const {
        if (this->problem().a.row_map().global_rows() > most_ldlt_rows) {
            this->ctx().emit(NoticeEvent{"shift-invert: factors of " + number_text(entries, 2) +
                                         " entries; " + to_string(library_) + " expects to take " +
                                         number_text(1e-6 * bytes, 4) + " MB on " + where});
        }
    }
    /// True if B has an eigenvalue below the rounding errors of its entries: if B + tau I, tau > 0
    /// their size, is not positive definite. A semidefinite B is accepted.
    bool is_indefinite(const CsrRows<Wide>& b) const {
        const double tau = rounding() * largest_row_sum(b);
        if (tau == 0) {
            return true;
        }
        return !make_factorisation(b)->factor(b, nullptr, -tau).is_positive_definite();
    }
    /// A factorisation on rank 0 for the pattern of `rows`.
    std::unique_ptr<Factorisation<Wide>> make_factorisation(const CsrRows<Wide>& rows) const {
        switch (library_) {
            case FactorLibrary::cudss:
                return std::make_unique<CudssFactorisation<Wide>>(this->ctx(), rows, nullptr);
            case FactorLibrary::mumps:
                return std::make_unique<MumpsFactorisation<Wide>>(Comm(), this->ctx().threads(),
                                                                  rows, nullptr);
            default:
                return std::make_unique<LdltFactorisation<Wide>>();
        }
    }
    /// The reason why A and B determine no eigenvalues, if they have a common null vector; else
    /// empty.
    std::string words_of_singular_pencil() {
        if (!pencil_->has_b() || (slicer_->is_stopped() && slicer_->message().empty())) {
            return "";
        }
        try {
            const auto make = [&](const CsrRows<Wide>& rows) { return make_factorisation(rows); };
            return find_common_null_vectors<Wide>(*pencil_, rounding(), make).words();
        } catch (const MemoryError&) {
            return "";
        }
    }
    Factorisation<Wide>& factorisation() {
        if (cudss_) {
            return *cudss_;
        }
        if (mumps_) {
            return *mumps_;
        }
        return ldlt_;
    }

    /// Runs on rank 0 only.
    void solve(CsrRows<Wide> a, std::optional<CsrRows<Wide>> b) {
        facts_.exponents.a = scale_to_one(a);
        if (b) {
            facts_.exponents.b = scale_to_one(*b);
            facts_.is_indefinite = is_indefinite(*b);
            if (facts_.is_indefinite) {
                return;
            }
        }
        facts_.in_units = facts_.exponents;
        if (!b || !choose_units(a, *b)) {
            solve_in_own_units(std::move(a), std::move(b));
            return;
        }
        if (units_->is_needed_for_b()) {
            finish_search(find_in_units(a, *b));
            return;
        }
        if (!is_tied(a)) {
            constexpr std::int64_t few = 24;
            progress_.most_factorisations = few;
            finish_search(find_in_units(a, *b));
            progress_.most_factorisations = 0;
        }
        // In balanced units fewer eigenvalues may lie within rounding errors of a window.
        const std::int64_t many = std::max<std::int64_t>(this->dimensions() / 8, 1);
        const std::int64_t given = this->options().max_in_window;
        const bool limits = this->options().window && (given == 0 || given > many);
        if (may_go_on()) {
            progress_.most_between = limits ? many : SlicerOptions::no_limit;
            solve_in_own_units(a, b);
        }
        const bool was_limited = limits && slicer_ && slicer_->is_stopped();
        if (may_go_on()) {
            facts_.has_units = true;
            finish_search(find_in_units(a, *b));
        }
        progress_.most_between = SlicerOptions::no_limit;
        if (may_go_on() && was_limited) {
            solve_in_own_units(a, b);
        }
    }
    /// True if A is nearly singular in balanced units, as where stiff springs tie neighbouring
    /// unknowns. Vectors of their common motion are long in these units, so that a search takes
    /// many factorisations or fails; the units of the problem are then better.
    bool is_tied(CsrRows<Wide> a) {
        constexpr double nearly_singular = 3e-9;
        units_->apply(a);
        scale_to_one(a);
        const std::unique_ptr<Factorisation<Wide>> factors = make_factorisation(a);
        const FactorFacts above = factors->factor(a, nullptr, nearly_singular);
        const FactorFacts below = factors->factor(a, nullptr, -nearly_singular);
        facts_.factorisations += 2;
        return !above.complete || !below.complete || above.below != below.below;
    }
    /// True if nothing is proved and neither a callback nor max_iterations has ended the search.
    bool may_go_on() const {
        const std::int64_t most = this->options().max_iterations;
        return !facts_.proven && !progress_.is_interrupted &&
               (most == 0 || facts_.factorisations < most);
    }
    void solve_in_own_units(CsrRows<Wide> a, std::optional<CsrRows<Wide>> b) {
        facts_.has_units = false;
        facts_.in_units = facts_.exponents;
        unit_exponents_.clear();
        start_slicer(std::move(a), std::move(b));
        const std::string message = find_pairs();
        facts_.norm = pencil_->norm();
        facts_.norm_b = pencil_->norm_b();
        finish_search(message);
    }
    /// find_pairs() in balanced units. Repeats the search in other units if the pairs found do not
    /// fit them.
    std::string find_in_units(const CsrRows<Wide>& a, const CsrRows<Wide>& b) {
        constexpr int most_solves = 4;
        bool for_largest = false;
        for (int solves = 1;; ++solves) {
            start_slicer_in_units(a, b);
            std::string message = find_pairs();
            // In units for small eigenvalues, B may be so graded that vectors of the eigenvalue 0
            // have no length in its inner product, and that B seems to be singular.
            if ((!facts_.proven || lacks_length()) && !for_largest && !slicer_->is_stopped()) {
                for_largest = true;
                if (units_->choose_for_largest()) {
                    count_work();
                    continue;
                }
            }
            const bool fits =
                !facts_.proven || for_largest || !units_->choose_others(largest_wanted_value());
            if (fits || solves == most_solves || slicer_->is_stopped()) {
                if (!fits) {
                    facts_.proven = false;
                    message =
                        "the eigenvalues found differ so much in size from those expected that no "
                        "units of the unknowns fit them; " +
                        other_methods();
                }
                return message;
            }
            count_work();
        }
    }
    /// True if the pencil is solved in other units of its unknowns. A B that is indefinite in these
    /// units keeps its own, in which its negative eigenvalues are rounding errors.
    bool choose_units(const CsrRows<Wide>& a, const CsrRows<Wide>& b) {
        EigenOptions options = this->options();
        options.target = to_scaled(options.target);
        if (options.window) {
            options.window =
                Window{to_scaled(options.window->low), to_scaled(options.window->high)};
        }
        units_.emplace(a, b, options, which_, stiff_row_ratio<T>());
        if (units_->is_needed()) {
            units_->choose();
            CsrRows<Wide> in_units = b;
            units_->apply(in_units);
            scale_to_one(in_units);
            facts_.has_units = !is_indefinite(in_units);
        }
        facts_.norm = units_->norm_a();
        facts_.norm_b = units_->norm_b();
        if (!facts_.has_units) {
            units_.reset();
        }
        return facts_.has_units;
    }
    void start_slicer_in_units(CsrRows<Wide> a, CsrRows<Wide> b) {
        units_->apply(a);
        units_->apply(b);
        unit_exponents_ = units_->exponents();
        facts_.in_units = {facts_.exponents.a + scale_to_one(a),
                           facts_.exponents.b + scale_to_one(b)};
        start_slicer(std::move(a), std::move(b));
    }
    void start_slicer(CsrRows<Wide> a, std::optional<CsrRows<Wide>> b) {
        slicer_.reset();
        pencil_.emplace(this->ctx().threads(), std::move(a), std::move(b), factorisation());
        SlicerOptions options;
        options.block = static_cast<int>(
            std::min<std::int64_t>(step_width(this->options()), this->dimensions()));
        options.max_basis = this->options().max_basis;
        // In balanced units a smaller one costs many shifts and gives no further digits.
        options.residual =
            std::clamp(0.1 * this->options().tol, facts_.has_units ? 1e-11 : 1e-14, 1e-11);
        options.cluster_residual = 0.1 * this->tolerance();
        options.tolerance = lock_margin * this->tolerance();
        options.accepted = lock_margin * tolerance_in_units();
        if (sizeof(real_t<T>) < sizeof(double)) {
            // The rounding of entries to single precision has separated the copies of a multiple
            // eigenvalue.
            options.resolution = rounding() * pencil_->norm() / pencil_->norm_b();
        }
        options.seed = this->options().seed;
        options.most_between = progress_.most_between;
        if (this->options().max_in_window > 0) {
            options.most_between = std::min(options.most_between, this->options().max_in_window);
        }
        if (this->options().max_iterations > 0) {
            options.most_factorisations = this->options().max_iterations - facts_.factorisations;
        }
        if (progress_.most_factorisations > 0) {
            options.most_factorisations =
                std::min(options.most_factorisations, progress_.most_factorisations);
        }
        options.keep_going = [this](SlicerProgress progress) {
            progress.factorisations += facts_.factorisations;
            progress_.reporting = true;
            send({Step::Kind::progress, 0, progress});
            const bool goes_on = report_step(progress);
            progress_.reporting = false;
            progress_.is_interrupted = progress_.is_interrupted || !goes_on;
            return goes_on;
        };
        slicer_.emplace(*pencil_, options);
    }
    /// Sets facts_.proven; returns the reason why the pairs are not proved, if there is one.
    std::string find_pairs() {
        try {
            facts_.proven = find();
            return slicer_->message();
        } catch (const NumericalError&) {
            if (progress_.reporting || !pencil_->has_b()) {
                throw;
            }
            facts_.proven = false;
            return std::string(
                       "the wanted eigenvectors have no length in the inner product of B, which is "
                       "singular to rounding: their eigenvalues may be infinite; ") +
                   finite_request(this->options(), which_, false, false);
        }
    }
    /// The largest |lambda| of the wanted pairs, as an eigenvalue of the matrices divided by
    /// 2^exponents.
    double largest_wanted_value() {
        std::vector<double> sorted = slicer_->values();
        std::sort(sorted.begin(), sorted.end());
        const double unit = std::ldexp(1.0, value_exponent());
        for (double& value : sorted) {
            value *= unit;
        }
        double largest = 0;
        for (const int i : chosen_among(sorted, pencil_->norm() / pencil_->norm_b()).indices) {
            largest = std::max(largest, std::abs(sorted[static_cast<std::size_t>(i)]));
        }
        return std::ldexp(largest, facts_.exponents.b - facts_.exponents.a);
    }
    void count_work() {
        facts_.factorisations += pencil_->factorisations();
        facts_.solves += pencil_->solves();
        facts_.largest_move = std::max(facts_.largest_move, pencil_->largest_move());
    }
    /// True if x^H B x of a pair found is rounding noise.
    bool lacks_length() const {
        return pencil_->has_b() &&
               slicer_->least_length() <= 4 * epsilon_v<Wide> * pencil_->norm_b();
    }
    void finish_search(std::string message) {
        if (!facts_.proven) {
            const std::string singular = words_of_singular_pencil();
            message = singular.empty() ? message : singular;
        } else if (lacks_length()) {
            // The factorisations count the eigenvalues of a pencil that differs by rounding errors,
            // and these move such eigenvalues by more than their size.
            facts_.proven = false;
            message = "a wanted eigenvector x has x^H B x = " +
                      number_text(slicer_->least_length() / pencil_->norm_b(), 2) +
                      " ||B|| ||x||^2, within rounding errors of 0, so that its eigenvalue may be "
                      "infinite; " +
                      finite_request(this->options(), which_, false, false);
        } else if (facts_.has_units && slicer_->largest_residual() > tolerance_in_units()) {
            facts_.proven = false;
            message = "a residual stays at " + number_text(slicer_->largest_residual(), 2) +
                      " (||A|| + |lambda| ||B||), above the tolerance " +
                      number_text(tolerance_in_units(), 2) +
                      ", in units that make the rows of A and B alike; " + other_methods();
        } else if (slicer_->cluster_is_cut() && slicer_->resolution() > most_resolution()) {
            facts_.proven = false;
            message =
                "the wanted set ends among eigenvalues that differ by less than the "
                "factorisations resolve, " +
                number_text(std::ldexp(slicer_->resolution(), value_exponent()), 2) +
                ": an eigenvalue inside the set may be missing; " + other_methods();
        }
        count_work();
        facts_.cluster_is_cut = slicer_->cluster_is_cut();
        facts_.found = static_cast<std::int64_t>(slicer_->values().size());
        facts_.quotient = pencil_->norm() / pencil_->norm_b();
        facts_.resolution = slicer_->resolution();
        facts_.cut_width = slicer_->cut_width();
        facts_.message.fill(0);
        message.copy(facts_.message.data(), facts_.message.size() - 1);
    }

    /// Finds a superset of the wanted pairs.
    bool find() {
        SpectrumSlicer<Wide>& slicer = *slicer_;
        const EigenOptions& options = this->options();
        const auto largest = [&](int k) {
            slicer.negate();
            const bool proven = slicer.find_smallest(k) && slicer.fill_cluster(options.k);
            slicer.negate();
            return proven;
        };
        if (options.window) {
            const Window window =
                with_slack({to_scaled(options.window->low), to_scaled(options.window->high)},
                           pencil_->norm() / pencil_->norm_b(), rounding());
            return slicer.find_between(window.low, window.high);
        }
        switch (which_) {
            case Which::smallest:
                return slicer.find_smallest(options.k);
            case Which::largest:
                return largest(options.k);
            case Which::both_ends:
                return (options.k < 2 || slicer.find_smallest(options.k / 2)) &&
                       largest(options.k - options.k / 2);
            case Which::largest_magnitude:
                return slicer.find_smallest(options.k) && largest(options.k);
            default:
                return slicer.find_nearest(which_ == Which::target ? to_scaled(options.target) : 0,
                                           options.k);
        }
    }

    /// The cure named at the end of a message.
    std::string other_methods() const {
        if (this->options().window) {
            return this->problem().b == nullptr ? "use filter or dense" : "use dense";
        }
        if (wants_both_ends(which_)) {
            return "solve for each end alone, or use auto or dense";
        }
        const bool is_end = which_ == Which::smallest || which_ == Which::largest;
        return facts_.has_units ? "use dense" : is_end ? "use lobpcg or dense" : "use jd or dense";
    }
    std::string doubt() const override {
        return "the factorisations have large rounding errors; " + other_methods();
    }
    double rounding() const { return attainable_tolerance<T>(0); }
    double tolerance_in_units() const {
        const double least = std::max(attainable_slack * rounding(), attainable_in_units);
        return std::max(this->tolerance(), facts_.has_units ? least : 0);
    }
    /// A wanted set that ends among eigenvalues that differ by less than this is verified.
    double most_resolution() const {
        return 8 * std::max(this->tolerance(), rounding()) * pencil_->scale(0) / pencil_->norm_b();
    }
    int value_exponent() const { return facts_.in_units.a - facts_.in_units.b; }
    double to_scaled(double value) const { return std::ldexp(value, -value_exponent()); }

    Step send(Step step) {
        this->ctx().comm().broadcast(&step, sizeof(step), 0);
        return step;
    }
    /// Collective; false once a callback has asked to stop.
    bool report_step(const SlicerProgress& progress) {
        progress_.steps = progress.factorisations;
        return this->report(progress.found, progress.residual, "search");
    }
    void follow() {
        while (true) {
            const Step step = send({});
            switch (step.kind) {
                case Step::Kind::end:
                    return;
                case Step::Kind::job:
                    mumps_->follow(step.job);
                    break;
                case Step::Kind::progress:
                    report_step(step.progress);
            }
        }
    }

    /// All ranks receive what rank 0 has found, and choose the wanted pairs.
    void share_result() {
        const Comm& comm = this->ctx().comm();
        comm.broadcast(&facts_, sizeof(facts_), 0);
        if (facts_.is_indefinite) {
            throw_indefinite(IndefiniteError::Operand::mass,
                             "shift-invert: B is not positive definite: it is zero or has an "
                             "eigenvalue below -" +
                                 number_text(rounding(), 2) + " ||B||");
        }
        if (facts_.largest_move > 0) {
            this->ctx().emit(
                FallbackEvent{"shift-invert: because a pivot is close to zero, a shift moves by " +
                              number_text(facts_.largest_move, 2) + " ||A||"});
        }
        if (facts_.has_units) {
            this->ctx().emit(FallbackEvent{std::string("shift-invert") + words_of_other_units});
        }
        progress_.steps = facts_.factorisations;
        std::vector<double> found(static_cast<std::size_t>(facts_.found));
        if (slicer_) {
            found = slicer_->values();
        }
        comm.broadcast(found.data(), found.size() * sizeof(double), 0);
        std::vector<int> order(found.size());
        std::iota(order.begin(), order.end(), 0);
        const auto at = [&](int i) { return found[static_cast<std::size_t>(i)]; };
        std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return at(i) < at(j); });
        std::vector<double> sorted;
        sorted.reserve(order.size());
        for (const int i : order) {
            sorted.push_back(std::ldexp(at(i), value_exponent()));
        }
        norm_ = std::ldexp(facts_.norm, facts_.exponents.a);
        norm_b_ = this->problem().b == nullptr ? 0 : std::ldexp(facts_.norm_b, facts_.exponents.b);
        choose(sorted, order);
        send_vectors();
    }

    /// The wanted ones of the eigenvalues found; `quotient`: as in Facts.
    PairChoice chosen_among(const std::vector<double>& sorted, double quotient) const {
        EigenOptions options = this->options();
        options.k = std::min(options.k, static_cast<int>(sorted.size()));
        return select_pairs(sorted, options, which_, std::ldexp(quotient, value_exponent()),
                            rounding());
    }
    void choose(const std::vector<double>& sorted, const std::vector<int>& order) {
        const double unit = std::ldexp(1.0, value_exponent());
        std::vector<int> chosen;
        if (!sorted.empty()) {
            const PairChoice choice = chosen_among(sorted, facts_.quotient);
            chosen = choice.indices;
            tied_ =
                facts_.cluster_is_cut ||
                choice.distance <= unit * std::max(facts_.resolution, rounding() * facts_.quotient);
        }
        for (const int i : chosen) {
            values_.push_back(sorted[static_cast<std::size_t>(i)]);
            chosen_.push_back(order[static_cast<std::size_t>(i)]);
        }
    }

    /// Rank 0 sends the chosen vectors; each rank keeps its rows.
    void send_vectors() {
        const RowMap& map = this->problem().a.row_map();
        const int n = static_cast<int>(map.global_rows());
        const int count = static_cast<int>(chosen_.size());
        this->ctx().comm().agree([&] { vectors_ = BlockVector<T>(this->ctx(), map, count); });
        const auto factor = [&](int row) {
            const int e =
                unit_exponents_.empty() ? 0 : unit_exponents_[static_cast<std::size_t>(row)];
            return std::ldexp(1.0, e - facts_.in_units.b / 2);
        };
        const int most = sent_width(n);
        for (int first = 0; first < count; first += most) {
            SmallMatrix<T> panel(n, std::min(most, count - first));
            for (int j = 0; j < panel.cols() && is_root(); ++j) {
                const BlockView<const Wide> x =
                    found_vector(chosen_[static_cast<std::size_t>(first + j)]);
                for (int i = 0; i < n; ++i) {
                    panel(i, j) = static_cast<T>(factor(i) * x.data[i * x.ld]);
                }
            }
            const auto size = static_cast<std::size_t>(n) * static_cast<std::size_t>(panel.cols());
            this->ctx().comm().broadcast(panel.data(), size * sizeof(T), 0);
            copy(this->ctx(),
                 std::as_const(panel).view().row_range(map.first_row(), map.local_rows()),
                 vectors_.columns(first, panel.cols()));
        }
        slicer_.reset();
        pencil_.reset();
        mumps_.reset();
        cudss_.reset();
    }

    BlockView<const Wide> found_vector(int index) const {
        for (const BlockVector<Wide>& part : slicer_->vectors()) {
            if (index < part.width()) {
                return part.columns(index, 1);
            }
            index -= part.width();
        }
        throw Error(ErrorKind::other, "shift-invert: a pair without a vector");
    }

    bool found() override {
        return facts_.proven && (this->options().window ||
                                 values_.size() >= static_cast<std::size_t>(this->options().k));
    }
    void extend() override {
        std::string text = facts_.message.data();
        text = text.empty() ? "the count of eigenvalues is not proved" : text;
        text += text.find("; ") == std::string::npos ? "; " + other_methods() : "";
        this->give_up_because(text);
    }
    int give_up() override { return static_cast<int>(values_.size()); }
    std::vector<RitzPair> pairs() override { return pairs_; }
    void extract(const std::vector<int>& order, BlockView<T> y) override {
        if (y.cols > 0) {
            gather_columns(this->ctx(), std::as_const(vectors_).view(), order, y);
        }
    }
    void refine_pairs() override {
        pairs_ = ritz_pairs(
            values_, scaled_residuals(this->ctx(), Method::shift_invert, this->problem(),
                                      std::as_const(vectors_).view(), values_, facts_.exponents));
        applications_ += vectors_.width();
    }
    void finish() override {
        if (pairs_.empty()) {
            refine_pairs();
        }
    }
    bool search_again() override { return false; }
    void begin_complement() override {}
    ComplementVerdict complement() override {
        return tied_ ? ComplementVerdict::tied : ComplementVerdict::outside;
    }
    void extend_complement() override {}
    void save(SolverState<T>& /*state*/) override {}
    void restore(const SavedState<T>& /*state*/) override {}

    std::int64_t iterations() const override { return progress_.steps; }
    void describe(EigenResult<T>& result) const override {
        result.operator_applications = facts_.solves + applications_;
        result.block = step_width(this->options());
        result.library = to_string(library_);
        result.cut_depth =
            tied_ ? std::ldexp(facts_.cut_width + facts_.resolution, value_exponent()) : 0;
        if (this->options().window) {
            result.expected_count = static_cast<double>(result.eigenvalues.size());
        }
    }
    double norm() const override { return norm_; }
    double scale(double value) const override { return norm_ + std::abs(value) * norm_b_; }

    Which which_;
    FactorLibrary library_;
    std::int64_t applications_ = 0;
    Progress progress_;
    Facts facts_;
    double norm_ = 0;
    double norm_b_ = 0;
    bool tied_ = false;
    std::vector<double> values_;
    /// For each of values_, its index among the pairs that rank 0 has found.
    std::vector<int> chosen_;
    BlockVector<T> vectors_;
    std::vector<RitzPair> pairs_;
    /// Exists on rank 0 or on all ranks.
    std::unique_ptr<MumpsFactorisation<Wide>> mumps_;
    /// These exist on rank 0 only.
    std::unique_ptr<CudssFactorisation<Wide>> cudss_;
    LdltFactorisation<Wide> ldlt_;
    std::optional<RowUnits<Wide>> units_;
    /// The exponents of the units of the last solve; units_ may have chosen others since.
    std::vector<int> unit_exponents_;
    std::optional<ShiftedPencil<Wide>> pencil_;
    std::optional<SpectrumSlicer<Wide>> slicer_;
};

}  // namespace

template <class T>
EigenResult<T> shift_invert(Context& ctx, const EigenProblem<T>& problem,
                            const EigenOptions& options) {
    const IdentityMass<T> pencil(ctx, problem);
    return verified_search<ShiftInvertSearch>(ctx, pencil.problem(), options);
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> shift_invert(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
