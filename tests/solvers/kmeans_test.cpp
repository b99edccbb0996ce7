// SPDX-License-Identifier: BSD-3-Clause
// k-means, compared with Lloyd's iteration in long double as scikit-learn defines it.
#include "solvers/cluster/kmeans.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "solvers/cluster/kmeans_starts.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

using Wide = long double;

/// A clustering of all points.
struct Clusters {
    std::vector<std::vector<Wide>> centres;
    std::vector<int> labels;
    std::vector<std::int64_t> sizes;
    Wide inertia = 0;
    int iterations = 0;
    int relocated = 0;
    bool converged = false;
};

/// Points in long double.
using Points = std::vector<std::vector<Wide>>;

Wide squared_distance(const std::vector<Wide>& a, const std::vector<Wide>& b) {
    Wide sum = 0;
    for (std::size_t p = 0; p < a.size(); ++p) {
        sum += (a[p] - b[p]) * (a[p] - b[p]);
    }
    return sum;
}

void assign(const Points& points, Clusters& clusters) {
    clusters.labels.assign(points.size(), 0);
    clusters.sizes.assign(clusters.centres.size(), 0);
    clusters.inertia = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        Wide least = std::numeric_limits<Wide>::infinity();
        for (std::size_t j = 0; j < clusters.centres.size(); ++j) {
            const Wide distance = squared_distance(points[i], clusters.centres[j]);
            if (distance < least) {
                least = distance;
                clusters.labels[i] = static_cast<int>(j);
            }
        }
        ++clusters.sizes[static_cast<std::size_t>(clusters.labels[i])];
        clusters.inertia += least;
    }
}

/// tol times the mean variance of the columns.
Wide threshold(const Points& points, Wide tol) {
    const std::size_t d = points.front().size();
    const auto n = static_cast<Wide>(points.size());
    Wide total = 0;
    for (std::size_t p = 0; p < d; ++p) {
        Wide mean = 0;
        for (const auto& point : points) {
            mean += point[p] / n;
        }
        for (const auto& point : points) {
            total += (point[p] - mean) * (point[p] - mean) / n;
        }
    }
    return tol * total / static_cast<Wide>(d);
}

/// The farthest points take the empty clusters and leave their own.
void relocate(const Points& points, Clusters& clusters, std::vector<std::vector<Wide>>& sums,
              std::vector<Wide>& weights) {
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto distance = [&](std::size_t i) {
        return squared_distance(points[i],
                                clusters.centres[static_cast<std::size_t>(clusters.labels[i])]);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance(a) > distance(b); });
    std::size_t next = 0;
    for (std::size_t j = 0; j < sums.size(); ++j) {
        if (clusters.sizes[j] > 0 || distance(order[next]) == 0) {
            continue;
        }
        const std::size_t far = order[next++];
        const auto old = static_cast<std::size_t>(clusters.labels[far]);
        for (std::size_t p = 0; p < points[far].size(); ++p) {
            sums[old][p] -= points[far][p];
            sums[j][p] = points[far][p];
        }
        weights[old] -= 1;
        weights[j] = 1;
        ++clusters.relocated;
    }
}

Clusters lloyd(const Points& points, std::vector<std::vector<Wide>> starts, Wide tol, int most) {
    Clusters clusters;
    clusters.centres = std::move(starts);
    const Wide limit = threshold(points, tol);
    const std::size_t d = points.front().size();
    while (!clusters.converged && clusters.iterations < most) {
        assign(points, clusters);
        std::vector<std::vector<Wide>> sums(clusters.centres.size(), std::vector<Wide>(d));
        std::vector<Wide> weights(clusters.centres.size());
        for (std::size_t i = 0; i < points.size(); ++i) {
            const auto label = static_cast<std::size_t>(clusters.labels[i]);
            weights[label] += 1;
            for (std::size_t p = 0; p < d; ++p) {
                sums[label][p] += points[i][p];
            }
        }
        relocate(points, clusters, sums, weights);
        Wide shift = 0;
        for (std::size_t j = 0; j < sums.size(); ++j) {
            for (std::size_t p = 0; p < d && weights[j] > 0; ++p) {
                const Wide mean = sums[j][p] / weights[j];
                shift += (mean - clusters.centres[j][p]) * (mean - clusters.centres[j][p]);
                clusters.centres[j][p] = mean;
            }
        }
        ++clusters.iterations;
        clusters.converged = shift <= limit;
    }
    assign(points, clusters);
    return clusters;
}

