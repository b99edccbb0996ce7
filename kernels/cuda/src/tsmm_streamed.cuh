// SPDX-License-Identifier: BSD-3-Clause
// Y = X C for an X of many columns: the tiles of TsmmPlan::streamed. A warp is a team. It keeps the
// sums of its rows in registers while slabs of their columns pass through its ring in shared
// memory. A lane copies and reads the same 16 bytes of a slab (a piece), so that no bank conflicts
// arise and the ring needs no padding. The order of the columns within a slab is free, because C in
// shared memory has the same order.
#pragma once

#include "mma.cuh"
#include "stage.cuh"
#include "tsmm.cuh"

namespace quiver {

/// Starts the copy of a piece of 16 bytes in parts of BYTES.
template <int BYTES>
void copy_piece(unsigned shared, const char* from) {
#pragma unroll
    for (int part = 0; part < 16; part += BYTES) {
        copy_async<BYTES>(shared + part, from + part, true);
    }
}
/// The same for the start and the end of a row: only the bytes from `head` (less than 16) up to
/// `bytes` (at most 16) belong to it, and zeros replace the others.
template <int BYTES>
void copy_piece(unsigned shared, const char* from, int head, int bytes) {
    constexpr int part_bytes = minimum<int>(BYTES, 4);
    if (BYTES == 16 && head == 0) {
        copy_async_part(shared, from, bytes);
    } else {
#pragma unroll
        for (int part = 0; part < 16; part += part_bytes) {
            const bool inside = part >= head && part < bytes;
            copy_async<part_bytes>(shared + part, inside ? from + part : from, inside);
        }
    }
}

/// The copies of a lane: of GROUPS rows, first_row() + i * ROW_STEP, PIECES pieces that are
/// PIECE_STEP bytes apart. Slot (piece, row) of a stage has 512 bytes, 16 for each lane. The first
/// `head` bytes of the rows are replaced by zeros.
template <int GROUPS, int ROW_STEP, int PIECES, int PIECE_STEP, int BYTES>
class PieceCopy {
  public:
    static constexpr int stage_bytes = GROUPS * PIECES * 512;
    static constexpr int slab_bytes = PIECES * PIECE_STEP;

    /// row, byte: the lane's first row and its position within a slab of a row.
    PieceCopy(const void* block, std::int64_t row_stride, int row_bytes, int head,
              std::int64_t rows, int row, int byte)
        : block_(static_cast<const char*>(block)),
          row_stride_(row_stride),
          row_bytes_(row_bytes),
          head_(byte == 0 ? head : 0),
          rows_(rows),
          row_(row),
          byte_(byte) {}

    /// Begins with the rows from `first` on. Rows beyond the last are replaced by the last.
    void begin_rows(std::int64_t first) {
        left_ = row_bytes_ - byte_;
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            const std::int64_t row = minimum<std::int64_t>(first + row_ + i * ROW_STEP, rows_ - 1);
            from_[i] = block_ + row * row_stride_ + byte_;
        }
    }
    /// Starts the copies of the next slab.
    void start(unsigned shared) {
        const unsigned to = shared + threadIdx.x % 32 * 16;
        const int head = left_ + byte_ == row_bytes_ ? head_ : 0;
        if (left_ + byte_ >= slab_bytes && head == 0) {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
                for (int p = 0; p < PIECES; ++p) {
                    copy_piece<BYTES>(to + (p * GROUPS + i) * 512, from_[i] + p * PIECE_STEP);
                }
                from_[i] += slab_bytes;
            }
        } else {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
#pragma unroll
                for (int p = 0; p < PIECES; ++p) {
                    const int left = left_ - p * PIECE_STEP;
                    const bool exists = left > 0;
                    copy_piece<BYTES>(to + (p * GROUPS + i) * 512,
                                      exists ? from_[i] + p * PIECE_STEP : block_,
                                      p == 0 ? head : 0, exists ? minimum(left, 16) : 0);
                }
                from_[i] += slab_bytes;
            }
        }
        left_ -= slab_bytes;
    }

  private:
    const char* const block_;
    const std::int64_t row_stride_;
    const int row_bytes_;
    const int head_;
    const std::int64_t rows_;
    const int row_;
    const int byte_;
    int left_ = 0;
    const char* from_[GROUPS];
};

