// SPDX-License-Identifier: BSD-3-Clause
// The command's output, files and exit status for valid use.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

/// All eigenvalues 4 - 2 cos(i pi / (nx + 1)) - 2 cos(j pi / (ny + 1)), ascending.
std::vector<double> laplace2d(int nx, int ny) {
    const double pi = std::acos(-1.0);
    std::vector<double> values;
    for (int i = 1; i <= nx; ++i) {
        for (int j = 1; j <= ny; ++j) {
            values.push_back(4 - 2 * std::cos(i * pi / (nx + 1)) - 2 * std::cos(j * pi / (ny + 1)));
        }
    }
    std::sort(values.begin(), values.end());
    return values;
}

/// The error of an eigenvalue is at most its residual, which is at most tol ||A|| in a converged
/// run.
void expect_eigenvalues(const EigsOutcome& outcome, const std::vector<double>& expected) {
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    const auto values = outcome.json["eigenvalues"].get<std::vector<double>>();
    ASSERT_EQ(values.size(), expected.size());
    const double bound =
        outcome.json["tolerance"].get<double>() * outcome.json["norm_estimate"].get<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_LE(std::abs(values[i] - expected[i]), bound) << i;
    }
}

TEST(Eigs, FindsEveryCopyOfBothEnds) {
    const std::vector<double> all = laplace2d(15, 15);
    const std::string problem = "gen:laplace2d,nx=15,ny=15 -k 9";
    expect_eigenvalues(run_eigs(problem), {all.begin(), all.begin() + 9});
    expect_eigenvalues(run_eigs(problem + " --which largest"), {all.end() - 9, all.end()});
}

TEST(Eigs, WorksInAllScalars) {
    const std::vector<double> all = laplace2d(9, 12);
    for (const std::string scalar : {"s", "d", "c", "z"}) {
        const EigsOutcome outcome = run_eigs("gen:laplace2d,nx=9,ny=12 -k 4 --scalar " + scalar);
        expect_eigenvalues(outcome, {all.begin(), all.begin() + 4});
        EXPECT_EQ(outcome.json["matrix"]["scalar"], scalar);
        const bool single = scalar == "s" || scalar == "c";
        EXPECT_EQ(outcome.json["tolerance_raised"].get<bool>(), single);
        EXPECT_EQ(outcome.json["tolerance_asked"].get<double>(), 1e-10);
        EXPECT_EQ(outcome.out.find("raised from") != std::string::npos, single) << outcome.out;
    }
}

TEST(Eigs, AgreesBetweenNumbersOfRanks) {
    const std::vector<double> all = laplace2d(13, 11);
    for (const int ranks : {1, 2, 3}) {
        const EigsOutcome outcome = run_eigs("gen:laplace2d,nx=13,ny=11 -k 6", ranks);
        expect_eigenvalues(outcome, {all.begin(), all.begin() + 6});
        EXPECT_EQ(outcome.json["ranks"].get<int>(), ranks);
    }
}

