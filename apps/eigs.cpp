// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs`: options, one walk through the library, and the report.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/checkpoint/checkpoint_folder.hpp"
#include "apps/eigs_help.hpp"
#include "apps/execution.hpp"
#include "apps/inertia_check.hpp"
#include "apps/interrupt.hpp"
#include "apps/known_eigenvalues.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/number_option.hpp"
#include "apps/problem.hpp"
#include "apps/progress.hpp"
#include "apps/rank_weights.hpp"
#include "apps/report.hpp"
#include "apps/run.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/hdf5_file.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/orth/indefinite_error.hpp"
#include "solvers/precond/preconditioner.hpp"

namespace quiver::apps {
namespace {

struct EigsOptions {
    std::string matrix;
    std::string mass;
    std::string which = "smallest";
    std::string method = "auto";
    std::string verify = "columns";
    std::string preconditioner = "none";
    /// LOW:HIGH
    std::string window;
    std::string device = "auto";
    std::string weights = "auto";
    std::string scalar = "auto";
    std::string json;
    std::string vectors;
    std::string abft = "off";
    std::string inject;
    bool verbose = false;
    bool profile = false;
    /// Which of these options were given; a file without a name is an error.
    bool k_given = false;
    bool which_given = false;
    bool window_given = false;
    bool mass_given = false;
    bool json_given = false;
    bool vectors_given = false;
    bool inject_given = false;
    EigenOptions solver;
    PreconditionerOptions precond;
    CheckpointOptions checkpoint;
    AbftOptions protection;
};

/// "smallest", "largest" or "target:VALUE".
void take_which(EigsOptions& options) {
    EigenOptions& solver = options.solver;
    const std::string prefix = "target:";
    if (!options.which.starts_with(prefix)) {
        solver.which = options.which == "largest" ? Which::largest : Which::smallest;
        return;
    }
    solver.which = Which::target;
    if (parse_real(options.which.substr(prefix.size()), solver.target) != std::errc() ||
        !std::isfinite(solver.target)) {
        throw InputError(
            fmt::format("--which {}: target: takes a number, as in target:0.5", options.which));
    }
}

Window parse_window(const std::string& text) {
    const std::size_t colon = text.find(':');
    Window window;
    if (colon == std::string::npos ||
        parse_real(text.substr(0, colon), window.low) != std::errc() ||
        parse_real(text.substr(colon + 1), window.high) != std::errc() ||
        !(window.low <= window.high)) {
        throw InputError(
            fmt::format("--window {}: two numbers LOW:HIGH, ascending, are wanted", text));
    }
    return window;
}

/// The method and the window as the solver has them.
void set_task(EigsOptions& options) {
    if (options.mass_given && options.verify == "inertia") {
        throw InputError("--verify inertia: counts eigenvalues of A alone, leave --mass away");
    }
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg, Method::filter,
                                Method::jacobi_davidson}) {
        if (options.method == to_string(method)) {
            options.solver.method = method;
        }
    }
    if (options.window_given) {
        if (options.k_given || options.which_given) {
            throw InputError("--window finds all eigenvalues in it: leave -k and --which away");
        }
        if (options.mass_given) {
            throw InputError(
                "--window: not with --mass; --method jd --which target:VALUE -k N "
                "finds the N nearest a value");
        }
        if (options.solver.method != Method::automatic && options.solver.method != Method::filter) {
            throw InputError(fmt::format("--method {}: a window takes filter", options.method));
        }
        options.solver.window = parse_window(options.window);
    } else if (options.solver.method == Method::filter) {
        throw InputError("--method filter: it finds all eigenvalues in a --window LOW:HIGH");
    }
}

/// Whether the method, if one is named, takes a B and a preconditioner.
bool takes_all(const EigsOptions& options) {
    const Method method = options.solver.method;
    return method == Method::automatic || method == Method::lobpcg ||
           method == Method::jacobi_davidson;
}

/// Ranks on the host and on GPUs choose panels of their own in other methods.
void settle_mixed(EigsOptions& options) {
    const bool lanczos =
        options.solver.method == Method::lanczos || options.solver.method == Method::automatic;
    if (options.device != "mixed") {
        return;
    }
    if (!lanczos || options.window_given || options.mass_given ||
        options.preconditioner != "none" || options.solver.which == Which::target) {
        throw InputError(
            "--device mixed: block Lanczos for an end of the spectrum runs on host and GPU ranks "
            "together; leave --window, --mass, --precond and other methods away");
    }
    options.solver.method = Method::lanczos;
}

