// SPDX-License-Identifier: BSD-3-Clause
// What the device templates of the dense products are instantiated with; the same text for host and
// device. A field is named in one list only: the host prints instances by the names of that list.
#pragma once

#include "kernels/cuda/fields.hpp"

namespace quiver {

/// FmaTile and MmaTile (src/tsmttsm_tiles.cuh): m x n sums by a team of threads. tensor: by the
/// tensor cores. same: A is B. pitch_a, pitch_b: how far apart rows lie in shared memory.
#define QUIVER_SUM_TILE(FIELD) \
    FIELD(bool, tensor)        \
    FIELD(int, m)              \
    FIELD(int, n)              \
    FIELD(bool, same)          \
    FIELD(int, tile_m)         \
    FIELD(int, tile_n)         \
    FIELD(int, vector)         \
    FIELD(int, pitch_a)        \
    FIELD(int, pitch_b)        \
    FIELD(int, team)
struct SumTileConfig {
    QUIVER_FIELDS(SumTileConfig, QUIVER_SUM_TILE)
};

/// FmaRows and MmaRows (src/tsmm_tiles.cuh): rows of X times a C of m x n by a team of threads.
#define QUIVER_ROW_TILE(FIELD) \
    FIELD(bool, tensor)        \
    FIELD(int, m)              \
    FIELD(int, n)              \
    FIELD(int, tile_rows)      \
    FIELD(int, tile_n)         \
    FIELD(int, vector)         \
    FIELD(int, vector_n)       \
    FIELD(bool, in_registers)  \
    FIELD(int, pitch)          \
    FIELD(int, team)
struct RowTileConfig {
    QUIVER_FIELDS(RowTileConfig, QUIVER_ROW_TILE)
};

/// See src/tsmttsm.cuh, and so on for those that follow.
#define QUIVER_TSMTTSM(FIELD)  \
    FIELD(SumTileConfig, tile) \
    FIELD(bool, exact)         \
    FIELD(int, rows)           \
    FIELD(int, stages)         \
    FIELD(bool, contiguous_a)  \
    FIELD(bool, contiguous_b)  \
    FIELD(int, bytes_a)        \
    FIELD(int, bytes_b)        \
    FIELD(int, threads)        \
    FIELD(int, blocks)         \
    FIELD(bool, atomics)
struct TsmttsmConfig {
    QUIVER_FIELDS(TsmttsmConfig, QUIVER_TSMTTSM)
};

#define QUIVER_TSMM(FIELD)     \
    FIELD(RowTileConfig, tile) \
    FIELD(int, second)         \
    FIELD(bool, exact)         \
    FIELD(int, stages)         \
    FIELD(bool, contiguous)    \
    FIELD(int, bytes_x)        \
    FIELD(int, bytes_second)   \
    FIELD(bool, staged_y)      \
    FIELD(int, bytes_y)        \
    FIELD(bool, flat_y)        \
    FIELD(int, threads)        \
    FIELD(int, blocks)
struct TsmmConfig {
    QUIVER_FIELDS(TsmmConfig, QUIVER_TSMM)
};

#define QUIVER_TSMM_GRAM(FIELD)  \
    FIELD(RowTileConfig, update) \
    FIELD(SumTileConfig, sums)   \
    FIELD(bool, exact)           \
    FIELD(bool, adds)            \
    FIELD(int, stages)           \
    FIELD(bool, contiguous)      \
    FIELD(int, bytes_v)          \
    FIELD(int, bytes_w)          \
    FIELD(int, threads)          \
    FIELD(int, blocks)
struct TsmmGramConfig {
    QUIVER_FIELDS(TsmmGramConfig, QUIVER_TSMM_GRAM)
};

#define QUIVER_MTSM(FIELD)    \
    FIELD(bool, tensor)       \
    FIELD(bool, along_sum)    \
    FIELD(bool, conjugated)   \
    FIELD(int, n)             \
    FIELD(int, rows)          \
    FIELD(int, depth)         \
    FIELD(int, rows_a_thread) \
    FIELD(int, warps_m)       \
    FIELD(int, warps_n)       \
    FIELD(int, groups)        \
    FIELD(int, pitch_a)       \
    FIELD(int, pitch_x)       \
    FIELD(int, stages)        \
    FIELD(int, bytes_a)       \
    FIELD(int, bytes_x)       \
    FIELD(bool, x_rows)       \
    FIELD(int, threads)       \
    FIELD(int, blocks)
struct MtsmConfig {
    QUIVER_FIELDS(MtsmConfig, QUIVER_MTSM)
};

/// The fields that C = A^T B and Y = X C of half and bfloat16 blocks share.
#define QUIVER_FOLDED(FIELD) \
    FIELD(int, m)            \
    FIELD(int, n)            \
    FIELD(int, fold)         \
    FIELD(int, split)        \
    FIELD(int, row_warps)    \
    FIELD(int, steps)        \
    FIELD(int, stages)       \
    FIELD(int, bytes)        \
    FIELD(bool, bulk)        \
    FIELD(int, blocks)
#define QUIVER_MIXED_TSMTTSM(FIELD) \
    QUIVER_FOLDED(FIELD)            \
    FIELD(bool, same)               \
    FIELD(int, shares)
struct MixedTsmttsmConfig {
    QUIVER_FIELDS(MixedTsmttsmConfig, QUIVER_MIXED_TSMTTSM)
};

#define QUIVER_MIXED_TSMM(FIELD) \
    QUIVER_FOLDED(FIELD)         \
    FIELD(bool, flat)            \
    FIELD(int, kept)
struct MixedTsmmConfig {
    QUIVER_FIELDS(MixedTsmmConfig, QUIVER_MIXED_TSMM)
};

#define QUIVER_WIDE_TSMTTSM(FIELD) \
    FIELD(int, m)                  \
    FIELD(int, n)                  \
    FIELD(int, tile_m)             \
    FIELD(int, tile_n)             \
    FIELD(int, rows)               \
    FIELD(int, threads)
struct WideTsmttsmConfig {
    QUIVER_FIELDS(WideTsmttsmConfig, QUIVER_WIDE_TSMTTSM)
};

}  // namespace quiver
