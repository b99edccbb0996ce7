// SPDX-License-Identifier: BSD-3-Clause
// Vibration modes K x = lambda M x: frequencies, rigid-body modes, modal and effective masses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_result.hpp"

namespace quiver {

/// Frequencies per square root of an eigenvalue: in Hz and in radians per second.
constexpr double hertz = 0.5 * std::numbers::inv_pi;
constexpr double radians_per_second = 1;

/// Frequencies are in `unit`. Without a range and without `near`, the solver.k modes with the
/// smallest eigenvalues are wanted.
struct ModesOptions {
    /// All modes with frequencies in [low, high], 0 <= low <= high; solver.k is ignored. A range
    /// from 0 also holds the rigid-body modes and the unstable ones with |lambda| below the limit.
    std::optional<Window> range = {};
    /// The solver.k modes with lambda nearest to that of this frequency are wanted.
    std::optional<double> near = {};
    double unit = hertz;
    /// Modes with frequencies (or |lambda|) below this one count as rigid, as do those with lambda
    /// = 0 to rounding.
    double rigid_below = 0;
    /// k, tol, method, seed, max_seconds, keep_going, ...; modes() sets `which`, target and window.
    EigenOptions solver = {};
};

/// The results of modes() besides the eigenpairs; the same on all ranks.
struct ModesFacts {
    /// The frequency of each mode, ascending: 0 for a rigid-body mode, -sqrt(|lambda|) unit for an
    /// unstable mode (lambda < 0).
    std::vector<double> frequencies;
    int rigid = 0;
    int unstable = 0;
    /// The largest frequency that counts as rigid among the rigid modes: rigid_below, or that of
    /// lambda = 32 eps ||K|| ||x||^2; 0 without rigid modes. In a structure that is stiff
    /// elsewhere, real modes below it are among the rigid ones.
    double rigid_limit = 0;
    /// The number of infinite eigenvalues, those of the null space of M.
    std::int64_t infinite = 0;
    /// True if there may be more infinite eigenvalues: only zero rows of M were counted.
    bool infinite_at_least = false;
    /// x^T M x for the mode x scaled so that its largest element is 1 or -1.
    std::vector<double> modal_masses;
    /// participation[j][i] = x_i^T M r_j for direction j and mode i with x_i^T M x_i = 1. Its
    /// square is the effective mass of mode i in direction j.
    std::vector<std::vector<double>> participation;
    /// r_j^T M r_j of each direction.
    std::vector<double> total_masses;
    /// The centre of mass, if there are six directions.
    std::array<double, 3> centre{};

    std::vector<double> effective_masses(std::size_t direction) const;
};

template <class T>
struct ModesResult : ModesFacts {
    /// Eigenvalues, residuals, convergence; the vectors x have x_i^T M x_j = delta_ij.
    EigenResult<T> eigen;
};

/// The directions r_j of participation for three unknowns a node (x, y and z of node 0, then of
/// node 1, ...): three translations and, if there are coordinates, three rotations about the axes
/// through the origin. coordinates: x, y, z of all nodes, on every rank. Throws ShapeError unless
/// there are as many coordinates as rows or none, and three rows a node. Cost: writes 3 or 6
/// columns.
template <class T>
BlockVector<T> rigid_directions(Context& ctx, const RowMap& map,
                                std::span<const double> coordinates);

/// Finds modes of K x = lambda M x. K is symmetric, M symmetric and positive semidefinite. A lumped
/// (diagonal) M may have zeros. K may be singular: a mode is rigid if |lambda| <= 32 eps ||K||
/// ||x||^2, with x^T M x = 1 and the largest row sum as the norm.
///
/// directions: local rows x any number of columns, in the Context's place; empty for none. If there
/// are six, they are those of rigid_directions(), and the participation in rotations is that about
/// the axes through the centre of mass.
///
/// Method::automatic is a dense solve up to 1024 rows with a regular M, otherwise shift_invert() if
/// it can factorise; elsewhere eigensolve() chooses. Up to 1024 rows a dense solve follows if
/// shift_invert() does not converge. Rayleigh quotients replace the eigenvalues of a dense solve.
/// T is float or double.
///
/// Throws InputError on all ranks: a frequency that is negative, not finite or out of order; NaN
/// or infinity in K or M; M = 0; a negative entry on the diagonal of M, or a negative eigenvalue;
/// k larger than the number of finite eigenvalues. Also the errors of eigensolve(). Collective.
/// Cost: that of eigensolve(), a pass over the entries of K and M, a product of M with the
/// directions; if M has entries off the diagonal and at most 20,000 rows, a factorisation of M
/// counts its null space. The same numbers of ranks and threads on the same device give the same
/// bits.
template <class T>
ModesResult<T> modes(Context& ctx, SparseMatrix<T>& k, SparseMatrix<T>& m,
                     const ModesOptions& options, BlockView<const T> directions = {});

}  // namespace quiver
