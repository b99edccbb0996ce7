// SPDX-License-Identifier: BSD-3-Clause
// `quiver embed`: its report and output file agree with graphs whose eigenvalues are known, on any
// number of ranks.
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/hdf5_file.hpp"
#include "tests/apps/plot_script.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

using nlohmann::json;

class Embed : public ::testing::Test {
  protected:
    json report() const { return json::parse(read_file(folder.path("report.json"))); }
    Outcome run(const std::string& arguments, int ranks = 1) {
        return run_command(
            "embed " + arguments + " --device host --json " + folder.path("report.json"), ranks);
    }
    /// A ring of 7 nodes, a path of 2, and an isolated node with a self-loop, as a pattern file.
    std::string rings() {
        std::string text = "%%MatrixMarket matrix coordinate pattern symmetric\n10 10 9\n";
        for (int i = 1; i < 7; ++i) {
            text += std::to_string(i + 1) + " " + std::to_string(i) + "\n";
        }
        return folder.write("rings.mtx", text + "7 1\n9 8\n10 10\n");
    }

    Folder folder;
};

TEST_F(Embed, FindsComponentsAndEigenvaluesOfAFile) {
    const std::string input = rings();
    for (const int ranks : {1, 3}) {
        const Outcome outcome = run(input + " -k 4", ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_NE(outcome.out.find("components  3, the largest of 7 nodes; 1 isolated node\n"),
                  std::string::npos)
            << outcome.out;
        const json result = report();
        EXPECT_EQ(result["command"], "embed");
        EXPECT_EQ(result["components"], 3);
        EXPECT_EQ(result["sizes"], json({7, 2, 1}));
        EXPECT_EQ(result["isolated"], 1);
        EXPECT_EQ(result["null_vectors"], 2);
        EXPECT_EQ(result["converged"], true);
        EXPECT_EQ(result["verified"], true);
        EXPECT_EQ(result["ranks"], ranks);
        const double ring = 1 - std::cos(2 * std::numbers::pi / 7);
        const auto values = result["eigenvalues"].get<std::vector<double>>();
        ASSERT_EQ(values.size(), 4u);
        EXPECT_EQ(values[0], 0);
        EXPECT_EQ(values[1], 0);
        EXPECT_NEAR(values[2], ring, 1e-9);
        EXPECT_NEAR(values[3], ring, 1e-9);
        // The null vector of the path of nodes 7 and 8 is 1/sqrt(2) there.
        const json vectors = result["sample"]["vectors"];
        ASSERT_EQ(vectors.size(), 10u);
        for (std::size_t i = 0; i < 10; ++i) {
            EXPECT_NEAR(vectors[i][0].get<double>(), i == 7 || i == 8 ? std::sqrt(0.5) : 0, 1e-14);
        }
        EXPECT_EQ(result["sample"]["components"], json({0, 0, 0, 0, 0, 0, 0, 1, 1, 2}));
    }
}

TEST_F(Embed, WritesTheVectors) {
    if (!config::have_hdf5) {
        GTEST_SKIP() << "built without HDF5";
    }
    const std::string output = folder.path("positions.h5");
    const Outcome outcome =
        run("gen:knn,n=900,k=6,clusters=3,seed=5 -k 5 --scale pyg -o " + output, 2);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json result = report();
    EXPECT_EQ(result["components"], 3);
    Context ctx;
    const auto vectors = read_block_vector<double>(ctx, output);
    const auto labels = read_block_vector<double>(ctx, output, std::nullopt, "components");
    ASSERT_EQ(vectors.rows(), 900);
    ASSERT_EQ(vectors.width(), 5);
    for (int j = 0; j < 5; ++j) {
        double square = 0;
        for (std::int64_t i = 0; i < 900; ++i) {
            square += vectors.view()(i, j) * vectors.view()(i, j);
            EXPECT_EQ(labels.view()(i, 0), static_cast<double>(i / 300));
        }
        EXPECT_NEAR(square, 1, 1e-10);
    }
    const auto values = read_block_vector<double>(ctx, output, std::nullopt, "eigenvalues");
    for (int j = 0; j < 5; ++j) {
        EXPECT_EQ(values.view()(j, 0), result["eigenvalues"][static_cast<std::size_t>(j)]);
    }
}

TEST_F(Embed, RanksFindTheSameEigenvalues) {
    const std::string graph = "gen:knn,n=4000,k=8,clusters=4,seed=2 -k 8 --method ";
    for (const std::string method : {"chebyshev", "lanczos"}) {
        ASSERT_EQ(run(graph + method, 1).status, 0);
        const json one = report();
        ASSERT_EQ(run(graph + method, 3).status, 0);
        for (std::size_t j = 0; j < 8; ++j) {
            EXPECT_NEAR(report()["eigenvalues"][j].get<double>(),
                        one["eigenvalues"][j].get<double>(), 1e-9);
        }
    }
}

TEST_F(Embed, StatusOneIfTheIterationsAreTooFew) {
    const Outcome outcome = run("gen:knn,n=4000 -k 4 --method chebyshev --max-iterations 1");
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.out.find("NOT CONVERGED"), std::string::npos) << outcome.out;
    EXPECT_EQ(report()["converged"], false);
}

