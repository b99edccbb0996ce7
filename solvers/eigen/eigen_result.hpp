// SPDX-License-Identifier: BSD-3-Clause
// The result of every eigensolver: numerical outcomes are data, not exceptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

/// Whether a search of the orthogonal complement from fresh random columns has shown that no copy
/// of a wanted eigenvalue is missing; the same claim for every solver (docs/solvers.md).
enum class Multiplicity : std::uint8_t { unverified, verified };

template <class T>
struct EigenResult {
    /// Ascending: k of them or all in the window, or fewer when the solver gave up early.
    std::vector<double> eigenvalues;
    /// ||A x - lambda x|| of each, from a fresh product, ||x|| = 1.
    std::vector<double> residuals;
    /// Estimate of ||A||_2 from the Ritz values seen: a lower bound, close in practice.
    double norm_estimate = 0;
    /// The tolerance in force, and whether it is larger than the one asked for.
    double tolerance = 0;
    bool tolerance_raised = false;
    /// All k pairs have residuals <= tolerance * norm_estimate and the multiplicity is verified.
    bool converged = false;
    Multiplicity multiplicity = Multiplicity::unverified;
    /// The next eigenvalue beyond the k equals the last of them to within the tolerance: the k end
    /// inside a cluster, and which copies were returned is arbitrary.
    bool cluster_cut = false;
    std::int64_t iterations = 0;
    /// Products with the operator, counted by column.
    std::int64_t operator_applications = 0;
    int block = 0;
    int basis = 0;
    double seconds = 0;
    /// The algorithm that ran and, where eigensolve() chose it, why.
    Method method = Method::automatic;
    std::string method_reason;
    /// Of a window: the eigenvalues that the density of states lets expect, and the standard error
    /// of that number (smearing at the ends not counted).
    double expected_count = 0;
    double expected_error = 0;
    /// EigenOptions::keep_going asked for the end.
    bool interrupted = false;
    /// Why the solver stopped, in a sentence, when it has not converged.
    std::string message;
    /// Orthonormal eigenvectors, column j belongs to eigenvalues[j].
    BlockVector<T> vectors;
};

}  // namespace quiver
