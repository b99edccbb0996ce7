// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/kmeans_step.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class In>
In made(double value) {
    return reference::converted<In>(value);
}

/// The result of a step, or of the reference.
template <class In>
struct Step {
    SmallMatrix<double> sums;
    std::vector<int> labels;
    std::vector<centre_t<In>> distances;
};

template <class In>
class KmeansStep : public ::testing::Test {
  protected:
    using T = centre_t<In>;

    /// Points, an origin and centres that are the same on all ranks.
    struct Problem {
        Global<In> x;
        std::vector<T> origin;
        SmallMatrix<T> centres;
    };

    template <class Make>
    Problem problem(std::int64_t rows, int d, int k, Make&& make, double offset = 0) {
        Problem result{Global<In>(rows, d, [&] { return made<In>(offset + make()); }),
                       std::vector<T>(static_cast<std::size_t>(d)), SmallMatrix<T>(k, d)};
        for (T& value : result.origin) {
            value = static_cast<T>(offset + make());
        }
        for (int j = 0; j < k; ++j) {
            for (int p = 0; p < d; ++p) {
                result.centres(j, p) = static_cast<T>(make());
            }
        }
        return result;
    }
    Problem integers(std::int64_t rows, int d, int k) {
        return problem(rows, d, k, [&] { return integer_value<double>(generator); });
    }
    Problem random(std::int64_t rows, int d, int k, double offset = 0) {
        return problem(
            rows, d, k, [&] { return random_value<double>(generator); }, offset);
    }

