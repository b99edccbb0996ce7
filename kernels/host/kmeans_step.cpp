// SPDX-License-Identifier: BSD-3-Clause
// kmeans_step on the host. A tile of rows is stored by columns, so that lanes run along the rows: a
// lane keeps the best centre of its row while the centres pass, four at a time.
#include <algorithm>
#include <limits>

#include "kernels/host/pieces.hpp"
#include "kernels/host/register_tile.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::host {
namespace {

constexpr int tile_rows = 128;
/// Centres whose sums a pass over the columns forms; `panels` has them side by side.
constexpr int panel = 4;

template <class T>
[[gnu::always_inline]] inline T point(T value) {
    return value;
}
[[gnu::always_inline]] inline float point(half_t value) {
    return widened(value);
}
[[gnu::always_inline]] inline float point(bfloat16_t value) {
    return widened(value);
}

constexpr int padded_centres(int k) {
    return (k + panel - 1) / panel * panel;
}

template <class In, class T>
struct KmeansStep {
    using Label = LaneIndex<T>;

    KmeansStepArgs<In, T> args;
    /// ||c||^2 / 2 of every centre; infinity for those that fill up the last panel.
    T* half_squares;
    /// c(j, p) of centre j = panel i + q is panels[(i d + p) panel + q].
    T* panels;
    double* partials;
    std::byte* tiles;

    static std::size_t tile_bytes(int d) {
        return cache_lines(static_cast<std::size_t>(d) * tile_rows * sizeof(T)) +
               cache_lines(tile_rows * sizeof(T)) + cache_lines(tile_rows * sizeof(Label));
    }

    void prepare_centres() {
        const int padded = padded_centres(args.k);
        for (int j = 0; j < padded; ++j) {
            T squares(0);
            for (int p = 0; p < args.d; ++p) {
                const T value = j < args.k ? args.centres[j * args.d + p] : T(0);
                panels[(j / panel * args.d + p) * panel + j % panel] = value;
                squares += value * value;
            }
            half_squares[j] = j < args.k ? squares / 2 : std::numeric_limits<T>::infinity();
        }
    }

    /// tile(p, r) = x(first + r, p) - origin_p; rows beyond `count` are zero.
    [[gnu::always_inline]] inline void load(std::int64_t first, int count, T* tile) const noexcept {
        for (int p = 0; p < args.d; ++p) {
            const In* const x = args.x + first * args.ldx + p;
            const T origin = args.origin[p];
            for (int r = 0; r < count; ++r) {
                tile[p * tile_rows + r] = point(x[r * args.ldx]) - origin;
            }
            std::fill(tile + p * tile_rows + count, tile + (p + 1) * tile_rows, T(0));
        }
    }

