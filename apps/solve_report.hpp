// SPDX-License-Identifier: BSD-3-Clause
// The report of `quiver solve`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/report.hpp"
#include "solvers/linear/linear_problem.hpp"

namespace quiver::apps {

struct SolveReport {
    EigsReport::Matrix matrix;
    EigsReport::Seconds seconds;
    EigsReport::Where where;
    /// File or description of the right-hand sides.
    std::string rhs;
    /// The method that ran last, and before it those that broke down.
    std::string method;
    std::vector<std::string> broken_methods;
    std::string preconditioner = "none";
    std::string output;
    double tolerance = 0;
    std::int64_t max_iterations = 0;
    int restart = 0;
    std::uint64_t seed = 0;
    LinearResult result;
    /// Counts of --abft and --inject, over all ranks; no value if neither was given.
    std::optional<EigsReport::Abft> abft;
    /// The ledger of rank 0.
    std::vector<KernelRecord> kernels;
};

/// The table with a line for each right-hand side; `verbose` adds the kernels.
std::string to_table(const SolveReport& report, bool verbose);

/// One JSON object, schema 1; numbers that are not finite become null.
std::string to_json(const SolveReport& report);

}  // namespace quiver::apps
