// SPDX-License-Identifier: BSD-3-Clause
// `quiver qr`: an orthonormal basis of the columns in an HDF5 file, with R beside it.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <optional>
#include <span>
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
#include "apps/fault_options.hpp"
#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/report.hpp"
#include "apps/report_parts.hpp"
#include "apps/run.hpp"
#include "apps/standard_input.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/protected_orth.hpp"
#include "solvers/small_dense.hpp"

namespace quiver::apps {
namespace {

constexpr std::array methods{OrthMethod::robust,
                             OrthMethod::cholesky_qr,
                             OrthMethod::cholesky_qr2,
                             OrthMethod::shifted_cholesky_qr3,
                             OrthMethod::svqb,
                             OrthMethod::tsqr,
                             OrthMethod::mixed_cholesky_qr};
constexpr std::array projections{Projection::classical_once, Projection::classical_twice,
                                 Projection::modified};

struct QrOptions {
    std::string input;
    std::string against;
    std::string dataset = "vectors";
    std::string method = to_string(OrthMethod::robust);
    std::string projection = to_string(Projection::classical_twice);
    std::string device = "auto";
    std::string scalar = "auto";
    Output output;
    Output json;
    bool replace = false;
    bool against_given = false;
    int panel = OrthOptions{}.panel;
    std::uint64_t seed = OrthOptions{}.seed;
    FaultOptions faults;
};

struct QrReport {
    std::int64_t rows = 0;
    int columns = 0;
    int basis_columns = 0;
    Dtype scalar = Dtype::d;
    int found = 0;
    int rank = 0;
    int passes = 0;
    int breakdown = -1;
    bool used_svqb = false;
    double loss = 0;
    double residual = 0;
    double overlap = 0;
    RunFacts run;
    /// The counts over all ranks; no value if neither --abft nor --inject is given.
    std::optional<EigsReport::Abft> abft;

