// SPDX-License-Identifier: BSD-3-Clause
// Finite elements against Kronecker products; the entries of irregular matrices against what their
// kinds promise; graphs of nearest neighbours against distances of all pairs.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include <Eigen/Core>
#include <gtest/gtest.h>
#include <unsupported/Eigen/KroneckerProduct>

#include "apps/matrices/generators.hpp"
#include "kernels/random.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

using Matrix = Eigen::MatrixXd;

/// The tridiagonal matrix of ones.
Matrix neighbours_on_a_line(int n) {
    Matrix line = Matrix::Zero(n, n);
    for (int i = 0; i < n; ++i) {
        for (int j = std::max(i - 1, 0); j <= std::min(i + 1, n - 1); ++j) {
            line(i, j) = 1;
        }
    }
    return line;
}

TEST(IrregularMatrices, ElementsAreAKroneckerProduct) {
    const Comm comm(MPI_COMM_WORLD);
    for (const auto& [nx, ny, nz, unknowns] :
         {std::array{3, 4, 2, 3}, std::array{1, 5, 1, 2}, std::array{2, 2, 3, 1}}) {
        const std::string spec = "gen:elements,nx=" + std::to_string(nx) +
                                 ",ny=" + std::to_string(ny) + ",nz=" + std::to_string(nz) +
                                 ",unknowns=" + std::to_string(unknowns);
        const test::Dense computed = test::gather_dense(comm, generate<double>(comm, spec, 2));
        const Matrix plane =
            Eigen::kroneckerProduct(neighbours_on_a_line(nz), neighbours_on_a_line(ny)).eval();
        const Matrix box = Eigen::kroneckerProduct(plane, neighbours_on_a_line(nx)).eval();
        const Matrix nodes = 27 * Matrix::Identity(box.rows(), box.cols()) - box;
        const Matrix node = 0.75 * Matrix::Identity(unknowns, unknowns) +
                            Matrix::Constant(unknowns, unknowns, 0.25);
        const Matrix expected = Eigen::kroneckerProduct(nodes, node).eval();
        ASSERT_EQ(computed.rows, expected.rows()) << spec;
        for (Eigen::Index i = 0; i < expected.rows(); ++i) {
            for (Eigen::Index j = 0; j < expected.cols(); ++j) {
                EXPECT_EQ(computed(i, j), expected(i, j)) << spec << " " << i << " " << j;
            }
        }
    }
}

/// What a kind promises for n = 40,000 rows.
struct Promise {
    double least_mean, most_mean;  // entries of a row
    std::int64_t least_longest;    // entries of the longest row, at least
    std::int64_t most_longest;     // at most
    std::int64_t farthest;         // from the diagonal
};

TEST(IrregularMatrices, EveryKindHasItsEntries) {
    const Comm comm(MPI_COMM_WORLD);
    constexpr std::int64_t n = 40000;
    const std::map<std::string, Promise> promises{{"web", {5, 9, 500, 20000, n}},
                                                  {"social", {12, 27, 1000, 20000, n}},
                                                  {"road", {2, 2.5, 6, 8, 2000}},
                                                  {"neighbours", {10, 13.5, 18, 40, 603}},
                                                  {"random", {14.5, 15.5, 26, 45, n}},
                                                  {"band", {38, 41, 55, 60, 2000}},
                                                  {"dense-rows", {8.5, 9.5, n / 2, n / 2, n}},
                                                  {"empty-rows", {2.8, 3.2, 12, 12, 1000}}};
    for (const auto& [kind, promise] : promises) {
        const auto rows = generate<double>(comm, "gen:irregular,n=40000,kind=" + kind, 2);
        std::int64_t longest = 0;
        std::int64_t farthest = 0;
        for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
            const auto begin =
                static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i)]);
            const auto end =
                static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i) + 1]);
            longest = std::max(longest, static_cast<std::int64_t>(end - begin));
            for (std::size_t k = begin; k < end; ++k) {
                EXPECT_LE(std::abs(rows.value[k]), 1.0) << kind;
                farthest = std::max(farthest, std::abs(rows.column[k] - rows.map.first_row() - i));
            }
        }
        const double mean = static_cast<double>(comm.sum(rows.nonzeros())) / n;
        longest = comm.max(longest);
        farthest = comm.max(farthest);
        EXPECT_GE(mean, promise.least_mean) << kind;
        EXPECT_LE(mean, promise.most_mean) << kind;
        EXPECT_GE(longest, promise.least_longest) << kind;
        EXPECT_LE(longest, promise.most_longest) << kind;
        EXPECT_LE(farthest, promise.farthest) << kind;
        EXPECT_GE(farthest, std::min(promise.farthest, n / 2) / 2) << kind;
        EXPECT_EQ(rows.symmetry, Symmetry::general) << kind;
    }
}

/// Points, neighbours and clusters; the sizes include clusters of few points and of few lines.
TEST(IrregularMatrices, NeighboursAreTheNearestOfAllPoints) {
    const Comm comm(MPI_COMM_WORLD);
    for (const auto& [n, k, clusters] : {std::array{700, 5, 1}, std::array{650, 3, 2},
                                         std::array{60, 7, 9}, std::array{5, 9, 1}}) {
        const std::string spec = "gen:knn,n=" + std::to_string(n) + ",k=" + std::to_string(k) +
                                 ",clusters=" + std::to_string(clusters) + ",seed=4";
        const test::Dense computed = test::gather_dense(comm, generate<double>(comm, spec, 2));
        const int size = (n - 1) / clusters + 1;
        const int side = static_cast<int>(std::ceil(std::sqrt(size)));
        const auto squared_distance = [&](int i, int j) {
            double square = 0;
            for (int axis = 0; axis < 2; ++axis) {
                const auto place = [&](int node) {
                    const int cell = node % size;
                    return (axis == 0 ? cell % side : cell / side) + uniform(4, node, axis);
                };
                square += (place(i) - place(j)) * (place(i) - place(j));
            }
            return square;
        };
        Matrix expected = Matrix::Zero(n, n);
        for (int i = 0; i < n; ++i) {
            std::vector<std::pair<double, int>> others;
            for (int j = 0; j < n; ++j) {
                if (j != i && j / size == i / size) {
                    others.emplace_back(squared_distance(i, j), j);
                }
            }
            std::sort(others.begin(), others.end());
            others.resize(std::min<std::size_t>(others.size(), static_cast<std::size_t>(k)));
            for (const auto& [distance, j] : others) {
                expected(i, j) += 0.5;
                expected(j, i) += 0.5;
            }
        }
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                ASSERT_EQ(computed(i, j), expected(i, j)) << spec << " " << i << " " << j;
            }
        }
    }
}

}  // namespace
}  // namespace quiver::apps
