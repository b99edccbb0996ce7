// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/random.hpp"

#include "blockvec/scalar_list.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace quiver {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
    return reference::philox(counter, key);
}

double uniform(std::uint64_t seed, std::int64_t row, std::int64_t column) {
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
    const auto r = static_cast<std::uint64_t>(row);
    const auto c = static_cast<std::uint64_t>(column);
    // The high bit of the last counter word is set here and 0 in fill_random. These numbers are
    // therefore independent of a random block with the same seed.
    const auto words =
        philox({low(r), high(r), low(c), high(c) ^ 0x80000000u}, {low(seed), high(seed)});
    const std::uint64_t bits = ((std::uint64_t{words[0]} << 32) | words[1]) >> 11;
    return static_cast<double>(bits) * 0x1p-53;
}

template <class T>
void fill_random(Context& ctx, std::uint64_t seed, std::int64_t first_row, int first_column,
                 BlockView<T> x) {
    constexpr const char* operation = operations::fill_random.name;
    require_operand(ctx, x, operation, "X");
    require_shape(first_row >= 0 && first_column >= 0, operation, "a first index is negative", [&] {
        return "row " + std::to_string(first_row) + ", column " + std::to_string(first_column);
    });
    if (x.empty()) {
        return;
    }
    dispatch<operations::fill_random, T>(ctx, [&](const auto& kernel) {
        kernel(RandomArgs<T>{x.rows, x.cols, seed, first_row, first_column, x.data, x.ld});
    });
}

#define QUIVER_INSTANTIATE(T) \
    template void fill_random(Context&, std::uint64_t, std::int64_t, int, BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