/// Mikota's chain of springs and masses 1 / i: A x = lambda B x has the eigenvalues i^2.
TEST(Eigs, SolvesAPencil) {
    constexpr int n = 30;
    const std::string header = "%%MatrixMarket matrix coordinate real symmetric\n30 30 ";
    std::string stiffness = header + "59\n";
    std::string mass = header + "30\n";
    for (int i = 1; i <= n; ++i) {
        const std::string at = std::to_string(i) + ' ';
        mass += at + at + std::to_string(1.0L / i) + '\n';
        stiffness += at + at + std::to_string(2 * (n - i) + 1) + '\n';
        if (i < n) {
            stiffness += std::to_string(i + 1) + ' ' + at + std::to_string(i - n) + '\n';
        }
    }
    const Folder folder;
    const std::string problem =
        folder.write("a.mtx", stiffness) + " --mass " + folder.write("b.mtx", mass);
    const std::pair<int, std::string> runs[] = {{1, "lobpcg"}, {2, "lobpcg"},  {3, "lobpcg"},
                                                {2, "dense"},  {2, "lanczos"}, {1, "chebyshev"},
                                                {2, "filter"}};
    for (const auto& [ranks, method] : runs) {
        const std::string wanted = method == "filter" ? " --window 0.5:20" : " -k 4";
        const EigsOutcome outcome = run_eigs(problem + wanted + " --method " + method, ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        EXPECT_EQ(outcome.json["method"], method);
        EXPECT_NE(outcome.out.find("||A x - lambda B x||"), std::string::npos) << outcome.out;
        for (std::size_t i = 0; i < 4; ++i) {
            // The file holds only six decimals of 1 / i.
            const double exact = static_cast<double>((i + 1) * (i + 1));
            EXPECT_NEAR(outcome.json["eigenvalues"][i].get<double>(), exact, exact * n * 5e-7);
        }
    }
}

TEST(Eigs, WorksWithFewerRowsThanRanks) {
    const std::vector<double> all = laplace2d(3, 1);
    expect_eigenvalues(run_eigs("gen:laplace2d,nx=3,ny=1 -k 2", 4), {all.begin(), all.begin() + 2});
    expect_eigenvalues(run_eigs("gen:laplace2d,nx=1,ny=1 -k 1", 2), {4.0});
}

TEST(Eigs, RepeatsBitForBitOnTheSameRanks) {
    const std::string problem = "gen:laplace2d,nx=12,ny=12 -k 5 --method lanczos --seed 7";
    const EigsOutcome first = run_eigs(problem, 2);
    const EigsOutcome second = run_eigs(problem, 2);
    ASSERT_EQ(first.status, 0) << first.err;
    EXPECT_EQ(first.json["eigenvalues"], second.json["eigenvalues"]);
    EXPECT_EQ(first.json["residuals"], second.json["residuals"]);
    EXPECT_EQ(first.json["operator_applications"], second.json["operator_applications"]);
    EXPECT_NE(
        run_eigs("gen:laplace2d,nx=12,ny=12 -k 5 --method lanczos --seed 8", 2).json["residuals"],
        first.json["residuals"]);
}

TEST(Eigs, WritesAllResultsAsJson) {
    const EigsOutcome outcome =
        run_eigs("gen:laplace2d,nx=10,ny=10 -k 3 --method lanczos --block 2 --tol 1e-8");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto& json = outcome.json;
    EXPECT_EQ(json["schema"], 1);
    EXPECT_EQ(json["command"], "eigs");
    EXPECT_TRUE(json["version"].is_string());
    EXPECT_EQ(json["date"].get<std::string>().size(), 20u);
    EXPECT_EQ(json["matrix"]["spec"], "gen:laplace2d,nx=10,ny=10");
    EXPECT_EQ(json["matrix"]["rows"], 100);
    EXPECT_EQ(json["matrix"]["nnz"], 460);
    EXPECT_EQ(json["matrix"]["scalar"], "d");
    EXPECT_EQ(json["matrix"]["symmetry"], "symmetric");
    EXPECT_EQ(json["k"], 3);
    EXPECT_EQ(json["which"], "smallest");
    EXPECT_EQ(json["method"], "lanczos");
    EXPECT_EQ(json["block"], 2);
    EXPECT_EQ(json["tolerance"], 1e-8);
    EXPECT_EQ(json["tolerance_raised"], false);
    EXPECT_EQ(json["residuals"].size(), 3u);
    for (const auto& residual : json["residuals"]) {
        EXPECT_LE(residual.get<double>(), 1e-8 * json["norm_estimate"].get<double>());
    }
    EXPECT_EQ(json["converged"], true);
    EXPECT_EQ(json["multiplicity"], "verified");
    EXPECT_EQ(json["cluster_cut"], false);
    EXPECT_GT(json["iterations"].get<int>(), 0);
    EXPECT_GE(json["operator_applications"].get<int>(), json["iterations"].get<int>());
    for (const char* part : {"read", "setup", "solve"}) {
        EXPECT_GE(json["seconds"][part].get<double>(), 0.0) << part;
    }
    EXPECT_GT(json["seconds"]["solve"].get<double>(), 0.0);
    EXPECT_EQ(json["ranks"], 1);
    EXPECT_GE(json["threads"].get<int>(), 1);
    EXPECT_TRUE(json["device"] == "host" || json["device"] == "cuda");
    ASSERT_GT(json["kernels"].size(), 0u);
    bool sparse_seen = false;
    for (const auto& kernel : json["kernels"]) {
        EXPECT_GT(kernel["calls"].get<int>(), 0);
        EXPECT_GE(kernel["bytes"].get<double>(), 0.0);
        EXPECT_EQ(kernel["scalar"], "d");
        EXPECT_EQ(kernel["place"], json["device"] == "host" ? "host" : "device");
        for (const char* key :
             {"name", "rows", "m", "n", "seconds", "flops", "gb_per_s", "gflop_per_s"}) {
            EXPECT_TRUE(kernel.contains(key)) << key;
        }
        sparse_seen = sparse_seen || kernel["name"] == "spmmv";
    }
    EXPECT_TRUE(sparse_seen);
}

TEST(Eigs, SaysWhenTheLastEigenvalueHasFurtherCopies) {
    // Eigenvalues 2 and 3 of the square are equal.
    const EigsOutcome outcome = run_eigs("gen:laplace2d,nx=10,ny=10 -k 2");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.json["cluster_cut"], true);
    EXPECT_NE(outcome.out.find("further copies"), std::string::npos) << outcome.out;
}

