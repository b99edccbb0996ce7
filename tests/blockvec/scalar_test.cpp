// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/scalar.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// A 16-bit format by definition: the value of every bit pattern, in double.
struct Format {
    int exponent_bits;
    int fraction_bits;

    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    int largest_exponent() const { return (1 << exponent_bits) - 1; }
    int exponent(unsigned bits) const {
        return static_cast<int>(bits >> fraction_bits) & largest_exponent();
    }
    int fraction(unsigned bits) const {
        return static_cast<int>(bits) & ((1 << fraction_bits) - 1);
    }
    bool is_nan(unsigned bits) const {
        return exponent(bits) == largest_exponent() && fraction(bits) != 0;
    }
    /// The value of a positive pattern; infinity counts as the next power of two.
    double magnitude(unsigned bits) const {
        const int e = exponent(bits);
        const double hidden = e == 0 ? 0.0 : 1.0;
        return std::ldexp(hidden + std::ldexp(fraction(bits), -fraction_bits),
                          std::max(e, 1) - bias());
    }
    unsigned infinity() const { return static_cast<unsigned>(largest_exponent()) << fraction_bits; }
};

constexpr Format half_format{5, 10};
constexpr Format bfloat16_format{8, 7};

/// Rounds to the nearest pattern, ties to even, by a search among all values.
class Rounding {
  public:
    explicit Rounding(Format format) {
        for (unsigned bits = 0; bits <= format.infinity(); ++bits) {
            values_.push_back(format.magnitude(bits));
        }
    }
    unsigned operator()(float value) const {
        const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
        const double size = std::min(std::abs(static_cast<double>(value)), values_.back());
        const auto above = std::lower_bound(values_.begin(), values_.end(), size);
        auto bits = static_cast<unsigned>(above - values_.begin());
        if (*above != size) {
            const double to_above = *above - size;
            const double to_below = size - *(above - 1);
            if (to_below < to_above || (to_below == to_above && bits % 2 == 1)) {
                --bits;
            }
        }
        return sign | bits;
    }

  private:
    std::vector<double> values_;
};

template <class H>
void expect_every_pattern_to_come_back(Format format, H (*from_float)(float)) {
    for (unsigned bits = 0; bits <= 0xffffu; ++bits) {
        const float value = to_float(H{static_cast<std::uint16_t>(bits)});
        const unsigned again = from_float(value).bits;
        if (format.is_nan(bits)) {
            ASSERT_TRUE(std::isnan(value)) << bits;
            ASSERT_TRUE(format.is_nan(again)) << bits;
            continue;
        }
        ASSERT_EQ(again, bits);
        const unsigned magnitude = bits & 0x7fffu;
        const double expected = magnitude == format.infinity()
                                    ? std::numeric_limits<double>::infinity()
                                    : format.magnitude(magnitude);
        ASSERT_EQ(static_cast<double>(value), bits > 0x7fffu ? -expected : expected) << bits;
        ASSERT_EQ(std::signbit(value), bits > 0x7fffu) << bits;
    }
}

template <class H>
void expect_nearest_even(Format format, H (*from_float)(float)) {
    const Rounding rounding(format);
    const auto check = [&](float value) {
        ASSERT_EQ(from_float(value).bits, rounding(value)) << std::hexfloat << value;
        ASSERT_EQ(from_float(-value).bits, rounding(-value)) << std::hexfloat << -value;
    };
    const float infinity = std::numeric_limits<float>::infinity();
    for (unsigned bits = 0; bits < format.infinity(); ++bits) {
        const double middle = (format.magnitude(bits) + format.magnitude(bits + 1)) / 2;
        const auto tie = static_cast<float>(middle);
        ASSERT_EQ(static_cast<double>(tie), middle);
        check(tie);
        check(std::nextafter(tie, infinity));
        check(std::nextafter(tie, 0.0f));
    }
    auto generator = test::make_generator();
    for (int i = 0; i < 200000; ++i) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
        if (!std::isnan(value)) {
            check(value);
        }
    }
    check(infinity);
    check(std::numeric_limits<float>::max());
    check(std::numeric_limits<float>::denorm_min());
    check(0.0f);
}

TEST(Half, EveryPatternComesBackFromFloat) {
    expect_every_pattern_to_come_back<half_t>(half_format, to_half);
}
TEST(Half, RoundsToNearestWithTiesToEven) {
    expect_nearest_even<half_t>(half_format, to_half);
}
TEST(Half, KeepsNaN) {
    EXPECT_TRUE(half_format.is_nan(to_half(std::numeric_limits<float>::quiet_NaN()).bits));
    EXPECT_TRUE(half_format.is_nan(to_half(std::bit_cast<float>(0x7f800001u)).bits));
    EXPECT_TRUE(half_format.is_nan(to_half(std::bit_cast<float>(0xff800001u)).bits));
}
TEST(Bfloat16, EveryPatternComesBackFromFloat) {
    expect_every_pattern_to_come_back<bfloat16_t>(bfloat16_format, to_bfloat16);
}
TEST(Bfloat16, RoundsToNearestWithTiesToEven) {
    expect_nearest_even<bfloat16_t>(bfloat16_format, to_bfloat16);
}
TEST(Bfloat16, KeepsNaN) {
    EXPECT_TRUE(bfloat16_format.is_nan(to_bfloat16(std::bit_cast<float>(0x7f800001u)).bits));
    EXPECT_TRUE(bfloat16_format.is_nan(to_bfloat16(std::bit_cast<float>(0xffffffffu)).bits));
}

TEST(Dtype, HasBlasLetters) {
    EXPECT_EQ(letter(dtype_v<float>), 's');
    EXPECT_EQ(letter(dtype_v<double>), 'd');
    EXPECT_EQ(letter(dtype_v<std::complex<float>>), 'c');
    EXPECT_EQ(letter(dtype_v<const std::complex<double>>), 'z');
    EXPECT_EQ(letter(dtype_v<half_t>), 'h');
    EXPECT_EQ(letter(dtype_v<bfloat16_t>), 'b');
}

TEST(Dtype, VisitCallsTheTypeOfTheLetter) {
    for (const Dtype dtype : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        EXPECT_EQ(visit_dtype(dtype, []<class T>() { return dtype_v<T>; }), dtype);
    }
}

TEST(Complex, ProductAndConjugateAreTheTextbooks) {
    const std::complex<double> a(3, -2);
    const std::complex<double> b(-5, 7);
    EXPECT_EQ(multiply(a, b), std::complex<double>(-1, 31));
    EXPECT_EQ(conjugate(a), std::complex<double>(3, 2));
    EXPECT_EQ(abs_squared(a), 13.0);
    EXPECT_EQ(multiply(a, conjugate(a)), std::complex<double>(13, 0));
    EXPECT_FALSE(is_finite(std::complex<double>(0, std::nan(""))));
    EXPECT_TRUE(is_finite(a));
}

}  // namespace
}  // namespace quiver
