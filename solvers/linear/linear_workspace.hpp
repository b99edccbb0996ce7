// SPDX-License-Identifier: BSD-3-Clause
// LinearWorkspace: the memory of a linear solver, kept from one solve to the next.
#pragma once

#include <span>
#include <vector>

#include "blockvec/block_vector.hpp"

namespace quiver {

/// Blocks of up to `width` columns, always without gaps between rows whatever their current width,
/// and one wide basis. The memory grows when a solve needs more and never shrinks: a solver that is
/// called again with the same or smaller shapes allocates no block. Use it with one Context only.
template <class T>
class LinearWorkspace {
  public:
    /// Provides `blocks` blocks of `width` columns and a basis of `basis_columns` columns.
    /// Collective when it allocates. Throws MemoryError on all ranks.
    void reserve(Context& ctx, const RowMap& map, int blocks, int width, int basis_columns);

    /// Block `index`, rows x width with ld = width.
    BlockView<T> block(int index, int width);
    /// rows x columns with ld = columns.
    BlockView<T> basis(int columns) { return packed(basis_, columns); }
    /// Keeps only the given `columns` of the `width` columns of block `index`, moved together. One
    /// pass over both.
    void keep(Context& ctx, int index, int width, std::span<const int> columns);
    /// Swaps two blocks without copying.
    void exchange(int a, int b);

  private:
    static BlockView<T> packed(BlockVector<T>& memory, int columns);

    RowMap map_;
    Place place_ = Place::host;
    int width_ = 0;
    /// One block more than requested: the target of keep().
    std::vector<BlockVector<T>> blocks_;
    BlockVector<T> basis_;
};

}  // namespace quiver
