// SPDX-License-Identifier: BSD-3-Clause
// BlockView: the operand type of every kernel. Non-owning, row-major, any row stride, host or
// device.
#pragma once

#include <cstdint>
#include <type_traits>

namespace quiver {

/// The memory that a pointer points to.
enum class Place : std::uint8_t { host, device };

inline const char* to_string(Place place) {
    return place == Place::host ? "host" : "device";
}

/// Throws ShapeError: the function `what` was called for rows or columns first .. first + count - 1
/// of a view that has only `size`.
[[noreturn]] void throw_outside(const char* what, std::int64_t first, std::int64_t count,
                                std::int64_t size);

/// A rows x cols row-major matrix in memory: element (i, j) is data[i * ld + j]; ld >= cols, in
/// elements. Trivially copyable; BlockView<T> converts to BlockView<const T>.
template <class T>
struct BlockView {
    T* data = nullptr;
    std::int64_t rows = 0;
    int cols = 0;
    std::int64_t ld = 0;
    Place place = Place::host;

    constexpr BlockView() = default;
    constexpr BlockView(T* data_, std::int64_t rows_, int cols_, std::int64_t ld_,
                        Place place_ = Place::host)
        : data(data_), rows(rows_), cols(cols_), ld(ld_), place(place_) {}
    template <class U>
    requires std::is_same_v<T, const U>
    constexpr BlockView(const BlockView<U>& other)
        : data(other.data), rows(other.rows), cols(other.cols), ld(other.ld), place(other.place) {}

    /// Element (i, j); host views only.
    constexpr T& operator()(std::int64_t i, std::int64_t j) const { return data[i * ld + j]; }
    /// A view of columns first .. first + count - 1, at no cost. Throws ShapeError for columns
    /// outside the view.
    constexpr BlockView columns(int first, int count) const {
        if (first < 0 || count < 0 || first > cols - count) {
            throw_outside("columns", first, count, cols);
        }
        return {data + first, rows, count, ld, place};
    }
    /// A view of rows first .. first + count - 1. Throws ShapeError for rows outside the view.
    constexpr BlockView row_range(std::int64_t first, std::int64_t count) const {
        if (first < 0 || count < 0 || first > rows - count) {
            throw_outside("row_range", first, count, rows);
        }
        return {data + first * ld, count, cols, ld, place};
    }
    constexpr bool empty() const { return rows == 0 || cols == 0; }
};

}  // namespace quiver
