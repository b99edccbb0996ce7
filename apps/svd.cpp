// SPDX-License-Identifier: BSD-3-Clause
// `quiver svd`: singular values and vectors of a block or a large matrix, and principal components
// of points.
#include <algorithm>
#include <complex>
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
#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/points.hpp"
#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "apps/run.hpp"
#include "apps/standard_input.hpp"
#include "apps/subcommands.hpp"
#include "apps/svd_report.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"
#include "solvers/svd/dense_svd.hpp"
#include "solvers/svd/pca.hpp"
#include "solvers/svd/sparse_svd.hpp"
#include "solvers/svd/tall_svd.hpp"

namespace quiver::apps {
namespace {

struct SvdCommand {
    std::string input;
    std::string dataset = "vectors";
    std::string device = "auto";
    std::string scalar = "auto";
    Output output;
    Output right;
    Output json;
    bool pca = false;
    bool dense = false;
    bool one_pass = false;
    bool k_given = false;
    int k = 6;
    SvdsOptions sparse;

    bool is_matrix_market() const {
        return input == standard_input_name || input.ends_with(".mtx") ||
               input.ends_with(".mtx.gz");
    }
    bool is_sparse() const {
        const bool generated = input.starts_with("gen:") && !input.starts_with("gen:blobs");
        return !pca && !dense && (generated || is_matrix_market());
    }
};

/// A dense matrix with more columns is no block: tall_svd() would take too long.
constexpr std::int64_t most_block_columns = 2048;

/// True if svds() computes some triplets, false for a block or points.
bool is_large_matrix(const SvdCommand& command, const Problem& problem) {
    return command.is_sparse() || problem.complex || problem.cols > problem.rows ||
           problem.cols > most_block_columns;
}

/// `sparse`: the input is a sparse matrix or a large dense one.
void check_command(const SvdCommand& command, bool sparse) {
    const auto refuse = [](const std::string& text) { throw InputError("svd: " + text); };
    check_outputs({&command.output, &command.right, &command.json},
                  {{command.input, "the input file"}});
    if (!sparse && command.right.given) {
        refuse(
            "--right is for sparse matrices and large dense ones; the file of -o also has the "
            "right vectors");
    }
    if (!sparse && command.sparse.smallest) {
        refuse(
            "--smallest is for sparse matrices and large dense ones; without -k all values are "
            "computed");
    }
    if (command.one_pass && (sparse || command.pca || command.output.given)) {
        refuse("--one-pass is for singular values of a block without -o");
    }
    const std::string allowed = sparse ? "sdcz" : command.pca ? "sdhb" : "sd";
    if (command.scalar != "auto" && allowed.find(command.scalar) == std::string::npos) {
        refuse(fmt::format("--scalar {}: {} has {}", command.scalar,
                           sparse        ? "a large matrix"
                           : command.pca ? "--pca"
                                         : "a block",
                           sparse        ? "s, d, c or z"
                           : command.pca ? "s, d, h or b"
                                         : "s or d"));
    }
}

template <class T>
SmallMatrix<std::complex<double>> as_complex(const SmallMatrix<T>& from) {
    SmallMatrix<std::complex<double>> to(from.rows(), from.cols());
    std::copy_n(from.data(), from.rows() * from.cols(), to.data());
    return to;
}

/// The rows of the result are those of `matrix` if it is not to be transposed.
template <class T>
std::vector<std::vector<double>> rows_of(const SmallMatrix<T>& matrix, bool transposed) {
    const int rows = transposed ? matrix.cols() : matrix.rows();
    const int cols = transposed ? matrix.rows() : matrix.cols();
    std::vector<std::vector<double>> result(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
            result[static_cast<std::size_t>(i)].push_back(
                static_cast<double>(transposed ? matrix(j, i) : matrix(i, j)));
        }
    }
    return result;
}

void describe_points(const Points& points, Dtype scalar, SvdReport& report) {
    report.dataset = points.dataset;
    report.rows = points.rows;
    report.columns = points.columns;
    report.scalar = scalar;
}

template <class In>
void run_pca(SolverRun& run, const SvdCommand& command, const Points& points, SvdReport& report) {
    using T = centre_t<In>;
    Context& ctx = run.ctx();
    report.kind = SvdReport::Kind::pca;
    describe_points(points, dtype_v<In>, report);
    const BlockVector<In> x = load_points<In>(ctx, points);
    run.end_phase("read");
    PcaOptions options;
    options.k = command.k_given ? command.k : 0;
    report.pca = pca<In>(ctx, x.row_map(), x.view(), options);
    report.values = report.pca.singular_values;
    report.vectors = rows_of(report.pca.components, false);
    run.end_phase("decompose");
    run.write(command.output, [&] {
        BlockVector<T> scores;
        ctx.comm().agree(
            [&] { scores = BlockVector<T>(ctx, x.row_map(), report.pca.components.rows()); });
        pca_scores<In>(ctx, report.pca, x.view(), scores.view());
        BlockFileNotes notes;
        notes.dataset = "scores";
        notes.matrices.push_back({"components", as_complex(report.pca.components), false});
        notes.numbers = {{"mean", report.pca.mean},
                         {"variances", report.pca.variances},
                         {"ratios", report.pca.ratios},
                         {"values", report.values}};
        notes.texts.emplace_back("input", command.input);
        write_block_vector(ctx, command.output.path, scores, notes);
    });
}

template <class T>
void run_block(SolverRun& run, const SvdCommand& command, const Points& points, SvdReport& report) {
    Context& ctx = run.ctx();
    report.kind = SvdReport::Kind::block;
    describe_points(points, dtype_v<T>, report);
    const BlockVector<T> x = load_points<T>(ctx, points);
    run.end_phase("read");
    TallSvdOptions options;
    options.k = command.k_given ? command.k : 0;
    options.left = command.output.given;
    options.one_pass = command.one_pass;
    const TallSvd<T> svd = tall_svd<T>(ctx, x.row_map(), x.view(), options);
    run.end_phase("decompose");
    report.values = svd.values;
    report.errors = svd.errors;
    report.rank = svd.rank;
    report.from_gram = svd.from_gram;
    report.vectors = rows_of(svd.right, true);
    run.write(command.output, [&] {
        BlockFileNotes notes;
        notes.dataset = "left";
        notes.matrices.push_back({"right", as_complex(svd.right), false});
        notes.numbers = {{"values", svd.values}, {"errors", svd.errors}};
        notes.texts.emplace_back("input", command.input);
        write_block_vector(ctx, command.output.path, svd.left, notes);
    });
}

template <class T>
void write_vectors(SolverRun& run, const Output& output, const char* dataset,
                   const BlockVector<T>& block, const SvdReport& report) {
    run.write(output, [&] {
        BlockFileNotes notes;
        notes.dataset = dataset;
        notes.numbers = {{"values", report.values},
                         {"errors", report.errors},
                         {"residuals", report.sparse.residuals}};
        notes.texts.emplace_back("input", report.input);
        write_block_vector(run.ctx(), output.path, block, notes);
    });
}

/// This rank's rows of a dense matrix in the place of the Context.
template <class T>
BlockVector<T> dense_rows(Context& ctx, const CsrRows<T>& rows) {
    BlockVector<T> host;
    BlockVector<T> block;
    ctx.comm().agree([&] {
        const int columns = static_cast<int>(rows.global_cols);
        block = BlockVector<T>(ctx, rows.map, columns);
        host = BlockVector<T>(ctx, rows.map, columns, 0, Place::host);
    });
    const BlockView<T> view = host.view();
    std::fill_n(view.data, view.rows * view.ld, T(0));
    for (std::int64_t i = 0; i < view.rows; ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (auto e = static_cast<std::size_t>(rows.row_start[row]);
             e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
            view(i, static_cast<int>(rows.column[e])) = rows.value[e];
        }
    }
    ctx.comm().agree([&] { copy(ctx, view, block.view()); });
    return block;
}

/// The triplets of a sparse matrix or a large dense one.
template <class T>
SparseSvd<T> decompose_matrix(SolverRun& run, const SvdCommand& command, CsrRows<T> rows,
                              const SvdsOptions& options, SvdReport& report) {
    Context& ctx = run.ctx();
    if (command.dense) {
        const BlockVector<T> a = dense_rows(ctx, rows);
        rows = CsrRows<T>();
        run.end_phase("read");
        return svds<T>(ctx, a.row_map(), a.view(), options);
    }
    SparseMatrix<T> a(ctx, std::move(rows));
    report.sparse.nonzeros = a.global_nonzeros();
    run.end_phase("read");
    return svds(ctx, a, options);
}

template <class T>
void run_matrix(SolverRun& run, const SvdCommand& command, const Problem& problem,
                SvdReport& report) {
    Context& ctx = run.ctx();
    report.kind = command.dense ? SvdReport::Kind::dense : SvdReport::Kind::sparse;
    report.scalar = dtype_v<T>;
    CsrRows<T> rows = load_problem<T>(ctx.comm(), problem, ctx.threads());
    report.rows = rows.map.global_rows();
    report.columns = rows.global_cols;
    SvdsOptions options = command.sparse;
    options.k =
        command.k_given
            ? command.k
            : static_cast<int>(std::min<std::int64_t>({command.k, report.rows, report.columns}));
    options.keep_going = run.keep_going();
    const SparseSvd<T> svd = decompose_matrix<T>(run, command, std::move(rows), options, report);
    run.end_phase("decompose");
    report.sparse.smallest = options.smallest;
    report.sparse.tol = options.tol;
    report.sparse.wanted = options.k;
    report.values = svd.values;
    report.errors = svd.errors;
    report.sparse.residuals = svd.residuals;
    report.sparse.norm_estimate = svd.norm_estimate;
    report.sparse.converged = svd.converged;
    report.sparse.interrupted = svd.interrupted;
    report.sparse.verified = svd.multiplicity == Multiplicity::verified;
    report.sparse.dense = svd.dense;
    report.sparse.method = to_string(svd.method);
    report.sparse.iterations = svd.iterations;
    report.sparse.products = svd.products;
    report.sparse.message = svd.message;
    write_vectors(run, command.output, "left", svd.left, report);
    write_vectors(run, command.right, "right", svd.right, report);
}

bool run_svd(const Comm& comm, const SvdCommand& command) {
    std::optional<Problem> matrix;
    if (command.is_sparse() || (command.dense && !command.pca && command.is_matrix_market())) {
        matrix = inspect_problem(comm, command.input);
        if (!is_large_matrix(command, *matrix)) {
            matrix.reset();
        }
    }
    comm.agree([&] {
        if (comm.rank() == 0) {
            check_command(command, matrix.has_value());
        }
    });
    SvdReport report;
    report.input = command.input;
    const auto deliver = [&](SolverRun& run) {
        run.end_phase("write");
        report.run = run.facts();
        run.report(to_table(report), command.json, [&] { return to_json(report); });
        run.finish();
        return report.sparse.converged;
    };
    if (matrix) {
        Dtype dtype = Dtype::d;
        comm.agree([&] { dtype = choose_scalar(*matrix, command.scalar); });
        SolverRun run(comm, choose_execution(comm, command.device));
        visit_dtype(dtype, [&]<class T>() { run_matrix<T>(run, command, *matrix, report); });
        return deliver(run);
    }
    const Points points = inspect_points(comm, command.input, command.dataset);
    SolverRun run(comm, choose_execution(comm, command.device));
    const char scalar = command.scalar.front();
    if (!command.pca) {
        scalar == 's' ? run_block<float>(run, command, points, report)
                      : run_block<double>(run, command, points, report);
    } else if (scalar == 'h') {
        run_pca<half_t>(run, command, points, report);
    } else if (scalar == 'b') {
        run_pca<bfloat16_t>(run, command, points, report);
    } else {
        scalar == 's' ? run_pca<float>(run, command, points, report)
                      : run_pca<double>(run, command, points, report);
    }
    return deliver(run);
}

constexpr const char* svd_description =
    "Singular values and vectors of a block or a large matrix; principal components of points";

constexpr const char* svd_examples =
    R"(Examples:
  quiver svd A.mtx -k 10                      the 10 largest singular triplets of a sparse matrix
  quiver svd A.mtx -k 4 --smallest -o u.h5 --right v.h5     the 4 smallest, with vectors
  quiver svd X.h5                             all singular values of the columns in a file
  quiver svd X.h5 -o usv.h5                   with left and right vectors
  quiver svd --dense A.mtx -k 10              the 10 largest of a dense matrix that is no block
  quiver svd --pca X.h5 -k 5 -o pca.h5        5 principal components, with the scores of all rows
  quiver svd --pca gen:blobs,n=1000000,d=16 --json report.json      generated points

A Matrix Market file or gen:NAME is a sparse matrix, rectangular or square; with --dense or --pca
the file is a block with one point a row. An HDF5 file has a block: the dataset `vectors` (or
--dataset NAME). A block must have at least as many rows as columns. A Matrix Market file with
--dense that has fewer rows than columns, more than 2048 columns or complex numbers is a large dense
matrix; its options are those of a sparse matrix. apps/svd_plot.py draws the JSON report;
docs/svd.md explains the error bounds.

Exit status: 0 converged; 1 not converged; 2 bad usage or input; 3 a failure while running.)";

