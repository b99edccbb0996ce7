// SPDX-License-Identifier: BSD-3-Clause
// Views of other libraries' memory in one line. Opt-in: nothing else includes Eigen for a user.
#pragma once

#include <complex>

#include <Eigen/Core>

#include "blockvec/error.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// A row-major Eigen matrix, map or block (any outer stride) as a host view:
/// `as_view(matrix)`, `as_view(matrix.middleCols(4, 8))`.
template <class Derived>
auto as_view(Eigen::MatrixBase<Derived>& matrix) {
    static_assert(Derived::IsRowMajor || Derived::ColsAtCompileTime == 1,
                  "quiver views are row-major: use Eigen::RowMajor");
    auto& derived = matrix.derived();
    if (derived.rows() > 1 && derived.cols() > 1 && derived.innerStride() != 1) {
        throw ShapeError("as_view: the elements of a row are not contiguous");
    }
    const Eigen::Index ld =
        derived.cols() == 1 && !Derived::IsRowMajor ? derived.innerStride() : derived.outerStride();
    return BlockView<typename Derived::Scalar>(derived.data(), derived.rows(),
                                               static_cast<int>(derived.cols()), ld);
}
template <class Derived>
auto as_view(Eigen::MatrixBase<Derived>&& matrix) {
    return as_view(matrix);
}

/// The other way: a host view as an Eigen map that shares its memory.
template <class T>
auto as_eigen(const BlockView<T>& view) {
    if (view.place != Place::host) {
        throw ShapeError("as_eigen: the view is in device memory");
    }
    using Value = std::remove_const_t<T>;
    using Matrix = Eigen::Matrix<Value, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using Target = std::conditional_t<std::is_const_v<T>, const Matrix, Matrix>;
    return Eigen::Map<Target, Eigen::Unaligned, Eigen::OuterStride<>>(
        view.data, view.rows, view.cols, Eigen::OuterStride<>(view.ld));
}

/// A caller's pointer: `host_view(p, rows, cols)`, with ld = cols unless given.
template <class T>
BlockView<T> host_view(T* data, std::int64_t rows, int cols, std::int64_t ld = 0) {
    return {data, rows, cols, ld == 0 ? cols : ld, Place::host};
}
template <class T>
BlockView<T> device_view(T* data, std::int64_t rows, int cols, std::int64_t ld = 0) {
    return {data, rows, cols, ld == 0 ? cols : ld, Place::device};
}

}  // namespace quiver
