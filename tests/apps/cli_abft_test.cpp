// SPDX-License-Identifier: BSD-3-Clause
// `--abft` and `--inject` of `quiver eigs`, `quiver solve` and `quiver qr`; `quiver bench abft` and
// `quiver bench protection`.
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

const std::string problem = "gen:laplace3d,nx=12 -k 5 --tol 1e-9 ";

TEST(EigsAbft, RepairsInjectedFaults) {
    for (const char* method : {"lanczos", "chebyshev", "jd", "lobpcg"}) {
        const EigsOutcome outcome =
            run_eigs(problem + "--abft correct --inject rate=0.2,where=output,bit=40-62,seed=5 " +
                     "--method " + method);
        ASSERT_EQ(outcome.status, 0) << outcome.err << outcome.out;
        for (std::size_t j = 0; j < 5; ++j) {
            EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                        outcome.json["exact_eigenvalues"][j].get<double>(), 2e-8)
                << method;
        }
        const auto& abft = outcome.json["abft"];
        EXPECT_EQ(abft["mode"], "correct");
        EXPECT_GT(abft["injected"], 0);
        EXPECT_GT(abft["faults"], 0);
        EXPECT_EQ(abft["faults"], abft["mended"].get<int>() + abft["redone"].get<int>());
        EXPECT_EQ(abft["failed"], 0);
        EXPECT_EQ(abft["checked"], abft["products"]);
        EXPECT_NE(outcome.out.find("abft        correct: "), std::string::npos) << outcome.out;
    }
}

/// Block Lanczos gives the same bits with `detect` and `correct`. Without checks it enqueues steps
/// ahead and sums in another order, so its results differ by rounding.
TEST(EigsAbft, ChecksChangeNoBit) {
    constexpr double norm = 12;
    for (const int ranks : {1, 2}) {
        const EigsOutcome plain = run_eigs(problem + "--method lanczos", ranks);
        std::optional<EigsOutcome> first;
        for (const char* mode : {"detect", "correct"}) {
            const EigsOutcome checked =
                run_eigs(problem + "--method lanczos --abft " + mode, ranks);
            ASSERT_EQ(checked.status, 0) << checked.err;
            for (std::size_t j = 0; j < plain.json["eigenvalues"].size(); ++j) {
                EXPECT_NEAR(checked.json["eigenvalues"][j].get<double>(),
                            plain.json["eigenvalues"][j].get<double>(),
                            100 * std::numeric_limits<double>::epsilon() * norm);
            }
            if (!first) {
                first = checked;
            }
            EXPECT_EQ(checked.json["eigenvalues"], first->json["eigenvalues"]);
            EXPECT_EQ(checked.json["residuals"], first->json["residuals"]);
            EXPECT_EQ(checked.json["abft"]["alarms"], 0);
            EXPECT_GT(checked.json["abft"]["basis_checks"], 0);
        }
        EXPECT_FALSE(plain.json.contains("abft"));
    }
}

TEST(EigsAbft, DetectReports) {
    const EigsOutcome outcome = run_eigs(
        problem + "--method lanczos -v --abft detect --inject rate=1,where=output,bit=24,step=3");
    EXPECT_EQ(outcome.json["abft"]["injected"], 1);
    EXPECT_GE(outcome.json["abft"]["faults"], 1);
    EXPECT_EQ(outcome.json["abft"]["mended"], 0);
    EXPECT_NE(outcome.err.find("fault: in product at product 3 on rank 0: found"),
              std::string::npos)
        << outcome.err;
}

TEST(EigsAbft, UpdatesOfBlocks) {
    for (const int ranks : {1, 2}) {
        for (const std::string method : {"lobpcg", "chebyshev", "jd"}) {
            const EigsOutcome outcome =
                run_eigs(problem + "--abft correct --abft-updates --method " + method +
                             " --inject rate=0.1,where=output,seed=4",
                         ranks);
            EXPECT_EQ(outcome.status, 0) << outcome.err;
            const auto& counts = outcome.json["abft"];
            EXPECT_GT(counts["updates"], 0);
            EXPECT_EQ(counts["updates_checked"], counts["updates"]);
            EXPECT_GT(counts["mended"], 0);
            EXPECT_EQ(counts["failed"], 0);
            EXPECT_NE(outcome.out.find(" block updates, "), std::string::npos) << outcome.out;
        }
    }
}

