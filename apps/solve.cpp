// SPDX-License-Identifier: BSD-3-Clause
// `quiver solve`: options, the solve and the report.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/command_line.hpp"
#include "apps/execution.hpp"
#include "apps/fault_options.hpp"
#include "apps/hermitian_check.hpp"
#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/problem.hpp"
#include "apps/right_hand_sides.hpp"
#include "apps/row_distribution_options.hpp"
#include "apps/run.hpp"
#include "apps/solve_report.hpp"
#include "apps/standard_input.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/matrix_market_writer.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/linear/linear_solve.hpp"
#include "solvers/precond/preconditioner.hpp"

namespace quiver::apps {
namespace {

struct SolveOptions {
    std::string matrix;
    std::string rhs_file;
    std::string rhs;
    std::string method = "auto";
    std::string preconditioner = "none";
    std::string device = "auto";
    std::string scalar = "auto";
    Output output;
    Output json;
    std::uint64_t seed = 1;
    bool verbose = false;
    bool tol_given = false;
    RowDistribution rows;
    FaultOptions faults;
    LinearOptions solver;
};

/// The default tolerance in single precision.
constexpr double single_tolerance = 1e-5;

// The steps of run_solve(), in the order in which they are taken.
void check_options(const SolveOptions& options);
void check_sizes(std::int64_t rows, std::int64_t cols, const Problem& problem,
                 const RightHandSides& sides);
template <class T>
bool solve(const Comm& comm, const SolveOptions& options, const Problem& problem,
           const RightHandSides& sides, const Execution& execution);
template <class T>
std::vector<LinearMethod> choose_methods(const Comm& comm, const SolveOptions& options,
                                         const Problem& problem, CsrRows<T>& rows, int threads);
template <class T>
Reordering distribute(const Comm& comm, ReorderingOptions options, const Execution& execution,
                      const RightHandSides& sides, CsrRows<T>& rows);
template <class T>
BlockVector<T> right_hand_sides(Context& ctx, const RightHandSides& sides,
                                const Reordering& reordering, std::uint64_t seed);
template <class T>
void run_methods(Context& ctx, const std::vector<LinearMethod>& methods,
                 const LinearProblem<T>& problem, BlockView<T> x, LinearOptions options,
                 SolveReport& report);
template <class T>
void deliver(SolverRun& run, const SolveOptions& options, const SolveReport& report,
             const Reordering& reordering, const BlockVector<T>& x);

bool run_solve(const Comm& comm, SolveOptions options) {
    comm.agree([&] {
        resolve_faults(options.faults);
        check_options(options);
        parse_preconditioner(options.preconditioner);
        resolve_distribution(options.rows);
        require_one_standard_input({options.matrix, options.rhs_file});
        if (comm.rank() == 0) {
            check_outputs(
                {&options.json, &options.output},
                {{options.matrix}, {options.rhs_file, "the file of the right-hand sides"}});
        }
    });
    const Problem problem = inspect_problem(comm, options.matrix);
    const RightHandSides sides = inspect_right_hand_sides(comm, options.rhs_file, options.rhs);
    Dtype dtype = Dtype::d;
    comm.agree([&] {
        Problem both = problem;
        if (sides.complex && !problem.complex) {
            both.complex = true;
            both.spec = sides.spec;
        }
        dtype = choose_scalar(both, options.scalar);
        if (!problem.generated) {
            check_sizes(problem.rows, problem.cols, problem, sides);
        }
    });
    const Execution execution = choose_execution(comm, options.device);
    if (!options.tol_given && is_single(dtype)) {
        options.solver.tol = single_tolerance;
    }
    return visit_dtype(
        dtype, [&]<class T>() { return solve<T>(comm, options, problem, sides, execution); });
}

template <class T>
bool solve(const Comm& comm, const SolveOptions& options, const Problem& problem,
           const RightHandSides& sides, const Execution& execution) {
    SolverRun run(comm, execution, options.verbose);
    Context& ctx = run.ctx();
    SolveReport report;
    CsrRows<T> rows = load_problem<T>(comm, problem, execution.device.threads, Partition::by_rows);
    const RowMap map = rows.map;
    comm.agree([&] { check_sizes(map.global_rows(), rows.global_cols, problem, sides); });
    const std::vector<LinearMethod> methods =
        choose_methods(comm, options, problem, rows, execution.device.threads);
    const Reordering reordering = distribute(comm, options.rows.options, execution, sides, rows);
    const BlockVector<T> b = right_hand_sides<T>(ctx, sides, reordering, options.seed);
    run.end_phase("read");

    ctx.ledger().set_timing(true);
    report.matrix = {problem.spec, map.global_rows(), 0, dtype_v<T>, rows.symmetry};
    SparseMatrix<T> matrix(ctx, std::move(rows));
    report.matrix.nonzeros = matrix.global_nonzeros();
    std::optional<ProtectedMatrix<T>> guarded;
    if (options.faults.asked()) {
        guarded.emplace(ctx, matrix, options.faults.checks);
    }
    const std::unique_ptr<Operator<T>> preconditioner =
        make_preconditioner(ctx, matrix, parse_preconditioner(options.preconditioner));
    BlockVector<T> x;
    comm.agree([&] { x = BlockVector<T>(ctx, reordering.solver_map(), b.width()); });
    run.end_phase("setup");

    Operator<T>& a = guarded ? static_cast<Operator<T>&>(*guarded) : matrix;
    run_methods<T>(ctx, methods,
                   {a, b.view(), {}, preconditioner.get(), guarded ? &*guarded : nullptr}, x.view(),
                   options.solver, report);
    run.end_phase("solve");

    report.run = run.facts();
    report.run.where.distribution = reordering.facts();
    report.rhs = sides.spec;
    report.preconditioner = options.preconditioner;
    report.output = options.output.path;
    report.tolerance = options.solver.tol;
    report.max_iterations = options.solver.max_iterations;
    report.restart = options.solver.restart;
    report.seed = options.seed;
    report.kernels = ctx.ledger().records();
    if (guarded) {
        report.abft = {options.faults.abft, guarded->counts().summed(comm),
                       options.faults.inject_given};
    }
    deliver(run, options, report, reordering, x);
    return report.result.converged;
}

void check_options(const SolveOptions& options) {
    const LinearOptions& solver = options.solver;
    if (!(solver.tol > 0 && solver.tol < 1)) {
        throw InputError(
            fmt::format("--tol {}: a tolerance is a number above 0 and below 1", solver.tol));
    }
    if (solver.max_iterations < 1) {
        throw InputError(fmt::format("--max-iterations {}: at least 1", solver.max_iterations));
    }
    if (solver.restart < 1) {
        throw InputError(fmt::format("--restart {}: at least 1", solver.restart));
    }
}

void check_sizes(std::int64_t rows, std::int64_t cols, const Problem& problem,
                 const RightHandSides& sides) {
    if (rows != cols) {
        throw InputError(fmt::format("{}: {} x {} is not square", problem.spec, rows, cols));
    }
    if (sides.is_file && sides.rows != rows) {
        throw InputError(fmt::format("{}: right-hand sides with {} rows, the matrix {} has {}",
                                     sides.spec, sides.rows, problem.spec, rows));
    }
}

/// True if all entries of the diagonal are stored and positive. Collective.
template <class T>
bool has_positive_diagonal(const Comm& comm, const CsrRows<T>& rows, int threads) {
    std::int64_t positive = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : positive)
    for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (auto e = static_cast<std::size_t>(rows.row_start[row]);
             e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
            const bool diagonal = rows.column[e] == rows.map.first_row() + i;
            positive += diagonal && real_part(rows.value[e]) > 0 ? 1 : 0;
        }
    }
    return comm.sum(positive) == rows.map.global_rows();
}

