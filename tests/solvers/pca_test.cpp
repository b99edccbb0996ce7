// SPDX-License-Identifier: BSD-3-Clause
// pca and pca_scores, compared with the centred rows in long double.
#include "solvers/svd/pca.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "solvers/cluster/kmeans_starts.hpp"
#include "tests/solvers/svd_oracle.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class In>
class Pca : public ::testing::Test {
  protected:
    using T = centre_t<In>;
    using Columns = std::vector<std::vector<long double>>;

    /// Correlated columns with standard deviations from 1 down to `least`, around `offset`.
    Global<In> points(std::int64_t rows, int cols, double least, double offset) {
        std::normal_distribution<double> normal;
        std::vector<double> mix(static_cast<std::size_t>(cols * cols));
        std::generate(mix.begin(), mix.end(), [&] { return normal(generator); });
        Global<In> x(rows, cols);
        std::vector<double> raw(static_cast<std::size_t>(cols));
        for (std::int64_t i = 0; i < rows; ++i) {
            for (int p = 0; p < cols; ++p) {
                raw[static_cast<std::size_t>(p)] =
                    normal(generator) * std::pow(least, p / std::max(cols - 1.0, 1.0));
            }
            for (int j = 0; j < cols; ++j) {
                double value = offset * (1 + j);
                for (int p = 0; p < cols; ++p) {
                    value += mix[static_cast<std::size_t>(j * cols + p)] *
                             raw[static_cast<std::size_t>(p)];
                }
                x(i, j) = reference::converted<In>(value);
            }
        }
        return x;
    }
    /// The mean of a column, as the sum of its first element and a small number.
    struct Mean {
        long double first = 0;
        long double rest = 0;
    };
    /// The columns minus their means, which are returned too.
    static Columns centred(const Global<In>& x, std::vector<Mean>& means) {
        Columns columns(static_cast<std::size_t>(x.cols));
        means.assign(columns.size(), {});
        for (std::size_t j = 0; j < columns.size(); ++j) {
            means[j].first = reference::converted<double>(x(0, static_cast<int>(j)));
            for (std::int64_t i = 0; i < x.rows; ++i) {
                const double value = reference::converted<double>(x(i, static_cast<int>(j)));
                columns[j].push_back(value - means[j].first);
                means[j].rest += columns[j].back() / static_cast<long double>(x.rows);
            }
            for (long double& value : columns[j]) {
                value -= means[j].rest;
            }
        }
        return columns;
    }

    PcaResult run(const Global<In>& x, int k = 0) {
        const RowMap map = uneven_map(ctx, x.rows);
        TestBlock<In> block(ctx, x, map, layouts[1]);
        PcaOptions options;
        options.k = k;
        PcaResult result = pca<In>(ctx, map, block.view(), options);
        block.expect_unchanged();
        return result;
    }
    Global<T> scores(const Global<In>& x, const PcaResult& result) {
        const RowMap map = uneven_map(ctx, x.rows);
        TestBlock<In> block(ctx, x, map, layouts[1]);
        BlockVector<T> y(ctx, map, result.components.rows());
        pca_scores<In>(ctx, result, block.view(), y.view());
        return on_all_ranks(ctx, y);
    }