template <class In>
class Kmeans : public ::testing::Test {
  protected:
    using T = centre_t<In>;

    /// Points around `blobs` random places in [-8, 8]^d; `offset` is added to all.
    Global<In> blobs(std::int64_t rows, int d, int count, double spread, double offset = 0) {
        std::uniform_real_distribution<double> place(-8, 8);
        std::normal_distribution<double> around(0, spread);
        std::vector<double> middles(static_cast<std::size_t>(count * d));
        std::generate(middles.begin(), middles.end(), [&] { return place(generator); });
        Global<In> x(rows, d);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int p = 0; p < d; ++p) {
                const auto middle = static_cast<std::size_t>(i % count * d + p);
                x(i, p) = reference::converted<In>(offset + middles[middle] + around(generator));
            }
        }
        return x;
    }
    static Points wide(const Global<In>& x) {
        Points points(static_cast<std::size_t>(x.rows));
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int p = 0; p < x.cols; ++p) {
                points[static_cast<std::size_t>(i)].push_back(
                    reference::converted<double>(x(i, p)));
            }
        }
        return points;
    }
    /// The rows of X with these numbers as first centres.
    static SmallMatrix<T> rows_of(const Global<In>& x, const std::vector<std::int64_t>& rows) {
        SmallMatrix<T> starts(static_cast<int>(rows.size()), x.cols);
        for (int j = 0; j < starts.rows(); ++j) {
            for (int p = 0; p < x.cols; ++p) {
                starts(j, p) = reference::converted<T>(x(rows[static_cast<std::size_t>(j)], p));
            }
        }
        return starts;
    }
    static std::vector<std::vector<Wide>> wide(const SmallMatrix<T>& a) {
        std::vector<std::vector<Wide>> rows(static_cast<std::size_t>(a.rows()));
        for (int j = 0; j < a.rows(); ++j) {
            rows[static_cast<std::size_t>(j)].assign(&a(j, 0), &a(j, 0) + a.cols());
        }
        return rows;
    }

    struct Outcome {
        KmeansResult<In> result;
        std::vector<int> labels;  // of this rank
    };
    Outcome run(Context& on, const Global<In>& x, const RowMap& map, const KmeansOptions& options,
                const SmallMatrix<T>& starts = {}) {
        TestBlock<In> block(on, x, map, layouts[1]);
        PlacedArray<int> labels(on,
                                std::vector<int>(static_cast<std::size_t>(map.local_rows()), -7));
        Outcome outcome{kmeans<In>(on, map, block.view(), options, labels.span(), starts), {}};
        block.expect_unchanged();
        outcome.labels = labels.values();
        return outcome;
    }
    Outcome run(const Global<In>& x, const KmeansOptions& options,
                const SmallMatrix<T>& starts = {}) {
        return run(ctx, x, uneven_map(ctx, x.rows), options, starts);
    }

    /// Checks that every label names a nearest centre, that the sums follow from the labels, and,
    /// if the centres no longer move, that they are the means of their points.
    void check(const Global<In>& x, const Outcome& outcome, bool at_rest) {
        const auto& result = outcome.result;
        const RowMap map = uneven_map(ctx, x.rows);
        const Points points = wide(x);
        const auto centres = wide(result.centres);
        const Wide eps = epsilon_v<T>;
        std::vector<double> sizes(centres.size());
        std::vector<double> inertias(centres.size());
        SmallMatrix<double> sums(result.centres.rows(), x.cols);
        // Points and centres have components of at most 16 relative to the mean.
        const Wide bound = 16 * (x.cols + 8) * eps * 256 * x.cols;
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            const auto& point = points[static_cast<std::size_t>(map.first_row() + i)];
            const auto label = static_cast<std::size_t>(
                std::clamp(outcome.labels[static_cast<std::size_t>(i)], 0, sums.rows() - 1));
            const Wide chosen = squared_distance(point, centres[label]);
            const bool nearest = std::all_of(centres.begin(), centres.end(), [&](const auto& each) {
                return chosen <= squared_distance(point, each) + bound;
            });
            wrong += nearest && label == static_cast<std::size_t>(
                                             outcome.labels[static_cast<std::size_t>(i)])
                         ? 0
                         : 1;
            sizes[label] += 1;
            inertias[label] += static_cast<double>(chosen);
            for (int p = 0; p < x.cols; ++p) {
                sums(static_cast<int>(label), p) +=
                    static_cast<double>(point[static_cast<std::size_t>(p)]);
            }
        }
        EXPECT_EQ(wrong, 0) << "points without the label of a nearest centre";
        ctx.comm().sum(std::span(sizes));
        ctx.comm().sum(std::span(inertias));
        ctx.comm().sum(std::span(sums.data(), sizes.size() * static_cast<std::size_t>(x.cols)));
        for (std::size_t j = 0; j < centres.size(); ++j) {
            EXPECT_EQ(static_cast<double>(result.sizes[j]), sizes[j]);
            EXPECT_NEAR(result.inertias[j], inertias[j],
                        static_cast<double>(1000 * eps) * (inertias[j] + sizes[j] * x.cols));
            for (int p = 0; p < x.cols && at_rest && sizes[j] > 0; ++p) {
                EXPECT_NEAR(static_cast<double>(centres[j][static_cast<std::size_t>(p)]),
                            sums(static_cast<int>(j), p) / sizes[j],
                            static_cast<double>(1000 * eps) * 16);
            }
        }
        EXPECT_NEAR(result.inertia, std::accumulate(inertias.begin(), inertias.end(), 0.0),
                    static_cast<double>(1000 * eps) * (result.inertia + x.cols));
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
using Types = ::testing::Types<float, double, half_t, bfloat16_t>;
TYPED_TEST_SUITE(Kmeans, Types, ScalarName);

