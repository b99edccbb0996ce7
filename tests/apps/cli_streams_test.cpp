// SPDX-License-Identifier: BSD-3-Clause
// Standard input, standard output, pipes and links instead of files. These tests write to no device
// file.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "blockvec/config.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

namespace fs = std::filesystem;

/// Ends a command that hangs; the limit of ctest is 600 s.
constexpr int most_seconds = 500;
const std::string small_problem = "eigs gen:laplace1d,nx=10 -k 2 --device host";

bool is_json_of_eigs(const std::string& text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    return !json.is_discarded() && json["command"] == "eigs" && json["eigenvalues"].size() == 2;
}

TEST(Streams, StandardOutputTakesTheJsonAlone) {
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run_command(small_problem + " --json -", ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_TRUE(is_json_of_eigs(outcome.out)) << outcome.out;
        EXPECT_NE(outcome.err.find("converged   yes"), std::string::npos) << outcome.err;
    }
    const Outcome matrix = run_command("gen gen:laplace1d,nx=2 -o -");
    EXPECT_EQ(matrix.status, 0) << matrix.err;
    EXPECT_EQ(matrix.out.find("%%MatrixMarket matrix coordinate real symmetric\n"), 0U)
        << matrix.out;
    EXPECT_NE(matrix.out.find("\n2 2 3\n1 1 2\n2 1 -1\n2 2 2\n"), std::string::npos) << matrix.out;
    EXPECT_NE(matrix.err.find("3 entries listed\n"), std::string::npos) << matrix.err;
}

/// Standard output is first a file, then a pipe. A rename would replace the link or the file.
TEST(Streams, ALinkToStandardOutputStaysALink) {
    const Folder folder;
    fs::create_symlink("/proc/self/fd/1", folder.path("link"));
    for (const char* piped : {"", " | cat"}) {
        const Outcome outcome =
            run_script("quiver " + small_problem + " --json link" + piped, 1, folder, most_seconds);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_TRUE(is_json_of_eigs(outcome.out)) << outcome.out;
        EXPECT_TRUE(fs::is_symlink(folder.path("link")));
    }
}

TEST(Streams, LinksAreFollowedByEveryOutput) {
    const Folder folder;
    const auto link = [&](const std::string& name) {
        fs::create_symlink("real/" + name, folder.path(name));
        return " " + folder.path(name);
    };
    const std::string json = link("a.json");
    EXPECT_EQ(run_command(small_problem + " --json" + json, 2).status, 0);
    EXPECT_TRUE(is_json_of_eigs(read_file(folder.path("real/a.json"))));
    std::vector<std::string> links{"a.json", "a.mtx", "a.mtx.gz", "b.mtx"};
    for (const std::string& name : {links[1], links[2]}) {
        EXPECT_EQ(run_command("gen gen:laplace1d,nx=10 -o" + link(name)).status, 0);
    }
    EXPECT_EQ(
        run_command("solve gen:laplace1d,nx=10 --rhs ones --device host -o" + link("b.mtx")).status,
        0);
    if (config::have_hdf5) {
        EXPECT_EQ(run_command(small_problem + " --vectors" + link("a.h5")).status, 0);
        EXPECT_EQ(
            run_command("qr " + folder.path("a.h5") + " --device host -o" + link("q.h5")).status,
            0);
        links.insert(links.end(), {"a.h5", "q.h5"});
    }
    for (const std::string& name : links) {
        EXPECT_TRUE(fs::is_symlink(folder.path(name))) << name;
        EXPECT_TRUE(fs::is_regular_file(folder.path("real/" + name))) << name;
    }
    EXPECT_EQ(
        run_command("gen " + folder.path("a.mtx") + " -o " + folder.path("real/a.mtx")).status, 2)
        << "-o names the file of the matrix by another path";
}