    void check(const Global<In>& x, const PcaResult& result, int k) {
        std::vector<Mean> means;
        const Columns columns = centred(x, means);
        const std::vector<long double> exact = singular_values_of(columns);
        const auto divisor = static_cast<long double>(x.rows - 1);
        long double total = 0;
        for (const long double value : exact) {
            total += value * value / divisor;
        }
        EXPECT_NEAR(result.total_variance, static_cast<double>(total), result.error);
        // In double for rows of any precision.
        const double eps = std::numeric_limits<double>::epsilon();
        EXPECT_LE(result.error, 1000 * eps * static_cast<double>(total));
        ASSERT_EQ(result.components.rows(), k);
        ASSERT_EQ(result.variances.size(), static_cast<std::size_t>(k));
        long double rest = 0;
        const auto all = static_cast<int>(std::min<std::int64_t>(x.rows, x.cols));
        for (int c = 0; c < all; ++c) {
            const auto at = static_cast<std::size_t>(c);
            const long double variance = exact[at] * exact[at] / divisor;
            if (c >= k) {
                rest += variance / (all - k);
                continue;
            }
            EXPECT_NEAR(result.variances[at], static_cast<double>(variance), result.error) << c;
            EXPECT_DOUBLE_EQ(result.singular_values[at],
                             std::sqrt(result.variances[at] * static_cast<double>(divisor)));
            EXPECT_DOUBLE_EQ(result.ratios[at], result.variances[at] / result.total_variance);
        }
        EXPECT_NEAR(result.noise_variance, static_cast<double>(rest), result.error);
        for (std::size_t j = 0; j < means.size(); ++j) {
            const double spread = std::sqrt(result.total_variance);
            const long double rest_of_mean = (means[j].first - result.mean[j]) + means[j].rest;
            EXPECT_LE(std::abs(rest_of_mean),
                      2 * eps * std::abs(means[j].first) + 2 * eps * spread);
            EXPECT_NEAR(result.mean_rest[j], static_cast<double>(rest_of_mean), 4 * eps * spread);
        }
        check_components(result, columns, divisor);
        check_scores(x, result, columns);
    }
    /// Orthonormal rows, each with the variance that belongs to it.
    void check_components(const PcaResult& result, const Columns& columns, long double divisor) {
        const SmallMatrix<double>& v = result.components;
        for (int c = 0; c < v.rows(); ++c) {
            for (int d = 0; d <= c; ++d) {
                long double sum = 0;
                for (int j = 0; j < v.cols(); ++j) {
                    sum += static_cast<long double>(v(c, j)) * v(d, j);
                }
                EXPECT_NEAR(static_cast<double>(sum), c == d ? 1 : 0, 5e-14);
            }
            long double squares = 0;
            for (std::size_t i = 0; i < columns[0].size(); ++i) {
                long double score = 0;
                for (int j = 0; j < v.cols(); ++j) {
                    score += columns[static_cast<std::size_t>(j)][i] * v(c, j);
                }
                squares += score * score;
            }
            EXPECT_NEAR(static_cast<double>(squares / divisor),
                        result.variances[static_cast<std::size_t>(c)], 2 * result.error);
            // The first of the moduli that agree with the largest to a millionth decides.
            double largest = 0;
            for (int j = 0; j < v.cols(); ++j) {
                largest = std::max(largest, std::abs(v(c, j)));
            }
            int deciding = 0;
            while (std::abs(v(c, deciding)) < (1 - 1e-6) * largest) {
                ++deciding;
            }
            EXPECT_GT(v(c, deciding), 0);
        }
    }
    void check_scores(const Global<In>& x, const PcaResult& result, const Columns& columns) {
        const Global<T> found = scores(x, result);
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int c = 0; c < found.cols; ++c) {
                long double score = 0;
                long double size = 0;
                for (int j = 0; j < x.cols; ++j) {
                    const long double value =
                        columns[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)];
                    score += value * result.components(c, j);
                    size += std::abs(value);
                }
                EXPECT_NEAR(
                    static_cast<double>(found(i, c)), static_cast<double>(score),
                    20 * static_cast<double>(epsilon_v<T>) * (static_cast<double>(size) + 1))
                    << i << ", " << c;
            }
        }
    }

    std::mt19937_64 generator = make_generator();
    Context ctx = make_context();
};

struct PointName {
    template <class In>
    static std::string GetName(int) {
        return std::string(1, letter(dtype_v<In>));
    }
};
using PointTypes = ::testing::Types<float, double, half_t, bfloat16_t>;
TYPED_TEST_SUITE(Pca, PointTypes, PointName);

TYPED_TEST(Pca, FindsComponentsVariancesAndScores) {
    // Numbers of 2 bytes would lose all digits of a spread that is small against the mean.
    const double offset = sizeof(TypeParam) == 2 ? 8 : sizeof(TypeParam) == 4 ? 3e3 : 1e10;
    struct Case {
        std::int64_t rows;
        int cols;
        int k;
        double mean;  // rows around 0 are not centred before their products are formed
    };
    for (const Case& each : std::vector<Case>{{2, 1, 0, offset},
                                              {3, 7, 2, offset},
                                              {100, 5, 3, offset},
                                              {700, 12, 0, offset},
                                              {333, 70, 9, offset},
                                              {6000, 5, 0, 0},
                                              {300, 30, 9, 0}}) {
        SCOPED_TRACE(::testing::Message() << each.rows << " x " << each.cols);
        const Global<TypeParam> x = this->points(each.rows, each.cols, 1e-3, each.mean);
        const PcaResult result = this->run(x, each.k);
        const int all = static_cast<int>(std::min<std::int64_t>(each.rows, each.cols));
        this->check(x, result, each.k == 0 ? all : each.k);
        EXPECT_EQ(result.passes, 1);
    }
}

/// One pass reads the elements of X once; no other operation has more rows than the sample.
TYPED_TEST(Pca, ReadsEveryElementOnce) {
    const Global<TypeParam> x = this->points(5000, 7, 1, 50);
    const RowMap map = uneven_map(this->ctx, x.rows);
    TestBlock<TypeParam> block(this->ctx, x, map, layouts[1]);
    this->ctx.ledger().clear();
    EXPECT_EQ(pca<TypeParam>(this->ctx, map, block.view()).passes, 1);
    double bytes = 0;
    for (const KernelRecord& record : this->ctx.ledger().records()) {
        if (record.call.rows > 256) {
            EXPECT_EQ(std::string(record.call.name), "shifted_gram");
            bytes += record.bytes;
        }
    }
    EXPECT_EQ(bytes, static_cast<double>(map.local_rows() * 7) * sizeof(TypeParam));
}