TEST(EigsAbft, Misuse) {
    const EigsOutcome bad = run_eigs(problem + "--inject rate=2");
    EXPECT_EQ(bad.status, 2);
    EXPECT_NE(bad.err.find("rate=2: a probability from 0 to 1 is wanted"), std::string::npos)
        << bad.err;
    EXPECT_EQ(run_eigs(problem + "--abft maybe").status, 2);
    const EigsOutcome alone = run_eigs(problem + "--abft-updates");
    EXPECT_EQ(alone.status, 2);
    EXPECT_NE(alone.err.find("--abft-updates needs --abft"), std::string::npos) << alone.err;
    EXPECT_EQ(run_command("bench abft").status, 2);
    EXPECT_EQ(run_command("bench abft gen:laplace2d,nx=10 --scalar h").status, 2);
    EXPECT_EQ(run_command("bench abft gen:laplace2d,nx=10 --faults 0").status, 2);
    EXPECT_EQ(run_command("bench abft gen:laplace2d,nx=10 --shapes 2x3").status, 2);
}

/// The outcome of a command and the JSON that it has written.
struct Report : Outcome {
    nlohmann::json json;
};

Report run_report(const std::string& arguments, const Folder& folder, int ranks) {
    const std::string file = folder.path("report.json");
    std::filesystem::remove(file);
    Report report{run_command(arguments + " --device host --json " + file, ranks), {}};
    if (std::filesystem::exists(file)) {
        report.json = nlohmann::json::parse(read_file(file));
    }
    return report;
}

/// The largest error of a solution of tridiag(-1, 2, -1) u = 1 in a file, compared with the exact
/// u_i = i (n + 1 - i) / 2.
double largest_error_of_parabola(const std::string& file, int n) {
    std::ifstream text(file);
    std::string line;
    std::getline(text, line);
    while (text.peek() == '%') {
        std::getline(text, line);
    }
    int rows = 0;
    int columns = 0;
    int entries = 0;
    text >> rows >> columns >> entries;
    EXPECT_EQ(entries, n);
    double error = 0;
    for (int e = 0; e < n; ++e) {
        double i = 0;
        double j = 0;
        double value = 0;
        text >> i >> j >> value;
        error = std::max(error, std::abs(value - 0.5 * i * (n + 1 - i)));
    }
    return error;
}

TEST(SolveAbft, FaultsAreRepairedOrReported) {
    constexpr int n = 60;
    const Folder folder;
    const std::string x = folder.path("x.mtx");
    const double s = std::sin(0.5 * std::acos(-1.0) / (n + 1));
    const double bound = 1e-11 * std::sqrt(n) / (4 * s * s);
    for (const std::string method : {"cg", "minres", "gmres --restart 60", "bicgstab"}) {
        for (const int ranks : {1, 2}) {
            const std::string solve =
                "solve gen:laplace1d,nx=60 --rhs ones --tol 1e-11 --method " + method + " ";
            const auto run = [&](const std::string& more) {
                std::filesystem::remove(x);
                return run_report(solve + more + " -o " + x, folder, ranks);
            };
            const std::string inject =
                " --inject rate=0.3,where=output,bit=55-61,seed=" + std::to_string(3 + ranks);
            const Report clean = run("--abft correct");
            ASSERT_EQ(clean.status, 0) << clean.err << clean.out;
            EXPECT_EQ(clean.json["abft"]["alarms"], 0);
            EXPECT_EQ(clean.json["abft"]["checked"], clean.json["abft"]["products"]);

            const Report mended = run("--abft correct" + inject);
            ASSERT_EQ(mended.status, 0) << method << mended.err << mended.out;
            EXPECT_LE(largest_error_of_parabola(x, n), bound) << method;
            const auto& abft = mended.json["abft"];
            EXPECT_EQ(abft["mode"], "correct");
            EXPECT_GT(abft["faults"], 0);
            EXPECT_EQ(abft["faults"], abft["mended"].get<int>() + abft["redone"].get<int>());
            EXPECT_NE(mended.out.find("abft        correct: "), std::string::npos) << mended.out;

            const Report told = run("--abft detect" + inject);
            EXPECT_NE(told.status, 0) << method;
            if (told.status == 1) {
                EXPECT_FALSE(told.json["converged"].get<bool>());
                EXPECT_GT(told.json["abft"]["faults"], 0);
                EXPECT_EQ(told.json["abft"]["mended"], 0);
            }
        }
    }
}

TEST(SolveAbft, UpdatesAndMisuse) {
    const Folder folder;
    const std::string solve = "solve gen:laplace3d,nx=8 --rhs random:2 ";
    const Report updates = run_report(
        solve + "--abft correct --abft-updates --inject rate=0.05,where=output,seed=2", folder, 1);
    EXPECT_EQ(updates.status, 0) << updates.err;
    EXPECT_GT(updates.json["abft"]["updates"], 0);
    EXPECT_EQ(updates.json["abft"]["failed"], 0);
    EXPECT_FALSE(run_report(solve, folder, 1).json.contains("abft"));
    EXPECT_EQ(run_command(solve + "--abft-updates").status, 2);
    EXPECT_EQ(run_command(solve + "--inject rate=2").status, 2);
    EXPECT_EQ(run_command(solve + "--abft maybe").status, 2);
    EXPECT_EQ(run_command("qr X.h5 -o Q.h5 --abft-updates").status, 2);
}

