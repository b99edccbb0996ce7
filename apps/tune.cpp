// SPDX-License-Identifier: BSD-3-Clause
// `quiver tune`: searches for the fastest plans of the dense products on this GPU.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/bench/case.hpp"
#include "apps/bench/words.hpp"
#include "apps/execution.hpp"
#include "apps/number_option.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/error.hpp"
#include "kernels/tuning.hpp"

namespace quiver::apps {
namespace {

struct TuneCommand {
    std::string kernel = "tsmttsm,tsmm";
    std::string scalar = "s,d,c,z";
    std::string widths;
    std::string shapes;
    int random_shapes = 0;
    std::uint64_t seed = 1;
    bool gram_schmidt = false;
    int candidates = 16;
    double operand_bytes = 0;
    double budget = 600;
    bool again = false;
    std::string output;
};

std::vector<bench::Shape> shapes_of(const TuneCommand& command) {
    std::vector<bench::Shape> shapes;
    const auto append = [&](const std::vector<bench::Shape>& more) {
        shapes.insert(shapes.end(), more.begin(), more.end());
    };
    const bool none = command.widths.empty() && command.shapes.empty() &&
                      command.random_shapes == 0 && !command.gram_schmidt;
    if (none || !command.widths.empty()) {
        std::vector<bench::Shape> square = bench::parse_widths(none ? "1:64" : command.widths);
        bench::order_by_meaning(square);
        append(square);
    }
    if (!command.shapes.empty()) {
        append(bench::parse_shapes(command.shapes));
    }
    if (command.gram_schmidt) {
        append(bench::gram_schmidt_shapes());
    }
    append(bench::random_shapes(command.random_shapes, command.seed));
    return shapes;
}

/// The cases of all scalars, shapes and kernels, without duplicates. The kernel gram is tsmttsm
/// with A = B, for square shapes only. For tsmm a Gram-Schmidt shape means m columns of the basis
/// times an m x n matrix.
std::vector<TuneCase> cases_of(const TuneCommand& command) {
    std::vector<TuneCase> cases;
    std::set<std::string> seen;
    for (const Dtype scalar : bench::parse_scalars(command.scalar)) {
        for (const bench::Shape& shape : shapes_of(command)) {
            for (const std::string& name : bench::split_list("KERNEL", command.kernel)) {
                if (name != "tsmttsm" && name != "tsmm" && name != "gram") {
                    throw InputError(fmt::format(
                        "tune: \"{}\" is not one of tsmttsm, tsmm, gram (tsmttsm with A = B)",
                        name));
                }
                const bool same = name == "gram";
                if (same && shape.m != shape.n) {
                    continue;
                }
                const TuneCase which{same ? "tsmttsm" : name, scalar, shape.m, shape.n, same};
                if (seen.insert(tuning_row(which)).second) {
                    cases.push_back(which);
                }
            }
        }
    }
    return cases;
}

std::string row_of(const TuneResult& result) {
    const double gain = result.former_seconds > 0 ? result.former_seconds / result.seconds : 1;
    std::string text =
        fmt::format("{:<24} {:>9.1f} us  model's first {:>5.1f}%  gain {:>5.2f}  {:>2} timed  {}\n",
                    tuning_row(result.which), 1e6 * result.seconds,
                    result.model_seconds > 0 ? 100 * result.seconds / result.model_seconds : 0,
                    gain, result.timed, result.plan.empty() ? "no plan ran" : result.plan);
    for (const std::string& reason : result.rejected) {
        text += "    rejected: " + reason + "\n";
    }
    return text;
}

int run_tune(const Comm& comm, const TuneCommand& command) {
    std::vector<TuneCase> cases;
    comm.agree([&] {
        if (comm.size() > 1) {
            throw InputError("tune: one process times one GPU; run it without mpirun");
        }
        cases = cases_of(command);
        if (command.candidates < 1 || !(command.budget > 0)) {
            throw InputError(fmt::format("tune: --candidates {} and --budget {} must be above 0",
                                         command.candidates, command.budget));
        }
    });
    const Execution execution = choose_execution(comm, "cuda");
    const std::string file = command.output.empty() ? default_tuning_file() : command.output;
    if (file.empty()) {
        throw InputError("tune: no folder for the table; give -o FILE or set QUIVER_TUNING");
    }
    comm.agree([&] { check_writable(file, "-o", "a table that is read before it is written"); });
    Context ctx(Comm(comm), execution.device);
    if (!command.again) {
        const std::vector<std::string> rows = tuned_rows(ctx, file);
        const std::set<std::string> done(rows.begin(), rows.end());
        std::erase_if(cases,
                      [&](const TuneCase& which) { return done.contains(tuning_row(which)); });
    }
    fmt::print("{} cases to tune, table {}\n", cases.size(), file);
    TuneOptions options;
    options.candidates = command.candidates;
    options.operand_bytes = command.operand_bytes;
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto begin = std::chrono::steady_clock::now();
    const auto spent = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    std::size_t at = 0;
    double log_share = 0;
    int shares = 0;
    constexpr std::size_t together = 16;
    for (; at < cases.size() && (at == 0 || spent() < command.budget); at += together) {
        std::vector<TuneResult> results;
        const std::span<const TuneCase> part(cases.data() + at,
                                             std::min(together, cases.size() - at));
        tune(ctx, part, options, [&](const TuneResult& result) {
            results.push_back(result);
            if (result.model_seconds > 0 && result.seconds > 0) {
                log_share += std::log(result.seconds / result.model_seconds);
                ++shares;
            }
            fmt::print("{}", row_of(result));
            std::fflush(stdout);
        });
        save_tuning(ctx, file, results);
    }
    if (shares > 0) {
        fmt::print(
            "model's first choice: {:.1f}% of the searched optimum's speed (geometric mean "
            "of {} cases)\n",
            100 * std::exp(log_share / shares), shares);
    }
    if (at < cases.size()) {
        fmt::print("{} cases left after the budget of {:.0f} s: run the command again\n",
                   cases.size() - at, command.budget);
    }
    return success;
}

constexpr const char* tune_examples = R"(Examples:
  quiver tune                                      every square width in all scalars
  quiver tune tsmm --scalar z --widths 1:16        one kernel, scalar z, widths to 16
  quiver tune --gram-schmidt --random-shapes 60    shapes of Gram-Schmidt, and 60 random shapes
The table is saved after every few cases, by default where the library looks for it. A later call
continues with the cases that are not in the table.)";

}  // namespace

