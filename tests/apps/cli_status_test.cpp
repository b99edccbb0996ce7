// SPDX-License-Identifier: BSD-3-Clause
// The exit statuses of docs/cli.md in the subcommands ed, embed, kmeans, modes and svd: what is
// printed and written with each of them.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "tests/apps/run_command.hpp"
#include "tests/support/sanitizers.hpp"

namespace quiver::test {
namespace {

using nlohmann::json;

/// Ends a command that hangs; the limit of ctest is 600 s.
constexpr int most_seconds = 500;

struct Command {
    std::string complete;
    /// Ends before all results have converged.
    std::string early;
    /// The option of its HDF5 file, which takes more than 8 KiB, and whether its JSON takes less.
    std::string hdf5;
    bool small_json = true;
};

const std::vector<Command> commands{
    {"ed model:heisenberg,L=8 --sector sz=0 -k 2",
     "ed model:heisenberg,L=14 --sector sz=0 -k 4 --method lanczos --max-iterations 1", ""},
    {"embed gen:knn,n=600,k=6 -k 2",
     "embed gen:knn,n=4000 -k 4 --method chebyshev "
     "--max-iterations 1",
     "-o", false},
    {"kmeans gen:blobs,n=2000,d=2,k=3,spread=0.1 -k 3",
     "kmeans gen:blobs,n=4000,d=2,k=9,spread=4 -k 9 --tol 0 --max-iterations 2", "-o"},
    {"modes gen:hexahedra,nx=10,ny=4,nz=4 -k 2",
     "modes gen:hexahedra,nx=10,ny=4,nz=4 -k 2 --method lobpcg --max-seconds 1e-9", "--vectors"},
    {"svd gen:laplace1d,nx=1000 -k 2 --smallest --tol 1e-3",
     "svd gen:laplace1d,nx=3000 -k 4 --max-iterations 3", "-o"}};

bool has_table(const std::string& text) {
    return text.find("\nprocesses   1 rank") != std::string::npos &&
           text.find("\nseconds     ") != std::string::npos;
}

TEST(ExitStatus, ZeroIfAllIsConvergedAndVerified) {
    for (const Command& command : commands) {
        const Outcome outcome = run_command(command.complete + " --device host --json -");
        EXPECT_EQ(outcome.status, 0) << command.complete << '\n' << outcome.err;
        EXPECT_TRUE(has_table(outcome.err)) << outcome.err;
        const json report = json::parse(outcome.out);
        EXPECT_EQ(report["converged"], true) << command.complete;
        EXPECT_EQ(report["command"], command.complete.substr(0, command.complete.find(' ')));
        if (report.contains("multiplicity")) {
            EXPECT_EQ(report["multiplicity"], "verified");
        }
    }
}

TEST(ExitStatus, OneIfTheSolveEndsEarlyAndTheResultsAreMarked) {
    for (const Command& command : commands) {
        const Folder folder;
        const std::string json_file = folder.path("report.json");
        const bool writes = config::have_hdf5 && !command.hdf5.empty();
        const std::string file = writes ? " " + command.hdf5 + " " + folder.path("x.h5") : "";
        const Outcome outcome =
            run_command(command.early + " --device host --json " + json_file + file);
        EXPECT_EQ(outcome.status, 1) << command.early << '\n' << outcome.err;
        EXPECT_TRUE(has_table(outcome.out)) << outcome.out;
        EXPECT_TRUE(outcome.out.find("NOT CONVERGED") != std::string::npos ||
                    outcome.out.find("INTERRUPTED") != std::string::npos)
            << outcome.out;
        EXPECT_EQ(json::parse(read_file(json_file))["converged"], false) << command.early;
        EXPECT_EQ(std::filesystem::exists(folder.path("x.h5")), writes) << command.early;
    }
}

TEST(ExitStatus, TwoForWrongOptionsAndOutputs) {
    for (const Command& command : commands) {
        const Folder folder;
        std::vector<std::string> wrong{" --json ''", " --device none", " --seed x",
                                       " --tol x",   " --tol nan",     " --tol -1"};
        if (!command.hdf5.empty()) {
            const std::string path = folder.path("same");
            wrong.push_back(" --json " + path + " " + command.hdf5 + " " + path);
            wrong.push_back(" " + command.hdf5 + " ''");
        }
        for (const std::string& options : wrong) {
            const Outcome outcome = run_command(command.complete + options);
            EXPECT_EQ(outcome.status, 2) << command.complete << options << '\n' << outcome.err;
            EXPECT_EQ(outcome.out, "");
            EXPECT_EQ(outcome.err.find("quiver: "), 0U) << outcome.err;
            EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
        }
    }
}

TEST(ExitStatus, ThreeIfTheTableCannotBePrinted) {
    if (!std::filesystem::exists("/dev/full")) {
        GTEST_SKIP() << "there is no /dev/full";
    }
    for (const Command& command : commands) {
        const Folder folder;
        const Outcome outcome =
            run_script("quiver " + command.complete + " --device host --json a.json >/dev/full", 1,
                       folder, most_seconds);
        EXPECT_EQ(outcome.status, 3) << command.complete << '\n' << outcome.err;
        EXPECT_EQ(outcome.err.find("quiver: cannot write to stdout: "), 0U) << outcome.err;
        EXPECT_EQ(json::parse(read_file(folder.path("a.json")))["converged"], true);
    }
}

TEST(ExitStatus, ThreeIfAFileCannotBeWrittenAndTheOthersAre) {
    if (!files_may_be_limited) {
        GTEST_SKIP() << "the sizes of files cannot be limited";
    }
    for (const Command& command : commands) {
        const bool hdf5 = config::have_hdf5 && !command.hdf5.empty();
        const Folder folder;
        // The units are 512 bytes. Two variables prevent that MPI shares memory through files.
        const Outcome outcome = run_script(
            std::string("trap '' XFSZ\nexport OMPI_MCA_btl=self,tcp PMIX_MCA_gds=hash\n") +
                "ulimit -f " + (hdf5 ? "16" : "2") + "\nquiver " + command.complete +
                " --device host --json a.json" + (hdf5 ? " " + command.hdf5 + " a.h5" : ""),
            1, folder, most_seconds);
        EXPECT_EQ(outcome.status, 3) << command.complete << '\n' << outcome.err;
        EXPECT_NE(outcome.err.find(hdf5 ? "a.h5" : "cannot write a.json"), std::string::npos)
            << outcome.err;
        EXPECT_EQ(outcome.err.find("quiver: "), outcome.err.rfind("quiver: ")) << outcome.err;
        EXPECT_TRUE(has_table(outcome.out)) << outcome.out;
        if (hdf5 && command.small_json) {
            EXPECT_EQ(json::parse(read_file(folder.path("a.json")))["converged"], true);
        }
        EXPECT_FALSE(std::filesystem::exists(folder.path("a.h5")));
    }
}

}  // namespace
}  // namespace quiver::test
