// SPDX-License-Identifier: BSD-3-Clause
// What the protected operations of solvers/abft take beside the kernels that they check.
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

/// Which operations, and how often. All are local to a rank.
struct OperationCases {
    Dtype scalar = Dtype::d;
    /// Columns m = n of blocks, and orders of the matrices of a batch.
    std::vector<int> widths;
    /// Of blocks, on each rank.
    std::vector<std::int64_t> rows;
    /// Samples of each, at least 3; fewer, but 3, where they take long.
    int samples = 20;
};

/// A kernel and its protected operation.
struct OperationTimes {
    Dtype scalar = Dtype::d;
    std::string operation;
    /// Of Y, or matrices of a batch; columns of X, or of a dense A, or the order; columns of Y.
    std::int64_t rows = 0;
    std::int64_t m = 0;
    int n = 0;
    /// Medians of one call of the kernel, with `detect` and with `correct`, of the slowest rank.
    std::array<double, 3> seconds{};
    /// Both modes have left the bits of the kernel, and taken nothing for a fault, on all ranks.
    bool good = true;
};

/// tsmm, the same with the sums of X known, axpby, tsmttsm, tsmm_gram (against the fused kernel;
/// its bits against tsmm and tsmttsm), mtsm by a matrix of 4000 rows and columns, LU and Cholesky
/// of 10,000 matrices (100,000 on a GPU) of orders up to 64; fewer of the latter three where blocks
/// have fewer rows. Small matrices are in host memory, as solvers have them. Calls show() after
/// each. Returns how many the budget left out. Collective.
int time_operations(Context& ctx, const OperationCases& cases, const Budget& budget,
                    const std::function<void(const OperationTimes&)>& show);

}  // namespace quiver::apps::bench
