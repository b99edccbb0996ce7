// SPDX-License-Identifier: BSD-3-Clause
#include "apps/eigs.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/kept_ceilings.hpp"
#include "apps/checkpoint/reordered_checkpoint.hpp"
#include "apps/execution.hpp"
#include "apps/inertia_check.hpp"
#include "apps/known_eigenvalues.hpp"
#include "apps/problem.hpp"
#include "apps/rank_weights.hpp"
#include "apps/report.hpp"
#include "apps/run.hpp"
#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/hdf5_file.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver::apps {
namespace {

/// The problem to solve, and the place where it is solved.
struct Task {
    Problem matrix;
    std::optional<Problem> mass;
    Dtype dtype = Dtype::d;
    Execution execution;
};

/// This rank's rows of A and B, and their identity in checkpoints.
template <class T>
struct Rows {
    CsrRows<T> matrix;
    std::optional<CsrRows<T>> mass;
    /// One number per rank; empty: equal shares.
    std::vector<double> weights;
    CheckpointIdentity identity;
    /// The refusal for B if there is one, else that for A.
    NormRefusal refusal;
};

/// The operators that the solver multiplies with.
template <class T>
struct Operators {
    /// Moves the rows of A and B into the operators; `rows.identity` remains valid.
    Operators(Context& ctx, const EigsOptions& options, Rows<T>& rows);
    EigenProblem<T> pencil(const EigsOptions& options);

    SparseMatrix<T> matrix;
    /// `matrix` with checksums, which the solver then uses instead; set with --abft or --inject.
    std::optional<ProtectedMatrix<T>> guarded;
    std::optional<SparseMatrix<T>> mass;
    std::unique_ptr<Operator<T>> preconditioner;
};

// The steps of run_eigs(), in the order in which they are taken.
Task inspect_task(const Comm& comm, EigsOptions& options);
template <class T>
bool solve_and_report(const Comm& comm, EigsOptions& options, const Task& task);
template <class T>
Rows<T> load_rows(const Comm& comm, EigsOptions& options, const Task& task);
template <class T>
Reordering distribute(const Comm& comm, EigsOptions& options, Rows<T>& rows);
template <class T>
void require_usable_norm(Context& ctx, const EigsOptions& options, Operators<T>& operators,
                         const NormRefusal& refusal);
template <class T>
EigenResult<T> run_solver(Context& ctx, EigsOptions& options, Operators<T>& operators,
                          const Reordering& reordering, CheckpointIdentity identity,
                          EigsReport& report);
void describe_task(const EigsOptions& options, const Task& task, EigsReport& report);
template <class T>
void take_result(const EigsOptions& options, const EigenResult<T>& result, EigsReport& report);
template <class T>
void verify_by_inertia(const Comm& comm, const EigsOptions& options, const Task& task,
                       EigsReport& report);
void take_counts(Context& ctx, EigsReport& report);
template <class T>
void deliver(SolverRun& run, const EigsOptions& options, const EigsReport& report,
             const Reordering& reordering, const EigenResult<T>& result);

// Parts of these steps.
void check_sizes(EigsOptions& options, std::int64_t rows);
void require_same_size(const Problem& mass, std::int64_t rows, std::int64_t wanted);
template <class T>
CheckpointIdentity identity_of(const Comm& comm, const EigsOptions& options, const CsrRows<T>& rows,
                               const CsrRows<T>* mass);
template <class T>
EigenResult<T> solve_pencil(Context& ctx, const EigenProblem<T>& pencil,
                            const EigsOptions& options);

}  // namespace

bool run_eigs(const Comm& comm, EigsOptions options) {
    comm.agree([&] { resolve_options(options, comm.rank()); });
    const Task task = inspect_task(comm, options);
    return visit_dtype(task.dtype,
                       [&]<class T>() { return solve_and_report<T>(comm, options, task); });
}

