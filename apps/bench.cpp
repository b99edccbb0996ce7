// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench`: which cases, where, and the report.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "apps/bench/abft.hpp"
#include "apps/bench/bench_report.hpp"
#include "apps/bench/blocking.hpp"
#include "apps/bench/help.hpp"
#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/markdown.hpp"
#include "apps/bench/plot.hpp"
#include "apps/bench/reproduce.hpp"
#include "apps/bench/scaling.hpp"
#include "apps/bench/words.hpp"
#include "apps/execution.hpp"
#include "apps/number_option.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

using bench::Case;
using bench::Kernel;
using bench::Shape;

/// Rows up to which a block counts as short: then what a call costs beside its bytes matters.
constexpr std::int64_t most_short_rows = 1'000'000;
constexpr int calls_on_short_rows = 100;
constexpr double save_every_seconds = 15;

struct BenchOptions {
    std::string kernel;
    std::string scalar;
    std::string widths;
    std::string shapes;
    int random_shapes = 0;
    std::uint64_t seed = 1;
    bool gram_schmidt = false;
    std::string rows;
    std::string ld_extra = "0";
    std::string matrix;
    int tile = 0;
    std::string tilings;
    double operand_bytes = 0;
    std::string device = "auto";
    std::string rivals;
    bool model = false;
    bool atomics = false;
    bool energy = false;
    double budget = 60;
    int repeat = 20;
    std::string json;
    /// Options that were given a file without a name.
    std::string nameless;
    std::string resume;
    std::string plot;
    std::string markdown;
    std::vector<std::string> plot_from;
    std::string reproduce;
    std::vector<std::string> blocking;
    /// Of the kernel `scaling`, which is none of the table's.
    int scaling_nx = 0;
    int scaling_length = 0;
    std::string abft;
    std::int64_t faults = 10000;
    /// All of this as words, without the names of files.
    std::string command;

    bool has_shapes() const {
        return !widths.empty() || !shapes.empty() || random_shapes > 0 || gram_schmidt;
    }
};

