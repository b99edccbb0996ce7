// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench`: its commands and their options. The commands themselves are in apps/bench/.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "apps/bench/abft.hpp"
#include "apps/bench/blocking.hpp"
#include "apps/bench/kernel.hpp"
#include "apps/bench/protection.hpp"
#include "apps/bench/scaling.hpp"
#include "apps/bench/session.hpp"
#include "apps/number_option.hpp"
#include "apps/report.hpp"
#include "apps/row_distribution_options.hpp"
#include "apps/subcommands.hpp"
#include "apps/suggest.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

void add_kernels(CLI::App& bench, Action& chosen);
void add_reproduce(CLI::App& bench, Action& chosen);
void add_summary(CLI::App& bench, Action& chosen);
void add_blocking(CLI::App& bench, Action& chosen);
void add_scaling(CLI::App& bench, Action& chosen);
void add_abft(CLI::App& bench, Action& chosen);
void add_protection(CLI::App& bench, Action& chosen);
void refuse_former_options(CLI::App& bench);
void require_command(const CLI::App& bench);

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
    CLI::App* bench = app.add_subcommand(
        "bench", "Time kernels and solvers, check results, compare with ceilings and rivals");
    bench->footer(
        "Exit status: 0 every result is correct; 1 a result is wrong or a solve has not converged; "
        "2 bad usage; 3 a case failed to run.");
    add_kernels(*bench, chosen);
    add_reproduce(*bench, chosen);
    add_summary(*bench, chosen);
    add_blocking(*bench, chosen);
    add_scaling(*bench, chosen);
    add_abft(*bench, chosen);
    add_protection(*bench, chosen);
    refuse_former_options(*bench);
    // Extras are allowed so that require_command() reports them with a better message than CLI11's.
    // This call comes last, since commands added after it would also allow extras.
    bench->require_subcommand(0, 1)->allow_extras();
    bench->callback([bench] { require_command(*bench); });
}

