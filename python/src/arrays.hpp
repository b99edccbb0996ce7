// SPDX-License-Identifier: BSD-3-Clause
// Views of the arrays that Python passes. The Python layer has checked and converted the arrays, so
// an error here is an error of that layer.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <nanobind/ndarray.h>

#include "blockvec/error.hpp"
#include "blockvec/matrix_view.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"

namespace quiver::python {

namespace nb = nanobind;

using InputArray = nb::ndarray<nb::ro>;
using OutputArray = nb::ndarray<>;

/// The DLPack type of T, also for complex numbers.
template <class T>
constexpr nb::dlpack::dtype dlpack_type() {
    constexpr auto code = std::is_integral_v<T>         ? nb::dlpack::dtype_code::Int
                          : std::is_floating_point_v<T> ? nb::dlpack::dtype_code::Float
                                                        : nb::dlpack::dtype_code::Complex;
    return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * sizeof(T)), 1};
}

/// The place of an array; managed memory of CUDA counts as device memory.
template <class Array>
Place place_of(const Array& array) {
    return array.device_type() == nb::device::cuda::value ||
                   array.device_type() == nb::device::cuda_managed::value
               ? Place::device
               : Place::host;
}

/// The first element of an array of T; throws ShapeError for an array of another type.
template <class T, class Array>
auto* data_of(const Array& array) {
    using Element = std::conditional_t<Array::ReadOnly, const T, T>;
    if (array.dtype() != dlpack_type<T>()) {
        throw ShapeError("quiver: an array has another scalar type than the other arguments");
    }
    auto* bytes = static_cast<char*>(array.data_handle()) + array.byte_offset();
    return static_cast<Element*>(static_cast<void*>(bytes));
}

/// The rows x columns block of an array of one or two dimensions. Throws ShapeError unless the rows
/// are contiguous.
template <class T, class Array>
auto block_of(const Array& array) {
    auto* data = data_of<T>(array);
    if (array.ndim() < 1 || array.ndim() > 2) {
        throw ShapeError("quiver: an array of one or two dimensions is expected");
    }
    const auto rows = static_cast<std::int64_t>(array.shape(0));
    const int cols = array.ndim() == 2 ? static_cast<int>(array.shape(1)) : 1;
    std::int64_t ld = rows > 1 && cols > 0 ? array.stride(0) : cols;
    if (rows == 0) {
        ld = cols;
    }
    if (ld < cols || (cols > 1 && rows > 0 && array.stride(1) != 1)) {
        throw ShapeError("quiver: the rows of a block must be contiguous");
    }
    using Element = std::remove_pointer_t<decltype(data)>;
    return BlockView<Element>(data, rows, cols, ld, place_of(array));
}

/// A matrix whose rows or columns are contiguous. Throws ShapeError for any other layout.
template <class T>
MatrixView<const T> matrix_of(const InputArray& array) {
    if (array.ndim() != 2) {
        throw ShapeError("quiver: an array of two dimensions is expected");
    }
    const auto rows = static_cast<std::int64_t>(array.shape(0));
    const auto cols = static_cast<std::int64_t>(array.shape(1));
    const bool by_rows = cols <= 1 || array.stride(1) == 1;
    const std::int64_t lines = by_rows ? rows : cols;
    const std::int64_t length = by_rows ? cols : rows;
    const std::int64_t ld =
        lines > 1 && length > 0 ? (by_rows ? array.stride(0) : array.stride(1)) : length;
    if (ld < length || (!by_rows && rows > 1 && array.stride(0) != 1)) {
        throw ShapeError("quiver: the rows or the columns of a matrix must be contiguous");
    }
    return {data_of<T>(array),
            rows,
            cols,
            ld,
            by_rows ? MatrixOrder::row_major : MatrixOrder::column_major,
            place_of(array)};
}

/// An empty view for None.
template <class T>
BlockView<const T> optional_block(const std::optional<InputArray>& array) {
    return array ? block_of<T>(*array) : BlockView<const T>{};
}

/// All elements of a contiguous array.
template <class T, class Array>
auto span_of(const Array& array) {
    auto* data = data_of<T>(array);
    return std::span<std::remove_pointer_t<decltype(data)>>(data, array.size());
}

/// The scalar with NumPy's character "f", "d", "F" or "D".
inline Dtype dtype_of(const std::string& character) {
    return character == "f"   ? Dtype::s
           : character == "d" ? Dtype::d
           : character == "F" ? Dtype::c
                              : Dtype::z;
}

}  // namespace quiver::python
