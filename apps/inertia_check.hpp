// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs --verify inertia`: counts the eigenvalues beyond a shift by a factorisation.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/comm.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {

/// Throws InputError for more rows than the factorisation is allowed for.
void require_inertia_size(std::int64_t rows);

/// Counts eigenvalues at two shifts around the last wanted one: at the inner shift the wanted
/// eigenvalues that differ from it by more than the tolerance; at the outer shift all k, unless the
/// next eigenvalue equals the last. For a window, or the interval around a target, counts below its
/// low end (any count is accepted) and below its high end. Rank 0 reads the matrix again and
/// factors it. Collective; an error on rank 0 is thrown on all.
template <class T>
std::vector<InertiaCount> count_by_inertia(const Comm& comm, const Problem& problem,
                                           const EigenOptions& options, const EigsReport& report);

}  // namespace quiver::apps
