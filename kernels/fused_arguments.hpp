// SPDX-License-Identifier: BSD-3-Clause
// The check of the arguments of Operator::apply_fused(). Private to kernels/.
#pragma once

#include <string>

#include "blockvec/shape.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// Throws ShapeError unless the shapes and places of X, Y, the shifts and the dots match.
template <class T>
void check_fused(const Context& ctx, const RowMap& map, const BlockView<const T>& x,
                 const BlockView<T>& y, const ApplyOptions<T>& options) {
    constexpr const char* operation = "apply_fused";
    require_operand(ctx, x, operation, "X");
    require_operand(ctx, y, operation, "Y");
    require_shape(
        x.rows == map.local_rows() && y.rows == x.rows && y.cols == x.cols, operation,
        "X and Y are not (rows of this rank) x (one width)",
        [&] { return std::to_string(map.local_rows()) + " rows; " + describe("X", x, "Y", y); });
    require_shape(!overlap(x, y), operation, "X and Y overlap",
                  [&] { return describe("X", x, "Y", y); });
    const auto width = static_cast<std::size_t>(x.cols);
    const std::size_t shifts = options.shift.size();
    require_shape(
        shifts <= 1 || shifts == width, operation,
        "the number of shifts is neither one nor the number of columns",
        [&] { return std::to_string(shifts) + " shifts, " + std::to_string(width) + " columns"; });
    for (const std::size_t size :
         {options.dot_yy.size(), options.dot_xy.size(), options.dot_xx.size()}) {
        require_shape(
            size == 0 || size == width, operation,
            "the number of dots differs from the number of columns",
            [&] { return std::to_string(size) + " dots, " + std::to_string(width) + " columns"; });
    }
}

}  // namespace quiver