void add_tune(CLI::App& app, Action& chosen) {
    auto command = std::make_shared<TuneCommand>();
    CLI::App* tune = app.add_subcommand(
        "tune", "Search for the fastest plans of the dense products on this GPU");
    tune->footer(tune_examples);
    tune->add_option("KERNEL", command->kernel, "List of tsmttsm, tsmm, gram")
        ->capture_default_str();
    tune->add_option("--scalar", command->scalar, "List of s, d, c, z")->capture_default_str();
    tune->add_option("--widths", command->widths, "Square shapes, as 1:64 or 4,8,16");
    tune->add_option("--shapes", command->shapes, "Shapes, as 40x4,200x8");
    add_number(*tune, "--random-shapes", command->random_shapes,
               "Number of random shapes, m and n up to 64");
    add_number(*tune, "--seed", command->seed, "Seed of the random shapes");
    tune->add_flag("--gram-schmidt", command->gram_schmidt, "Shapes with m in 20..400, n in 1..16");
    add_number(*tune, "--candidates", command->candidates, "Plans timed for each case");
    add_number(*tune, "--operand-bytes", command->operand_bytes,
               "Bytes of the operands; 0: 1 GB, but at most a quarter of the free memory");
    add_number(*tune, "--budget", command->budget, "Seconds after which no further case starts");
    tune->add_flag("--again", command->again, "Also tune cases that the table already has");
    tune->add_option("-o,--output", command->output, "Table to read and write");
    tune->callback([command, &chosen] {
        chosen = [command](const Comm& comm) { return run_tune(comm, *command); };
    });
}

}  // namespace quiver::apps
