// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench` as a user runs it: files that it writes, sessions that it resumes, misuse.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/sparse/reordering.hpp"
#include "tests/apps/plot_script.hpp"
#include "tests/apps/run_command.hpp"
#include "tests/support/sanitizers.hpp"

namespace quiver::test {
namespace {

/// Small operands, few samples, and ceilings that take little time whatever the caches.
const std::string without_budget =
    " --device host --operand-bytes 1e5 --cache-bytes 4e6 --repeat 3";
/// A budget that no machine exceeds: measuring the ceilings takes long on machines with large
/// caches.
const std::string quick = without_budget + " --budget 1e5";

TEST(BenchCommand, WritesTableAndJsonThatMergesAndDraws) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const Outcome outcome = run_command("bench kernels tsmttsm,tsmm --scalar d,z --widths 1:3" +
                                        quick + " --json " + json);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* words : {"ceilings", "% of roofline", "12 results", "tsmm z", "passed"}) {
        EXPECT_NE(outcome.out.find(words), std::string::npos) << words << outcome.out;
    }
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["results"].size(), 12u);
    EXPECT_EQ(saved["environment"]["cache_bytes"], 4e6);
    const auto& ceilings = saved["runs"][0]["ceilings"];
    for (const auto& result : saved["results"]) {
        EXPECT_EQ(result["outcome"], "passed");
        if (result["in_cache"] == true || ceilings["copy_gb_per_s"].is_null()) {
            EXPECT_TRUE(result["roofline_percent"].is_null())
                << "the caches hold much of the memory";
        } else {
            EXPECT_GT(result["roofline_percent"], 0);
        }
    }
    const std::string both = folder.path("both.json");
    const Outcome merged = run_command("bench summary " + json + " " + json + " --json " + both);
    EXPECT_EQ(merged.status, 0) << merged.err;
    EXPECT_NE(outcome.out.find("\n" + merged.out), std::string::npos) << merged.out;
    EXPECT_EQ(nlohmann::json::parse(read_file(both))["results"].size(), 12u) << "later ones count";

    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    for (const std::string& file : {json, both}) {
        const Outcome drawn = run_script(python + " " QUIVER_SOURCE_DIR "/apps/bench/plot.py " +
                                             file + " --svg " + file + ".svg",
                                         1, folder, 100);
        EXPECT_EQ(drawn.status, 0) << drawn.err;
    }
    EXPECT_NE(read_file(json + ".svg").find("</svg>"), std::string::npos);
    EXPECT_EQ(read_file(json + ".svg"), read_file(both + ".svg")) << "the same results and chart";
}

TEST(BenchCommand, TimesEveryNumberOfRanksInOneRun) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const Outcome outcome = run_command(
        "bench scaling --nx 12 --length 10 --device host --repeat 3 --budget 1e5 --json " + json,
        3);
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("model, laplace3d"), std::string::npos) << outcome.out;
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["kernel"], "scaling");
    EXPECT_EQ(saved["environment"]["halos"],
              "MPI, staged in host memory (all ranks work on the host)");
    // On 1, 2 and 3 ranks a cube of 12^3 and a chain of 10 spins; for weak scaling also a bar of 4
    // planes and a chain of 8 on one rank, and a bar of 8 planes on two.
    EXPECT_EQ(saved["results"].size(), 9u);
    for (const auto& result : saved["results"]) {
        const double ranks = result["ranks"];
        EXPECT_GT(result["product_seconds"], 0);
        EXPECT_GT(result["product_model_seconds"], 0);
        EXPECT_GT(result["step_seconds"], 0);
        EXPECT_EQ(result["sums_a_step"] > 1, ranks > 1) << result;
        if (result["matrix"] == "gen:laplace3d,nx=12") {
            EXPECT_EQ(result["rows"], 1728);
            EXPECT_EQ(result["halo_rows"], ranks == 1 ? 0 : ranks == 2 ? 144 : 288) << result;
            EXPECT_NEAR(result["boundary_part"],
                        ranks == 1   ? 0
                        : ranks == 2 ? 1.0 / 6
                                     : 0.5,
                        1e-12);
        }
    }
    ASSERT_EQ(saved["sums"].size(), 2u) << "one way, on 2 and on 3 ranks";
    for (const auto& sum : saved["sums"]) {
        EXPECT_EQ(sum["way"], "mpi");
        EXPECT_GT(sum["alone_seconds"], 0);
    }
}