/// The methods to try, in order: if a method breaks down, the next one continues.
template <class T>
std::vector<LinearMethod> choose_methods(const Comm& comm, const SolveOptions& options,
                                         const Problem& problem, CsrRows<T>& rows, int threads) {
    for (const LinearMethod method :
         {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres, LinearMethod::bicgstab}) {
        if (options.method == to_string(method)) {
            if (const NormRefusal refusal = check_norm(comm, problem, rows, threads);
                !refusal.text.empty()) {
                throw_collective(ErrorKind::input, refusal.text);
            }
            if (method == LinearMethod::cg || method == LinearMethod::minres) {
                require_hermitian(comm, problem, rows, threads);
            }
            return {method};
        }
    }
    if (!check_hermitian(comm, rows, threads).hermitian()) {
        return {LinearMethod::gmres};
    }
    if (has_positive_diagonal(comm, rows, threads)) {
        return {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres};
    }
    return {LinearMethod::minres, LinearMethod::gmres};
}

/// Gives the matrix the distribution and the order of --partition and --order.
template <class T>
Reordering distribute(const Comm& comm, ReorderingOptions options, const Execution& execution,
                      const RightHandSides& sides, CsrRows<T>& rows) {
    constexpr double usual_steps = 300;
    options.expected_products = usual_steps * static_cast<double>(sides.columns);
    fit_to(execution, options);
    Reordering reordering = plan_reordering(comm, rows, options);
    rows = reordering.permute(comm, std::move(rows));
    return reordering;
}

