// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/abft.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/operands.hpp"
#include "apps/bench/protected_operations.hpp"
#include "apps/bench/runner.hpp"
#include "apps/execution.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/config.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"

namespace quiver::apps::bench {
namespace {

using nlohmann::ordered_json;

constexpr int width = 8;
constexpr int log_chunk = 12;
constexpr const char* tested_matrix = "gen:laplace3d,nx=24,ny=22,nz=20";
constexpr std::array struck_places{FaultPlace::output, FaultPlace::matrix, FaultPlace::guard,
                                   FaultPlace::input};
/// A fault that changes a sum by more than this many bounds must be found. Rounding may cancel the
/// change by one bound, so one bound is not enough.
constexpr double visible = 2;

/// Counts of the faults of one scalar at one place, by outcome.
struct Tally {
    std::int64_t injected = 0;
    std::int64_t above = 0;
    std::int64_t found = 0;
    std::int64_t mended = 0;
    std::int64_t redone = 0;
    std::int64_t missed = 0;
    /// Found, but the result still differs from the right one.
    std::int64_t wrong = 0;
    /// Products without a fault, and those of them that were reported as faulty.
    std::int64_t clean = 0;
    std::int64_t false_alarms = 0;

    Tally summed(const Comm& comm) const {
        std::array<std::int64_t, 9> all{injected, above, found, mended,      redone,
                                        missed,   wrong, clean, false_alarms};
        comm.sum(std::span<std::int64_t>(all));
        return {all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7], all[8]};
    }
    bool good() const { return missed == 0 && wrong == 0 && false_alarms == 0; }
};

/// The largest |checksum of Y - exact| over its bound.
template <class T>
double effect(const ProtectedMatrix<T>& a, const std::vector<T>& y, const std::vector<T>& exact) {
    using S = checksum_t<T>;
    double worst = 0;
    for (std::size_t j = 0; j < width; ++j) {
        S sums[2] = {};
        for (std::size_t i = 0; i < y.size() / width; ++i) {
            const S change =
                static_cast<S>(y[i * width + j]) - static_cast<S>(exact[i * width + j]);
            const auto row = static_cast<std::int64_t>(i & ((std::size_t{1} << log_chunk) - 1));
            sums[0] += change;
            sums[1] += change * mixed_weight(row);
        }
        for (int k = 0; k < 2; ++k) {
            const double units = std::abs(sums[k]) / a.bound(k, static_cast<int>(j));
            worst = std::isnan(units) ? std::numeric_limits<double>::infinity()
                                      : std::max(worst, units);
        }
    }
    return worst;
}

/// Runs one product with one injected fault on this rank, then restores x and the matrix bit by
/// bit.
template <class T>
void try_fault(Context& ctx, ProtectedMatrix<T>& guarded, FaultPlace place, BlockView<T> x,
               BlockView<T> y, const std::vector<T>& x_right, const std::vector<T>& right,
               Tally& tally) {
    const AbftCounts before = guarded.counts();
    if (place == FaultPlace::input) {
        guarded.apply(ctx, x, y, guarded.encode_input(ctx, x));
    } else {
        guarded.apply(ctx, x, y);
    }
    const AbftCounts& after = guarded.counts();
    if (after.injected == before.injected) {
        return;
    }
    const std::vector<T> result = to_host<T>(ctx, y);
    const bool found = after.faults > before.faults;
    const double left = effect(guarded, result, right);
    const bool same = std::memcmp(result.data(), right.data(), right.size() * sizeof(T)) == 0;
    ++tally.injected;
    tally.found += found ? 1 : 0;
    tally.mended += after.mended - before.mended;
    tally.redone += after.redone - before.redone;
    tally.missed += !found && left > visible ? 1 : 0;
    // If a corrupted input cannot be repaired, the solver must compute it again; it counts as
    // redone.
    tally.wrong += found && !same && !guarded.outcome().input_lost ? 1 : 0;
    // A found fault also counts as above the bound: its change is at least close to the bound.
    tally.above += found || left > visible ? 1 : 0;
    const AbftCounts settled = guarded.counts();
    guarded.audit(ctx);
    if (place == FaultPlace::output && guarded.counts().faults != settled.faults) {
        ++tally.false_alarms;
    }
    copy(ctx, BlockView<const T>(x_right.data(), x.rows, width, width), x);
}

template <class T>
Tally inject_faults(Context& ctx, FaultPlace place, std::int64_t faults, std::uint64_t seed,
                    const Budget& budget) {
    const Comm& comm = ctx.comm();
    const Problem problem = inspect_problem(comm, tested_matrix);
    SparseMatrix<T> a(ctx, load_problem<T>(comm, problem, ctx.threads()));
    InjectOptions inject;
    inject.rate = 1;
    inject.where[static_cast<int>(FaultPlace::output)] = false;
    inject.where[static_cast<int>(place)] = true;
    inject.seed = seed;
    ProtectedMatrix<T> guarded(ctx, a, {AbftMode::correct, inject, log_chunk});
    ProtectedMatrix<T> quiet(ctx, a, {AbftMode::correct, {}, log_chunk});
    BlockVector<T> x(ctx, a.row_map(), width);
    BlockVector<T> y(ctx, a.row_map(), width);
    Tally tally;
    std::vector<T> x_right;
    std::vector<T> right;
    for (std::int64_t trial = 0; trial < faults; ++trial) {
        if (trial % 16 == 0) {
            if (comm.max(std::int64_t{budget.exhausted() ? 1 : 0}) > 0) {
                break;
            }
            fill_random(ctx, seed + static_cast<std::uint64_t>(trial), x);
            x_right = to_host<T>(ctx, x.view());
            quiet.apply(ctx, x.view(), y.view());
            right = to_host<T>(ctx, y.view());
        }
        if (place == FaultPlace::input && comm.size() > 1) {
            break;  // other ranks have already used the corrupted rows: only a solver can recover
        }
        try_fault(ctx, guarded, place, x.view(), y.view(), x_right, right, tally);
    }
    tally.clean = quiet.counts().checked;
    tally.false_alarms += quiet.counts().faults;
    return tally.summed(comm);
}

std::string percent(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? "-"
                      : fmt::format("{:.2f}%",
                                    100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string row_of(const std::string& scalar, const char* place, const Tally& tally) {
    return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", scalar,
                       place, tally.injected, tally.above, tally.found, tally.mended,
                       percent(tally.mended, tally.found), tally.redone, tally.missed, tally.wrong,
                       tally.clean, tally.false_alarms);
}

ordered_json json_of(Dtype scalar, FaultPlace place, const Tally& tally) {
    return {{"scalar", std::string(1, letter(scalar))},
            {"place", to_string(place)},
            {"injected", tally.injected},
            {"above_bound", tally.above},
            {"found", tally.found},
            {"mended", tally.mended},
            {"redone", tally.redone},
            {"missed", tally.missed},
            {"wrong", tally.wrong},
            {"clean_products", tally.clean},
            {"false_alarms", tally.false_alarms}};
}

constexpr const char* coverage_head =
    "| scalar | place | injected | above bound | found | mended | of found | redone | missed | "
    "wrong "
    "| clean products | false alarms |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";

double seconds_of(Context& ctx, int calls, const auto& call) {
    call();
    double least = std::numeric_limits<double>::infinity();
    for (int repeat = 0; repeat < 5; ++repeat) {
        ctx.synchronize();
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) {
            call();
        }
        ctx.synchronize();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        least = std::min(least, passed.count() / calls);
    }
    return ctx.comm().max(least);
}

/// Times products and their checks.
template <class T>
std::string kernel_rows(Context& ctx, SparseMatrix<T>& a, ordered_json& json) {
    BlockVector<T> x(ctx, a.row_map(), width);
    BlockVector<T> y(ctx, a.row_map(), width);
    fill_random(ctx, 1, x);
    const int calls = a.row_map().global_rows() > 1'000'000 ? 4 : 20;
    const double product = seconds_of(ctx, calls, [&] { a.apply(ctx, x.view(), y.view()); });
    std::string text;
    const auto add = [&](const char* what, double seconds) {
        text += fmt::format("| {} | {} | {:.3g} | {:.3f} |\n", letter(dtype_v<T>), what,
                            1e3 * seconds, seconds / product);
        json.push_back({{"scalar", std::string(1, letter(dtype_v<T>))},
                        {"step", what},
                        {"seconds", seconds},
                        {"ratio", seconds / product}});
    };
    add("product", product);
    ProtectedMatrix<T> guarded(ctx, a, {AbftMode::correct, {}, Checksum<T>::default_log_chunk});
    add("product, checked",
        seconds_of(ctx, calls, [&] { guarded.apply(ctx, x.view(), y.view()); }));
    const Checksum<T> known = guarded.encode_input(ctx, x.view());
    add("product, checked, sums of X known",
        seconds_of(ctx, calls, [&] { guarded.apply(ctx, x.view(), y.view(), known); }));
    add("sums of X with those of the matrix",
        seconds_of(ctx, calls, [&] { guarded.encode_input(ctx, x.view()); }));
    add("sums of Y", seconds_of(ctx, calls, [&] {
            Checksum<T>(ctx, y.view(), {}, Checksum<T>::default_log_chunk, WordSums::no);
        }));
    add("parities of the matrix (after an alarm)",
        seconds_of(ctx, calls, [&] { guarded.audit(ctx); }));
    return text;
}

struct Timing {
    double least[3] = {0, 0, 0};
    std::int64_t iterations = 0;
    std::int64_t alarms = 0;
    int rounds = 0;
    bool converged = true;
};

/// Times block Lanczos with --abft off, detect and correct, in interleaved runs.
template <class T>
Timing solve_times(Context& ctx, SparseMatrix<T>& a, const Budget& budget) {
    Timing timing;
    std::fill_n(timing.least, 3, std::numeric_limits<double>::infinity());
    constexpr AbftMode modes[] = {AbftMode::off, AbftMode::detect, AbftMode::correct};
    std::vector<std::unique_ptr<ProtectedMatrix<T>>> guarded;
    for (const AbftMode mode : modes) {
        guarded.push_back(std::make_unique<ProtectedMatrix<T>>(
            ctx, a, AbftOptions{mode, {}, Checksum<T>::default_log_chunk}));
    }
    const auto solve = [&](ProtectedMatrix<T>& op, std::int64_t steps) {
        EigenProblem<T> problem{op};
        problem.protection = &op;
        EigenOptions options;
        options.method = Method::lanczos;
        options.k = width;
        options.block = width;
        options.tol = 1e-6;
        options.max_iterations = steps;
        ctx.synchronize();
        EigenResult<T> result = eigensolve(ctx, problem, options);
        ctx.synchronize();
        return result;
    };
    constexpr std::int64_t steps = 100;
    solve(*guarded[0], 20);
    for (timing.rounds = 0; timing.rounds < 5; ++timing.rounds) {
        if (timing.rounds > 0 && ctx.comm().max(std::int64_t{budget.exhausted() ? 1 : 0}) > 0) {
            break;
        }
        for (std::size_t i = 0; i < guarded.size(); ++i) {
            const EigenResult<T> result = solve(*guarded[i], steps);
            timing.least[i] = std::min(timing.least[i], ctx.comm().max(result.seconds));
            timing.iterations = result.iterations;
        }
    }
    for (const auto& op : guarded) {
        timing.alarms += op->counts().alarms;
    }
    return timing;
}

/// The table of protected operations.
class OperationTable {
  public:
    static constexpr const char* head =
        "\n| scalar | operation | rows | m | n | kernel ms | detect ms | correct ms | detect over "
        "kernel | correct over kernel | same bits "
        "|\n|---|---|---|---|---|---|---|---|---|---|---|\n";