void check_options(const EigsOptions& options) {
    const EigenOptions& solver = options.solver;
    if (solver.k < 1) {
        throw InputError(fmt::format("-k {}: ask for at least one eigenpair", solver.k));
    }
    if (solver.block < 0 || solver.block > max_block_width) {
        throw InputError(fmt::format("--block {}: 1 to {} columns, or 0 to let the solver choose",
                                     solver.block, max_block_width));
    }
    if (!(solver.tol > 0 && solver.tol < 1)) {
        throw InputError(
            fmt::format("--tol {}: a tolerance is a number above 0 and below 1", solver.tol));
    }
    if (solver.max_basis < 0) {
        throw InputError(
            fmt::format("--basis {}: columns, or 0 to let the solver choose", solver.max_basis));
    }
    if (solver.max_iterations < 1) {
        throw InputError(fmt::format("--max-iterations {}: at least 1", solver.max_iterations));
    }
    if (options.mass_given && !takes_all(options)) {
        throw InputError(
            fmt::format("--mass: --method {} solves A x = lambda x only; lobpcg and jd do "
                        "not need the inverse of B",
                        options.method));
    }
}

/// A preconditioner is close to the inverse of A, or of A - sigma B: which methods and ends of the
/// spectrum have a use for one.
void take_preconditioner(EigsOptions& options) {
    PreconditionerOptions& precond = options.precond;
    precond = parse_preconditioner(options.preconditioner);
    if (precond.kind == PreconditionerKind::none) {
        return;
    }
    const auto refuse = [&](const std::string& why) {
        throw InputError(fmt::format("--precond {}: {}", options.preconditioner, why));
    };
    if (options.window_given) {
        refuse("a --window takes a filter, which has no use for one");
    }
    if (!takes_all(options)) {
        refuse(fmt::format("--method {} only multiplies with A; lobpcg and jd take one",
                           options.method));
    }
    if (options.solver.which == Which::largest && !precond.shift) {
        refuse(
            "the inverse of A says nothing of the largest eigenvalues; ldlt,shift=VALUE with a "
            "value near them does");
    }
    if (options.solver.which == Which::target && precond.kind == PreconditionerKind::ldlt) {
        precond.shift = precond.shift.value_or(options.solver.target);
        precond.absolute = false;
    }
}

void take_protection(EigsOptions& options) {
    for (const AbftMode mode : {AbftMode::detect, AbftMode::correct}) {
        if (options.abft == to_string(mode)) {
            options.protection.mode = mode;
        }
    }
    if (options.protection.updates && options.abft == "off") {
        throw InputError("--abft-updates goes with --abft detect or correct");
    }
    if (options.inject_given) {
        options.protection.inject = parse_injection(options.inject);
    }
}

