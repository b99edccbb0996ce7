// SPDX-License-Identifier: BSD-3-Clause
// `quiver embed`: eigenvectors of the Laplacian of a graph as coordinates of its nodes.
#include <algorithm>
#include <memory>
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
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/report_parts.hpp"
#include "apps/run.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"
#include "solvers/graph/spectral_embedding.hpp"

namespace quiver::apps {
namespace {

struct EmbedCommand {
    std::string matrix;
    std::string laplacian = "symmetric";
    std::string scale = "scikit-learn";
    std::string method = "auto";
    std::string device = "auto";
    std::string scalar = "d";
    bool keep_first = false;
    Output output;
    Output json;
    SpectralEmbeddingOptions solver;
};

/// For pictures, the JSON report has at most this many evenly spaced nodes, and the first vectors.
constexpr std::int64_t most_sampled_nodes = 2000;
constexpr int most_sampled_vectors = 8;

/// Every STEP-th row of a matrix of doubles with element(i, j) for this rank's rows, on all ranks.
template <class Element>
std::vector<double> sampled_rows(const Comm& comm, const RowMap& map, std::int64_t step,
                                 int columns, Element&& element) {
    const std::int64_t count = (map.global_rows() + step - 1) / step;
    std::vector<double> sample;
    comm.agree([&] {
        sample.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(columns));
    });
    for (std::int64_t i = 0; i < map.local_rows(); ++i) {
        const std::int64_t row = map.first_row() + i;
        for (int j = 0; j < columns && row % step == 0; ++j) {
            sample[static_cast<std::size_t>(row / step * columns + j)] = element(i, j);
        }
    }
    comm.sum(std::span<double>(sample));
    return sample;
}

struct EmbedReport {
    EigsReport::Matrix matrix;
    /// The fields of SpectralEmbedding, without vectors and labels.
    SpectralEmbedding<double> found;
    struct Sample {
        std::int64_t step = 1;
        int vectors = 0;
        std::vector<double> values;
        std::vector<double> components;
    } sample;
    RunFacts run;

