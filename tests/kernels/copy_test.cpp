// SPDX-License-Identifier: BSD-3-Clause
// Tests copy() between all places and precisions.
#include <limits>

#include <gtest/gtest.h>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class U, class T>
struct Pair {
    using from = U;
    using to = T;
};

using Pairs =
    ::testing::Types<Pair<float, float>, Pair<float, double>, Pair<float, half_t>,
                     Pair<float, bfloat16_t>, Pair<double, float>, Pair<double, double>,
                     Pair<double, half_t>, Pair<double, bfloat16_t>, Pair<half_t, float>,
                     Pair<half_t, double>, Pair<half_t, half_t>, Pair<half_t, bfloat16_t>,
                     Pair<bfloat16_t, float>, Pair<bfloat16_t, double>, Pair<bfloat16_t, half_t>,
                     Pair<bfloat16_t, bfloat16_t>, Pair<std::complex<float>, std::complex<float>>,
                     Pair<std::complex<float>, std::complex<double>>,
                     Pair<std::complex<double>, std::complex<float>>,
                     Pair<std::complex<double>, std::complex<double>>>;

struct PairName {
    template <class P>
    static std::string GetName(int) {
        return {letter(dtype_v<typename P::from>), '2', letter(dtype_v<typename P::to>)};
    }
};

/// Numbers of all magnitudes, and numbers at the limits of the formats.
template <class U>
Global<U> values_to_copy(std::mt19937_64& generator, std::int64_t rows, int cols) {
    const double edges[] = {0.0,
                            -0.0,
                            1.0,
                            65504.0,
                            65519.9,
                            65520.0,
                            -1e30,
                            0x1p-24,
                            0x1p-25,
                            0x1.8p-25,
                            0x1.ffcp-15,
                            1 + 0x1p-11,
                            1 + 0x1p-11 + 0x1p-40,
                            1 + 0x3p-11 - 0x1p-40,
                            1 + 0x1p-8 + 0x1p-45,
                            std::numeric_limits<double>::infinity()};
    std::uniform_int_distribution<int> exponent(-20, 18);
    std::size_t next = 0;
    const auto real = [&] {
        return next < std::size(edges)
                   ? edges[next++]
                   : std::ldexp(random_value<double>(generator), exponent(generator));
    };
    return Global<U>(rows, cols, [&] {
        if constexpr (is_complex_v<U>) {
            const double value = real();
            return reference::converted<U>(std::complex<double>(value, real()));
        } else {
            return reference::converted<U>(real());
        }
    });
}

template <class P>
class Copy : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
TYPED_TEST_SUITE(Copy, Pairs, PairName);

TYPED_TEST(Copy, RoundsOnceBetweenAllPlacesAndLayouts) {
    using U = typename TypeParam::from;
    using T = typename TypeParam::to;
    for (const int width : {1, 2, 5, 8, 33, 100}) {
        for (const Layout from : layouts) {
            for (const Layout to : layouts) {
                for (int places = 0; places < 4; ++places) {
                    const Place from_place = places % 2 == 0 ? Place::host : test_place();
                    const Place to_place = places / 2 == 0 ? Place::host : test_place();
                    const std::int64_t rows = (width + from.padding + places) % 2 == 0 ? 1 : 33;
                    const auto x = values_to_copy<U>(this->generator, rows, width);
                    Global<T> expected(rows, width);
                    reference::convert(ConvertArgs<U, T>{rows, width, x.values.data(), width,
                                                         expected.values.data(), width});
                    TestBlock<U> x_block(this->ctx, x, from, from_place);
                    TestBlock<T> y_block(this->ctx, poisoned_global<T>(rows, width), to, to_place);

                    copy(this->ctx, x_block.view(), y_block.view());

                    x_block.expect_unchanged();
                    expect_same_bits(y_block.result(), expected);
                }
            }
        }
    }
}

TYPED_TEST(Copy, KeepsNaNAndEmptyBlocks) {
    using U = typename TypeParam::from;
    using T = typename TypeParam::to;
    TestBlock<U> x(this->ctx, poisoned_global<U>(1, 1), layouts[0], this->ctx.place());
    TestBlock<T> y(this->ctx, Global<T>(1, 1), layouts[0], Place::host);
    copy(this->ctx, x.view(), y.view());
    const T value = y.result()(0, 0);
    if constexpr (is_complex_v<T>) {
        EXPECT_TRUE(std::isnan(value.real()) && std::isnan(value.imag()));
    } else {
        EXPECT_TRUE(std::isnan(reference::converted<float>(value)));
    }
    copy(this->ctx, x.view().row_range(0, 0), y.view().row_range(0, 0));
    copy(this->ctx, x.view().columns(0, 0), y.view().columns(0, 0));
}

TEST(CopyOnTheHost, RefusesDeviceMemoryWithoutADevice) {
    Context ctx;
    double values[4] = {};
    const BlockView<double> host(values, 2, 2, 2);
    const BlockView<double> device(values + 4, 2, 2, 2, Place::device);
    EXPECT_THROW(copy(ctx, host, device), UnsupportedError);
}

}  // namespace
}  // namespace quiver::test
