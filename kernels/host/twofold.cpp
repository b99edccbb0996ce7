// SPDX-License-Identifier: BSD-3-Clause
// A^T B in sums of two doubles. Compiled without contraction of a * b + c (kernels/CMakeLists.txt),
// because the rounding errors must be computed exactly as written.
#include <algorithm>
#include <cmath>

#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {
namespace {

/// high + low += value + rest; the rounding error of high + value goes to low.
[[gnu::always_inline]] inline void add(double& high, double& low, double value, double rest) {
    const double sum = high + value;
    const double part = sum - high;
    low += (high - (sum - part)) + (value - part) + rest;
    high = sum;
}

/// The sums of a chunk of rows in sums[index]: m x n high parts, then the low parts.
struct Products {
    const TwofoldTsmttsmArgs& args;
    double* sums;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const std::int64_t size = std::int64_t{args.m} * args.n;
        double* const high = sums + 2 * size * chunk.index;
        double* const low = high + size;
        std::fill_n(high, 2 * size, 0.0);
        for (std::int64_t row = chunk.first; row < chunk.last; ++row) {
            const double* const a = args.a + row * args.lda;
            const double* const b = args.b + row * args.ldb;
            for (int i = 0; i < args.m; ++i) {
                double* const high_row = high + std::int64_t{i} * args.n;
                double* const low_row = low + std::int64_t{i} * args.n;
                const double factor = a[i];
#pragma GCC ivdep
                for (int j = 0; j < args.n; ++j) {
                    const double product = factor * b[j];
                    const double rest = __builtin_fma(factor, b[j], -product);
                    add(high_row[j], low_row[j], product, rest);
                }
            }
        }
    }
};

int chunks_of(int threads, const TwofoldTsmttsmArgs& args) {
    return chunk_count(threads, args.rows,
                       static_cast<std::size_t>(args.m + args.n) * sizeof(double));
}

}  // namespace

std::size_t workspace_bytes(int threads, const TwofoldTsmttsmArgs& args) {
    return static_cast<std::size_t>(chunks_of(threads, args)) * 2 *
           static_cast<std::size_t>(args.m) * static_cast<std::size_t>(args.n) * sizeof(double);
}

void tsmttsm_twofold(int threads, const TwofoldTsmttsmArgs& args, void* workspace) {
    const int chunks = chunks_of(threads, args);
    const auto* const partial = static_cast<const double*>(workspace);
    run_chunks(chunks, args.rows, Products{args, static_cast<double*>(workspace)});
    sum_twofold(TwofoldSumArgs{chunks, std::int64_t{args.m} * args.n, partial, args.sums});
}

std::size_t workspace_bytes(int threads, const GramTwofoldArgs& args) {
    return workspace_bytes(threads, product_of(args));
}

void gram_twofold(int threads, const GramTwofoldArgs& args, void* workspace) {
    tsmttsm_twofold(threads, product_of(args), workspace);
}

void sum_twofold(const TwofoldSumArgs& args) {
    for (std::int64_t e = 0; e < args.size; ++e) {
        double high = 0;
        double low = 0;
        for (int part = 0; part < args.parts; ++part) {
            const double* const sums = args.parts_of_sums + 2 * args.size * part;
            add(high, low, sums[e], sums[args.size + e]);
        }
        const double sum = high + low;
        args.sums[e] = sum;
        args.sums[args.size + e] = std::isfinite(sum) ? low - (sum - high) : 0;
    }
}

}  // namespace quiver::host
