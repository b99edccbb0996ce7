// SPDX-License-Identifier: BSD-3-Clause
// Conversions between views and Eigen matrices. Opt-in: no other public header includes Eigen.
#pragma once

#include <complex>
#include <type_traits>

#include <Eigen/Core>

#include "blockvec/error.hpp"
#include "blockvec/view.hpp"

namespace quiver {

namespace eigen_interop {

template <class Derived>
auto view_of(Derived& derived) {
    static_assert(Derived::IsRowMajor || Derived::ColsAtCompileTime == 1,
                  "quiver views are row-major: use Eigen::RowMajor");
    static_assert((static_cast<unsigned>(Derived::Flags) & Eigen::DirectAccessBit) != 0,
                  "as_view: an expression has no elements in memory; evaluate it first");
    if (derived.cols() > 1 && derived.innerStride() != 1) {
        throw ShapeError("as_view: the elements of a row are not contiguous");
    }
    const Eigen::Index ld =
        derived.cols() == 1 && !Derived::IsRowMajor ? derived.innerStride() : derived.outerStride();
    using Element = std::remove_pointer_t<decltype(derived.data())>;
    return BlockView<Element>(derived.data(), derived.rows(), static_cast<int>(derived.cols()), ld);
}

}  // namespace eigen_interop

/// A host view of a row-major Eigen matrix, map or block (any outer stride), sharing its memory:
/// `as_view(matrix)`, `as_view(matrix.middleCols(4, 8))`. A const matrix, and maps and blocks of a
/// const matrix, give a BlockView<const T>. Throws ShapeError if the elements of a row are not
/// contiguous.
template <class Derived>
auto as_view(Eigen::MatrixBase<Derived>& matrix) {
    return eigen_interop::view_of(matrix.derived());
}
template <class Derived>
auto as_view(const Eigen::MatrixBase<Derived>& matrix) {
    return eigen_interop::view_of(matrix.derived());
}
/// As above for a temporary block or map: the view stays valid as long as the memory of the
/// elements.
template <class Derived>
auto as_view(Eigen::MatrixBase<Derived>&& matrix) {
    return eigen_interop::view_of(matrix.derived());
}

/// An Eigen map of a host view, sharing its memory. Throws ShapeError for a device view.
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

}  // namespace quiver
