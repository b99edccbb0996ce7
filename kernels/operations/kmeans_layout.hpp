// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of a thread block of kmeans_step and of kmeans_products; shared by host and
// device code.
#pragma once

namespace quiver {

/// Offsets and pitches are in elements. A row of the tile has the d columns of the point, a 1
/// (which counts the points) and the squared distance: all of them are summed in the same way.
struct KmeansLayout {
    int scalar_bytes;
    int columns;  // d + 2
    int k;
    /// The row pitch of the tile is odd: threads of a warp that read one column of neighbouring
    /// rows use different banks.
    int pitch;
    int tile_rows;
    /// Groups of threads, each with its own copy of the sums.
    int groups;
    /// The pitch of the centres is an odd number of 16-byte words, so that threads that read
    /// different centres mostly use different banks.
    int centre_pitch;

    constexpr KmeansLayout(int bytes, int d, int centres, int rows, int threads)
        : scalar_bytes(bytes),
          columns(d + 2),
          k(centres),
          pitch(columns | 1),
          tile_rows(rows * threads),
          groups(threads / columns > 0 ? threads / columns : 1),
          centre_pitch(((d * bytes + 15) / 16 | 1) * 16 / bytes) {}

    /// Offsets of the arrays: the centres (at 0), ||c||^2 / 2 of each, origin, tile, sums, labels.
    constexpr int half_squares() const { return k * centre_pitch; }
    constexpr int origin() const { return half_squares() + k; }
    constexpr int tile() const { return origin() + columns; }
    constexpr int sums() const { return tile() + tile_rows * pitch; }
    constexpr int labels() const { return sums() + groups * k * columns; }
    constexpr unsigned long bytes() const {
        return static_cast<unsigned long>(labels()) * static_cast<unsigned long>(scalar_bytes) +
               static_cast<unsigned long>(tile_rows) * sizeof(int);
    }
};

/// Offsets in bytes in the shared memory of a thread block of kmeans_products: -c of the centres
/// (at 0), ||c||^2 / 2, origin; then the part of each warp: stages of 32 rows, distances, numbers,
/// labels; then the sums of each team.
struct KmeansProductsLayout {
    int d, centres, pitch, warps, team, stages, element_bytes, scalar_bytes;
    /// The pitch of the centres in doubles, with which the fragments of a warp lie in different
    /// banks; the columns of the fragments.
    int centre_pitch, padded;

    constexpr KmeansProductsLayout(int columns, int tiles, int row_pitch, int all_warps,
                                   int team_warps, int all_stages, int bytes_of_in, int bytes_of_t)
        : d(columns),
          centres(8 * tiles),
          pitch(row_pitch),
          warps(all_warps),
          team(team_warps),
          stages(all_stages),
          element_bytes(bytes_of_in),
          scalar_bytes(bytes_of_t),
          centre_pitch(conflict_free_pitch(columns)),
          padded((columns + 3) / 4 * 4) {}

    /// The next pitch of 8 modulo 16 elements.
    static constexpr int conflict_free_pitch(int columns) { return (columns + 7) / 16 * 16 + 8; }
    static constexpr int aligned(int bytes) { return (bytes + 15) / 16 * 16; }

    constexpr int half_squares() const { return centres * centre_pitch * 8; }
    constexpr int origin() const { return half_squares() + centres * 8; }
    constexpr int warp(int number) const {
        return origin() + aligned(padded * scalar_bytes) + number * warp_bytes();
    }
    /// Relative to the part of the warp.
    constexpr int stage_bytes() const { return 32 * pitch * element_bytes; }
    constexpr int distances() const { return stages * stage_bytes(); }
    constexpr int numbers() const { return distances() + aligned((centres + 1) * scalar_bytes); }
    constexpr int labels() const { return numbers() + aligned((centres + 1) * 4); }
    constexpr int warp_bytes() const { return labels() + aligned(33 * 4); }

    constexpr int sums(int number) const {
        return warp(warps) + number * aligned((centres + 1) * d * scalar_bytes);
    }
    constexpr int bytes() const { return sums(warps / team); }
};

}  // namespace quiver
