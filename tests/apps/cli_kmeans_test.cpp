// SPDX-License-Identifier: BSD-3-Clause
// `quiver kmeans`: its report and output file agree with sums over the points, for files and
// generated points, on any number of ranks.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/hdf5_file.hpp"
#include "tests/apps/plot_script.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Kmeans : public ::testing::Test {
  protected:
    json report() const { return json::parse(read_file(folder.path("report.json"))); }
    Outcome run(const std::string& arguments, int ranks = 1) {
        return run_command(
            "kmeans " + arguments + " --device host --json " + folder.path("report.json"), ranks);
    }
    /// The table of 9 points on a line, in three groups, as a Matrix Market array.
    std::string three_groups() {
        std::string text = "%%MatrixMarket matrix array real general\n9 1\n";
        for (const char* number : {"0", "1", "2", "100", "101", "102", "-50", "-51", "-52"}) {
            text += std::string(number) + "\n";
        }
        return folder.write("x.mtx", text);
    }

    Folder folder;
};

TEST_F(Kmeans, ReportsTheGroupsOfAFile) {
    const std::string input = three_groups();
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run(input + " -k 3", ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_NE(outcome.out.find("inertia     6\n"), std::string::npos) << outcome.out;
        const json result = report();
        EXPECT_EQ(result["command"], "kmeans");
        EXPECT_EQ(result["rows"], 9);
        EXPECT_EQ(result["columns"], 1);
        EXPECT_EQ(result["ranks"], ranks);
        EXPECT_EQ(result["inertia"], 6);
        EXPECT_EQ(result["converged"], true);
        EXPECT_EQ(result["sizes"], json({3, 3, 3}));
        std::vector<double> centres;
        for (const auto& centre : result["centres"]) {
            centres.push_back(centre[0]);
        }
        std::sort(centres.begin(), centres.end());
        EXPECT_EQ(centres, (std::vector<double>{-51, 1, 101}));
        EXPECT_EQ(result["history"].size(), result["iterations"].get<std::size_t>());
    }
}

TEST_F(Kmeans, WritesLabelsAndStartsFromCentresOfAFile) {
    if (!config::have_hdf5) {
        GTEST_SKIP() << "built without HDF5";
    }
    const std::string points = "gen:blobs,n=2000,d=3,k=6,spread=0.3,seed=4";
    const std::string output = folder.path("clusters.h5");
    Outcome outcome = run(points + " -k 6 --runs 4 -o " + output, 2);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json result = report();
    Context ctx;
    const auto labels = read_block_vector<double>(ctx, output, std::nullopt, "labels");
    const auto centres = read_block_vector<double>(ctx, output, std::nullopt, "centres");
    ASSERT_EQ(labels.rows(), 2000);
    ASSERT_EQ(centres.rows(), 6);
    std::vector<int> sizes(6);
    for (std::int64_t i = 0; i < 2000; ++i) {
        ++sizes.at(static_cast<std::size_t>(labels.view()(i, 0)));
        // Point i belongs to blob i mod 6, and the blobs do not touch.
        EXPECT_EQ(labels.view()(i, 0), labels.view()(i % 6, 0)) << i;
    }
    EXPECT_EQ(result["sizes"].get<std::vector<int>>(), sizes);
    for (int j = 0; j < 6; ++j) {
        for (int p = 0; p < 3; ++p) {
            EXPECT_EQ(centres.view()(j, p),
                      result["centres"][static_cast<std::size_t>(j)][static_cast<std::size_t>(p)]);
        }
    }
    // 2000 x 3 coordinates with a standard deviation of 0.3.
    EXPECT_NEAR(result["inertia"].get<double>(), 540, 60);

    outcome = run(points + " -k 6 --start " + output, 1);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(report()["iterations"], 1);
    EXPECT_EQ(report()["start"], output);
    EXPECT_NEAR(report()["inertia"].get<double>(), result["inertia"].get<double>(), 1e-9);
}

TEST_F(Kmeans, EveryPrecisionFindsTheBlobsOfAnHdf5File) {
    if (!config::have_hdf5) {
        GTEST_SKIP() << "built without HDF5";
    }
    Context ctx;
    BlockVector<double> x(ctx, RowMap::by_rows(ctx.comm(), 400), 2);
    for (std::int64_t i = 0; i < 400; ++i) {
        const std::int64_t group = i % 4;
        x.view()(i, 0) = static_cast<double>(group * 10) + (i % 8 < 4 ? 0.0 : 0.25);
        x.view()(i, 1) = 1;
    }
    BlockFileNotes notes;
    notes.dataset = "points";
    write_block_vector(ctx, folder.path("x.h5"), x, notes);
    for (const std::string scalar : {"s", "d", "h", "b"}) {
        const Outcome outcome =
            run(folder.path("x.h5") + " --dataset points -k 4 --runs 3 --scalar " + scalar);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(report()["scalar"], scalar);
        EXPECT_EQ(report()["sizes"], json({100, 100, 100, 100}));
        // bfloat16 holds 30.25 to 1/8.
        EXPECT_NEAR(report()["inertia"].get<double>(), 400 * 0.125 * 0.125,
                    scalar == "b" ? 3.0 : 1e-3);
    }
}

