// SPDX-License-Identifier: BSD-3-Clause
// The command line of `quiver eigs`.
#include <algorithm>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/command_line.hpp"
#include "apps/eigs.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/number_option.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/row_distribution_options.hpp"
#include "apps/subcommands.hpp"

namespace quiver::apps {
namespace {

constexpr const char* eigs_description =
    "Eigenvalues of a sparse symmetric or Hermitian matrix, with all copies of multiple ones: k at "
    "an end or nearest a target, or all in a window";

constexpr const char* eigs_examples =
    R"(PRECONDITIONER: none; jacobi, block-jacobi,size=8, chebyshev,degree=8, ic, ilu, ic,sweeps=4,
ilu,sweeps=4, which approximate the inverse of A; or ldlt,shift=VALUE, a complete factorisation of
A - VALUE B (B = I without --mass). The default VALUE is the target of --which, else 0.

Examples:
  quiver eigs matrix.mtx -k 20 --which largest
  quiver eigs gen:laplace3d,nx=40,ny=40,nz=40 -k 10 --block 4 --tol 1e-8
  quiver eigs gen:spinSZ,L=16 -k 3 --scalar s
  quiver eigs gen:topi,nx=12 --window -0.1:0.1
  quiver eigs stiffness.mtx --mass mass.mtx -k 10 --precond ldlt
  quiver eigs gen:anderson,L=12 --which target:0 -k 20 --precond ldlt
  mpirun -n 4 quiver eigs matrix.mtx.gz --device cuda --json out.json
  curl https://example.org/matrix.mtx.gz | quiver eigs - --json - | jq .eigenvalues
  mpirun -n 4 quiver eigs matrix.mtx.gz --checkpoint saved --resume saved --every 600

Exit status: 0 converged and every copy verified; 1 not converged or not verified (results are
still printed and written, and marked); 2 bad usage or input; 3 a failure while running.)";

void add_task(CLI::App& eigs, EigsOptions& options);
void add_solver(CLI::App& eigs, EigsOptions& options);
void add_outputs(CLI::App& eigs, EigsOptions& options);
std::string list_of_generators();

}  // namespace

void add_eigs(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<EigsOptions>();
    CLI::App* eigs = app.add_subcommand("eigs", eigs_description);
    eigs->footer(list_of_generators() + '\n' + eigs_examples);
    add_task(*eigs, *options);
    add_solver(*eigs, *options);
    add_outputs(*eigs, *options);
    add_fault_options(*eigs, options->faults,
                      "Detect silent faults in products, and with lanczos in the basis");
    set_action(*eigs, chosen, options, run_eigs, [=] {
        const auto is_given = [&](const char* name) { return eigs->count(name) > 0; };
        options->k_given = is_given("-k");
        options->which_given = is_given("--which");
        options->window_given = is_given("--window");
        options->mass_given = is_given("--mass");
    });
}

