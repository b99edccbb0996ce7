// SPDX-License-Identifier: BSD-3-Clause
// A = L L^H of many small matrices. Up to order 64 the matrices are in registers, one matrix per
// thread or one row per thread, or in double in shared memory, with updates on the tensor cores.
// Larger ones use left-looking panels, with the update of a panel fused with its factorisation.
// Source: Haidar et al., IEEE TPDS 29(5), 2018, section 4.3.
#pragma once

#include "batched_panels.cuh"

namespace quiver {

template <class R>
bool is_good_pivot(R pivot) {
    return pivot > R(0) && is_finite(pivot);
}

/// One matrix per thread, THREADS matrices per block.
template <class T, int N, int THREADS, int GAP, int WORD, bool BY_ROWS, Packing PACKING>
__global__ void __launch_bounds__(THREADS) cholesky_by_thread(CholeskyArgs<T> args) {
    using R = RealOf<T>;
    using Tile = MatrixTile<T, N, THREADS, THREADS, N, GAP, WORD, BY_ROWS,
                            PACKING == Packing::general, PACKING>;
    using Own = OwnMatrix<T, N, Tile, BY_ROWS, PACKING>;
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
        const R pivot = real_of(a[k][k]);
        status = status == 0 && !is_good_pivot(pivot) ? k + 1 : status;
        const R root = sqrt(pivot);
        const R inverse = R(1) / root;
        a[k][k] = from_real<T>(root);
#pragma unroll
        for (int i = k + 1; i < N; ++i) {
            a[i][k] = scaled(a[i][k], inverse);
        }
#pragma unroll
        for (int j = k + 1; j < N; ++j) {
            const T factor = -conjugate(a[j][k]);
#pragma unroll
            for (int i = j; i < N; ++i) {
                a[i][j] = multiply_add(factor, a[i][k], a[i][j]);
            }
        }
    }

    Own::template store<true>(args.a, b, a, tile);
    if (b < args.a.count) {
        args.status[b] = status;
    }
    if constexpr (PACKING != Packing::interleaved) {
        __syncthreads();
        Tile::store(args.a, first, tile);
    }
}

/// GROUP threads share a matrix, SPLIT of them a row: the thread with remainder s holds columns s,
/// s + SPLIT, ... GROUP is a power of two up to 32, or a multiple of 32; in the latter case a block
/// has one matrix.
template <class T, int N, int MATRICES, int GROUP, int SPLIT, int PITCH, int WORD, bool BY_ROWS,
          Packing PACKING>
__global__ void __launch_bounds__(MATRICES* GROUP) cholesky_by_rows(CholeskyArgs<T> args) {
    using R = RealOf<T>;
    constexpr int threads = MATRICES * GROUP;
    static_assert(GROUP <= 32 || MATRICES == 1);
    static_assert(N * SPLIT <= GROUP);
    constexpr int columns = ceil_div(N, SPLIT);
    constexpr int V = 16 / sizeof(T);
    constexpr int share = ceil_div(columns, V) * V;  // elements with the same remainder, padded
    using Tile = MatrixTile<T, N, MATRICES, threads, PITCH, 0, WORD, BY_ROWS, true, PACKING>;

    T* const tile = dynamic_shared<T>();
    // Column k before its division, for this step and the previous one, sorted by remainder.
    T* const passed = tile + ceil_div(Tile::elements, V) * V;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * MATRICES;
    const int m = threadIdx.x / GROUP;
    const int t = threadIdx.x % GROUP;
    const int row = t / SPLIT;
    const int part = t % SPLIT;
    const bool has_row = row < N;
    T* const own = tile + m * Tile::matrix_pitch;

    Tile::load(args.a, first, tile);
    __syncthreads();
    T a[columns];
    if constexpr (BY_ROWS && SPLIT == 1) {
        load_run<vector_of<T>(PITCH)>(own + (has_row ? row : 0) * PITCH, a);
    } else {
#pragma unroll
        for (int q = 0; q < columns; ++q) {
            const int column = q * SPLIT + part;
            a[q] = has_row && column <= row ? own[Tile::index(row, column)] : T{};
        }
    }

    int status = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        T* const column = passed + (k % 2 * MATRICES + m) * (SPLIT * share);
        if (has_row && row >= k && part == k % SPLIT) {
            column[row % SPLIT * share + row / SPLIT] = a[k / SPLIT];
        }
        if constexpr (GROUP > 32) {
            __syncthreads();
        } else {
            __syncwarp();
        }
        const R pivot = real_of(column[k % SPLIT * share + k / SPLIT]);
        status = status == 0 && !is_good_pivot(pivot) ? k + 1 : status;
        const R root = sqrt(pivot);
        const R inverse = R(1) / root;
        if (has_row && row >= k) {
            const T below = SPLIT == 1 ? a[k / SPLIT] : column[row % SPLIT * share + row / SPLIT];
            const T result = scaled(below, inverse);
            if (part == k % SPLIT) {
                a[k / SPLIT] = row == k ? from_real<T>(root) : result;
            }
            const T factor = -scaled(result, inverse);
#pragma unroll
            for (int q = k / SPLIT / V * V; q < columns; q += V) {
                const auto pack = *reinterpret_cast<const Pack<T, V>*>(column + part * share + q);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    if (q + v < columns && (q + v) * SPLIT + SPLIT - 1 > k &&
                        (q + v) * SPLIT + part > k) {
                        a[q + v] = multiply_add(factor, conjugate(pack.value[v]), a[q + v]);
                    }
                }
            }
        }
    }

    const std::int64_t b = first + m;
    if (t == 0 && b < args.a.count) {
        args.status[b] = status;
    }
    if (has_row) {
#pragma unroll
        for (int q = 0; q < columns; ++q) {
            const int column = q * SPLIT + part;
            if (column <= row) {
                own[Tile::index(row, column)] = a[q];
            }
        }
    }
    __syncthreads();
    Tile::store(args.a, first, tile);
}

