// SPDX-License-Identifier: BSD-3-Clause
// P A = L U of many small matrices: one matrix per thread, one row per thread of a group, or panels
// of columns in shared memory. Rows are exchanged by renumbering until they are stored. Source:
// Haidar et al., IEEE TPDS 29(5), 2018, section 4.4 (register design, delayed exchange of rows).
#pragma once

#include "batched_panels.cuh"

namespace quiver {

/// One matrix per thread, THREADS matrices per block.
template <class T, int N, int THREADS, int GAP, int WORD, bool BY_ROWS, Packing PACKING>
__global__ void __launch_bounds__(THREADS) lu_by_thread(LuArgs<T> args) {
    using Tile = MatrixTile<T, N, THREADS, THREADS, N, GAP, WORD, BY_ROWS, false, PACKING>;
    using Own = OwnMatrix<T, N, Tile, BY_ROWS, PACKING>;
    __shared__ int shared_pivots[THREADS * N];
    T* const tile = dynamic_shared<T>();
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * THREADS;
    const std::int64_t b = first + threadIdx.x;
    if constexpr (PACKING != Packing::interleaved) {
        Tile::load(args.a, first, tile);
        __syncthreads();
    }
    T a[N][N];
    Own::load(args.a, b, tile, a);

    int status = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        int p = k;
        RealOf<T> largest = one_norm(a[k][k]);
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            const RealOf<T> value = one_norm(a[i][k]);
            const bool more = (value > largest) | (value != value);
            largest = more ? value : largest;
            p = more ? i : p;
        }
        shared_pivots[threadIdx.x * N + k] = p;
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            const bool here = p == i;
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const T below = a[i][j];
                a[i][j] = here ? a[k][j] : below;
                a[k][j] = here ? below : a[k][j];
            }
        }
        const bool zero = is_zero(a[k][k]);
        status = status == 0 && (zero || !is_finite(a[k][k])) ? k + 1 : status;
        const T pivot = zero ? from_real<T>(1) : a[k][k];
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            a[i][k] = quotient(a[i][k], pivot);
            const T factor = -a[i][k];
#pragma unroll
            for (int j = k + 1; j < N; ++j) {
                a[i][j] = multiply_add(factor, a[k][j], a[i][j]);
            }
        }
    }

    Own::template store<false>(args.a, b, a, tile);
    if (b < args.a.count) {
        args.status[b] = status;
    }
    __syncthreads();
    if constexpr (PACKING != Packing::interleaved) {
        Tile::store(args.a, first, tile);
    }
    const std::int64_t left = minimum<std::int64_t>(THREADS, args.a.count - first);
    for (int e = threadIdx.x; e < left * N; e += THREADS) {
        args.pivots[first * N + e] = shared_pivots[e];
    }
}

/// A number whose sign does not matter and that is the larger, the larger the 1-norm of a.
template <class R>
R magnitude(R a) {
    return a;
}
template <class R>
R magnitude(Complex<R> a) {
    return one_norm(a);
}

/// A sortable key of a pivot candidate: larger values have larger keys, NaN has the largest; key 0
/// means no candidate.
struct PivotKey {
    unsigned high;
    unsigned low;

    static PivotKey of(float value) { return {(__float_as_uint(value) & 0x7fffffffu) + 1, 0}; }
    static PivotKey of(double value) {
        return {(static_cast<unsigned>(__double2hiint(value)) & 0x7fffffffu) + 1,
                static_cast<unsigned>(__double2loint(value))};
    }
};

/// The largest value among LANES neighbouring lanes, returned in each of them.
template <int LANES>
unsigned largest_of(unsigned value) {
    if constexpr (LANES == 32) {
        return __reduce_max_sync(0xffffffffu, value);
    } else {
#pragma unroll
        for (int mask = LANES / 2; mask > 0; mask /= 2) {
            const unsigned other = shuffle_xor(value, mask);
            value = other > value ? other : value;
        }
        return value;
    }
}