    std::string add(const OperationTimes& times) {
        const auto& [kernel, detect, correct] = times.seconds;
        good_ = good_ && times.good;
        json_.push_back({{"scalar", std::string(1, letter(times.scalar))},
                         {"operation", times.operation},
                         {"rows", times.rows},
                         {"m", times.m},
                         {"n", times.n},
                         {"kernel_seconds", kernel},
                         {"detect_seconds", detect},
                         {"correct_seconds", correct},
                         {"detect_ratio", detect / kernel},
                         {"correct_ratio", correct / kernel},
                         {"outcome", times.good ? "passed" : "incorrect"}});
        return fmt::format(
            "| {} | {} | {} | {} | {} | {:.4g} | {:.4g} | {:.4g} | {:.2f} | {:.2f} | {} |\n",
            letter(times.scalar), times.operation, times.rows, times.m, times.n, 1e3 * kernel,
            1e3 * detect, 1e3 * correct, detect / kernel, correct / kernel,
            times.good ? "yes" : "**NO**");
    }
    const ordered_json& json() const { return json_; }
    bool good() const { return good_; }

  private:
    ordered_json json_ = ordered_json::array();
    bool good_ = true;
};

/// The options, parsed.
struct Plan {
    std::vector<Dtype> scalars;
    OperationCases operations;
};

/// Throws InputError for options that are invalid. `rows` stays empty if --rows is not given.
Plan plan_of(const AbftBenchOptions& options) {
    if (options.faults < 1) {
        throw InputError(fmt::format("--faults {}: at least 1", options.faults));
    }
    Plan plan;
    const std::string scalars = options.scalars.empty() ? "d" : options.scalars;
    plan.scalars = parse_scalars(scalars);
    if (std::any_of(plan.scalars.begin(), plan.scalars.end(),
                    [](Dtype scalar) { return scalar == Dtype::h || scalar == Dtype::b; })) {
        throw InputError(fmt::format("--scalar {}: bench abft takes s, d, c, z", scalars));
    }
    for (const Shape& shape : parse_widths(options.widths.empty() ? "8,32" : options.widths)) {
        plan.operations.widths.push_back(shape.n);
    }
    if (!options.rows.empty()) {
        plan.operations.rows = parse_rows(options.rows);
    }
    plan.operations.samples = options.repeat;
    return plan;
}

ordered_json header_of(const Context& ctx, const AbftBenchOptions& options) {
    const bool cuda = ctx.place() == Place::device;
    return {{"schema", 4},
            {"command", "bench"},
            {"version", config::version},
            {"kernel", "abft"},
            {"repeat", options.repeat},
            {"budget", options.budget},
            {"environment",
             {{"device", cuda ? "cuda" : "host"},
              {"gpu", cuda ? device::properties(ctx.device().id).name : ""},
              {"threads", ctx.threads()},
              {"ranks", ctx.comm().size()}}},
            {"runs", {{{"date", utc_now()}, {"command_line", options.command}}}},
            {"matrix", options.matrix}};
}

/// The printed text, the same results as JSON, and whether all results are correct.
struct Report {
    const Comm& comm;
    std::FILE* stream;
    ordered_json json;
    std::string text = {};
    bool good = true;

