// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/number_text.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace quiver {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(NumberText, RealNumbersAreReadAsPeopleAndFortranWriteThem) {
    struct Case {
        const char* text;
        double value;
    };
    for (const Case& good :
         {Case{"0", 0},        {"3", 3},
          {"+3", 3},           {"-3", -3},
          {"1.5", 1.5},        {".5", 0.5},
          {"1.", 1},           {"1e3", 1000},
          {"1E+3", 1000},      {"1d3", 1000},
          {"1D3", 1000},       {"+1.5d-2", 0.015},
          {"-1D+2", -100},     {"1.7976931348623157e308", std::numeric_limits<double>::max()},
          {"1e400", infinity}, {"-1d400", -infinity},
          {"1e-400", 0},       {"inf", infinity},
          {"+inf", infinity},  {"-inf", -infinity}}) {
        double value = 42;
        EXPECT_EQ(parse_real(good.text, value), std::errc()) << good.text;
        EXPECT_EQ(value, good.value) << good.text;
    }
    // Numbers out of range because of their digits, or with exponents beyond any integer type.
    const std::string zeros(400, '0');
    double far = 42;
    EXPECT_EQ(parse_real("1" + zeros + "e-9", far), std::errc());
    EXPECT_EQ(far, infinity);
    EXPECT_EQ(parse_real("0." + zeros + "1e9", far), std::errc());
    EXPECT_EQ(far, 0);
    EXPECT_EQ(parse_real("-2e99999999999999999999", far), std::errc());
    EXPECT_EQ(far, -infinity);
    EXPECT_EQ(parse_real("2e-99999999999999999999", far), std::errc());
    EXPECT_EQ(far, 0);
    double nan = 0;
    EXPECT_EQ(parse_real("nan", nan), std::errc());
    EXPECT_TRUE(std::isnan(nan));
    double minus_zero = 1;
    EXPECT_EQ(parse_real("-1d-999", minus_zero), std::errc());
    EXPECT_TRUE(minus_zero == 0 && std::signbit(minus_zero));
}

TEST(NumberText, WhatIsNoRealNumberIsRefusedAndChangesNothing) {
    for (const char* bad : {"", "+", "-", "e3", "d3", "1e", "1d", "1d3d", "1 ", " 1", "1,5",
                            "1.2.3", "+-1", "++1", "--1", "0x10", "1e5x", "one"}) {
        double value = 42;
        EXPECT_EQ(parse_real(bad, value), std::errc::invalid_argument) << bad;
        EXPECT_EQ(value, 42) << bad;
    }
}

TEST(NumberText, WholeNumbersHaveASignAndFit64Bits) {
    struct Case {
        const char* text;
        std::int64_t value;
    };
    for (const Case& good : {Case{"0", 0},
                             {"7", 7},
                             {"+7", 7},
                             {"-7", -7},
                             {"007", 7},
                             {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
                             {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()}}) {
        std::int64_t value = 42;
        EXPECT_EQ(parse_whole(good.text, value), std::errc()) << good.text;
        EXPECT_EQ(value, good.value) << good.text;
    }
    for (const char* bad :
         {"", "+", "+-7", "++7", "7.0", "7e0", "1d3", "7 ", "x", "0x7", "99999999999999999999x"}) {
        std::int64_t value = 42;
        EXPECT_EQ(parse_whole(bad, value), std::errc::invalid_argument) << bad;
        EXPECT_EQ(value, 42) << bad;
    }
    for (const char* large : {"9223372036854775808", "-9223372036854775809",
                              "+99999999999999999"
                              "999"}) {
        std::int64_t value = 42;
        EXPECT_EQ(parse_whole(large, value), std::errc::result_out_of_range) << large;
        EXPECT_EQ(value, 42) << large;
    }
}

TEST(NumberText, ShowsSmallNumbersWithAnExponent) {
    EXPECT_EQ(number_text(4.2e-7), "4.2e-07");
    EXPECT_EQ(number_text(0.5), "0.5");
    EXPECT_EQ(number_text(1.23456789, 6), "1.23457");
    EXPECT_EQ(number_text(0), "0");
}

}  // namespace
}  // namespace quiver