TEST_F(Kmeans, GeneratedPointsDoNotDependOnTheRanks) {
    const std::string points = "gen:blobs,n=3000,d=2,k=5,spread=2,seed=9 -k 5 --seed 3";
    ASSERT_EQ(run(points, 1).status, 0);
    const json one = report();
    ASSERT_EQ(run(points, 3).status, 0);
    EXPECT_EQ(report()["iterations"], one["iterations"]);
    EXPECT_NEAR(report()["inertia"].get<double>(), one["inertia"].get<double>(),
                1e-9 * one["inertia"].get<double>());
    EXPECT_EQ(report()["sizes"], one["sizes"]);
}

TEST_F(Kmeans, StatusOneIfTheIterationsAreTooFew) {
    const Outcome outcome =
        run("gen:blobs,n=4000,d=2,k=9,spread=4 -k 9 --tol 0 --max-iterations 2");
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.out.find("NOT CONVERGED after 2 iterations"), std::string::npos)
        << outcome.out;
    EXPECT_EQ(report()["converged"], false);
}

TEST_F(Kmeans, BadInputGetsOneLine) {
    const std::string input = three_groups();
    const std::string header = "%%MatrixMarket matrix array real general\n3 1\n1\n";
    const std::string bad = folder.write("nan.mtx", header + "nan\n2\n");
    const std::string large = folder.write("large.mtx", header + "1e30\n2\n");
    const std::vector<std::pair<std::string, std::string>> cases{
        {input + " -k 0", "k = 0, but at least one cluster is needed"},
        {input + " -k 10", "k = 10 clusters, but only 9 points"},
        {input + " -k 65", "at most 64 are supported"},
        {input + " -k x", "a whole number"},
        {input + " -k 2 --tol -1", "tol = -1"},
        {input + " -k 2 --runs 0", "at least 1 of each"},
        {bad + " -k 2", "nan.mtx:4: the value 'nan' is not finite"},
        {large + " -k 2 --scalar s",
         "row 1 of X (counted from 0) has NaN or infinity, or a square"},
        {folder.path("none.h5") + " -k 2", "none.h5"},
        {folder.path("none.mtx") + " -k 2", "none.mtx"},
        {"gen:blobs,n=10,d=65 -k 2", "65 columns, but 1 to 64"},
        {"gen:blobs,n=0 -k 2", "n=0: a whole number from 1 on is wanted"},
        {"gen:blobs,spread=-1 -k 2", "spread=-1: a number from 0 on is wanted"},
        {"gen:blobs,m=10 -k 2", "blobs has no key 'm'"},
        {"gen:laplace2d -k 2", "the points that can be generated are gen:blobs"},
        {input + " -k 2 --scalar c", "--scalar"}};
    for (const auto& [arguments, text] : cases) {
        for (int ranks = 1; ranks <= (arguments.starts_with(large) ? 2 : 1); ++ranks) {
            const Outcome outcome = run(arguments, ranks);
            EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
            const std::size_t at = outcome.err.find("quiver: ");
            ASSERT_NE(at, std::string::npos) << outcome.err;
            EXPECT_EQ(outcome.err.find("quiver: ", at + 1), std::string::npos) << outcome.err;
            const std::string line = outcome.err.substr(at, outcome.err.find('\n', at) - at);
            EXPECT_NE(line.find(text), std::string::npos) << arguments << "\n" << line;
        }
    }
}

TEST_F(Kmeans, ThePlotDrawsTheReport) {
    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    ASSERT_EQ(run("gen:blobs,n=500,d=2,k=4,spread=0.5 -k 4").status, 0);
    const std::string picture = folder.path("clusters.svg");
    const Outcome drawn = run_script(python + " " QUIVER_SOURCE_DIR "/apps/kmeans_plot.py " +
                                         folder.path("report.json") + " -o " + picture,
                                     1, folder, 120);
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    const std::string svg = read_file(picture);
    EXPECT_NE(svg.find("inertia"), std::string::npos);
    EXPECT_NE(svg.find("4 clusters of 500 points"), std::string::npos);
}

}  // namespace
}  // namespace quiver::test