    /// True if faults were found and not repaired: the result is discarded.
    bool faulty() const {
        return abft && (abft->mode == "detect" ? abft->counts.faults : abft->counts.failed) > 0;
    }
};

// The steps of run_qr(), in the order in which they are taken.
void check_options(const QrOptions& options);
void check_size(const QrOptions& options, const BlockFileInfo& x);
Dtype choose_scalar(const QrOptions& options, bool complex);
template <class T>
bool orthonormalise(const Comm& comm, const QrOptions& options, const Execution& execution);
template <class T>
BlockVector<T> read_basis(Context& ctx, const QrOptions& options, const RowMap& map);
template <class T>
void describe_blocks(const BlockVector<T>& x, const BlockVector<T>& v, QrReport& report);
template <class T>
BlockVector<T> copy_checked(Context& ctx, const QrOptions& options, const BlockVector<T>& x,
                            const QrReport& report);
OrthOptions orth_options(const QrOptions& options);
template <class T>
void take_result(const OrthResult<T>& result, QrReport& report);
template <class T>
void measure_quality(Context& ctx, BlockVector<T>& x, const BlockVector<T>& v,
                     const BlockVector<T>& w, const OrthResult<T>& result, QrReport& report);
template <class T>
BlockFileNotes notes_of(const QrOptions& options, const OrthResult<T>& result);
std::string to_table(const QrOptions& options, const QrReport& report);
std::string to_json(const QrOptions& options, const QrReport& report);
bool lost(const QrReport& report);

bool run_qr(const Comm& comm, QrOptions options) {
    Dtype dtype = Dtype::d;
    comm.agree([&] {
        resolve_faults(options.faults);
        if (comm.rank() == 0) {
            check_options(options);
        }
    });
    comm.agree([&] {
        const BlockFileInfo block = inspect_block_file(options.input, options.dataset);
        check_size(options, block);
        bool complex = block.complex;
        if (options.against_given) {
            complex = inspect_block_file(options.against, options.dataset).complex || complex;
        }
        dtype = choose_scalar(options, complex);
    });
    const Execution execution = choose_execution(comm, options.device);
    return visit_dtype(dtype,
                       [&]<class T>() { return orthonormalise<T>(comm, options, execution); });
}

template <class T>
bool orthonormalise(const Comm& comm, const QrOptions& options, const Execution& execution) {
    SolverRun run(comm, execution);
    Context& ctx = run.ctx();
    QrReport report;
    BlockVector<T> x = read_block_vector<T>(ctx, options.input, std::nullopt, options.dataset);
    const BlockVector<T> v = read_basis<T>(ctx, options, x.row_map());
    describe_blocks(x, v, report);
    run.end_phase("read");

    BlockVector<T> w = copy_checked(ctx, options, x, report);
    run.begin_phase();
    OperationGuard guard(options.faults.checks);
    const OrthResult<T> result =
        options.faults.asked()
            ? protected_gram_schmidt<T>(ctx, guard, x.row_map(), v.view(), x.view(), w.view(),
                                        orth_options(options))
            : block_gram_schmidt<T>(ctx, x.row_map(), v.view(), w.view(), orth_options(options));
    run.end_phase("orthonormalise");
    take_result(result, report);
    if (options.faults.asked()) {
        report.abft = {options.faults.abft, guard.counts.summed(comm), options.faults.inject_given,
                       "orthonormalisation"};
    }
    if (result.breakdown < 0 && !report.faulty()) {
        w.set_width(result.columns);
        measure_quality(ctx, x, v, w, result, report);
        run.begin_phase();
        run.write(options.output, [&] {
            write_block_vector(ctx, options.output.path, w, notes_of(options, result));
        });
    }
    run.end_phase("write");

    report.run = run.facts();
    run.report(to_table(options, report), options.json, [&] { return to_json(options, report); });
    run.finish();
    return result.breakdown < 0 && !report.faulty() && !lost(report);
}

template <class Choices>
auto find_choice(const Choices& choices, const std::string& name) {
    return *std::find_if(choices.begin(), choices.end(),
                         [&](const auto choice) { return name == to_string(choice); });
}

template <class Choices>
std::vector<std::string> names_of(const Choices& choices) {
    std::vector<std::string> names;
    names.reserve(choices.size());
    for (const auto choice : choices) {
        names.emplace_back(to_string(choice));
    }
    return names;
}

/// Whether the method finds the numerical rank.
bool tells_rank(const QrOptions& options) {
    return options.method == to_string(OrthMethod::robust) ||
           options.method == to_string(OrthMethod::svqb);
}

/// True if the written columns are useless: far from orthonormal, or from orthogonal to V. A loss
/// of some digits, as theory predicts for some methods, is reported but is not a failure.
bool lost(const QrReport& report) {
    constexpr double most = 0.1;
    return report.breakdown < 0 && !report.faulty() &&
           !(report.loss <= most && report.overlap <= most);
}

std::string to_table(const QrOptions& options, const QrReport& report) {
    std::string text = fmt::format("block       {}: {} rows, {}, {}\n", options.input, report.rows,
                                   plural(report.columns, "column"), name_of(report.scalar));
    if (options.against_given) {
        text += fmt::format("against     {}: {}, {}\n", options.against,
                            plural(report.basis_columns, "column"), options.projection);
    }
    text += where_lines(report.run.where);
    text += fmt::format("method      {}, {}{}\n", options.method,
                        fmt::format("{} pass{}", report.passes, report.passes == 1 ? "" : "es"),
                        report.used_svqb && options.method == "robust" ? ", SVQB used" : "");
    if (report.abft) {
        text += abft_line(*report.abft);
    }
    if (report.faulty()) {
        text += fmt::format(
            "\nFAULTY      checksums found {}, and a fault remains; nothing is written. {}\n",
            plural(report.abft->counts.faults, "silent fault"),
            report.abft->mode == "detect" ? "--abft correct repairs"
                                          : "The memory of this machine cannot be trusted");
    } else if (report.breakdown >= 0) {
        text += fmt::format(
            "\nBREAKDOWN   at column {} (counted from 0), which is too close to the span of the "
            "columns before it\n            for this method; nothing is written. --method robust "
            "finds the rank\n",
            report.breakdown);
    } else {
        text +=
            fmt::format("columns     {}{}\n", report.found,
                        tells_rank(options) ? fmt::format(", numerical rank {}", report.rank) : "");
        text += fmt::format("\n{:<30}{:.1e}\n", "||I - Q^H Q||", report.loss);
        if (options.against_given) {
            text += fmt::format("{:<30}{:.1e}\n", "||V^H Q||", report.overlap);
        }
        text +=
            fmt::format("{:<30}{:.1e}\n",
                        options.against_given ? "||X - V H - Q R|| / ||X||" : "||X - Q R|| / ||X||",
                        report.residual);
    }
    if (lost(report)) {
        text +=
            "\nLOST        the columns written are not orthonormal: this method or projection "
            "cannot\n"
            "            handle such a block; --method robust --projection classical-twice can\n";
    }
    return text + "\n" + seconds_line(report.run);
}

std::string to_json(const QrOptions& options, const QrReport& report) {
    using nlohmann::ordered_json;
    const bool done = report.breakdown < 0 && !report.faulty();
    const auto number = [&](double value) {
        return done ? json_number(value) : ordered_json(nullptr);
    };
    const ordered_json json = {
        {"input", options.input},
        {"dataset", options.dataset},
        {"against", options.against_given ? ordered_json(options.against) : ordered_json(nullptr)},
        {"rows", report.rows},
        {"columns", report.columns},
        {"scalar", std::string(1, letter(report.scalar))},
        {"method", options.method},
        {"projection", options.projection},
        {"columns_found", report.found},
        {"rank", tells_rank(options) ? ordered_json(report.rank) : ordered_json(nullptr)},
        {"passes", report.passes},
        {"used_svqb", report.used_svqb},
        {"breakdown",
         report.breakdown < 0 ? ordered_json(nullptr) : ordered_json(report.breakdown)},
        {"loss_of_orthogonality", number(report.loss)},
        {"residual", number(report.residual)},
        {"overlap", options.against_given ? number(report.overlap) : ordered_json(nullptr)}};
    ordered_json more = ordered_json::object();
    if (report.abft) {
        more["abft"] = json_abft(*report.abft);
    }
    return json_report("qr", json, report.run, more);
}

/// ||X||_F over all ranks.
template <class T>
double frobenius(Context& ctx, BlockView<const T> x) {
    std::vector<real_t<T>> columns(static_cast<std::size_t>(x.cols));
    norms(ctx, x, std::span<real_t<T>>(columns));
    double norm = 0;
    for (const real_t<T> column : columns) {
        norm = std::hypot(norm, static_cast<double>(column));
    }
    return norm;
}

template <class T>
SmallMatrix<T> inner_products(Context& ctx, BlockView<const T> a, BlockView<const T> b) {
    SmallMatrix<T> c(a.cols, b.cols);
    tsmttsm(ctx, T(1), a, b, T(0), c);
    return c;
}

template <class T>
BlockFileNotes::Matrix note(const char* name, const SmallMatrix<T>& a) {
    BlockFileNotes::Matrix matrix{name, SmallMatrix<std::complex<double>>(a.rows(), a.cols()),
                                  is_complex_v<T>};
    std::copy_n(a.data(), a.rows() * a.cols(), matrix.values.data());
    return matrix;
}

/// ||X - V H - Q R|| / ||X||; overwrites X.
template <class T>
double relative_residual(Context& ctx, BlockView<T> x, BlockView<const T> v, BlockView<const T> q,
                         const OrthResult<T>& result) {
    using Limits = std::numeric_limits<real_t<T>>;
    double norm = frobenius<T>(ctx, x);
    T factor = 1;
    if (norm < std::sqrt(static_cast<double>(Limits::min() / Limits::epsilon()))) {
        // The squares underflow: scale X by a power of two.
        factor = T(std::ldexp(real_t<T>(1), Limits::max_exponent / 4 * 3));
        scale(ctx, factor, x);
        norm = frobenius<T>(ctx, x);
    }
    if (v.cols > 0) {
        tsmm(ctx, -factor, v, result.h.view(), T(1), x);
    }
    if (q.cols > 0) {
        tsmm(ctx, -factor, q, result.r.view(), T(1), x);
    }
    return norm > 0 ? frobenius<T>(ctx, x) / norm : 0;
}

/// The factorisation of larger Gram matrices would take too long.
constexpr int most_columns = 2048;

void check_size(const QrOptions& options, const BlockFileInfo& x) {
    if (x.cols > most_columns) {
        throw InputError(fmt::format("{}: {} columns, but at most {} are allowed", options.input,
                                     x.cols, most_columns));
    }
    if (x.cols > x.rows) {
        throw InputError(
            fmt::format("{}: {} but only {}; more columns than rows cannot be orthonormal. Is the "
                        "block stored transposed?",
                        options.input, plural(x.cols, "column"), plural(x.rows, "row")));
    }
}

/// Throws InputError on all ranks if the squares of a column overflow, which no method can handle.
template <class T>
void require_finite_squares(Context& ctx, const QrOptions& options, BlockView<const T> x) {
    using Real = real_t<T>;
    std::vector<Real> lengths(static_cast<std::size_t>(x.cols));
    norms(ctx, x, std::span<Real>(lengths));
    for (std::size_t j = 0; j < lengths.size(); ++j) {
        if (!std::isfinite(lengths[j])) {
            throw_collective(
                ErrorKind::input,
                fmt::format("{}: the squares of column {} (counted from 0) overflow in {} "
                            "precision; scale the columns",
                            options.input, j,
                            sizeof(Real) == sizeof(double) ? "double" : "single"));
        }
    }
}

/// Reads V (no columns without --against). Throws InputError if its columns are not orthonormal.
template <class T>
BlockVector<T> read_basis(Context& ctx, const QrOptions& options, const RowMap& map) {
    if (!options.against_given) {
        return BlockVector<T>(ctx, map, 0);
    }
    BlockVector<T> v = read_block_vector<T>(ctx, options.against, map, options.dataset);
    const BlockView<const T> view = std::as_const(v).view();
    const double off = frobenius_norm(inner_products<T>(ctx, view, view), true);
    if (!(off <= std::sqrt(static_cast<double>(epsilon_v<T>)))) {
        throw_collective(ErrorKind::input,
                         fmt::format("--against {}: its columns are not orthonormal, ||I - V^H V|| "
                                     "= {:.1e}; quiver qr {} -o OTHER.h5 orthonormalises them",
                                     options.against, off, options.against));
    }
    return v;
}

template <class T>
void describe_blocks(const BlockVector<T>& x, const BlockVector<T>& v, QrReport& report) {
    report.rows = x.row_map().global_rows();
    report.columns = x.width();
    report.basis_columns = v.width();
    report.scalar = dtype_v<T>;
}

/// Copies X. Throws InputError if the method requires independent columns but X and V together have
/// more columns than rows, or if squares overflow.
template <class T>
BlockVector<T> copy_checked(Context& ctx, const QrOptions& options, const BlockVector<T>& x,
                            const QrReport& report) {
    BlockVector<T> w;
    ctx.comm().agree([&] {
        if (!tells_rank(options) && report.columns + report.basis_columns > report.rows) {
            throw InputError(fmt::format(
                "{}: {} in a space of {}{} cannot all be orthonormal; --method robust finds those "
                "that can be",
                options.input, plural(report.columns, "column"), plural(report.rows, "dimension"),
                options.against_given
                    ? fmt::format(", of which --against spans {},", report.basis_columns)
                    : ""));
        }
        w = BlockVector<T>(ctx, x.row_map(), x.width());
    });
    require_finite_squares<T>(ctx, options, x.view());
    copy(ctx, x.view(), w.view());
    return w;
}

OrthOptions orth_options(const QrOptions& options) {
    OrthOptions how;
    how.replace_deficient = options.replace;
    how.seed = options.seed;
    how.method = find_choice(methods, options.method);
    how.projection = find_choice(projections, options.projection);
    how.panel = options.panel;
    return how;
}

template <class T>
void take_result(const OrthResult<T>& result, QrReport& report) {
    report.found = result.columns;
    report.rank = result.rank;
    report.passes = result.passes;
    report.breakdown = result.breakdown;
    report.used_svqb = result.used_svqb;
}

/// Measures loss of orthogonality, overlap with V, and residual. Overwrites X.
template <class T>
void measure_quality(Context& ctx, BlockVector<T>& x, const BlockVector<T>& v,
                     const BlockVector<T>& w, const OrthResult<T>& result, QrReport& report) {
    const BlockView<const T> q = w.view();
    report.loss = frobenius_norm(inner_products<T>(ctx, q, q), true);
    report.overlap = frobenius_norm(inner_products<T>(ctx, v.view(), q));
    report.residual = relative_residual<T>(ctx, x.view(), v.view(), q, result);
}

/// The data that are stored beside Q in its file.
template <class T>
BlockFileNotes notes_of(const QrOptions& options, const OrthResult<T>& result) {
    BlockFileNotes notes{.texts = {{"source", options.input},
                                   {"method", options.method},
                                   {"quiver_version", config::version}},
                         .matrices = {note("R", result.r)}};
    if (options.against_given) {
        notes.texts.push_back({"against", options.against});
        notes.texts.push_back({"projection", options.projection});
        notes.matrices.push_back(note("H", result.h));
    }
    return notes;
}

void check_options(const QrOptions& options) {
    require_hdf5();
    if (options.panel < 1) {
        throw InputError(fmt::format("--panel {}: at least 1 column", options.panel));
    }
    if (options.input == standard_input_name || options.against == standard_input_name) {
        throw InputError("-: an HDF5 file cannot be read from standard input; name a file");
    }
    check_outputs({&options.json, &options.output}, {{options.input, "a file that is read"},
                                                     {options.against, "a file that is read"}});
}

Dtype choose_scalar(const QrOptions& options, bool complex) {
    if (options.scalar == "auto") {
        return complex ? Dtype::z : Dtype::d;
    }
    Dtype dtype = Dtype::s;
    for (const Dtype each : {Dtype::d, Dtype::c, Dtype::z}) {
        dtype = letter(each) == options.scalar.front() ? each : dtype;
    }
    if (complex && (dtype == Dtype::s || dtype == Dtype::d)) {
        throw InputError(
            fmt::format("--scalar {}: {} is complex; use c or z", options.scalar, options.input));
    }
    return dtype;
}

constexpr const char* qr_description =
    "An orthonormal basis Q of the columns X in an HDF5 file: X = Q R, or X = V H + Q R against a "
    "second basis V";

constexpr const char* qr_examples =
    R"(Examples:
  quiver eigs matrix.mtx -k 8 --scalar s --vectors X.h5
  quiver qr X.h5 -o Q.h5                       robust: any condition number, finds the rank
  quiver qr X.h5 -o Q.h5 --method cholesky-qr2 fast; condition number up to 1e7
  quiver qr X.h5 -o Q.h5 --against V.h5        also orthogonal to the orthonormal columns of V
  mpirun -n 4 quiver qr X.h5 -o Q.h5 --method tsqr --json report.json

X and V are the datasets `vectors` (or --dataset NAME) of their files: rows x columns, as
`quiver eigs --vectors` and h5py write them. X has at most as many columns as rows, and at most
2048. Q.h5 gets `vectors`, `R` and, with --against, `H`.

Exit status: 0 done; 1 the method broke down or a silent fault remains (nothing is written), or the
columns written are not orthonormal; 2 bad usage or input; 3 a failure while running.)";

}  // namespace

