// SPDX-License-Identifier: BSD-3-Clause
// One step of Lloyd's iteration in one pass over the points. A thread keeps ROWS rows in registers
// while the centres pass from shared memory. Then threads own columns instead of rows: each adds
// its column of the tile, row by row, to the sums of the rows' centres. The order of the additions
// depends on the shape of the launch only.
#pragma once

#include "convert.cuh"
#include "kernels/operations/kmeans_layout.hpp"
#include "kernels/operations/kmeans_step.hpp"
#include "reduce.cuh"

namespace quiver {

/// The label and the squared distance of ROWS points in registers.
template <class T, int D, int ROWS>
struct NearestCentres {
    static constexpr int width = 16 / static_cast<int>(sizeof(T));
    using Word = Pack<T, width>;

    T x[ROWS][D];
    T best[ROWS];
    int label[ROWS];

    /// Calls use(p, value) for the elements of one centre.
    template <class Use>
    static void for_elements(const T* centre, Use use) {
#pragma unroll
        for (int q = 0; q < ceil_div(D, width); ++q) {
            const Word word = reinterpret_cast<const Word*>(centre)[q];
#pragma unroll
            for (int v = 0; v < width; ++v) {
                if (q * width + v < D) {
                    use(q * width + v, word.value[v]);
                }
            }
        }
    }

    /// The least ||c||^2 / 2 - x c, which is the centre at the least distance.
    void find(const T* centres, const T* half_squares, int k, int pitch) {
        const T infinity = T(__int_as_float(0x7f800000));
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            best[i] = infinity;
            label[i] = 0;
        }
#pragma unroll 1
        for (int j = 0; j < k; ++j) {
            T sum[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                sum[i] = half_squares[j];
            }
            for_elements(centres + j * pitch, [&](int p, T value) {
#pragma unroll
                for (int i = 0; i < ROWS; ++i) {
                    sum[i] = multiply_add(-value, x[i][p], sum[i]);
                }
            });
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                if (sum[i] < best[i]) {
                    best[i] = sum[i];
                    label[i] = j;
                }
            }
        }
    }

    T distance(const T* centres, int pitch, int i) const {
        T sum{};
        for_elements(centres + label[i] * pitch, [&](int p, T value) {
            const T difference = x[i][p] - value;
            sum = multiply_add(difference, difference, sum);
        });
        return sum;
    }
};

/// Adds a column of the tile at rows first, first + step, ... to the sums of the rows' centres, in
/// this order. The labels and elements of some rows are loaded before the sums change, so that only
/// the sums wait for each other.
template <int COLUMNS, class T>
void add_column(T* sums, const T* column, const int* labels, int first, int step, int count,
                int pitch) {
    constexpr int ahead = 4;
    for (int row = first; row < count; row += ahead * step) {
        T value[ahead];
        int label[ahead];
#pragma unroll
        for (int a = 0; a < ahead; ++a) {
            const int at = row + a * step;
            value[a] = at < count ? column[at * pitch] : T{};
            label[a] = at < count ? labels[at] : -1;
        }
#pragma unroll
        for (int a = 0; a < ahead; ++a) {
            if (label[a] >= 0) {
                sums[label[a] * COLUMNS] = sums[label[a] * COLUMNS] + value[a];
            }
        }
    }
}

/// The shared memory of a thread block and the parts of its work; all threads call each function.
template <class In, class T, int D, int ROWS, int THREADS>
struct KmeansBlock {
    static constexpr int columns = D + 2;
    static constexpr int tile_rows = ROWS * THREADS;

    const KmeansStepArgs<In, T>& args;
    KmeansLayout layout;
    int thread;
    T* centres;
    T* half_squares;
    T* origin;
    T* tile;
    T* sums;
    int* labels;

    explicit KmeansBlock(const KmeansStepArgs<In, T>& given)
        : args(given),
          layout(sizeof(T), D, given.k, ROWS, THREADS),
          thread(static_cast<int>(threadIdx.x)),
          centres(dynamic_shared<T>()),
          half_squares(centres + layout.half_squares()),
          origin(centres + layout.origin()),
          tile(centres + layout.tile()),
          sums(centres + layout.sums()),
          labels(reinterpret_cast<int*>(centres + layout.labels())) {}

    int size() const { return args.k * columns; }

