// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench` as a user runs it: files that it writes, sessions that it resumes, misuse.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/run_command.hpp"
#include "tests/support/sanitizers.hpp"

namespace quiver::test {
namespace {

/// Quick: small operands, few samples.
const std::string without_budget = " --device host --operand-bytes 1e5 --repeat 3";
/// A budget that no machine exceeds: operands of four times large caches take their time.
const std::string quick = without_budget + " --budget 1e5";

TEST(BenchCommand, WritesTableJsonAndChart) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const std::string svg = folder.path("out.svg");
    const Outcome outcome = run_command("bench tsmttsm,tsmm --scalar d,z --widths 1:3" + quick +
                                        " --json " + json + " --plot " + svg);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* words : {"ceilings", "% of roofline", "12 results", "tsmm z", "passed"}) {
        EXPECT_NE(outcome.out.find(words), std::string::npos) << words << outcome.out;
    }
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["results"].size(), 12u);
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
    EXPECT_NE(read_file(svg).find("</svg>"), std::string::npos);

    const std::string again = folder.path("again.svg");
    const Outcome drawn =
        run_command("bench --plot-from " + json + " " + json + " --plot " + again);
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_EQ(read_file(again), read_file(svg)) << "the same results, the same chart";
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
    // On 1, 2 and 3 ranks: cubes of 12 and bars of 4 and 8 planes; chains of 10 and, on one, 8.
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

TEST(BenchCommand, MultipliesMatricesByName) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const Outcome outcome =
        run_command("bench spmmv --matrix gen:spinSZ,L=10 --scalar d,z --widths 1,3,16 --vs eigen" +
                    quick + " --json " + json);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    const auto saved = nlohmann::json::parse(read_file(json));
    EXPECT_EQ(saved["results"].size(), 12u) << "ours and Eigen's";
    for (const auto& result : saved["results"]) {
        EXPECT_EQ(result["outcome"], "passed");
        EXPECT_EQ(result["matrix"], "gen:spinSZ,L=10");
        EXPECT_EQ(result["rows"], 252);  // 10 over 5
        const double nonzeros = result["nonzeros"];
        const double scalar = result["scalar"] == "d" ? 8 : 16;
        const double width = result["n"];
        EXPECT_EQ(result["bytes"], nonzeros * (scalar + 4) + 2 * scalar * 252 * width);
    }
}

TEST(BenchCommand, WritesThePageThatItsResultsMake) {
    const Folder folder;
    const std::string json = folder.path("out.json");
    const std::string page = folder.path("out.md");
    const Outcome outcome = run_command("bench tsmm,gram --widths 2,3 --ld-extra 0,1" + quick +
                                        " --json " + json + " --markdown " + page);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const char* words : {"tsmm d, m = n, ld + 1 ", "gram d, ld + 1 ", "8 results"}) {
        EXPECT_NE(outcome.out.find(words), std::string::npos) << words << outcome.out;
    }
    const std::string text = read_file(page);
    for (const char* words :
         {"\n    quiver bench tsmm,gram --widths 2,3 --ld-extra 0,1 --operand-bytes 1e5 --device "
          "host --budget 1e5 --repeat 3\n",
          "\n## tsmm d: Y = X C, ld = width + 1\n", "\n| 3 x 3 |", "\n## gram d: C = X^H X\n"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << text;
    }
    EXPECT_EQ(text.find(folder.path("")), std::string::npos)
        << "names of files are not of interest";
    const std::string again = folder.path("again.md");
    const Outcome read = run_command("bench --plot-from " + json + " --markdown " + again);
    EXPECT_EQ(read.status, 0) << read.err;
    EXPECT_EQ(read_file(again), text) << "the same results, the same page";
}

