// SPDX-License-Identifier: BSD-3-Clause
// Conversions between numbers and text: one parser for files and options, and the format of
// messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace quiver {

/// The text without a leading '+', which std::from_chars rejects.
constexpr std::string_view without_plus(std::string_view text) {
    const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
    return text.substr(plus ? 1 : 0);
}

/// Parses the whole text as a decimal number: digits with or without a point, an exponent after e,
/// E, d or D (Fortran), an optional sign before the digits and before the exponent; also "inf" and
/// "nan". A magnitude above the range of double becomes infinity, a magnitude below the range
/// becomes 0. Returns invalid_argument, without changing `value`, if the text is not a number.
/// Independent of the locale.
std::errc parse_real(std::string_view text, double& value);

/// Parses the whole text as an integer: digits with an optional sign. Returns invalid_argument or
/// result_out_of_range, without changing `value`, if the text is not an integer or does not fit.
std::errc parse_whole(std::string_view text, std::int64_t& value);

/// Formats a number for messages, with `digits` significant digits and with an exponent if the
/// number is small or large.
std::string number_text(double value, int digits = 3);

}  // namespace quiver
