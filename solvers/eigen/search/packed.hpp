// SPDX-License-Identifier: BSD-3-Clause
// A block viewed without gaps between its rows. Private to solvers/eigen.
#pragma once

#include "blockvec/block_vector.hpp"

namespace quiver {

/// The memory of `block` viewed as `width` columns without gaps between the rows, so that products
/// read whole cache lines. Entries written through `block` have other places in this view, so use
/// only one of the two for the same data.
template <class T>
BlockView<T> packed(BlockVector<T>& block, int width) {
    const BlockView<T> all = block.columns(0, width);
    return {all.data, all.rows, width, width, all.place};
}

}  // namespace quiver
