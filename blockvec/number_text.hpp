// SPDX-License-Identifier: BSD-3-Clause
// Numbers as people and Fortran programs write them: one rule for files and for options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace quiver {

/// The text without a '+' in front of a number, which std::from_chars does not take.
constexpr std::string_view without_plus(std::string_view text) {
    const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
    return text.substr(plus ? 1 : 0);
}

/// The whole text as a decimal number: digits with or without a point, exponent after e, E, d or D
/// (Fortran's), a sign in front of each; "inf" and "nan". What is too large for a double becomes
/// an infinity, what is too small the nearest double. Returns invalid_argument, without touching
/// `value`, for what is no number. Does not depend on the locale.
std::errc parse_real(std::string_view text, double& value);

/// The whole text as a whole number: digits with or without a sign. Returns invalid_argument or
/// result_out_of_range, without touching `value`, for what is none or does not fit.
std::errc parse_whole(std::string_view text, std::int64_t& value);

/// A number as messages show it, three digits.
std::string number_text(double value);

}  // namespace quiver