void add_qr(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<QrOptions>();
    CLI::App* qr = app.add_subcommand("qr", qr_description);
    qr->footer(qr_examples);
    qr->add_option("X", options->input, "HDF5 file with the columns")->required();
    add_output(*qr, "-o,--output", options->output, "HDF5 file for Q and R", hdf5_format)
        ->required();
    const CLI::Option* against = qr->add_option(
        "--against", options->against, "HDF5 file with orthonormal columns to be orthogonal to");
    qr->add_option("--dataset", options->dataset, "Dataset to read")->capture_default_str();
    add_word(*qr, "--method", options->method, "Method of orthonormalisation", names_of(methods));
    add_word(*qr, "--projection", options->projection, "Form of Gram-Schmidt against V",
             names_of(projections));
    add_number(*qr, "--panel", options->panel,
               "Columns of V that one step of modified Gram-Schmidt uses");
    qr->add_flag("--replace", options->replace,
                 "Replace dependent columns by random ones (robust, svqb)");
    add_number(*qr, "--seed", options->seed, "Seed of the random columns");
    add_device(*qr, options->device);
    add_word(*qr, "--scalar", options->scalar,
             "s, d, c, z as in BLAS; auto: z if a file is complex, else d",
             {"auto", "s", "d", "c", "z"});
    add_json(*qr, options->json);
    add_fault_options(*qr, options->faults,
                      "Detect silent faults in the orthonormalisation and in X, V and Q in memory");
    set_action(*qr, chosen, options, run_qr,
               [=] { options->against_given = against->count() > 0; });
}

}  // namespace quiver::apps