TEST(BenchCommand, ResumesWhatABudgetHasLeftOut) {
    const Folder folder;
    const std::string file = folder.path("session.json");
    const std::string all = "bench tsmm --widths 1:6" + without_budget + " --resume " + file;
    EXPECT_EQ(run_command(all + " --budget 1e-9").status, 0);
    auto saved = nlohmann::json::parse(read_file(file));
    EXPECT_EQ(saved["results"].size(), 1u);
    EXPECT_EQ(saved["not_run"].size(), 5u);
    const auto first = saved["results"][0];

    const Outcome rest = run_command(all + " --budget 1e5");
    EXPECT_EQ(rest.status, 0) << rest.err;
    EXPECT_NE(rest.out.find("1 of 6 cases were there before"), std::string::npos) << rest.out;
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
        {"bench", "KERNEL or --reproduce"},
        {"bench gemm", "there is no kernel gemm"},
        {"bench tsmm --scalar q", "--scalar"},
        {"bench tsmm --widths 0", "--widths"},
        {"bench tsmm --widths 4:2", "empty range"},
        {"bench tsmm --shapes 4", "--shapes"},
        {"bench dots --shapes 4x2", "dots has one width"},
        {"bench tsmm --rows 0", "--rows"},
        {"bench tsmm --rows 1e3,x", "--rows"},
        {"bench tsmm --random-shapes -1", "--random-shapes -1"},
        {"bench tsmm --operand-bytes -5", "--operand-bytes -5"},
        {"bench tsmm --operand-bytes 1e30", "--operand-bytes 1e+30: a number from 1 to 1e15"},
        {"bench tsmm --ld-extra 1,-1", "--ld-extra"},
        {"bench tsmm --device host --model", "--model: only kernels on a GPU"},
        {"bench spmmv --device host --tilings ahead=0", "--tilings: only kernels on a GPU"},
        {"bench tsmm --matrix gen:laplace1d", "--matrix, --tile and --tilings belong to spmmv"},
        {"bench spmmv --rows 100 --matrix gen:laplace1d", "without --rows"},
        {"bench spmmv --matrix gen:laplace4d", "laplace4d"},
        {"bench spmmv --matrix gen:topi,nx=3 --scalar d", "it is complex"},
        {"bench tsmttsm --device host --atomics", "--atomics: only kernels on a GPU"},
        {"bench tsmm --json a.json --markdown a.json",
         "--markdown a.json: the results go to that file"},
        {"bench tsmm --plot a.md --markdown a.md", "--markdown a.md: the charts go to that file"},
        {"bench tsmm --markdown /nonexistent/o.md", "--markdown: cannot write"},
        {"bench tsmm --markdown \"\"", "--markdown: the name of a file"},
        {"bench tsmm --budget 0", "--budget 0"},
        {"bench tsmm --budget nan", "--budget nan"},
        {"bench tsmm --repeat 2", "--repeat 2"},
        {"bench tsmm --vs mkl", "there is no rival mkl"},
        {"bench tsmm --device host --vs cublas", "--vs cublas: a library for the GPU"},
        {"bench tsmm --json /nonexistent/o.json", "--json: cannot write"},
        {"bench tsmm --plot /nonexistent/o.svg", "--plot: cannot write"},
        {"bench tsmm --json a.json --plot a.json", "--plot a.json: the results go to that file"},
        {"bench tsmm --device host --resume " + broken,
         "broken.json:1: no JSON from byte 2 on: not a result of quiver bench\n"},
        {"bench tsmm --device host --resume " + folder.write("lines.json", "{\n\"a\": [1,\n x]}"),
         "lines.json:3: no JSON from byte 13 on: not a result of quiver bench\n"},
        {"bench --plot-from " + folder.write("other.json", "{\"command\": \"bench\"}") +
             " --plot " + folder.path("o.svg"),
         "other.json: JSON, but with keys missing or of another kind: not a result of quiver "
         "bench\n"},
        {"bench --plot-from " + folder.write("empty.json", "") + " --plot " + folder.path("o.svg"),
         "empty.json:1: no JSON from byte 1 on: not a result of quiver bench\n"},
        {"bench --plot-from " + broken, "--plot-from needs --plot"},
        {"bench --plot-from " + broken + " --plot " + folder.path("o.svg"),
         "not a result of quiver bench"},
        {"bench --plot-from x.json --plot " + folder.path("o.svg"), "cannot read x.json"},
        {"bench --reproduce smith1999", "--reproduce smith1999"},
        {"bench tsmm --reproduce ernst2020", "one of them"},
        {"bench --reproduce ernst2020 --widths 4", "chooses shapes and rows itself"},
        {"bench --reproduce ernst2020 --ld-extra 1", "chooses shapes and rows itself"},
        {"bench tsmm --reprat 4", "--reprat"},
    };
    for (const Misuse& misuse : misuses) {
        const Outcome outcome = run_command(misuse.arguments);
        EXPECT_EQ(outcome.status, 2) << misuse.arguments << '\n' << outcome.err;
        EXPECT_EQ(outcome.out, "") << misuse.arguments;
        EXPECT_NE(outcome.err.find(misuse.names), std::string::npos) << misuse.arguments << '\n'
                                                                     << outcome.err;
    }
    EXPECT_EQ(read_file(broken), "{") << "what cannot be read is left as it was";
}