TYPED_TEST(Kmeans, FollowsLloydsIterationFromGivenStarts) {
    for (const int d : {1, 2, 5, 17, 64}) {
        for (const int k : {1, 2, 7}) {
            const auto x = this->blobs(400, d, 7, 0.5);
            std::vector<std::int64_t> rows(static_cast<std::size_t>(k));
            std::iota(rows.begin(), rows.end(), std::int64_t{20});
            const auto starts = this->rows_of(x, rows);
            KmeansOptions options;
            options.k = k;
            options.tol = 1e-3;
            const auto outcome = this->run(x, options, starts);
            this->check(x, outcome, false);
            const Clusters expected =
                lloyd(this->wide(x), this->wide(starts), 1e-3L, options.max_iterations);
            EXPECT_TRUE(outcome.result.converged);
            // Points halfway between two centres may go either way in half precision.
            const double tolerance = sizeof(TypeParam) == 8 ? 1e-12 : 0.01;
            EXPECT_NEAR(outcome.result.inertia, static_cast<double>(expected.inertia),
                        tolerance * static_cast<double>(expected.inertia))
                << d << " columns, k = " << k;
            if (sizeof(TypeParam) == 8) {
                EXPECT_EQ(outcome.result.iterations, expected.iterations);
                EXPECT_EQ(outcome.result.sizes, expected.sizes);
                EXPECT_EQ(outcome.result.history.size(),
                          static_cast<std::size_t>(expected.iterations));
            }
        }
    }
}

