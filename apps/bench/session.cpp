// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/session.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "apps/bench/bench_report.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/reproduce.hpp"
#include "apps/bench/words.hpp"
#include "apps/execution.hpp"
#include "apps/report.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

/// Blocks of at most this many rows count as short: the fixed cost of a call then matters.
constexpr std::int64_t most_short_rows = 1'000'000;
constexpr int calls_on_short_rows = 100;
constexpr double save_every_seconds = 15;

/// The cases of a session.
struct Plan {
    /// KERNEL or PAPER.
    std::string name;
    /// The cases for operands of `operand_bytes`.
    std::function<std::vector<Case>(double operand_bytes)> cases;
    /// Whether the command line gives numbers of rows.
    bool has_rows = false;
    std::vector<std::string> tilings = {};
    /// Figures to measure instead of the cases.
    std::vector<const Figure*> figures = {};
};

/// Measures the cases of a plan that the resumed session lacks.
class Measurement {
  public:
    Measurement(const Comm& comm, const SessionOptions& options, Plan plan);
    /// Returns the worst outcome.
    Outcome run();

  private:
    void choose_cases();
    void start_document();
    /// Throws InputError for a session of another machine.
    void resume();
    void add_run();
    std::vector<Result> measure(const Case& c, const std::vector<Variant>& variants);
    void run_figures();
    bool is_short(const Case& c) const;
    void show(const std::vector<Result>& results);
    void save();
    void report();

    const SessionOptions& options_;
    Plan plan_;
    Execution execution_;
    Budget budget_;
    Context ctx_;
    Rivals rivals_;
    std::optional<EnergyMeter> energy_;
    double default_bytes_;
    double caches_;
    double operand_bytes_;
    std::vector<Case> cases_;
    Document document_;
    /// Number of cases that the resumed session already has.
    std::size_t kept_ = 0;
    double saved_ = 0;
};

void check_session(const Comm& comm, const SessionOptions& options);
Outcome worst_outcome(const Session& session);
void print_failures(const Session& session);
std::vector<std::string> split_tilings(const std::string& text);

}  // namespace

Outcome run_kernels(const Comm& comm, const KernelsOptions& options) {
    std::vector<Case> cases;
    comm.agree([&] {
        require_one_process(comm);
        check_session(comm, options);
        cases = choose_cases(options.cases);
    });
    Plan plan{options.cases.kernel, [&](double) { return cases; }, !options.cases.rows.empty(),
              split_tilings(options.cases.tilings)};
    return Measurement(comm, options, std::move(plan)).run();
}

Outcome run_reproduce(const Comm& comm, const ReproduceOptions& options) {
    comm.agree([&] {
        require_one_process(comm);
        check_session(comm, options);
        cases_of(options.paper, 1);
        if (!options.figures.empty()) {
            figures_of(options.paper, options.figures);
            if (!options.resume.empty()) {
                throw InputError("--resume: a figure (--figure) is measured in one run");
            }
        }
    });
    Plan plan{options.paper, [&](double bytes) { return cases_of(options.paper, bytes); }};
    if (!options.figures.empty()) {
        plan.cases = [](double) { return std::vector<Case>(); };
        plan.figures = figures_of(options.paper, options.figures);
    }
    return Measurement(comm, options, std::move(plan)).run();
}

Outcome run_summary(const Comm& comm, const SummaryOptions& options) {
    Document merged;
    comm.agree([&] {
        require_one_process(comm);
        if (!options.json.empty()) {
            check_writable(options.json, "--json");
        }
        std::vector<Document> documents;
        for (const std::string& file : options.files) {
            documents.push_back(read_document(file));
        }
        merged = merge(documents);
    });
    const std::string text = summary(merged);
    print(comm, text.empty() ? "no case was measured\n" : text.substr(1),
          table_stream({options.json}));
    if (!options.json.empty()) {
        write_file(options.json, to_json(merged));
    }
    return worst_outcome(merged.session);
}