TEST(BenchCommand, ScalesWithPartitions) {
    if (std::string(scotch_version()).empty()) {
        GTEST_SKIP() << "this build has no SCOTCH";
    }
    const Folder folder;
    const std::string json = folder.path("out.json");
    const Outcome outcome = run_command(
        "bench scaling --nx 12 --length 12 --device host --repeat 3 --budget 1e5 --partition graph "
        "--json " +
            json,
        3);
    // The status compares the products with those on one rank, where rows keep their order.
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    const auto saved = nlohmann::json::parse(read_file(json));
    int partitioned = 0;
    for (const auto& result : saved["results"]) {
        const auto& rows = result["distribution"];
        if (result["ranks"] == 1) {
            EXPECT_EQ(rows["partition"], "rows");
        } else {
            EXPECT_EQ(rows["partition"], "graph");
            EXPECT_EQ(result["halo_rows"], rows["halo"]["largest"]) << result;
            partitioned += rows["halo"]["largest"] < rows["halo_before"]["largest"] ? 1 : 0;
        }
    }
    EXPECT_GT(partitioned, 0);
}

TEST(BenchCommand, MultipliesMatricesByName) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const Outcome outcome = run_command(
        "bench kernels spmmv --matrix gen:spinSZ,L=10 --scalar d,z --widths 1,3,16 --rivals eigen" +
        quick + " --json " + json);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["results"].size(), 12u) << "ours and Eigen's";
    for (const auto& result : saved["results"]) {
        EXPECT_EQ(result["outcome"], "passed");
        EXPECT_EQ(result["matrix"], "gen:spinSZ,L=10");
        EXPECT_EQ(result["rows"], 252);  // binomial(10, 5)
        const double nonzeros = result["nonzeros"];
        const double scalar = result["scalar"] == "d" ? 8 : 16;
        const double width = result["n"];
        EXPECT_EQ(result["bytes"], nonzeros * (scalar + 4) + 2 * scalar * 252 * width);
    }
}

TEST(BenchCommand, KeepsItsCommandWithoutNamesOfFiles) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const Outcome outcome = run_command("bench kernels tsmm,gram --widths 2,3 --ld-extra 0,1" +
                                        quick + " --json " + json);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* words : {"tsmm d, m = n, ld + 1 ", "gram d, ld + 1 ", "8 results"}) {
        EXPECT_NE(outcome.out.find(words), std::string::npos) << words << outcome.out;
    }
    EXPECT_EQ(nlohmann::json::parse(read_file(json))["runs"][0]["command_line"],
              "quiver bench kernels tsmm,gram --widths 2,3 --ld-extra 0,1 --device host --budget "
              "1e5 --repeat 3 --operand-bytes 1e5 --cache-bytes 4e6");
}

TEST(BenchCommand, ResumesCasesThatTheBudgetOmitted) {
    const Folder folder;
    const std::string file = folder.path("session.json");
    const std::string all =
        "bench kernels tsmm --widths 1:6" + without_budget + " --resume " + file;
    EXPECT_EQ(run_command(all + " --budget 1e-9").status, 0);
    auto saved = nlohmann::json::parse(read_file(file));
    EXPECT_EQ(saved["results"].size(), 1u);
    EXPECT_EQ(saved["not_run"].size(), 5u);
    const auto first = saved["results"][0];

    const Outcome rest = run_command(all + " --budget 1e5");
    EXPECT_EQ(rest.status, 0) << rest.err;
    EXPECT_NE(rest.out.find("1 of 6 cases were measured before"), std::string::npos) << rest.out;
    saved = nlohmann::json::parse(read_file(file));
    EXPECT_EQ(saved["results"].size(), 6u);
    EXPECT_EQ(saved["results"][0], first);
    EXPECT_EQ(saved["results"][5]["run"], 1);
    EXPECT_EQ(saved["runs"].size(), 2u);
    EXPECT_TRUE(saved["not_run"].empty());
}

