// SPDX-License-Identifier: BSD-3-Clause
// Where a spectrum lies, from a few block Lanczos steps. Private to solvers/eigen.
#pragma once

#include <cstdint>

#include "kernels/operator.hpp"

namespace quiver {

/// What some Lanczos steps tell of an operator's spectrum.
struct SpectrumBounds {
    /// The extreme Ritz values, each moved outwards by its residual.
    double low = 0;
    double high = 0;
    /// The largest |Ritz value|.
    double norm = 0;
};

/// Bounds and what they cost.
struct CountedBounds {
    SpectrumBounds bounds;
    /// The least Ritz value itself.
    double least = 0;
    std::int64_t applications = 0;
};
/// Some block Lanczos steps. Collective.
template <class T>
CountedBounds bounds_of_spectrum(Context& ctx, Operator<T>& m, std::uint64_t seed);

}  // namespace quiver
