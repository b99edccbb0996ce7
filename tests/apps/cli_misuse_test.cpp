// SPDX-License-Identifier: BSD-3-Clause
// Misuse ends with the status of the README, one line that names what is wrong, and no result.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

struct Misuse {
    std::string arguments;
    /// What the message must hold.
    std::string names;
};

void expect_refused(const std::vector<Misuse>& cases, int ranks) {
    for (const Misuse& misuse : cases) {
        const Outcome outcome = run_command(misuse.arguments, ranks);
        EXPECT_EQ(outcome.status, 2) << misuse.arguments << '\n' << outcome.err;
        EXPECT_EQ(outcome.out, "") << misuse.arguments;
        const std::size_t first = outcome.err.find(misuse.names);
        EXPECT_NE(first, std::string::npos) << misuse.arguments << '\n' << outcome.err;
        EXPECT_EQ(outcome.err.find(misuse.names, first + 1), std::string::npos)
            << "told twice: " << misuse.arguments << '\n'
            << outcome.err;
        EXPECT_EQ(outcome.err.find("MPI_ABORT"), std::string::npos) << misuse.arguments;
    }
}

std::vector<Misuse> misuses(const Folder& folder) {
    const std::string matrix = "gen:laplace1d,nx=10";
    const std::string real = "%%MatrixMarket matrix coordinate real ";
    const std::string skew = folder.write("skew.mtx", real + "general\n2 2 2\n1 2 1\n2 1 1.5\n");
    const std::string wide = folder.write("wide.mtx", real + "general\n2 3 1\n1 2 1\n");
    const std::string broken = folder.write("broken.mtx", real + "general\n2 2 1\n1 x 1\n");
    const std::string complex_symmetric = folder.write(
        "complex.mtx", "%%MatrixMarket matrix coordinate complex symmetric\n2 2 1\n2 1 0 1\n");
    return {
        {"", "subcommand"},
        {"solve " + matrix, "subcommand"},
        {"eigs", "MATRIX"},
        {"eigs " + matrix + " --wich largest", "--wich"},
        {"eigs " + matrix + " --which middle", "middle"},
        {"eigs " + matrix + " -k ten", "ten"},
        {"eigs " + matrix + " -k 0", "-k 0"},
        {"eigs " + matrix + " -k -3", "-k -3"},
        {"eigs " + matrix + " -k 11", "-k 11: the matrix has 10 rows"},
        {"eigs " + matrix + " -k 2 --block -1", "--block -1"},
        {"eigs " + matrix + " -k 2 --block 33", "--block 33"},
        {"eigs " + matrix + " -k 2 --block 11", "--block 11: the matrix has 10 rows"},
        {"eigs " + matrix + " -k 2 --tol 0", "--tol 0"},
        {"eigs " + matrix + " -k 2 --tol nan", "--tol nan"},
        {"eigs " + matrix + " -k 2 --tol 1", "--tol 1"},
        {"eigs " + matrix + " -k 2 --seed -1", "--seed"},
        {"eigs " + matrix + " -k 2 --json /dev/null", "no regular file"},
        {"eigs " + broken + " -k 2 --json " + broken, "is the matrix itself"},
        {"eigs /dev/null -k 2", "no regular file"},
        {"eigs " + matrix + " -k 2 --max-iterations 0", "--max-iterations 0"},
        {"eigs " + matrix + " -k 2 --json /nonexistent/out.json", "--json: cannot write"},
        {"eigs gen:nosuch,n=10 -k 2", "there is no generator"},
        {"eigs gen:laplace1d,nx=-1 -k 2", "laplace1d"},
        {"eigs " + folder.path("missing.mtx") + " -k 2", "missing.mtx"},
        {"eigs " + broken + " -k 1", "broken.mtx:3"},
        {"eigs " + wide + " -k 1", "2 x 3 is not square"},
        {"eigs " + skew + " -k 1", "is not symmetric"},
        {"eigs " + complex_symmetric + " -k 1", "is not Hermitian"},
        {"eigs " + complex_symmetric + " -k 1 --scalar d", "the matrix is complex"},
        {"info " + folder.path("missing.mtx"), "missing.mtx"},
    };
}

TEST(Misuse, IsRefusedWithOneLineAndStatus2) {
    const Folder folder;
    expect_refused(misuses(folder), 1);
}

TEST(Misuse, IsRefusedAlikeOnTwoRanks) {
    // One of each place where an error can come up: starting mpirun takes its time.
    const Folder folder;
    std::vector<Misuse> chosen;
    for (const Misuse& misuse : misuses(folder)) {
        for (const char* names : {"--wich", "-k 0", "-k 11", "--json", "no generator",
                                  "missing.mtx", "broken.mtx", "not square", "not symmetric"}) {
            if (misuse.names.find(names) != std::string::npos &&
                misuse.arguments.find("info") == std::string::npos) {
                chosen.push_back(misuse);
            }
        }
    }
    EXPECT_EQ(chosen.size(), 9u);
    expect_refused(chosen, 2);
}

TEST(Failure, ForWantOfMemoryHasStatus3) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer needs more address space than this test leaves";
#endif
    // 27 million rows, of which the row pointers and entries alone take 3 GB.
    const Outcome outcome = run_command("eigs gen:laplace3d,nx=300 -k 1", 1, "ulimit -v 2000000; ");
    EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find("memory"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
}

TEST(Misuse, OfADeviceThatIsNotThereNamesTheCure) {
    const Outcome devices = run_command("info devices");
    if (devices.out.find("GPUs        none") == std::string::npos) {
        GTEST_SKIP() << "this machine has a GPU";
    }
    for (const int ranks : {1, 2}) {
        expect_refused({{"eigs gen:laplace1d,nx=10 -k 2 --device cuda", "--device host"}}, ranks);
    }
    const Outcome automatic = run_command("eigs gen:laplace1d,nx=10 -k 2 --device auto");
    EXPECT_EQ(automatic.status, 0) << automatic.err;
    EXPECT_NE(automatic.out.find("device      host (no GPU: "), std::string::npos) << automatic.out;
}

TEST(Misuse, LeavesAnOlderJsonAsItWas) {
    const Folder folder;
    const std::string json = folder.write("out.json", "precious");
    const Outcome outcome = run_command("eigs gen:laplace1d,nx=10 -k 11 --json " + json);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(read_file(json), "precious");
}

}  // namespace
}  // namespace quiver::test