TYPED_TEST(Kmeans, ComesToRestWithoutATolerance) {
    const auto x = this->blobs(1500, 3, 6, 1.0);
    KmeansOptions options;
    options.k = 6;
    options.tol = 0;
    options.max_iterations = 1000;
    const auto outcome = this->run(x, options);
    EXPECT_TRUE(outcome.result.converged);
    this->check(x, outcome, true);
    const auto& history = outcome.result.history;
    for (std::size_t i = 1; i < history.size(); ++i) {
        EXPECT_LE(history[i],
                  history[i - 1] * (1 + 100 * static_cast<double>(epsilon_v<centre_t<TypeParam>>)));
    }
    EXPECT_NEAR(history.back(), outcome.result.inertia, 1e-3 * history.back());
}

TYPED_TEST(Kmeans, FindsSeparateBlobs) {
    const int d = 4;
    const auto x = this->blobs(3000, d, 5, 0.02);
    KmeansOptions options;
    options.k = 5;
    options.runs = 3;
    const auto outcome = this->run(x, options);
    this->check(x, outcome, true);
    for (const std::int64_t size : outcome.result.sizes) {
        EXPECT_EQ(size, 600);
    }
    // Rounding to bfloat16 moves points of size 8 by up to 1/64.
    const double variance = 0.02 * 0.02 + (sizeof(TypeParam) == 2 ? 1.0 / 4096 : 0);
    EXPECT_LT(outcome.result.inertia, 1.5 * 3000 * d * variance);
}

TYPED_TEST(Kmeans, EmptyClustersTakeTheFarthestPoints) {
    const int d = 3;
    const auto x = this->blobs(300, d, 4, 0.3);
    auto starts = this->rows_of(x, {0, 1, 2, 3, 4});
    // These two centres get no point in the first assignment.
    for (int p = 0; p < d; ++p) {
        starts(1, p) = 100;
        starts(4, p) = -100;
    }
    KmeansOptions options;
    options.k = 5;
    options.tol = 0;
    const auto outcome = this->run(x, options, starts);
    EXPECT_EQ(outcome.result.relocated, 2);
    for (const std::int64_t size : outcome.result.sizes) {
        EXPECT_GT(size, 0);
    }
    this->check(x, outcome, true);
    const Clusters expected = lloyd(this->wide(x), this->wide(starts), 0, 300);
    EXPECT_EQ(expected.relocated, 2);
    const double tolerance = sizeof(TypeParam) == 8 ? 1e-12 : 0.01;
    EXPECT_NEAR(outcome.result.inertia, static_cast<double>(expected.inertia),
                tolerance * static_cast<double>(expected.inertia));
}

TYPED_TEST(Kmeans, FewerDifferentPointsThanClustersLeaveEmptyOnes) {
    Global<TypeParam> x(40, 2, [] { return reference::converted<TypeParam>(3.0); });
    for (std::int64_t i = 0; i < 10; ++i) {
        x(i, 0) = reference::converted<TypeParam>(-1.0);
    }
    KmeansOptions options;
    options.k = 5;
    const auto outcome = this->run(x, options);
    EXPECT_TRUE(outcome.result.converged);
    EXPECT_EQ(outcome.result.inertia, 0);
    const auto& sizes = outcome.result.sizes;
    EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 0), 3);
    EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 10), 1);
    EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 30), 1);
}

TYPED_TEST(Kmeans, KeepsItsDigitsFarFromZero) {
    if (sizeof(TypeParam) == 2) {
        GTEST_SKIP() << "half precision has no digits left there";
    }
    const auto x = this->blobs(600, 2, 3, 0.1, sizeof(TypeParam) == 4 ? 1e4 : 1e9);
    const auto starts = this->rows_of(x, {0, 1, 2});
    KmeansOptions options;
    options.k = 3;
    const auto outcome = this->run(x, options, starts);
    const Clusters expected = lloyd(this->wide(x), this->wide(starts), 1e-4L, 300);
    EXPECT_EQ(outcome.result.sizes, expected.sizes);
    EXPECT_NEAR(outcome.result.inertia, static_cast<double>(expected.inertia),
                1e-4 * static_cast<double>(expected.inertia));
}

