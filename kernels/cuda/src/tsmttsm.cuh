// SPDX-License-Identifier: BSD-3-Clause
// C = alpha A^H B + beta C, after Ernst, Hager, Thies, Wellein, IJHPCA 2020, section 3, with two
// additions: rows are copied to shared memory asynchronously, several stages ahead of the sums, and
// double precision can use the tensor cores.
#pragma once

#include "kernels/operations/tsmttsm.hpp"
#include "reduce.cuh"
#include "stage.cuh"
#include "tsmttsm_tiles.cuh"

namespace quiver {

/// The factor of one row; see NoWeights.
template <class R>
struct Weight {
    R weight;
    R operator()(R value) const { return weight * value; }
    Complex<R> operator()(Complex<R> value) const { return {weight * value.re, weight * value.im}; }
};

/// The weights of C = A^H diag(w) B: zero beyond the last row.
template <class R>
struct RowWeights {
    const R* w;
    std::int64_t ldw;
    std::int64_t rows;

    /// The weights of the rows from `first` on.
    RowWeights from(std::int64_t first) const { return {w + first * ldw, ldw, rows - first}; }
    /// The weights of the rows first, first + step, ...
    RowWeights every(int start, int step) const {
        return {w + start * ldw, ldw * step, (rows - start + step - 1) / step};
    }
    Weight<R> at(int row) const { return {row < rows ? w[row * ldw] : R(0)}; }
};

template <class T>
struct WeightOf {
    using type = T;
};
template <class R>
struct WeightOf<Complex<R>> {
    using type = R;
};

/// C = alpha (sums of all tiles of the launch) + beta C. The blocks store the sums of the first m
/// rows of C, of tile.n columns each. `shared` has SHARED_BYTES. The first `head` rows of the tile
/// of this block do not belong to C.
template <class T, TsmttsmConfig CFG, int SHARED_BYTES, class TILE>
void combine_sums(const TILE& tile, const TsmttsmArgs<T>& args, T* shared, T* partials,
                  unsigned* counters, int group, int m, int head = 0) {
    // Calls use(i, j, sum, first) for the sums of this block (see sum_tiles); with `same` for one
    // triangle only.
    const auto for_each_sum = [&](auto use) {
        sum_tiles<CFG.tile.team, CFG.threads, SHARED_BYTES>(
            tile, shared, [&](int i, int j, T value, bool first) {
                i -= head;
                if (CFG.tile.same && i > j) {
                    if (!tile.mirrors()) {
                        return;
                    }
                    const int row = i;
                    i = j;
                    j = row;
                    value = conjugate(value);
                }
                if (i >= 0 && i < m && j >= 0 && j < CFG.tile.n) {
                    use(i, j, value, first);
                }
            });
    };
    // Calls update(address, value) for an entry of C and, with `same`, for its mirror image.
    const auto for_each_address = [&](int i, int j, T sum, auto update) {
        if ((!CFG.exact && (i >= args.m || j >= args.n)) || (CFG.tile.same && i > j)) {
            return;
        }
        if (CFG.tile.same && i == j) {
            sum = real_part(sum);
        }
        update(args.c + i * args.ldc + j, multiply(args.alpha, sum));
        if (CFG.tile.same && i < j) {
            update(args.c + j * args.ldc + i, multiply(args.alpha, conjugate(sum)));
        }
    };
    if constexpr (CFG.atomics) {
        for_each_sum([&](int i, int j, T value, bool) {
            for_each_address(i, j, value, [](T* c, T term) { atomic_add(c, term); });
        });
    } else {
        T* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (m * CFG.tile.n);
        for_each_sum([&](int i, int j, T value, bool first) {
            T& sum = mine[i * CFG.tile.n + j];
            sum = first ? value : sum + value;
        });
        sum_over_blocks<CFG.tile.m * CFG.tile.n, CFG.threads>(
            m * CFG.tile.n, partials, counters, group, shared, [&](int e, T total) {
                for_each_address(e / CFG.tile.n, e % CFG.tile.n, total, [&](T* c, T term) {
                    *c = is_zero(args.beta) ? term : multiply_add(args.beta, *c, term);
                });
            });
    }
}

/// C = alpha A^H diag(w) B + beta C or, if Weights is NoWeights, C = alpha A^H B + beta C. tile.m x
/// tile.n: the shape of C or, unless `exact`, the next larger compiled shape. tile.same: A is B,
/// and only one triangle of C is summed. For each team `stages` groups of `rows` rows of A and B
/// are in flight. contiguous_a, contiguous_b: no gaps between rows. bytes_a, bytes_b: bytes per
/// copy of a thread; 0: the copy engine copies. atomics: C holds beta C before the launch, and
/// every block adds its sums to C in any order; otherwise the last block adds all sums in a fixed
/// order.
template <class T, TsmttsmConfig CFG, class Weights>
void form_tsmttsm(const TsmttsmArgs<T>& args, const Weights& weights, T* partials,
                  unsigned* counters, int group) {
    using Tile = SumTile<T, CFG.tile>;
    // Fragments at the edge of C read past the last row.
    constexpr int slack = Tile::classes > 1 ? 32 : 16;
    constexpr int unit = 16 / minimum<int>(16, sizeof(T));
    constexpr int size_a = ceil_div(CFG.rows * CFG.tile.pitch_a + slack, unit) * unit;
    constexpr int size_b =
        CFG.tile.same ? 0 : ceil_div(CFG.rows * CFG.tile.pitch_b + slack, unit) * unit;
    constexpr int teams = CFG.threads / CFG.tile.team;
    const int team = teams == 1 ? 0 : threadIdx.x / CFG.tile.team;
    const int thread = teams == 1 ? threadIdx.x : threadIdx.x % CFG.tile.team;
    T* const shared = dynamic_shared<T>();
    T* const stages = shared + team * (CFG.stages * (size_a + size_b));
    Tile tile(thread);

    const Chunks chunks{static_cast<std::int64_t>(team) * gridDim.x + blockIdx.x,
                        (args.rows + CFG.rows - 1) / CFG.rows,
                        static_cast<std::int64_t>(gridDim.x) * teams};
    std::int64_t added = chunks.first;
    const auto add = [&](int stage) {
        const T* const a = stages + stage * (size_a + size_b);
        tile.template add<CFG.rows>(a, CFG.tile.same ? a : a + size_a,
                                    weights.from(added * CFG.rows));
        added += chunks.stride;
    };
    const auto prepare = [] {};
    const auto finish = [](std::int64_t) {};
    if constexpr (CFG.bytes_a == 0) {
        __shared__ std::uint64_t barriers[teams * 2 * CFG.stages];
        const BulkCopy<T, CFG.rows, CFG.tile.m, CFG.tile.pitch_a, CFG.contiguous_a> copy_a(
            args.a, args.lda, args.m, args.rows);
        const BulkCopy<T, CFG.rows, CFG.tile.n, CFG.tile.pitch_b, CFG.contiguous_b> copy_b(
            args.b, args.ldb, args.n, args.rows);
        const auto start = [&](const Barrier& full, int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            const std::int64_t first = chunk * CFG.rows;
            copy_a.fill_up(a, first);
            if (!CFG.tile.same) {
                copy_b.fill_up(a + size_a, first);
            }
            __syncwarp();
            if (thread == 0) {
                full.arrive_expecting(copy_a.bytes(first) +
                                      (CFG.tile.same ? 0 : copy_b.bytes(first)));
            }
            __syncwarp();
            copy_a.start(full, a, first);
            if (!CFG.tile.same) {
                copy_b.start(full, a + size_a, first);
            }
        };
        for_bulk_chunks<CFG.stages, CFG.tile.team>(barriers + team * (2 * CFG.stages), chunks,
                                                   start, prepare, add, finish);
    } else {
        const RowCopy<T, CFG.tile.team, CFG.rows, CFG.tile.m, CFG.tile.pitch_a, CFG.exact,
                      CFG.contiguous_a, CFG.bytes_a>
            copy_a(thread, args.a, args.lda, args.m);
        const RowCopy<T, CFG.tile.team, CFG.rows, CFG.tile.n, CFG.tile.pitch_b, CFG.exact,
                      CFG.contiguous_b, CFG.bytes_b>
            copy_b(thread, args.b, args.ldb, args.n);
        const auto start = [&](int stage, std::int64_t chunk) {
            T* const a = stages + stage * (size_a + size_b);
            copy_a.start(a, args.a, chunk * CFG.rows, args.rows);
            if (!CFG.tile.same) {
                copy_b.start(a + size_a, args.b, chunk * CFG.rows, args.rows);
            }
        };
        for_copied_chunks<CFG.stages, CFG.tile.team>(team, chunks, start, prepare, add, finish);
    }

    constexpr int shared_bytes =
        teams * CFG.stages * (size_a + size_b) * static_cast<int>(sizeof(T));
    combine_sums<T, CFG, shared_bytes>(tile, args, shared, partials, counters, group, CFG.tile.m);
}

template <class T, TsmttsmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    tsmttsm(TsmttsmArgs<T> args, T* partials, unsigned* counters, int group) {
    form_tsmttsm<T, CFG>(args, NoWeights(), partials, counters, group);
}

template <class T, TsmttsmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    weighted_tsmttsm(WeightedTsmttsmArgs<T, typename WeightOf<T>::type> args, T* partials,
                     unsigned* counters, int group) {
    using Weights = RowWeights<typename WeightOf<T>::type>;
    form_tsmttsm<T, CFG>(args.product, Weights{args.w, args.ldw, args.product.rows}, partials,
                         counters, group);
}

}  // namespace quiver
