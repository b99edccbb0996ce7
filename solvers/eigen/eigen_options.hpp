// SPDX-License-Identifier: BSD-3-Clause
// The options of every eigensolver, and the norms that they take.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "blockvec/scalar.hpp"

namespace quiver {

/// Which end of the spectrum.
enum class Which : std::uint8_t { smallest, largest };

/// The algorithms; automatic lets eigensolve() choose.
enum class Method : std::uint8_t { automatic, lanczos, chebyshev, lobpcg, filter };

struct EigenOptions {
    /// Number of eigenpairs, copies of multiple eigenvalues counted.
    int k = 10;
    Which which = Which::smallest;
    /// Columns that a step multiplies at once, 1 to 32; 0 takes 4, or k if that is smaller.
    int block = 0;
    /// A pair has converged when ||A x - lambda x|| <= tol ||A||, ||x|| = 1. Raised to what the
    /// scalar can attain where it is below that.
    double tol = 1e-10;
    /// Block steps (products with the operator) before the solver gives up.
    std::int64_t max_iterations = 10000;
    /// Seed of the start block and of every random column; the same seed, the same answer.
    std::uint64_t seed = 1;
    /// Columns of the search basis before a restart, at least k + 3 max(block, 2) or all rows; 0
    /// takes max(2 k + 4 block, k + 16 block, 24). A wider one needs fewer steps and more memory.
    int max_basis = 0;
};

/// The norms ||A|| whose squares, and what rounding leaves of them, are normal numbers of T.
template <class T>
struct NormRange {
    double least = std::sqrt(static_cast<double>(std::numeric_limits<real_t<T>>::min())) /
                   static_cast<double>(epsilon_v<T>);
    double most = std::sqrt(static_cast<double>(std::numeric_limits<real_t<T>>::max())) / 4;
};

}  // namespace quiver
