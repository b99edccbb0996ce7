// SPDX-License-Identifier: BSD-3-Clause
// MatrixView: a non-owning view of a dense matrix of any size, stored by rows or by columns.
#pragma once

#include "blockvec/view.hpp"

namespace quiver {

enum class MatrixOrder : std::uint8_t { row_major, column_major };

/// A rows x cols matrix in memory: element (i, j) is data[i * ld + j] (row_major, ld >= cols) or
/// data[j * ld + i] (column_major, ld >= rows). Trivially copyable. MatrixView<T> converts to
/// MatrixView<const T>, and a BlockView converts to the row-major case.
template <class T>
struct MatrixView {
    T* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t ld = 0;
    MatrixOrder order = MatrixOrder::row_major;
    Place place = Place::host;

    constexpr MatrixView() = default;
    constexpr MatrixView(T* data_, std::int64_t rows_, std::int64_t cols_, std::int64_t ld_,
                         MatrixOrder order_, Place place_ = Place::host)
        : data(data_), rows(rows_), cols(cols_), ld(ld_), order(order_), place(place_) {}
    template <class U>
    requires std::is_same_v<T, U> || std::is_same_v<T, const U>
    constexpr MatrixView(const BlockView<U>& block)
        : MatrixView(block.data, block.rows, block.cols, block.ld, MatrixOrder::row_major,
                     block.place) {}
    template <class U>
    requires std::is_same_v<T, const U>
    constexpr MatrixView(const MatrixView<U>& other)
        : MatrixView(other.data, other.rows, other.cols, other.ld, other.order, other.place) {}

    constexpr bool by_rows() const { return order == MatrixOrder::row_major; }
    /// Distance in elements from (i, j) to (i + 1, j), and to (i, j + 1).
    constexpr std::int64_t row_step() const { return by_rows() ? ld : 1; }
    constexpr std::int64_t col_step() const { return by_rows() ? 1 : ld; }
    /// Number and length of the contiguous lines: rows if row-major, columns if column-major.
    constexpr std::int64_t lines() const { return by_rows() ? rows : cols; }
    constexpr std::int64_t line_length() const { return by_rows() ? cols : rows; }
    /// Element (i, j); host views only.
    constexpr T& operator()(std::int64_t i, std::int64_t j) const {
        return data[i * row_step() + j * col_step()];
    }
    /// The transposed matrix: the same memory in the other order.
    constexpr MatrixView transposed() const {
        return {
            data, cols, rows, ld, by_rows() ? MatrixOrder::column_major : MatrixOrder::row_major,
            place};
    }
    constexpr bool empty() const { return rows == 0 || cols == 0; }
};

}  // namespace quiver
