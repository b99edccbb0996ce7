// SPDX-License-Identifier: BSD-3-Clause
// BlockVector: the owning container, a distributed rows x width block of vectors.
#pragma once

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// This rank's rows of a global block of vectors, row-major, in one place. The row stride is the
/// capacity; the width may change up to it without touching memory. Memory is uninitialised at
/// birth. Movable; a copy is made by copy() of kernels/column_ops.hpp, which also goes between
/// places and precisions; fill_random() of kernels/random.hpp fills it.
template <class T>
class BlockVector {
  public:
    BlockVector() = default;
    /// In the place of the Context. capacity 0 means width. Throws MemoryError.
    BlockVector(const Context& ctx, RowMap map, int width, int capacity = 0)
        : BlockVector(ctx, std::move(map), width, capacity, ctx.place()) {}
    BlockVector(const Context& ctx, RowMap map, int width, int capacity, Place place);

    const RowMap& row_map() const { return map_; }
    std::int64_t rows() const { return map_.local_rows(); }
    int width() const { return width_; }
    int capacity() const { return capacity_; }
    Place place() const { return place_; }
    /// Columns 0 .. width - 1 are the block from now on; what memory holds stays. Throws ShapeError
    /// beyond the capacity.
    void set_width(int width);

    BlockView<T> view() { return {data(), rows(), width_, capacity_, place_}; }
    BlockView<const T> view() const { return {data(), rows(), width_, capacity_, place_}; }
    /// Columns first .. first + count - 1, anywhere within the capacity.
    BlockView<T> columns(int first, int count);
    BlockView<const T> columns(int first, int count) const;
    operator BlockView<T>() { return view(); }
    operator BlockView<const T>() const { return view(); }

  private:
    T* data() const { return buffer_.as<T>(); }
    void check_columns(int first, int count) const;

    RowMap map_;
    int width_ = 0;
    int capacity_ = 0;
    Place place_ = Place::host;
    Buffer buffer_;
};

}  // namespace quiver
