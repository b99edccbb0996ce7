// SPDX-License-Identifier: BSD-3-Clause
// The configurations with which the device templates of the dense products are instantiated; shared
// by host and device code. Each field appears in one list only: the host names instances by the
// same list.
#pragma once

#include "kernels/cuda/fields.hpp"

namespace quiver {

/// FmaTile and MmaTile (src/tsmttsm_tiles.cuh): m x n sums by a team of threads. tensor: uses the
/// tensor cores. same: A is B. pitch_a, pitch_b: row pitch in shared memory. blocked, unroll: as in
/// TsmttsmPlan.
struct SumTileConfig {
    QUIVER_FIELDS(SumTileConfig, (bool, tensor), (int, m), (int, n), (bool, same), (int, tile_m),
                  (int, tile_n), (int, vector), (int, pitch_a), (int, pitch_b), (int, team),
                  (bool, blocked), (int, unroll))
};

/// FmaRows and MmaRows (src/tsmm_tiles.cuh): rows of X times an m x n matrix C by a team of
/// threads.
struct RowTileConfig {
    QUIVER_FIELDS(RowTileConfig, (bool, tensor), (int, m), (int, n), (int, tile_rows),
                  (int, tile_n), (int, vector), (int, vector_n), (bool, in_registers), (int, pitch),
                  (int, team))
};

/// See src/tsmttsm.cuh; each of the following structures belongs to the source of the same name.
struct TsmttsmConfig {
    QUIVER_FIELDS(TsmttsmConfig, (SumTileConfig, tile), (bool, exact), (int, rows), (int, stages),
                  (bool, contiguous_a), (bool, contiguous_b), (int, bytes_a), (int, bytes_b),
                  (int, threads), (int, blocks), (bool, atomics))
};

struct TsmmConfig {
    QUIVER_FIELDS(TsmmConfig, (RowTileConfig, tile), (int, second), (bool, exact), (int, stages),
                  (bool, contiguous), (int, bytes_x), (int, bytes_second), (bool, staged_y),
                  (int, bytes_y), (bool, flat_y), (int, threads), (int, blocks))
};

struct TsmmGramConfig {
    QUIVER_FIELDS(TsmmGramConfig, (RowTileConfig, update), (SumTileConfig, sums), (bool, exact),
                  (bool, adds), (int, stages), (bool, contiguous), (int, bytes_v), (int, bytes_w),
                  (int, threads), (int, blocks))
};

struct MtsmConfig {
    QUIVER_FIELDS(MtsmConfig, (bool, tensor), (bool, along_sum), (bool, conjugated), (int, n),
                  (int, rows), (int, depth), (int, rows_a_thread), (int, warps_m), (int, warps_n),
                  (int, groups), (int, pitch_a), (int, pitch_x), (int, stages), (int, bytes_a),
                  (int, bytes_x), (bool, x_rows), (bool, shifted), (bool, spread), (int, threads),
                  (int, blocks))
};

struct MtsmDirectConfig {
    QUIVER_FIELDS(MtsmDirectConfig, (int, n), (bool, conjugated), (int, vector), (int, ahead),
                  (int, threads), (int, blocks))
};

/// The fields that C = A^T B and Y = X C of half and bfloat16 blocks share.
#define QUIVER_FOLDED                                                                             \
    (int, m), (int, n), (int, fold), (int, split), (int, row_warps), (int, steps), (int, stages), \
        (int, bytes), (bool, bulk), (int, blocks)
struct MixedTsmttsmConfig {
    QUIVER_FIELDS(MixedTsmttsmConfig, QUIVER_FOLDED, (bool, same), (int, shares))
};

struct MixedTsmmConfig {
    QUIVER_FIELDS(MixedTsmmConfig, QUIVER_FOLDED, (bool, flat), (int, kept))
};

struct ShiftedGramConfig {
    QUIVER_FIELDS(ShiftedGramConfig, (int, m), (int, n), (bool, same), (bool, scaled), (int, warps),
                  (int, pitch_a), (int, pitch_b), (int, rows), (int, stages), (bool, contiguous_a),
                  (bool, contiguous_b), (int, bytes_a), (int, bytes_b), (int, threads),
                  (int, blocks))
};

struct GramTwofoldConfig {
    QUIVER_FIELDS(GramTwofoldConfig, (int, n), (int, pitch), (int, bytes), (int, rows),
                  (int, stages), (int, team), (int, threads), (int, blocks))
};

struct KmeansConfig {
    QUIVER_FIELDS(KmeansConfig, (int, d), (int, tiles), (int, pitch), (int, warps), (int, team),
                  (int, stages), (int, groups), (int, unroll), (bool, contiguous), (int, bytes))
};

struct WideTsmttsmConfig {
    QUIVER_FIELDS(WideTsmttsmConfig, (int, m), (int, n), (int, tile_m), (int, tile_n), (int, rows),
                  (int, threads))
};

}  // namespace quiver