void check_options(const BenchOptions& options) {
    const auto refuse_unless = [](bool good, const std::string& message) {
        if (!good) {
            throw InputError(message);
        }
    };
    const bool plots_only = !options.plot_from.empty();
    refuse_unless(!plots_only || !options.plot.empty() || !options.markdown.empty(),
                  "--plot-from needs --plot FILE.svg or --markdown FILE.md");
    refuse_unless(!plots_only || (options.kernel.empty() && options.reproduce.empty()),
                  "--plot-from draws saved results: without KERNEL and --reproduce");
    const bool blocking = !options.blocking.empty();
    refuse_unless(!blocking || (!plots_only && options.kernel.empty() && options.reproduce.empty()),
                  "--blocking times eigensolves: without KERNEL, --reproduce and --plot-from");
    refuse_unless(!blocking || (options.json.empty() && options.resume.empty()),
                  "--blocking writes --plot and --markdown, no JSON");
    const bool abft = !options.abft.empty();
    refuse_unless(
        !abft || (!plots_only && !blocking && options.kernel.empty() && options.reproduce.empty() &&
                  options.shapes.empty() && !options.gram_schmidt && options.random_shapes == 0 &&
                  options.ld_extra == "0" && options.resume.empty() && options.plot.empty()),
        "--abft injects faults and times checks: with --scalar, --widths, --rows, --repeat, "
        "--faults, --seed, --budget, --device, --json and --markdown only");
    refuse_unless(options.faults >= 1, fmt::format("--faults {}: at least 1", options.faults));
    refuse_unless(
        plots_only || blocking || abft || options.kernel.empty() != options.reproduce.empty(),
        "KERNEL or --reproduce PAPER is needed, one of them");
    refuse_unless(options.reproduce.empty() ||
                      (!options.has_shapes() && options.rows.empty() && options.ld_extra == "0"),
                  "--reproduce chooses shapes and rows itself");
    refuse_unless(options.repeat >= 3,
                  fmt::format("--repeat {}: quartiles take at least 3 samples", options.repeat));
    refuse_unless(options.budget > 0 && std::isfinite(options.budget),
                  fmt::format("--budget {}: a number of seconds above 0", options.budget));
    refuse_unless(
        options.operand_bytes == 0 || (options.operand_bytes >= 1 && options.operand_bytes <= 1e15),
        fmt::format("--operand-bytes {}: a number from 1 to 1e15, or 0 to let bench choose",
                    options.operand_bytes));
    refuse_unless(
        options.random_shapes >= 0 && options.random_shapes <= 4096,
        fmt::format("--random-shapes {}: 0 to 4096, all that there are", options.random_shapes));
    const std::pair<const char*, std::string> drawn[] = {{"--plot", options.plot},
                                                         {"--markdown", options.markdown}};
    for (const auto& [option, file] : drawn) {
        refuse_unless(file.empty() || (file != options.json && file != options.resume),
                      fmt::format("{} {}: the results go to that file", option, file));
    }
    refuse_unless(options.plot.empty() || options.plot != options.markdown,
                  fmt::format("--markdown {}: the charts go to that file", options.markdown));
    refuse_unless(options.nameless.empty(),
                  fmt::format("{}: the name of a file is wanted", options.nameless));
    refuse_unless((options.matrix.empty() && options.tile == 0 && options.tilings.empty()) ||
                      options.kernel == "spmmv",
                  "--matrix, --tile and --tilings belong to spmmv");
    refuse_unless(options.matrix.empty() || options.rows.empty(),
                  fmt::format("--matrix {}: it has its rows, without --rows", options.matrix));
    refuse_unless(
        options.kernel != "scaling" ||
            (!options.has_shapes() && options.rows.empty() && options.rivals.empty() &&
             options.resume.empty() && options.plot.empty() && options.ld_extra == "0"),
        "scaling takes --nx, --length, --device, --budget, --repeat, --json and --markdown");
    refuse_unless(
        options.scaling_nx >= 0 && options.scaling_length >= 0 && options.scaling_length % 2 == 0,
        "--nx and --length are 0 or more, --length even");
    bench::check_rivals(options.rivals);
    for (const std::string* file : {&options.json, &options.resume}) {
        if (!file->empty()) {
            check_writable(*file, file == &options.json ? "--json" : "--resume");
        }
    }
    for (const auto& [option, file] : drawn) {
        if (!file.empty()) {
            check_writable(file, option);
        }
    }
}

/// In the order in which they run.
std::vector<Shape> chosen_shapes(const BenchOptions& options) {
    std::vector<Shape> shapes;
    const auto append = [&](const std::vector<Shape>& more) {
        shapes.insert(shapes.end(), more.begin(), more.end());
    };
    if (!options.shapes.empty()) {
        append(bench::parse_shapes(options.shapes));
    }
    if (!options.widths.empty() || !options.has_shapes()) {
        std::vector<Shape> square =
            bench::parse_widths(options.widths.empty() ? "1,2,4,8,16,32,64" : options.widths);
        bench::order_by_meaning(square);
        append(square);
    }
    if (options.gram_schmidt) {
        append(bench::gram_schmidt_shapes());
    }
    append(bench::random_shapes(options.random_shapes, options.seed));
    return shapes;
}

/// Those asked for; else d, and h where the kernels take no d.
std::string scalars_of(const BenchOptions& options, const std::vector<const Kernel*>& kernels) {
    if (!options.scalar.empty()) {
        return options.scalar;
    }
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const Kernel* kernel) { return kernel->takes(Dtype::d); })
               ? "d"
               : "h";
}

