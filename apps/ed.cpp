// SPDX-License-Identifier: BSD-3-Clause
// `quiver ed`: energies and spectral densities of Hamiltonians of spins and fermions.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
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
#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/report.hpp"
#include "apps/report_parts.hpp"
#include "apps/run.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/hamiltonian/terms.hpp"
#include "solvers/eigen/exact_diagonalisation.hpp"

namespace quiver::apps {
namespace {

/// The prefix of a model in place of a file.
constexpr const char* model_prefix = "model:";

struct EdCommand {
    std::string input;
    /// "NAME=VALUE" of --sector.
    std::vector<std::string> sectors;
    std::string method = "auto";
    std::string scalar = "auto";
    std::string device = "auto";
    Output json;
    bool density_wanted = false;
    bool prints_terms = false;
    EigenOptions eigen;
    DensityOptions density;
};

/// What both scalars report.
struct EdReport {
    HamiltonianModel model;
    Dtype scalar = Dtype::d;
    /// As in ExactResult.
    struct Size {
        std::int64_t states = 0;
        int group_order = 1;
        std::int64_t table_bytes = 0;
        std::int64_t halo_rows = 0;
    } size;
    std::vector<double> energies;
    std::vector<double> residuals;
    std::vector<EnergyLevel> levels;
    double gap = 0;
    bool converged = false;
    bool interrupted = false;
    bool level_cut = false;
    std::string method;
    std::string message;
    std::int64_t applications = 0;
    std::optional<SpectralDensity> density;
    std::optional<SpectralDensity> probe;
    std::vector<KernelRecord> kernels;
    RunFacts run;
};

void check_command(const EdCommand& command) {
    check_outputs({&command.json}, {{command.input, "the file of the Hamiltonian"}});
    if (command.eigen.k < 0) {
        throw InputError(
            fmt::format("-k {}: the number of energies is not negative", command.eigen.k));
    }
    if (command.eigen.k == 0 && !command.density_wanted) {
        throw InputError("-k 0 without --density: nothing to compute");
    }
}

std::string read_terms(const std::string& input) {
    if (input.starts_with(model_prefix)) {
        return model_text(input.substr(std::char_traits<char>::length(model_prefix)));
    }
    if (input == "-") {
        return {std::istreambuf_iterator<char>(std::cin), {}};
    }
    std::ifstream file(input);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file || text.empty()) {
        throw InputError(input + ": cannot be read, or is empty; a file of terms or " +
                         "model:heisenberg,L=16 is wanted");
    }
    return text;
}

/// The text of the Hamiltonian with the sectors of the command line, read by rank 0.
std::string load_terms(const Comm& comm, const EdCommand& command) {
    std::string text;
    comm.agree([&] {
        if (comm.rank() == 0) {
            text = read_terms(command.input);
            for (const std::string& sector : command.sectors) {
                const std::size_t equals = sector.find('=');
                if (equals == std::string::npos) {
                    throw InputError("--sector " + sector + ": NAME=VALUE is wanted");
                }
                text += "\nsector " + sector.substr(0, equals) + " " + sector.substr(equals + 1);
            }
        }
    });
    std::int64_t size = comm.max(static_cast<std::int64_t>(text.size()));
    text.resize(static_cast<std::size_t>(size));
    comm.broadcast(text.data(), text.size(), 0);
    return text;
}

std::string sector_text(const HamiltonianModel& model) {
    const Sector& sector = model.sector;
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (sector.ones) {
        add(model.particles == Particles::spins
                ? fmt::format("Sz {}", *sector.ones - model.sites / 2.0)
                : plural(*sector.ones, "particle"));
    }
    if (sector.up) {
        add(fmt::format("{} up, {} down", *sector.up, *sector.down));
    }
    if (sector.momentum) {
        add(fmt::format("momentum 2 pi {} / {}", *sector.momentum, model.sites));
    }
    if (sector.reflection != 0) {
        add(fmt::format("reflection {}", sector.reflection));
    }
    if (sector.inversion != 0) {
        add(fmt::format("inversion {}", sector.inversion));
    }
    return text.empty() ? "all states" : text;
}

std::string density_line(const char* name, const SpectralDensity& density) {
    return fmt::format("{:<12}{} moments, resolution {:.3g}, {:.4g} to {:.4g}{}\n", name,
                       density.moments.size(), density.resolution, density.bounds.low,
                       density.bounds.high, density.interrupted ? ", INTERRUPTED" : "");
}

std::string to_table(const EdCommand& command, const EdReport& report) {
    std::string text = fmt::format("model       {}: {} {}\n", command.input, report.model.sites,
                                   to_string(report.model.particles));
    text += fmt::format("sector      {}: {}, {}\n", sector_text(report.model),
                        plural(report.size.states, "state"), name_of(report.scalar));
    text += fmt::format("tables      {:.4g} MB on a rank, {} from other ranks in a product\n",
                        1e-6 * static_cast<double>(report.size.table_bytes),
                        plural(report.size.halo_rows, "row"));
    text += where_lines(report.run.where);
    if (command.eigen.k > 0 || report.interrupted) {
        text += fmt::format("method      {}, {} of one column\n", report.method,
                            plural(report.applications, "product"));
        text += fmt::format("energies    {}{}\n",
                            report.converged     ? "converged"
                            : report.interrupted ? "INTERRUPTED"
                                                 : "NOT CONVERGED",
                            report.message.empty() ? "" : ": " + report.message);
        if (std::isfinite(report.gap)) {
            text += fmt::format("gap         {:.12g}\n", report.gap);
        }
    }
    if (report.density) {
        text += density_line("density", *report.density);
    }
    if (report.probe) {
        text += density_line("probe", *report.probe);
    }
    if (!report.levels.empty()) {
        text += fmt::format("\n{:>5}{:>22}{:>18}{:>12}\n", "level", "energy", "energy a site",
                            "states");
        for (std::size_t i = 0; i < report.levels.size(); ++i) {
            const bool cut = report.level_cut && i + 1 == report.levels.size();
            text += fmt::format("{:>5}{:>22.12f}{:>18.10f}{:>12}\n", i, report.levels[i].energy,
                                report.levels[i].energy / report.model.sites,
                                fmt::format("{}{}", report.levels[i].degeneracy, cut ? "+" : ""));
        }
    }
    return text + "\n" + seconds_line(report.run);
}

nlohmann::ordered_json json_density(const std::optional<SpectralDensity>& density) {
    if (!density) {
        return nullptr;
    }
    return {{"low", json_number(density->bounds.low)},
            {"high", json_number(density->bounds.high)},
            {"resolution", json_number(density->resolution)},
            {"interrupted", density->interrupted},
            {"moments", json_numbers(density->moments)},
            {"energies", json_numbers(density->energies)},
            {"density", json_numbers(density->density)},
            {"errors", json_numbers(density->errors)}};
}

std::string to_json(const EdCommand& command, const EdReport& report) {
    using nlohmann::ordered_json;
    ordered_json levels = ordered_json::array();
    for (const EnergyLevel& level : report.levels) {
        levels.push_back({{"energy", json_number(level.energy)}, {"states", level.degeneracy}});
    }
    const Sector& sector = report.model.sector;
    const auto optional = [](const std::optional<int>& value) {
        return value ? ordered_json(*value) : ordered_json(nullptr);
    };
    const ordered_json json = {{"input", command.input},
                               {"particles", to_string(report.model.particles)},
                               {"sites", report.model.sites},
                               {"sector",
                                {{"ones", optional(sector.ones)},
                                 {"up", optional(sector.up)},
                                 {"down", optional(sector.down)},
                                 {"momentum", optional(sector.momentum)},
                                 {"reflection", sector.reflection},
                                 {"inversion", sector.inversion}}},
                               {"states", report.size.states},
                               {"group_order", report.size.group_order},
                               {"scalar", std::string(1, letter(report.scalar))},
                               {"table_bytes", report.size.table_bytes},
                               {"halo_rows", report.size.halo_rows},
                               {"k", command.eigen.k},
                               {"method", report.method},
                               {"tolerance", command.eigen.tol},
                               {"seed", command.eigen.seed},
                               {"converged", report.converged},
                               {"interrupted", report.interrupted},
                               {"message", report.message},
                               {"operator_applications", report.applications},
                               {"energies", json_numbers(report.energies)},
                               {"residuals", json_numbers(report.residuals)},
                               {"levels", levels},
                               {"last_level_is_cut", report.level_cut},
                               {"gap", json_number(report.gap)},
                               {"density", json_density(report.density)},
                               {"probe", json_density(report.probe)},
                               {"kernels", json_kernels(report.kernels)}};
    return json_report("ed", json, report.run);
}

template <class T>
void take_result(ExactResult<T> result, EdReport& report) {
    report.size = {result.states, result.group_order, result.table_bytes, result.halo_rows};
    report.energies = result.eigen.eigenvalues;
    report.residuals = result.eigen.residuals;
    report.levels = std::move(result.levels);
    report.gap = result.gap;
    report.converged =
        result.eigen.converged && result.eigen.multiplicity == Multiplicity::verified;
    report.interrupted = result.eigen.interrupted;
    report.level_cut = result.eigen.cluster_cut;
    report.method = to_string(result.eigen.method);
    report.message = result.eigen.message;
    report.applications = result.eigen.operator_applications;
    report.density = std::move(result.density);
    report.probe = std::move(result.probe);
}

template <class T>
bool solve_model(const Comm& comm, const EdCommand& command, EdReport& report,
                 const Execution& execution) {
    SolverRun run(comm, execution);
    Context& ctx = run.ctx();
    ctx.ledger().set_timing(command.json.given);
    ExactOptions options{command.eigen, {}};
    options.eigen.keep_going = run.keep_going();
    if (command.density_wanted) {
        options.density = command.density;
        options.density->seed = command.eigen.seed;
        options.density->keep_going = options.eigen.keep_going;
    }
    take_result(exact_diagonalisation<T>(ctx, report.model, options), report);
    run.end_phase("");
    report.scalar = dtype_v<T>;
    report.kernels = ctx.ledger().records();
    report.run = run.facts();
    run.report(to_table(command, report), command.json, [&] { return to_json(command, report); });
    run.finish();
    const bool interrupted = report.interrupted ||
                             (report.density && report.density->interrupted) ||
                             (report.probe && report.probe->interrupted);
    return (command.eigen.k == 0 || report.converged) && !interrupted;
}

bool run_ed(const Comm& comm, const EdCommand& command) {
    comm.agree([&] {
        if (comm.rank() == 0) {
            check_command(command);
        }
    });
    const std::string text = load_terms(comm, command);
    EdReport report;
    comm.agree([&] { report.model = parse_hamiltonian(text, command.input); });
    if (command.prints_terms) {
        print(comm, text + "\n");
        return true;
    }
    const Execution execution = choose_execution(comm, command.device);
    const bool is_complex = report.model.is_complex();
    comm.agree([&] {
        if (is_complex && (command.scalar == "s" || command.scalar == "d")) {
            throw InputError("--scalar " + command.scalar +
                             ": the matrix is complex (a complex coefficient, or a momentum other "
                             "than 0 and pi); use --scalar " +
                             (command.scalar == "s" ? "c" : "z"));
        }
    });
    const std::string scalar = command.scalar != "auto" ? command.scalar : is_complex ? "z" : "d";
    switch (scalar.front()) {
        case 's':
            return solve_model<float>(comm, command, report, execution);
        case 'c':
            return solve_model<std::complex<float>>(comm, command, report, execution);
        case 'z':
            return solve_model<std::complex<double>>(comm, command, report, execution);
        default:
            return solve_model<double>(comm, command, report, execution);
    }
}

constexpr const char* ed_description =
    "Exact diagonalisation: energies and densities of spins and fermions, without a stored matrix";

constexpr const char* ed_examples =
    R"(Examples:
  quiver ed model:heisenberg,L=20 --sector sz=0            10 lowest energies of a ring of 20 spins
  quiver ed terms.txt -k 4 --json report.json              a Hamiltonian from a file
  quiver ed model:heisenberg,L=24 --sector sz=0 --sector momentum=0 --sector reflection=1
  quiver ed model:hubbard,L=8 --sector up=4 --sector down=4 -k 2
  quiver ed terms.txt -k 1 --density --moments 400         density of states, spectral function
  quiver ed model:ising,L=12,h=0.5 --print-terms           the file of a model

A file has one statement a line: spins N (or fermions N, spinless N), sector NAME VALUE, and terms
such as `ring 0.5 + - 0 1 hc`; see docs/exact_diagonalisation.md. apps/ed_plot.py draws the report.

Exit status: 0 converged; 1 not converged; 2 bad usage or input; 3 a failure while running.)";

