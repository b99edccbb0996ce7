// SPDX-License-Identifier: BSD-3-Clause
// Tests that the measurements of ceilings do all of the work that they count.
#include "kernels/ceilings.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

constexpr std::int64_t count = 3 << 16;

class CeilingsTest : public ::testing::Test {
  protected:
    BlockVector<double> make(std::int64_t rows) {
        return BlockVector<double>(ctx, RowMap::by_rows(ctx.comm(), rows), 1);
    }
    void put(const std::vector<double>& from, BlockVector<double>& to) {
        copy(ctx, BlockView<const double>(from.data(), std::ssize(from), 1, 1), to.view());
    }
    std::vector<double> get(const BlockVector<double>& from) {
        std::vector<double> to(static_cast<std::size_t>(from.view().rows));
        copy(ctx, from.view(), BlockView<double>(to.data(), std::ssize(to), 1, 1));
        ctx.synchronize();
        return to;
    }

    Context ctx = Context(Comm(), test_place() == Place::device ? Device::cuda() : Device::host());
};

TEST_F(CeilingsTest, EveryStreamTouchesEveryElement) {
    std::vector<double> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 1.0);  // their sums are exact
    auto x = make(count);
    auto y = make(count);
    for (const Traffic traffic : {Traffic::read, Traffic::copy, Traffic::scale}) {
        ASSERT_GT(traffic_forms(ctx, traffic), 0);
        for (int form = 0; form < traffic_forms(ctx, traffic); ++form) {
            put(numbers, x);
            fill(ctx, 0.0, y.view());
            run_traffic(ctx, traffic, form, -2.0, x.view().data, y.view().data, count);
            const std::vector<double> after = get(x);
            const std::vector<double> other = get(y);
            int wrong = 0;
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                wrong += after[i] != (traffic == Traffic::scale ? -2 : 1) * numbers[i];
                wrong += traffic != Traffic::read &&
                         other[i] != (traffic == Traffic::copy ? -2 * numbers[i] : 0);
            }
            EXPECT_EQ(wrong, 0) << static_cast<int>(traffic) << " form " << form;
            if (traffic == Traffic::read) {
                EXPECT_EQ(std::accumulate(other.begin(), other.end(), 0.0),
                          0.5 * count * (count + 1.0))
                    << "form " << form;
            }
        }
    }
    EXPECT_THROW(run_traffic(ctx, Traffic::read, 0, 1, x.view().data, y.view().data, count - 1),
                 UnsupportedError);
}

TEST_F(CeilingsTest, ArithmeticEndsWhereItMust) {
    int ran = 0;
    for (const Arithmetic arithmetic : all_arithmetic) {
        if (!can_run(ctx, arithmetic)) {
            EXPECT_THROW(run_arithmetic(ctx, arithmetic, 1, nullptr), UnsupportedError);
            continue;
        }
        ++ran;
        constexpr std::int64_t steps = 1003;
        const std::int64_t size = arithmetic_results(ctx, arithmetic);
        auto results = make(size);
        fill(ctx, std::nan(""), results.view());
        const double flops = run_arithmetic(ctx, arithmetic, steps, results.view().data);
        EXPECT_GT(flops, 0);
        EXPECT_EQ(run_arithmetic(ctx, arithmetic, 2 * steps, results.view().data), 2 * flops);
        const bool fma = arithmetic <= Arithmetic::double_fma;
        const int k = arithmetic == Arithmetic::double_mma_16x8x8    ? 8
                      : arithmetic == Arithmetic::double_mma_16x8x16 ? 16
                                                                     : 4;
        const double expected = fma ? 2 : 2 * steps * k * 0.7310585786300049 * 0.2689414213699951;
        for (const double result : get(results)) {
            ASSERT_NEAR(result, expected, 1e-6 * expected) << to_string(arithmetic);
        }
    }
    EXPECT_GE(ran, 2) << "every machine computes in single and double";
}

}  // namespace
}  // namespace quiver::test
