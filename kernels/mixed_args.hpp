// SPDX-License-Identifier: BSD-3-Clause
// The plain arguments of the mixed-precision leaves; see leaf_args.hpp.
#pragma once

#include <cstdint>

namespace quiver {

/// C = alpha A^T B + beta C over the rows given, formed in Sum; beta = 0 does not read C.
template <class In, class Sum>
struct MixedTsmttsmArgs {
    std::int64_t rows;
    int m, n;
    Sum alpha;
    const In* a;  // rows x m
    std::int64_t lda;
    const In* b;  // rows x n
    std::int64_t ldb;
    Sum beta;
    Sum* c;  // m x n
    std::int64_t ldc;
};

/// Y = alpha X C + beta Y, formed in float; beta = 0 does not read Y. X and Y do not overlap.
template <class In, class Small, class Out>
struct MixedTsmmArgs {
    std::int64_t rows;
    int m, n;
    float alpha;
    const In* x;  // rows x m
    std::int64_t ldx;
    const Small* c;  // m x n
    std::int64_t ldc;
    float beta;
    Out* y;  // rows x n
    std::int64_t ldy;
};

/// hi + lo = A^T B over the rows given, in sums of two doubles each.
struct TwofoldTsmttsmArgs {
    std::int64_t rows;
    int m, n;
    const double* a;  // rows x m
    std::int64_t lda;
    const double* b;  // rows x n
    std::int64_t ldb;
    double* sums;  // m x n high parts, then m x n low parts
};

/// The sum of several such arrays of sums, with high the nearest double to the whole.
struct TwofoldSumArgs {
    int parts;
    std::int64_t size;
    const double* parts_of_sums;  // parts x 2 x size
    double* sums;                 // 2 x size
};

}  // namespace quiver