void add_sparse_options(CLI::App& svd, SvdsOptions& options) {
    svd.add_flag("--smallest", options.smallest, "The smallest singular values of a sparse matrix");
    add_number(svd, "--tol", options.tol,
               "Converged if ||(A v - s u, A^H u - s v)|| is at most TOL ||A|| (sparse matrices)");
    add_number(svd, "--block", options.block, "Columns of a step; 0: chosen (sparse matrices)");
    add_number(svd, "--max-iterations", options.max_iterations,
               "Largest number of steps; 0: until they stagnate (sparse matrices)");
    add_number(svd, "--max-seconds", options.max_seconds,
               "Largest time of a solve; 0: none (sparse matrices)");
    add_number(svd, "--seed", options.seed, "Seed of the start (sparse matrices)");
}

}  // namespace

void add_svd(CLI::App& app, Action& chosen) {
    auto command = std::make_shared<SvdCommand>();
    CLI::App* svd = app.add_subcommand("svd", svd_description);
    svd->footer(svd_examples);
    svd->add_option("INPUT", command->input,
                    "Matrix Market file (.mtx, .mtx.gz, or - for standard input), HDF5 file, "
                    "gen:NAME,key=value,... or gen:blobs,n=N,d=D,k=K,spread=S,seed=N")
        ->required();
    const CLI::Option* k =
        add_number(*svd, "-k,--values", command->k,
                   "Number of singular values or components; default: 6 of a sparse or large "
                   "matrix, all of a block");
    svd->add_flag("--pca", command->pca, "Principal components of the rows");
    svd->add_flag("--dense", command->dense,
                  "A Matrix Market file is a block or a large dense matrix");
    svd->add_flag(
        "--one-pass", command->one_pass,
        "Values of a block from its Gram matrix alone; small ones get large errors, which "
        "are reported");
    add_sparse_options(*svd, command->sparse);
    svd->add_option("--dataset", command->dataset, "Dataset of an HDF5 file")
        ->capture_default_str();
    add_output(*svd, "-o,--output", command->output,
               "HDF5 file: left vectors (of a block with the right ones), or scores and components",
               hdf5_format);
    add_output(*svd, "--right", command->right,
               "HDF5 file for the right vectors of a sparse matrix", hdf5_format);
    add_device(*svd, command->device);
    add_word(*svd, "--scalar", command->scalar,
             "Precision: s or d; c or z for sparse and large matrices; h (half) or b (bfloat16) "
             "with --pca",
             {"auto", "s", "d", "c", "z", "h", "b"});
    add_json(*svd, command->json);
    set_action(*svd, chosen, command, run_svd, [=] { command->k_given = k->count() > 0; });
}

}  // namespace quiver::apps
