// SPDX-License-Identifier: BSD-3-Clause
// The options of every eigensolver.
#pragma once

#include <cstdint>

namespace quiver {

/// Which end of the spectrum.
enum class Which : std::uint8_t { smallest, largest };

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
    /// Columns of the search basis before a restart, no fewer than k + 3 max(block, 2) are taken; 0
    /// takes max(2 k + 4 block, k + 16 block, 24). A wider one needs fewer steps and more memory.
    int max_basis = 0;
};

}  // namespace quiver