/// The candidate with the largest key among LANES neighbouring lanes with SLOTS candidates each, as
/// lane + LANES slot; among equal keys, the one with the smallest position. There must be a
/// candidate. `high` becomes the high word of its key.
template <int LANES, bool HAS_LOW, int SLOTS>
unsigned winner_of(const PivotKey (&keys)[SLOTS], const int (&positions)[SLOTS], unsigned& high) {
    constexpr unsigned all = 0xffffffffu;
    const unsigned base = threadIdx.x % 32 / LANES * LANES;
    const unsigned group = LANES == 32 ? all : ((1u << LANES % 32) - 1) << base;
    high = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        high = keys[s].high > high ? keys[s].high : high;
    }
    high = largest_of<LANES>(high);
    bool candidate[SLOTS];
    unsigned candidates[SLOTS];
    int number = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        candidate[s] = keys[s].high == high;
        candidates[s] = __ballot_sync(all, candidate[s]) & group;
        number += __popc(candidates[s]);
    }
    if (LANES == 32 ? number > 1 : __any_sync(all, number > 1)) {
        if constexpr (HAS_LOW) {
            unsigned low = 0;
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                low = candidate[s] && keys[s].low > low ? keys[s].low : low;
            }
            low = largest_of<LANES>(low);
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                candidate[s] = candidate[s] && keys[s].low == low;
            }
        }
        unsigned best = 0;
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            const unsigned rank = candidate[s] ? 1024u - static_cast<unsigned>(positions[s]) : 0;
            best = rank > best ? rank : best;
        }
        best = largest_of<LANES>(best);
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            const bool first = 1024u - static_cast<unsigned>(positions[s]) == best;
            candidates[s] = __ballot_sync(all, candidate[s] && first) & group;
        }
    }
    unsigned winner = 0;
#pragma unroll
    for (int s = SLOTS - 1; s >= 0; --s) {
        if (s == SLOTS - 1 || candidates[s] != 0) {
            winner = s * LANES + 31 - __clz(candidates[s]) - base;
        }
    }
    return winner;
}

/// Stores the elements of a row from column k on, and up to V - 1 others, for other lanes.
template <int V, int COUNT, class T>
void pass_row(const T (&row)[COUNT], int k, T* to) {
#pragma unroll
    for (int j = 0; j < COUNT; j += V) {
        if (j + V > k) {
            Pack<T, V> pack;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                pack.value[v] = j + v < COUNT ? row[minimum(j + v, COUNT - 1)] : T{};
            }
            *reinterpret_cast<Pack<T, V>*>(to + j) = pack;
        }
    }
}

/// GROUP threads share a matrix, one row each; GROUP is a power of two up to 32.
template <class T, int N, int MATRICES, int GROUP, int PITCH, int WORD, bool BY_ROWS,
          Packing PACKING>
__global__ void __launch_bounds__(MATRICES* GROUP) lu_by_rows(LuArgs<T> args) {
    static_assert(N <= GROUP && GROUP <= 32);
    constexpr int V = 16 / sizeof(T);
    constexpr int passed_row = ceil_div(N, V) * V;
    constexpr bool has_low = sizeof(RealOf<T>) == 8;
    using Tile =
        MatrixTile<T, N, MATRICES, MATRICES * GROUP, PITCH, 0, WORD, BY_ROWS, false, PACKING>;

    T* const tile = dynamic_shared<T>();
    // The pivot row of each matrix, for this step and the previous one.
    T* const passed = tile + ceil_div(Tile::elements, V) * V;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * MATRICES;
    const int m = threadIdx.x / GROUP;
    const int row = threadIdx.x % GROUP;
    const bool has_row = row < N;
    T* const own = tile + m * Tile::matrix_pitch;

    Tile::load(args.a, first, tile);
    __syncthreads();
    T a[N];
    if constexpr (BY_ROWS) {
        load_run<vector_of<T>(PITCH)>(own + (has_row ? row : 0) * PITCH, a);
    } else {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            a[j] = has_row ? own[Tile::index(row, j)] : T{};
        }
    }

    int position[1] = {has_row ? row : 1000};
    int exchanged = 0;  // row exchanged with the row of this thread's number
    int status = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        PivotKey key[1] = {{0, 0}};
        if (position[0] >= k && has_row) {
            key[0] = PivotKey::of(one_norm(a[k]));
        }
        unsigned high;
        const unsigned winner = winner_of<GROUP, has_low>(key, position, high);
        const bool is_pivot = static_cast<unsigned>(row) == winner;
        T* const pivot_row = passed + (k % 2 * MATRICES + m) * passed_row;
        if (is_pivot) {
            pass_row<V>(a, k, pivot_row);
        }
        const int best_position = shuffle(position[0], static_cast<int>(winner), GROUP);
        __syncwarp();
        if (is_pivot) {
            position[0] = k;
        } else if (position[0] == k) {
            position[0] = best_position;
        }
        exchanged = row == k ? best_position : exchanged;

        const T pivot = pivot_row[k];
        const bool zero = is_zero(pivot);
        status = status == 0 && (zero || !is_finite(pivot)) ? k + 1 : status;
        if (position[0] > k && has_row) {
            a[k] = quotient(a[k], zero ? from_real<T>(1) : pivot);
            const T factor = -a[k];
#pragma unroll
            for (int j = k / V * V; j < N; j += V) {
                const auto pack = *reinterpret_cast<const Pack<T, V>*>(pivot_row + j);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    if (j + v < N && j + v > k) {
                        a[j + v] = multiply_add(factor, pack.value[v], a[j + v]);
                    }
                }
            }
        }
    }

    const std::int64_t b = first + m;
    if (b < args.a.count) {
        if (has_row) {
            args.pivots[b * N + row] = exchanged;
        }
        if (row == 0) {
            args.status[b] = status;
        }
    }
    if (has_row) {
        if constexpr (BY_ROWS) {
            store_run<vector_of<T>(PITCH)>(a, own + position[0] * PITCH);
        } else {
#pragma unroll
            for (int j = 0; j < N; ++j) {
                own[Tile::index(position[0], j)] = a[j];
            }
        }
    }
    __syncthreads();
    Tile::store(args.a, first, tile);
}

