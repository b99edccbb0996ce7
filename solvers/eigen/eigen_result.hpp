// SPDX-License-Identifier: BSD-3-Clause
// The result of every eigensolver: numerical outcomes are data, not exceptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver {

/// verified: the solver has shown that no copy of a wanted eigenvalue is missing, by a search of
/// the orthogonal complement from fresh random columns, by the whole spectrum (dense_eigen()) or by
/// counts of inertia (shift_invert()). docs/solvers.md states the claim and the probability of an
/// error.
enum class Multiplicity : std::uint8_t { unverified, verified };

template <class T>
struct EigenResult {
    /// Ascending: k values, or all in the window; fewer if the solver gave up early.
    std::vector<double> eigenvalues;
    /// ||A x - lambda B x|| / ||x||_2 of each pair, from a fresh product.
    std::vector<double> residuals;
    /// Bounds of the errors of the eigenvalues; with B, and of shift_invert() for a stiff A,
    /// estimates to first order in the residual (eigenvalue_errors()). Only eigensolve() computes
    /// them; empty for an interrupted solve with B.
    std::vector<double> errors;
    /// Estimate of ||A||_2 from all Ritz values seen: a lower bound, close in practice. With B it
    /// estimates ||A|| + max |lambda| ||B||.
    double norm_estimate = 0;
    /// The tolerance in force, and whether it is larger than the requested one.
    double tolerance = 0;
    bool tolerance_raised = false;
    /// True if all wanted pairs were found with residuals within the tolerance, and the
    /// multiplicity is verified.
    bool converged = false;
    Multiplicity multiplicity = Multiplicity::unverified;
    /// True if the eigenvalue after the k-th equals the k-th to within the tolerance: the wanted
    /// set ends inside a cluster, and the choice of the returned copies is arbitrary.
    bool cluster_cut = false;
    /// With cluster_cut: how far inside the wanted set an omitted eigenvalue of the cluster may
    /// lie, in the units of the eigenvalues (for a target: of distances from it; for magnitudes: of
    /// |lambda|). Estimated from the residual of the next Ritz pair; with shift_invert() the width
    /// of the interval that holds the cluster.
    double cut_depth = 0;
    std::int64_t iterations = 0;
    /// Products with the operator, counted by column, without those for `errors`; of shift_invert()
    /// also solves with the factors.
    std::int64_t operator_applications = 0;
    int block = 0;
    int basis = 0;
    double seconds = 0;
    /// The algorithm that ran (for both ends: that of the last solve) and, if eigensolve() chose
    /// it, the reason.
    Method method = Method::automatic;
    std::string method_reason;
    /// The library of the factorisations of shift_invert(): cuDSS, MUMPS or SparseLdlt. Empty if no
    /// part of the solve used it.
    std::string library;
    /// With a window: the number of eigenvalues estimated from the density of states, and the
    /// standard error of that estimate (without the smearing at the ends). dense_eigen() and
    /// shift_invert() store the number found, with error 0.
    double expected_count = 0;
    double expected_error = 0;
    /// True if EigenOptions::keep_going or max_seconds ended the solve.
    bool interrupted = false;
    /// If the solver has not converged: the reason, as a sentence.
    std::string message;
    /// Eigenvectors, orthonormal (B-orthonormal with B); column j belongs to eigenvalues[j].
    BlockVector<T> vectors;
};

}  // namespace quiver