TYPED_TEST(Kmeans, RanksChooseTheSameStarts) {
    const auto x = this->blobs(9000, 3, 8, 1.0);
    const RowMap map = uneven_map(this->ctx, 9000);
    TestBlock<TypeParam> block(this->ctx, x, map, layouts[2]);
    const auto sample = sample_rows<TypeParam>(this->ctx, map, block.view(), 4096, 5);
    Context alone(Comm(), Device::host());
    const RowMap whole = RowMap::by_rows(Comm(), 9000);
    const BlockView<const TypeParam> all(x.values.data(), 9000, 3, 3);
    const auto expected = sample_rows<TypeParam>(alone, whole, all, 4096, 5);
    ASSERT_EQ(std::memcmp(sample.data(), expected.data(), 4096 * 3 * sizeof(double)), 0);
    // One row out of each range of about two rows, so no row twice and all of them rows of X.
    std::int64_t at = 0;
    for (int i = 0; i < 4096; ++i) {
        const auto same = [&](std::int64_t row) {
            bool equal = true;
            for (int p = 0; p < 3; ++p) {
                equal = equal && reference::converted<double>(x(row, p)) == sample(i, p);
            }
            return equal;
        };
        while (at < 9000 && !same(at)) {
            ++at;
        }
        ASSERT_LT(at++, 9000) << "sampled row " << i;
    }

    KmeansOptions options;
    options.k = 8;
    options.max_iterations = 1;
    const auto one = this->run(x, options);
    const auto other = kmeans<TypeParam>(alone, whole, all, options);
    EXPECT_NEAR(one.result.history[0], other.history[0],
                100 * static_cast<double>(epsilon_v<centre_t<TypeParam>>) * other.history[0]);
}

TYPED_TEST(Kmeans, RepeatsItsBits) {
    const auto x = this->blobs(5000, 6, 9, 2.0);
    KmeansOptions options;
    options.k = 9;
    options.runs = 2;
    const auto first = this->run(x, options);
    const auto again = this->run(x, options);
    EXPECT_EQ(first.labels, again.labels);
    EXPECT_EQ(first.result.history, again.result.history);
    EXPECT_EQ(std::memcmp(first.result.centres.data(), again.result.centres.data(),
                          9 * 6 * sizeof(centre_t<TypeParam>)),
              0);
    options.seed = 20;
    EXPECT_NE(first.result.history, this->run(x, options).result.history);
}

TYPED_TEST(Kmeans, TheBestOfSeveralRunsCounts) {
    const auto x = this->blobs(2000, 2, 12, 0.4);
    KmeansOptions options;
    options.k = 12;
    options.runs = 6;
    const auto best = this->run(x, options);
    this->check(x, best, false);
    options.runs = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        options.seed = seed;
        const auto one = this->run(x, options);
        least = std::min(least, one.result.inertia);
        if (static_cast<int>(seed) == best.result.run) {
            EXPECT_EQ(one.labels, best.labels);
        }
    }
    EXPECT_EQ(best.result.inertia, least);
}

TYPED_TEST(Kmeans, KeepGoingEndsTheIterationOnAllRanks) {
    const auto x = this->blobs(500, 2, 4, 3.0);
    KmeansOptions options;
    options.k = 4;
    options.tol = 0;
    options.runs = 3;
    options.keep_going = [&](const IterationEvent& event) {
        EXPECT_STREQ(event.solver, "kmeans");
        return event.iteration < 2 || this->ctx.comm().rank() > 0;
    };
    const auto outcome = this->run(x, options);
    EXPECT_TRUE(outcome.result.interrupted);
    EXPECT_FALSE(outcome.result.converged);
    EXPECT_EQ(outcome.result.iterations, 2);
    this->check(x, outcome, false);
}