TEST(QrAbft, FaultsAreRepairedOrReported) {
    const Folder folder;
    const std::string x = folder.path("x.h5");
    const std::string q = folder.path("q.h5");
    const Outcome made = run_eigs(problem + "--vectors " + x);
    if (made.err.find("built without HDF5") != std::string::npos) {
        GTEST_SKIP() << made.err;
    }
    ASSERT_EQ(made.status, 0) << made.err;
    const std::string qr = "qr " + x + " -o " + q + " --method svqb ";
    for (const int ranks : {1, 2}) {
        const Report clean = run_report(qr + "--abft correct", folder, ranks);
        ASSERT_EQ(clean.status, 0) << clean.err;
        EXPECT_EQ(clean.json["abft"]["alarms"], 0);
        EXPECT_EQ(clean.json["abft"]["products"], ranks);
        for (const std::string place : {"input", "basis", "output,step=2"}) {
            const std::string inject = " --inject rate=1,bit=55-60,seed=7,where=" + place;
            const Report mended = run_report(qr + "--abft correct" + inject, folder, ranks);
            ASSERT_EQ(mended.status, 0) << place << mended.err << mended.out;
            EXPECT_GT(mended.json["abft"]["faults"], 0) << place;
            EXPECT_EQ(mended.json["abft"]["failed"], 0);
            for (const char* error : {"loss_of_orthogonality", "residual"}) {
                // To inject faults into outputs, kernels run one by one and add in another order
                // than the fused kernels.
                if (place == "input" || place == "basis") {
                    EXPECT_EQ(mended.json[error], clean.json[error]) << place;
                }
                EXPECT_LE(mended.json[error].get<double>(),
                          100 * 5 * std::numeric_limits<double>::epsilon());
            }
            std::filesystem::remove(q);
            const Report told = run_report(qr + "--abft detect" + inject, folder, ranks);
            EXPECT_EQ(told.status, 1) << place;
            EXPECT_GT(told.json["abft"]["faults"], 0);
            EXPECT_NE(told.out.find("FAULTY      checksums found "), std::string::npos) << told.out;
            EXPECT_FALSE(std::filesystem::exists(q));
        }
    }
}

TEST(BenchAbft, CoverageAndTimes) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run_command(
            "bench abft gen:laplace3d,nx=10 --scalar s,z --widths 3,8 --repeat 3 --faults 48 "
            "--device host --json " +
                json,
            ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        EXPECT_NE(outcome.out.find("| z | output | 6 |"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("| z | cholesky_factor | "), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("| correct | "), std::string::npos) << outcome.out;
        const auto saved = nlohmann::json::parse(read_file(json));
        EXPECT_EQ(saved["kernel"], "abft");
        EXPECT_EQ(saved["environment"]["ranks"], ranks);
        EXPECT_EQ(saved["faults"].size(), ranks == 1 ? 8u : 6u);
        EXPECT_EQ(saved["steps"].size(), 6u);
        EXPECT_EQ(saved["solves"].size(), 3u);
        // Five operations on blocks, mtsm and two factorisations, for two widths and two scalars.
        EXPECT_EQ(saved["operations"].size(), 32u);
        EXPECT_EQ(saved["operations_not_run"], 0);
        for (const auto& operation : saved["operations"]) {
            EXPECT_EQ(operation["rows"], 1000 / ranks);
            EXPECT_EQ(operation["outcome"], "passed");
            for (const char* way : {"kernel_seconds", "detect_seconds", "correct_seconds"}) {
                EXPECT_GT(operation[way], 0);
            }
        }
    }
    EXPECT_EQ(run_command("bench summary " + json).status, 2) << "not a session of kernels";
}

TEST(BenchProtection, EveryMethod) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const std::string page = folder.path("out.md");
    const Outcome outcome = run_command("bench protection --nx 6 --repeat 3 --device host --json " +
                                        json + " --markdown " + page);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_EQ(read_file(page), outcome.out);
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["methods_not_run"], 0);
    std::vector<std::string> names;
    for (const auto& method : saved["methods"]) {
        names.push_back(method["method"]);
        EXPECT_EQ(method["outcome"], "passed") << names.back();
        for (const char* time : {"off_seconds", "detect_seconds", "correct_seconds"}) {
            EXPECT_GT(method[time], 0);
        }
    }
    EXPECT_EQ(names, (std::vector<std::string>{"chebyshev", "lanczos", "lobpcg", "jd", "filter",
                                               "cg", "minres", "gmres", "bicgstab", "qr"}));
    EXPECT_EQ(run_command("bench protection --methods chebychev").status, 2);
    EXPECT_EQ(run_command("bench protection --nx 3").status, 2);
}

}  // namespace
}  // namespace quiver::test
