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
    RunFacts run;
    /// The file of the right-hand sides, "ones" or "random:N".
    std::string rhs;
    /// The method that ran last, and the methods that broke down before it.
    std::string method;
    std::vector<std::string> broken_methods;
    std::string preconditioner = "none";
    std::string output;
    double tolerance = 0;
    std::int64_t max_iterations = 0;
    int restart = 0;
    std::uint64_t seed = 0;
    LinearResult result;
    /// The counts over all ranks; no value if neither --abft nor --inject is given.
    std::optional<EigsReport::Abft> abft;
    /// The ledger of rank 0.
    std::vector<KernelRecord> kernels;
};

/// The table with a line for each right-hand side; `verbose` adds the kernels.
std::string to_table(const SolveReport& report, bool verbose);

/// One JSON object, schema 1; numbers that are not finite become null.
std::string to_json(const SolveReport& report);

}  // namespace quiver::apps
