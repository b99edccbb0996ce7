// SPDX-License-Identifier: BSD-3-Clause
// BlockVector: a distributed rows x width block of vectors that owns its memory.
#pragma once

#include <utility>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// This rank's rows of a global block of vectors, row-major, in host or device memory. The row
/// stride is the capacity; the width may change up to the capacity without reallocation. New memory
/// is uninitialised. Movable: a moved-from block keeps its row map and has width and capacity 0.
/// Not copyable: copy() of kernels/column_ops.hpp copies a block, also between places and
/// precisions; fill_random() of kernels/random.hpp fills it.
template <class T>
class BlockVector {
  public:
    BlockVector() = default;
    /// Allocates in the place of the Context. A capacity below the width means the width. Throws
    /// ShapeError for a negative width or capacity, MemoryError.
    BlockVector(const Context& ctx, RowMap map, int width, int capacity = 0)
        : BlockVector(ctx, std::move(map), width, capacity, ctx.place()) {}
    BlockVector(const Context& ctx, RowMap map, int width, int capacity, Place place);
    BlockVector(BlockVector&& other) noexcept
        : map_(other.map_),
          width_(std::exchange(other.width_, 0)),
          capacity_(std::exchange(other.capacity_, 0)),
          place_(other.place_),
          buffer_(std::move(other.buffer_)) {}
    BlockVector& operator=(BlockVector&& other) noexcept {
        map_ = other.map_;
        width_ = std::exchange(other.width_, 0);
        capacity_ = std::exchange(other.capacity_, 0);
        place_ = other.place_;
        buffer_ = std::move(other.buffer_);
        return *this;
    }
    ~BlockVector() = default;

    const RowMap& row_map() const { return map_; }
    std::int64_t rows() const { return map_.local_rows(); }
    int width() const { return width_; }
    int capacity() const { return capacity_; }
    Place place() const { return place_; }
    /// Makes the block consist of columns 0 .. width - 1; the contents of memory stay. Throws
    /// ShapeError for a negative width or one above the capacity.
    void set_width(int width);

    BlockView<T> view() { return {data(), rows(), width_, capacity_, place_}; }
    BlockView<const T> view() const { return {data(), rows(), width_, capacity_, place_}; }
    /// A view of columns first .. first + count - 1, which may lie anywhere within the capacity.
    /// Throws ShapeError for columns outside the capacity.
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