/// Right-looking Cholesky of one matrix in double by WARPS warps; `passed` has 16 elements of
/// shared memory.
template <int N, int WARPS, int PITCH, bool BY_ROWS>
struct CholeskyTiles {
    using Matrix = PanelMatrix<double, N, PITCH, BY_ROWS>;
    static constexpr int width = Matrix::width;
    static constexpr int slots = Matrix::slots;

    Matrix a;
    double* passed;  // column k of the rows of the panel, for this step and the previous one
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32 % WARPS;
    int status = 0;  // valid in the first warp

    void factor() {
#pragma unroll 1
        for (int first = 0; first < N; first += width) {
            if (warp == 0) {
                factor_panel(first);
            }
            if (first + width < N) {
                sync_matrix<WARPS>();
                update(first);
                sync_matrix<WARPS>();
            }
        }
    }

    void factor_panel(int first) {
        double row[slots][width];
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            const int i = lane + 32 * s;
#pragma unroll
            for (int j = 0; j < width; ++j) {
                row[s][j] = i < N && first + j <= i ? a(i, first + j) : 0;
            }
        }
#pragma unroll
        for (int k = 0; k < width; ++k) {
            if (Matrix::whole || first + k < N) {
                step(first, k, row);
            }
        }
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            const int i = lane + 32 * s;
#pragma unroll
            for (int j = 0; j < width; ++j) {
                if (i < N && first + j <= i) {
                    a(i, first + j) = row[s][j];
                }
            }
        }
    }

    void step(int first, int k, double (&row)[slots][width]) {
        double* const column = passed + k % 2 * width;
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            const int at = lane + 32 * s - first;
            if (at >= k && at < width) {
                column[at] = row[s][k];
            }
        }
        __syncwarp();
        const double pivot = column[k];
        status = status == 0 && !is_good_pivot(pivot) ? first + k + 1 : status;
        const double inverse = rsqrt(pivot);
#pragma unroll
        for (int s = 0; s < slots; ++s) {
            const double result = row[s][k] * inverse;
            const double factor = -result * inverse;
            row[s][k] = result;
#pragma unroll
            for (int j = k + 1; j < width; ++j) {
                row[s][j] = multiply_add(factor, column[j], row[s][j]);
            }
        }
    }

    void update(int first) const {
        const int g = lane / 4;
        const int t = lane % 4;
        const int next = first + width;
#pragma unroll 1
        for (int top = next / 16 * 16 + 16 * warp; top < N; top += 16 * WARPS) {
            double l[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const int i = top + g + q % 2 * 8;
                l[q] = i < N ? -a(i, first + t + q / 2 * 4) : 0;
            }
#pragma unroll 2
            for (int left = next; left < minimum(N, top + 16); left += width) {
                const int j = left + Matrix::product_column(g);
                double b[2];
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    b[s] = Matrix::whole || j < N ? a(j, first + t + 4 * s) : 0;
                }
                a.add_product(top, left, l, b,
                              [](int row, int column) { return row < N && column <= row; });
            }
        }
    }
};

