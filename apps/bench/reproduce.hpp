// SPDX-License-Identifier: BSD-3-Clause
// The sweeps of published figures, and tables that compare published values with ours.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/figures.hpp"
#include "apps/bench/runner.hpp"

namespace quiver::apps::bench {

/// The cases of "ernst2020" (Ernst, Hager, Thies, Wellein, IJHPCA 2020), "tsm2x2021" (Rivera et
/// al., JPDC 151, 2021), "tang2021" (Tang et al., IJNC 11(2), 2021) or "haidar2018" (Haidar et al.,
/// IEEE TPDS 29(5), 2018); papers/ has a file for each. Omits cases that move more than sixteen
/// times `operand_bytes`, except the first case. Throws InputError for an unknown name.
std::vector<Case> cases_of(const std::string& paper, double operand_bytes);

/// The figures of a list such as "15,16" that compare settings of kernels on a GPU. Throws
/// InputError for an unknown paper or figure; the message names the figures of the paper.
std::vector<const Figure*> figures_of(const std::string& paper, const std::string& list);

/// A table with one line for each published number and ours; empty for an unknown paper.
std::string compare_with(const std::string& paper, const Session& session);

}  // namespace quiver::apps::bench
