// SPDX-License-Identifier: BSD-3-Clause
// Operator: the interface through which solvers use a matrix.
#pragma once

#include <cstdint>
#include <span>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

template <class T>
struct BlockSums;

/// The options of one fused application Y = alpha (A - shift) X + beta Y.
template <class T>
struct ApplyOptions {
    T alpha = T(1);
    T beta = T(0);
    /// Empty: no shift; one element: the same shift for all columns; width elements: one per
    /// column.
    std::span<const T> shift = {};
    /// If not empty (width elements each, host memory): dot_yy[j] = y_j^H y_j, dot_xy[j] = x_j^H
    /// y_j and dot_xx[j] = x_j^H x_j of the result, summed over all ranks.
    std::span<T> dot_yy = {};
    std::span<T> dot_xy = {};
    std::span<T> dot_xx = {};
    /// The checksums of X and of Y (kernels/block_sums.hpp), or null. An operator that checks its
    /// products uses the known ones instead of forming them, and stores those of X and of the new
    /// Y. Operators without checks ignore them.
    BlockSums<T>* x_sums = nullptr;
    BlockSums<T>* y_sums = nullptr;
    /// True if the caller can repeat the recurrence to which this product belongs. An operator that
    /// repairs its products then keeps no copy of a Y that beta overwrites, and counts a product
    /// that it cannot repair in OperatorFaults::lost.
    bool repeatable = false;
};

/// Forms the dots that `options` requests by passes over X and Y, and sums them over all ranks.
/// Collective.
template <class T>
void form_dots(Context& ctx, BlockView<const T> x, BlockView<const T> y,
               const ApplyOptions<T>& options);

/// The silent faults that an operator with checks has found on this rank since its construction.
struct OperatorFaults {
    /// True if the operator checks its products; the same on all ranks.
    bool checks = false;
    /// True if the operator also repairs the faults that it finds.
    bool repairs = false;
    /// Without `repairs`, all faults found; with `repairs`, the words of memory that audit() could
    /// not repair. A result is not verified if this count grew during its solve.
    std::int64_t left = 0;
    /// Words of memory that audit() has repaired; earlier products may have read the corrupted
    /// words.
    std::int64_t repaired = 0;
    /// Products with ApplyOptions::repeatable whose Y is wrong: the caller repeats the recurrence.
    std::int64_t lost = 0;
};

/// A square linear operator on block vectors, distributed by row_map(). To run a solver on
/// matrix-free code, derive from this class and implement row_map() and apply().
///
/// Errors on one rank. If an operator throws on one rank before a collective call of its own (a
/// halo exchange, an all-reduce), the other ranks wait in that call forever; no solver can prevent
/// this. Comm::agree() throws the error on all ranks, at the cost of one all-reduce; use it for
/// work that may fail and precedes communication:
///
///     ctx.comm().agree([&] { pack(x); });   // may throw on some ranks
///     exchange_halo(ctx.comm());            // all ranks call it, or none
///     multiply(x, y);                       // may throw on some ranks, see below
///
/// The solvers of this library need no agreement for an error after the last collective call of a
/// product, nor for any error of an operator that does not communicate. They catch the error and
/// fill Y with NaN on that rank. The next all-reduce carries the NaN to all ranks, and the solve
/// ends: the failing rank throws the error of the operator, the others throw NumericalError. A rank
/// without rows has no element of Y to fill; an operator that may throw there needs agree(). A
/// direct call of apply() throws on its own rank only.
template <class T>
class Operator {
  public:
    virtual ~Operator() = default;
    /// The distribution of the rows of x and y.
    virtual const RowMap& row_map() const = 0;
    /// Y = A X. Both have local_rows() rows, the same width and the Context's place, and do not
    /// overlap. Collective. On a device, implementations enqueue on ctx.stream().
    virtual void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) = 0;
    /// Y = alpha (A - shift) X + beta Y with column dots. The default composes apply() with column
    /// operations; override it if one pass can compute everything. An override that throws on one
    /// rank must throw before the all-reduce of its dots: the solvers take part in it on behalf of
    /// that rank.
    virtual void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                             const ApplyOptions<T>& options);
    /// Starts to prepare later applications to blocks of these widths (if `dots`, with column dots
    /// too), for instance by compiling kernels. Returns at once. Earlier widths have priority;
    /// widths below 1 are ignored. An optional hint that solvers give at set-up; not collective.
    virtual void prepare(Context& ctx, std::span<const int> widths, bool dots = false);
    /// Compares the memory that products read with its checksums and, if the operator repairs
    /// faults, repairs it. Every solver calls it at its end (solvers/solve_audit.hpp). The default
    /// is a no-op. Not collective.
    virtual void audit(Context& ctx);
    /// The faults found so far; the default has no checks.
    virtual OperatorFaults faults() const { return {}; }
};

}  // namespace quiver