namespace {

/// Options that say which eigenvalues of which matrix to compute, and where.
void add_task(CLI::App& eigs, EigsOptions& options) {
    eigs.add_option("MATRIX", options.matrix, matrix_argument)->required();
    eigs.add_option(
        "--mass", options.mass,
        "Positive definite B of A x = lambda B x: a matrix like MATRIX, of the same size; lanczos, "
        "chebyshev and filter take a diagonal B, or any on one rank");
    add_number(eigs, "-k", options.solver.k, "Number of eigenpairs");
    eigs.add_option("--window", options.window,
                    "LOW:HIGH: all eigenvalues in between, instead of -k and --which");
    eigs.add_option("--which", options.which,
                    "smallest, largest, both-ends, largest-magnitude, smallest-magnitude, or "
                    "target:VALUE for those nearest VALUE")
        ->check([](const std::string& text) {
            const auto words = {"smallest", "largest", "both-ends", "largest-magnitude",
                                "smallest-magnitude"};
            const bool known = text.starts_with("target:") ||
                               std::find(words.begin(), words.end(), text) != words.end();
            return known ? std::string()
                         : text +
                               " is not one of smallest, largest, both-ends, largest-magnitude, "
                               "smallest-magnitude, target:VALUE";
        })
        ->capture_default_str();
    eigs.add_option("--device", options.device,
                    "Where to run: auto chooses GPUs if every rank sees one; mixed: one rank on "
                    "each GPU, the other ranks on the host")
        ->check(CLI::IsMember({"auto", "host", "cuda", "mixed"}))
        ->capture_default_str();
    eigs.add_option("--weights", options.rows.weights,
                    "Rows of each rank: equal, measured (by bandwidth) or a list of weights; auto: "
                    "measured if some ranks run on GPUs and some on the host, else equal")
        ->capture_default_str();
    add_row_distribution(eigs, options.rows);
    eigs.add_option("--scalar", options.scalar,
                    "s, d, c, z as in BLAS; auto: z for a complex matrix, else d")
        ->check(CLI::IsMember({"auto", "s", "d", "c", "z"}))
        ->capture_default_str();
}

void add_solver(CLI::App& eigs, EigsOptions& options) {
    EigenOptions& solver = options.solver;
    add_number(eigs, "--block", solver.block, "Columns of a block, 1 to 64; 0: the solver chooses");
    add_number(eigs, "--basis", solver.max_basis,
               "Columns of the search basis before a restart; 0: the solver chooses");
    add_number(eigs, "--tol", solver.tol, "Residual relative to ||A|| that counts as converged");
    add_number(eigs, "--max-iterations", solver.max_iterations,
               "Block steps before giving up; 0: until they bring no progress");
    add_number(eigs, "--max-seconds", solver.max_seconds,
               "Ends the solve after this time, with the pairs found so far; 0: no limit");
    eigs.add_option("--method", options.method, "Solver")
        ->check(CLI::IsMember(
            {"auto", "lanczos", "chebyshev", "lobpcg", "jd", "filter", "dense", "shift-invert"}))
        ->capture_default_str();
    eigs.add_option_function<std::string>(
            "--inner",
            [&solver](const std::string& text) {
                for (const InnerSolver inner : {InnerSolver::minres, InnerSolver::cg,
                                                InnerSolver::gmres, InnerSolver::jdqmr}) {
                    solver.inner = text == to_string(inner) ? inner : solver.inner;
                }
            },
            "Solver of the correction equations of jd; cg: only at an end; jdqmr: minres that "
            "stops "
            "when the pair's estimated residual no longer falls")
        ->check(CLI::IsMember({"minres", "cg", "gmres", "jdqmr"}))
        ->default_str("minres");
    eigs.add_option("--precond", options.preconditioner,
                    "PRECONDITIONER of lobpcg and jd, see below")
        ->capture_default_str();
    eigs.add_option("--verify", options.verify,
                    "Check that no eigenvalue is missing: by random columns, or also by an inertia "
                    "count")
        ->check(CLI::IsMember({"columns", "inertia"}))
        ->capture_default_str();
    add_number(eigs, "--seed", solver.seed, "Seed of all random columns");
}

void add_outputs(CLI::App& eigs, EigsOptions& options) {
    add_json(eigs, options.json);
    add_output(eigs, "--vectors", options.vectors, "Also write the eigenvectors to this HDF5 file",
               hdf5_format);
    CheckpointOptions& checkpoint = options.checkpoint;
    eigs.add_option("--checkpoint", checkpoint.write_to,
                    "Folder to save the solver's state in, to resume after a crash");
    add_number(eigs, "--every", checkpoint.every,
               "Seconds between two checkpoints; 0: each iteration");
    eigs.add_option("--resume", checkpoint.read_from,
                    "Folder of checkpoints to resume from, with the same problem and options");
    eigs.add_flag("-v,--verbose", options.verbose, "Show kernels, fallbacks and faults");
    eigs.add_flag("--profile", options.profile,
                  "Show what an iteration costs: kernels, launches, waits, reductions over ranks");
}

std::string list_of_generators() {
    std::string text =
        "MATRIX is a Matrix Market file (.mtx, .mtx.gz), - for such a file on standard input (of "
        "rank 0),\nor one of\n";
    for (const GeneratorInfo& generator : generators()) {
        std::string spec = fmt::format("gen:{}", generator.name);
        for (const GeneratorKey& key : generator.keys) {
            spec += fmt::format(",{}={}", key.name, key.default_value);
        }
        text += fmt::format("  {:<34} {}\n", spec, generator.description);
    }
    return text;
}

}  // namespace
}  // namespace quiver::apps
