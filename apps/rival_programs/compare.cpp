// SPDX-License-Identifier: BSD-3-Clause
// Runs the command quiver and the drivers of other eigensolvers on the same matrix files, once each
// in every round, and compares their solve times and results.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report.hpp"
#include "apps/report_parts.hpp"
#include "apps/rival_programs/cases.hpp"
#include "blockvec/config.hpp"

namespace quiver::rivals {
namespace {

/// Exit status of timeout(1) at its limit.
constexpr int limit_status = 124;

struct Options {
    bool quick = false;
    std::string quiver;
    std::string data;
    std::string json;
    std::string only;
    std::vector<std::string> solvers;
    int rounds = 3;
    double limit = 60;
    /// GiB of address space for a rival on all ranks together.
    int memory = 12;
    std::vector<int> cores{1, 2};
};

struct Solver {
    std::string name;
    /// Empty: the command quiver.
    std::string driver;
    std::string method;
    /// Whether the solver uses several cores by ranks; otherwise it runs in one process with as
    /// many OpenMP threads as cores.
    bool ranks = true;
};

const std::vector<Solver> solvers{
    {"quiver auto", "", "auto"},
    {"quiver auto, threads", "", "auto", false},
    {"SLEPc Krylov-Schur", "slepc", "krylovschur"},
    {"SLEPc LOBPCG", "slepc", "lobpcg"},
    {"SLEPc shift-invert, MUMPS", "slepc", "sinvert"},
    {"PRIMME", "primme", "dynamic"},
    {"ARPACK", "arpack", "lanczos"},
    {"Spectra", "spectra", "lanczos", false},
    {"Spectra shift-invert", "spectra", "sinvert", false},
    {"Anasazi block Krylov-Schur", "anasazi", "bks"},
    {"Anasazi LOBPCG", "anasazi", "lobpcg"},
};

/// The results of a solver on a case, over all rounds.
struct Record {
    std::string library;
    /// The method that auto chose; empty for rivals.
    std::string chosen;
    std::vector<double> seconds;
    long products = 0;
    double residual = 0;
    int missed = 0;
    bool converged = true;
    /// Why there is no time; empty otherwise.
    std::string failure;
    /// True if a solve took longer than the limit; the solver then runs no further round.
    bool slow = false;

    bool all_copies() const { return failure.empty() && converged && missed == 0; }
    double median() const {
        std::vector<double> sorted = seconds;
        std::sort(sorted.begin(), sorted.end());
        const std::size_t half = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }
};

std::string quoted(const std::string& text) {
    return "'" + text + "'";
}

/// Runs a command line; returns its stdout and its exit status.
std::pair<std::string, int> run(const std::string& command) {
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
        throw std::runtime_error("cannot start: " + command);
    }
    std::string text;
    char part[4096];
    while (const std::size_t count = std::fread(part, 1, sizeof part, pipe)) {
        text.append(part, count);
    }
    const int status = pclose(pipe);
    return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

class Comparison {
  public:
    Comparison(Options options, std::filesystem::path here)
        : options_(std::move(options)), here_(std::move(here)), work_(here_ / "matrices") {
        std::filesystem::create_directories(work_);
    }

    nlohmann::ordered_json run_case(const Case& problem) {
        const std::string file = matrix_file(problem);
        nlohmann::ordered_json rows = nlohmann::json::array();
        for (const int cores : options_.cores) {
            std::vector<Record> records(solvers.size());
            for (int round = 0; round < options_.rounds; ++round) {
                for (std::size_t i = 0; i < solvers.size(); ++i) {
                    if (is_there(solvers[i], cores) && records[i].failure.empty() &&
                        !records[i].slow) {
                        solve(problem, file, cores, solvers[i], records[i]);
                    }
                }
            }
            print(problem, cores, records);
            for (std::size_t i = 0; i < solvers.size(); ++i) {
                if (is_there(solvers[i], cores)) {
                    rows.push_back(to_json(problem, cores, solvers[i], records[i]));
                }
            }
        }
        return rows;
    }

  private:
    bool is_there(const Solver& solver, int cores) const {
        const auto named = [&](const std::string& text) {
            return solver.name.find(text) != std::string::npos;
        };
        if (solver.driver.empty()) {
            return solver.ranks || cores > 1;
        }
        return (options_.solvers.empty() ||
                std::any_of(options_.solvers.begin(), options_.solvers.end(), named)) &&
               std::filesystem::exists(driver(solver));
    }
    std::filesystem::path driver(const Solver& solver) const {
        return here_ / ("quiver_rival_" + solver.driver);
    }