/// The right-hand sides in the solver's numbering. Random ones do not depend on the numbering.
template <class T>
BlockVector<T> right_hand_sides(Context& ctx, const RightHandSides& sides,
                                const Reordering& reordering, std::uint64_t seed) {
    BlockVector<T> user = load_right_hand_sides<T>(ctx, sides, reordering.user_map(), seed);
    if (!reordering.moves_rows()) {
        return user;
    }
    BlockVector<T> b;
    ctx.comm().agree([&] { b = BlockVector<T>(ctx, reordering.solver_map(), user.width()); });
    reordering.to_solver(ctx, user.view(), b.view());
    return b;
}

bool broke_down(const LinearResult& result) {
    for (const LinearColumn& column : result.columns) {
        if (column.status == LinearStatus::breakdown) {
            return true;
        }
    }
    return false;
}

/// The result `last` of a later method, with the work of the methods before it added.
LinearResult added(const LinearResult& before, LinearResult last) {
    for (std::size_t j = 0; j < last.columns.size(); ++j) {
        last.columns[j].iterations += before.columns[j].iterations;
    }
    last.iterations += before.iterations;
    last.operator_applications += before.operator_applications;
    last.preconditioner_applications += before.preconditioner_applications;
    last.seconds += before.seconds;
    return last;
}

template <class T>
void run_methods(Context& ctx, const std::vector<LinearMethod>& methods,
                 const LinearProblem<T>& problem, BlockView<T> x, LinearOptions options,
                 SolveReport& report) {
    LinearWorkspace<T> workspace;
    for (const LinearMethod method : methods) {
        if (!report.method.empty()) {
            ctx.emit(NoticeEvent{
                fmt::format("{}; continuing with {}", report.result.message, to_string(method))});
            report.broken_methods.push_back(report.method);
            options.x_is_guess = true;
        }
        report.method = to_string(method);
        LinearResult result = linear_solve(ctx, method, problem, x, options, workspace);
        report.result =
            report.broken_methods.empty() ? std::move(result) : added(report.result, result);
        if (!broke_down(report.result)) {
            return;
        }
    }
}

