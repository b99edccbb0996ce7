// SPDX-License-Identifier: BSD-3-Clause
// `quiver svd`: values, vectors and components in its report and files agree with known ones, for
// blocks, points and sparse matrices, on any number of ranks.
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/hdf5_file.hpp"
#include "tests/apps/plot_script.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

using nlohmann::json;

class SvdCommand : public ::testing::Test {
  protected:
    json report() const { return json::parse(read_file(folder.path("report.json"))); }
    Outcome run(const std::string& arguments, int ranks = 1) {
        return run_command(
            "svd " + arguments + " --device host --json " + folder.path("report.json"), ranks);
    }
    /// diag(3, -1, 2) above a zero row, as a Matrix Market array.
    std::string block() {
        return folder.write("x.mtx",
                            "%%MatrixMarket matrix array real general\n4 3\n"
                            "3\n0\n0\n0\n0\n-1\n0\n0\n0\n0\n2\n0\n");
    }
    /// diag(5, 4, 4, 1) with two columns more.
    std::string sparse() {
        return folder.write("a.mtx",
                            "%%MatrixMarket matrix coordinate real general\n4 6 4\n"
                            "1 1 5\n2 2 -4\n3 3 4\n4 4 1\n");
    }
    static void expect_near(const json& found, const std::vector<double>& wanted,
                            double tolerance = 1e-12) {
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t j = 0; j < wanted.size(); ++j) {
            EXPECT_NEAR(found[j].get<double>(), wanted[j], tolerance) << j;
        }
    }

    Folder folder;
};

TEST_F(SvdCommand, DecomposesABlock) {
    const std::string input = block();
    for (const int ranks : {1, 2}) {
        for (const std::string more : {"", " --one-pass", " --scalar s"}) {
            const Outcome outcome = run("--dense " + input + more, ranks);
            ASSERT_EQ(outcome.status, 0) << outcome.err;
            const json result = report();
            EXPECT_EQ(result["command"], "svd");
            EXPECT_EQ(result["kind"], "block");
            EXPECT_EQ(result["rows"], 4);
            EXPECT_EQ(result["columns"], 3);
            EXPECT_EQ(result["rank"], 3);
            EXPECT_EQ(result["ranks"], ranks);
            expect_near(result["values"], {3, 2, 1}, 1e-6);
            expect_near(result["right"][0], {1, 0, 0}, 1e-6);
            expect_near(result["right"][1], {0, 0, 1}, 1e-6);
            expect_near(result["right"][2], {0, 1, 0}, 1e-6);
            EXPECT_NE(outcome.out.find("singular value"), std::string::npos) << outcome.out;
        }
    }
}