void add_solver_options(CLI::App& ed, EdCommand& command) {
    add_number(ed, "-k", command.eigen.k, "Number of lowest energies; 0: none");
    add_word(ed, "--method", command.method, "Algorithm; auto chooses",
             {"auto", "lanczos", "chebyshev", "lobpcg", "jd", "dense"});
    add_number(ed, "--tol", command.eigen.tol, "Residual norms at most TOL times the norm of H");
    add_number(ed, "--block", command.eigen.block, "Columns of a product; 0: chosen");
    add_number(ed, "--max-iterations", command.eigen.max_iterations,
               "Limit of the iterations; 0: until it stagnates");
    add_number(ed, "--seed", command.eigen.seed, "Seed of all random vectors");
    ed.add_flag("--density", command.density_wanted,
                "Also the density of states and, with a probe, its spectral function");
    add_number(ed, "--moments", command.density.moments, "Chebyshev moments of a density");
    add_number(ed, "--columns", command.density.columns,
               "Random vectors of the density of states; 0: the exact trace");
    add_number(ed, "--points", command.density.points, "Energies at which densities are given");
}

}  // namespace

void add_ed(CLI::App& app, Action& chosen) {
    auto command = std::make_shared<EdCommand>();
    CLI::App* ed = app.add_subcommand("ed", ed_description);
    ed->footer(ed_examples);
    ed->add_option("HAMILTONIAN", command->input,
                   "File of terms, - for standard input, or model:NAME,key=value,... (heisenberg, "
                   "ising, hubbard)")
        ->required();
    ed->add_option("--sector", command->sectors,
                   "NAME=VALUE: sz, up, down, particles, momentum, reflection or inversion; may be "
                   "repeated, replaces that of the file")
        ->allow_extra_args(false);
    add_solver_options(*ed, *command);
    ed->add_flag("--print-terms", command->prints_terms, "Print the text of the Hamiltonian only");
    add_device(*ed, command->device);
    add_word(*ed, "--scalar", command->scalar,
             "s, d, c or z; auto: double, or double complex if the matrix is complex",
             {"auto", "s", "d", "c", "z"});
    add_json(*ed, command->json);
    set_action(*ed, chosen, command, run_ed,
               [command] { command->eigen.method = method_named(command->method); });
}

}  // namespace quiver::apps