/// Tiles of 16 x 8 on the tensor cores, tile_rows of them one below the other, over all columns of
/// Y. A slab has `vector` steps of 64 bytes of a row; a lane's piece is two real columns or one
/// complex column, the depths t and t + 4 of one product.
template <class T, RowTileConfig CFG>
class StreamedMmaRows {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int tiles_n = ceil_div(parts * CFG.n, 8);
    static constexpr int groups = 2 * CFG.tile_rows;
    static constexpr int step_columns = 8 / parts;
    // Doubles of C for one step and tile: real blocks have a pair for each lane, complex blocks an
    // element for each pair of lanes.
    static constexpr int step_size = 64 / parts;

  public:
    static constexpr int slab_columns = CFG.vector * step_columns;
    static constexpr int rows = 16 * CFG.tile_rows;
    static constexpr int entries = CFG.tile_rows * tiles_n * 4 / parts;
    static constexpr int vector = parts == 1 ? 2 : 1;
    template <int BYTES>
    using Copy = PieceCopy<groups, 8, CFG.vector, 64, BYTES>;
    /// Elements of C in shared memory for `slabs` slabs.
    static constexpr int size_c(int slabs) { return slabs * slab_columns * tiles_n * 8 / parts; }

    __device__ StreamedMmaRows(int lane, const T* c)
        : g_(lane / 4), t_(lane % 4), lane_(lane), c_(reinterpret_cast<const double*>(c)) {}

    static int copied_row(int lane) { return lane / 4; }
    static int copied_byte(int lane) { return lane % 4 * 16; }

    static void put(T* c, int k, int j, T value) {
        const int step = k / step_columns;
        if constexpr (parts == 1) {
            const int lane = j % 8 * 4 + k % 8 / 2;
            c[((step * tiles_n + j / 8) * 32 + lane) * 2 + k % 2] = value;
        } else {
            c[(step * tiles_n + j / 4) * 16 + j % 4 * 4 + k % 4] = value;
        }
    }

    void clear() { clear_sums(sum_); }

    void multiply_slab(const void* stage, int slab) {
        const double* const pieces = static_cast<const double*>(stage) + lane_ * 2;
        const unsigned negative = sign_mask(g_ % 2 == 0);
        // Real: the lane's pair. Complex: the first and the second factor of the 2 x 2 block of an
        // element, (re, im; -im, re), for an even and an odd column.
        const double* const first = c_ + (parts == 1 ? lane_ * 2 : (g_ / 2 * 4 + t_) * 2 + g_ % 2) +
                                    slab * (CFG.vector * tiles_n * step_size);
        const double* const second = parts == 1 ? first + 1 : first + 1 - 2 * (g_ % 2);
#pragma unroll
        for (int u = 0; u < CFG.vector; ++u) {
            double left[CFG.tile_rows][4];
#pragma unroll
            for (int i = 0; i < CFG.tile_rows; ++i) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const auto piece = *reinterpret_cast<const Pack<double, 2>*>(
                        pieces + (u * groups + 2 * i + h) * 64);
                    left[i][h] = piece.value[0];
                    left[i][2 + h] = piece.value[1];
                }
            }
#pragma unroll
            for (int j = 0; j < tiles_n; ++j) {
                const int at = (u * tiles_n + j) * step_size;
                double right[2];
                if constexpr (parts == 1) {
                    const auto pair = *reinterpret_cast<const Pack<double, 2>*>(first + at);
                    right[0] = pair.value[0];
                    right[1] = pair.value[1];
                } else {
                    right[0] = first[at];
                    right[1] = flip_sign(second[at], negative);
                }
#pragma unroll
                for (int i = 0; i < CFG.tile_rows; ++i) {
                    mma<2>(sum_[i * tiles_n + j], left[i], right);
                }
            }
        }
    }
    void finish() {}

    T sum(int entry) const {
        return sum_of<T>(sum_, entry);
    }
    int row(int entry) const {
        const int e = entry * parts;
        return e / 4 / tiles_n * 16 + g_ + e % 4 / 2 * 8;
    }
    int col(int entry) const {
        const int e = entry * parts;
        return e / 4 % tiles_n * (8 / parts) + (parts == 1 ? 2 * t_ + e % 2 : t_);
    }

  private:
    const int g_;
    const int t_;
    const int lane_;
    const double* const c_;
    double sum_[CFG.tile_rows * tiles_n][4];
};