/// Kernel, scalar, shape and rows of every case, the most telling first. Rows of 0 are chosen
/// later.
std::vector<Case> chosen_cases(const BenchOptions& options) {
    if (!options.reproduce.empty()) {
        return bench::cases_of(options.reproduce, 1);
    }
    const std::vector<const Kernel*> kernels = bench::parse_kernels(options.kernel);
    const std::string given = scalars_of(options, kernels);
    const std::vector<Dtype> scalars = bench::parse_scalars(given);
    for (const Kernel* kernel : kernels) {
        if (options.kernel != "all" && std::none_of(scalars.begin(), scalars.end(),
                                                    [&](Dtype s) { return kernel->takes(s); })) {
            throw InputError(fmt::format("--scalar {}: {} takes {}", given, kernel->name(),
                                         kernel->takes(Dtype::h) ? "h, b" : "s, d, c, z"));
        }
    }
    const std::vector<std::int64_t> rows =
        options.rows.empty() ? std::vector<std::int64_t>{0} : bench::parse_rows(options.rows);
    const std::vector<int> gaps = bench::parse_ld_extra(options.ld_extra);
    std::vector<Case> cases;
    const auto add = [&](const Shape& shape, std::int64_t count, int gap) {
        for (const Dtype scalar : scalars) {
            for (const Kernel* kernel : kernels) {
                if (!kernel->takes(scalar)) {
                    continue;
                }
                if (shape.m != shape.n && !kernel->has_two_widths()) {
                    throw InputError(
                        fmt::format("{}x{}: {} has one width", shape.m, shape.n, kernel->name()));
                }
                if (shape.m > kernel->most_columns()) {
                    throw InputError(fmt::format("{}x{}: {} has at most {} columns", shape.m,
                                                 shape.n, kernel->name(), kernel->most_columns()));
                }
                bench::add_once(cases, Case{kernel, scalar, shape, count, gap, options.matrix, 0,
                                            options.tile});
            }
        }
    };
    for (const Shape& shape : chosen_shapes(options)) {
        for (const std::int64_t count : rows) {
            for (const int gap : gaps) {
                add(shape, count, gap);
            }
        }
    }
    return cases;
}

/// Of cases with --matrix, all or none.
void choose_matrix(const Context& ctx, std::vector<Case>& cases) {
    if (cases.empty() || cases.front().matrix.empty()) {
        return;
    }
    const bench::MatrixSize size = bench::size_of_matrix(ctx, cases.front().matrix);
    for (Case& c : cases) {
        if (size.complex && (c.scalar == Dtype::s || c.scalar == Dtype::d)) {
            throw InputError(
                fmt::format("--matrix {}: it is complex; choose --scalar c or z", c.matrix));
        }
        c.rows = size.rows;
        c.nonzeros = size.nonzeros;
    }
}

void choose_rows(double operand_bytes, std::vector<Case>& cases) {
    for (Case& c : cases) {
        if (!c.matrix.empty()) {
            continue;
        }
        if (c.rows == 0) {
            c.rows = c.kernel->default_rows(c, operand_bytes * c.kernel->size_factor());
        }
        c.rows = c.kernel->round_rows(c.rows);
    }
}

void write_pages(const BenchOptions& options, const bench::Document& document) {
    if (!options.plot.empty()) {
        write_file(options.plot, bench::plot(document));
    }
    if (!options.markdown.empty()) {
        write_file(options.markdown, bench::markdown(document));
    }
}

int draw_saved(const Comm& comm, const BenchOptions& options) {
    std::vector<bench::Document> documents;
    for (const std::string& file : options.plot_from) {
        documents.push_back(bench::read_document(file));
    }
    const bench::Document all = bench::merge(documents);
    write_pages(options, all);
    print(comm, bench::summary(all).substr(1));
    return success;
}

/// "ahead=0/threads=256,waves=2": two.
std::vector<std::string> tilings_of(const BenchOptions& options) {
    std::vector<std::string> tilings;
    std::istringstream words(options.tilings);
    for (std::string word; std::getline(words, word, '/');) {
        tilings.push_back(word);
    }
    return tilings;
}