namespace {

/// Options that take the name of a file.
constexpr const char* file_options[] = {"--json", "--resume", "--markdown"};

int status_of(bool good) {
    return good ? success : not_converged;
}

int status_of(bench::Outcome worst) {
    return worst == bench::Outcome::passed   ? success
           : worst == bench::Outcome::failed ? failed
                                             : not_converged;
}

/// The command line without options that name files: "quiver bench kernels tsmm --widths 1:8".
std::string words_of(const CLI::App& command) {
    std::string text = "quiver " + full_name(command);
    for (const CLI::Option* option : command.get_options()) {
        const std::string name = option->get_name();
        const bool is_file = std::find(std::begin(file_options), std::end(file_options), name) !=
                             std::end(file_options);
        if (option->count() == 0 || is_file) {
            continue;
        }
        text += option->get_positional() ? "" : " " + name;
        for (const std::string& word : option->results()) {
            text += option->get_expected_min() == 0 ? "" : " " + word;
        }
    }
    return text;
}

void add_file(CLI::App& command, const char* name, std::string& file, const char* meaning) {
    command.add_option(name, file, meaning)->check([](const std::string& text) {
        return text.empty() ? std::string("the name of a file is wanted") : std::string();
    });
}

void add_device_and_budget(CLI::App& command, bench::CommonOptions& options,
                           const char* json_meaning = json_option) {
    command
        .add_option("--device", options.device, "Where to run; auto chooses a GPU if there is one")
        ->check(CLI::IsMember({"auto", "host", "cuda"}))
        ->capture_default_str();
    add_number(command, "--budget", options.budget,
               "Seconds after which no further measurement starts");
    add_file(command, "--json", options.json, json_meaning);
}

void add_repeat(CLI::App& command, bench::CommonOptions& options) {
    add_number(command, "--repeat", options.repeat, "Samples of a measurement, at least 3");
}

void add_markdown(CLI::App& command, bench::CommonOptions& options) {
    add_file(command, "--markdown", options.markdown,
             "Also write the printed table to this file, pipe or device. With -, it goes to "
             "standard output, and standard error gets the printed copy");
}

/// Adds an obsolete option, whose use is an error. `cure` names the replacement in the message.
void refuse(CLI::App& command, const char* option, const std::string& cure) {
    const auto fail = [=, &command](const CLI::results_t&) -> bool {
        throw_collective(ErrorKind::input, fmt::format("{0} {1}: {2}; see quiver {0} --help",
                                                       full_name(command), option, cure));
    };
    command.add_option(option, fail)->expected(0, 1)->group("");
}

/// Options of the commands that measure sessions of kernels.
void add_session(CLI::App& command, bench::SessionOptions& options) {
    add_device_and_budget(command, options, "Also write all results to this file");
    add_repeat(command, options);
    add_number(command, "--operand-bytes", options.operand_bytes,
               "Bytes of the operands if --rows is not given; 0: bench chooses");
    add_number(command, "--cache-bytes", options.cache_bytes,
               "Bytes of the last-level caches; 0: as the system reports them");
    command.add_option("--rivals", options.rivals,
                       "Libraries to compare with: cublas, cusparse, cusolver; on the host "
                       "openblas, eigen");
    command.add_flag("--model", options.model,
                     "Also time the plans that the model alone would choose (GPU)");
    command.add_flag("--atomics", options.atomics,
                     "Also time tsmttsm and gram with a reduction by atomics (GPU)");
    command.add_flag("--energy", options.energy,
                     "Also measure joules per call by the GPU's counter; takes at least 0.5 s for "
                     "each case (GPU)");
    add_file(command, "--resume", options.resume,
             "Continue the session saved in this file, and write to it (or to --json)");
    refuse(command, "--vs", "the libraries to compare with are named by --rivals");
    for (const char* page : {"--plot", "--markdown"}) {
        refuse(command, page,
               "write --json FILE.json; apps/bench/plot.py FILE.json draws --svg and --markdown");
    }
}

/// Adds a command of bench that calls `run` with its options.
template <class Options, class Status>
std::pair<CLI::App*, std::shared_ptr<Options>> add_command(CLI::App& bench, Action& chosen,
                                                           const char* name, const char* meaning,
                                                           Status (*run)(const Comm&,
                                                                         const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = bench.add_subcommand(name, meaning);
    command->callback([=, &chosen] {
        if constexpr (requires { options->command; }) {
            options->command = words_of(*command);
        }
        chosen = [=](const Comm& comm) { return status_of(run(comm, *options)); };
    });
    return {command, options};
}

std::string list_of_kernels() {
    std::string text = "KERNEL is a list of\n";
    for (const bench::Kernel* kernel : bench::all_kernels()) {
        text += fmt::format("  {:<25} {}\n", kernel->name(), kernel->formula());
    }
    return text +
           "orth (all orth-*), batched (all batched-*), or all: every kernel for one of the\n"
           "scalars, which by default excludes the kernels in mixed precision. Both omit the\n"
           "-interleaved kernels.\n";
}

void add_kernels(CLI::App& bench, Action& chosen) {
    const auto [command, options] =
        add_command(bench, chosen, "kernels", "Time kernels on one process", bench::run_kernels);
    bench::CaseOptions& cases = options->cases;
    command->add_option("KERNEL", cases.kernel, "List of kernels, or all")->required();
    command->add_option("--scalar", cases.scalar,
                        "List of s, d, c, z (default d); for kernels in mixed precision, of h, b "
                        "(default h)");
    command->add_option("--widths", cases.widths,
                        "Widths m = n: 1:64, or a list (default 1,2,4,8,16,32,64)");
    command->add_option("--shapes", cases.shapes, "List of shapes MxN, which run first");
    command->add_flag("--gram-schmidt", cases.gram_schmidt,
                      "Shapes of a basis (20 to 400 wide) against a block (1 to 16)");
    add_number(*command, "--random-shapes", cases.random_shapes,
               "Number of random shapes, with m and n uniform in 1 to 64");
    add_number(*command, "--seed", cases.seed, "Seed of the random shapes");
    command->add_option(
        "--rows", cases.rows,
        "List of numbers of rows, such as 1e3,1e6 (default: operands well above the caches)");
    command
        ->add_option("--ld-extra", cases.ld_extra,
                     "List of gaps between rows: ld = width + gap, for all tall blocks")
        ->capture_default_str();
    command->add_option("--matrix", cases.matrix,
                        "A file or gen:..., which replaces the Laplacian of spmmv");
    add_number(
        *command, "--tile", cases.tile,
        "Rows per tile of spmmv's matrix; 1 keeps the order of the rows, 0: the library chooses");
    command->add_option("--tilings", cases.tilings,
                        "Also time spmmv with these settings: ahead=0/threads=256,waves=2 (GPU)");
    add_session(*command, *options);
    command->footer(list_of_kernels() + R"(
Examples:
  quiver bench kernels tsmttsm
  quiver bench kernels tsmttsm,tsmm --widths 1:64 --scalar s,d,c,z --rivals cublas --budget 400 \
      --resume widths.json                     repeat until no case is left
  quiver bench kernels tsmm --rivals openblas,eigen --device host
  quiver bench kernels orth --widths 4,8,16,32,64 --rows 1e6 --rivals eigen --device host
  quiver bench kernels tsmttsm --shapes 64x8,8x64 --device cuda
  quiver bench kernels tsmttsm --gram-schmidt --random-shapes 200 --seed 7
  quiver bench kernels tsmttsm --widths 1,4,16,64 --rows 1e3,1e4,1e5,1e6 --json rows.json
  quiver bench kernels tsmttsm --widths 1:64 --atomics --model --device cuda
  quiver bench kernels tsmm,tsmttsm --widths 3,8,17 --ld-extra 0,1,3 --rivals cublas
  quiver bench kernels tsmttsm-mixed,tsmm-mixed --scalar h,b --widths 1:64 --energy
  python3 apps/bench/plot.py rows.json --svg rows.svg --markdown rows.md)");
}

void add_reproduce(CLI::App& bench, Action& chosen) {
    const auto [command, options] = add_command(
        bench, chosen, "reproduce", "Time the sweeps of a paper's figures", bench::run_reproduce);
    command->add_option("PAPER", options->paper, "ernst2020, tsm2x2021, tang2021 or haidar2018")
        ->required();
    command->add_option("--figure", options->figures,
                        "Instead: list of figures that compare settings of kernels (GPU), such as "
                        "15,16; docs/bench.md lists them");
    add_session(*command, *options);
    command->footer(
        "Examples:\n  quiver bench reproduce ernst2020 --rivals cublas --json paper.json\n"
        "  quiver bench reproduce ernst2020 --figure 15 --repeat 5 --json figure15.json");
}

void add_summary(CLI::App& bench, Action& chosen) {
    const auto [command, options] = add_command(
        bench, chosen, "summary", "Summarise saved sessions, and merge them", bench::run_summary);
    command->add_option("FILES", options->files, "Files that kernels and reproduce have written")
        ->required();
    add_file(*command, "--json", options->json,
             "Also write all sessions as one to this file, pipe or device. With -, they go to "
             "standard output, and the summary to standard error");
    command->footer("Example:\n  quiver bench summary a.json b.json --json both.json");
}

void add_blocking(CLI::App& bench, Action& chosen) {
    const auto [command, options] = add_command(
        bench, chosen, "blocking",
        "Time block Jacobi-Davidson for 10 eigenvalues with blocks of 1, 2, 4, 8 columns",
        bench::run_blocking);
    command->add_option("MATRIX", options->matrices, "Files or gen:NAME,...")->required();
    add_device_and_budget(*command, *options);
    add_markdown(*command, *options);
    refuse(*command, "--plot", "write --json FILE.json; apps/bench/plot.py FILE.json draws --svg");
    command->footer("Example:\n  quiver bench blocking gen:spinSZ,L=14 matrix.mtx.gz --budget 300");
}

void add_scaling(CLI::App& bench, Action& chosen) {
    const auto [command, options] = add_command(
        bench, chosen, "scaling",
        "Time products, solver steps and reductions on 1, 2, 4, ... of the ranks; compare with a "
        "model",
        bench::run_scaling);
    add_number(*command, "--nx", options->nx,
               "Points along an edge of the Laplacian's grid; 0: 400 on a GPU, 48 on the host");
    add_number(*command, "--length", options->length,
               "Spins of the chain; 0: 28 on a GPU, 14 on the host");
    add_row_distribution(*command, options->rows);
    add_device_and_budget(*command, *options);
    add_repeat(*command, *options);
    add_markdown(*command, *options);
    command->footer(
        "Example:\n  mpirun -n 4 quiver bench scaling --budget 400 --json scaling.json");
}

void add_abft(CLI::App& bench, Action& chosen) {
    const auto [command, options] = add_command(
        bench, chosen, "abft",
        "Inject faults, count what checksums find and repair, and time protected operations",
        bench::run_abft);
    command->add_option("MATRIX", options->matrix, "Matrix of the timed solves")->required();
    command->add_option("--scalar", options->scalars, "List of s, d, c, z (default d)");
    command->add_option("--widths", options->widths, "Widths of blocks (default 8,32)");
    command->add_option("--rows", options->rows,
                        "List of numbers of rows (default: the rows of MATRIX)");
    add_number(*command, "--faults", options->faults, "Number of faults to inject");
    add_number(*command, "--seed", options->seed, "Seed of the faults");
    add_device_and_budget(*command, *options);
    add_repeat(*command, *options);
    add_markdown(*command, *options);
    command->footer(
        "Example:\n  quiver bench abft gen:laplace3d,nx=40 --scalar s,d,c,z --faults 10000");
}

void add_protection(CLI::App& bench, Action& chosen) {
    const auto [command, options] = add_command(
        bench, chosen, "protection",
        "Time each method without and with --abft, as in the cost table of docs/abft.md",
        bench::run_protection);
    options->repeat = 5;
    options->budget = 3600;
    add_number(*command, "--nx", options->nx, "The matrix is gen:laplace3d,nx=NX");
    command->add_option("--methods", options->methods,
                        "List of chebyshev, lanczos, lobpcg, jd, filter, cg, minres, gmres, "
                        "bicgstab, qr (default: all)");
    add_device_and_budget(*command, *options);
    add_repeat(*command, *options);
    add_markdown(*command, *options);
    command->footer("Example:\n  OMP_NUM_THREADS=1 quiver bench protection --nx 60");
}

/// Adds the obsolete options that commands of bench replace.
void refuse_former_options(CLI::App& bench) {
    refuse(bench, "--reproduce", "write quiver bench reproduce PAPER");
    refuse(bench, "--plot-from", "write quiver bench summary FILES; apps/bench/plot.py draws them");
    refuse(bench, "--blocking", "write quiver bench blocking MATRIX");
    refuse(bench, "--abft", "write quiver bench abft MATRIX");
}

/// Throws InputError unless the first word is a command. The message names `bench kernels` for
/// users who wrote a kernel instead.
void require_command(const CLI::App& bench) {
    const std::vector<std::string> words = bench.remaining();
    if (words.empty() && !bench.get_subcommands().empty()) {
        return;
    }
    std::vector<std::string> names;
    for (const CLI::App* command : bench.get_subcommands({})) {
        names.push_back(command->get_name());
    }
    const std::string word = words.empty() ? "" : words.front();
    throw_collective(ErrorKind::input,
                     fmt::format("bench{}{}: a command is wanted{}; kernels are timed by quiver "
                                 "bench kernels KERNEL; see quiver bench --help",
                                 word.empty() ? "" : " ", word, suggest(word, names)));
}

}  // namespace
}  // namespace quiver::apps