    /// The file that all solvers read; a generated matrix is written on first use.
    std::string matrix_file(const Case& problem) const {
        if (!problem.generated()) {
            return (std::filesystem::path(options_.data) / problem.matrix).string();
        }
        std::string name = problem.matrix.substr(4);
        std::replace(name.begin(), name.end(), ',', '_');
        const std::string file = (work_ / (name + ".mtx")).string();
        if (!std::filesystem::exists(file) &&
            run(options_.quiver + " gen " + problem.matrix + " -o " + quoted(file)).second != 0) {
            throw std::runtime_error("quiver gen " + problem.matrix + " failed");
        }
        return file;
    }

    void solve(const Case& problem, const std::string& file, int cores, const Solver& solver,
               Record& record) const {
        const char* which = problem.largest ? "largest" : "smallest";
        const std::string answer = (work_ / "answer.json").string();
        std::filesystem::remove(answer);
        const int ranks = solver.ranks ? cores : 1;
        std::string command;
        if (!solver.driver.empty()) {
            command = fmt::format("ulimit -v {}; ", (options_.memory << 20) / ranks);
        }
        command += fmt::format(
            "OMP_NUM_THREADS={} OMPI_ALLOW_RUN_AS_ROOT=1 "
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ",
            cores / ranks);
        // Add seconds for reading the matrix.
        command += fmt::format("timeout {} ", options_.limit + 5);
        if (ranks > 1) {
            command += fmt::format("mpirun --bind-to none --oversubscribe -n {} ", ranks);
        }
        if (solver.driver.empty()) {
            command += fmt::format(
                "{} eigs {} -k {} --which {} --tol {} --method {} --device host --json {} ",
                quoted(options_.quiver), quoted(file), problem.k(), which, tolerance, solver.method,
                quoted(answer));
        } else {
            double end = problem.known.front();
            double inner = problem.known.back();
            if (problem.largest) {
                std::swap(end, inner);
            }
            command += fmt::format("{} {} {} {} {} {} {} {} {} ", quoted(driver(solver).string()),
                                   solver.method, quoted(file), problem.k(), which,
                                   tolerance * problem.norm, problem.norm, end, inner);
        }
        const auto [text, status] = run(command + "2>/dev/null");
        const nlohmann::json report =
            solver.driver.empty() ? nlohmann::json::parse(std::ifstream(answer), nullptr, false)
                                  : nlohmann::json::parse(text, nullptr, false);
        if (report.is_discarded()) {
            record.failure = status == limit_status ? "no result in time"
                                                    : fmt::format("failed with status {}", status);
            return;
        }
        take(problem, solver, report, record);
    }

    void take(const Case& problem, const Solver& solver, const nlohmann::json& report,
              Record& record) const {
        const bool ours = solver.driver.empty();
        record.library = ours ? "quiver " + report["version"].get<std::string>()
                              : report["library"].get<std::string>();
        record.chosen = ours ? report["method"].get<std::string>() : "";
        record.products = report[ours ? "operator_applications" : "products"].get<long>();
        record.seconds.push_back(ours ? report["seconds"]["solve"].get<double>()
                                      : report["seconds"].get<double>());
        record.converged = record.converged && report["converged"].get<bool>();
        for (const auto& residual : report["residuals"]) {
            record.residual = std::max(record.residual, residual.get<double>() / problem.norm);
        }
        record.missed = std::max(
            record.missed,
            missed(problem.known, report["eigenvalues"].get<std::vector<double>>(), problem.error));
        record.slow = record.seconds.back() > options_.limit;
    }

    static std::string copies(const Record& record) {
        if (!record.failure.empty()) {
            return record.failure;
        }
        const std::string count =
            record.missed == 0 ? "found all" : fmt::format("missed {}", record.missed);
        return (record.converged ? "" : "not converged, ") + count +
               (record.slow ? ", one run" : "");
    }