/// Prints the table and writes the requested files. After a failed write the others are still
/// written; then the first error is thrown on all ranks.
template <class T>
void deliver(SolverRun& run, const SolveOptions& options, const SolveReport& report,
             const Reordering& reordering, const BlockVector<T>& x) {
    Context& ctx = run.ctx();
    run.report(
        to_table(report, options.verbose), options.json, [&] { return to_json(report); },
        options.output);
    run.write(options.output, [&] {
        write_matrix_market(ctx.comm(), options.output.path,
                            rows_of_block(ctx, reordering.to_user<T>(ctx, x.view())),
                            "solution of A x = b, A " + report.matrix.spec + ", b " + report.rhs);
    });
    run.finish();
}

constexpr const char* solve_description =
    "Solves A x = b for one or many right-hand sides together, with a preconditioner";

constexpr const char* solve_examples =
    R"(METHOD: cg (Hermitian positive definite), minres (Hermitian), gmres, bicgstab (any); auto: cg
for a Hermitian matrix with a positive diagonal, minres for other Hermitian matrices, gmres for all
others. If a method breaks down, auto continues with the next of cg, minres, gmres.
PRECONDITIONER: none, jacobi, block-jacobi,size=8, chebyshev,degree=8, ic, ilu, ic,sweeps=4,
ilu,sweeps=4, ldlt,shift=0.

Examples:
  quiver solve matrix.mtx b.mtx -o x.mtx
  quiver solve matrix.mtx.gz b.mtx --precond ic --tol 1e-8
  zcat matrix.mtx.gz | quiver solve - b.mtx --json - | jq .converged
  quiver solve gen:laplace3d,nx=40 --rhs random:8 --precond chebyshev,degree=6
  mpirun -n 4 quiver solve matrix.mtx b.mtx --method gmres --restart 50 --precond ilu --json out.json

Exit status: 0 all right-hand sides converged; 1 some have not (results are still printed and
written, and marked); 2 bad usage or input; 3 a failure while running.)";

}  // namespace

void add_solve(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<SolveOptions>();
    LinearOptions& solver = options->solver;
    CLI::App* solve = app.add_subcommand("solve", solve_description);
    solve->footer(solve_examples);
    solve->add_option("MATRIX", options->matrix, matrix_argument)->required();
    solve->add_option("RHS", options->rhs_file,
                      "File with the right-hand sides as columns; - for standard input");
    solve->add_option("--rhs", options->rhs, "Right-hand sides without a file: ones or random:N");
    add_output(*solve, "-o,--output", options->output,
               "Write the solution to this Matrix Market file (gzip'd if it ends in .gz); - for "
               "standard output");
    add_word(*solve, "--method", options->method, "METHOD, see below",
             {"auto", "cg", "minres", "gmres", "bicgstab"});
    solve->add_option("--precond", options->preconditioner, "PRECONDITIONER, see below")
        ->capture_default_str();
    const CLI::Option* tol = add_number(*solve, "--tol", solver.tol,
                                        "Residual relative to ||b|| that counts as converged; the "
                                        "default in single precision is 1e-5");
    add_number(*solve, "--max-iterations", solver.max_iterations, "Steps before giving up");
    add_number(*solve, "--restart", solver.restart, "Steps of gmres before it restarts");
    add_device(*solve, options->device);
    add_word(*solve, "--scalar", options->scalar,
             "s, d, c, z as in BLAS; auto: z if the matrix or a right-hand side is complex, else d",
             {"auto", "s", "d", "c", "z"});
    add_row_distribution(*solve, options->rows);
    add_json(*solve, options->json);
    add_number(*solve, "--seed", options->seed, "Seed of random right-hand sides");
    solve->add_flag("-v,--verbose", options->verbose, "Show kernels, fallbacks and faults");
    add_fault_options(
        *solve, options->faults,
        "Detect silent faults in products with A, but not in those with the preconditioner");
    set_action(*solve, chosen, options, run_solve, [=] { options->tol_given = tol->count() > 0; });
}

}  // namespace quiver::apps
