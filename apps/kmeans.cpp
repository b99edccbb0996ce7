// SPDX-License-Identifier: BSD-3-Clause
// `quiver kmeans`: clusters of points around their means.
#include "solvers/cluster/kmeans.hpp"

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
#include "apps/execution.hpp"
#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/points.hpp"
#include "apps/report.hpp"
#include "apps/report_parts.hpp"
#include "apps/run.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "blockvec/host_copy.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"

namespace quiver::apps {
namespace {

/// The dataset of the centres in output files, and of given starts.
constexpr const char* centres_dataset = "centres";

struct KmeansCommand {
    std::string input;
    std::string dataset = "vectors";
    std::string start;
    std::string device = "auto";
    std::string scalar = "d";
    Output output;
    Output json;
    KmeansOptions solver;
};

struct KmeansReport {
    Points points;
    KmeansOptions options;
    std::string start;
    Dtype scalar = Dtype::d;
    /// The centres in double precision; the other fields as in KmeansResult.
    SmallMatrix<double> centres;
    std::vector<std::int64_t> sizes;
    std::vector<double> inertias;
    std::vector<double> history;
    double inertia = 0;
    bool converged = false;
    bool interrupted = false;
    int iterations = 0;
    int relocated = 0;
    int best_run = 0;
    RunFacts run;

