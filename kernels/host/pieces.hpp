// SPDX-License-Identifier: BSD-3-Clause
// Pieces of operands, converted to the precision of a product, in thread-local buffers.
#pragma once

#include <bit>
#include <type_traits>

#include "kernels/host/block_products.hpp"

namespace quiver::host {

/// Allocates arrays from a workspace, each on its own cache lines.
class Arrays {
  public:
    explicit Arrays(void* workspace) : next_(static_cast<std::byte*>(workspace)) {}
    template <class V>
    V* take(std::size_t count) {
        V* const array = reinterpret_cast<V*>(next_);
        next_ += cache_lines(count * sizeof(V));
        return array;
    }

  private:
    std::byte* next_;
};

inline std::size_t count_of(std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

/// to_float as an inline function without branches, so that loops over it vectorise.
[[gnu::always_inline]] inline float widened(half_t value) {
    const std::uint32_t magnitude = (value.bits & 0x7fffU) << 13;
    const std::uint32_t sign = (value.bits & 0x8000U) << 16;
    // The exponent biases differ by 112. The largest exponent, of infinity and NaN, stays the
    // largest.
    const auto bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t special = magnitude >= 0x0f800000U ? 0x7f800000U : 0U;
    return std::bit_cast<float>(bits | special | sign);
}
[[gnu::always_inline]] inline float widened(bfloat16_t value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Converts rows to another precision.
template <class From, class To>
void convert(std::int64_t rows, int cols, const From* from, std::int64_t ld_from, To* to,
             std::int64_t ld_to) {
    if constexpr (sizeof(From) == 2 && std::is_same_v<To, float>) {
        if (ld_from == cols && ld_to == cols) {  // treat all rows as one long row
            cols = static_cast<int>(rows * cols);
            rows = 1;
        }
        for (std::int64_t r = 0; r < rows; ++r) {
            const From* const source = from + r * ld_from;
            To* const target = to + r * ld_to;
#pragma GCC ivdep
            for (int j = 0; j < cols; ++j) {
                target[j] = widened(source[j]);
            }
        }
    } else {
        convert(1, ConvertArgs<From, To>{rows, cols, from, ld_from, to, ld_to});
    }
}

}  // namespace quiver::host
