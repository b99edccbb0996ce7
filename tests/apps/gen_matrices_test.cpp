// SPDX-License-Identifier: BSD-3-Clause
// `quiver gen` on the command line.
#include <filesystem>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

std::size_t files_in(const Folder& folder) {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder.path("")),
                      std::filesystem::directory_iterator()));
}

TEST(Gen, ListExplainsEveryGenerator) {
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run_command("gen --list", ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        for (const std::string name : {"laplace1d", "laplace2d", "laplace3d", "spinSZ", "spin",
                                       "graphene", "anderson", "hubbard", "topi", "matpde"}) {
            const std::size_t first = outcome.out.find("gen:" + name + "\n");
            EXPECT_NE(first, std::string::npos) << name;
            EXPECT_EQ(outcome.out.find("gen:" + name + "\n", first + 1), std::string::npos);
        }
        EXPECT_NE(outcome.out.find("default 16.5"), std::string::npos);
        EXPECT_NE(outcome.out.find("which doubles the hopping"), std::string::npos);
        EXPECT_NE(outcome.out.find("lexicographic|morton"), std::string::npos);
    }
}

TEST(Gen, WritesTheSameFileOnAnyRanks) {
    const Folder folder;
    for (const std::string spec : {"gen:topi,nx=3,W=1", "gen:anderson,L=4", "gen:matpde,n=5"}) {
        const std::string alone = folder.path("alone.mtx");
        const std::string shared = folder.path("shared.mtx");
        const Outcome outcome = run_command("gen " + spec + " -o " + alone);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.out.find(alone + ": "), 0U) << outcome.out;
        EXPECT_EQ(run_command("gen " + spec + " -o " + shared, 3).status, 0);
        EXPECT_EQ(read_file(alone), read_file(shared));
        EXPECT_NE(read_file(alone).find("\n% " + spec + "\n"), std::string::npos);
    }
    EXPECT_EQ(files_in(folder), 2U);
}

TEST(Gen, ConvertsFiles) {
    const Folder folder;
    const std::string source =
        folder.write("a.mtx", "%%MatrixMarket matrix array integer symmetric\n2 2\n5\n0\n7\n");
    const std::string packed = folder.path("b.mtx.gz");
    const std::string plain = folder.path("c.mtx");
    EXPECT_EQ(run_command("gen " + source + " -o " + packed, 2).status, 0);
    EXPECT_EQ(run_command("gen " + packed + " -o " + plain).status, 0);
    EXPECT_EQ(read_file(packed).substr(0, 2), "\x1f\x8b");
    EXPECT_EQ(read_file(plain), "%%MatrixMarket matrix coordinate real symmetric\n% " + packed +
                                    "\n2 2 2\n1 1 5\n2 2 7\n");
}

TEST(Gen, WithoutAnOutputShowsTheFacts) {
    const Outcome outcome = run_command("gen gen:graphene,W=8");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("64 x 64, 664 nonzeros"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("-o FILE.mtx"), std::string::npos);
}

TEST(Gen, GeneratedComplexMatricesAreSolved) {
    const EigsOutcome outcome = run_eigs("gen:topi,nx=4,bz=periodic -k 2", 2);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_TRUE(outcome.json.contains("eigenvalues"));
    EXPECT_EQ(outcome.json["matrix"]["scalar"], "z");
    EXPECT_EQ(outcome.json["matrix"]["symmetry"], "hermitian");
    for (const double value : outcome.json["eigenvalues"]) {
        EXPECT_NEAR(value, -5, 5e-9);
    }
}

TEST(Gen, MisuseIsRefusedAndLeavesNothing) {
    const Folder folder;
    const std::string good = folder.path("m.mtx");
    const Folder elsewhere;
    const std::string file = elsewhere.write("file", "");
    struct Case {
        std::string arguments, names;
    };
    for (const Case& wrong :
         {Case{"gen", "--list"},
          {"gen gen:nosuch -o " + good, "there is no generator 'nosuch'"},
          {"gen gen:spin,L=99 -o " + good, "2 .. 62 spins"},
          {"gen gen:topi,nx=2 --scalar d -o " + good, "the matrix is complex"},
          {"gen " + folder.path("missing.mtx") + " -o " + good, "missing.mtx"},
          {"gen gen:spin,L=4 -o " + file + "/m.mtx", "cannot write " + file + "/m.mtx: Not a"},
          {"gen gen:spin,L=4 -o " + folder.path(""), "cannot write"},
          {"gen gen:spin,L=4 -o ''", "cannot write"},
          {"gen gen:spin,L=4 --outptu " + good, "--outptu"}}) {
        for (const int ranks : {1, 2}) {
            const Outcome outcome = run_command(wrong.arguments, ranks);
            EXPECT_EQ(outcome.status, 2) << wrong.arguments << '\n' << outcome.err;
            EXPECT_EQ(outcome.out, "") << wrong.arguments;
            EXPECT_NE(outcome.err.find(wrong.names), std::string::npos) << outcome.err;
            EXPECT_EQ(outcome.err.find("MPI_ABORT"), std::string::npos) << wrong.arguments;
        }
    }
    EXPECT_EQ(files_in(folder), 0U);
}

}  // namespace
}  // namespace quiver::test
