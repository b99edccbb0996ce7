// SPDX-License-Identifier: BSD-3-Clause
// Vectors that A and B both map to zero. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "solvers/eigen/shift_invert/factorisation.hpp"
#include "solvers/eigen/shift_invert/shifted_pencil.hpp"

namespace quiver {

/// Orthonormal vectors v with A v = 0 and B v = 0 up to rounding.
struct CommonNullVectors {
    int count = 0;
    /// True if there may be more than `count`.
    bool at_least = false;
    /// The largest ||A v|| / ||A|| and ||B v|| / ||B||.
    double a = 0;
    double b = 0;
    /// `count` rows, in which the vectors are linearly independent: positive numbers added to these
    /// diagonal entries of B leave no common null vector in the span of the vectors.
    std::vector<std::int64_t> rows;

    /// An error message with the cause and the cure; empty if there are no vectors.
    std::string words() const;
};

/// Searches for up to 8 common null vectors of A and B by inverse iteration with A / ||A|| + c B /
/// ||B||, which is singular for a generic number c only if there are any. The pencil must have a B.
/// `make` returns a factorisation for the pattern of its argument. A vector counts if ||A v|| /
/// ||A|| and ||B v|| / ||B|| are at most max(rounding, 1e-11). Throws the errors of the
/// factorisation. Cost: one factorisation with the pattern of A and B together, 4 solves with 8
/// columns.
template <class W>
CommonNullVectors find_common_null_vectors(
    ShiftedPencil<W>& pencil, double rounding,
    const std::function<std::unique_ptr<Factorisation<W>>(const CsrRows<W>&)>& make);

}  // namespace quiver