/// tile_rows x tile_n sums of a lane by plain multiply-adds. Eight lanes share the columns of a
/// row, `vector` pieces each; ceil(n / tile_n) = 1, 2 or 4 groups of lanes share the columns of Y,
/// and read each other's pieces.
template <class T, RowTileConfig CFG>
class StreamedFmaRows {
    static constexpr int unit = 16 / sizeof(T);
    static constexpr int threads_n = ceil_div(CFG.n, CFG.tile_n);
    static constexpr int groups = CFG.tile_rows / threads_n;
    static constexpr int all_n = threads_n * CFG.tile_n;
    static_assert(threads_n == 1 || threads_n == 2 || threads_n == 4);
    static_assert(CFG.tile_rows % threads_n == 0);

  public:
    static constexpr int slab_columns = CFG.vector * 8 * unit;
    static constexpr int rows = 4 * groups;
    static constexpr int all_entries = CFG.tile_rows * CFG.tile_n;
    static constexpr int entries = ceil_div(all_entries, 8);
    static constexpr int vector = 1;
    template <int BYTES>
    using Copy = PieceCopy<groups, 4, CFG.vector, 128, BYTES>;
    static constexpr int size_c(int slabs) { return slabs * slab_columns * all_n; }

    __device__ StreamedFmaRows(int lane, const T* c)
        : t_(lane % 8), row_(lane / 8 / threads_n), part_(lane / 8 % threads_n), c_(c) {}

    static int copied_row(int lane) { return lane / 8; }
    static int copied_byte(int lane) { return lane % 8 * 16; }

    static void put(T* c, int k, int j, T value) {
        c[((k / (8 * unit) * all_n + j) * 8 + k / unit % 8) * unit + k % unit] = value;
    }

    void clear() {
#pragma unroll
        for (int e = 0; e < entries * 8; ++e) {
            sum_[e] = T{};
        }
    }

    void multiply_slab(const void* stage, int slab) {
        using Piece = Pack<T, unit>;
        const Piece* const pieces = static_cast<const Piece*>(stage) + row_ * 8 + t_;
        const Piece* const c = reinterpret_cast<const Piece*>(c_) +
                               (slab * CFG.vector * all_n + part_ * CFG.tile_n) * 8 + t_;
#pragma unroll
        for (int u = 0; u < CFG.vector; ++u) {
            Piece left[CFG.tile_rows];
#pragma unroll
            for (int i = 0; i < CFG.tile_rows; ++i) {
                left[i] =
                    pieces[(u * groups + i / threads_n) * 32 + i % threads_n * (32 / threads_n)];
            }
#pragma unroll
            for (int j = 0; j < CFG.tile_n; ++j) {
                const Piece right = c[(u * all_n + j) * 8];
#pragma unroll
                for (int i = 0; i < CFG.tile_rows; ++i) {
                    T& sum = sum_[i * CFG.tile_n + j];
#pragma unroll
                    for (int v = 0; v < unit; ++v) {
                        sum = multiply_add(left[i].value[v], right.value[v], sum);
                    }
                }
            }
        }
    }

    /// Adds the sums of the eight lanes of a row: in each step, a lane exchanges half of its
    /// entries with a partner.
    void finish() {
        first_ = 0;
        exchange<4>();
        exchange<2>();
        exchange<1>();
    }

    T sum(int entry) const {
        return sum_[entry];
    }
    int row(int entry) const {
        const int i = (first_ + entry) / CFG.tile_n;
        // Row of the warp: its slot has four rows, of which this lane has 4 / threads_n.
        return first_ + entry < all_entries
                   ? i / threads_n * 4 + i % threads_n * (4 / threads_n) + row_
                   : rows;
    }
    int col(int entry) const {
        return part_ * CFG.tile_n + (first_ + entry) % CFG.tile_n;
    }

  private:
    template <int HALF>
    void exchange() {
        constexpr int count = HALF * entries;
        const bool upper = t_ & HALF;
        first_ += upper ? count : 0;
#pragma unroll
        for (int e = 0; e < count; ++e) {
            const T given = choose(upper, sum_[e], sum_[e + count]);
            const T kept = choose(upper, sum_[e + count], sum_[e]);
            sum_[e] = kept + shuffle_xor(given, HALF);
        }
    }

