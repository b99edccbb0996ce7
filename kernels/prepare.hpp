// SPDX-License-Identifier: BSD-3-Clause
// Tells a Context which products a solver is going to make, so that a GPU's kernels are compiled
// on all cores before they are needed, and not one by one where each is.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver {

/// Products of blocks W of some widths among themselves and with a basis V.
struct BlockDemand {
    /// Of this rank.
    std::int64_t rows = 0;
    /// Columns of the blocks W, at least 1: for each, W^H W, W^H Z, W R, and W R with its Gram
    /// matrix.
    std::vector<int> blocks = {};
    /// Columns of V, in the order in which V grows: for each and each block, V^H W and W - V H.
    std::vector<int> bases = {};
    /// Elements from row to row of V.
    std::int64_t stride = 0;
    /// Columns of the results of restarts, V R, from the last of the bases.
    std::vector<int> kept = {};
    /// Also W R + Z S for each block.
    bool pairs = false;
    /// Also V R with as many columns as V, and W^H V and W R with as many columns as V.
    bool rotations = false;
};

/// 1 .. last, in steps of `step` that begin with `step`.
std::vector<int> growing(int last, int step = 1);
/// first .. 1, in steps of one: blocks that lose columns one by one.
std::vector<int> narrowing(int first);
/// A width and its halves, down to 1: blocks whose columns converge one by one.
std::vector<int> shrinking(int width);

/// Starts to compile what is not in a pack or the cache, and returns at once. Without effect on the
/// host. No collective, no error: a kernel that is missing later is compiled then.
template <class T>
void prepare_products(Context& ctx, const BlockDemand& demand);

}  // namespace quiver
