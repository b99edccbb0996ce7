// SPDX-License-Identifier: BSD-3-Clause
// Announces the products of a solver to a Context, so that the kernels for a GPU are compiled on
// all cores in advance, instead of one by one at their first use.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver {

/// Products of blocks W of several widths with each other and with a basis V.
struct BlockDemand {
    /// Rows of this rank.
    std::int64_t rows = 0;
    /// Numbers of columns of the blocks W, at least 1. For each: W^H W, W^H Z, W R, and W R with
    /// its Gram matrix.
    std::vector<int> blocks = {};
    /// Numbers of columns of V, in the order in which V grows. For each, with each block: V^H W and
    /// W - V H.
    std::vector<int> bases = {};
    /// Row stride of V, in elements.
    std::int64_t stride = 0;
    /// Numbers of columns of V R at restarts, where V has the last width of `bases`.
    std::vector<int> kept = {};
    /// If true, also W R + Z S for each block.
    bool pairs = false;
    /// If true, also V R with as many columns as V, and W^H V and W R with as many columns as V.
    bool rotations = false;
};

/// Widths step, 2 step, 3 step, ... up to `last`.
std::vector<int> growing(int last, int step = 1);
/// Widths first, first - 1, ..., 1: blocks that lose one column at a time.
std::vector<int> narrowing(int first);
/// A width and its successive halves, down to 1: blocks whose columns converge one by one.
std::vector<int> shrinking(int width);

/// Starts to compile the kernels that are neither in a pack nor in the cache, and returns at once.
/// A no-op on the host. Not collective; reports no error: a kernel that is still missing at its
/// first use is compiled then.
template <class T>
void prepare_products(Context& ctx, const BlockDemand& demand);

/// Waits until the kernels that this Context is compiling in the background are ready. A sparse
/// product of a new width uses several narrower kernels until then, so a program that measures
/// times calls this after the first product. A no-op on the host. Not collective.
void wait_for_kernels(Context& ctx);

}  // namespace quiver