    const int t_;
    const int row_;
    const int part_;
    int first_ = 0;
    const T* const c_;
    T sum_[entries * 8];
};

template <class T, RowTileConfig CFG>
using StreamedRowTile =
    typename Choice<CFG.tensor, StreamedMmaRows<T, CFG>, StreamedFmaRows<T, CFG>>::type;

/// Y = alpha X C + beta Y, also in place: a warp has read all slabs of its rows when it writes
/// them. m and n (at most tile.n) are run-time arguments; C is in shared memory as a whole. The
/// warps share nothing else, and no barrier delays them. stages: slabs in the ring of a warp.
/// bytes_x: bytes per copy; 16 requires that X starts at a multiple of sizeof(T), and a launch of
/// RowClass::most_steps blocks or more.
template <class T, TsmmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks) streamed_tsmm(TsmmArgs<T> given) {
    using Tile = StreamedRowTile<T, CFG.tile>;
    using Copy = typename Tile::template Copy<CFG.bytes_x>;
    constexpr int rows = Tile::rows;
    constexpr int warps = CFG.threads / 32;
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    // The product of the rows of this block's class; columns before the row meet zeros in C.
    RowClass own;
    if constexpr (CFG.bytes_x == 16) {
        own = RowClass::of(given.x, given.ldx);
    }
    TsmmArgs<T> args = given;
    args.rows = own.count(given.rows);
    args.m = given.m + own.head;
    args.x = given.x + own.first * given.ldx - own.head;
    args.ldx = given.ldx * own.step;
    args.y = given.y + own.first * given.ldy;
    args.ldy = given.ldy * own.step;

    const int slabs = ceil_div(args.m, Tile::slab_columns);
    const int size_c = Tile::size_c(slabs);
    const int n = args.n;
    T* const c = dynamic_shared<T>();
    const char* const ring =
        reinterpret_cast<const char*>(c + size_c) + warp * (CFG.stages * Copy::stage_bytes);
    const unsigned ring_address = shared_address(ring);

    const std::int64_t chunks = (args.rows + rows - 1) / rows;
    const std::int64_t stride = own.blocks() * warps;
    const std::int64_t first = warp * own.blocks() + own.block();
    Copy copy(args.x, args.ldx * sizeof(T), args.m * sizeof(T), own.head * sizeof(T), args.rows,
              Tile::copied_row(lane), Tile::copied_byte(lane));
    std::int64_t ahead = first;
    int ahead_slab = 0;
    const auto start_next = [&](int stage) {
        if (ahead < chunks) {
            if (ahead_slab == 0) {
                copy.begin_rows(ahead * rows);
            }
            copy.start(ring_address + stage * Copy::stage_bytes);
            if (++ahead_slab == slabs) {
                ahead_slab = 0;
                ahead += stride;
            }
        }
        commit_copies();
    };
#pragma unroll
    for (int stage = 0; stage < CFG.stages - 1; ++stage) {
        start_next(stage);
    }
    for (int e = threadIdx.x; e < size_c; e += CFG.threads) {
        c[e] = T{};
    }
    __syncthreads();
#pragma unroll 4
    for (int e = threadIdx.x; e < given.m * n; e += CFG.threads) {
        Tile::put(c, own.head + e / n, e % n, args.c[e / n * args.ldc + e % n]);
    }
    __syncthreads();

    Tile tile(lane, c);
    int stage = 0;
    for (std::int64_t chunk = first; chunk < chunks; chunk += stride) {
        tile.clear();
#pragma unroll 1
        for (int slab = 0; slab < slabs; ++slab) {
            wait_for_copies<CFG.stages - 2>();
            __syncwarp();
            start_next(stage == 0 ? CFG.stages - 1 : stage - 1);
            tile.multiply_slab(ring + stage * Copy::stage_bytes, slab);
            stage = stage == CFG.stages - 1 ? 0 : stage + 1;
        }
        tile.finish();
        const std::int64_t begin = chunk * rows;
        store_entries<CFG.bytes_y>(tile, args, args.y + begin * args.ldy,
                                   static_cast<int>(minimum<std::int64_t>(rows, args.rows - begin)),
                                   n);
    }
    wait_for_copies<0>();
}

}  // namespace quiver