    /// Loads centres and origin; sets the sums, also those in `partial`, to zero.
    void prepare(double* partial) {
        for (int e = thread; e < args.k * D; e += THREADS) {
            centres[e / D * layout.centre_pitch + e % D] = args.centres[e];
        }
        for (int p = thread; p < D; p += THREADS) {
            origin[p] = args.origin[p];
        }
        for (int e = thread; e < layout.groups * size(); e += THREADS) {
            sums[e] = T{};
        }
        for (int e = thread; e < size(); e += THREADS) {
            partial[e] = 0;
        }
        __syncthreads();
        for (int j = thread; j < args.k; j += THREADS) {
            T squares{};
            for (int p = 0; p < D; ++p) {
                const T value = centres[j * layout.centre_pitch + p];
                squares = multiply_add(value, value, squares);
            }
            half_squares[j] = squares / 2;
        }
    }

    /// The rows of the tile relative to the origin.
    void load(std::int64_t first, int count) {
#pragma unroll 4
        for (int e = thread; e < count * D; e += THREADS) {
            const int row = e / D;
            const int p = e % D;
            tile[row * layout.pitch + p] =
                Converter<T>::from(args.x[(first + row) * args.ldx + p]) - origin[p];
        }
    }

    /// Finds the labels and distances of the rows, for the sums and for the caller.
    void assign(std::int64_t first, int count) {
        NearestCentres<T, D, ROWS> nearest;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
#pragma unroll
            for (int p = 0; p < D; ++p) {
                nearest.x[i][p] = tile[(thread + i * THREADS) * layout.pitch + p];
            }
        }
        nearest.find(centres, half_squares, args.k, layout.centre_pitch);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int row = thread + i * THREADS;
            if (row < count) {
                const T distance = nearest.distance(centres, layout.centre_pitch, i);
                tile[row * layout.pitch + D] = T(1);
                tile[row * layout.pitch + D + 1] = distance;
                labels[row] = nearest.label[i];
                if (args.labels != nullptr) {
                    args.labels[first + row] = nearest.label[i];
                }
                if (args.distances != nullptr) {
                    args.distances[first + row] = distance;
                }
            }
        }
    }

    /// Adds the rows of the tile to the sums of their centres.
    void add(int count) {
        for (int e = thread; e < layout.groups * columns; e += THREADS) {
            add_column<columns>(sums + e / columns * size() + e % columns, tile + e % columns,
                                labels, e / columns, layout.groups, count, layout.pitch);
        }
    }

    /// Moves the sums to `partial`. Each thread adds to the same elements every time.
    void fold(double* partial) {
        for (int e = thread; e < size(); e += THREADS) {
            double sum = partial[e];
            for (int g = 0; g < layout.groups; ++g) {
                sum += static_cast<double>(sums[g * size() + e]);
                sums[g * size() + e] = T{};
            }
            partial[e] = sum;
        }
    }
};

/// Requires a one-dimensional grid; `partials` has k (D + 2) numbers for each block.
template <class In, class T, int D, int ROWS, int THREADS>
__global__ void __launch_bounds__(THREADS, 1)
    kmeans_step(KmeansStepArgs<In, T> args, double* partials, unsigned* counters, int group) {
    /// Tiles after which the sums in T are added to those in double.
    constexpr int tiles_per_fold = 16;
    using Block = KmeansBlock<In, T, D, ROWS, THREADS>;
    Block block(args);
    double* const partial = partials + static_cast<std::int64_t>(blockIdx.x) * block.size();
    block.prepare(partial);
    const std::int64_t tiles = (args.rows + Block::tile_rows - 1) / Block::tile_rows;
    int unfolded = 0;
    for (std::int64_t at = blockIdx.x; at < tiles; at += gridDim.x) {
        const std::int64_t first = at * Block::tile_rows;
        const int count =
            static_cast<int>(minimum<std::int64_t>(Block::tile_rows, args.rows - first));
        __syncthreads();
        block.load(first, count);
        __syncthreads();
        block.assign(first, count);
        __syncthreads();
        block.add(count);
        if (++unfolded == tiles_per_fold) {
            __syncthreads();
            block.fold(partial);
            unfolded = 0;
        }
    }
    __syncthreads();
    block.fold(partial);
    __syncthreads();
    sum_over_blocks<64 * 66, THREADS>(block.size(), partials, counters, group,
                                      static_cast<double*>(nullptr),
                                      [&](int i, double sum) { args.sums[i] = sum; });
}

}  // namespace quiver