TEST_F(SvdCommand, FindsTripletsOfASparseMatrix) {
    const std::string input = sparse();
    for (const int ranks : {1, 2}) {
        Outcome outcome = run(input + " -k 3", ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const json large = report();
        EXPECT_EQ(large["kind"], "sparse");
        EXPECT_EQ(large["nonzeros"], 4);
        EXPECT_EQ(large["multiplicity"], "verified");
        expect_near(large["values"], {5, 4, 4});
        outcome = run(input + " -k 2 --smallest", ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        expect_near(report()["values"], {4, 1});
        EXPECT_EQ(report()["which"], "smallest");
    }
    // A path of 1200 points: the values are those of its Laplacian.
    ASSERT_EQ(run("gen:laplace1d,nx=1200 -k 2 --tol 1e-5", 2).status, 0);
    const json path = report();
    EXPECT_EQ(path["dense"], false);
    for (int j = 0; j < 2; ++j) {
        const double half = std::numbers::pi * (1200 - j) / (2 * 1201.0);
        EXPECT_NEAR(path["values"][static_cast<std::size_t>(j)].get<double>(),
                    4 * std::sin(half) * std::sin(half), 1e-4);
    }
}

TEST_F(SvdCommand, FindsTripletsOfALargeDenseMatrix) {
    const std::string wide = folder.write("wide.mtx",
                                          "%%MatrixMarket matrix array real general\n2 3\n"
                                          "0\n3\n-4\n0\n0\n0\n");
    const std::string complex_matrix =
        folder.write("z.mtx", "%%MatrixMarket matrix array complex general\n2 1\n3 0\n0 4\n");
    for (const int ranks : {1, 2}) {
        ASSERT_EQ(run("--dense " + wide, ranks).status, 0);
        const json result = report();
        EXPECT_EQ(result["kind"], "dense");
        EXPECT_EQ(result["columns"], 3);
        EXPECT_FALSE(result.contains("nonzeros"));
        EXPECT_EQ(result["multiplicity"], "verified");
        expect_near(result["values"], {4, 3});
        ASSERT_EQ(run("--dense " + wide + " -k 1 --smallest", ranks).status, 0);
        expect_near(report()["values"], {3});
        ASSERT_EQ(run("--dense " + complex_matrix, ranks).status, 0);
        EXPECT_EQ(report()["scalar"], "z");
        expect_near(report()["values"], {5});
    }
    // Neither dimension is small: the solver iterates.
    std::string text = "%%MatrixMarket matrix array real general\n600 700\n";
    for (int j = 0; j < 700; ++j) {
        for (int i = 0; i < 600; ++i) {
            const double value = i == 0 ? 1 : i == 1 ? 2 - 4 * (j % 2) : i == j ? 9.0 / i : 0;
            text += std::to_string(value) + "\n";
        }
    }
    const Outcome outcome = run("--dense " + folder.write("large.mtx", text) + " -k 3", 2);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(report()["dense"], false);
    EXPECT_NEAR(report()["values"][0].get<double>(), std::sqrt(2800), 0.1);
    EXPECT_NEAR(report()["values"][1].get<double>(), std::sqrt(700), 0.1);
    EXPECT_NE(outcome.out.find("of A^H A or A A^H"), std::string::npos) << outcome.out;
}

TEST_F(SvdCommand, FindsComponentsOfPoints) {
    const std::string points = "gen:blobs,n=3000,d=4,k=5,spread=0.4,seed=6";
    ASSERT_EQ(run("--pca " + points + " -k 2", 1).status, 0);
    const json one = report();
    EXPECT_EQ(one["kind"], "pca");
    EXPECT_EQ(one["components"].size(), 2U);
    EXPECT_EQ(one["mean"].size(), 4U);
    EXPECT_EQ(one["passes"], 1);
    ASSERT_EQ(run("--pca " + points + " -k 2", 3).status, 0);
    for (const char* key : {"variances", "ratios", "values", "mean"}) {
        expect_near(report()[key], one[key].get<std::vector<double>>(), 1e-9);
    }
    for (const std::string scalar : {"s", "h", "b"}) {
        ASSERT_EQ(run("--pca " + points + " --scalar " + scalar).status, 0);
        EXPECT_EQ(report()["scalar"], scalar);
        EXPECT_NEAR(report()["variances"][0].get<double>(), one["variances"][0].get<double>(),
                    0.01 * one["variances"][0].get<double>());
        EXPECT_EQ(report()["components"].size(), 4U);
    }
}

TEST_F(SvdCommand, WritesVectorsAndScores) {
    if (!config::have_hdf5) {
        GTEST_SKIP() << "built without HDF5";
    }
    Context ctx;
    const auto read = [&](const std::string& file, const std::string& dataset) {
        return read_block_vector<double>(ctx, folder.path(file), std::nullopt, dataset);
    };
    ASSERT_EQ(run("--dense " + block() + " -o " + folder.path("usv.h5"), 2).status, 0);
    const auto left = read("usv.h5", "left");
    const auto right = read("usv.h5", "right");
    const auto values = read("usv.h5", "values");
    ASSERT_EQ(left.rows(), 4);
    const std::vector<double> diagonal{3, -1, 2};
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 3; ++j) {
            double sum = 0;
            for (int l = 0; l < 3; ++l) {
                sum += left.view()(i, l) * values.view()(l, 0) * right.view()(j, l);
            }
            EXPECT_NEAR(sum, i == j ? diagonal.at(static_cast<std::size_t>(i)) : 0, 1e-13);
        }
    }
    ASSERT_EQ(run(sparse() + " -k 1 -o " + folder.path("u.h5") + " --right " + folder.path("v.h5"))
                  .status,
              0);
    EXPECT_NEAR(std::abs(read("u.h5", "left").view()(0, 0)), 1, 1e-12);
    EXPECT_EQ(read("u.h5", "left").rows(), 4);
    EXPECT_NEAR(std::abs(read("v.h5", "right").view()(0, 0)), 1, 1e-12);
    EXPECT_EQ(read("v.h5", "right").rows(), 6);
    ASSERT_EQ(run("--pca gen:blobs,n=500,d=3 -k 2 -o " + folder.path("pca.h5"), 2).status, 0);
    const auto scores = read("pca.h5", "scores");
    const json result = report();
    ASSERT_EQ(scores.rows(), 500);
    for (int c = 0; c < 2; ++c) {
        double sum = 0;
        double squares = 0;
        for (std::int64_t i = 0; i < 500; ++i) {
            sum += scores.view()(i, c);
            squares += scores.view()(i, c) * scores.view()(i, c);
        }
        EXPECT_NEAR(sum, 0, 1e-9);
        EXPECT_NEAR(squares / 499, result["variances"][static_cast<std::size_t>(c)].get<double>(),
                    1e-9);
    }
    EXPECT_EQ(read("pca.h5", "components").rows(), 2);
}

