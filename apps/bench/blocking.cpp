// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/blocking.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/runner.hpp"
#include "apps/execution.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/config.hpp"
#include "solvers/eigen/eigensolver.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::array<int, 4> block_sizes{1, 2, 4, 8};
constexpr int pairs = 10;
constexpr double tolerance = 1e-8;
constexpr std::int64_t warm_up_products = 100;

struct Solve {
    int block = 0;
    double seconds = 0;
    std::int64_t products = 0;
    std::int64_t columns = 0;
    bool converged = false;
};

/// The solves of one matrix, by block size.
struct Curve {
    std::string matrix;
    std::int64_t rows = 0;
    std::int64_t nonzeros = 0;
    std::vector<Solve> solves;
};

template <class T>
Curve solve_all(Context& ctx, const Problem& problem, const Budget& budget) {
    const Comm& comm = ctx.comm();
    CsrRows<T> rows = load_problem<T>(comm, problem, ctx.threads());
    require_hermitian(comm, problem, rows, ctx.threads());
    SparseMatrix<T> a(ctx, std::move(rows));
    Curve curve{problem.spec, a.row_map().global_rows(), a.global_nonzeros(), {}};
    for (const int block : block_sizes) {
        EigenOptions options;
        options.method = Method::jacobi_davidson;
        options.k = static_cast<int>(std::min<std::int64_t>(pairs, curve.rows));
        options.tol = tolerance;
        options.block = block;
        options.max_iterations = warm_up_products;
        options.keep_going = [&](const IterationEvent&) { return !budget.exhausted(); };
        if (budget.exhausted() || block > curve.rows) {
            break;
        }
        eigensolve(ctx, EigenProblem<T>{a}, options);
        options.max_iterations = EigenOptions{}.max_iterations * 10;
        ctx.synchronize();
        const auto result = eigensolve(ctx, EigenProblem<T>{a}, options);
        ctx.synchronize();
        curve.solves.push_back({block, result.seconds, result.iterations,
                                result.operator_applications, result.converged});
    }
    return curve;
}

constexpr const char* table_head =
    "| matrix | rows | nonzeros | block | block products | columns | seconds | over block 1 |\n"
    "|---|---|---|---|---|---|---|---|\n";

std::string table_rows(const Curve& curve) {
    std::string text;
    for (const Solve& solve : curve.solves) {
        text += fmt::format("| {} | {} | {} | {} | {} | {} | {:.3g} | {:.2f}{} |\n", curve.matrix,
                            curve.rows, curve.nonzeros, solve.block, solve.products, solve.columns,
                            solve.seconds, solve.seconds / curve.solves.front().seconds,
                            solve.converged ? "" : ", not converged");
    }
    return text;
}

std::string to_json(const std::vector<Curve>& curves, const BlockingOptions& options,
                    const std::string& where) {
    using nlohmann::ordered_json;
    ordered_json results = ordered_json::array();
    for (const Curve& curve : curves) {
        for (const Solve& solve : curve.solves) {
            results.push_back({{"matrix", curve.matrix},
                               {"rows", curve.rows},
                               {"nonzeros", curve.nonzeros},
                               {"block", solve.block},
                               {"products", solve.products},
                               {"columns", solve.columns},
                               {"seconds", solve.seconds},
                               {"converged", solve.converged}});
        }
    }
    const ordered_json json = {
        {"schema", 6},          {"command", "bench"},       {"version", config::version},
        {"kernel", "blocking"}, {"budget", options.budget}, {"command_line", options.command},
        {"where", where},       {"results", results}};
    return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

bool run_blocking(const Comm& comm, const BlockingOptions& options) {
    comm.agree([&] {
        require_one_process(comm);
        check_common(comm, options);
    });
    std::vector<Problem> problems;
    for (const std::string& matrix : options.matrices) {
        problems.push_back(inspect_problem(comm, matrix));
    }
    const Budget budget(options.budget);
    Context ctx(comm, choose_execution(comm, options.device).device);
    const std::string where = ctx.place() == Place::host
                                  ? "host, " + plural(ctx.threads(), "thread")
                                  : std::string("cuda");
    std::string text = fmt::format(
        "    {}\n\nBlock Jacobi-Davidson, {} smallest, tolerance {}, converged and verified; {}, "
        "one "
        "run each.\n\n{}",
        options.command, pairs, tolerance, where, table_head);
    std::FILE* const stream = table_stream({options.json, options.markdown});
    print(comm, text, stream);
    std::vector<Curve> curves;
    std::int64_t wanted = 0;
    std::int64_t converged = 0;
    for (const Problem& problem : problems) {
        const Curve curve = visit_dtype(choose_scalar(problem, "auto"), [&]<class T>() {
            return solve_all<T>(ctx, problem, budget);
        });
        wanted += std::count_if(block_sizes.begin(), block_sizes.end(),
                                [&](int block) { return block <= curve.rows; });
        converged += std::count_if(curve.solves.begin(), curve.solves.end(),
                                   [](const Solve& solve) { return solve.converged; });
        print(comm, table_rows(curve), stream);
        text += table_rows(curve);
        if (!curve.solves.empty()) {
            curves.push_back(curve);
        }
    }
    if (!options.markdown.empty()) {
        write_file(options.markdown, text);
    }
    if (!options.json.empty()) {
        write_file(options.json, to_json(curves, options, where));
    }
    if (converged < wanted) {
        fmt::print(stderr, "quiver: bench: {} of {} did not converge or exceeded --budget {:g}\n",
                   wanted - converged, plural(wanted, "solve"), options.budget);
    }
    return converged == wanted;
}

}  // namespace quiver::apps::bench
