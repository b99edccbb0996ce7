// SPDX-License-Identifier: BSD-3-Clause
// Conversions between views and Eigen matrices. Opt-in: no other public header includes Eigen.
#pragma once

#include <complex>

#include <Eigen/Core>

#include "blockvec/error.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// A host view of a row-major Eigen matrix, map or block (any outer stride), sharing its memory:
/// `as_view(matrix)`, `as_view(matrix.middleCols(4, 8))`. Throws ShapeError if the elements of a
/// row are not contiguous.
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