    bool verified() const { return found.pairs.multiplicity == Multiplicity::verified; }
    bool converged() const {
        return found.pairs.converged && verified() && !found.pairs.interrupted;
    }
};

void resolve_embed(EmbedCommand& command, int rank) {
    for (const auto kind :
         {LaplacianKind::symmetric, LaplacianKind::random_walk, LaplacianKind::combinatorial}) {
        if (command.laplacian == to_string(kind)) {
            command.solver.laplacian = kind;
        }
    }
    command.solver.scale =
        command.scale == "pyg" ? EmbeddingScale::pyg : EmbeddingScale::scikit_learn;
    command.solver.drop_first = !command.keep_first;
    command.solver.solver.method = method_named(command.method);
    if (rank == 0) {
        check_outputs({&command.json, &command.output}, {{command.matrix}});
    }
}

std::string state_of(const EmbedReport& report) {
    const EigenResult<double>& pairs = report.found.pairs;
    return pairs.interrupted   ? "INTERRUPTED"
           : !pairs.converged  ? "NOT CONVERGED"
           : report.verified() ? "converged, verified"
                               : "converged, UNVERIFIED";
}

std::string to_table(const EmbedCommand& command, const EmbedReport& report) {
    const EigenResult<double>& pairs = report.found.pairs;
    std::string text = heading(report.matrix, report.run.where);
    text += fmt::format("laplacian   {}, vectors as in {}{}\n", command.laplacian, command.scale,
                        command.keep_first ? "" : ", without the first");
    text += fmt::format("components  {}, the largest of {}; {}\n", report.found.sizes.size(),
                        plural(report.found.sizes.front(), "node"),
                        plural(report.found.isolated, "isolated node"));
    text += fmt::format(
        "vectors     {}, {}: {}, {} after {}\n", pairs.eigenvalues.size(),
        plural(report.found.null_vectors, "null vector"), state_of(report),
        pairs.method == Method::automatic ? "by the components alone" : to_string(pairs.method),
        plural(pairs.iterations, "iteration"));
    if (!pairs.message.empty()) {
        text += fmt::format("message     {}\n", pairs.message);
    }
    if (!pairs.method_reason.empty()) {
        text += fmt::format("method      {}\n", pairs.method_reason);
    }
    text += fmt::format("\n{:>7}{:>24}{:>12}\n", "vector", "eigenvalue", "residual");
    for (std::size_t j = 0; j < pairs.eigenvalues.size(); ++j) {
        text +=
            fmt::format("{:>7}{:>24.15g}{:>12.2e}\n", j, pairs.eigenvalues[j], pairs.residuals[j]);
    }
    return text + "\n" + seconds_line(report.run);
}

std::string to_json(const EmbedCommand& command, const EmbedReport& report) {
    using nlohmann::ordered_json;
    const EigenResult<double>& pairs = report.found.pairs;
    const auto& sizes = report.found.sizes;
    ordered_json vectors = ordered_json::array();
    for (auto at = report.sample.values.begin(); at != report.sample.values.end();
         at += report.sample.vectors) {
        vectors.push_back(json_numbers({at, at + report.sample.vectors}));
    }
    const auto shown = std::min<std::ptrdiff_t>(std::ssize(sizes), most_sampled_nodes);
    const ordered_json json = {
        {"matrix", json_matrix(report.matrix)},
        {"k", command.solver.k},
        {"laplacian", command.laplacian},
        {"scale", command.scale},
        {"drop_first", !command.keep_first},
        {"symmetrise", command.solver.symmetrise},
        {"components", sizes.size()},
        {"sizes", std::vector<std::int64_t>(sizes.begin(), sizes.begin() + shown)},
        {"isolated", report.found.isolated},
        {"null_vectors", report.found.null_vectors},
        {"eigenvalues", json_numbers(pairs.eigenvalues)},
        {"residuals", json_numbers(pairs.residuals)},
        {"norm_estimate", json_number(pairs.norm_estimate)},
        {"tolerance", json_number(pairs.tolerance)},
        {"converged", pairs.converged},
        {"verified", report.verified()},
        {"cluster_cut", pairs.cluster_cut},
        {"interrupted", pairs.interrupted},
        {"iterations", pairs.iterations},
        {"operator_applications", pairs.operator_applications},
        {"method", to_string(pairs.method)},
        {"method_reason", pairs.method_reason},
        {"message", pairs.message},
        {"sample",
         {{"step", report.sample.step},
          {"vectors", vectors},
          {"components", json_numbers(report.sample.components)}}}};
    return json_report("embed", json, report.run);
}

template <class T>
void take_embedding(Context& ctx, const SpectralEmbedding<T>& result, EmbedReport& report) {
    EigenResult<double>& pairs = report.found.pairs;
    const EigenResult<T>& from = result.pairs;
    pairs.eigenvalues = from.eigenvalues;
    pairs.residuals = from.residuals;
    pairs.norm_estimate = from.norm_estimate;
    pairs.tolerance = from.tolerance;
    pairs.converged = from.converged;
    pairs.multiplicity = from.multiplicity;
    pairs.cluster_cut = from.cluster_cut;
    pairs.interrupted = from.interrupted;
    pairs.iterations = from.iterations;
    pairs.operator_applications = from.operator_applications;
    pairs.method = from.method;
    pairs.method_reason = from.method_reason;
    pairs.message = from.message;
    report.found.null_vectors = result.null_vectors;
    report.found.sizes = result.sizes;
    report.found.isolated = result.isolated;
    const RowMap& map = from.vectors.row_map();
    BlockVector<T> host;
    ctx.comm().agree(
        [&] { host = BlockVector<T>(ctx, map, from.vectors.width(), 0, Place::host); });
    copy(ctx, from.vectors.view(), host.view());
    report.sample.step = (map.global_rows() - 1) / most_sampled_nodes + 1;
    report.sample.vectors = std::min(host.width(), most_sampled_vectors);
    const BlockView<T> x = host.view();
    report.sample.values = sampled_rows(
        ctx.comm(), map, report.sample.step, report.sample.vectors,
        [&](std::int64_t i, int j) { return static_cast<double>(x.data[i * x.ld + j]); });
    report.sample.components =
        sampled_rows(ctx.comm(), map, report.sample.step, 1, [&](std::int64_t i, int) {
            return static_cast<double>(result.labels[static_cast<std::size_t>(i)]);
        });
}

template <class T>
void write_embedding(Context& ctx, const EmbedCommand& command,
                     const SpectralEmbedding<T>& result) {
    const std::vector<double> labels =
        sampled_rows(ctx.comm(), result.pairs.vectors.row_map(), 1, 1, [&](std::int64_t i, int) {
            return static_cast<double>(result.labels[static_cast<std::size_t>(i)]);
        });
    write_block_vector(
        ctx, command.output.path, result.pairs.vectors,
        {.numbers = {{"eigenvalues", result.pairs.eigenvalues},
                     {"residuals", result.pairs.residuals},
                     {"components", labels},
                     {"sizes", std::vector<double>(result.sizes.begin(), result.sizes.end())}},
         .texts = {{"matrix", command.matrix},
                   {"laplacian", command.laplacian},
                   {"scale", command.scale},
                   {"quiver_version", config::version}}});
}

template <class T>
bool embed(const Comm& comm, const EmbedCommand& command, const Problem& problem,
           const Execution& execution) {
    SolverRun run(comm, execution);
    Context& ctx = run.ctx();
    CsrRows<T> rows = load_problem<T>(comm, problem, execution.device.threads);
    EmbedReport report;
    report.matrix = {problem.spec, rows.map.global_rows(), comm.sum(rows.nonzeros()), dtype_v<T>,
                     rows.symmetry};
    run.end_phase("read");
    SpectralEmbeddingOptions options = command.solver;
    options.solver.keep_going = run.keep_going();
    const SpectralEmbedding<T> result = spectral_embedding(ctx, std::move(rows), options);
    run.end_phase("embed");
    take_embedding(ctx, result, report);
    run.write(command.output, [&] { write_embedding(ctx, command, result); });
    run.end_phase("write");
    report.run = run.facts();
    run.report(to_table(command, report), command.json, [&] { return to_json(command, report); });
    run.finish();
    return report.converged();
}

bool run_embed(const Comm& comm, EmbedCommand command) {
    comm.agree([&] { resolve_embed(command, comm.rank()); });
    const Problem problem = inspect_problem(comm, command.matrix);
    if (problem.complex) {
        throw_collective(ErrorKind::input,
                         problem.spec + ": the matrix is complex; the weights of a graph are real");
    }
    const Execution execution = choose_execution(comm, command.device);
    return command.scalar == "s" ? embed<float>(comm, command, problem, execution)
                                 : embed<double>(comm, command, problem, execution);
}

constexpr const char* embed_description =
    "Spectral embedding: eigenvectors of the Laplacian of a graph as coordinates of its nodes";

constexpr const char* embed_examples =
    R"(Examples:
  quiver embed graph.mtx -k 8 -o positions.h5          8 coordinates of each node
  quiver embed gen:knn,n=100000,clusters=20 -k 16      a graph of nearest neighbours
  quiver embed graph.mtx -k 8 --scale pyg              positional encodings as in PyG
  quiver embed links.mtx -k 2 --symmetrise             a directed graph
  mpirun -n 4 quiver embed graph.mtx -k 16 --json report.json

MATRIX is the adjacency matrix: its entries are the weights of the edges, not negative. positions.h5
gets `vectors`, `eigenvalues`, `residuals`, `components` (the number of each node's component, from
0) and `sizes`. apps/embed_plot.py draws the JSON report.

Exit status: 0 converged; 1 not converged; 2 bad usage or input; 3 a failure while running.)";

}  // namespace