/// A default k is no more than a small matrix has.
void check_sizes(EigsOptions& options, std::int64_t rows) {
    if (options.window_given) {
        options.solver.k = 1;  // does not count
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

template <class T>
void take_result(const EigenResult<T>& result, EigsReport& report) {
    report.eigenvalues = result.eigenvalues;
    report.residuals = result.residuals;
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

/// What a run and the one that goes on from its checkpoint have in common.
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

/// Prints the table and writes the files that were asked for. One that cannot be written keeps no
/// other back; the first error is thrown, on all ranks.
template <class T>
void deliver(Context& ctx, const EigsOptions& options, const EigsReport& report,
             const EigenResult<T>& result) {
    const Comm& comm = ctx.comm();
    Attempts attempts;
    attempts.add([&] { print(comm, to_table(report, options.verbose)); });
    if (options.json_given) {
        attempts.add([&] {
            comm.agree([&] {
                if (comm.rank() == 0) {
                    write_file(options.json, to_json(report));
                }
            });
        });
    }
    if (options.vectors_given) {
        attempts.add([&] {
            write_block_vector(
                ctx, options.vectors, result.vectors,
                {.numbers = {{"eigenvalues", result.eigenvalues}, {"residuals", result.residuals}},
                 .texts = {{"matrix", report.matrix.spec},
                           {"which", options.which},
                           {"quiver_version", config::version}}});
        });
    }
    attempts.finish();
}

/// eigensolve, whose word of what is not positive definite gets the name of the option.
template <class T>
EigenResult<T> solve_pencil(Context& ctx, const EigenProblem<T>& pencil,
                            const EigsOptions& options) {
    try {
        return eigensolve(ctx, pencil, options.solver);
    } catch (const IndefiniteError& error) {
        const bool mass = error.operand() == IndefiniteError::Operand::mass;
        InputError named(
            mass ? fmt::format("--mass {}: {}; a positive definite matrix is wanted", options.mass,
                               error.what())
                 : fmt::format(
                       "--precond {}: {}; ldlt,shift=VALUE with a value near the wanted ones is "
                       "positive definite, or leave --precond away",
                       options.preconditioner, error.what()));
        if (error.collective()) {
            named.set_collective();
        }
        throw named;
    }
}

template <class T>
int solve(const Comm& comm, EigsOptions& options, const Problem& problem,
          const std::optional<Problem>& mass, const Execution& execution) {
    EigsReport report;
    Stopwatch watch;
    // A and B are dealt to the ranks alike.
    const std::vector<double> weights = rank_weights(comm, execution.device, options.weights);
    const Partition partition(mass ? Partition::by_rows : Partition::by_nonzeros, weights);
    CsrRows<T> rows = load_problem<T>(comm, problem, execution.device.threads, partition);
    require_hermitian(comm, problem, rows);
    comm.agree([&] { check_sizes(options, rows.map.global_rows()); });
    CsrRows<T> mass_rows;
    if (mass) {
        mass_rows = load_problem<T>(comm, *mass, execution.device.threads, partition);
        require_hermitian(comm, *mass, mass_rows);
        comm.agree(
            [&] { require_same_size(*mass, mass_rows.map.global_rows(), rows.map.global_rows()); });
        report.mass = mass->spec;
    }
    CheckpointIdentity identity;
    if (options.checkpoint.asked()) {
        identity = identity_of(comm, options, rows, mass ? &mass_rows : nullptr);
    }
    report.seconds.read = watch.lap();

    std::optional<Context> ctx;
    comm.agree([&] { ctx.emplace(comm, execution.device); });
    Progress progress(comm, options.verbose);
    ctx->set_event_sink([&](const Event& event) { progress.show(event); });
    // Events around each kernel cost some of a short solve's time.
    ctx->ledger().set_timing(options.verbose || options.profile || options.json_given);
    report.matrix = {problem.spec, rows.map.global_rows(), 0, dtype_v<T>, rows.symmetry};
    SparseMatrix<T> matrix(*ctx, std::move(rows));
    ctx->synchronize();
    report.matrix.nonzeros = matrix.global_nonzeros();
    std::optional<ProtectedMatrix<T>> guarded;
    if (options.protection.mode != AbftMode::off || options.inject_given) {
        guarded.emplace(*ctx, matrix, options.protection);
    }
    EigenProblem<T> pencil{guarded ? static_cast<Operator<T>&>(*guarded) : matrix};
    pencil.protection = guarded ? &*guarded : nullptr;
    std::optional<SparseMatrix<T>> mass_matrix;
    if (mass) {
        mass_matrix.emplace(*ctx, std::move(mass_rows));
        pencil.b = &*mass_matrix;
    }
    const std::unique_ptr<Operator<T>> preconditioner =
        make_preconditioner(*ctx, matrix, options.precond, mass_matrix ? &*mass_matrix : nullptr);
    (options.precond.absolute ? pencil.preconditioner : pencil.inverse) = preconditioner.get();
    ctx->synchronize();
    report.preconditioner = options.preconditioner;
    report.seconds.setup = watch.lap();

    std::optional<CheckpointFolder<T>> checkpoint;
    if (options.checkpoint.asked()) {
        checkpoint.emplace(*ctx, options.checkpoint, matrix.row_map(), std::move(identity));
        pencil.checkpoint = &*checkpoint;
    }
    // From here on a signal ends the solver, not the command.
    const Interrupt interrupt;
    options.solver.keep_going = [&](const IterationEvent&) { return !interrupt.requested(); };
    const EigenResult<T> result = solve_pencil(*ctx, pencil, options);
    take_result(result, report);
    if (guarded) {
        guarded->audit(*ctx);
        report.abft = {to_string(options.protection.mode), guarded->counts().summed(comm),
                       options.inject_given};
    }
    ctx->synchronize();
    report.seconds.solve = watch.lap();
    progress.clear();

    report.where = where_it_ran(*ctx, execution);
    report.method = to_string(result.method);
    report.method_reason = result.method_reason;
    report.k =
        options.window_given ? static_cast<int>(result.eigenvalues.size()) : options.solver.k;
    report.k_lowered =
        !options.window_given && !options.k_given && options.solver.k < EigenOptions{}.k;
    report.which = options.window_given ? "window" : options.which;
    report.window = options.solver.window;
    report.expected_count = result.expected_count;
    report.expected_error = result.expected_error;
    report.seed = options.solver.seed;
    report.tolerance_asked = options.solver.tol;
    if (problem.generated && !mass) {
        report.exact = known_eigenvalues(problem, options.solver, report.matrix.rows);
    }
    if (options.verify == "inertia" && report.converged) {
        report.inertia = count_by_inertia<T>(comm, problem, options.solver, report);
        const bool agrees = std::all_of(report.inertia.begin(), report.inertia.end(),
                                        [](const InertiaCount& count) { return count.agrees(); });
        report.converged = agrees;
        if (!agrees) {
            report.message = "the factorisation does not confirm the count";
        }
    }
    report.kernels = ctx->ledger().records();
    for (std::size_t kind = 0; kind < overhead_kinds; ++kind) {
        report.overhead.push_back(OverheadCounts::of(*ctx)[static_cast<Overhead>(kind)]);
    }
    report.profile = options.profile;
    deliver(*ctx, options, report, result);
    return report.converged ? success : not_converged;
}

int run_eigs(const Comm& comm, EigsOptions options) {
    comm.agree([&] {
        take_which(options);
        set_task(options);
        settle_mixed(options);
        check_options(options);
        take_preconditioner(options);
        check_checkpoint(options.checkpoint, comm.rank());
        take_protection(options);
        if (options.vectors_given) {
            require_hdf5();
        }
        if (comm.rank() == 0 && options.json_given) {
            check_writable(options.json);
            require_not_the_matrix("--json", options.json, options.matrix);
            require_not_the_matrix("--json", options.json, options.mass);
        }
        if (comm.rank() == 0 && options.vectors_given) {
            check_writable(options.vectors, "--vectors");
            require_not_the_matrix("--vectors", options.vectors, options.matrix);
            require_not_the_matrix("--vectors", options.vectors, options.mass);
            if (options.json_given && std::filesystem::weakly_canonical(options.json) ==
                                          std::filesystem::weakly_canonical(options.vectors)) {
                throw InputError("--json and --vectors name the same file, " + options.json);
            }
        }
    });
    Problem problem = inspect_problem(comm, options.matrix);
    std::optional<Problem> mass;
    if (options.mass_given) {
        mass = inspect_problem(comm, options.mass);
        comm.agree(
            [&] { choose_scalar(*mass, options.scalar); });  // names the file that is complex
        problem.complex = mass->complex = problem.complex || mass->complex;
    }
    Dtype dtype = Dtype::d;
    comm.agree([&] {
        dtype = choose_scalar(problem, options.scalar);
        if (!problem.generated) {
            if (problem.rows != problem.cols) {
                throw InputError(fmt::format("{}: {} x {} is not square", problem.spec,
                                             problem.rows, problem.cols));
            }
            check_sizes(options, problem.rows);
            if (mass && !mass->generated) {
                require_same_size(*mass, mass->rows, problem.rows);
            }
        }
    });
    const Execution execution = choose_execution(comm, options.device);
    return visit_dtype(
        dtype, [&]<class T>() { return solve<T>(comm, options, problem, mass, execution); });
}

}  // namespace

void add_eigs(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<EigsOptions>();
    EigenOptions& solver = options->solver;
    CLI::App* eigs = app.add_subcommand("eigs", eigs_description);
    eigs->footer(eigs_footer());
    eigs->add_option("MATRIX", options->matrix, "File or gen:NAME,key=value,...")->required();
    const CLI::Option* mass = eigs->add_option(
        "--mass", options->mass,
        "B of A x = lambda B x, positive definite: a file or gen:NAME,... of the same size");
    const CLI::Option* k = add_number(*eigs, "-k", solver.k, "Number of eigenpairs");
    const CLI::Option* window =
        eigs->add_option("--window", options->window,
                         "LOW:HIGH: all eigenvalues in between, instead of -k and --which");
    const CLI::Option* which =
        eigs->add_option("--which", options->which,
                         "smallest, largest, or target:VALUE for those nearest VALUE")
            ->check([](const std::string& text) {
                return text == "smallest" || text == "largest" || text.starts_with("target:")
                           ? std::string()
                           : text + " is none of smallest, largest, target:VALUE";
            })
            ->capture_default_str();
    add_number(*eigs, "--block", solver.block, "Columns of a block, 1 to 64; 0 chooses");
    add_number(*eigs, "--basis", solver.max_basis,
               "Columns of the search basis before a restart; 0 chooses");
    add_number(*eigs, "--tol", solver.tol, "Residual relative to ||A|| that counts as converged");
    add_number(*eigs, "--max-iterations", solver.max_iterations, "Block steps before giving up");
    eigs->add_option("--method", options->method, "Solver")
        ->check(CLI::IsMember({"auto", "lanczos", "chebyshev", "lobpcg", "jd", "filter"}))
        ->capture_default_str();
    eigs->add_option("--precond", options->preconditioner,
                     "Preconditioner of lobpcg and jd, see below")
        ->capture_default_str();
    eigs->add_option("--verify", options->verify,
                     "Proof of completeness: fresh random columns, or also an inertia count")
        ->check(CLI::IsMember({"columns", "inertia"}))
        ->capture_default_str();
    eigs->add_option(
            "--device", options->device,
            "Where to run; auto takes a GPU if there is one, mixed all GPUs and host ranks")
        ->check(CLI::IsMember({"auto", "host", "cuda", "mixed"}))
        ->capture_default_str();
    eigs->add_option("--weights", options->weights,
                     "Rows of each rank: equal, measured (by bandwidth), a list of numbers; auto "
                     "measures with --device mixed")
        ->capture_default_str();
    eigs->add_option("--scalar", options->scalar,
                     "s, d, c, z as in BLAS; auto takes z for a complex file, else d")
        ->check(CLI::IsMember({"auto", "s", "d", "c", "z"}))
        ->capture_default_str();
    const CLI::Option* json =
        eigs->add_option("--json", options->json, "Also write all results to this file");
    const CLI::Option* vectors = eigs->add_option("--vectors", options->vectors,
                                                  "Also write the eigenvectors to this HDF5 file");
    CheckpointOptions& checkpoint = options->checkpoint;
    eigs->add_option("--checkpoint", checkpoint.write_to,
                     "Folder that takes the solver's state, to go on after a crash");
    add_number(*eigs, "--every", checkpoint.every,
               "Seconds between two checkpoints; 0: each iteration");
    eigs->add_option("--resume", checkpoint.read_from,
                     "Folder of checkpoints to go on from, with the same problem and options");
    add_number(*eigs, "--seed", solver.seed, "Seed of all random columns");
    eigs->add_option(
            "--abft", options->abft,
            "Silent faults in products and, of lanczos, in the basis: off, detect, correct")
        ->check(CLI::IsMember({"off", "detect", "correct"}))
        ->capture_default_str();
    eigs->add_flag("--abft-updates", options->protection.updates,
                   "With --abft: also each update of blocks of the other methods; 1.5 to 4 "
                   "times as long");
    const CLI::Option* inject = eigs->add_option(
        "--inject", options->inject,
        "Flip bits to see what --abft does: rate=0.01,where=output+matrix,bit=any,seed=1");
    eigs->add_flag("-v,--verbose", options->verbose, "Show kernels and fallbacks");
    eigs->add_flag("--profile", options->profile,
                   "Show what an iteration takes: kernels, launches, waits, sums over ranks");
    eigs->callback([=, &chosen] {
        options->k_given = k->count() > 0;
        options->which_given = which->count() > 0;
        options->window_given = window->count() > 0;
        options->mass_given = mass->count() > 0;
        options->json_given = json->count() > 0;
        options->vectors_given = vectors->count() > 0;
        options->inject_given = inject->count() > 0;
        chosen = [options](const Comm& comm) { return run_eigs(comm, *options); };
    });
}

}  // namespace quiver::apps
