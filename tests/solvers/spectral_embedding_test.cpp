// SPDX-License-Identifier: BSD-3-Clause
// Spectral embeddings of random graphs, compared with dense Laplacians, their eigenpairs by Eigen,
// and components by a search of the dense matrix.
#include "solvers/graph/spectral_embedding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

using Matrix = Eigen::MatrixXd;

/// The Laplacian as in scipy.sparse.csgraph.laplacian, and the roots of the degrees.
struct DenseLaplacian {
    Matrix matrix;
    Eigen::VectorXd root;
};

DenseLaplacian dense_laplacian(Matrix a, LaplacianKind kind) {
    a.diagonal().setZero();
    const Eigen::VectorXd degrees = a.rowwise().sum();
    DenseLaplacian result{Matrix(degrees.asDiagonal()) - a, Eigen::VectorXd::Ones(a.rows())};
    if (kind != LaplacianKind::combinatorial) {
        for (Eigen::Index i = 0; i < a.rows(); ++i) {
            result.root(i) = degrees(i) > 0 ? std::sqrt(degrees(i)) : 1;
        }
        const Eigen::VectorXd inverse = result.root.cwiseInverse();
        result.matrix = inverse.asDiagonal() * result.matrix * inverse.asDiagonal();
    }
    return result;
}

/// The least node of each node's component.
std::vector<int> first_nodes(const Matrix& a) {
    std::vector<int> first(static_cast<std::size_t>(a.rows()), -1);
    for (int seed = 0; seed < a.rows(); ++seed) {
        std::vector<int> queue{seed};
        while (!queue.empty()) {
            const int i = queue.back();
            queue.pop_back();
            if (first[static_cast<std::size_t>(i)] >= 0) {
                continue;
            }
            first[static_cast<std::size_t>(i)] = seed;
            for (int j = 0; j < a.rows(); ++j) {
                if (a(i, j) != 0 && first[static_cast<std::size_t>(j)] < 0) {
                    queue.push_back(j);
                }
            }
        }
    }
    return first;
}