/// Quotients by a pivot whose key is not special.
template <class T>
struct Divider {
    T by;
    explicit Divider(T by_) : by(by_) {}
    T divide(T a) const { return quotient(a, by); }
    /// True for the keys of 0 and of numbers that are not finite, and for some others.
    static bool is_special(unsigned high) {
        constexpr unsigned infinite = (sizeof(RealOf<T>) == 8 ? 0x7ff00000u : 0x7f800000u) + 1;
        return high - 2 >= infinite - 2;
    }
};
/// Newton's iteration and one correction, without the branch of a division.
template <>
struct Divider<double> {
    double by, inverse;
    explicit Divider(double by_) : by(by_) {
        asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(by));
        double error = multiply_add(-by, inverse, 1.0);
        error = multiply_add(error, error, error);
        inverse = multiply_add(inverse, error, inverse);
        error = multiply_add(-by, inverse, 1.0);
        inverse = multiply_add(inverse, error, inverse);
    }
    double divide(double a) const {
        const double estimate = a * inverse;
        return multiply_add(multiply_add(-estimate, by, a), inverse, estimate);
    }
    static bool is_special(unsigned high) {
        constexpr unsigned smallest = (1023u - 960u) << 20;
        constexpr unsigned largest = (1023u + 960u) << 20;
        return high - smallest >= largest - smallest;
    }
};

/// LU by WARPS warps per matrix. Shared memory beside the matrix: work_elements elements and Notes.
template <class T, int N, int WARPS, int PITCH, bool BY_ROWS>
struct LuPanels {
    using Matrix = PanelMatrix<T, N, PITCH, BY_ROWS>;
    static constexpr int width = Matrix::width;
    static constexpr int slots = Matrix::slots;
    static constexpr int V = Matrix::V;
    static constexpr bool has_low = sizeof(RealOf<T>) == 8;
    /// Distance of rows of U; with tensor cores, lanes that read four of them use different banks.
    static constexpr int u_pitch = ceil_div(N, width) * width - 4;
    static constexpr int work_elements = 2 * width + width * u_pitch;
    /// Rows of a lane in an update without tensor cores.
    static constexpr int tall = sizeof(T) == 16 ? 2 : 4;

    /// The rows that are still to be pivots after the panel, as bits; its pivot rows; and the final
    /// numbers of all rows.
    struct Notes {
        unsigned long long active;
        unsigned char pivot_rows[width];
        unsigned char places[N];
    };

    Matrix a;
    T* passed;  // the pivot row of this step and the previous one
    T* u;       // the rows of U right of the panel
    Notes& notes;
    int* pivots;  // null if the matrix is beyond the batch
    int lane, warp;

    // Of the first warp: the present numbers of the lane's rows; a number below the present column
    // is final, or there is no row.
    int position[slots];
    unsigned long long active = N == 64 ? ~0ull : (1ull << N % 64) - 1;
    int status = 0;

    LuPanels(T* matrix, T* work, Notes& notes_, int* pivots_)
        : a{matrix},
          passed(work),
          u(work + 2 * width),
          notes(notes_),
          pivots(pivots_),
          lane(threadIdx.x % 32),
          warp(threadIdx.x / 32 % WARPS) {
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            position[s] = lane + 32 * s < N ? lane + 32 * s : -1;
        }
    }

    void factor() {
#pragma unroll 1
        for (int first = 0; first < N; first += width) {
            if (warp == 0) {
                factor_panel(first);
            }
            sync_matrix<WARPS>();
            if (first + width < N) {
                solve(first);
                sync_matrix<WARPS>();
                update(first);
                sync_matrix<WARPS>();
            }
        }
        exchange_rows();
    }

    void factor_panel(int first) {
        T row[slots][width];
        bool is_active[slots];
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            is_active[s] = position[s] >= first;
#pragma unroll
            for (int j = 0; j < width; ++j) {
                row[s][j] = T{};
            }
            if (is_active[s]) {
                a.load(lane + 32 * s, first, row[s]);
            }
        }