TEST_F(SvdCommand, StatusOneIfTheSolveEndsEarly) {
    const Outcome outcome = run("gen:laplace1d,nx=3000 -k 4 --max-iterations 3");
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.out.find("NOT CONVERGED"), std::string::npos) << outcome.out;
    EXPECT_EQ(report()["converged"], false);
}

TEST_F(SvdCommand, BadInputGetsOneLine) {
    const std::string input = block();
    const std::string matrix = sparse();
    const std::string bad =
        folder.write("nan.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\nnan\n2\n");
    const std::string complex_block =
        folder.write("complex.mtx", "%%MatrixMarket matrix array complex general\n2 1\n1 0\n0 1\n");
    const std::vector<std::pair<std::string, std::string>> cases{
        {"--dense " + input + " -k 4", "k = 4, but X has 3 singular values"},
        {"--dense " + matrix + " -k 5", "k = 5, but a 4 x 6 matrix has 4 singular values"},
        {"--dense " + matrix + " --one-pass", "--one-pass is for singular values of a block"},
        {"--dense " + input + " --smallest", "--smallest is for sparse matrices"},
        {"--dense " + input + " --right v.h5", "--right is for sparse matrices"},
        {"--dense " + input + " --scalar z", "--scalar z: a block has s or d"},
        {"--dense " + complex_block + " --scalar d", "the matrix is complex"},
        {"--pca " + complex_block, "complex numbers"},
        {"--pca " + input + " -k 4", "k = 4 components"},
        {"--pca " + input + " -k -1", "k = -1"},
        {"--pca " + bad, "nan.mtx:4: the value 'nan' is not finite"},
        {matrix + " -k 5", "k = 5, but a 4 x 6 matrix has 4 singular values"},
        {matrix + " -k 0", "k = 0"},
        {matrix + " -k 1 --tol 2", "tol"},
        {matrix + " --one-pass", "--one-pass is for singular values of a block"},
        {matrix + " --scalar h", "--scalar h: a large matrix has s, d, c or z"},
        {"gen:nothing -k 2", "nothing"},
        {folder.path("none.mtx"), "none.mtx"},
        {folder.path("none.h5"), "none.h5"}};
    for (const auto& [arguments, text] : cases) {
        const Outcome outcome = run(arguments);
        EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
        const std::size_t at = outcome.err.find("quiver: ");
        ASSERT_NE(at, std::string::npos) << arguments << "\n" << outcome.err;
        EXPECT_EQ(outcome.err.find("quiver: ", at + 1), std::string::npos) << outcome.err;
        const std::string line = outcome.err.substr(at, outcome.err.find('\n', at) - at);
        EXPECT_NE(line.find(text), std::string::npos) << arguments << "\n" << line;
    }
}

TEST_F(SvdCommand, ThePlotDrawsTheReport) {
    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    const std::vector<std::pair<std::string, std::string>> cases{
        {"--pca gen:blobs,n=300,d=4", "part of the variance"},
        {"--dense " + block(), "error bound"},
        {sparse() + " -k 2", "residual"}};
    for (const auto& [arguments, text] : cases) {
        ASSERT_EQ(run(arguments).status, 0);
        const std::string picture = folder.path("svd.svg");
        const Outcome drawn = run_script(python + " " QUIVER_SOURCE_DIR "/apps/svd_plot.py " +
                                             folder.path("report.json") + " -o " + picture,
                                         1, folder, 120);
        EXPECT_EQ(drawn.status, 0) << drawn.err;
        EXPECT_NE(read_file(picture).find(text), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace quiver::test
