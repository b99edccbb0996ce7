// SPDX-License-Identifier: BSD-3-Clause
// The options of every eigensolver, their check, and the norms that solvers take.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "blockvec/event.hpp"
#include "blockvec/scalar.hpp"

namespace quiver {

/// Which end of the spectrum.
enum class Which : std::uint8_t { smallest, largest };

/// The algorithms; automatic lets eigensolve() choose.
enum class Method : std::uint8_t { automatic, lanczos, chebyshev, lobpcg, filter };

/// "auto", "lanczos", "chebyshev", "lobpcg", "filter".
const char* to_string(Method method);

/// The most columns of a block, and the most eigenpairs or columns of a basis.
constexpr int max_block_width = 64;
constexpr int max_pairs = 1 << 20;

/// All eigenvalues in [low, high] are wanted.
struct Window {
    double low = 0;
    double high = 0;
};

struct EigenOptions {
    /// Number of eigenpairs, copies of multiple eigenvalues counted.
    int k = 10;
    Which which = Which::smallest;
    /// Columns that a step multiplies at once, 1 to 64; 0 lets the solver choose (block Lanczos: 4,
    /// or k if that is smaller).
    int block = 0;
    /// A pair has converged when ||A x - lambda x|| <= tol ||A||, ||x|| = 1. Raised to what the
    /// scalar can attain where it is below that.
    double tol = 1e-10;
    /// Block steps (products with the operator; of windows, filters) before the solver gives up.
    std::int64_t max_iterations = 10000;
    /// Seed of the start block and of every random column; the same seed, the same answer.
    std::uint64_t seed = 1;
    /// Columns of the search basis, at least k + 3 max(block, 2) or all rows; 0 lets the solver
    /// choose. Block Lanczos: before a restart, max(2 k + 4 block, k + 16 block, 24); a wider one
    /// needs fewer steps and more memory. Chebyshev: of the subspace.
    int max_basis = 0;
    /// Instead of k at an end.
    std::optional<Window> window = {};
    /// What eigensolve() runs.
    Method method = Method::automatic;
    /// Called after each iteration; false ends the solver in order, with what it has found. Given
    /// on all ranks or on none; the answers may differ: one all-reduce of a word agrees on them.
    std::function<bool(const IterationEvent&)> keep_going = {};
};

/// The fewest columns of a search basis: k + 3 max(block, 2) (block 0: the one that block Lanczos
/// takes), or all rows where there are fewer.
std::int64_t least_basis(const EigenOptions& options, std::int64_t rows);

/// The checks that all solvers share, `rows` being the dimension of the space that is searched.
/// Throws InputError, alike on all ranks, for k < 1, k > rows, block < 0 or > 64 or > rows, tol not
/// between 0 and 1, max_basis below least_basis(), max_iterations < 1. With a window, which has to
/// be finite and in order, k does not count.
void check_options(const EigenOptions& options, std::int64_t rows);

/// Residuals below this many units of round-off of ||A|| are noise of the products themselves.
constexpr double attainable_units = 32;

/// The tolerance in force: what was asked for, or what the scalar can attain.
template <class T>
double attainable_tolerance(double asked) {
    return std::max(asked, attainable_units * static_cast<double>(epsilon_v<T>));
}

/// The norms ||A|| whose squares, and what rounding leaves of them, are normal numbers of T.
template <class T>
struct NormRange {
    double least = std::sqrt(static_cast<double>(std::numeric_limits<real_t<T>>::min())) /
                   static_cast<double>(epsilon_v<T>);
    double most = std::sqrt(static_cast<double>(std::numeric_limits<real_t<T>>::max())) / 4;
};

}  // namespace quiver