TEST(Eigs, SaysWhatTiesAtATargetAndWhatDenseIgnores) {
    // 2 - 0.618, 2 and 2 + 0.618 are simple.
    const EigsOutcome outcome = run_eigs("gen:laplace1d,nx=9 --which target:2 -k 2 --precond ldlt");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.json["cluster_cut"], true);
    EXPECT_EQ(outcome.out.find("further copies"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("as near to the target"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("precond     ldlt (not used by dense)\n"), std::string::npos)
        << outcome.out;
}

TEST(Eigs, MarksResultsThatHaveNotConverged) {
    const EigsOutcome outcome =
        run_eigs("gen:laplace2d,nx=40,ny=40 -k 5 --block 2 --max-iterations 4");
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_EQ(outcome.json["converged"], false);
    EXPECT_NE(outcome.out.find("converged   NO"), std::string::npos) << outcome.out;
    EXPECT_FALSE(outcome.json["message"].get<std::string>().empty());
}

TEST(Eigs, ShowsATableWithTheExactValuesAndNothingOnStderr) {
    const EigsOutcome outcome = run_eigs("gen:laplace2d,nx=10,ny=10 -k 3 -v");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* word : {"100 rows", "460 nonzeros", "exact",
                             "converged   yes, multiplicity verified", "seconds", "spmmv"}) {
        EXPECT_NE(outcome.out.find(word), std::string::npos) << word << '\n' << outcome.out;
    }
}

TEST(Eigs, ReadsComplexHermitianFiles) {
    const Folder folder;
    const std::string file = folder.write("hermitian.mtx",
                                          "%%MatrixMarket matrix coordinate complex hermitian\n"
                                          "3 3 4\n1 1 2 0\n2 1 0 1\n2 2 2 0\n3 3 7 0\n");
    const EigsOutcome outcome = run_eigs(file + " -k 3", 2);
    expect_eigenvalues(outcome, {1.0, 3.0, 7.0});
    EXPECT_EQ(outcome.json["matrix"]["scalar"], "z");
    EXPECT_EQ(outcome.json["matrix"]["symmetry"], "hermitian");
}

TEST(Eigs, TakesAGeneralFileThatIsSymmetric) {
    const Folder folder;
    const std::string file = folder.write("general.mtx",
                                          "%%MatrixMarket matrix coordinate real general\n"
                                          "2 2 4\n1 1 2\n1 2 -1\n2 1 -1\n2 2 2\n");
    expect_eigenvalues(run_eigs(file + " -k 2"), {1.0, 3.0});
}

