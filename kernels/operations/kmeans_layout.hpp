// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of a thread block of kmeans_step; shared by host and device code.
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

}  // namespace quiver