class SpectralEmbeddingTest : public ::testing::Test {
  protected:
    /// A random graph whose nodes belong to `parts` parts at random. A part is a random tree with
    /// `extra` more edges for each node, self-loops, and weights that are multiples of 1/8.
    Matrix random_graph(int nodes, int parts, double extra) {
        std::vector<std::vector<int>> members(static_cast<std::size_t>(parts));
        for (int i = 0; i < nodes; ++i) {
            members[static_cast<std::size_t>(i < parts ? i : whole(0, parts - 1))].push_back(i);
        }
        Matrix a = Matrix::Zero(nodes, nodes);
        for (const auto& part : members) {
            const int last = static_cast<int>(part.size()) - 1;
            const auto link = [&](int p, int q) {
                const int i = part[static_cast<std::size_t>(p)];
                const int j = part[static_cast<std::size_t>(q)];
                a(i, j) = a(j, i) = whole(1, 24) / 8.0;
            };
            for (int p = 1; p <= last; ++p) {
                link(p, whole(0, p - 1));
            }
            for (int e = 0; e < static_cast<int>(extra * last); ++e) {
                link(whole(0, last), whole(0, last));
            }
        }
        return a;
    }
    int whole(int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(generator);
    }
    /// The rows of a dense matrix, with explicit zeros here and there, distributed unequally.
    template <class T>
    CsrRows<T> rows_of(Context& on, const Matrix& a) {
        std::vector<Entry<T>> entries;
        for (int i = 0; i < a.rows() && on.comm().rank() == 0; ++i) {
            for (int j = 0; j < a.cols(); ++j) {
                if (a(i, j) != 0 || (i + j) % 37 == 0) {
                    entries.push_back({i, j, static_cast<T>(a(i, j))});
                }
            }
        }
        return rows_from_entries<T>(on.comm(), uneven_map(on, a.rows()), uneven_map(on, a.cols()),
                                    Symmetry::general, std::move(entries));
    }
    /// All rows of the vectors, on every rank.
    template <class T>
    Matrix gathered(Context& on, const BlockVector<T>& x) {
        Matrix all = Matrix::Zero(x.row_map().global_rows(), x.width());
        BlockVector<T> host(on, x.row_map(), x.width(), 0, Place::host);
        copy(on, x.view(), host.view());
        for (std::int64_t i = 0; i < x.rows(); ++i) {
            for (int j = 0; j < x.width(); ++j) {
                all(x.row_map().first_row() + i, j) =
                    static_cast<double>(host.view().data[i * host.view().ld + j]);
            }
        }
        on.comm().sum(std::span<double>(all.data(), static_cast<std::size_t>(all.size())));
        return all;
    }
    void check_components(const Matrix& a, const SpectralEmbedding<double>& result,
                          const RowMap& map) {
        const std::vector<int> first = first_nodes(a);
        std::map<int, std::int64_t> sizes;
        for (const int node : first) {
            ++sizes[node];
        }
        std::vector<std::pair<std::int64_t, int>> order;
        order.reserve(sizes.size());
        for (const auto& [node, size] : sizes) {
            order.emplace_back(-size, node);
        }
        std::sort(order.begin(), order.end());
        ASSERT_EQ(result.sizes.size(), order.size());
        for (std::size_t c = 0; c < order.size(); ++c) {
            EXPECT_EQ(result.sizes[c], -order[c].first);
        }
        ASSERT_EQ(std::ssize(result.labels), map.local_rows());
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            const auto label = static_cast<std::size_t>(result.labels[static_cast<std::size_t>(i)]);
            ASSERT_LT(label, order.size());
            EXPECT_EQ(order[label].second, first[static_cast<std::size_t>(map.first_row() + i)]);
        }
        EXPECT_EQ(result.isolated, std::count_if(order.begin(), order.end(), [](const auto& part) {
                      return part.first == -1;
                  }));
    }
    /// Compares eigenvalues with those of the dense Laplacian, and the vectors with their
    /// definition.
    void check_embedding(Context& on, const Matrix& a, const SpectralEmbeddingOptions& options,
                         const SpectralEmbedding<double>& result) {
        const DenseLaplacian laplacian = dense_laplacian(a, options.laplacian);
        const Eigen::VectorXd values = oracle::eigenvalues(laplacian.matrix);
        const double norm = std::max(values(values.size() - 1), 1.0);
        const double allowed = 2 * options.solver.tol * norm;
        const int drop = options.drop_first ? 1 : 0;
        EXPECT_TRUE(result.pairs.converged) << result.pairs.message;
        EXPECT_EQ(result.pairs.multiplicity, Multiplicity::verified);
        ASSERT_EQ(std::ssize(result.pairs.eigenvalues), options.k);
        ASSERT_EQ(result.pairs.vectors.width(), options.k);
        for (int j = 0; j < options.k; ++j) {
            const double value = result.pairs.eigenvalues[static_cast<std::size_t>(j)];
            EXPECT_NEAR(value, values(j + drop), allowed) << j;
            if (j < result.null_vectors) {
                EXPECT_EQ(value, 0) << j;
            }
        }
        EXPECT_EQ(result.null_vectors,
                  std::min<std::int64_t>(std::ssize(result.sizes) - drop, options.k));
        Matrix x = gathered(on, result.pairs.vectors);
        for (int j = 0; j < options.k; ++j) {
            Eigen::Index largest = 0;
            x.col(j).cwiseAbs().maxCoeff(&largest);
            EXPECT_GT(x(largest, j), 0) << j;
        }
        // The eigenvectors u of length 1.
        if (options.laplacian != LaplacianKind::combinatorial &&
            (options.scale == EmbeddingScale::scikit_learn ||
             options.laplacian == LaplacianKind::random_walk)) {
            x = laplacian.root.asDiagonal() * x;
        }
        if (options.scale == EmbeddingScale::pyg &&
            options.laplacian == LaplacianKind::random_walk) {
            for (int j = 0; j < options.k; ++j) {
                const double length =
                    (laplacian.root.cwiseInverse().asDiagonal() * x.col(j)).norm();
                EXPECT_NEAR(length, 1, 1e-12);
                x.col(j).normalize();
            }
        }
        EXPECT_LE((x.transpose() * x - Matrix::Identity(options.k, options.k)).norm(),
                  1e-11 * options.k);
        for (int j = 0; j < options.k; ++j) {
            const double value = result.pairs.eigenvalues[static_cast<std::size_t>(j)];
            const double residual = (laplacian.matrix * x.col(j) - value * x.col(j)).norm();
            EXPECT_LE(residual, allowed) << j;
            EXPECT_NEAR(residual, result.pairs.residuals[static_cast<std::size_t>(j)], 1e-13 * norm)
                << j;
        }
    }
    void run_and_check(const Matrix& a, const SpectralEmbeddingOptions& options) {
        CsrRows<double> rows = rows_of<double>(ctx, a);
        const RowMap map = rows.map;
        const auto result = spectral_embedding(ctx, std::move(rows), options);
        check_components(a, result, map);
        check_embedding(ctx, a, options, result);
    }
    void expect_refusal(const Matrix& a, const SpectralEmbeddingOptions& options,
                        const std::string& text) {
        expect_refusal(rows_of<double>(ctx, a), options, text);
    }
    void expect_refusal(const CsrRows<double>& rows, const SpectralEmbeddingOptions& options,
                        const std::string& text) {
        try {
            spectral_embedding(ctx, rows, options);
            FAIL() << "no error: " << text;
        } catch (const InputError& error) {
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
            EXPECT_TRUE(error.collective() || ctx.comm().size() == 1);
        }
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};

