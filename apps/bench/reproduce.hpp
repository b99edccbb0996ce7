// SPDX-License-Identifier: BSD-3-Clause
// Sweeps of published figures, and what was published beside what was measured here.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/runner.hpp"

namespace quiver::apps::bench {

/// The cases of "ernst2020" (Ernst, Hager, Thies, Wellein, IJHPCA 2020), "tsm2x2021" (Rivera et
/// al., JPDC 151, 2021), "tang2021" (Tang et al., IJNC 11(2), 2021) or "haidar2018" (Haidar et al.,
/// IEEE TPDS 29(5), 2018); papers/ has a file of each. `operand_bytes` as elsewhere: of longer
/// sweeps what has at most sixteen times as many. Throws InputError for a name that is none.
std::vector<Case> cases_of(const std::string& paper, double operand_bytes);

/// A line for each published number, with ours.
std::string compare_with(const std::string& paper, const Session& session);

}  // namespace quiver::apps::bench
