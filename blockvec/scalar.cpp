// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/scalar.hpp"

#include <bit>

namespace quiver {

half_t to_half(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (word >> 16) & 0x8000u;
    const std::uint32_t magnitude = word & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {  // NaN: keep it quiet
        return {static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu))};
    }
    if (magnitude >= 0x47800000u) {  // 2^16 and above, infinity included
        return {static_cast<std::uint16_t>(sign | 0x7c00u)};
    }
    if (magnitude >= 0x38800000u) {  // normal range: rebias, round to nearest even
        const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
        return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
    }
    // Subnormal: adding 0.5 aligns the last bit of the result with the last bit of a float, so that
    // the hardware rounds.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t fraction = std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u;
    return {static_cast<std::uint16_t>(sign | fraction)};
}

float to_float(half_t value) {
    const std::uint32_t sign = (std::uint32_t{value.bits} & 0x8000u) << 16;
    const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
    const std::uint32_t fraction = value.bits & 0x3ffu;
    if (exponent == 0x1fu) {
        return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    }
    if (exponent == 0) {  // fraction * 2^-24, exact in float
        const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

bfloat16_t to_bfloat16(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
        return {static_cast<std::uint16_t>((word >> 16) | 0x40u)};
    }
    return {static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16)};
}

float to_float(bfloat16_t value) {
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

char letter(Dtype dtype) {
    return "sdczhb"[static_cast<int>(dtype)];
}

}  // namespace quiver
