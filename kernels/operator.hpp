// SPDX-License-Identifier: BSD-3-Clause
// Operator: what a solver sees of a matrix.
#pragma once

#include <span>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// The options of one fused application Y = alpha (A - shift) X + beta Y.
template <class T>
struct ApplyOptions {
    T alpha = T(1);
    T beta = T(0);
    /// Empty: no shift; one element: the same for all columns; width elements: one per column.
    std::span<const T> shift = {};
    /// Where wanted (width elements each, host memory): dot_yy[j] = y_j^H y_j and dot_xy[j] = x_j^H
    /// y_j of the result, summed over all ranks.
    std::span<T> dot_yy = {};
    std::span<T> dot_xy = {};
};

/// A square linear operator on block vectors, distributed as row_map() says. Derive from it to run
/// a solver on matrix-free code: row_map() and apply() are enough.
template <class T>
class Operator {
  public:
    virtual ~Operator() = default;
    /// The rows of x and y that this rank has.
    virtual const RowMap& row_map() const = 0;
    /// Y = A X. Both have local_rows() rows, the same width and the Context's place, and do not
    /// overlap. Collective. On a device: enqueue on ctx.stream().
    virtual void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) = 0;
    /// Y = alpha (A - shift) X + beta Y with column dots. The default composes apply() with column
    /// operations; override it where one pass can do it all.
    virtual void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                             const ApplyOptions<T>& options);
    /// Starts what applications to blocks of these widths (with column dots, too, where `dots`)
    /// need, such as compiling kernels, and returns at once. The first widths come first; widths
    /// below 1 are ignored. An optional hint of a solver that sets itself up; no collective.
    virtual void prepare(Context& ctx, std::span<const int> widths, bool dots = false);
};

}  // namespace quiver