    /// labels[r] = argmin_j ||c_j||^2 / 2 - x_r c_j for two vectors of rows, which is the centre at
    /// the least distance.
    template <class Isa>
    [[gnu::always_inline]] inline void find_nearest(const T* x, Label* labels) const noexcept {
        constexpr int lanes = lanes_v<Isa, T>;
        constexpr int vectors = 2;
        using Vector = typename VectorOf<T, lanes>::type;
        using Labels = typename VectorOf<Label, lanes>::type;
        Vector best[vectors];
        Labels label[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            best[v] = Vector{} + std::numeric_limits<T>::infinity();
            label[v] = Labels{};
        }
        const int padded = padded_centres(args.k);
        for (int j = 0; j < padded; j += panel) {
            const T* const centres = panels + static_cast<std::ptrdiff_t>(j) * args.d;
            Vector sum[panel][vectors];
#pragma GCC unroll 4
            for (int q = 0; q < panel; ++q) {
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v) {
                    sum[q][v] = Vector{} + half_squares[j + q];
                }
            }
            for (int p = 0; p < args.d; ++p) {
                Vector row[vectors];
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v) {
                    load_once(x + p * tile_rows + v * lanes, row[v]);
                }
#pragma GCC unroll 4
                for (int q = 0; q < panel; ++q) {
                    const T factor = centres[p * panel + q];
#pragma GCC unroll 2
                    for (int v = 0; v < vectors; ++v) {
                        sum[q][v] -= factor * row[v];
                    }
                }
            }
#pragma GCC unroll 4
            for (int q = 0; q < panel; ++q) {
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v) {
                    const Labels nearer = sum[q][v] < best[v];
                    best[v] = nearer ? sum[q][v] : best[v];
                    label[v] = nearer ? Labels{} + (j + q) : label[v];
                }
            }
        }
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            std::memcpy(labels + v * lanes, &label[v], sizeof(Labels));
        }
    }

    /// The squared distance of every row of the tile to its centre.
    [[gnu::always_inline]] inline void measure(const T* tile, const Label* labels,
                                               T* distances) const noexcept {
        std::fill_n(distances, tile_rows, T(0));
        for (int p = 0; p < args.d; ++p) {
            const T* const column = tile + p * tile_rows;
            const T* const centres = args.centres + p;
#pragma GCC ivdep
            for (int r = 0; r < tile_rows; ++r) {
                const T difference = column[r] - centres[labels[r] * args.d];
                distances[r] += difference * difference;
            }
        }
    }

    [[gnu::always_inline]] inline void add_rows(std::int64_t first, int count, const Label* labels,
                                                const T* distances, double* sums) const noexcept {
        for (int r = 0; r < count; ++r) {
            const In* const x = args.x + (first + r) * args.ldx;
            double* const sum = sums + labels[r] * (args.d + 2);
#pragma GCC ivdep
            for (int p = 0; p < args.d; ++p) {
                const T value = point(x[p]) - args.origin[p];
                sum[p] += static_cast<double>(value);
            }
            sum[args.d] += 1;
            sum[args.d + 1] += static_cast<double>(distances[r]);
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        constexpr int step = 2 * lanes_v<Isa, T>;
        const int size = args.k * (args.d + 2);
        double* const sums = partials + static_cast<std::ptrdiff_t>(chunk.index) * size;
        std::fill_n(sums, size, 0.0);
        Arrays arrays(tiles + static_cast<std::size_t>(chunk.index) * tile_bytes(args.d));
        T* const tile = arrays.take<T>(static_cast<std::size_t>(args.d) * tile_rows);
        T* const distances = arrays.take<T>(tile_rows);
        Label* const labels = arrays.take<Label>(tile_rows);
        for (std::int64_t first = chunk.first; first < chunk.last; first += tile_rows) {
            const int count =
                static_cast<int>(std::min<std::int64_t>(tile_rows, chunk.last - first));
            load(first, count, tile);
            for (int r = 0; r < tile_rows; r += step) {
                find_nearest<Isa>(tile + r, labels + r);
            }
            measure(tile, labels, distances);
            add_rows(first, count, labels, distances, sums);
            for (int r = 0; args.labels != nullptr && r < count; ++r) {
                args.labels[first + r] = static_cast<int>(labels[r]);
            }
            if (args.distances != nullptr) {
                std::copy_n(distances, count, args.distances + first);
            }
        }
    }
};

template <class In, class T>
int chunks_of(int threads, const KmeansStepArgs<In, T>& args) {
    // The arithmetic of a row takes as long as reading it k times.
    return chunk_count(threads, args.rows, sizeof(In) * count_of(args.d, args.k));
}

}  // namespace

template <class In, class T>
std::size_t workspace_bytes(int threads, const KmeansStepArgs<In, T>& args) {
    const auto chunks = static_cast<std::size_t>(chunks_of(threads, args));
    const auto padded = static_cast<std::size_t>(padded_centres(args.k));
    return cache_lines(padded * sizeof(T)) +
           cache_lines(padded * static_cast<std::size_t>(args.d) * sizeof(T)) +
           cache_lines(chunks * count_of(args.k, args.d + 2) * sizeof(double)) +
           chunks * KmeansStep<In, T>::tile_bytes(args.d);
}

template <class In, class T>
void kmeans_step(int threads, const KmeansStepArgs<In, T>& args, void* workspace) {
    const int chunks = chunks_of(threads, args);
    const auto count = static_cast<std::size_t>(chunks);
    const std::size_t size = count_of(args.k, args.d + 2);
    const auto padded = static_cast<std::size_t>(padded_centres(args.k));
    Arrays arrays(workspace);
    KmeansStep<In, T> kernel{args, arrays.take<T>(padded),
                             arrays.take<T>(padded * static_cast<std::size_t>(args.d)),
                             arrays.take<double>(count * size), nullptr};
    kernel.tiles = arrays.take<std::byte>(count * KmeansStep<In, T>::tile_bytes(args.d));
    kernel.prepare_centres();
    run_chunks(chunks, args.rows, kernel);
    for (std::size_t i = 0; i < size; ++i) {
        double sum = 0;
        for (std::size_t chunk = 0; chunk < count; ++chunk) {
            sum += kernel.partials[chunk * size + i];
        }
        args.sums[i] = sum;
    }
}

#define QUIVER_INSTANTIATE(In, T)                                            \
    template std::size_t workspace_bytes(int, const KmeansStepArgs<In, T>&); \
    template void kmeans_step(int, const KmeansStepArgs<In, T>&, void*);
QUIVER_FOR_EACH_KMEANS(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