    std::int64_t empty() const { return std::count(sizes.begin(), sizes.end(), 0); }
    /// The root of the mean squared distance of a cluster's points to its centre.
    double radius(std::size_t j) const {
        return sizes[j] > 0 ? std::sqrt(inertias[j] / static_cast<double>(sizes[j])) : 0;
    }
};

std::string to_table(const KmeansReport& report) {
    std::string text = fmt::format("points      {}: {}, {}, {}\n", report.points.spec,
                                   plural(report.points.rows, "row"),
                                   plural(report.points.columns, "column"), name_of(report.scalar));
    text += where_lines(report.run.where);
    text += report.start.empty()
                ? fmt::format("start       k-means++, seed {}, {}\n", report.options.seed,
                              plural(report.options.runs, "run"))
                : fmt::format("start       {}\n", report.start);
    text += fmt::format("clusters    {}, {} after {}\n", report.options.k,
                        report.converged     ? "converged"
                        : report.interrupted ? "INTERRUPTED"
                                             : "NOT CONVERGED",
                        plural(report.iterations, "iteration"));
    text += fmt::format("inertia     {:.10g}\n", report.inertia);
    if (report.relocated > 0) {
        text += fmt::format("relocated   {} took the farthest points\n",
                            plural(report.relocated, "empty cluster"));
    }
    if (report.empty() > 0) {
        text += fmt::format("empty       {}: there may be fewer different points than clusters\n",
                            plural(report.empty(), "cluster"));
    }
    text += fmt::format("\n{:>7}{:>14}{:>14}  {}\n", "cluster", "points", "rms distance", "centre");
    constexpr int most_columns = 6;
    for (std::size_t j = 0; j < report.sizes.size(); ++j) {
        text += fmt::format("{:>7}{:>14}{:>14.4g} ", j, report.sizes[j], report.radius(j));
        for (int p = 0; p < std::min(report.points.columns, most_columns); ++p) {
            text += fmt::format(" {:.5g}", report.centres(static_cast<int>(j), p));
        }
        text += report.points.columns > most_columns ? " ...\n" : "\n";
    }
    return text + "\n" + seconds_line(report.run);
}

std::string to_json(const KmeansCommand& command, const KmeansReport& report) {
    using nlohmann::ordered_json;
    ordered_json centres = ordered_json::array();
    for (int j = 0; j < report.centres.rows(); ++j) {
        const double* const row = report.centres.data() + j * report.centres.cols();
        centres.push_back(json_numbers({row, row + report.centres.cols()}));
    }
    const bool given = !report.start.empty();
    const ordered_json json = {
        {"input", command.input},
        {"dataset", report.points.dataset.empty() ? ordered_json(nullptr)
                                                  : ordered_json(report.points.dataset)},
        {"rows", report.points.rows},
        {"columns", report.points.columns},
        {"scalar", std::string(1, letter(report.scalar))},
        {"k", report.options.k},
        {"start", given ? ordered_json(report.start) : ordered_json("k-means++")},
        {"seed", given ? ordered_json(nullptr) : ordered_json(report.options.seed)},
        {"runs", given ? 1 : report.options.runs},
        {"run", report.best_run},
        {"tolerance", report.options.tol},
        {"max_iterations", report.options.max_iterations},
        {"converged", report.converged},
        {"interrupted", report.interrupted},
        {"iterations", report.iterations},
        {"relocated", report.relocated},
        {"inertia", json_number(report.inertia)},
        {"history", json_numbers(report.history)},
        {"sizes", report.sizes},
        {"inertias", json_numbers(report.inertias)},
        {"centres", centres}};
    return json_report("kmeans", json, report.run);
}

/// The centres of a file, on every rank. Empty without --start.
template <class T>
SmallMatrix<T> load_starts(const Comm& comm, const std::string& path) {
    SmallMatrix<T> starts;
    if (path.empty()) {
        return starts;
    }
    comm.agree([&] {
        const BlockFileInfo info = inspect_block_file(path, centres_dataset);
        if (info.rows > largest_kmeans || info.cols > largest_kmeans) {
            throw InputError(fmt::format("--start {}: {} x {}, at most {} x {} are supported", path,
                                         info.rows, info.cols, largest_kmeans, largest_kmeans));
        }
        Context alone{Comm(), Device::host()};
        const BlockVector<T> block =
            read_block_vector<T>(alone, path, std::nullopt, centres_dataset);
        starts = SmallMatrix<T>(static_cast<int>(block.rows()), block.width());
        copy(alone, block.view(), starts.view());
    });
    return starts;
}

/// Writes the labels as a dataset of one column, with the centres beside them.
void write_result(Context& ctx, const KmeansCommand& command, const KmeansReport& report,
                  const RowMap& map, const int* labels) {
    BlockVector<double> block;
    ctx.comm().agree([&] { block = BlockVector<double>(ctx, map, 1, 0, Place::host); });
    std::copy_n(labels, map.local_rows(), block.view().data);
    BlockFileNotes notes;
    notes.dataset = "labels";
    SmallMatrix<std::complex<double>> centres(report.centres.rows(), report.centres.cols());
    std::copy_n(report.centres.data(), report.centres.rows() * report.centres.cols(),
                centres.data());
    notes.matrices.push_back({centres_dataset, std::move(centres), false});
    notes.numbers.emplace_back("sizes",
                               std::vector<double>(report.sizes.begin(), report.sizes.end()));
    notes.numbers.emplace_back("inertias", report.inertias);
    notes.texts.emplace_back("input", command.input);
    write_block_vector(ctx, command.output.path, block, notes);
}

template <class In>
void take_result(const KmeansResult<In>& result, KmeansReport& report) {
    report.centres = SmallMatrix<double>(result.centres.rows(), result.centres.cols());
    std::copy_n(result.centres.data(), result.centres.rows() * result.centres.cols(),
                report.centres.data());
    report.sizes = result.sizes;
    report.inertias = result.inertias;
    report.history = result.history;
    report.inertia = result.inertia;
    report.converged = result.converged;
    report.interrupted = result.interrupted;
    report.iterations = result.iterations;
    report.relocated = result.relocated;
    report.best_run = result.run;
}

template <class In>
bool cluster(const Comm& comm, const KmeansCommand& command, const Points& points,
             const Execution& execution) {
    SolverRun run(comm, execution);
    Context& ctx = run.ctx();
    KmeansReport report;
    report.points = points;
    report.options = command.solver;
    report.start = command.start;
    report.scalar = dtype_v<In>;
    const BlockVector<In> x = load_points<In>(ctx, points);
    const SmallMatrix<centre_t<In>> starts = load_starts<centre_t<In>>(comm, command.start);
    run.end_phase("read");
    const auto count = static_cast<std::size_t>(x.rows());
    std::optional<Buffer> labels;
    comm.agree([&] {
        labels.emplace(ctx.allocate(memory_kind(ctx.place()), count * sizeof(int), "labels"));
    });
    KmeansOptions options = command.solver;
    options.keep_going = run.keep_going();
    const KmeansResult<In> result =
        kmeans<In>(ctx, x.row_map(), x.view(), options, {labels->as<int>(), count}, starts);
    run.end_phase("cluster");
    take_result(result, report);
    run.write(command.output, [&] {
        HostCopy to_host(ctx, count * sizeof(int));
        to_host.begin(labels->as<void>(), count * sizeof(int));
        write_result(ctx, command, report, x.row_map(),
                     static_cast<const int*>(to_host.wait(false)));
    });
    run.end_phase("write");
    report.run = run.facts();
    run.report(to_table(report), command.json, [&] { return to_json(command, report); });
    run.finish();
    return report.converged;
}

bool run_kmeans(const Comm& comm, const KmeansCommand& command) {
    comm.agree([&] {
        if (comm.rank() == 0) {
            check_outputs({&command.json, &command.output},
                          {{command.input, "the file of the points"},
                           {command.start, "the file of the starts"}});
        }
    });
    const Points points = inspect_points(comm, command.input, command.dataset);
    const Execution execution = choose_execution(comm, command.device);
    switch (command.scalar.front()) {
        case 's':
            return cluster<float>(comm, command, points, execution);
        case 'h':
            return cluster<half_t>(comm, command, points, execution);
        case 'b':
            return cluster<bfloat16_t>(comm, command, points, execution);
        default:
            return cluster<double>(comm, command, points, execution);
    }
}

constexpr const char* kmeans_description =
    "k-means: clusters of the rows of X around their means, by Lloyd's iteration";

constexpr const char* kmeans_examples =
    R"(Examples:
  quiver kmeans X.h5 -k 10 -o clusters.h5         labels and centres of 10 clusters
  quiver kmeans X.mtx -k 3 --runs 10              the best of 10 runs
  quiver kmeans gen:blobs,n=1000000,d=16,k=20 -k 20   generated points
  quiver kmeans X.h5 -k 10 --start clusters.h5    from the dataset `centres` of a file
  mpirun -n 4 quiver kmeans X.h5 -k 64 --scalar s --json report.json

X has one point a row: the dataset `vectors` (or --dataset NAME) of an HDF5 file, or a Matrix
Market file; up to 64 columns and 64 clusters. clusters.h5 gets `labels` (from 0), `centres`,
`sizes` and `inertias`. apps/kmeans_plot.py draws the JSON report.

Exit status: 0 converged; 1 not converged; 2 bad usage or input; 3 a failure while running.)";

}  // namespace