TEST_F(SpectralEmbeddingTest, RandomGraphsFollowTheDefinition) {
    for (const auto kind :
         {LaplacianKind::symmetric, LaplacianKind::random_walk, LaplacianKind::combinatorial}) {
        for (const auto scale : {EmbeddingScale::scikit_learn, EmbeddingScale::pyg}) {
            for (const int parts : {1, 2, 7, 40}) {
                SpectralEmbeddingOptions options;
                options.laplacian = kind;
                options.scale = scale;
                options.drop_first = whole(0, 1) == 1;
                options.k = whole(1, 12);
                SCOPED_TRACE(std::string(to_string(kind)) + " " + to_string(scale) + ", " +
                             std::to_string(parts) + " parts, k = " + std::to_string(options.k));
                run_and_check(random_graph(whole(60, 120), parts, 1.5), options);
            }
        }
    }
}

TEST_F(SpectralEmbeddingTest, EveryMethodFindsTheVectorsBesideTheNullVectors) {
    const Matrix a = random_graph(260, 5, 2.5);
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg,
                                Method::jacobi_davidson, Method::dense, Method::shift_invert}) {
        SCOPED_TRACE(to_string(method));
        SpectralEmbeddingOptions options;
        options.k = 9;
        options.drop_first = false;
        options.solver.method = method;
        run_and_check(a, options);
        if (ctx.comm().size() == 1) {
            options.laplacian = LaplacianKind::combinatorial;
            run_and_check(a, options);
        }
    }
}

TEST_F(SpectralEmbeddingTest, AThousandComponents) {
    // 990 isolated nodes and 10 paths of 5 nodes, whose eigenvalues are 1 - cos(pi j / 4).
    const int nodes = 1040;
    Matrix a = Matrix::Zero(nodes, nodes);
    for (int p = 0; p < 10; ++p) {
        for (int i = 1; i < 5; ++i) {
            const int node = 100 * p + 7 * i;
            a(node, node - 7) = a(node - 7, node) = 2;
        }
    }
    SpectralEmbeddingOptions options;
    options.k = 12;
    CsrRows<double> rows = rows_of<double>(ctx, a);
    const RowMap map = rows.map;
    auto result = spectral_embedding(ctx, rows, options);
    check_components(a, result, map);
    EXPECT_EQ(result.sizes.size(), 1000u);
    EXPECT_EQ(result.isolated, 990);
    EXPECT_EQ(result.pairs.operator_applications, 0);
    EXPECT_TRUE(result.pairs.converged && result.pairs.cluster_cut);
    const Matrix x = gathered(ctx, result.pairs.vectors);
    // The second component is the path with the nodes 100 to 128; degrees 2, 4, 4, 4, 2.
    for (int i = 0; i < nodes; ++i) {
        const bool inside = i >= 100 && i <= 128 && (i - 100) % 7 == 0;
        EXPECT_NEAR(x(i, 0), inside ? 0.25 : 0, 1e-15) << i;
    }
    if (ctx.comm().size() > 1) {
        return;  // a dense solve, which takes long
    }
    options.k = 1004;
    options.drop_first = false;
    result = spectral_embedding(ctx, rows, options);
    EXPECT_EQ(result.null_vectors, 1000);
    for (std::size_t j = 0; j < 1004; ++j) {
        EXPECT_NEAR(result.pairs.eigenvalues[j], j < 1000 ? 0 : 1 - std::sqrt(0.5), 1e-12) << j;
    }
    EXPECT_TRUE(result.pairs.cluster_cut);
    const Matrix all = gathered(ctx, result.pairs.vectors);
    const DenseLaplacian laplacian = dense_laplacian(a, options.laplacian);
    const Matrix u = laplacian.root.asDiagonal() * all.rightCols(4);
    EXPECT_LE((laplacian.matrix * u - (1 - std::sqrt(0.5)) * u).norm(), 1e-9);
    EXPECT_LE((u.transpose() * u - Matrix::Identity(4, 4)).norm(), 1e-10);
}

