// SPDX-License-Identifier: BSD-3-Clause
// If one of three ranks fails after any agreement of the ranks, all ranks end with one line and
// status 3, and no partial file remains. If a rank is killed, the other ranks end as well.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

/// Runs the command with a fault after agreement 1, 2, ... of the ranks, until a run has fewer
/// agreements and ends without a fault. Returns the number of agreements.
int fail_in_every_phase(const std::string& matrix, const Folder& folder) {
    const std::string json = folder.path("out.json");
    constexpr int most = 200;
    for (int agreement = 1; agreement < most; ++agreement) {
        const Outcome outcome = run_command("eigs " + matrix + " -k 2 --device host --json " + json,
                                            3, "QUIVER_FAULT=" + std::to_string(agreement) + "@1 ");
        if (outcome.status == 0) {
            EXPECT_TRUE(std::filesystem::exists(json));
            return agreement - 1;
        }
        EXPECT_EQ(outcome.status, 3) << agreement << '\n' << outcome.err;
        const std::string line = "quiver: a fault injected by QUIVER_FAULT after agreement " +
                                 std::to_string(agreement) + " on rank 1\n";
        EXPECT_EQ(outcome.err.substr(0, line.size()), line);
        EXPECT_EQ(outcome.err.find("quiver:", line.size()), std::string::npos) << outcome.err;
        // Before the last agreement the file has been written, and it is complete.
        if (std::filesystem::exists(json)) {
            EXPECT_TRUE(nlohmann::json::accept(read_file(json)));
            std::filesystem::remove(json);
        }
        for (const auto& left : std::filesystem::directory_iterator(folder.path(""))) {
            EXPECT_EQ(left.path().extension(), ".mtx") << agreement << ": left behind " << left;
        }
    }
    ADD_FAILURE() << "no run without a fault in " << most;
    return most;
}

TEST(Faults, OneRankFailsInAnyPhaseOfAFile) {
    const Folder folder;
    std::string text = "%%MatrixMarket matrix coordinate real symmetric\n9 9 9\n";
    for (int i = 1; i <= 9; ++i) {
        text += std::to_string(i) + " " + std::to_string(i) + " " + std::to_string(i) + "\n";
    }
    EXPECT_GE(fail_in_every_phase(folder.write("nine.mtx", text), folder), 10);
}

TEST(Faults, RanksWithDifferentArgumentsAreRefused) {
    const std::string same = "eigs gen:laplace3d,nx=5 -k 2 --device host";
    for (const std::string other : {" --abft correct", " --checkpoint never", " --scalar s"}) {
        const Outcome outcome =
            run_command(same + " : -n 1 " + QUIVER_COMMAND + " " + same + other, 2);
        EXPECT_EQ(outcome.status, 2) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find("quiver: the ranks have different arguments: rank 0 '" + same +
                                   "', rank 2 '" + same + other + "'"),
                  std::string::npos)
            << outcome.err;
        EXPECT_FALSE(std::filesystem::exists("never"));
    }
}

TEST(Faults, ALostRankEndsTheOthers) {
    // If the other ranks waited forever, the time limit of ctest would end this test.
    const Outcome outcome =
        run_command("eigs gen:laplace1d,nx=30 -k 2 --device host", 3, "QUIVER_FAULT=4@1:kill ");
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace quiver::test