TEST(BenchCommand, MisuseIsRefusedWithOneLine) {
    const Folder folder;
    const std::string broken = folder.write("broken.json", "{");
    struct Misuse {
        std::string arguments;
        std::string names;
    };
    const std::vector<Misuse> misuses = {
        {"bench", "bench: a command is wanted; there are: kernels, reproduce, summary, "},
        {"bench kernls tsmm", "bench kernls: a command is wanted; close ones: kernels;"},
        {"bench tsmm --widths 4", "kernels are timed by quiver bench kernels KERNEL; see quiver"},
        {"bench --widths 4 kernels tsmm", "bench --widths: a command is wanted"},
        {"bench --reproduce ernst2020 --widths 4", "write quiver bench reproduce PAPER"},
        {"bench --plot-from x.json --plot x.svg", "write quiver bench summary FILES; apps/bench/"},
        {"bench --blocking gen:laplace1d", "write quiver bench blocking MATRIX"},
        {"bench --abft gen:laplace1d", "write quiver bench abft MATRIX"},
        {"bench kernels tsmm --vs eigen",
         "bench kernels --vs: the libraries to compare with are named by --rivals; see quiver "
         "bench kernels --help"},
        {"bench kernels tsmm --plot a.svg", "write --json FILE.json; apps/bench/plot.py"},
        {"bench kernels tsmm --markdown a.md", "write --json FILE.json; apps/bench/plot.py"},
        {"bench blocking gen:laplace1d --plot a.svg", "write --json FILE.json; apps/bench/plot.py"},
        {"bench kernels", "bench kernels: KERNEL is required; see quiver bench kernels --help"},
        {"bench kernels gemm", "there is no kernel gemm"},
        {"bench kernels tsmm --scalar q", "--scalar"},
        {"bench kernels tsmm --widths 0", "--widths"},
        {"bench kernels tsmm --widths 4:2", "empty range"},
        {"bench kernels tsmm --shapes 4", "--shapes"},
        {"bench kernels dots --shapes 4x2", "dots has one width"},
        {"bench kernels tsmm --rows 0", "--rows"},
        {"bench kernels tsmm --rows 1e3,x", "--rows"},
        {"bench kernels tsmm --random-shapes -1", "--random-shapes -1"},
        {"bench kernels tsmm --operand-bytes -5", "--operand-bytes -5"},
        {"bench kernels tsmm --cache-bytes 0.5", "--cache-bytes 0.5: a number from 1 to 1e15"},
        {"bench kernels tsmm --operand-bytes 1e30",
         "--operand-bytes 1e+30: a number from 1 to 1e15"},
        {"bench kernels tsmm --ld-extra 1,-1", "--ld-extra"},
        {"bench kernels tsmm --device host --model", "--model: only kernels on a GPU"},
        {"bench kernels spmmv --device host --tilings ahead=0", "--tilings: only kernels on a GPU"},
        {"bench kernels tsmm --matrix gen:laplace1d",
         "only spmmv takes --matrix, --tile and --tilings"},
        {"bench kernels spmmv --rows 100 --matrix gen:laplace1d", "omit --rows"},
        {"bench kernels spmmv --matrix gen:laplace4d", "laplace4d"},
        {"bench kernels spmmv --matrix gen:topi,nx=3 --scalar d", "the matrix is complex"},
        {"bench kernels tsmttsm --device host --atomics", "--atomics: only kernels on a GPU"},
        {"bench abft gen:laplace1d --json a.json --markdown a.json",
         "--markdown a.json: --json writes to the same file"},
        {"bench scaling --markdown " + broken + "/o.md", "--markdown: cannot write"},
        {"bench scaling --markdown \"\"", "--markdown: the name of a file"},
        {"bench scaling --json - --markdown -", "--markdown -: --json writes to the same file"},
        {"bench kernels tsmm --budget 0", "--budget 0"},
        {"bench kernels tsmm --budget nan", "--budget nan"},
        {"bench kernels tsmm --repeat 2", "--repeat 2"},
        {"bench kernels tsmm --rivals mkl", "there is no rival mkl"},
        {"bench kernels tsmm --device host --rivals cublas",
         "--rivals cublas: a library for the GPU"},
        {"bench kernels tsmm --json " + broken + "/o.json", "--json: cannot write"},
        {"bench kernels tsmm --json -",
         "--json: cannot write -: a session, which is saved repeatedly, needs a regular file"},
        {"bench reproduce ernst2020 --resume -",
         "--resume: cannot write -: a session, which is saved repeatedly, needs a regular "
         "file"},
        {"bench kernels tsmm --device host --resume " + broken,
         "broken.json:1: invalid JSON at byte 2: not a result of quiver bench\n"},
        {"bench kernels tsmm --device host --resume " +
             folder.write("lines.json", "{\n\"a\": [1,\n x]}"),
         "lines.json:3: invalid JSON at byte 13: not a result of quiver bench\n"},
        {"bench summary " + folder.write("other.json", "{\"command\": \"bench\"}"),
         "other.json: JSON with missing keys or values of a wrong type: not a result of quiver "
         "bench\n"},
        {"bench summary " + folder.write("empty.json", ""),
         "empty.json:1: invalid JSON at byte 1: not a result of quiver bench\n"},
        {"bench summary " + broken, "not a result of quiver bench"},
        {"bench summary x.json", "cannot read x.json"},
        {"bench summary", "FILES is required"},
        {"bench reproduce smith1999", "PAPER smith1999: the papers are ernst2020"},
        {"bench reproduce ernst2020 --widths 4", "--widths"},
        {"bench reproduce ernst2020 --ld-extra 1", "--ld-extra"},
        {"bench kernels tsmm --reprat 4", "--reprat"},
    };
    for (const Misuse& misuse : misuses) {
        const Outcome outcome = run_command(misuse.arguments);
        EXPECT_EQ(outcome.status, 2) << misuse.arguments << '\n' << outcome.err;
        EXPECT_EQ(outcome.out, "") << misuse.arguments;
        EXPECT_NE(outcome.err.find(misuse.names), std::string::npos) << misuse.arguments << '\n'
                                                                     << outcome.err;
    }
    EXPECT_EQ(read_file(broken), "{") << "a file that cannot be read is not changed";
}