TEST_F(SpectralEmbeddingTest, SeparatesNullVectorsFromWeaklyLinkedParts) {
    // Two parts that an edge of weight 1e-13 links, and a component of its own. A solver cannot
    // distinguish the eigenvalue of the weak link from 0.
    Matrix a = Matrix::Zero(30, 30);
    for (int i = 0; i < 30; ++i) {
        for (int j = 0; j < i; ++j) {
            a(i, j) = a(j, i) = i / 10 == j / 10 ? 1 : 0;
        }
    }
    a(3, 17) = a(17, 3) = 1e-13;
    for (const Method method : {Method::automatic, Method::lanczos}) {
        SpectralEmbeddingOptions options;
        options.k = 4;
        options.drop_first = false;
        options.solver.method = method;
        run_and_check(a, options);
        const auto result = spectral_embedding(ctx, rows_of<double>(ctx, a), options);
        ASSERT_EQ(result.sizes, (std::vector<std::int64_t>{20, 10}));
        const Matrix x = gathered(ctx, result.pairs.vectors);
        EXPECT_NEAR(std::abs(x.col(2).head(10).mean() + x.col(2).segment(10, 10).mean()), 0, 1e-9);
        EXPECT_NEAR(std::abs(x(0, 2)), 1 / std::sqrt(20 * 9.0), 1e-6);
    }
}

TEST_F(SpectralEmbeddingTest, ALongPathIsSolvedDirectly) {
    // The eigenvalues of a path crowd at 0, so that the iteration does not converge in its time.
    if (ctx.comm().size() > 1) {
        GTEST_SKIP() << "takes long on ranks that share cores";
    }
    const std::int64_t nodes = 20500;
    const CsrRows<double> rows =
        rows_from_callback<double>(ctx.comm(), nodes + 1, Symmetry::symmetric,
                                   [&](std::int64_t row, RowEntries<double>& entries) {
                                       for (const std::int64_t other : {row - 1, row + 1}) {
                                           if (other >= 0 && other < nodes && row < nodes) {
                                               entries.add(other, 1);
                                           }
                                       }
                                   });
    SpectralEmbeddingOptions options;
    options.k = 3;
    options.solver.tol = 1e-13;
    const auto result = spectral_embedding(ctx, rows, options);
    EXPECT_TRUE(result.pairs.converged) << result.pairs.message;
    EXPECT_EQ(result.sizes, (std::vector<std::int64_t>{nodes, 1}));
    EXPECT_EQ(result.null_vectors, 1);
    for (int j = 1; j < 3; ++j) {
        const double half = std::sin(M_PI * j / (2 * static_cast<double>(nodes - 1)));
        EXPECT_NEAR(result.pairs.eigenvalues[static_cast<std::size_t>(j)], 2 * half * half, 4e-13);
    }
    // x_j(i) is a cosine of i.
    const Matrix x = gathered(ctx, result.pairs.vectors);
    EXPECT_NEAR(std::abs(x(0, 1) + x(nodes - 1, 1)), 0, 1e-3 * std::abs(x(0, 1)));
    EXPECT_NEAR(x(nodes / 2, 2) / x(0, 2), -1, 1e-3);
}

