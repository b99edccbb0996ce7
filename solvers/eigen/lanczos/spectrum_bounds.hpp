// SPDX-License-Identifier: BSD-3-Clause
// Bounds of a spectrum, from a few block Lanczos steps. Private to solvers/eigen.
#pragma once

#include <cstdint>

#include "kernels/operator.hpp"

namespace quiver {

/// Estimated bounds of an operator's spectrum.
struct SpectrumBounds {
    /// The extreme Ritz values, each moved outwards by its residual norm.
    double low = 0;
    double high = 0;
    /// The largest |Ritz value|.
    double norm = 0;
};

/// Bounds and their cost.
struct CountedBounds {
    SpectrumBounds bounds;
    /// The smallest Ritz value itself.
    double least = 0;
    std::int64_t applications = 0;
};
/// Runs a few block Lanczos steps with `m`. Collective. Cost: 12 products with one column.
template <class T>
CountedBounds bounds_of_spectrum(Context& ctx, Operator<T>& m, std::uint64_t seed);

/// bounds_of_spectrum() of B. Throws IndefiniteError on all ranks, with `method` before its text,
/// if a Ritz value is negative beyond rounding, so that B is not positive semidefinite.
template <class T>
CountedBounds bounds_of_mass(Context& ctx, Operator<T>& b, std::uint64_t seed, const char* method);

}  // namespace quiver