    void print(const Case& problem, int cores, const std::vector<Record>& records) const {
        fmt::print("\n{} on {} core{}\n\n", problem.name, cores, cores == 1 ? "" : "s");
        fmt::print("| solver | seconds | least - most | products | residual / norm | copies |\n");
        fmt::print("|---|---|---|---|---|---|\n");
        const Record& ours = records.front();
        std::optional<double> complete;
        std::optional<double> incomplete;
        for (std::size_t i = 0; i < records.size(); ++i) {
            const Record& record = records[i];
            if (record.seconds.empty()) {
                if (is_there(solvers[i], cores)) {
                    fmt::print("| {} | | | | | {} |\n", solvers[i].name, copies(record));
                }
                continue;
            }
            const auto [least, most] =
                std::minmax_element(record.seconds.begin(), record.seconds.end());
            fmt::print("| {}{} | {:.3f} | {:.3f} - {:.3f} | {} | {:.1e} | {} |\n", solvers[i].name,
                       record.chosen.empty() ? "" : ": " + record.chosen, record.median(), *least,
                       *most, record.products, record.residual, copies(record));
            if (!solvers[i].driver.empty() && record.converged) {
                auto& best = record.missed == 0 ? complete : incomplete;
                best = std::min(best.value_or(record.median()), record.median());
            }
        }
        if (!ours.seconds.empty()) {
            if (complete) {
                fmt::print(
                    "\nquiver takes {:.2f} times as long as the fastest rival that finds all\n",
                    ours.median() / *complete);
            }
            if (incomplete) {
                fmt::print(
                    "\nquiver takes {:.2f} times as long as the fastest rival that misses some\n",
                    ours.median() / *incomplete);
            }
        }
        std::fflush(stdout);
    }

    static nlohmann::ordered_json to_json(const Case& problem, int cores, const Solver& solver,
                                          const Record& record) {
        return {{"case", problem.name},
                {"matrix", problem.matrix},
                {"k", problem.k()},
                {"which", problem.largest ? "largest" : "smallest"},
                {"cores", cores},
                {"ranks", solver.ranks ? cores : 1},
                {"solver", solver.name},
                {"library", record.library},
                {"chosen", record.chosen},
                {"seconds", record.seconds},
                {"products", record.products},
                {"residual", apps::json_number(record.residual)},
                {"missed", record.missed},
                {"converged", record.converged},
                {"all_copies", record.all_copies()},
                {"failure", record.failure}};
    }

    Options options_;
    std::filesystem::path here_;
    std::filesystem::path work_;
};

int compare(const Options& options, const std::filesystem::path& here) {
    Comparison comparison(options, here);
    nlohmann::ordered_json document{{"schema", 1},
                                    {"version", config::version},
                                    {"date", apps::utc_now()},
                                    {"tolerance", tolerance},
                                    {"rounds", options.rounds},
                                    {"runs", nlohmann::json::array()}};
    for (const Case& problem : cases(options.quick)) {
        if (problem.name.find(options.only) == std::string::npos) {
            continue;
        }
        if (!problem.generated() && options.data.empty()) {
            fmt::print("\n{}: skipped, needs --data with a folder that has {}\n", problem.name,
                       problem.matrix);
            continue;
        }
        for (const auto& row : comparison.run_case(problem)) {
            document["runs"].push_back(row);
        }
    }
    if (!options.json.empty()) {
        apps::write_file(options.json, document.dump(1) + "\n");
    }
    return 0;
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    using namespace quiver::rivals;
    const std::filesystem::path here = std::filesystem::absolute(argv[0]).parent_path();
    Options options;
    options.quiver = (here.parent_path() / "quiver").string();
    CLI::App app("Compares quiver eigs with other eigensolvers: solve times and copies found");
    app.add_flag("--quick", options.quick, "small problems, one round");
    app.add_option("--data", options.data,
                   "folder with brack2_lap, bcsstk09 and bcsstk13 as .mtx.gz");
    app.add_option("--rounds", options.rounds, "runs of each solver, interleaved (3)");
    app.add_option("--cores", options.cores, "numbers of cores (1,2)")->delimiter(',');
    app.add_option("--memory", options.memory, "GiB of address space of a rival (12)");
    app.add_option("--limit", options.limit, "seconds after which a solve is not repeated (60)");
    app.add_option("--only", options.only, "cases whose name contains this text");
    app.add_option("--solvers", options.solvers, "rivals whose name contains one of these texts")
        ->delimiter(',');
    app.add_option("--quiver", options.quiver, "the command to compare");
    app.add_option("--json", options.json, "all results as JSON");
    CLI11_PARSE(app, argc, argv);
    if (options.quick) {
        options.rounds = 1;
    }
    try {
        return compare(options, here);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "quiver_compare: %s\n", error.what());
        return 3;
    }
}
