// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/exact_diagonalisation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/hamiltonian/hamiltonian_operator.hpp"
#include "solvers/eigen/eigensolver.hpp"

namespace quiver {
namespace {

/// Neighbours whose distance may be due to their residuals form one level.
template <class T>
std::vector<EnergyLevel> levels_of(const EigenResult<T>& result) {
    const double same = 2 * std::max(result.tolerance, 16 * static_cast<double>(epsilon_v<T>)) *
                        result.norm_estimate;
    std::vector<EnergyLevel> levels;
    double before = 0;
    for (const double energy : result.eigenvalues) {
        if (levels.empty() || energy - before > same) {
            levels.push_back({energy, 0});
        }
        ++levels.back().degeneracy;
        before = energy;
    }
    return levels;
}

}  // namespace

template <class T>
ExactResult<T> exact_diagonalisation(Context& ctx, const HamiltonianModel& model,
                                     const ExactOptions& options) {
    ExactResult<T> result;
    result.gap = std::numeric_limits<double>::quiet_NaN();
    const auto basis = make_state_basis(ctx, model, options.eigen.keep_going);
    result.group_order = basis->order();
    if (basis->interrupted()) {
        result.eigen.interrupted = true;
        result.eigen.message = "interrupted in the search for the states of the sector";
        return result;
    }
    HamiltonianOperator<T> h(ctx, basis, model.terms);
    result.states = h.row_map().global_rows();
    result.table_bytes = ctx.comm().max(h.memory_bytes());
    result.halo_rows = ctx.comm().max(h.halo_size());
    if (options.eigen.k != 0) {
        EigenOptions eigen = options.eigen;
        eigen.k = static_cast<int>(std::min<std::int64_t>(eigen.k, result.states));
        result.eigen = eigensolve(ctx, EigenProblem<T>{h}, eigen);
        result.levels = levels_of(result.eigen);
        if (result.levels.size() > 1) {
            result.gap = result.levels[1].energy - result.levels[0].energy;
        }
    }
    if (!options.density) {
        return result;
    }
    result.density = density_of_states<T>(ctx, h, *options.density);
    if (!model.probe.empty() && !result.levels.empty()) {
        HamiltonianOperator<T> a(ctx, basis, model.probe);
        const int count = result.levels.front().degeneracy;
        if (result.eigen.cluster_cut && result.levels.size() == 1) {
            InputError error("exact diagonalisation: the ground level has more than the k = " +
                             std::to_string(count) +
                             " states found; a probe needs all of them: request a larger k");
            error.set_collective();
            throw error;
        }
        BlockVector<T> v;
        ctx.comm().agree([&] { v = BlockVector<T>(ctx, h.row_map(), count); });
        a.apply(ctx, result.eigen.vectors.columns(0, count), v.view());
        result.probe = spectral_function<T>(ctx, h, v.view(), *options.density);
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                        \
    template ExactResult<T> exact_diagonalisation(Context&, const HamiltonianModel&, \
                                                  const ExactOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
