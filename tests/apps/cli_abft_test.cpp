// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs --abft --inject` and `quiver bench abft`.
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

const std::string problem = "gen:laplace3d,nx=12 -k 5 --tol 1e-9 ";

TEST(EigsAbft, MendsWhatIsInjected) {
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

/// The checks change no bit of what is computed; but without them block Lanczos goes ahead, and
/// sums in another order.
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

TEST(EigsAbft, DetectTells) {
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
    EXPECT_NE(alone.err.find("--abft-updates goes with --abft"), std::string::npos) << alone.err;
    EXPECT_EQ(run_command("bench abft").status, 2);
    EXPECT_EQ(run_command("bench abft gen:laplace2d,nx=10 --scalar h").status, 2);
    EXPECT_EQ(run_command("bench abft gen:laplace2d,nx=10 --faults 0").status, 2);
    EXPECT_EQ(run_command("bench abft gen:laplace2d,nx=10 --shapes 2x3").status, 2);
}

TEST(BenchAbft, CoverageAndTimes) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run_command(
            "bench abft gen:laplace3d,nx=10 --scalar s,z --widths 3,8 --repeat 3 --faults 80 "
            "--device host --json " +
                json,
            ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        EXPECT_NE(outcome.out.find("| z | output | 10 |"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("| z | cholesky_factor | "), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("| correct | "), std::string::npos) << outcome.out;
        const auto saved = nlohmann::json::parse(read_file(json));
        EXPECT_EQ(saved["kernel"], "abft");
        EXPECT_EQ(saved["environment"]["ranks"], ranks);
        EXPECT_EQ(saved["faults"].size(), ranks == 1 ? 8u : 6u);
        EXPECT_EQ(saved["steps"].size(), 6u);
        EXPECT_EQ(saved["solves"].size(), 3u);
        // Five of blocks, mtsm and two factorisations, of two widths and scalars.
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
    EXPECT_EQ(run_command("bench summary " + json).status, 2) << "no session of kernels";
}

}  // namespace
}  // namespace quiver::test