TEST(BenchCommand, FiguresNeedAGpuAndAKnownName) {
    const std::pair<const char*, const char*> misuses[] = {
        {"ernst2020 --figure 15 --device host",
         "--figure 15: compares kernels on a GPU, and this run uses the host"},
        {"ernst2020 --figure 99", "--figure 99: the figures of ernst2020 are 15, 16"},
        {"tsm2x2021 --figure 6 --resume x.json", "--resume: a figure"}};
    for (const auto& [arguments, words] : misuses) {
        const Outcome result = run_command(std::string("bench reproduce ") + arguments);
        EXPECT_EQ(result.status, 2) << arguments;
        EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
}

TEST(BenchCommand, IsForOneProcess) {
    const Outcome outcome = run_command("bench kernels tsmm" + quick, 2);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("without mpirun, not on 2 ranks"), std::string::npos) << outcome.err;
}

TEST(BenchCommand, ReportsThatItsTableIsNotWritten) {
    const Folder folder;
    const std::string err = folder.path("err");
    const Outcome outcome = run_command("bench kernels tsmm --widths 1" + quick + " >/dev/full 2>" +
                                        err + "; exit $?; true");
    EXPECT_EQ(outcome.status, 3);
    EXPECT_NE(read_file(err).find("cannot write to stdout"), std::string::npos);
}

TEST(BenchCommand, ReportsFailedCasesOnStderr) {
    if (address_space_is_vast) {
        GTEST_SKIP() << "the sanitizer's address space cannot be limited";
    }
    const Outcome outcome = run_command("bench kernels dots --widths 1,64 --rows 4e6" + quick, 1,
                                        "ulimit -v 1500000; OMP_NUM_THREADS=1 ");
    EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "quiver: bench: 1 of 2 cases failed to run, 0 incorrect\n");
}

TEST(BenchCommand, TimesBlockSizesOfEigensolves) {
    const Folder folder;
    const std::string json = folder.path("blocking.json");
    const std::string page = folder.path("blocking.md");
    const Outcome outcome =
        run_command("bench blocking gen:laplace2d,nx=14 gen:topi,nx=3 --json " + json +
                    " --markdown " + page + " --device host --budget 1e5");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, read_file(page));
    for (const std::string row :
         {"| gen:laplace2d,nx=14 | 196 | 924 | 1 |", "| gen:laplace2d,nx=14 | 196 | 924 | 8 |",
          "| gen:topi,nx=3 | 108 |"}) {
        EXPECT_NE(outcome.out.find(row), std::string::npos) << outcome.out;
    }
    EXPECT_EQ(outcome.out.find("not converged"), std::string::npos) << outcome.out;
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["results"].size(), 8u) << "four block sizes a matrix";
    EXPECT_EQ(saved["results"][7]["matrix"], "gen:topi,nx=3");
    EXPECT_EQ(saved["results"][7]["block"], 8);
    for (const auto& solve : saved["results"]) {
        EXPECT_EQ(solve["converged"], true);
        EXPECT_GT(solve["seconds"], 0);
    }
    const Outcome small = run_command("bench blocking gen:laplace1d,nx=1 --device host");
    EXPECT_EQ(small.status, 0) << small.err;
    EXPECT_EQ(small.err, "");
    const Outcome cut =
        run_command("bench blocking gen:laplace2d,nx=60 --budget 1e-9 --device host");
    EXPECT_EQ(cut.status, 1);
    EXPECT_EQ(cut.err,
              "quiver: bench: 4 of 4 solves did not converge or exceeded --budget 1e-09\n");
    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    const std::string svg = folder.path("blocking.svg");
    const Outcome drawn =
        run_script(python + " " QUIVER_SOURCE_DIR "/apps/bench/plot.py " + json + " --svg " + svg,
                   1, folder, 100);
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_NE(read_file(svg).find("gen:topi,nx=3"), std::string::npos);
}

}  // namespace
}  // namespace quiver::test