/// What --resume has kept, or a new session; its last run is this one.
bench::Document start_document(const BenchOptions& options, const bench::Environment& environment) {
    bench::Document document;
    if (!options.resume.empty() && std::filesystem::exists(options.resume)) {
        document = bench::read_document(options.resume);
        const bench::Environment& former = document.environment;
        if (former.device != environment.device || former.gpu != environment.gpu ||
            former.cpu != environment.cpu || former.threads != environment.threads) {
            throw InputError(
                fmt::format("--resume {}: measured on {} {}, {} threads, not on this machine's {} "
                            "{}, {} threads",
                            options.resume, former.cpu, former.gpu, former.threads, environment.cpu,
                            environment.gpu, environment.threads));
        }
        document.session.not_run.clear();
    }
    std::map<std::string, std::string> rivals = std::move(document.environment.rivals);
    document.environment = environment;
    document.environment.rivals.merge(rivals);
    document.kernel = options.kernel.empty() ? options.reproduce : options.kernel;
    document.repeat = options.repeat;
    document.budget = options.budget;
    document.session.runs.push_back(
        {fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))), {}, {}, 0});
    for (const auto& [name, version] : environment.rivals) {
        document.session.runs.back().rivals.push_back(name);
    }
    if (options.model) {
        document.session.runs.back().rivals.emplace_back(bench::model_name);
    }
    if (options.atomics) {
        document.session.runs.back().rivals.emplace_back(bench::atomics_name);
    }
    for (const std::string& tiling : tilings_of(options)) {
        document.session.runs.back().rivals.push_back(bench::tiling_name(tiling));
    }
    document.session.runs.back().command = options.command;
    return document;
}

/// For who does not read the table: one line of the cases that went wrong, a rival's included.
void tell_failures(const bench::Session& session) {
    std::vector<Case> failed_ones;
    std::vector<Case> incorrect;
    for (const bench::Result& result : session.results) {
        if (!result.measured()) {
            bench::add_once(failed_ones, result.which);
        } else if (result.outcome == bench::Outcome::incorrect) {
            bench::add_once(incorrect, result.which);
        }
    }
    if (!failed_ones.empty() || !incorrect.empty()) {
        fmt::print(stderr, "quiver: bench: {} of {} failed to run, {} incorrect\n",
                   failed_ones.size(),
                   plural(std::count_if(session.results.begin(), session.results.end(),
                                        [](const bench::Result& r) { return r.ours(); }),
                          "case"),
                   incorrect.size());
    }
}

int exit_status(const bench::Session& session) {
    if (session.any(bench::Outcome::incorrect)) {
        return not_converged;
    }
    return session.any(bench::Outcome::failed) ? failed : success;
}

