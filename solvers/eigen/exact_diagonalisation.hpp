// SPDX-License-Identifier: BSD-3-Clause
// Exact diagonalisation: the lowest energies of a Hamiltonian given by terms, and its densities.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/hamiltonian/terms.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_result.hpp"
#include "solvers/eigen/spectral_density.hpp"

namespace quiver {

struct ExactOptions {
    /// A k above the number of states is lowered to it. With k = 0 no energies are computed, and
    /// there is no spectral function.
    EigenOptions eigen;
    /// If set, the density of states, and if the model has a probe A, the spectral function
    /// <0| A^+ delta(E - H) A |0> of the ground states.
    std::optional<DensityOptions> density = {};
};

/// Energies that agree to within the tolerance, or to rounding.
struct EnergyLevel {
    double energy = 0;
    int degeneracy = 0;
};

template <class T>
struct ExactResult {
    std::int64_t states = 0;
    /// The elements of the symmetry group; 1 without symmetries.
    int group_order = 1;
    /// The largest size of the tables of H on a rank, in bytes, and the largest number of rows that
    /// a rank receives in one product.
    std::int64_t table_bytes = 0;
    std::int64_t halo_rows = 0;
    EigenResult<T> eigen;
    /// The levels of eigen.eigenvalues. The last one may have more states than were computed.
    std::vector<EnergyLevel> levels;
    /// levels[1].energy - levels[0].energy; NaN with less than two levels.
    double gap = 0;
    std::optional<SpectralDensity> density;
    std::optional<SpectralDensity> probe;
};

/// The options.eigen.k lowest energies and states of `model` in its sector, by eigensolve() with a
/// HamiltonianOperator, and densities by the kernel polynomial method. eigen.keep_going is also
/// called in the search for the states of a sector with symmetries; if it ends this search, the
/// result has no states and no energies, and eigen.interrupted is true.
///
/// T must be complex if model.is_complex(). Throws the errors of HamiltonianOperator, eigensolve()
/// and density_of_states(). Collective. Cost: that of these.
template <class T>
ExactResult<T> exact_diagonalisation(Context& ctx, const HamiltonianModel& model,
                                     const ExactOptions& options);

}  // namespace quiver