TEST(Eigs, AsksASmallMatrixForNoMoreThanItHas) {
    for (const int ranks : {1, 2}) {
        const EigsOutcome outcome = run_eigs("gen:laplace2d,nx=3,ny=1", ranks);
        expect_eigenvalues(outcome, laplace2d(3, 1));
        EXPECT_EQ(outcome.json["k"], 3);
        EXPECT_NE(outcome.out.find("3 smallest (all, "), std::string::npos) << outcome.out;
    }
    const Folder folder;
    const std::string file =
        folder.write("one.mtx", "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 7\n");
    expect_eigenvalues(run_eigs(file), {7.0});
    EXPECT_EQ(run_eigs("gen:laplace2d,nx=5").out.find("(all, "), std::string::npos);
}

TEST(Eigs, TakesTheWidthOfItsBasis) {
    const std::vector<double> all = laplace2d(15, 15);
    const EigsOutcome outcome =
        run_eigs("gen:laplace2d,nx=15,ny=15 -k 3 --method lanczos --block 2 --basis 17");
    expect_eigenvalues(outcome, {all.begin(), all.begin() + 3});
    EXPECT_EQ(outcome.json["basis"], 17);
}

TEST(Eigs, TakesTheNarrowestBasisThereCanBe) {
    const std::vector<double> all = laplace2d(15, 15);
    const EigsOutcome outcome =
        run_eigs("gen:laplace2d,nx=15,ny=15 -k 2 --method lanczos --block 1 --basis 8");
    expect_eigenvalues(outcome, {all.begin(), all.begin() + 2});
    EXPECT_EQ(outcome.json["basis"], 8);
    expect_eigenvalues(run_eigs("gen:laplace2d,nx=3,ny=2 -k 3 --method lanczos --basis 6"), [] {
        std::vector<double> few = laplace2d(3, 2);
        few.resize(3);
        return few;
    }());
}

TEST(Eigs, ReadsNumbersAsFilesDo) {
    const std::vector<double> all = laplace2d(12, 12);
    const EigsOutcome outcome =
        run_eigs("gen:laplace2d,nx=+12,ny=012 -k +3 --method lanczos --block 02 --tol 1d-8");
    expect_eigenvalues(outcome, {all.begin(), all.begin() + 3});
    EXPECT_EQ(outcome.json["block"], 2);
    EXPECT_EQ(outcome.json["tolerance"].get<double>(), 1e-8);
    const auto facts = [](const std::string& width) {
        const std::string out = run_command("gen gen:anderson,L=3,W=" + width).out;
        return out.substr(out.find('\n'));  // without the first line, which has the name
    };
    EXPECT_EQ(facts("1d1"), facts("10"));
    EXPECT_EQ(facts("+10"), facts("10"));
    EXPECT_NE(facts("11"), facts("10"));
}

/// Block Lanczos takes norms whose squares are representable; a dense solve takes larger and
/// smaller norms.
TEST(Eigs, SolvesMatricesOfExtremeScale) {
    const Folder folder;
    for (const auto& [exponent, method] : std::vector<std::pair<std::string, std::string>>{
             {"153", "lanczos"}, {"-138", "lanczos"}, {"160", "auto"}, {"-160", "auto"}}) {
        const std::string file = folder.write(
            "scaled.mtx", "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n1 1 1e" +
                              exponent + "\n2 2 -2e" + exponent + "\n3 3 3e" + exponent +
                              "\n4 4 0.5e" + exponent + "\n");
        const double unit = std::stod("1e" + exponent);
        expect_eigenvalues(run_eigs(file + " -k 2 --method " + method, 2), {-2 * unit, 0.5 * unit});
    }
}

TEST(Command, SaysItsVersion) {
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run_command("--version", ranks);
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.out.find("quiver "), 0u);
        EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
    }
}

TEST(Command, HelpsByExample) {
    for (const std::string arguments : {"--help", "eigs --help", "info --help"}) {
        const Outcome outcome = run_command(arguments);
        EXPECT_EQ(outcome.status, 0) << arguments;
        EXPECT_NE(outcome.out.find("Examples:"), std::string::npos) << arguments;
        EXPECT_EQ(outcome.err, "") << arguments;
    }
}