TYPED_TEST(Kmeans, OneClusterIsTheMeanAndAsManyAsPointsHaveNoInertia) {
    const auto x = this->blobs(30, 2, 30, 0.1);
    KmeansOptions options;
    options.k = 1;
    const auto one = this->run(x, options);
    this->check(x, one, true);
    EXPECT_EQ(one.result.sizes[0], 30);
    options.k = 30;
    options.tol = 0;
    const auto all = this->run(x, options);
    const Points points = this->wide(x);
    const std::set<std::vector<Wide>> different(points.begin(), points.end());
    if (different.size() == 30) {
        EXPECT_NEAR(all.result.inertia, 0, 1e-6);
        EXPECT_EQ(*std::max_element(all.result.sizes.begin(), all.result.sizes.end()), 1);
    }
}

/// The text of the InputError that a call throws, which must be collective.
template <class Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
        return error.what();
    }
    return "no error";
}

TYPED_TEST(Kmeans, RefusesBadInputWithOneLine) {
    using T = centre_t<TypeParam>;
    const auto x = this->blobs(20, 2, 4, 0.1);
    const auto refused = [&](auto&& change, const SmallMatrix<T>& starts = {}) {
        KmeansOptions options;
        options.k = 4;
        change(options);
        return refusal([&] { this->run(x, options, starts); });
    };
    EXPECT_EQ(refused([](auto& o) { o.k = 0; }),
              "kmeans: k = 0, but at least one cluster is needed");
    EXPECT_EQ(refused([](auto& o) { o.k = 21; }), "kmeans: k = 21 clusters, but only 20 points");
    EXPECT_EQ(refused([](auto& o) { o.k = 65; }),
              "kmeans: k = 65 clusters, but at most 64 are supported");
    EXPECT_EQ(refused([](auto& o) { o.tol = -1; }),
              "kmeans: tol = -1, but a number from 0 on is needed");
    EXPECT_NE(refused([](auto& o) { o.runs = 0; }).find("at least 1"), std::string::npos);
    EXPECT_NE(refused([](auto& o) { o.max_iterations = 0; }).find("at least 1"), std::string::npos);
    EXPECT_EQ(refused([](auto&) {}, SmallMatrix<T>(4, 3)),
              "kmeans: the starts are 4 x 3, but k x columns = 4 x 2 are needed");
    SmallMatrix<T> starts(4, 2);
    starts(2, 1) = std::numeric_limits<T>::quiet_NaN();
    EXPECT_EQ(refused([](auto&) {}, starts), "kmeans: a start has NaN or infinity");

    const Global<TypeParam> wide(70, 65);
    EXPECT_EQ(refusal([&] { this->run(wide, {}); }),
              "kmeans: the points have 65 columns, but 1 to 64 are supported");
    const Global<TypeParam> none(0, 2);
    EXPECT_EQ(refusal([&] { this->run(none, {}); }), "kmeans: k = 8 clusters, but only 0 points");
}

TYPED_TEST(Kmeans, NamesTheFirstRowThatIsNotFinite) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
        auto x = this->blobs(200, 3, 4, 0.1);
        x(150, 2) = reference::converted<TypeParam>(bad);
        x(133, 0) = reference::converted<TypeParam>(bad);
        EXPECT_EQ(refusal([&] { this->run(x, {}); }),
                  "kmeans: row 133 of X (counted from 0) has NaN or infinity, or a square that "
                  "overflows");
    }
}

TYPED_TEST(Kmeans, RefusesOptionsThatDifferBetweenRanks) {
    if (this->ctx.comm().size() == 1) {
        GTEST_SKIP() << "needs several ranks";
    }
    KmeansOptions options;
    options.k = 3 + this->ctx.comm().rank();
    const std::string text = refusal([&] { this->run(this->blobs(50, 2, 4, 0.1), options); });
    EXPECT_NE(text.find("the ranks disagree on k: smallest 3, "), std::string::npos) << text;
}

}  // namespace
}  // namespace quiver::test
