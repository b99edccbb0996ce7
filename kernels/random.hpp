// SPDX-License-Identifier: BSD-3-Clause
// Random blocks from a counter-based generator.
#pragma once

#include <array>
#include <cstdint>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"

namespace quiver {

/// Four 32-bit words of Philox4x32-10 for a counter and a key.
/// Source: Salmon, Moraes, Dror, Shaw, SC 2011, section 3.2.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A number in [0, 1) with 53 random bits, which depends on (seed, row, column) only. It gives
/// generated matrices a disorder that is the same on any number of ranks.
double uniform(std::uint64_t seed, std::int64_t row, std::int64_t column);

/// X(i, j) uniform in [-1, 1) (real and imaginary part each). The value depends on (seed, first_row
/// + i, first_column + j) and the scalar type only. The global block is therefore the same, bit for
/// bit, for any number of ranks and threads and in either place. Element (row, column) uses the
/// four words of philox({row low, row high, column, 0}, {seed low, seed high}): double from words 0
/// and 1 (53 high bits), float from word 0 (24 high bits), imaginary parts from words 2 (and 3).
/// `first_row` is the global index of the view's row 0.
template <class T>
void fill_random(Context& ctx, std::uint64_t seed, std::int64_t first_row, int first_column,
                 BlockView<T> x);

template <class T>
void fill_random(Context& ctx, std::uint64_t seed, BlockVector<T>& x) {
    fill_random(ctx, seed, x.row_map().first_row(), 0, x.view());
}

}  // namespace quiver
