// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs --verify inertia`: counts the eigenvalues on one side of a shift by a factorisation.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "blockvec/comm.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {

/// Throws InputError if there are more than most_inertia_rows rows.
void require_inertia_size(std::int64_t rows);

/// Returns the number of eigenvalues of A on one side of a shift, as counted by a factorisation and
/// as expected from the result, for up to two shifts.
///
/// At an end of the spectrum, with `last` the wanted eigenvalue farthest from that end: at the
/// inner shift, the eigenvalues that differ from `last` by more than a tolerance; at the outer
/// shift, all k. The outer shift is omitted if `last` has further copies (EigsReport::cluster_cut).
///
/// For a window, or the interval around a target: below its low end, where any count is accepted,
/// and below its high end, where the count must be larger by the number of computed eigenvalues.
///
/// A shift may be moved if its count is not reliable. Rank 0 reads the matrix again and factorises
/// it for each shift. Collective; an error on rank 0 is thrown on all ranks.
template <class T>
std::vector<InertiaCount> count_by_inertia(const Comm& comm, const Problem& problem,
                                           const EigenOptions& options, const EigsReport& report);

}  // namespace quiver::apps
