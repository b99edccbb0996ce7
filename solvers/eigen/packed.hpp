// SPDX-License-Identifier: BSD-3-Clause
// Blocks without gaps between their rows. Private to solvers/eigen.
#pragma once

#include "blockvec/block_vector.hpp"

namespace quiver {

/// The same memory as a block of `width` columns side by side, without a gap between the rows:
/// products read whole lines. What the memory held is another matrix then.
template <class T>
BlockView<T> packed(BlockVector<T>& block, int width) {
    const BlockView<T> all = block.columns(0, width);
    return {all.data, all.rows, width, width, all.place};
}

}  // namespace quiver
