// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs --verify inertia`: the eigenvalues beyond a shift, counted by a factorisation.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/comm.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {

/// Throws InputError for more rows than a factorisation is offered for.
void require_inertia_size(std::int64_t rows);

/// Counts eigenvalues on both sides of the last wanted one: those beyond it by more than the
/// tolerance that are wanted, and, unless the next one equals it, all k. Of a window: below its low
/// end (whatever that gives is expected) and below its high one. Rank 0 reads the matrix once more
/// and factors it. Collective; an error on rank 0 is thrown on all.
template <class T>
std::vector<InertiaCount> count_by_inertia(const Comm& comm, const Problem& problem,
                                           const EigenOptions& options, const EigsReport& report);

}  // namespace quiver::apps