TEST_F(SpectralEmbeddingTest, SymmetrisesOnRequest) {
    Matrix a = random_graph(80, 3, 1.0);
    for (int i = 0; i < 80; ++i) {
        for (int j = 0; j < i; ++j) {
            (whole(0, 1) == 0 ? a(i, j) : a(j, i)) *= whole(0, 2);
        }
    }
    SpectralEmbeddingOptions options;
    options.k = 5;
    expect_refusal(a, options, "the edges are directed: a(");
    options.symmetrise = true;
    CsrRows<double> rows = rows_of<double>(ctx, a);
    const RowMap map = rows.map;
    const auto result = spectral_embedding(ctx, std::move(rows), options);
    const Matrix both = (a + a.transpose()) / 2;
    check_components(both, result, map);
    check_embedding(ctx, both, options, result);
    // Rounding is not a direction.
    Matrix rounded = both;
    rounded.triangularView<Eigen::StrictlyLower>() *= 1 + 4e-16;
    options.symmetrise = false;
    run_and_check(rounded, options);
}

TEST_F(SpectralEmbeddingTest, SinglePrecision) {
    const Matrix a = random_graph(150, 4, 2.0);
    SpectralEmbeddingOptions options;
    options.k = 6;
    for (const Method method : {Method::automatic, Method::lobpcg}) {
        options.solver.method = method;
        const auto result = spectral_embedding(ctx, rows_of<float>(ctx, a), options);
        const DenseLaplacian laplacian = dense_laplacian(a, options.laplacian);
        const Eigen::VectorXd values = oracle::eigenvalues(laplacian.matrix);
        EXPECT_TRUE(result.pairs.converged) << result.pairs.message;
        const Matrix u = laplacian.root.asDiagonal() * gathered(ctx, result.pairs.vectors);
        for (int j = 0; j < 6; ++j) {
            EXPECT_NEAR(result.pairs.eigenvalues[static_cast<std::size_t>(j)], values(j + 1), 1e-5);
            EXPECT_LE((laplacian.matrix * u.col(j) - values(j + 1) * u.col(j)).norm(), 2e-5);
        }
    }
}

TEST_F(SpectralEmbeddingTest, RepeatsItsBits) {
    const Matrix a = random_graph(300, 3, 2.0);
    SpectralEmbeddingOptions options;
    options.k = 6;
    options.solver.method = Method::chebyshev;
    const auto first = spectral_embedding(ctx, rows_of<double>(ctx, a), options);
    const auto again = spectral_embedding(ctx, rows_of<double>(ctx, a), options);
    EXPECT_EQ(first.pairs.eigenvalues, again.pairs.eigenvalues);
    EXPECT_EQ(gathered(ctx, first.pairs.vectors), gathered(ctx, again.pairs.vectors));
}

TEST_F(SpectralEmbeddingTest, RefusesBadInput) {
    const Matrix a = random_graph(20, 2, 1.0);
    SpectralEmbeddingOptions options;
    const auto refuse_weight = [&](int i, int j, double value, const std::string& text) {
        Matrix changed = a;
        changed(i, j) = changed(j, i) = 12345;
        CsrRows<double> rows = rows_of<double>(ctx, changed);
        std::replace(rows.value.begin(), rows.value.end(), 12345.0, value);
        expect_refusal(rows, options, text);
    };
    refuse_weight(3, 4, -0.5, "a(3, 4) = -0.5 (counted from 0)");
    refuse_weight(7, 2, std::numeric_limits<double>::quiet_NaN(), "a(2, 7) = nan");
    refuse_weight(7, 2, std::numeric_limits<double>::infinity(), "a(2, 7) = inf");
    refuse_weight(1, 8, 1e308, "the weights of node 1 (counted from 0) add up");
    expect_refusal(a.leftCols(19), options, "20 x 19, but it must be square");
    options.k = 0;
    expect_refusal(a, options, "k = 0, but at least one vector is needed");
    options.k = 20;
    expect_refusal(a, options, "k = 20 vectors, but at most 19 for 20 nodes; the first");
    options.drop_first = false;
    run_and_check(a, options);
    if (ctx.comm().size() > 1) {
        options.k = 1 + ctx.comm().rank();
        expect_refusal(a, options, "the ranks disagree on k");
    }
}

}  // namespace
}  // namespace quiver::test