/// WARPS warps share a matrix in double; a block has one matrix if WARPS > 1.
template <class T, int N, int MATRICES, int WARPS, int PITCH, int WORD, bool BY_ROWS,
          Packing PACKING>
__global__ void __launch_bounds__(MATRICES* WARPS * 32) cholesky_by_tiles(CholeskyArgs<T> args) {
    static_assert(WARPS == 1 || MATRICES == 1);
    using Tiles = CholeskyTiles<N, WARPS, PITCH, BY_ROWS>;
    using Tile =
        MatrixTile<T, N, MATRICES, MATRICES * WARPS * 32, PITCH, 0, WORD, BY_ROWS, true, PACKING>;
    constexpr int V = Tiles::Matrix::V;
    T* const tile = dynamic_shared<T>();
    T* const work = tile + ceil_div(Tile::elements, V) * V;
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * MATRICES;
    const int m = threadIdx.x / (32 * WARPS);
    const std::int64_t b = first + m;

    Tile::load(args.a, first, tile);
    __syncthreads();
    Tiles tiles{{tile + m * Tile::matrix_pitch}, work + m * (2 * Tiles::width)};
    tiles.factor();
    if (b < args.a.count && threadIdx.x % (32 * WARPS) == 0) {
        args.status[b] = tiles.status;
    }
    __syncthreads();
    Tile::store(args.a, first, tile);
}

/// sum(j) -= factor row(j)
template <int V, int WIDTH, class T>
void subtract_row(T factor, const T* row, T (&sum)[WIDTH]) {
    factor = -factor;
#pragma unroll
    for (int j = 0; j < WIDTH; j += V) {
        const auto pack = *reinterpret_cast<const Pack<T, V>*>(row + j);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            sum[j + v] = multiply_add(factor, pack.value[v], sum[j + v]);
        }
    }
}

/// Factors the diagonal block of a panel by one warp, one row per lane, in registers; inverses[k]
/// is 1 / L(k, k). `failed` becomes 1 + the column of the first pivot that is not positive, unless
/// it is already set.
template <int WIDTH, class T>
void factor_diagonal(T* block, RealOf<T>* inverses, int width, int first, int& failed) {
    using R = RealOf<T>;
    constexpr int pitch = WIDTH + 1;
    const int lane = threadIdx.x;
    const bool has_row = lane < width;
    T row[WIDTH];
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        row[j] = has_row && j <= lane ? block[lane * pitch + j] : T{};
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        if (k < width) {
            const R pivot = shuffle(real_of(row[k]), k);
            const R root = sqrt(pivot);
            const R inverse = R(1) / root;
            if (failed == 0 && !is_good_pivot(pivot)) {
                failed = first + k + 1;
            }
            const T mine = lane > k ? scaled(row[k], inverse) : T{};
            row[k] = lane == k ? from_real<T>(root) : mine;
            if (lane == k) {
                inverses[k] = inverse;
            }
#pragma unroll
            for (int j = k + 1; j < WIDTH; ++j) {
                const T other = shuffle(mine, j);
                if (lane >= j) {
                    row[j] = multiply_add(-mine, conjugate(other), row[j]);
                }
            }
        }
    }
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        if (has_row && j <= lane) {
            block[lane * pitch + j] = row[j];
        }
    }
}

