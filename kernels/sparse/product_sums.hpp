// SPDX-License-Identifier: BSD-3-Clause
// Checksums that a sparse product forms of the rows that it reads and writes. Private to the
// products and their checks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/checksum_kinds.hpp"

namespace quiver {

/// The checksums that a product forms of the rows that it reads and writes: the kinds of
/// kernels/checksum_kinds.hpp, summed over all rows of the rank. The sums of a block are stored in
/// the place of the blocks as kinds x 2 x line real numbers, where line is the width (twice the
/// width for complex scalars). A sum is the first line plus the second line of its kind. The second
/// line holds the rounding errors of all additions except those within a group of rows (8 rows on
/// the host, at most 64 rows of the lanes of a warp on a device). Kinds that were not requested
/// have undefined values. A null pointer omits the sums of that block.
struct SpmmvSums {
    static constexpr int kinds = checksum_kinds(true);
    const double* weights = nullptr;  // own x 2 numbers, complex: pairs
    int log_chunk = 0;
    /// X before the product; the plain and mixed kinds only if plain_of_x. The leaf of a device
    /// sets it to null if it does not form them.
    double* x = nullptr;
    /// Y before the product, without the kinds with weights. On the host only.
    double* old = nullptr;
    /// Y after the product; the kinds with weights only if given_of_y.
    double* y = nullptr;
    /// The dots x^H y, of one kind. On a device only.
    double* xy = nullptr;
    bool plain_of_x = false;
    bool given_of_y = false;
    /// Set by the leaves: true once sums are stored. Those of further rows of the product are then
    /// added to them.
    bool stored = false;

    /// On the host, a fault to inject into Y before it is summed: the row (-1: none), the index of
    /// the real number in the row, the bits to flip, and the number before the fault.
    std::int64_t struck_row = -1;
    int struck_real = 0;
    std::uint64_t struck_bits = 0;
    double before = 0;
};

}  // namespace quiver