TEST_F(Embed, BadInputGetsOneLine) {
    const std::string header = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n";
    const std::string directed = folder.write("directed.mtx", header + "2 3 1\n");
    const std::string negative = folder.write("negative.mtx", header + "2 1 -1\n");
    const std::string complex = folder.write(
        "complex.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n");
    const std::vector<std::pair<std::string, std::string>> cases{
        {directed + " -k 1", "the edges are directed: a(0, 1) = 1, but a(1, 0) = 0"},
        {negative + " -k 1", "a(1, 0) = -1 (counted from 0), but the weight of an edge"},
        {complex + " -k 1", "complex; the weights of a graph are real"},
        {directed + " -k 3 --symmetrise", "at most 2 for 3 nodes; the first vector is dropped"},
        {directed + " -k 0 --symmetrise", "k = 0, but at least one vector is needed"},
        {directed + " -k 1 --symmetrise --tol 2", "tol"},
        {directed + " -k 1 --laplacian other", "--laplacian"},
        {"gen:laplace2d -k 2", "= -1 (counted from 0), but the weight of an edge"},
        {"gen:knn,n=5,clusters=6 -k 1", "there are more clusters than nodes"},
        {folder.path("none.mtx") + " -k 2", "there is no such file"}};
    for (const auto& [arguments, text] : cases) {
        for (int ranks = 1; ranks <= (arguments.starts_with(negative) ? 2 : 1); ++ranks) {
            const Outcome outcome = run(arguments, ranks);
            EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
            const std::size_t at = outcome.err.find("quiver: ");
            ASSERT_NE(at, std::string::npos) << outcome.err;
            EXPECT_EQ(outcome.err.find("quiver: ", at + 1), std::string::npos) << outcome.err;
            const std::string line = outcome.err.substr(at, outcome.err.find('\n', at) - at);
            EXPECT_NE(line.find(text), std::string::npos) << arguments << "\n" << line;
        }
    }
    ASSERT_EQ(run(directed + " -k 1 --symmetrise").status, 0);
    EXPECT_NEAR(report()["eigenvalues"][0].get<double>(), 1, 1e-12);
}

TEST_F(Embed, ThePlotDrawsTheReport) {
    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    ASSERT_EQ(run("gen:knn,n=500,k=6 -k 4").status, 0);
    const std::string picture = folder.path("embedding.svg");
    const Outcome drawn = run_script(python + " " QUIVER_SOURCE_DIR "/apps/embed_plot.py " +
                                         folder.path("report.json") + " -o " + picture,
                                     1, folder, 120);
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    const std::string svg = read_file(picture);
    EXPECT_NE(svg.find("eigenvalues, symmetric Laplacian"), std::string::npos);
    EXPECT_NE(svg.find("500 of 500 nodes"), std::string::npos);
}

}  // namespace
}  // namespace quiver::test