    /// The step over the rows of all ranks; labels and distances of this rank.
    Step<In> run(const Problem& given, const RowMap& map, Layout layout) {
        const int k = given.centres.rows();
        const auto rows = static_cast<std::size_t>(map.local_rows());
        TestBlock<In> block(ctx, given.x, map, layout);
        PlacedArray<int> labels(ctx, std::vector<int>(rows, -7));
        PlacedArray<T> distances(ctx, std::vector<T>(rows, poison<T>()));
        Step<In> step{SmallMatrix<double>(k, given.x.cols + 2), {}, {}};
        kmeans_step<In>(ctx, block.view(), std::span<const T>(given.origin), given.centres,
                        step.sums, {labels.span(), distances.span()});
        block.expect_unchanged();
        step.labels = labels.values();
        step.distances = distances.values();
        return step;
    }
    /// The reference over all rows.
    Step<In> expected(const Problem& given) {
        const int k = given.centres.rows();
        const auto rows = static_cast<std::size_t>(given.x.rows);
        Step<In> step{SmallMatrix<double>(k, given.x.cols + 2), std::vector<int>(rows),
                      std::vector<T>(rows)};
        reference::kmeans_step<long double>(KmeansStepArgs<In, T>{
            given.x.rows, given.x.cols, k, given.x.values.data(), given.x.cols, given.origin.data(),
            given.centres.data(), step.sums.data(), step.labels.data(), step.distances.data()});
        return step;
    }
    static long double point(const Problem& given, std::int64_t row, int p) {
        return static_cast<long double>(reference::converted<double>(given.x(row, p))) -
               static_cast<long double>(given.origin[static_cast<std::size_t>(p)]);
    }
    static long double distance(const Problem& given, std::int64_t row, int centre) {
        long double sum = 0;
        for (int p = 0; p < given.x.cols; ++p) {
            const long double difference =
                point(given, row, p) - static_cast<long double>(given.centres(centre, p));
            sum += difference * difference;
        }
        return sum;
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
using Points = ::testing::Types<float, double, half_t, bfloat16_t>;
TYPED_TEST_SUITE(KmeansStep, Points, ScalarName);

struct Shape {
    std::int64_t rows;
    int d, k;
};
/// Sizes around vectors, panels, tiles and several blocks.
const std::vector<Shape>& shapes() {
    static const std::vector<Shape> all{{1, 1, 1},     {5, 2, 3},     {127, 3, 4},    {128, 4, 5},
                                        {129, 16, 64}, {1000, 7, 9},  {2053, 16, 17}, {777, 64, 64},
                                        {300, 63, 2},  {9001, 5, 31}, {40, 33, 64}};
    return all;
}

TYPED_TEST(KmeansStep, IsExactOnSmallIntegers) {
    int number = 0;
    for (const auto& [rows, d, k] : shapes()) {
        const auto given = this->integers(rows, d, k);
        const RowMap map = uneven_map(this->ctx, rows);
        const auto expected = this->expected(given);
        const auto actual = this->run(given, map, layouts[number++ % 3]);
        for (int j = 0; j < k; ++j) {
            for (int p = 0; p < d + 2; ++p) {
                ASSERT_EQ(actual.sums(j, p), expected.sums(j, p))
                    << rows << " x " << d << ", k = " << k << ", centre " << j << ", " << p;
            }
        }
        const auto first = static_cast<std::ptrdiff_t>(map.first_row());
        EXPECT_TRUE(
            std::equal(actual.labels.begin(), actual.labels.end(), expected.labels.begin() + first))
            << rows << " x " << d << ", k = " << k;
        EXPECT_TRUE(std::equal(actual.distances.begin(), actual.distances.end(),
                               expected.distances.begin() + first))
            << rows << " x " << d << ", k = " << k;
    }
}

/// More rows than all thread blocks of a large GPU process at once.
TYPED_TEST(KmeansStep, IsExactOverManyTilesOfABlock) {
    if (this->ctx.place() == Place::host) {
        GTEST_SKIP() << "a test of the device";
    }
    for (const auto& [d, k] : {std::pair{8, 5}, {16, 64}}) {
        const auto given = this->integers(210001, d, k);
        const auto expected = this->expected(given);
        const auto actual = this->run(given, uneven_map(this->ctx, 210001), layouts[d % 3]);
        for (int j = 0; j < k; ++j) {
            for (int p = 0; p < d + 2; ++p) {
                ASSERT_EQ(actual.sums(j, p), expected.sums(j, p))
                    << d << ", " << k << ": centre " << j << ", " << p;
            }
        }
    }
}

TYPED_TEST(KmeansStep, FindsANearestCentreAndSumsItsRows) {
    using T = centre_t<TypeParam>;
    const long double eps = static_cast<long double>(epsilon_v<T>);
    // A cloud of diameter 2 sqrt(d) at a distance of 100 sqrt(d): without the origin half of the
    // digits would be lost.
    const double offset = sizeof(TypeParam) == 2 ? 0 : 100;
    for (const auto& [rows, d, k] : shapes()) {
        const auto given = this->random(rows, d, k, offset);
        const RowMap map = uneven_map(this->ctx, rows);
        const auto actual = this->run(given, map, layouts[k % 3]);
        SmallMatrix<double> own(k, d + 2);
        SmallMatrix<double> sizes(k, d + 2);
        // Points relative to the origin and centres have components of at most 3 and 1. Each of
        // the two compared values, |c|^2 / 2 - x c, is a sum of d + 1 terms (Higham, section 3.1)
        // of one more rounding; their difference is half that of the distances.
        const long double terms = d * (0.5L + 3);
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            const std::int64_t row = map.first_row() + i;
            const int given_label = actual.labels[static_cast<std::size_t>(i)];
            const int label = std::clamp(given_label, 0, k - 1);
            const long double chosen = this->distance(given, row, label);
            long double least = chosen;
            for (int j = 0; j < k; ++j) {
                least = std::min(least, this->distance(given, row, j));
            }
            const auto found =
                static_cast<long double>(actual.distances[static_cast<std::size_t>(i)]);
            const bool good = label == given_label && chosen - least <= 4 * (d + 3) * eps * terms &&
                              std::abs(found - chosen) <= (d + 5) * eps * (chosen + d * 4 * eps);
            wrong += good ? 0 : 1;
            for (int p = 0; p < d; ++p) {
                own(label, p) += static_cast<double>(this->point(given, row, p));
                sizes(label, p) += std::abs(static_cast<double>(this->point(given, row, p)));
            }
            own(label, d) += 1;
            own(label, d + 1) += static_cast<double>(chosen);
            sizes(label, d + 1) += static_cast<double>(chosen);
        }
        EXPECT_EQ(wrong, 0) << rows << " x " << d << ", k = " << k;
        const auto count = static_cast<std::size_t>(k * (d + 2));
        this->ctx.comm().sum(std::span(own.data(), count));
        this->ctx.comm().sum(std::span(sizes.data(), count));
        for (int j = 0; j < k; ++j) {
            ASSERT_EQ(actual.sums(j, d), own(j, d));
            for (int p = 0; p < d + 2; ++p) {
                // Sums in T of at most 8192 rows (16 tiles of 512), added in double.
                const long double bound = (std::min(own(j, d), 8192.0) + d + 8) * eps * sizes(j, p);
                ASSERT_LE(std::abs(actual.sums(j, p) - own(j, p)), bound)
                    << rows << " x " << d << ", k = " << k << ", centre " << j << ", " << p;
            }
        }
    }
}

TYPED_TEST(KmeansStep, ResultsOfARowDependOnTheRowOnly) {
    const auto given = this->random(700, 11, 13);
    const auto shifted = [&](std::int64_t by) {
        auto moved = given;
        std::rotate(moved.x.values.begin(), moved.x.values.begin() + by * 11, moved.x.values.end());
        return this->run(moved, RowMap::by_rows(Comm(), 700), layouts[by % 3]);
    };
    const auto first = shifted(0);
    for (const std::int64_t by : {1, 5, 130}) {
        const auto other = shifted(by);
        for (std::size_t i = 0; i < 700; ++i) {
            const std::size_t from = (i + static_cast<std::size_t>(by)) % 700;
            ASSERT_EQ(other.labels[i], first.labels[from]) << i;
            ASSERT_TRUE(same_bits(other.distances[i], first.distances[from])) << i;
        }
    }
}

TYPED_TEST(KmeansStep, RepeatsItsBits) {
    const auto given = this->random(20011, 6, 21);
    const RowMap map = uneven_map(this->ctx, 20011);
    const auto first = this->run(given, map, layouts[0]);
    for (int repeat = 0; repeat < 3; ++repeat) {
        const auto again = this->run(given, map, layouts[repeat]);
        ASSERT_EQ(std::memcmp(first.sums.data(), again.sums.data(), 21 * 8 * sizeof(double)), 0);
    }
}

TYPED_TEST(KmeansStep, TheFirstOfEqualCentresCounts) {
    using T = centre_t<TypeParam>;
    Global<TypeParam> x(9, 2, [] { return made<TypeParam>(1.0); });
    SmallMatrix<T> centres(7, 2);
    for (const int j : {2, 3, 6}) {
        centres(j, 0) = centres(j, 1) = T(1);
    }
    const auto step = this->run({x, std::vector<T>(2), centres}, uneven_map(this->ctx, 9), {});
    for (const int label : step.labels) {
        EXPECT_EQ(label, 2);
    }
    EXPECT_EQ(step.sums(2, 2), 9);
    EXPECT_EQ(step.sums(2, 0), 9);
    EXPECT_EQ(step.sums(3, 2), 0);
}

TYPED_TEST(KmeansStep, MaySumThisRankOnlyAndOmitTheRows) {
    using T = centre_t<TypeParam>;
    const RowMap map = uneven_map(this->ctx, 77);
    TestBlock<TypeParam> ones(
        this->ctx, Global<TypeParam>(77, 2, [] { return made<TypeParam>(1.0); }), map, layouts[1]);
    const std::vector<T> origin(2);
    const SmallMatrix<T> centres(1, 2);
    SmallMatrix<double> sums(1, 4);
    const auto rows = static_cast<double>(map.local_rows());
    kmeans_step<TypeParam>(this->ctx, ones.view(), origin, centres, sums, {}, Reduce::this_rank);
    EXPECT_EQ(sums(0, 0), rows);
    EXPECT_EQ(sums(0, 2), rows);
    EXPECT_EQ(sums(0, 3), 2 * rows);
    kmeans_step<TypeParam>(this->ctx, ones.view(), origin, centres, sums);
    EXPECT_EQ(sums(0, 1), 77);
}

TYPED_TEST(KmeansStep, NanAndInfinityReachTheSumOfTheDistances) {
    using T = centre_t<TypeParam>;
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        auto given = this->random(300, 3, 4);
        given.x(150, 1) = made<TypeParam>(bad);
        const auto step = this->run(given, uneven_map(this->ctx, 300), {});
        double inertia = 0;
        for (int j = 0; j < 4; ++j) {
            inertia += step.sums(j, 4);
        }
        EXPECT_FALSE(std::isfinite(inertia)) << bad;
        static_cast<void>(T());
    }
}