TYPED_TEST(Pca, TakesASecondPassIfTheSampleIsNotRepresentative) {
    // The rows of the sample that pca() takes first are far from all others.
    const std::int64_t rows = 20000;
    Global<double> numbers(rows, 1);
    for (std::int64_t i = 0; i < rows; ++i) {
        numbers(i, 0) = static_cast<double>(i);
    }
    const RowMap map = uneven_map(this->ctx, rows);
    TestBlock<double> block(this->ctx, numbers, map, layouts[0]);
    const SmallMatrix<double> sample = sample_rows<double>(this->ctx, map, block.view(), 256, 1);
    Global<TypeParam> x = this->points(rows, 3, 1, 0);
    for (int s = 0; s < sample.rows(); ++s) {
        const auto row = static_cast<std::int64_t>(sample(s, 0));
        x(row, 1) = reference::converted<TypeParam>(3e4);
    }
    const PcaResult result = this->run(x);
    EXPECT_EQ(result.passes, 2);
    this->check(x, result, 3);
}

TYPED_TEST(Pca, TakesConstantColumns) {
    Global<TypeParam> x = this->points(90, 4, 1, 0);
    for (std::int64_t i = 0; i < x.rows; ++i) {
        x(i, 1) = reference::converted<TypeParam>(0.1);
    }
    this->check(x, this->run(x, 4), 4);
    EXPECT_LE(this->run(x, 4).variances.back(), 1e-14);
    Global<TypeParam> same(30, 2, [] { return reference::converted<TypeParam>(3.3); });
    const PcaResult none = this->run(same);
    EXPECT_EQ(none.total_variance, 0);
    EXPECT_EQ(none.ratios, std::vector<double>(2, 0.0));
    this->check_components(none, {std::vector<long double>(30), std::vector<long double>(30)}, 29);
}

/// Numbers times a power of two have the same components and ratios, and singular values times that
/// power, also where variances leave the range of double. The numbers without it are checked
/// against long double.
TYPED_TEST(Pca, TakesNumbersWhoseSquaresLeaveTheRange) {
    using Exponents = std::vector<int>;
    const Global<TypeParam> x = this->points(400, 5, 1e-3, 2);
    const PcaResult plain = this->run(x, 3);
    this->check(x, plain, 3);
    for (const int exponent : sizeof(TypeParam) == 8   ? Exponents{-950, -700, -560, 520, 800, 1000}
                              : sizeof(TypeParam) == 4 ? Exponents{-83, 83}
                                                       : Exponents{3}) {
        SCOPED_TRACE(exponent);
        Global<TypeParam> scaled = x;
        for (TypeParam& value : scaled.values) {
            value = reference::converted<TypeParam>(
                std::ldexp(reference::converted<double>(value), exponent));
        }
        const PcaResult result = this->run(scaled, 3);
        EXPECT_EQ(result.passes, sizeof(TypeParam) < 8 ? 1 : exponent < -900 ? 3 : 2);
        const auto unscaled = [&](double value) { return std::ldexp(value, -exponent); };
        for (std::size_t c = 0; c < 3; ++c) {
            const double value = plain.singular_values[c];
            EXPECT_NEAR(unscaled(result.singular_values[c]), value, 1e-12 * value) << c;
            EXPECT_NEAR(result.ratios[c], plain.ratios[c], 1e-12 * plain.ratios[c]) << c;
            const double variance = std::ldexp(plain.variances[c], 2 * exponent);
            if (std::isinf(variance)) {
                EXPECT_EQ(result.variances[c], variance);
            } else {
                EXPECT_NEAR(result.variances[c], variance, 1e-12 * variance + result.error);
            }
            for (int j = 0; j < x.cols; ++j) {
                EXPECT_NEAR(result.components(static_cast<int>(c), j),
                            plain.components(static_cast<int>(c), j), 1e-10);
                EXPECT_NEAR(unscaled(result.mean[static_cast<std::size_t>(j)]),
                            plain.mean[static_cast<std::size_t>(j)], 1e-12);
            }
        }
        EXPECT_TRUE(result.error > 0);
    }
}

TYPED_TEST(Pca, RefusesBadInputOnAllRanks) {
    const auto message = [&](Global<TypeParam> x, int k) {
        try {
            this->run(x, k);
        } catch (const Error& error) {
            EXPECT_TRUE(error.collective() || this->ctx.comm().size() == 1);
            return std::string(error.what());
        }
        return std::string("no error");
    };
    Global<TypeParam> x = this->points(20, 5, 1, 0);
    EXPECT_EQ(message(x, 6),
              "pca: k = 6 components, but 20 rows of 5 columns have 1 to 5 (0: all of them)");
    EXPECT_EQ(message(this->points(3, 5, 1, 0), 4),
              "pca: k = 4 components, but 3 rows of 5 columns have 1 to 3 (0: all of them)");
    EXPECT_EQ(message(this->points(1, 5, 1, 0), 1),
              "pca: X has 1 rows and 5 columns; at least 2 rows and 1 column are needed");
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        x(13, 2) = reference::converted<TypeParam>(bad);
        EXPECT_EQ(message(x, 2),
                  "pca: column 2 of X (counted from 0) has NaN, infinity or a difference from the "
                  "mean that overflows");
    }
}

}  // namespace
}  // namespace quiver::test