TEST(Streams, APipeTakesOutput) {
    const Folder folder;
    for (const char* name : {"json", "matrix"}) {
        ASSERT_EQ(::mkfifo(folder.path(name).c_str(), 0600), 0);
    }
    const auto run = [&](const std::string& arguments, const std::string& pipe, int ranks) {
        const std::string reader =
            "cat " + folder.path(pipe) + " >" + folder.path(pipe + ".got") + " & ";
        EXPECT_EQ(std::system(reader.c_str()), 0);
        const Outcome outcome = run_command(arguments + folder.path(pipe), ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_TRUE(fs::is_fifo(folder.path(pipe)));
    };
    run(small_problem + " --json ", "json", 2);
    run("gen gen:laplace1d,nx=100 -o ", "matrix", 1);
    EXPECT_EQ(run_command("gen gen:laplace1d,nx=100 -o " + folder.path("file")).status, 0);
    // The readers may still be copying.
    EXPECT_EQ(std::system(("for i in 1 2 3 4 5 6 7 8 9; do cmp -s " + folder.path("matrix.got") +
                           " " + folder.path("file") + " && exit 0; sleep 1; done; exit 1")
                              .c_str()),
              0);
    EXPECT_TRUE(is_json_of_eigs(read_file(folder.path("json.got"))));
}

TEST(Streams, EveryOutputMakesItsFolder) {
    const Folder folder;
    const auto in = [&](const std::string& name) { return " " + folder.path("made/by/" + name); };
    std::vector<std::string> runs{
        small_problem + " --json" + in("json/a.json"),
        "gen gen:laplace1d,nx=10 -o" + in("gen/a.mtx"),
        "solve gen:laplace1d,nx=10 --rhs ones --device host -o" + in("solve/x.mtx")};
    std::vector<std::string> files{"json/a.json", "gen/a.mtx", "solve/x.mtx"};
    if (config::have_hdf5) {
        runs.push_back(small_problem + " --vectors" + in("eigs/x.h5"));
        files.emplace_back("eigs/x.h5");
        runs.push_back("qr" + in("eigs/x.h5") + " --device host -o" + in("qr/q.h5"));
        files.emplace_back("qr/q.h5");
    }
    for (const std::string& run : runs) {
        const Outcome outcome = run_command(run, 2);
        EXPECT_EQ(outcome.status, 0) << run << '\n' << outcome.err;
    }
    for (const std::string& file : files) {
        EXPECT_TRUE(fs::is_regular_file(folder.path("made/by/" + file))) << file;
    }
}

/// Writes a matrix to two files, plain and gzip'd.
class StandardInput : public ::testing::Test {
  protected:
    StandardInput() {
        EXPECT_EQ(run_command("gen gen:laplace2d,nx=9,ny=7 -o " + a_).status, 0);
        EXPECT_EQ(run_command("gen gen:laplace2d,nx=9,ny=7 -o " + a_ + ".gz").status, 0);
    }
    /// The eigenvalues that `quiver eigs ARGUMENTS` finds.
    static nlohmann::json eigenvalues(const std::string& arguments, int ranks = 1) {
        const EigsOutcome outcome = run_eigs(arguments, ranks);
        EXPECT_EQ(outcome.status, 0) << arguments << '\n' << outcome.err;
        return outcome.json.is_null() ? nlohmann::json() : outcome.json["eigenvalues"];
    }

    Folder folder_;
    std::string a_ = folder_.path("a.mtx");
};

TEST_F(StandardInput, HoldsTheMatrixOnAnyNumberOfRanks) {
    for (const int ranks : {1, 2, 3, 4}) {
        const std::string file = ranks % 2 == 0 ? a_ + ".gz" : a_;
        const auto expected = eigenvalues(file + " -k 4", ranks);
        const auto found = eigenvalues("- -k 4 <" + file, ranks);
        ASSERT_EQ(found.size(), 4U);
        for (std::size_t i = 0; i < 4; ++i) {
            EXPECT_NEAR(found[i].get<double>(), expected[i].get<double>(), 1e-10);
        }
    }
}

TEST_F(StandardInput, IsReadAgainForACheck) {
    EXPECT_EQ(eigenvalues("- -k 3 --verify inertia <" + a_).size(), 3U);
}

TEST_F(StandardInput, HoldsAMassMatrixOrRightHandSides) {
    const auto same = eigenvalues("gen:laplace2d,nx=9,ny=7 -k 2 --mass - <" + a_, 2);
    ASSERT_EQ(same.size(), 2U);
    EXPECT_NEAR(same[0].get<double>(), 1, 1e-8) << "A x = lambda A x";
    const std::string b =
        folder_.write("b.mtx", "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\n6\n");
    const std::string solve = "solve gen:laplace1d,nx=3 ";
    const Outcome named = run_command(solve + b + " --device host -o -");
    const Outcome piped = run_command(solve + "- --device host -o - <" + b, 2);
    EXPECT_EQ(named.status, 0) << named.err;
    EXPECT_EQ(piped.status, 0) << piped.err;
    EXPECT_EQ(named.out.substr(named.out.find("\n3 2")), piped.out.substr(piped.out.find("\n3 2")));
    const Outcome matrix = run_command("solve - --rhs ones --device host <" + a_, 3);
    EXPECT_EQ(matrix.status, 0) << matrix.err;
}

TEST_F(StandardInput, ServesInfoAndGen) {
    const Outcome info = run_command("info - <" + a_ + ".gz", 2);
    EXPECT_EQ(info.status, 0) << info.err;
    EXPECT_NE(info.out.find("63"), std::string::npos) << info.out;
    const Outcome gen = run_command("gen - -o - <" + a_);
    EXPECT_EQ(gen.status, 0) << gen.err;
    const std::string sizes = "\n63 63 ";
    const std::string text = read_file(a_);
    EXPECT_EQ(gen.out.substr(gen.out.find(sizes)), text.substr(text.find(sizes)));
}

TEST_F(StandardInput, IsNamedInErrors) {
    const Outcome outcome = run_command("eigs - -k 1 <" + folder_.write("x", "x\n"), 2);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.err.find("standard input:1: not a Matrix Market"), std::string::npos)
        << outcome.err;
}

}  // namespace
}  // namespace quiver::test