/// One block per matrix of any order; WIDTH columns per panel. Shared memory, in elements: WIDTH
/// times the number of columns left of the last panel, WIDTH (WIDTH + 2) for the diagonal block
/// and, if the elements of a row are adjacent (BY_ROWS), 32 (WIDTH + 1) per warp.
template <class T, int WIDTH, int THREADS, bool BY_ROWS>
__global__ void __launch_bounds__(THREADS) cholesky_by_panels(CholeskyArgs<T> args) {
    using R = RealOf<T>;
    constexpr int V = 16 / sizeof(T);
    constexpr int pitch = WIDTH + 1;
    int failed = 0;                        // valid in the first warp
    T* const above = dynamic_shared<T>();  // element (k, j): conjugate of L(first + j, k)
    T* const diagonal = above + WIDTH * ((args.a.rows - 1) / WIDTH * WIDTH);
    R* const inverses = reinterpret_cast<R*>(diagonal + WIDTH * pitch);
    T* const staged = diagonal + WIDTH * (pitch + 1) + threadIdx.x / 32 * (32 * pitch);
    const std::int64_t b = blockIdx.x;
    const int n = args.a.size(b);
    T* const a = args.a.matrix(b);
    const std::int64_t down = args.a.row_step;
    const std::int64_t along = args.a.col_step;
    const int lane = threadIdx.x % 32;

    for (int first = 0; first < n; first += WIDTH) {
        const int width = minimum(WIDTH, n - first);
        __syncthreads();
        for (int e = threadIdx.x; e < WIDTH * first; e += THREADS) {
            const int j = BY_ROWS ? e / first : e % WIDTH;
            const int k = BY_ROWS ? e % first : e / WIDTH;
            above[k * WIDTH + j] = j < width ? conjugate(a[(first + j) * down + k * along]) : T{};
        }
        __syncthreads();
        // Process the rows in passes of one row per thread; the first pass contains the diagonal
        // block.
        for (int top = first; top < n; top += THREADS) {
            const int i = top + threadIdx.x;
            T sum[WIDTH];
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const bool wanted = i < n && j < width && first + j <= i;
                sum[j] = wanted ? a[i * down + (first + j) * along] : T{};
            }
            const int warp_row = i - lane;
            if (warp_row >= n) {
                // A warp without rows only waits for the others.
            } else if constexpr (BY_ROWS) {
                T next[WIDTH];  // of the rows of the warp, columns left .. left + WIDTH - 1
                const auto read = [&](int left) {
#pragma unroll
                    for (int q = 0; q < WIDTH; ++q) {
                        const int e = lane + 32 * q;
                        const int r = warp_row + e / WIDTH;
                        next[q] = r < n ? a[r * down + left + e % WIDTH] : T{};
                    }
                };
                if (first > 0) {
                    read(0);
                }
                for (int left = 0; left < first; left += WIDTH) {
                    __syncwarp();
#pragma unroll
                    for (int q = 0; q < WIDTH; ++q) {
                        const int e = lane + 32 * q;
                        staged[e / WIDTH * pitch + e % WIDTH] = next[q];
                    }
                    __syncwarp();
                    if (left + WIDTH < first) {
                        read(left + WIDTH);
                    }
#pragma unroll 4
                    for (int k = 0; k < WIDTH; ++k) {
                        subtract_row<V>(staged[lane * pitch + k], above + (left + k) * WIDTH, sum);
                    }
                }
            } else {
                const T* const own = a + (i < n ? i : 0);
#pragma unroll 8
                for (int k = 0; k < first; ++k) {
                    subtract_row<V>(own[k * along], above + k * WIDTH, sum);
                }
            }
            if (top == first) {
                if (threadIdx.x < WIDTH) {
#pragma unroll
                    for (int j = 0; j < WIDTH; ++j) {
                        diagonal[threadIdx.x * pitch + j] = sum[j];
                    }
                }
                __syncthreads();
                if (threadIdx.x < 32) {
                    factor_diagonal<WIDTH>(diagonal, inverses, width, first, failed);
                }
                __syncthreads();
            }
            if (i < n && i >= first + width) {
#pragma unroll
                for (int j = 0; j < WIDTH; ++j) {
                    if (j < width) {
#pragma unroll
                        for (int k = 0; k < j; ++k) {
                            sum[j] =
                                multiply_add(-sum[k], conjugate(diagonal[j * pitch + k]), sum[j]);
                        }
                        sum[j] = scaled(sum[j], inverses[j]);
                        a[i * down + (first + j) * along] = sum[j];
                    }
                }
            } else if (i < n) {
                for (int j = 0; j <= i - first; ++j) {
                    a[i * down + (first + j) * along] = diagonal[(i - first) * pitch + j];
                }
            }
        }
    }
    if (threadIdx.x == 0) {
        args.status[b] = failed;
    }
}

}  // namespace quiver