TEST(Info, ListsWhatTheMachineHas) {
    const Outcome outcome = run_command("info devices", 2);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* word : {" a rank, ", "SIMD", "2 ranks", "GPU", "QUIVER_CACHE"}) {
        EXPECT_NE(outcome.out.find(word), std::string::npos) << word << '\n' << outcome.out;
    }
}

/// An OpenBLAS that does not know the processor would take kernels without AVX2.
TEST(Info, OpenBlasHasKernelsThatFitTheProcessor) {
    const auto kernels_of = [](const std::string& environment) {
        const Outcome outcome = run_command("info devices", 1, environment + " ");
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        const std::size_t at = outcome.out.find("OpenBLAS    kernels for ");
        return at == std::string::npos ? std::string()
                                       : outcome.out.substr(at, outcome.out.find('\n', at) - at);
    };
    const std::string chosen = kernels_of("env -u OPENBLAS_CORETYPE");
    if (chosen.empty() || run_command("info devices").out.find(" avx2") == std::string::npos) {
        GTEST_SKIP() << "no OpenBLAS, or a processor without AVX2";
    }
    EXPECT_EQ(chosen.find("Prescott"), std::string::npos) << chosen;
    EXPECT_NE(kernels_of("OPENBLAS_CORETYPE=Prescott").find("Prescott"), std::string::npos);
}

TEST(Info, DescribesAMatrixAlikeOnAnyNumberOfRanks) {
    const Folder folder;
    // 1-norm 9 (column 2), infinity norm 7 (row 2), Frobenius sqrt(4 + 9 + 36 + 1).
    const std::string file = folder.write("general.mtx",
                                          "%%MatrixMarket matrix coordinate real general\n"
                                          "4 4 4\n1 1 2\n1 2 -3\n2 2 6\n2 4 -1\n");
    for (const int ranks : {1, 2, 5}) {
        const Outcome outcome = run_command("info " + file, ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        for (const char* word :
             {"4 x 4, 4 nonzeros", "0 to 2 nonzeros, 1.00 on average", "bandwidth   2, 2 entries",
              "not Hermitian", "1-norm 9, infinity 7, Frobenius 7.07107", " MB of file, ",
              ", peak memory "}) {
            EXPECT_NE(outcome.out.find(word), std::string::npos) << word << '\n' << outcome.out;
        }
    }
}

TEST(Info, ReportsTheStorageOfTheRows) {
    for (const int ranks : {1, 3}) {
        const Outcome complex = run_command("info gen:topi,nx=3", ranks);
        const Outcome real = run_command("info gen:laplace1d,nx=4096", ranks);
        const bool host = real.out.find("storage     on the host: ") != std::string::npos;
        if (host) {
            for (const std::string& out : {complex.out, real.out}) {
                EXPECT_NE(out.find("storage     on the host: CSR; filled to 100.0%"),
                          std::string::npos)
                    << out;
            }
        } else {
            EXPECT_NE(real.out.find("storage     on the GPU: SELL-32-"), std::string::npos)
                << real.out;
        }
    }
    // 3073 nonzeros: 3 in each row except the first and the last; the last chunk of SELL has one
    // row with 2.
    const std::string out = run_command("info gen:laplace1d,nx=1025").out;
    const std::string word = "(C = ";
    const auto at = out.find(word);
    const int chunk = at == std::string::npos ? 0 : std::stoi(out.substr(at + word.size()));
    const double share = chunk == 0 ? 100 : 100 * 3073.0 / (3072 + 2 * chunk);
    const std::string rounded = std::to_string(std::round(10 * share) / 10);
    EXPECT_NE(out.find("; filled to " + rounded.substr(0, rounded.find('.') + 2) + "%"),
              std::string::npos)
        << out << rounded;
    const Folder folder;
    const std::string wide =
        folder.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 1 1\n");
    EXPECT_EQ(run_command("info " + wide).out.find("storage"), std::string::npos);
}

}  // namespace
}  // namespace quiver::test
