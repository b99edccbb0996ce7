// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench`: which cases, where, and the report.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/bench/bench_report.hpp"
#include "apps/bench/runner.hpp"
#include "apps/bench/stencil.hpp"
#include "apps/execution.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

using bench::Case;
using bench::Kernel;
using bench::Shape;

struct BenchOptions {
    std::string kernel;
    std::string scalar = "d";
    std::string widths;
    std::string shapes;
    std::int64_t rows = 0;
    std::string device = "auto";
    double budget = 60;
    int repeat = 20;
    std::string json;
    /// A file without a name is an error.
    bool json_given = false;
};

std::vector<Kernel> chosen_kernels(const std::string& name) {
    if (name == "all") {
        return {std::begin(bench::all_kernels), std::end(bench::all_kernels)};
    }
    const auto kernel = bench::kernel_of(name);
    if (!kernel) {
        std::string known;
        for (const Kernel each : bench::all_kernels) {
            known += fmt::format("{}, ", bench::to_string(each));
        }
        throw InputError(fmt::format("there is no kernel {}: {}or all", name, known));
    }
    return {*kernel};
}

void check_options(const BenchOptions& options) {
    if (options.rows < 0) {
        throw InputError(
            fmt::format("--rows {}: at least 1, or 0 to let bench choose", options.rows));
    }
    if (options.repeat < 3) {
        throw InputError(
            fmt::format("--repeat {}: quartiles take at least 3 samples", options.repeat));
    }
    if (!(options.budget > 0) || !std::isfinite(options.budget)) {
        throw InputError(fmt::format("--budget {}: a number of seconds above 0", options.budget));
    }
}

/// Kernel, scalar and shape of every case, the most telling first; rows are chosen later.
std::vector<Case> chosen_cases(const BenchOptions& options) {
    const std::vector<Kernel> kernels = chosen_kernels(options.kernel);
    const std::vector<Dtype> scalars = bench::parse_scalars(options.scalar);
    std::vector<Shape> shapes;
    if (!options.shapes.empty()) {
        shapes = bench::parse_shapes(options.shapes);
    }
    if (!options.widths.empty() || options.shapes.empty()) {
        std::vector<Shape> square =
            bench::parse_widths(options.widths.empty() ? "1,2,4,8,16,32,64" : options.widths);
        bench::order_by_meaning(square);
        shapes.insert(shapes.end(), square.begin(), square.end());
    }
    std::vector<Case> cases;
    for (const Shape& shape : shapes) {
        for (const Dtype scalar : scalars) {
            for (const Kernel kernel : kernels) {
                if (shape.m != shape.n && !bench::has_two_widths(kernel)) {
                    throw InputError(fmt::format("--shapes {}x{}: {} has one width", shape.m,
                                                 shape.n, bench::to_string(kernel)));
                }
                cases.push_back({kernel, scalar, shape, 1});
            }
        }
    }
    return cases;
}

void choose_rows(std::int64_t wanted, double operand_bytes, std::vector<Case>& cases) {
    for (Case& c : cases) {
        const bool sparse = c.kernel == Kernel::spmmv;
        // A matrix is made on the host first, which takes a while; a quarter is still far above
        // the caches.
        c.rows =
            wanted > 0 ? wanted : bench::rows_for(c, sparse ? operand_bytes / 4 : operand_bytes);
        if (sparse) {
            c.rows = bench::Stencil(c.rows).rows();
        }
    }
}

int run_bench(const Comm& comm, const BenchOptions& options) {
    std::vector<Case> cases;
    comm.agree([&] {
        if (comm.size() > 1) {
            throw InputError(fmt::format(
                "bench times the kernels of one process: run it without mpirun, not on {} ranks",
                comm.size()));
        }
        check_options(options);
        cases = chosen_cases(options);
        if (options.json_given) {
            check_writable(options.json);
        }
    });
    const Execution execution = choose_execution(comm, options.device);
    const bench::Budget budget(options.budget);
    Context ctx(comm, execution.device);
    choose_rows(options.rows, bench::default_operand_bytes(ctx), cases);
    const bench::Environment environment = bench::describe_environment(ctx, execution.note);
    const bench::Ceilings ceilings = bench::measure_ceilings(ctx);
    print(comm, bench::table_head(environment, ceilings));

    const bench::MeasureOptions measuring{options.repeat, 2 * environment.cache_bytes};
    const auto run = [&](const Case& c) {
        return visit_dtype(c.scalar, [&]<class T>() {
            auto providers = bench::make_providers<T>();
            auto results = bench::run_case(ctx, c, providers, measuring, budget);
            for (bench::Result& result : results) {
                bench::hold_against(ceilings, result);
            }
            return results;
        });
    };
    const auto show = [&](const bench::Result& result) { print(comm, bench::table_row(result)); };
    const bench::Session session = bench::run_all(cases, budget, run, show);
    const double seconds = budget.spent();
    print(comm, bench::table_foot(session, seconds));
    if (options.json_given) {
        write_file(options.json, bench::to_json(environment, ceilings,
                                                {options.kernel, options.repeat, options.budget},
                                                session, seconds));
    }
    if (session.any(bench::Outcome::incorrect)) {
        return not_converged;
    }
    return session.any(bench::Outcome::failed) ? failed : success;
}

constexpr const char* examples =
    R"(KERNEL is tsmttsm (C = X^H Y), tsmm (Y = X C), axpby (Y = a X + b Y), dots (x_j^H y_j),
spmmv (Y = A X for a 3D Laplacian) or all.

Examples:
  quiver bench tsmttsm
  quiver bench tsmm --widths 1:64 --scalar d,z --budget 300 --json tsmm.json
  quiver bench tsmttsm --shapes 64x8,8x64 --device cuda
  quiver bench all --rows 100000

Exit status: 0 every result is correct; 1 one is not; 2 bad usage; 3 a case failed to run.)";

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App* command = app.add_subcommand(
        "bench", "Time the kernels, check their results, hold them against the machine's ceilings");
    command->footer(examples);
    command->add_option("KERNEL", options->kernel, "Kernel, or all")->required();
    command->add_option("--scalar", options->scalar, "List of s, d, c, z")->capture_default_str();
    command->add_option("--widths", options->widths,
                        "Widths m = n: 1:64, or a list (default 1,2,4,8,16,32,64)");
    command->add_option("--shapes", options->shapes,
                        "List of MxN, which run first (without --widths alone)");
    command->add_option("--rows", options->rows, "Rows; 0 chooses operands well above the caches")
        ->capture_default_str();
    command
        ->add_option("--device", options->device, "Where to run; auto takes a GPU if there is one")
        ->check(CLI::IsMember({"auto", "host", "cuda"}))
        ->capture_default_str();
    command
        ->add_option("--budget", options->budget,
                     "Seconds after which no further case starts; the most telling run first")
        ->capture_default_str();
    command->add_option("--repeat", options->repeat, "Samples of a case, at least 3")
        ->capture_default_str();
    const CLI::Option* json =
        command->add_option("--json", options->json, "Also write all results to this file");
    command->callback([=, &chosen] {
        options->json_given = json->count() > 0;
        chosen = [options](const Comm& comm) { return run_bench(comm, *options); };
    });
}

}  // namespace quiver::apps
