// SPDX-License-Identifier: BSD-3-Clause
// Which cases `quiver bench kernels` runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// The options that determine the cases.
struct CaseOptions {
    /// Lists as parse_kernels() and case.hpp read them; empty: the default of docs/bench.md.
    std::string kernel;
    std::string scalar;
    std::string widths;
    std::string shapes;
    std::string rows;
    std::string ld_extra = "0";
    int random_shapes = 0;
    std::uint64_t seed = 1;
    bool gram_schmidt = false;
    /// For spmmv only: a MATRIX that replaces the Laplacian, the rows per tile, and further
    /// settings to time.
    std::string matrix;
    int tile = 0;
    std::string tilings;
};

/// Kernel, scalar, shape and rows of every case, the most informative first. Cases with 0 rows get
/// theirs from choose_rows(). Throws InputError for options that give no cases.
std::vector<Case> choose_cases(const CaseOptions& options);

/// Fills in rows and nonzeros of cases with a matrix. Collective; throws InputError on all ranks.
void measure_matrix(const Context& ctx, std::vector<Case>& cases);

/// Gives cases with 0 rows as many rows as make operands of `operand_bytes`.
void choose_rows(double operand_bytes, std::vector<Case>& cases);

}  // namespace quiver::apps::bench