TEST(BenchCommand, IsForOneProcess) {
    const Outcome outcome = run_command("bench tsmm" + quick, 2);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("without mpirun, not on 2 ranks"), std::string::npos) << outcome.err;
}

TEST(BenchCommand, NoticesThatItsTableIsNotWritten) {
    const Folder folder;
    const std::string err = folder.path("err");
    const Outcome outcome =
        run_command("bench tsmm --widths 1" + quick + " >/dev/full 2>" + err + "; exit $?; true");
    EXPECT_EQ(outcome.status, 3);
    EXPECT_NE(read_file(err).find("cannot write to stdout"), std::string::npos);
}

TEST(BenchCommand, TellsOfCasesThatFailOnStderr) {
    if (address_space_is_vast) {
        GTEST_SKIP() << "the sanitizer's address space cannot be limited";
    }
    const Outcome outcome = run_command("bench dots --widths 1,64 --rows 4e6" + quick, 1,
                                        "ulimit -v 1500000; OMP_NUM_THREADS=1 ");
    EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "quiver: bench: 1 of 2 cases failed to run, 0 incorrect\n");
}

TEST(BenchCommand, TimesBlockSizesOfEigensolves) {
    const Folder folder;
    const std::string svg = folder.path("blocking.svg");
    const std::string page = folder.path("blocking.md");
    const Outcome outcome =
        run_command("bench --blocking gen:laplace2d,nx=14 gen:topi,nx=3 --plot " + svg +
                    " --markdown " + page + " --device host --budget 1e5");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, read_file(page));
    for (const std::string row :
         {"| gen:laplace2d,nx=14 | 196 | 924 | 1 |", "| gen:laplace2d,nx=14 | 196 | 924 | 8 |",
          "| gen:topi,nx=3 | 108 |"}) {
        EXPECT_NE(outcome.out.find(row), std::string::npos) << outcome.out;
    }
    EXPECT_EQ(outcome.out.find("not converged"), std::string::npos) << outcome.out;
    EXPECT_NE(read_file(svg).find("gen:topi,nx=3"), std::string::npos);
    const Outcome small = run_command("bench --blocking gen:laplace1d,nx=1 --device host");
    EXPECT_EQ(small.status, 0) << small.err;
    EXPECT_EQ(small.err, "");
    const Outcome cut =
        run_command("bench --blocking gen:laplace2d,nx=60 --budget 1e-9 --device host");
    EXPECT_EQ(cut.status, 1);
    EXPECT_EQ(cut.err,
              "quiver: bench: 4 of 4 solves have not converged, or not within --budget "
              "1e-09\n");
    const Outcome json = run_command("bench --blocking gen:laplace1d --json " + folder.path("x"));
    EXPECT_EQ(json.status, 2);
    EXPECT_NE(json.err.find("--blocking writes --plot and --markdown"), std::string::npos)
        << json.err;
}

}  // namespace
}  // namespace quiver::test
