// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "apps/problem.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {

/// The wanted eigenvalues of a generated matrix, ascending. Empty if no formula is known, or for a
/// window or a target if the matrix has more than 5e7 rows.
std::vector<double> known_eigenvalues(const Problem& problem, const EigenOptions& options,
                                      std::int64_t rows);

}  // namespace quiver::apps