#pragma unroll
        for (int k = 0; k < width; ++k) {
            if (Matrix::whole || first + k < N) {
                step(first + k, k, row, notes.pivot_rows[k]);
            }
        }
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            if (is_active[s]) {
                a.store(lane + 32 * s, first, row[s]);
            }
        }
        if (lane == 0) {
            notes.active = active;
        }
    }

    /// Column k of a panel, which is column `column` of the matrix.
    void step(int column, int k, T (&row)[slots][width], unsigned char& pivot_place) {
        PivotKey keys[slots];
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            keys[s] = PivotKey::of(magnitude(row[s][k]));
            if (position[s] < column) {
                keys[s].high = 0;
            }
        }
        unsigned high;
        const unsigned winner = winner_of<32, has_low>(keys, position, high);
        T* const line = passed + k % 2 * width;
        int mine = 0;
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            const unsigned number = lane + 32 * s;
            if (winner == number) {
                pass_row<V>(row[s], k, line);
            }
            mine = s == 0 || winner / 32 == s ? position[s] | (lane + 32 * s) << 8 : mine;
        }
        const int chosen = shuffle(mine, static_cast<int>(winner % 32));
        const int pivot_row = chosen / 256;
        active &= ~(1ull << pivot_row);
        if (lane == 0) {
            pivot_place = static_cast<unsigned char>(pivot_row);
            notes.places[pivot_row] = static_cast<unsigned char>(column);
            if (pivots != nullptr) {
                pivots[column] = chosen % 256;
            }
        }
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            const unsigned number = lane + 32 * s;
            position[s] = winner == number        ? column
                          : position[s] == column ? chosen % 256
                                                  : position[s];
        }
        __syncwarp();
        eliminate(column, k, row, line, high);
    }

    /// Divides column k of the panel by the pivot, and subtracts the multiples of the pivot row.
    void eliminate(int column, int k, T (&row)[slots][width], const T* line, unsigned high) {
        T passed_row[width];
#pragma unroll
        for (int j = 0; j < width; j += V) {
            if (j + V > k) {
                const auto pack = *reinterpret_cast<const Pack<T, V>*>(line + j);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    passed_row[j + v] = pack.value[v];
                }
            }
        }
        const T pivot = passed_row[k];
        const Divider<T> divider(pivot);
        T factor[slots];
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            factor[s] = divider.divide(row[s][k]);
        }
        if (Divider<T>::is_special(high)) {
            const bool zero = is_zero(pivot);
            status = status == 0 && (zero || !is_finite(pivot)) ? column + 1 : status;
#pragma unroll
            for (int s = 0; s < slots; ++s) {
                factor[s] = quotient(row[s][k], zero ? from_real<T>(1) : pivot);
            }
        }
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            // Rows that are pivots already get the factor 0 instead of a branch. An infinity or NaN
            // in the pivot row can still change them; the status then names a column.
            const bool below = position[s] > column;
            row[s][k] = choose(below, factor[s], row[s][k]);
            const T subtracted = choose(below, -factor[s], T{});
