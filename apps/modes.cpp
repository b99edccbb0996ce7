// SPDX-License-Identifier: BSD-3-Clause
// `quiver modes`: vibration modes of K x = lambda M x.
#include "solvers/eigen/modes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command_line.hpp"
#include "apps/eigs.hpp"
#include "apps/execution.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/points.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/report_parts.hpp"
#include "apps/run.hpp"
#include "apps/subcommands.hpp"
#include "apps/vtk_file.hpp"
#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"

namespace quiver::apps {
namespace {

struct ModesCommand {
    std::string stiffness;
    std::string mass;
    std::string range;
    double near = 0;
    std::string unit = "Hz";
    std::string coordinates;
    std::string method = "auto";
    std::string device = "auto";
    std::string scalar = "d";
    Output json;
    Output vectors;
    Output vtk;
    bool translations = false;
    bool k_given = false;
    bool range_given = false;
    bool near_given = false;
    ModesOptions modes;
};

struct ModesReport {
    /// K and the solve; other fields are not used.
    EigsReport solve;
    EigsReport::Matrix mass;
    ModesFacts facts;
    RunFacts run;
};

constexpr std::array direction_names{"x", "y", "z", "rx", "ry", "rz"};

/// Converts the words of the command line, and checks the files on rank 0.
void resolve_modes(ModesCommand& command, int rank) {
    ModesOptions& modes = command.modes;
    if (command.range_given && (command.near_given || command.k_given)) {
        throw InputError("--range finds all modes in it; omit -k and --near");
    }
    if (command.range_given) {
        modes.range = parse_window("--range", command.range);
        modes.solver.k = 1;  // not used with a range
    }
    if (command.near_given) {
        modes.near = command.near;
    }
    modes.unit = command.unit == "Hz" ? hertz : radians_per_second;
    modes.solver.method = method_named(command.method);
    if (command.mass.empty()) {
        if (!generated_mesh(command.stiffness)) {
            throw InputError(
                "modes: M is missing; only gen:hexahedra has a mass matrix of its own");
        }
        command.mass = command.stiffness + ",matrix=mass";
    }
    if (rank == 0) {
        check_outputs({&command.json, &command.vectors, &command.vtk},
                      {{command.stiffness, "an input file"},
                       {command.mass, "an input file"},
                       {command.coordinates, "an input file"}});
    }
}

/// K and M with equally distributed rows.
template <class T>
CsrRows<T> load_matrix(const Comm& comm, const std::string& spec, int threads) {
    const Problem problem = inspect_problem(comm, spec);
    if (problem.complex) {
        throw_collective(ErrorKind::input, spec + ": the matrix is complex; K and M are real");
    }
    CsrRows<T> rows = load_problem<T>(comm, problem, threads, Partition(Partition::by_rows));
    check_norm(comm, problem, rows, threads);  // NaN and infinity; the solvers scale K and M
    require_hermitian(comm, problem, rows, threads);
    return rows;
}

/// The mesh of a generated body, or the nodes of --coordinates; no value without either.
std::optional<Mesh> load_mesh(const Comm& comm, const ModesCommand& command, std::int64_t rows) {
    std::optional<Mesh> mesh;
    comm.agree([&] {
        if (command.coordinates.empty()) {
            mesh = generated_mesh(command.stiffness);
            return;
        }
        Context alone{Comm(), Device::host()};
        const Points points = inspect_points(alone.comm(), command.coordinates, "coordinates");
        if (points.columns != 3 || 3 * points.rows != rows) {
            throw InputError(
                fmt::format("--coordinates {}: {} x {}, but {} rows of K need the "
                            "three coordinates of {:.6g} nodes",
                            command.coordinates, points.rows, points.columns, rows,
                            static_cast<double>(rows) / 3));
        }
        const BlockVector<double> block = load_points<double>(alone, points);
        mesh.emplace();
        for (std::int64_t i = 0; i < points.rows; ++i) {
            const double* const row = block.view().data + i * block.view().ld;
            mesh->points.insert(mesh->points.end(), row, row + 3);
        }
    });
    return mesh;
}

/// The directions of participation; no columns without three unknowns a node.
template <class T>
BlockVector<T> load_directions(Context& ctx, const ModesCommand& command,
                               const std::optional<Mesh>& mesh, const RowMap& map) {
    if (!mesh && !command.translations) {
        return {};
    }
    ctx.comm().agree([&] {
        if (map.global_rows() % 3 != 0) {
            throw InputError(fmt::format("--translations: {} rows are not three for each node",
                                         map.global_rows()));
        }
    });
    if (!mesh) {
        return rigid_directions<T>(ctx, map, {});
    }
    return rigid_directions<T>(
        ctx, map, std::span(mesh->points).subspan(static_cast<std::size_t>(3 * mesh->fixed)));
}

template <class T>
void take_result(const ModesResult<T>& result, ModesReport& report) {
    const EigenResult<T>& eigen = result.eigen;
    report.facts = result;
    EigsReport& solve = report.solve;
    solve.eigenvalues = eigen.eigenvalues;
    solve.residuals = eigen.residuals;
    solve.errors = eigen.errors;
    solve.norm_estimate = eigen.norm_estimate;
    solve.tolerance = eigen.tolerance;
    solve.verified = eigen.multiplicity == Multiplicity::verified;
    solve.converged = eigen.converged && solve.verified;
    solve.interrupted = eigen.interrupted;
    solve.cluster_cut = eigen.cluster_cut;
    solve.method = to_string(eigen.method);
    solve.method_reason = eigen.method_reason;
    solve.library = eigen.library;
    solve.message = eigen.message;
}

std::string to_table(const ModesCommand& command, const ModesReport& report) {
    const ModesFacts& facts = report.facts;
    const EigsReport& solve = report.solve;
    std::string text = heading(solve.matrix, report.run.where);
    text += fmt::format("mass        {}: {}\n", report.mass.spec,
                        plural(report.mass.nonzeros, "nonzero"));
    text += fmt::format("method      {}{}{}\n", solve.method, solve.library.empty() ? "" : " by ",
                        solve.library);
    text += fmt::format("modes       {}, {}: {} rigid, {} unstable\n", facts.frequencies.size(),
                        solve.converged     ? "verified"
                        : solve.interrupted ? "INTERRUPTED"
                                            : "NOT CONVERGED",
                        facts.rigid, facts.unstable);
    if (facts.rigid > 0) {
        text += fmt::format("rigid       up to {:.3g} {}\n", facts.rigid_limit, command.unit);
    }
    if (facts.infinite > 0) {
        text += fmt::format("infinite    {}{}: the null space of M\n",
                            facts.infinite_at_least ? "at least " : "",
                            plural(facts.infinite, "eigenvalue"));
    }
    if (solve.cluster_cut) {
        text += "cut         the last mode has further copies\n";
    }
    if (!solve.message.empty()) {
        text += fmt::format("message     {}\n", solve.message);
    }
    const std::size_t directions = facts.total_masses.size();
    std::vector<std::vector<double>> shares;
    if (directions > 0) {
        text += fmt::format("total mass  {:.6g} in x, {:.6g} in y, {:.6g} in z\n",
                            facts.total_masses[0], facts.total_masses[1], facts.total_masses[2]);
    }
    text += fmt::format("\n{:>6}{:>16}{:>8}{:>14}{:>11}", "mode", "frequency " + command.unit,
                        "digits", "modal mass", "residual");
    for (std::size_t d = 0; d < directions; ++d) {
        text += fmt::format("{:>8}", fmt::format("{} %", direction_names[d]));
        shares.push_back(facts.effective_masses(d));
    }
    text += "\n";
    std::vector<double> captured(directions);
    const std::vector<int> digits = correct_digits(solve);
    for (std::size_t i = 0; i < facts.frequencies.size(); ++i) {
        const bool has_digits = i < digits.size() && facts.frequencies[i] != 0;
        text += fmt::format("{:>6}{:>16.9g}{:>8}{:>14.5g}{:>11.1e}", i + 1, facts.frequencies[i],
                            has_digits ? std::to_string(digits[i]) : "-", facts.modal_masses[i],
                            solve.residuals[i] / solve.norm_estimate);
        for (std::size_t d = 0; d < directions; ++d) {
            const double share = 100 * shares[d][i] / facts.total_masses[d];
            captured[d] += share;
            text += fmt::format("{:>8.2f}", share);
        }
        text += "\n";
    }
    if (directions > 0) {
        text += fmt::format("{:>55}", "all modes");
        for (const double share : captured) {
            text += fmt::format("{:>8.2f}", share);
        }
        text += "\n";
    }
    return text + "\n" + seconds_line(report.run);
}

std::string to_json(const ModesCommand& command, const ModesReport& report) {
    using nlohmann::ordered_json;
    const ModesFacts& facts = report.facts;
    const EigsReport& solve = report.solve;
    ordered_json directions = ordered_json::array();
    for (std::size_t d = 0; d < facts.total_masses.size(); ++d) {
        directions.push_back({{"name", direction_names[d]},
                              {"total_mass", json_number(facts.total_masses[d])},
                              {"participation", json_numbers(facts.participation[d])},
                              {"effective_masses", json_numbers(facts.effective_masses(d))}});
    }
    const bool rotations = facts.total_masses.size() == 6;
    const std::vector<double> centre(facts.centre.begin(), facts.centre.end());
    const ModesOptions& asked = command.modes;
    const ordered_json json = {
        {"matrix", json_matrix(solve.matrix)},
        {"mass", json_matrix(report.mass)},
        {"k", asked.range ? ordered_json(nullptr) : ordered_json(asked.solver.k)},
        {"range",
         asked.range ? json_numbers({asked.range->low, asked.range->high}) : ordered_json(nullptr)},
        {"near", asked.near ? ordered_json(*asked.near) : ordered_json(nullptr)},
        {"unit", command.unit},
        {"rigid_below", asked.rigid_below},
        {"seed", asked.solver.seed},
        {"method", solve.method},
        {"method_reason", solve.method_reason},
        {"library", solve.library},
        {"tolerance", solve.tolerance},
        {"frequencies", json_numbers(facts.frequencies)},
        {"eigenvalues", json_numbers(solve.eigenvalues)},
        {"residuals", json_numbers(solve.residuals)},
        {"errors", json_numbers(solve.errors)},
        {"digits", correct_digits(solve)},
        {"norm_estimate", json_number(solve.norm_estimate)},
        {"modal_masses", json_numbers(facts.modal_masses)},
        {"rigid", facts.rigid},
        {"rigid_limit", facts.rigid_limit},
        {"unstable", facts.unstable},
        {"infinite", facts.infinite},
        {"infinite_at_least", facts.infinite_at_least},
        {"directions", directions},
        {"centre_of_mass", rotations ? json_numbers(centre) : ordered_json(nullptr)},
        {"converged", solve.converged},
        {"multiplicity", solve.verified ? "verified" : "unverified"},
        {"cluster_cut", solve.cluster_cut},
        {"interrupted", solve.interrupted},
        {"message", solve.message}};
    return json_report("modes", json, report.run);
}

/// Mode i at all nodes of the mesh, scaled so that the largest element is 1 or -1. Collective; the
/// result is complete on every rank.
template <class T>
NodeVectors node_vectors(const Comm& comm, const BlockView<const T>& x, const RowMap& map,
                         const Mesh& mesh, int i, double scale, double frequency,
                         const std::string& unit) {
    std::vector<double> all(static_cast<std::size_t>(map.global_rows()));
    for (std::int64_t row = 0; row < x.rows; ++row) {
        all[static_cast<std::size_t>(map.first_row() + row)] =
            scale * static_cast<double>(x(row, i));
    }
    comm.sum(std::span<double>(all));
    NodeVectors vectors{fmt::format("mode_{}_{:.6g}_{}", i + 1, frequency,
                                    unit == "Hz" ? unit : std::string("rad_per_s")),
                        std::vector<float>(static_cast<std::size_t>(3 * mesh.fixed))};
    vectors.values.insert(vectors.values.end(), all.begin(), all.end());
    return vectors;
}

template <class T>
void write_shapes(Context& ctx, const ModesCommand& command, const Mesh& mesh,
                  const ModesResult<T>& result) {
    const BlockVector<T>& x = result.eigen.vectors;
    BlockVector<T> host;
    ctx.comm().agree([&] {
        host = BlockVector<T>(ctx, x.row_map(), x.width(), 0, Place::host);
        copy(ctx, x.view(), host.view());
    });
    std::vector<NodeVectors> shapes;
    for (int i = 0; i < x.width(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        NodeVectors one = node_vectors<T>(ctx.comm(), std::as_const(host).view(), x.row_map(), mesh,
                                          i, std::sqrt(result.modal_masses[at]),
                                          result.frequencies[at], command.unit);
        if (ctx.comm().rank() == 0) {
            shapes.push_back(std::move(one));
        }
    }
    ctx.comm().agree([&] {
        if (ctx.comm().rank() == 0) {
            write_vtk(command.vtk.path, "quiver modes " + command.stiffness, mesh, shapes);
        }
    });
}

template <class T>
void write_vectors(Context& ctx, const ModesCommand& command, const ModesResult<T>& result) {
    BlockFileNotes notes;
    notes.numbers = {{"frequencies", result.frequencies},
                     {"eigenvalues", result.eigen.eigenvalues},
                     {"residuals", result.eigen.residuals},
                     {"modal_masses", result.modal_masses}};
    for (std::size_t d = 0; d < result.participation.size(); ++d) {
        notes.numbers.emplace_back(fmt::format("effective_masses_{}", direction_names[d]),
                                   result.effective_masses(d));
    }
    notes.texts = {{"matrix", command.stiffness},
                   {"mass", command.mass},
                   {"unit", command.unit},
                   {"quiver_version", config::version}};
    write_block_vector(ctx, command.vectors.path, result.eigen.vectors, notes);
}

template <class T>
bool find_modes(const Comm& comm, ModesCommand& command, const Execution& execution) {
    SolverRun run(comm, execution);
    Context& ctx = run.ctx();
    ModesReport report;
    const int threads = execution.device.threads;
    CsrRows<T> stiffness = load_matrix<T>(comm, command.stiffness, threads);
    CsrRows<T> mass = load_matrix<T>(comm, command.mass, threads);
    const RowMap map = stiffness.map;
    const std::int64_t rows = map.global_rows();
    comm.agree([&] {
        if (mass.map.global_rows() != rows) {
            throw InputError(fmt::format("{}: {} rows, but K has {}", command.mass,
                                         mass.map.global_rows(), rows));
        }
        if (!command.k_given) {
            command.modes.solver.k =
                static_cast<int>(std::min<std::int64_t>(command.modes.solver.k, rows));
        }
    });
    const std::optional<Mesh> mesh = load_mesh(comm, command, rows);
    if (command.vtk.given && !mesh) {
        throw_collective(ErrorKind::input, "--vtk needs the nodes: add --coordinates FILE");
    }
    report.solve.matrix = {command.stiffness, rows, 0, dtype_v<T>, stiffness.symmetry};
    report.mass = {command.mass, rows, 0, dtype_v<T>, mass.symmetry};
    run.end_phase("read");

    SparseMatrix<T> k(ctx, std::move(stiffness));
    SparseMatrix<T> m(ctx, std::move(mass));
    report.solve.matrix.nonzeros = k.global_nonzeros();
    report.mass.nonzeros = m.global_nonzeros();
    const BlockVector<T> directions = load_directions<T>(ctx, command, mesh, map);
    run.end_phase("setup");

    command.modes.solver.keep_going = run.keep_going();
    const ModesResult<T> result = modes<T>(ctx, k, m, command.modes, directions.view());
    run.end_phase("solve");
    take_result(result, report);
    run.write(command.vtk, [&] { write_shapes(ctx, command, *mesh, result); });
    run.write(command.vectors, [&] { write_vectors(ctx, command, result); });
    run.end_phase("write");
    report.run = run.facts();
    run.report(to_table(command, report), command.json, [&] { return to_json(command, report); });
    run.finish();
    return report.solve.converged;
}

bool run_modes(const Comm& comm, ModesCommand command) {
    comm.agree([&] { resolve_modes(command, comm.rank()); });
    const Execution execution = choose_execution(comm, command.device);
    return command.scalar == "s" ? find_modes<float>(comm, command, execution)
                                 : find_modes<double>(comm, command, execution);
}

constexpr const char* modes_examples =
    R"(Examples:
  quiver modes K.mtx M.mtx -k 12                      the 12 lowest modes
  quiver modes K.mtx M.mtx --range 0:200              all modes up to 200 Hz, rigid ones included
  quiver modes K.mtx M.mtx --near 50 -k 4             4 modes near 50 Hz
  quiver modes gen:hexahedra,nx=40,ny=4,nz=4,lx=2,ly=0.2,lz=0.2 -k 12 --vtk modes.vtk
  quiver modes K.mtx M.mtx --coordinates nodes.mtx --vtk modes.vtk --vectors modes.h5
  mpirun -n 4 quiver modes gen:hexahedra,support=clamped --json report.json

K is symmetric and may be singular; M is symmetric, positive semidefinite, diagonal or not. Shares
of mass need three unknowns a node: gen:hexahedra, --coordinates or --translations.
apps/modes_plot.py draws the JSON report.

Exit status: 0 all modes verified; 1 not converged; 2 bad usage or input; 3 a failure while
running.)";

void add_selection(CLI::App& app, ModesCommand& command) {
    app.add_option("K", command.stiffness, matrix_argument)->required();
    app.add_option(
        "M", command.mass,
        "The same; may be omitted for gen:hexahedra, whose consistent mass matrix it is");
    add_number(app, "-k,--modes", command.modes.solver.k, "Number of modes");
    app.add_option("--range", command.range, "LOW:HIGH: all modes with frequencies in this range");
    add_number(app, "--near", command.near, "The -k modes nearest this frequency");
    add_word(app, "--unit", command.unit, "Unit of all frequencies", {"Hz", "rad/s"});
    add_number(app, "--rigid-below", command.modes.rigid_below,
               "Modes below this frequency also count as rigid");
    app.add_option("--coordinates", command.coordinates,
                   "Nodes x 3 coordinates, for three unknowns a node: Matrix Market array, or "
                   "dataset `coordinates` of an HDF5 file");
    app.add_flag("--translations", command.translations,
                 "Three unknowns a node, without coordinates: shares of mass in x, y and z");
}

}  // namespace

void add_modes(CLI::App& app, Action& chosen) {
    auto command = std::make_shared<ModesCommand>();
    CLI::App* modes = app.add_subcommand("modes", "Vibration modes of K x = lambda M x");
    modes->footer(modes_examples);
    add_selection(*modes, *command);
    add_word(*modes, "--method", command->method,
             "Solver; auto: dense for small matrices, else shift-invert",
             {"auto", "lanczos", "chebyshev", "lobpcg", "jd", "filter", "dense", "shift-invert"});
    EigenOptions& solver = command->modes.solver;
    add_number(*modes, "--tol", solver.tol,
               "Residual relative to ||K|| + |lambda| ||M|| that counts as converged");
    add_number(*modes, "--max-seconds", solver.max_seconds,
               "Ends the solve after this time, with the modes found so far; 0: no limit");
    add_number(*modes, "--seed", solver.seed, "Seed of all random columns");
    add_device(*modes, command->device);
    add_word(*modes, "--scalar", command->scalar, "Precision of K, M and the modes: s or d",
             {"s", "d"});
    add_json(*modes, command->json);
    add_output(*modes, "--vectors", command->vectors, "HDF5 file for the modes, x^T M x = 1",
               hdf5_format);
    add_output(*modes, "--vtk", command->vtk, "VTK file for the shapes of the modes", "a VTK file");
    set_action(*modes, chosen, command, run_modes, [=] {
        command->k_given = modes->count("--modes") > 0;
        command->range_given = modes->count("--range") > 0;
        command->near_given = modes->count("--near") > 0;
    });
}

}  // namespace quiver::apps