void add_embed(CLI::App& app, Action& chosen) {
    auto command = std::make_shared<EmbedCommand>();
    CLI::App* embed = app.add_subcommand("embed", embed_description);
    embed->footer(embed_examples);
    embed->add_option("MATRIX", command->matrix, matrix_argument)->required();
    add_number(*embed, "-k,--vectors", command->solver.k, "Number of vectors");
    add_word(*embed, "--laplacian", command->laplacian,
             "symmetric: I - D^-1/2 A D^-1/2; random-walk: I - D^-1 A; combinatorial: D - A",
             {"symmetric", "random-walk", "combinatorial"});
    add_word(*embed, "--scale", command->scale,
             "Scaling of the vectors: D^-1/2 u as in scikit-learn, or length 1 as in PyG",
             {"scikit-learn", "pyg"});
    embed->add_flag("--keep-first", command->keep_first,
                    "Also return the first vector, which is the same on all nodes of a connected "
                    "graph");
    embed->add_flag("--symmetrise", command->solver.symmetrise,
                    "Take (A + A^T) / 2 for a directed graph");
    add_word(*embed, "--method", command->method, "The eigensolver, as in quiver eigs",
             {"auto", "lanczos", "chebyshev", "lobpcg", "jd", "dense", "shift-invert"});
    add_number(*embed, "--tol", command->solver.solver.tol,
               "Converged if the residuals are at most TOL ||L||");
    add_number(*embed, "--max-iterations", command->solver.solver.max_iterations,
               "Largest number of iterations; 0: the solve ends if it makes no progress");
    add_number(*embed, "--max-seconds", command->solver.solver.max_seconds,
               "Largest time of the solve; 0: no limit");
    add_number(*embed, "--seed", command->solver.solver.seed, "Seed of the start vectors");
    add_output(*embed, "-o,--output", command->output, "HDF5 file for the vectors", hdf5_format);
    add_device(*embed, command->device);
    add_word(*embed, "--scalar", command->scalar, "Precision: s or d", {"s", "d"});
    add_json(*embed, command->json);
    set_action(*embed, chosen, command, run_embed);
}

}  // namespace quiver::apps
