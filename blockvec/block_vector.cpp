// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/block_vector.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

std::size_t bytes_of(std::int64_t rows, int capacity, std::size_t element) {
    std::size_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(static_cast<std::size_t>(rows),
                                                 static_cast<std::size_t>(capacity), &bytes) ||
                          __builtin_mul_overflow(bytes, element, &bytes);
    if (overflow) {
        throw MemoryError("block vector: " + std::to_string(rows) + " x " +
                          std::to_string(capacity) + " elements overflow the address space");
    }
    return bytes;
}

}  // namespace

template <class T>
BlockVector<T>::BlockVector(const Context& ctx, RowMap map, int width, int capacity, Place place)
    : map_(std::move(map)), width_(width), capacity_(std::max(width, capacity)), place_(place) {
    if (width < 0 || capacity < 0) {
        throw ShapeError("block vector: width " + std::to_string(width) + ", capacity " +
                         std::to_string(capacity));
    }
    buffer_ =
        ctx.allocate(memory_kind(place), bytes_of(rows(), capacity_, sizeof(T)), "block vector");
}

template <class T>
void BlockVector<T>::set_width(int width) {
    if (width < 0 || width > capacity_) {
        throw ShapeError("block vector: width " + std::to_string(width) +
                         " does not fit the capacity of " + std::to_string(capacity_));
    }
    width_ = width;
}

template <class T>
void BlockVector<T>::check_columns(int first, int count) const {
    if (first < 0 || count < 0 || first > capacity_ - count) {
        throw ShapeError("block vector: " + std::to_string(count) + " columns from column " +
                         std::to_string(first) + " do not fit the capacity of " +
                         std::to_string(capacity_));
    }
}

template <class T>
BlockView<T> BlockVector<T>::columns(int first, int count) {
    check_columns(first, count);
    return {data() + first, rows(), count, capacity_, place_};
}

template <class T>
BlockView<const T> BlockVector<T>::columns(int first, int count) const {
    check_columns(first, count);
    return {data() + first, rows(), count, capacity_, place_};
}

#define QUIVER_INSTANTIATE(T) template class BlockVector<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
template class BlockVector<half_t>;
template class BlockVector<bfloat16_t>;

}  // namespace quiver