#pragma unroll
            for (int j = k + 1; j < width; ++j) {
                row[s][j] = multiply_add(subtracted, passed_row[j], row[s][j]);
            }
        }
    }

    /// The rows of U right of the panel: one column per lane.
    void solve(int first) {
        const int rest = first + width;
        int pivot_rows[width];
#pragma unroll
        for (int j = 0; j < width; ++j) {
            pivot_rows[j] = notes.pivot_rows[j];
        }
#pragma unroll 1
        for (int t = lane + 32 * warp; t < N - rest; t += 32 * WARPS) {
            T x[width];
#pragma unroll
            for (int j = 0; j < width; ++j) {
                x[j] = a(pivot_rows[j], rest + t);
            }
#pragma unroll
            for (int j = 1; j < width; ++j) {
#pragma unroll
                for (int i = 0; i < j; ++i) {
                    x[j] = multiply_add(-a(pivot_rows[j], first + i), x[i], x[j]);
                }
                a(pivot_rows[j], rest + t) = x[j];
            }
            if constexpr (Matrix::is_double) {
                const int at = t / 8 * 8 + Matrix::product_place(t % 8);
#pragma unroll
                for (int j = 0; j < width; ++j) {
                    u[j * u_pitch + at] = x[j];
                }
            } else {
                store_run<V>(x, u + t * width);
            }
        }
    }

    /// Subtracts L U of the panel; every warp takes bundles of rows.
    void update(int first) const {
        constexpr int height = Matrix::is_double ? 16 : 8 * tall;
#pragma unroll 1
        for (int top = height * warp; top < N; top += height * WARPS) {
            if constexpr (Matrix::is_double) {
                update_tile(first, top);
            } else {
                update_plainly(first, top);
            }
        }
    }

    void update_tile(int first, int top) const {
        const int g = lane / 4;
        const int t = lane % 4;
        bool wanted[2];
        double l[4];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = top + g + 8 * h;
            wanted[h] = (notes.active >> i & 1) != 0;
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                l[2 * s + h] = wanted[h] ? -a(i, first + t + 4 * s) : 0;
            }
        }
#pragma unroll 2
        for (int left = first + width; left < N; left += width) {
            double b[2];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                b[s] = u[(t + 4 * s) * u_pitch + left - first - width + g];
            }
            a.add_product(top, left, l, b, [&](int i, int j) {
                return wanted[(i - top) / 8] && (Matrix::whole || j < N);
            });
        }
    }

    void update_plainly(int first, int top) const {
        const int g = lane / 4;
        const int t = lane % 4;
        bool wanted[tall];
        T l[tall][width];
#pragma unroll
        for (int h = 0; h < tall; ++h) {
            const int i = top + g + 8 * h;
            wanted[h] = (notes.active >> i & 1) != 0;
#pragma unroll
            for (int k = 0; k < width; ++k) {
                l[h][k] = wanted[h] ? -a(i, first + k) : T{};
            }
        }
#pragma unroll 1
        for (int left = first + width; left < N; left += width) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int j = left + t + 4 * e;
                if (Matrix::whole || j < N) {
                    T x[width];
                    load_run<V>(u + (j - first - width) * width, x);
#pragma unroll
                    for (int h = 0; h < tall; ++h) {
                        if (wanted[h]) {
                            T& c = a(top + g + 8 * h, j);
                            T sum = c;
#pragma unroll
                            for (int k = 0; k < width; ++k) {
                                sum = multiply_add(l[h][k], x[k], sum);
                            }
                            c = sum;
                        }
                    }
                }
            }
        }
    }

    void exchange_rows() const {
#pragma unroll 1
        for (int first = width * warp; first < N; first += width * WARPS) {
            T row[slots][width];
#pragma unroll
            for (int s = 0; s < slots; ++s) {
                if (lane + 32 * s < N) {
                    a.load(lane + 32 * s, first, row[s]);
                }
            }
            __syncwarp();
#pragma unroll
            for (int s = 0; s < slots; ++s) {
                if (lane + 32 * s < N) {
                    a.store(notes.places[lane + 32 * s], first, row[s]);
                }
            }
        }
    }
};

/// WARPS warps share a matrix; a block has one matrix if WARPS > 1.
template <class T, int N, int MATRICES, int WARPS, int PITCH, int WORD, bool BY_ROWS,
          Packing PACKING>
__global__ void __launch_bounds__(MATRICES* WARPS * 32) lu_by_panels(LuArgs<T> args) {
    static_assert(WARPS == 1 || MATRICES == 1);
    using Panels = LuPanels<T, N, WARPS, PITCH, BY_ROWS>;
    using Tile =
        MatrixTile<T, N, MATRICES, MATRICES * WARPS * 32, PITCH, 0, WORD, BY_ROWS, false, PACKING>;
    __shared__ typename Panels::Notes notes[MATRICES];
    T* const tile = dynamic_shared<T>();
    T* const work = tile + ceil_div(Tile::elements, Panels::V) * Panels::V;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * MATRICES;
    const int m = threadIdx.x / (32 * WARPS);
    const std::int64_t b = first + m;
    const bool inside = b < args.a.count;

    Tile::load(args.a, first, tile);
    __syncthreads();
    Panels panels(tile + m * Tile::matrix_pitch, work + m * Panels::work_elements, notes[m],
                  inside ? args.pivots + b * N : nullptr);
    panels.factor();
    if (inside && threadIdx.x % (32 * WARPS) == 0) {
        args.status[b] = panels.status;
    }
    __syncthreads();
    Tile::store(args.a, first, tile);
}

}  // namespace quiver