namespace {

template <class T>
bool solve_and_report(const Comm& comm, EigsOptions& options, const Task& task) {
    SolverRun run(comm, task.execution, options.verbose);
    Context& ctx = run.ctx();
    EigsReport report;
    if (options.profile) {
        report.ceilings = bench::kept_ceilings(ctx);
        run.begin_phase();
    }
    Rows<T> rows = load_rows<T>(comm, options, task);
    report.matrix = {task.matrix.spec, rows.matrix.map.global_rows(), 0, dtype_v<T>,
                     rows.matrix.symmetry};
    run.end_phase("read");
    fit_to(task.execution, options.rows.options);
    const Reordering reordering = distribute(comm, options, rows);

    // Timing each kernel takes a noticeable part of a short solve.
    ctx.ledger().set_timing(options.verbose || options.profile || options.json.given);
    Operators<T> operators(ctx, options, rows);
    report.matrix.nonzeros = operators.matrix.global_nonzeros();
    run.end_phase("setup");

    require_usable_norm(ctx, options, operators, rows.refusal);
    options.solver.keep_going = run.keep_going();
    const EigenResult<T> result =
        run_solver(ctx, options, operators, reordering, std::move(rows.identity), report);
    run.end_phase("solve");
    run.restore_signals();

    report.run = run.facts();
    report.run.where.distribution = reordering.facts();
    describe_task(options, task, report);
    take_result(options, result, report);
    verify_by_inertia<T>(comm, options, task, report);
    take_counts(ctx, report);
    deliver(run, options, report, reordering, result);
    return report.converged;
}

Task inspect_task(const Comm& comm, EigsOptions& options) {
    Task task;
    Problem& matrix = task.matrix;
    std::optional<Problem>& mass = task.mass;
    matrix = inspect_problem(comm, options.matrix);
    if (options.mass_given) {
        mass = inspect_problem(comm, options.mass);
        comm.agree([&] { choose_scalar(*mass, options.scalar); });  // an error names B, not A
        matrix.complex = mass->complex = matrix.complex || mass->complex;
    }
    comm.agree([&] {
        task.dtype = choose_scalar(matrix, options.scalar);
        if (!matrix.generated) {
            if (matrix.rows != matrix.cols) {
                throw InputError(fmt::format("{}: {} x {} is not square", matrix.spec, matrix.rows,
                                             matrix.cols));
            }
            check_sizes(options, matrix.rows);
            if (mass && !mass->generated) {
                require_same_size(*mass, mass->rows, matrix.rows);
            }
        }
    });
    task.execution = choose_execution(comm, options.device);
    return task;
}

template <class T>
Rows<T> load_rows(const Comm& comm, EigsOptions& options, const Task& task) {
    const Device& device = task.execution.device;
    // A and B need the same distribution of rows, so both are distributed by rows.
    std::vector<double> weights = rank_weights(comm, device, options.rows.weights);
    const Partition partition(task.mass ? Partition::by_rows : Partition::by_nonzeros, weights);
    Rows<T> rows{load_problem<T>(comm, task.matrix, device.threads, partition), {}, {}, {}, {}};
    rows.refusal = check_norm(comm, task.matrix, rows.matrix, device.threads);
    require_hermitian(comm, task.matrix, rows.matrix, device.threads);
    const std::int64_t size = rows.matrix.map.global_rows();
    comm.agree([&] { check_sizes(options, size); });
    if (task.mass) {
        rows.mass = load_problem<T>(comm, *task.mass, device.threads, partition);
        if (NormRefusal mass = check_norm(comm, *task.mass, *rows.mass, device.threads);
            !mass.text.empty()) {
            mass.can_be_scaled = mass.can_be_scaled && rows.refusal.can_be_scaled;
            rows.refusal = std::move(mass);
        }
        require_hermitian(comm, *task.mass, *rows.mass, device.threads);
        comm.agree([&] { require_same_size(*task.mass, rows.mass->map.global_rows(), size); });
    }
    if (options.checkpoint.asked()) {
        rows.identity = identity_of(comm, options, rows.matrix, rows.mass ? &*rows.mass : nullptr);
    }
    rows.weights = std::move(weights);
    return rows;
}

/// Gives A and B the distribution and the order of --partition and --order.
template <class T>
Reordering distribute(const Comm& comm, EigsOptions& options, Rows<T>& rows) {
    options.rows.options.weights = rows.weights;
    Reordering reordering =
        plan_reordering(comm, rows.matrix, options.rows.options, rows.mass ? &*rows.mass : nullptr);
    rows.matrix = reordering.permute(comm, std::move(rows.matrix));
    if (rows.mass) {
        rows.mass = reordering.permute(comm, std::move(*rows.mass));
    }
    return reordering;
}

/// Throws InputError on all ranks if there is a refusal and eigensolve() cannot scale the problem:
/// if products overflow, and for iterations with checksums or a checkpoint.
template <class T>
void require_usable_norm(Context& ctx, const EigsOptions& options, Operators<T>& operators,
                         const NormRefusal& refusal) {
    if (refusal.text.empty()) {
        return;
    }
    if (!refusal.can_be_scaled) {
        throw_collective(ErrorKind::input, refusal.text);
    }
    const bool is_saved = options.checkpoint.asked();
    if (!operators.guarded && !is_saved) {
        return;
    }
    const Method method = choose_method(ctx, operators.pencil(options), options.solver).method;
    if (method != Method::dense && method != Method::shift_invert) {
        throw_collective(ErrorKind::input,
                         refusal.text + (is_saved ? ", or omit --checkpoint" : ", or omit --abft"));
    }
}

template <class T>
EigenResult<T> run_solver(Context& ctx, EigsOptions& options, Operators<T>& operators,
                          const Reordering& reordering, CheckpointIdentity identity,
                          EigsReport& report) {
    EigenProblem<T> pencil = operators.pencil(options);
    std::optional<CheckpointFolder<T>> folder;
    std::optional<ReorderedCheckpoint<T>> checkpoint;
    if (options.checkpoint.asked()) {
        folder.emplace(ctx, options.checkpoint, reordering.user_map(), std::move(identity));
        checkpoint.emplace(*folder, reordering);
        pencil.checkpoint =
            reordering.moves_rows() ? static_cast<Checkpoint<T>*>(&*checkpoint) : &*folder;
    }
    EigenResult<T> result = solve_pencil(ctx, pencil, options);
    if (std::optional<ProtectedMatrix<T>>& guarded = operators.guarded) {
        report.abft = {to_string(options.faults.checks.mode), guarded->counts().summed(ctx.comm()),
                       options.faults.inject_given};
    }
    return result;
}

void describe_task(const EigsOptions& options, const Task& task, EigsReport& report) {
    report.mass = task.mass ? task.mass->spec : "";
    report.preconditioner = options.preconditioner;
    report.which = options.window_given ? "window" : options.which;
    report.window = options.solver.window;
    report.seed = options.solver.seed;
    report.tolerance_asked = options.solver.tol;
    if (task.matrix.generated && !task.mass) {
        report.exact = known_eigenvalues(task.matrix, options.solver, report.matrix.rows);
    }
}

template <class T>
Operators<T>::Operators(Context& ctx, const EigsOptions& options, Rows<T>& rows)
    : matrix(ctx, std::move(rows.matrix)) {
    ctx.synchronize();
    if (options.faults.asked()) {
        guarded.emplace(ctx, matrix, options.faults.checks);
    }
    if (rows.mass) {
        mass.emplace(ctx, std::move(*rows.mass));
    }
    preconditioner = make_preconditioner(ctx, matrix, options.precond, mass ? &*mass : nullptr);
}

template <class T>
EigenProblem<T> Operators<T>::pencil(const EigsOptions& options) {
    EigenProblem<T> pencil{guarded ? static_cast<Operator<T>&>(*guarded) : matrix};
    pencil.protection = guarded ? &*guarded : nullptr;
    pencil.b = mass ? &*mass : nullptr;
    (options.precond.absolute ? pencil.preconditioner : pencil.inverse) = preconditioner.get();
    return pencil;
}

template <class T>
void take_result(const EigsOptions& options, const EigenResult<T>& result, EigsReport& report) {
    report.method = to_string(result.method);
    report.method_reason = result.method_reason;
    report.library = result.library;
    report.k =
        options.window_given ? static_cast<int>(result.eigenvalues.size()) : options.solver.k;
    report.k_lowered =
        !options.window_given && !options.k_given && options.solver.k < EigenOptions{}.k;
    report.expected_count = result.expected_count;
    report.expected_error = result.expected_error;
    report.eigenvalues = result.eigenvalues;
    report.residuals = result.residuals;
    report.errors = result.errors;
    report.norm_estimate = result.norm_estimate;
    report.tolerance = result.tolerance;
    report.tolerance_raised = result.tolerance_raised;
    report.verified = result.multiplicity == Multiplicity::verified;
    report.converged = result.converged && report.verified;
    report.cluster_cut = result.cluster_cut;
    report.interrupted = result.interrupted;
    report.iterations = result.iterations;
    report.operator_applications = result.operator_applications;
    report.block = result.block;
    report.basis = result.basis;
    report.message = result.message;
}

/// Marks a converged result as not converged if a reliable inertia count contradicts it.
template <class T>
void verify_by_inertia(const Comm& comm, const EigsOptions& options, const Task& task,
                       EigsReport& report) {
    if (options.verify != "inertia" || !report.converged) {
        return;
    }
    report.inertia = count_by_inertia<T>(comm, task.matrix, options.solver, report);
    report.converged = std::all_of(report.inertia.begin(), report.inertia.end(),
                                   [](const InertiaCount& count) { return count.agrees(); });
    if (!report.converged) {
        report.message = "the factorisation does not confirm the count";
    }
}

void take_counts(Context& ctx, EigsReport& report) {
    report.kernels = ctx.ledger().records();
    for (std::size_t kind = 0; kind < overhead_kinds; ++kind) {
        report.overhead.push_back(OverheadCounts::of(ctx)[static_cast<Overhead>(kind)]);
    }
}

/// Prints the table and writes the requested files. After a failed write the others are still
/// written; then the first error is thrown on all ranks.
template <class T>
void deliver(SolverRun& run, const EigsOptions& options, const EigsReport& report,
             const Reordering& reordering, const EigenResult<T>& result) {
    run.report(to_table(report, options.verbose), options.json, [&] { return to_json(report); });
    run.write(options.vectors, [&] {
        BlockVector<T> moved;
        if (reordering.moves_rows()) {
            moved = reordering.to_user<T>(run.ctx(), result.vectors.view());
        }
        write_block_vector(
            run.ctx(), options.vectors.path, reordering.moves_rows() ? moved : result.vectors,
            {.numbers = {{"eigenvalues", result.eigenvalues}, {"residuals", result.residuals}},
             .texts = {{"matrix", report.matrix.spec},
                       {"which", options.which},
                       {"quiver_version", config::version}}});
    });
    run.finish();
}

/// Calls eigensolve(). If B or the preconditioner is not positive definite, the error names the
/// option.
template <class T>
EigenResult<T> solve_pencil(Context& ctx, const EigenProblem<T>& pencil,
                            const EigsOptions& options) {
    try {
        return eigensolve(ctx, pencil, options.solver);
    } catch (const IndefiniteError& error) {
        const bool mass = error.operand() == IndefiniteError::Operand::mass;
        const bool has_cure = dynamic_cast<const SingularMassError*>(&error) != nullptr;
        InputError named(
            mass ? fmt::format("--mass {}: {}{}", options.mass, error.what(),
                               has_cure ? "" : "; a positive definite matrix is wanted")
                 : fmt::format(
                       "--precond {}: {}; ldlt,shift=VALUE with a value near the wanted ones is "
                       "positive definite, or omit --precond",
                       options.preconditioner, error.what()));
        if (error.collective()) {
            named.set_collective();
        }
        throw named;
    }
}

/// Lowers the default k to the number of rows. Throws InputError for options that do not fit a
/// matrix of this size.
void check_sizes(EigsOptions& options, std::int64_t rows) {
    if (options.window_given) {
        options.solver.k = 1;  // not used with a window
    }
    if (!options.k_given && rows > 0 && options.solver.k > rows) {
        options.solver.k = static_cast<int>(rows);
    }
    if (options.solver.k > rows) {
        throw InputError(fmt::format("-k {}: the matrix has {} rows", options.solver.k, rows));
    }
    if (options.solver.block > rows) {
        throw InputError(
            fmt::format("--block {}: the matrix has {} rows", options.solver.block, rows));
    }
    if (options.verify == "inertia") {
        require_inertia_size(rows);
    }
    const std::int64_t least = least_basis(options.solver, rows);
    if (options.solver.max_basis > 0 && options.solver.max_basis < least) {
        throw InputError(fmt::format("--basis {}: -k {} takes at least {} columns",
                                     options.solver.max_basis, options.solver.k, least));
    }
}

void require_same_size(const Problem& mass, std::int64_t rows, std::int64_t wanted) {
    if (rows != wanted) {
        throw InputError(
            fmt::format("--mass {}: {} rows, but the matrix has {}", mass.spec, rows, wanted));
    }
}

/// The properties that a run must share with the run that wrote the checkpoint it resumes.
template <class T>
CheckpointIdentity identity_of(const Comm& comm, const EigsOptions& options, const CsrRows<T>& rows,
                               const CsrRows<T>* mass) {
    const EigenOptions& solver = options.solver;
    const auto window = solver.window.value_or(Window{});
    return {{"MATRIX", describe_matrix(comm, rows)},
            {"--mass", mass == nullptr ? "none" : describe_matrix(comm, *mass)},
            {"--window", solver.window ? fmt::format("{}:{}", window.low, window.high) : "none"},
            {"-k", fmt::format("{}", solver.k)},
            {"--which", solver.which == Which::target ? fmt::format("target:{}", solver.target)
                                                      : options.which},
            {"--method", options.method},
            {"--precond", options.preconditioner},
            {"--block", fmt::format("{}", solver.block)},
            {"--basis", fmt::format("{}", solver.max_basis)},
            {"--tol", fmt::format("{}", solver.tol)},
            {"--seed", fmt::format("{}", solver.seed)}};
}

}  // namespace
}  // namespace quiver::apps
