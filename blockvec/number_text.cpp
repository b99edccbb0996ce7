// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>

namespace quiver {
namespace {

/// True if an out-of-range number is too small, false if it is too large, judged by the exponent
/// and the position of the first nonzero digit.
bool is_tiny(std::string_view number) {
    const std::size_t e = number.find_first_of("eE");
    const std::string_view mantissa = number.substr(0, e);
    constexpr std::int64_t huge = std::int64_t{1} << 60;
    std::int64_t exponent = 0;
    if (e != std::string_view::npos &&
        parse_whole(number.substr(e + 1), exponent) == std::errc::result_out_of_range) {
        exponent = number[e + 1] == '-' ? -huge : huge;
    }
    const std::size_t first = mantissa.find_first_of("123456789");
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    return first == std::string_view::npos ||
           std::clamp(exponent, -huge, huge) + static_cast<std::int64_t>(point) <
               static_cast<std::int64_t>(first);
}

}  // namespace

std::errc parse_real(std::string_view text, double& value) {
    std::string copy(without_plus(text));
    std::replace_if(
        copy.begin(), copy.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    const char* first = copy.data();
    const char* last = first + copy.size();
    double parsed = 0;
    const auto [stop, code] = std::from_chars(first, last, parsed);
    if (stop != last || code == std::errc::invalid_argument) {
        return std::errc::invalid_argument;
    }
    if (code == std::errc::result_out_of_range) {
        parsed = is_tiny(copy) ? 0 : std::numeric_limits<double>::infinity();
        parsed = *first == '-' ? -parsed : parsed;
    }
    value = parsed;
    return {};
}

std::errc parse_whole(std::string_view text, std::int64_t& value) {
    const std::string_view digits = without_plus(text);
    const char* last = digits.data() + digits.size();
    std::int64_t parsed = 0;
    const auto [stop, code] = std::from_chars(digits.data(), last, parsed);
    if (code != std::errc::invalid_argument && stop != last) {
        return std::errc::invalid_argument;
    }
    if (code == std::errc()) {
        value = parsed;
    }
    return code;
}

std::string number_text(double value, int digits) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.*g", std::min(digits, 17), value);
    return text;
}

}  // namespace quiver