    void say(const std::string& more) {
        print(comm, more, stream);
        text += more;
    }
};

/// Throws InputError if the matrix is not Hermitian or too small. If `all_rows` is empty, appends
/// the number of rows of the matrix. Then divides each entry by the number of ranks.
void choose_rows(const Comm& comm, const Problem& problem, std::vector<std::int64_t>& all_rows) {
    visit_dtype(choose_scalar(problem, "auto"), [&]<class T>() {
        CsrRows<T> rows = load_problem<T>(comm, problem, 1);
        require_hermitian(comm, problem, rows, 1);
        if (rows.map.global_rows() < 2 * width) {
            throw InputError(fmt::format("bench abft times solves with {} columns, {} has {}",
                                         width, problem.spec,
                                         plural(rows.map.global_rows(), "row")));
        }
        if (all_rows.empty()) {
            all_rows.push_back(rows.map.global_rows());
        }
    });
    for (std::int64_t& rows : all_rows) {
        rows = std::max<std::int64_t>(1, rows / comm.size());
    }
}

void report_coverage(Context& ctx, const Plan& plan, const AbftBenchOptions& options,
                     const Budget& budget, Report& report) {
    const int ranks = ctx.comm().size();
    report.say(
        fmt::format("    {}\n\n{}, {}. One flipped bit a product on each rank, {}, width {}.\n\n{}",
                    options.command,
                    ctx.place() == Place::host ? "Host, " + plural(ctx.threads(), "thread")
                                               : std::string("GPU"),
                    plural(ranks, "rank"), tested_matrix, width, coverage_head));
    const auto cells = static_cast<std::int64_t>(plan.scalars.size() * struck_places.size());
    const std::int64_t each =
        std::max<std::int64_t>(1, (options.faults + cells * ranks - 1) / (cells * ranks));
    report.json["faults"] = ordered_json::array();
    for (const Dtype scalar : plan.scalars) {
        for (const FaultPlace place : struck_places) {
            const Tally tally = visit_dtype(scalar, [&]<class T>() {
                return inject_faults<T>(ctx, place, each, options.seed, budget);
            });
            if (tally.injected == 0) {
                continue;
            }
            report.say(row_of(std::string(1, letter(scalar)), to_string(place), tally));
            report.json["faults"].push_back(json_of(scalar, place, tally));
            report.good = report.good && tally.good();
        }
    }
}

void time_all_operations(Context& ctx, Plan& plan, const Budget& budget, Report& report) {
    report.say(OperationTable::head);
    OperationTable operations;
    int left_out = 0;
    for (const Dtype scalar : plan.scalars) {
        plan.operations.scalar = scalar;
        left_out += time_operations(ctx, plan.operations, budget, [&](const OperationTimes& times) {
            report.say(operations.add(times));
        });
    }
    if (left_out > 0) {
        report.say(fmt::format("\nNot run, because the budget was spent: {}.\n",
                               plural(left_out, "operation")));
    }
    report.json["operations"] = operations.json();
    report.json["operations_not_run"] = left_out;
    report.good = report.good && operations.good();
}

/// Reports the times of products and of block Lanczos.
template <class T>
void time_matrix(Context& ctx, const Problem& problem, const Budget& budget, Report& report) {
    report.say("\n| scalar | step | ms | over the product |\n|---|---|---|---|\n");
    SparseMatrix<T> a(ctx, load_problem<T>(ctx.comm(), problem, ctx.threads()));
    report.json["steps"] = ordered_json::array();
    report.say(kernel_rows<T>(ctx, a, report.json["steps"]));
    const Timing timing = solve_times<T>(ctx, a, budget);
    report.say(
        fmt::format("\n{}, {} rows, block Lanczos, {} steps of {} columns, least of {}:\n\n"
                    "| abft | seconds | over off |\n|---|---|---|\n",
                    problem.spec, a.row_map().global_rows(), timing.iterations, width,
                    plural(timing.rounds, "run")));
    report.json["solves"] = ordered_json::array();
    for (int i = 0; i < 3; ++i) {
        const char* const mode = to_string(static_cast<AbftMode>(i));
        const double ratio = timing.least[i] / timing.least[0];
        report.say(fmt::format("| {} | {:.4g} | {:.3f} |\n", mode, timing.least[i], ratio));
        report.json["solves"].push_back({{"abft", mode},
                                         {"steps", timing.iterations},
                                         {"runs", timing.rounds},
                                         {"seconds", timing.least[i]},
                                         {"ratio", ratio}});
    }
    report.good = report.good && timing.alarms == 0;
}

}  // namespace

bool run_abft(const Comm& comm, const AbftBenchOptions& options) {
    Plan plan;
    comm.agree([&] {
        check_common(comm, options);
        plan = plan_of(options);
    });
    const Problem problem = inspect_problem(comm, options.matrix);
    choose_rows(comm, problem, plan.operations.rows);
    const Budget budget(options.budget);
    const Budget for_faults(options.budget / 2);
    Context ctx(comm, choose_execution(comm, options.device).device);
    Report report{comm, table_stream({options.json, options.markdown}), header_of(ctx, options)};
    report_coverage(ctx, plan, options, for_faults, report);
    time_all_operations(ctx, plan, budget, report);
    visit_dtype(choose_scalar(problem, "auto"),
                [&]<class T>() { time_matrix<T>(ctx, problem, budget, report); });
    if (!options.json.empty()) {
        write_on_rank_0(comm, options.json, [&] { return report.json.dump(1) + "\n"; });
    }
    if (!options.markdown.empty()) {
        write_on_rank_0(comm, options.markdown, [&] { return report.text; });
    }
    return report.good;
}

}  // namespace quiver::apps::bench
