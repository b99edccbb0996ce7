// SPDX-License-Identifier: BSD-3-Clause
// The cases that `quiver bench kernels` runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// The options that determine the cases.
struct CaseOptions {
    /// Lists in the syntax of parse_kernels() and case.hpp; empty: the default of docs/bench.md.
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

/// Kernel, scalar, shape and rows of every case, in the order in which they run. Cases without
/// given rows have 0 rows, which choose_rows() replaces. Throws InputError for invalid options.
std::vector<Case> choose_cases(const CaseOptions& options);

/// Fills in rows and nonzeros of cases with a matrix. Collective; throws InputError on all ranks
/// for a matrix that is not square, or complex with a real scalar.
void measure_matrix(const Context& ctx, std::vector<Case>& cases);

/// Gives cases with 0 rows as many rows as make operands of `operand_bytes` times the kernel's size
/// factor. Rounds all numbers of rows to those that the kernels accept. Skips cases with a matrix.
void choose_rows(double operand_bytes, std::vector<Case>& cases);

}  // namespace quiver::apps::bench