void add_kmeans(CLI::App& app, Action& chosen) {
    auto command = std::make_shared<KmeansCommand>();
    CLI::App* kmeans = app.add_subcommand("kmeans", kmeans_description);
    kmeans->footer(kmeans_examples);
    kmeans->add_option("X", command->input, points_argument)->required();
    add_number(*kmeans, "-k,--clusters", command->solver.k, "Number of clusters, 1 to 64");
    kmeans->add_option("--dataset", command->dataset, "Dataset of an HDF5 file")
        ->capture_default_str();
    kmeans->add_option("--start", command->start,
                       "HDF5 file with the first centres (dataset `centres`); default: k-means++");
    add_number(*kmeans, "--runs", command->solver.runs,
               "Number of runs from different starts; the best is reported");
    add_number(*kmeans, "--tol", command->solver.tol,
               "Converged if the squared shifts of the centres sum to at most TOL times the mean "
               "variance of the columns");
    add_number(*kmeans, "--max-iterations", command->solver.max_iterations,
               "Largest number of iterations of a run");
    add_number(*kmeans, "--seed", command->solver.seed, "Seed of the starts");
    add_output(*kmeans, "-o,--output", command->output, "HDF5 file for labels and centres",
               hdf5_format);
    add_device(*kmeans, command->device);
    add_word(*kmeans, "--scalar", command->scalar,
             "Precision of the points: s, d, h (half) or b (bfloat16); h and b have centres in "
             "single precision",
             {"s", "d", "h", "b"});
    add_json(*kmeans, command->json);
    set_action(*kmeans, chosen, command, run_kmeans);
}

}  // namespace quiver::apps