int measure_cases(const Comm& comm, const BenchOptions& options, std::vector<Case> cases) {
    const Execution execution = choose_execution(comm, options.device);
    const bench::Budget budget(options.budget);
    Context ctx(comm, execution.device);
    const bool variants = options.model || options.atomics || !options.tilings.empty();
    if (variants && ctx.place() == Place::host) {
        throw InputError(fmt::format("--{}: only kernels on a GPU have plans to choose from",
                                     options.model     ? "model"
                                     : options.atomics ? "atomics"
                                                       : "tilings"));
    }
    bench::Rivals rivals = bench::make_rivals(ctx, options.rivals);
    std::optional<bench::EnergyMeter> energy;
    if (options.energy) {
        energy.emplace(ctx);
    }
    const double default_bytes = bench::default_operand_bytes(ctx);
    const double operand_bytes = options.operand_bytes > 0 ? options.operand_bytes : default_bytes;
    if (!options.reproduce.empty()) {
        cases = bench::cases_of(options.reproduce, operand_bytes);
    }
    choose_matrix(ctx, cases);
    choose_rows(operand_bytes, cases);
    bench::Document document =
        start_document(options, bench::describe_environment(ctx, execution.note, rivals));
    bench::Session& session = document.session;
    bench::Run& run = session.runs.back();
    const auto kept =
        std::erase_if(cases, [&](const Case& c) { return session.has(c, run.rivals); });
    const double caches = document.environment.cache_bytes;
    run.ceilings = bench::measure_ceilings(ctx, default_bytes, bench::least_cold_caches * caches);
    print(comm, bench::table_head(document.environment, run.ceilings));

    const auto is_short = [&](const Case& c) {
        return ctx.place() == Place::device && c.kernel->few_rows_are_short() &&
               c.rows <= most_short_rows &&
               (!options.rows.empty() || c.kernel->bytes(c) < operand_bytes / 2);
    };
    const auto measure = [&](const Case& c) {
        const bench::MeasureOptions measuring{.repeat = options.repeat,
                                              .least_bytes = bench::cold_caches * caches,
                                              .least_calls = is_short(c) ? calls_on_short_rows : 1,
                                              .model = options.model,
                                              .atomics = options.atomics,
                                              .tilings = tilings_of(options),
                                              .energy = energy ? &*energy : nullptr};
        auto results = bench::run_case(ctx, c, rivals, measuring, budget);
        for (bench::Result& result : results) {
            bench::hold_against(run.ceilings, is_short(c), result);
        }
        return results;
    };
    const std::string& file = options.json.empty() ? options.resume : options.json;
    double saved = 0;
    const auto save = [&] {
        run.seconds = saved = budget.spent();
        if (!file.empty()) {
            write_file(file, bench::to_json(document));
        }
    };
    const auto show = [&](const std::vector<bench::Result>& results) {
        for (const bench::Result& result : results) {
            print(comm, bench::table_row(result));
        }
        // So that what a killed run has measured is not lost.
        if (budget.spent() - saved > save_every_seconds) {
            save();
        }
    };
    bench::run_all(cases, budget, measure, show, session);
    save();
    print(comm, bench::table_foot(session, budget.spent()));
    print(comm, bench::not_compared(document));
    if (kept > 0) {
        print(comm,
              fmt::format("resumed     {} of {} were there before\n", kept,
                          plural(std::ssize(cases) + static_cast<std::int64_t>(kept), "case")));
    }
    print(comm, bench::summary(document));
    print(comm, bench::compare_with(options.reproduce, session));
    write_pages(options, document);
    tell_failures(session);
    return exit_status(session);
}

int run_abft(const Comm& comm, const BenchOptions& options) {
    const bool good = bench::run_abft(
        comm, choose_execution(comm, options.device).device,
        {options.abft, options.scalar, options.widths, options.rows, options.repeat, options.faults,
         options.budget, options.seed, options.json, options.markdown, options.command});
    return good ? success : not_converged;
}