TYPED_TEST(KmeansStep, ManyThreadsGiveTheSameValues) {
    using T = centre_t<TypeParam>;
    if (this->ctx.place() == Place::device) {
        GTEST_SKIP() << "a test of the host";
    }
    const auto given = this->integers(30001, 4, 6);
    const auto expected = this->expected(given);
    Context threads(Comm(), Device::host(5));
    SmallMatrix<double> sums(6, 6);
    kmeans_step<TypeParam>(threads, BlockView<const TypeParam>(given.x.values.data(), 30001, 4, 4),
                           std::span<const T>(given.origin), given.centres, sums);
    EXPECT_EQ(std::memcmp(sums.data(), expected.sums.data(), 36 * sizeof(double)), 0);
}

TYPED_TEST(KmeansStep, RefusesShapesThatDoNotFit) {
    using T = centre_t<TypeParam>;
    TestBlock<TypeParam> block(this->ctx, Global<TypeParam>(10, 65), {}, this->ctx.place());
    PlacedArray<int> labels(this->ctx, std::vector<int>(9));
    const auto run = [&](int d, std::size_t origin, int k, int columns, int sum_columns) {
        SmallMatrix<double> sums(k, sum_columns);
        kmeans_step<TypeParam>(this->ctx, block.view(d), std::vector<T>(origin),
                               SmallMatrix<T>(k, columns), sums, {}, Reduce::this_rank);
    };
    EXPECT_NO_THROW(run(3, 3, 2, 3, 5));
    EXPECT_NO_THROW(run(64, 64, 64, 64, 66));
    EXPECT_THROW(run(65, 65, 2, 65, 67), ShapeError);
    EXPECT_THROW(run(0, 0, 2, 0, 2), ShapeError);
    EXPECT_THROW(run(3, 3, 0, 3, 5), ShapeError);
    EXPECT_THROW(run(3, 3, 65, 3, 5), ShapeError);
    EXPECT_THROW(run(3, 2, 2, 3, 5), ShapeError);
    EXPECT_THROW(run(3, 3, 2, 4, 5), ShapeError);
    EXPECT_THROW(run(3, 3, 2, 3, 4), ShapeError);
    SmallMatrix<double> sums(2, 5);
    EXPECT_THROW(
        kmeans_step<TypeParam>(this->ctx, block.view(3), std::vector<T>(3), SmallMatrix<T>(2, 3),
                               sums, {labels.span(), {}}, Reduce::this_rank),
        ShapeError);
}

}  // namespace
}  // namespace quiver::test
