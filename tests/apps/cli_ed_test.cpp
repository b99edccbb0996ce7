// SPDX-License-Identifier: BSD-3-Clause
// `quiver ed`: its report on any number of ranks, the picture, and one line for wrong input.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/plot_script.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

using nlohmann::json;

class Ed : public ::testing::Test {
  protected:
    Outcome run(const std::string& arguments, int ranks = 1) {
        return run_command(
            "ed " + arguments + " --device host --json " + folder.path("report.json"), ranks);
    }
    json report() const { return json::parse(read_file(folder.path("report.json"))); }

    Folder folder;
};

TEST_F(Ed, ReportsTheSameEnergiesForAFileAndAModelOnAnyNumberOfRanks) {
    const std::string file = folder.write("terms.txt",
                                          "# a ring of 10 spins\nspins 10\nsector sz 0\n"
                                          "ring 0.5 + - 0 1 hc\nring 1 z z 0 1\n");
    const std::vector<std::string> inputs{file, "model:heisenberg,L=10 --sector sz=0",
                                          "model:heisenberg,L=10 --sector sz=1 --sector sz=0"};
    for (const std::string& input : inputs) {
        for (const int ranks : {1, 2}) {
            const Outcome outcome = run(input + " -k 2", ranks);
            ASSERT_EQ(outcome.status, 0) << outcome.err;
            const json result = report();
            EXPECT_EQ(result["states"], 252);
            EXPECT_EQ(result["ranks"], ranks);
            EXPECT_EQ(result["converged"], true);
            EXPECT_NEAR(result["energies"][0].get<double>(), -4.5154463545, 1e-9);
            EXPECT_NEAR(result["gap"].get<double>(), 0.4232389, 1e-6);
            EXPECT_NE(outcome.out.find("Sz 0: 252 states"), std::string::npos) << outcome.out;
        }
    }
}

TEST_F(Ed, DrawsLevelsAndDensities) {
    const std::string file =
        folder.write("terms.txt",
                     "spins 8\nsector sz 0\nring 0.5 + - 0 1 hc\nring 1 z z 0 1\n"
                     "probe 1 z 0\nprobe -1 z 4\n");
    const Outcome outcome = run(file + " -k 3 --density --moments 100 --points 50");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json result = report();
    EXPECT_EQ(result["density"]["energies"].size(), 50U);
    EXPECT_EQ(result["probe"]["moments"].size(), 101U);
    EXPECT_GT(result["probe"]["moments"][0].get<double>(), 0);
    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    const std::string picture = folder.path("energies.svg");
    ASSERT_EQ(std::system((python + " " QUIVER_SOURCE_DIR "/apps/ed_plot.py " +
                           folder.path("report.json") + " -o " + picture)
                              .c_str()),
              0);
    const std::string svg = read_file(picture);
    EXPECT_NE(svg.find("density of states"), std::string::npos);
    EXPECT_NE(svg.find("spectral function"), std::string::npos);
}

TEST_F(Ed, UsesComplexNumbersForOtherMomentaAndPrintsTerms) {
    ASSERT_EQ(run("model:heisenberg,L=8 --sector sz=0 --sector momentum=3 -k 1").status, 0);
    EXPECT_EQ(report()["scalar"], "z");
    EXPECT_EQ(report()["group_order"], 8);
    const Outcome printed = run_command("ed model:hubbard,L=3 --sector up=1 --print-terms");
    EXPECT_EQ(printed.status, 2);  // up without down
    const Outcome text = run_command("ed model:ising,L=3,h=0.5 --print-terms");
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_EQ(text.out, "spins 3\nring -4 z z 0 1\nring -1 x 0\n\n");
}

/// The search for the states of this sector takes a minute of one core, and with 601 million states
/// it is announced.
TEST_F(Ed, TerminationEndsTheSearchForStates) {
    for (const std::string options : {"-k 1", "-k 0 --density"}) {
        // The file of the first pass would end the loop before the second command has begun.
        const Outcome outcome = run_script(
            "rm -f notes\n" QUIVER_COMMAND
            " ed model:heisenberg,L=32 --sector sz=0 --sector momentum=0 " +
                options + " --device host --json ended.json 2>notes &\n" +
                "until grep -qs searching notes; do sleep 0.1; done\nkill -TERM $!\nwait $!",
            1, folder, 500);
        EXPECT_EQ(outcome.status, 1) << outcome.err << read_file(folder.path("notes"));
        EXPECT_NE(outcome.out.find("INTERRUPTED: interrupted in the search for the states"),
                  std::string::npos)
            << outcome.out;
        const json result = json::parse(read_file(folder.path("ended.json")));
        EXPECT_EQ(result["interrupted"], true);
        EXPECT_EQ(result["states"], 0);
        EXPECT_TRUE(result["energies"].empty());
    }
}

TEST_F(Ed, RefusesWrongInputInOneLine) {
    const std::string wrong = folder.write("wrong.txt", "spins 4\nterm 1 q 0\n");
    const std::vector<std::pair<std::string, std::string>> cases{
        {wrong, "wrong.txt:2: `q` is not an operator of spins"},
        {folder.path("none.txt"), "cannot be read, or is empty"},
        {"model:potts", "`potts` is none of the models"},
        {"model:heisenberg,L=8 -k -1", "-k -1"},
        {"model:heisenberg,L=8 -k 0", "nothing to compute"},
        {"model:heisenberg,L=8 --sector sz", "--sector sz: NAME=VALUE is wanted"},
        {"model:heisenberg,L=8 --sector sz=9", "sector sz 9: 8 spins have a total Sz of -4"},
        {"model:heisenberg,L=8 --sector momentum=1 --scalar d", "use --scalar z"},
        {"model:ising,L=8 --sector sz=0", "the terms change the sector's number of up spins"},
        {"model:heisenberg,L=8 --density --moments 1", "moments = 1 is not from 2"}};
    for (const auto& [arguments, message] : cases) {
        const Outcome outcome = run(arguments);
        EXPECT_EQ(outcome.status, 2) << arguments;
        EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
    // Rank 0 alone reads the file; mpiexec adds lines of its own.
    const Outcome outcome = run(wrong, 2);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("wrong.txt:2: `q` is not"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("`q` is not"), outcome.err.rfind("`q` is not")) << outcome.err;
}

}  // namespace
}  // namespace quiver::test