int run_bench(const Comm& comm, const BenchOptions& options) {
    std::vector<Case> cases;
    const bool scaling = options.kernel == "scaling";
    comm.agree([&] {
        if (comm.size() > 1 && !scaling && options.abft.empty()) {
            throw InputError(
                fmt::format("bench times the kernels of one process: run it without mpirun, not on "
                            "{} ranks; only "
                            "`bench scaling` and `bench --abft` take several",
                            comm.size()));
        }
        if (comm.rank() == 0) {
            check_options(options);
        }
        if (options.plot_from.empty() && options.blocking.empty() && options.abft.empty() &&
            !scaling) {
            cases = chosen_cases(options);
        }
    });
    if (scaling) {
        return bench::run_scaling(comm, {options.scaling_nx, options.scaling_length, options.budget,
                                         options.repeat, options.device, options.json,
                                         options.markdown, options.command})
                   ? success
                   : not_converged;
    }
    if (!options.abft.empty()) {
        return run_abft(comm, options);
    }
    if (!options.blocking.empty()) {
        const bool converged = bench::run_blocking(
            comm, choose_execution(comm, options.device).device,
            {options.blocking, options.budget, options.plot, options.markdown, options.command});
        return converged ? success : not_converged;
    }
    return options.plot_from.empty() ? measure_cases(comm, options, std::move(cases))
                                     : draw_saved(comm, options);
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App* command = app.add_subcommand(
        "bench", "Time the kernels, check their results, hold them against the machine's ceilings");
    command->footer(bench::footer());
    command->add_option("KERNEL", options->kernel, "List of kernels, or all");
    command->add_option("--scalar", options->scalar,
                        "List of s, d, c, z (default d); of the mixed kernels h, b (default h)");
    command->add_option("--widths", options->widths,
                        "Widths m = n: 1:64, or a list (default 1,2,4,8,16,32,64)");
    command->add_option("--shapes", options->shapes, "List of MxN, which run first");
    command->add_flag("--gram-schmidt", options->gram_schmidt,
                      "Shapes of a basis (20 to 400 wide) against a block (1 to 16)");
    add_number(*command, "--random-shapes", options->random_shapes,
               "That many shapes, m and n uniform in 1 to 64");
    add_number(*command, "--seed", options->seed, "Of the random shapes");
    command->add_option("--rows", options->rows,
                        "List of rows, such as 1e3,1e6; else operands well above the caches");
    command
        ->add_option("--ld-extra", options->ld_extra,
                     "List of gaps: ld = width + gap, for all tall blocks")
        ->capture_default_str();
    add_number(*command, "--operand-bytes", options->operand_bytes,
               "Size of the operands without --rows; 0 lets bench choose");
    command
        ->add_option("--device", options->device, "Where to run; auto takes a GPU if there is one")
        ->check(CLI::IsMember({"auto", "host", "cuda"}))
        ->capture_default_str();
    command->add_option("--matrix", options->matrix,
                        "A file or gen:... in the place of spmmv's Laplacian");
    add_number(*command, "--tile", options->tile,
               "Rows of a tile of spmmv's matrix; 1 keeps their order, 0 is the library's choice");
    command->add_option("--tilings", options->tilings,
                        "Also spmmv with these settings: ahead=0/threads=256,waves=2 (device)");
    command->add_option("--vs", options->rivals,
                        "Libraries to compare with: cublas, cusparse; on the host openblas, eigen");
    command->add_flag("--model", options->model,
                      "Also the plans that the model alone would take (device)");
    command->add_flag("--atomics", options->atomics,
                      "Also the sums of tsmttsm and gram by atomics (device)");
    command->add_flag("--energy", options->energy,
                      "Also joules a call, by the GPU's counter, 0.5 s and more each (device)");
    command->add_option("--abft", options->abft,
                        "Instead of kernels: what checksums find and mend of injected faults, on "
                        "any number of ranks, what they cost on this matrix, and what protected "
                        "operations cost over their kernels");
    add_number(*command, "--faults", options->faults, "Faults that --abft injects");
    add_number(*command, "--budget", options->budget,
               "Seconds after which no further case starts; the most telling run first");
    add_number(*command, "--repeat", options->repeat, "Samples of a case, at least 3");
    command->add_option("--json", options->json, "Also write all results to this file");
    command->add_option("--resume", options->resume,
                        "Go on with what this file has, and write to it (or to --json)");
    command->add_option("--plot", options->plot, "Draw the results to this SVG file");
    command->add_option("--markdown", options->markdown,
                        "Write commands, ceilings, summary and tables to this file");
    add_number(*command, "--nx", options->scaling_nx,
               "Of scaling: edge of the Laplacian (default 400 on a GPU, 48 on the host)");
    add_number(*command, "--length", options->scaling_length,
               "Of scaling: spins of the chain (default 28 on a GPU, 14 on the host)");
    command->add_option("--plot-from", options->plot_from,
                        "Take the results of these JSON files instead of measuring");
    command->add_option("--reproduce", options->reproduce,
                        "Run the sweeps of a paper's figures: ernst2020, tsm2x2021, tang2021, "
                        "haidar2018");
    command->add_option("--blocking", options->blocking,
                        "Instead of kernels: Jacobi-Davidson for the 10 smallest eigenvalues of "
                        "these matrices with blocks of 1, 2, 4, 8");
    command->callback([options, command, &chosen] {
        options->command = bench::words_of(*command);
        for (const char* file : bench::file_options) {
            const CLI::Option* option = command->get_option(file);
            if (option->count() > 0 && option->as<std::string>().empty()) {
                options->nameless = file;
            }
        }
        chosen = [options](const Comm& comm) { return run_bench(comm, *options); };
    });
}

}  // namespace quiver::apps
