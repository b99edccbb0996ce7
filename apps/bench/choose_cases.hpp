// SPDX-License-Identifier: BSD-3-Clause
// Which cases `quiver bench kernels` runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// What of the command line decides about the cases.
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
    /// Of spmmv: MATRIX in the place of a Laplacian, rows of a tile, settings to time as well.
    std::string matrix;
    int tile = 0;
    std::string tilings;
};

/// Kernel, scalar, shape and rows of every case, the most telling first. Rows of 0 are for
/// choose_rows(). Throws InputError for options that make no cases.
std::vector<Case> choose_cases(const CaseOptions& options);

/// Rows and nonzeros of the matrix of the cases, where they have one. Collective; throws InputError
/// on all ranks.
void measure_matrix(const Context& ctx, std::vector<Case>& cases);

/// Rows that make operands of so many bytes, where the cases have none.
void choose_rows(double operand_bytes, std::vector<Case>& cases);

}  // namespace quiver::apps::bench
