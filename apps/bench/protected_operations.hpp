// SPDX-License-Identifier: BSD-3-Clause
// Times the protected operations of solvers/abft and the kernels that they check.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/runner.hpp"
#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"

namespace quiver::apps::bench {

/// Sizes and repetitions of the operations. All operations are local to a rank.
struct OperationCases {
    Dtype scalar = Dtype::d;
    /// Columns m = n of blocks, and orders of the matrices of a batch.
    std::vector<int> widths;
    /// Rows of the blocks, on each rank.
    std::vector<std::int64_t> rows;
    /// Samples of each operation, at least 3. Slow operations get fewer, but also at least 3.
    int samples = 20;
};

/// The times of a kernel and of its protected operation.
struct OperationTimes {
    Dtype scalar = Dtype::d;
    std::string operation;
    /// rows: rows of Y, or matrices of a batch. m: columns of X or of a dense A, or the order of
    /// the matrices. n: columns of Y.
    std::int64_t rows = 0;
    std::int64_t m = 0;
    int n = 0;
    /// Median seconds of one call on the slowest rank: the kernel, `detect`, `correct`.
    std::array<double, 3> seconds{};
    /// True if on all ranks both modes gave the expected bits and reported no fault.
    bool good = true;
};

/// Times tsmm, tsmm with known checksums of X, axpby, tsmttsm, tsmm_gram (timed against the fused
/// kernel; bits compared with tsmm and tsmttsm), mtsm by a matrix of 4000 rows and columns, and LU
/// and Cholesky of 10,000 matrices (100,000 on a GPU) of those widths that are at most 64. If the
/// blocks have fewer rows, the matrix of mtsm and the number of factored matrices shrink to that
/// number. Small matrices are in host memory, as in the solvers. Calls show() after each operation.
/// Returns the number of operations that did not start because the budget was spent. Collective.
int time_operations(Context& ctx, const OperationCases& cases, const Budget& budget,
                    const std::function<void(const OperationTimes&)>& show);

}  // namespace quiver::apps::bench
