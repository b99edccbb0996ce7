// SPDX-License-Identifier: BSD-3-Clause
// The papers whose sweeps `quiver bench reproduce` runs, one file each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/figures.hpp"
#include "apps/bench/kernel.hpp"
#include "apps/bench/runner.hpp"

namespace quiver::apps::bench {

struct Paper {
    /// The name on the command line.
    const char* name;
    /// The cases of the paper. Omits cases that move more than sixteen times `operand_bytes`,
    /// except the first case.
    std::vector<Case> (*cases)(double operand_bytes);
    /// A table with one line for each published number and ours.
    std::string (*compare)(const Session& session);
    /// Figures that compare settings of kernels on a GPU.
    std::vector<Figure> figures = {};
};

const Paper& ernst2020();
const Paper& tsm2x2021();
const Paper& tang2021();
const Paper& haidar2018();

std::vector<Figure> ernst2020_figures();

/// A line with the figure or section, the quantity, the published value and our value.
std::string paper_line(const char* figure, const std::string& what, const std::string& paper,
                       const std::string& ours);

/// Appends the case if it moves at most sixteen times `operand_bytes` or is the first one.
void add_affordable(std::vector<Case>& cases, const Case& c, double operand_bytes);

/// A case with square shape n, whose operands have the default size.
Case square_case(const char* kernel, Dtype scalar, int n);

/// Mean, least and largest value of `count` results.
struct Spread {
    double mean = 0, least = 0, largest = 0;
    int count = 0;
};
using Keep = std::function<bool(const Case&)>;
/// The spread of our percentages of the roofline; nothing without results.
std::optional<Spread> percents_of(const Session& session, const Keep& keep);
/// The spread of the rivals' times over ours, with the geometric mean; nothing without results.
std::optional<Spread> ratios_of(const Session& session, const Keep& keep);

/// Mean, least to largest, and number of results: "95%, 90 to 98% of 12" and "1.50, 1.10 to 3.20 of
/// 12"; or "not run".
std::string percents_text(const std::optional<Spread>& spread);
std::string ratios_text(const std::optional<Spread>& spread);

}  // namespace quiver::apps::bench