namespace {

Outcome Measurement::run() {
    choose_cases();
    start_document();
    Session& session = document_.session;
    Run& run = session.runs.back();
    run.ceilings = measure_ceilings(ctx_, default_bytes_, least_cold_caches * caches_);
    print(ctx_.comm(), table_head(document_.environment, run.ceilings));
    std::vector<Variant> variants;
    for (const std::string& tiling : plan_.tilings) {
        variants.push_back({tiling_name(tiling), {.sparse = tiling}});
    }
    run_all(
        cases_, budget_, [&](const Case& c) { return measure(c, variants); },
        [&](const std::vector<Result>& results) { show(results); }, session);
    run_figures();
    save();
    report();
    return worst_outcome(session);
}

Measurement::Measurement(const Comm& comm, const SessionOptions& options, Plan plan)
    : options_(options),
      plan_(std::move(plan)),
      execution_(choose_execution(comm, options.device)),
      budget_(options.budget),
      ctx_(comm, execution_.device) {
    const bool variants = options.model || options.atomics || !plan_.tilings.empty();
    if (variants && ctx_.place() == Place::host) {
        throw InputError(fmt::format("--{}: only kernels on a GPU have a choice of plans",
                                     options.model     ? "model"
                                     : options.atomics ? "atomics"
                                                       : "tilings"));
    }
    if (!plan_.figures.empty() && ctx_.place() == Place::host) {
        throw InputError(
            fmt::format("--figure {}: compares kernels on a GPU, and this run uses the host{}",
                        plan_.figures.front()->name,
                        execution_.note.empty() ? "" : " (no GPU: " + execution_.note + ")"));
    }
    rivals_ = make_rivals(ctx_, options.rivals);
    if (options.energy) {
        energy_.emplace(ctx_);
    }
    caches_ = options.cache_bytes > 0 ? options.cache_bytes : cache_bytes(ctx_);
    default_bytes_ = default_operand_bytes(ctx_, caches_);
    operand_bytes_ = options.operand_bytes > 0 ? options.operand_bytes : default_bytes_;
}

void Measurement::choose_cases() {
    cases_ = plan_.cases(operand_bytes_);
    measure_matrix(ctx_, cases_);
    choose_rows(operand_bytes_, cases_);
}

void Measurement::start_document() {
    document_.kernel = plan_.name;
    document_.repeat = options_.repeat;
    document_.budget = options_.budget;
    document_.environment = describe_environment(ctx_, execution_.note, rivals_, caches_);
    Run run;
    run.date = utc_now();
    run.command = options_.command;
    for (const auto& [name, version] : document_.environment.rivals) {
        run.rivals.push_back(name);
    }
    if (options_.model) {
        run.rivals.emplace_back(model_name);
    }
    if (options_.atomics) {
        run.rivals.emplace_back(atomics_name);
    }
    for (const std::string& tiling : plan_.tilings) {
        run.rivals.push_back(tiling_name(tiling));
    }
    Session& session = document_.session;
    if (!options_.resume.empty() && std::filesystem::exists(options_.resume)) {
        resume();
    }
    session.runs.push_back(run);
    kept_ = std::erase_if(cases_, [&](const Case& c) { return session.has(c, run.rivals); });
}

void Measurement::resume() {
    Document former = read_document(options_.resume);
    Environment& here = document_.environment;
    const Environment& there = former.environment;
    if (there.device != here.device || there.gpu != here.gpu || there.cpu != here.cpu ||
        there.threads != here.threads) {
        throw InputError(fmt::format(
            "--resume {}: measured on {} {}, {} threads, not on this machine's {} {}, {} threads",
            options_.resume, there.cpu, there.gpu, there.threads, here.cpu, here.gpu,
            here.threads));
    }
    here.rivals.insert(there.rivals.begin(), there.rivals.end());
    document_.session = std::move(former.session);
    document_.session.not_run.clear();
}

bool Measurement::is_short(const Case& c) const {
    return ctx_.place() == Place::device && c.kernel->few_rows_are_short() &&
           c.rows <= most_short_rows && (plan_.has_rows || c.kernel->bytes(c) < operand_bytes_ / 2);
}

/// Prints only the tables of the figures, and the lines of results that are missing or incorrect.
void Measurement::run_figures() {
    Session& session = document_.session;
    for (const Figure* const figure : plan_.figures) {
        const std::vector<FigurePoint> points = points_of(ctx_, *figure, operand_bytes_);
        for (const auto& [c, variants] : variants_of(points)) {
            if (budget_.exhausted()) {
                add_once(session.not_run, c);
                continue;
            }
            const std::vector<Result> results = measure(c, variants);
            for (const Result& result : results) {
                if (result.outcome == Outcome::incorrect || (result.ours() && !result.measured())) {
                    print(ctx_.comm(), table_row(result));
                }
            }
            session.add(results);
        }
        document_.figures.push_back(table_of(plan_.name, *figure, points, session));
        print(ctx_.comm(), to_text(document_.figures.back()));
    }
}

std::vector<Result> Measurement::measure(const Case& c, const std::vector<Variant>& variants) {
    const MeasureOptions measuring{.repeat = options_.repeat,
                                   .least_bytes = cold_caches * caches_,
                                   .least_calls = is_short(c) ? calls_on_short_rows : 1,
                                   .model = options_.model,
                                   .atomics = options_.atomics,
                                   .variants = variants,
                                   .energy = energy_ ? &*energy_ : nullptr};
    std::vector<Result> results = run_case(ctx_, c, rivals_, measuring, budget_);
    for (Result& result : results) {
        hold_against(document_.session.runs.back().ceilings, is_short(c), result);
    }
    return results;
}

void Measurement::show(const std::vector<Result>& results) {
    for (const Result& result : results) {
        print(ctx_.comm(), table_row(result));
    }
    // Save from time to time, so that a killed run loses few results.
    if (budget_.spent() - saved_ > save_every_seconds) {
        save();
    }
}

void Measurement::save() {
    document_.session.runs.back().seconds = saved_ = budget_.spent();
    const std::string& file = options_.json.empty() ? options_.resume : options_.json;
    if (!file.empty()) {
        write_file(file, to_json(document_));
    }
}

void Measurement::report() {
    const Comm& comm = ctx_.comm();
    print(comm, table_foot(document_.session, budget_.spent()));
    print(comm, not_compared(document_));
    if (kept_ > 0) {
        const auto all = static_cast<std::int64_t>(cases_.size() + kept_);
        print(comm, fmt::format("resumed     {} of {} were measured before\n", kept_,
                                plural(all, "case")));
    }
    print(comm, summary(document_));
    if (plan_.figures.empty()) {
        print(comm, compare_with(plan_.name, document_.session));
    }
    print_failures(document_.session);
}

void check_session(const Comm& comm, const SessionOptions& options) {
    check_common(comm, options);
    for (const auto& [option, bytes, other] :
         {std::tuple("--operand-bytes", options.operand_bytes, "to let bench choose"),
          std::tuple("--cache-bytes", options.cache_bytes, "for what the system reports")}) {
        if (bytes != 0 && !(bytes >= 1 && bytes <= 1e15)) {
            throw InputError(
                fmt::format("{} {}: a number from 1 to 1e15, or 0 {}", option, bytes, other));
        }
    }
    check_rivals(options.rivals);
    for (const auto& [option, file] :
         {std::pair("--json", options.json), std::pair("--resume", options.resume)}) {
        if (!file.empty()) {
            check_writable(file, option, "a session, which is saved repeatedly,");
        }
    }
}

Outcome worst_outcome(const Session& session) {
    return session.any(Outcome::incorrect) ? Outcome::incorrect
           : session.any(Outcome::failed)  ? Outcome::failed
                                           : Outcome::passed;
}

/// Prints one line to stderr, for scripts, with the numbers of failed and incorrect cases; failures
/// of rivals count too.
void print_failures(const Session& session) {
    std::vector<Case> without_result;
    std::vector<Case> incorrect;
    for (const Result& result : session.results) {
        if (!result.measured()) {
            add_once(without_result, result.which);
        } else if (result.outcome == Outcome::incorrect) {
            add_once(incorrect, result.which);
        }
    }
    if (!without_result.empty() || !incorrect.empty()) {
        fmt::print(stderr, "quiver: bench: {} of {} failed to run, {} incorrect\n",
                   without_result.size(),
                   plural(std::count_if(session.results.begin(), session.results.end(),
                                        [](const Result& r) { return r.ours(); }),
                          "case"),
                   incorrect.size());
    }
}

/// Splits "ahead=0/threads=256,waves=2" into two settings.
std::vector<std::string> split_tilings(const std::string& text) {
    std::vector<std::string> tilings;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, '/');) {
        tilings.push_back(word);
    }
    return tilings;
}

}  // namespace
}  // namespace quiver::apps::bench
