// SPDX-License-Identifier: BSD-3-Clause
// C = A^H B for an A of many columns: the tiles of TsmttsmPlan::streamed. The warps of a team share
// the columns of A and process the same rows. Each warp has a ring in shared memory for its columns
// of A, and the team has one for the rows of B, so that one barrier of the team separates stages. A
// lane copies and reads the same 16 bytes of A (a piece); no bank conflicts arise, and the ring
// needs no padding.
#pragma once

#include "tsmttsm.cuh"

namespace quiver {

/// The copies of a lane: of GROUPS rows of a stage, ROW_STEP apart, PIECES pieces of PIECE bytes,
/// in parts of BYTES. ADJACENT pieces are ADJACENT_STEP bytes apart, and the next such group
/// follows GROUP_STEP bytes after the previous one. Pieces beyond the width of the block are not
/// copied: their places in shared memory keep the zeros of the beginning.
template <int GROUPS, int ROW_STEP, int PIECES, int ADJACENT, int ADJACENT_STEP, int GROUP_STEP,
          int BYTES, int PIECE = 16>
class ColumnCopy {
    static constexpr int slot = 32 * PIECE;

  public:
    static constexpr int stage_bytes = GROUPS * PIECES * slot;

    /// row, byte: the lane's first row of a stage, counted from `first`, and its position in a row.
    /// The next stage is `stride` rows further.
    ColumnCopy(const void* block, std::int64_t row_stride, int row_bytes, int row, int byte,
               std::int64_t first, std::int64_t stride)
        : block_(static_cast<const char*>(block)),
          next_(block_ + (first + row) * row_stride + byte),
          step_(ROW_STEP * row_stride),
          advance_(stride * row_stride),
          left_(row_bytes - byte),
          row_(row),
          to_(threadIdx.x % 32 * PIECE) {}

    /// Starts the copies of the next stage, of which `rows` rows exist; the others become zeros.
    void start(unsigned shared, std::int64_t rows) {
        const unsigned to = shared + to_;
        const char* from = next_;
        if (rows >= GROUPS * ROW_STEP) {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                copy_row(to + i * (PIECES * slot), from, true);
                from += step_;
            }
        } else {
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                copy_row(to + i * (PIECES * slot), from, row_ + i * ROW_STEP < rows);
                from += step_;
            }
        }
        next_ += advance_;
    }

  private:
    void copy_row(unsigned to, const char* from, bool inside) const {
#pragma unroll
        for (int p = 0; p < PIECES; ++p) {
            const int at = p / ADJACENT * GROUP_STEP + p % ADJACENT * ADJACENT_STEP;
#pragma unroll
            for (int part = 0; part < PIECE; part += BYTES) {
                if (at + part < left_) {
                    const unsigned shared = to + p * slot + part;
                    const char* const source = inside ? from + at + part : block_;
                    if constexpr (BYTES == 16) {
                        copy_async_part(shared, source, inside ? minimum(left_ - at, 16) : 0);
                    } else {
                        copy_async<BYTES>(shared, source, inside);
                    }
                }
            }
        }
    }

    const char* const block_;
    const char* next_;
    const std::int64_t step_;
    const std::int64_t advance_;
    const int left_;
    const int row_;
    const unsigned to_;
};

/// The copies of B by a team: ROWS rows of at most N columns, in pieces of BYTES. PLACE::of(row,
/// column) is the place of an element in shared memory, in elements.
template <class T, int TEAM, int ROWS, int N, int BYTES, class PLACE>
class TeamCopy {
    static constexpr int unit = minimum<int>(BYTES, sizeof(T)) == sizeof(T) ? BYTES / sizeof(T) : 1;
    static constexpr int parts = sizeof(T) > BYTES ? sizeof(T) / BYTES : 1;
    static constexpr int count = ceil_div(ROWS * ceil_div(N, unit), TEAM);

  public:
    TeamCopy(int thread, const T* block, std::int64_t ld, int columns, std::int64_t first,
             std::int64_t stride)
        : block_(block), advance_(stride * ld) {
        const int row_units = columns / unit;
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const int u = thread + TEAM * i;
            row_[i] = u / row_units;
            const int column = u % row_units * unit;
            from_[i] = block + (first + row_[i]) * ld + column;
            to_[i] = PLACE::of(row_[i] % ROWS, column) * static_cast<int>(sizeof(T));
        }
    }

    /// Starts the copies of the next stage, of which `rows` rows exist; the others become zeros.
    void start(unsigned shared, std::int64_t rows) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            if (row_[i] < ROWS) {
                const bool inside = row_[i] < rows;
                const char* const from = reinterpret_cast<const char*>(inside ? from_[i] : block_);
#pragma unroll
                for (int part = 0; part < parts; ++part) {
                    copy_async<BYTES>(shared + to_[i] + part * BYTES, from + part * BYTES, inside);
                }
            }
            from_[i] += advance_;
        }
    }

  private:
    const T* const block_;
    const std::int64_t advance_;
    int row_[count];
    unsigned to_[count];
    const T* from_[count];
};

/// Sums on the tensor cores: team / 32 warps share the tiles of 16 columns of A; every warp has all
/// columns of B. Real blocks: the depth of a product is 8 rows, and a piece has two columns of A.
/// Complex blocks: the depth is 4 rows, first the real and then the imaginary parts of A, and the
/// columns of the product are the real and imaginary parts of C.
template <class T, TsmttsmConfig CFG>
class StreamedMmaSums {
    static constexpr int parts = sizeof(T) / sizeof(double);
    static constexpr int warps = CFG.tile.team / 32;
    static constexpr int tiles_m = ceil_div(ceil_div(CFG.tile.m, 16), warps);
    static constexpr int tiles_n = ceil_div(parts * CFG.tile.n, 8);
    static constexpr int groups = CFG.rows / 4;
    static constexpr int pieces = tiles_m * parts;
    // Four rows are one step of a product of real blocks and two of a product of complex ones.
    static constexpr int step = parts == 1 && groups % 2 == 0 ? 2 : 1;
    static constexpr int depth = step * parts;
    static_assert(CFG.rows % 4 == 0);
    /// Elements of B for four rows and a tile.
    static constexpr int tile_size = 32 / parts;
    struct Place {
        static int of(int row, int column) {
            constexpr int width = 8 / parts;
            return (row / 4 * tiles_n + column / width) * tile_size + column % width * 4 + row % 4;
        }
    };
    using CopyA = ColumnCopy<groups, 4, pieces, parts, 128, warps * parts * 128, CFG.bytes_a>;
    using CopyB = TeamCopy<T, CFG.tile.team, CFG.rows, CFG.tile.n, CFG.bytes_b, Place>;

  public:
    static constexpr int slots = CFG.tile.team;
    static constexpr int lanes = 1;
    static constexpr int classes = 1;
    static constexpr int entries = tiles_m * tiles_n * 4 / parts;
    /// Bytes of a stage of a warp, and of B for a team.
    static constexpr int stage_bytes = CopyA::stage_bytes;
    static constexpr int b_bytes = groups * tiles_n * tile_size * static_cast<int>(sizeof(T));

    /// The tile's stages begin with the rows first, first + stride, ...
    StreamedMmaSums(int thread, const TsmttsmArgs<T>& args, std::int64_t first, std::int64_t stride)
        : slot(thread),
          warp_(thread / 32),
          g_(thread % 32 / 4),
          t_(thread % 4),
          copy_a_(args.a, args.lda * sizeof(T), args.m * sizeof(T), t_,
                  warp_ * (parts * 128) + g_ * 16, first, stride),
          copy_b_(thread, args.b, args.ldb, args.n, first, stride) {}

    void start(unsigned stage, unsigned stage_b, std::int64_t rows) {
        copy_a_.start(stage, rows);
        copy_b_.start(stage_b, rows);
    }

    template <class Weights>
    void add(const char* stage, const char* stage_b, const Weights& weights) {
        const auto* const a = reinterpret_cast<const Pack<double, 2>*>(stage) + threadIdx.x % 32;
        const auto* const b = reinterpret_cast<const T*>(stage_b) + g_ / parts * 4 + t_;
        const unsigned negative = sign_mask(g_ % 2 == 1);
#pragma unroll
        for (int first = 0; first < groups; first += step) {
            double right[tiles_n][depth];
#pragma unroll
            for (int s = 0; s < step; ++s) {
                const auto weight = weights.at(t_ + 4 * (first + s));
#pragma unroll
                for (int j = 0; j < tiles_n; ++j) {
                    const int at = ((first + s) * tiles_n + j) * tile_size;
                    if constexpr (parts == 1) {
                        right[j][s] = weight(b[at]);
                    } else {
                        const auto pack = *reinterpret_cast<const Pack<double, 2>*>(b + at);
                        const T value = weight(T{pack.value[0], pack.value[1]});
                        const bool odd = g_ % 2 == 1;
                        right[j][0] = odd ? value.im : value.re;
                        right[j][1] = flip_sign(odd ? value.re : value.im, negative);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < tiles_m; ++i) {
                double left[2 * depth];
#pragma unroll
                for (int q = 0; q < depth; ++q) {
                    if constexpr (parts == 1) {
                        const auto piece = a[((first + q) * pieces + i) * 32];
                        left[2 * q] = piece.value[0];
                        left[2 * q + 1] = piece.value[1];
                    } else {
                        const auto piece = a[(first * pieces + 2 * i + q) * 32];
                        left[q] = piece.value[0];
                        left[q + 2] = piece.value[1];
                    }
                }
#pragma unroll
                for (int j = 0; j < tiles_n; ++j) {
                    mma<depth>(sum_[i * tiles_n + j], left, right[j]);
                }
            }
        }
    }

    T sum(int entry) const {
        return sum_of<T>(sum_, entry);
    }
    int row(int entry) const {
        const int e = entry * parts;
        const int tile = e / 4 / tiles_n * warps + warp_;
        const int half = e % 4 / 2;
        return tile * 16 + (parts == 1 ? 2 * g_ + half : g_ + 8 * half);
    }
    int col(int entry) const {
        const int e = entry * parts;
        return e / 4 % tiles_n * (8 / parts) + (parts == 1 ? 2 * t_ + e % 2 : t_);
    }

    static bool mirrors() {
        return false;
    }

    static constexpr int lane = 0;
    static constexpr int row_class = 0;
    const int slot;

  private:
    const int warp_;
    const int g_;
    const int t_;
    CopyA copy_a_;
    CopyB copy_b_;
    double sum_[tiles_m * tiles_n][4] = {};
};

/// Sums of tile_m columns of A and tile_n columns of B by plain multiply-adds. ceil(n / tile_n) = 1
/// or 2 groups of lanes share the columns of B, and read each other's pieces of 16 bytes of A.
template <class T, TsmttsmConfig CFG>
class StreamedFmaSums {
    static constexpr int unit = 16 / sizeof(T);
    static constexpr int warps = CFG.tile.team / 32;
    static constexpr int threads_n = ceil_div(CFG.tile.n, CFG.tile.tile_n);
    static constexpr int lanes_m = 32 / threads_n;
    static constexpr int pieces = CFG.tile.tile_m / unit;
    static constexpr int copies = pieces / threads_n;
    static constexpr int pitch_b = ceil_div(threads_n * CFG.tile.tile_n, unit) * unit;
    static_assert(threads_n == 1 || threads_n == 2);
    static_assert(threads_n == 1 || CFG.tile.tile_n % unit == 0);
    static_assert(CFG.tile.tile_m % (unit * threads_n) == 0);
    static_assert(warps * lanes_m * CFG.tile.tile_m >= CFG.tile.m);
    struct Place {
        static int of(int row, int column) { return row * pitch_b + column; }
    };
    using CopyA = ColumnCopy<CFG.rows, 1, copies, 1, 0, warps * 512, CFG.bytes_a>;
    using CopyB = TeamCopy<T, CFG.tile.team, CFG.rows, CFG.tile.n, CFG.bytes_b, Place>;

  public:
    static constexpr int slots = CFG.tile.team;
    static constexpr int lanes = 1;
    static constexpr int classes = 1;
    static constexpr int entries = CFG.tile.tile_m * CFG.tile.tile_n;
    static constexpr int stage_bytes = CopyA::stage_bytes;
    static constexpr int b_bytes = ceil_div(CFG.rows * pitch_b, unit) * 16;

    StreamedFmaSums(int thread, const TsmttsmArgs<T>& args, std::int64_t first, std::int64_t stride)
        : slot(thread),
          warp_(thread / 32),
          lane_(thread % 32 % lanes_m),
          part_(thread % 32 / lanes_m),
          copy_a_(args.a, args.lda * sizeof(T), args.m * sizeof(T), 0, thread * 16, first, stride),
          copy_b_(thread, args.b, args.ldb, args.n, first, stride) {}

    void start(unsigned stage, unsigned stage_b, std::int64_t rows) {
        copy_a_.start(stage, rows);
        copy_b_.start(stage_b, rows);
    }

    template <class Weights>
    void add(const char* stage, const char* stage_b, const Weights& weights) {
        using Piece = Pack<T, unit>;
        const Piece* const a = reinterpret_cast<const Piece*>(stage) + lane_;
        const Piece* const b =
            reinterpret_cast<const Piece*>(stage_b) + part_ * (CFG.tile.tile_n / unit);
#pragma unroll
        for (int r = 0; r < CFG.rows; ++r) {
            const auto weight = weights.at(r);
            Piece left[pieces];
#pragma unroll
            for (int p = 0; p < pieces; ++p) {
                left[p] = a[r * copies * 32 + p * lanes_m];
            }
#pragma unroll
            for (int first = 0; first < CFG.tile.tile_n; first += unit) {
                const Piece right = b[(r * pitch_b + first) / unit];
#pragma unroll
                for (int w = 0; w < unit; ++w) {
                    const T value = weight(right.value[w]);
#pragma unroll
                    for (int i = 0; i < CFG.tile.tile_m; ++i) {
                        if (first + w < CFG.tile.tile_n) {
                            T& sum = sum_[i * CFG.tile.tile_n + first + w];
                            sum =
                                multiply_add(conjugate(left[i / unit].value[i % unit]), value, sum);
                        }
                    }
                }
            }
        }
    }

    T sum(int entry) const {
        return sum_[entry];
    }
    int row(int entry) const {
        const int i = entry / CFG.tile.tile_n;
        const int piece = i / unit * lanes_m + lane_;
        return ((piece / 32 * warps + warp_) * 32 + piece % 32) * unit + i % unit;
    }
    int col(int entry) const {
        return part_ * CFG.tile.tile_n + entry % CFG.tile.tile_n;
    }

    static bool mirrors() {
        return false;
    }

    static constexpr int lane = 0;
    static constexpr int row_class = 0;
    const int slot;

  private:
    const int warp_;
    const int lane_;
    const int part_;
    CopyA copy_a_;
    CopyB copy_b_;
    T sum_[entries] = {};
};

template <class T, TsmttsmConfig CFG>
using StreamedSumTile =
    typename Choice<CFG.tile.tensor, StreamedMmaSums<T, CFG>, StreamedFmaSums<T, CFG>>::type;

/// As form_tsmttsm, for up to tile.m columns of A and up to tile.n of B, which are run-time
/// arguments. stages: groups of `rows` rows in the rings of a warp and of its team. bytes_a = 16
/// requires that A starts at a multiple of sizeof(T), a launch of RowClass::most_steps blocks or
/// more, and, unless all rows start at multiples of 16 bytes, at most tile.m - 16 / sizeof(T) + 1
/// columns of A.
template <class T, TsmttsmConfig CFG, class Weights>
void form_streamed_tsmttsm(const TsmttsmArgs<T>& given, const Weights& all_weights, T* partials,
                           unsigned* counters, int group) {
    using Tile = StreamedSumTile<T, CFG>;
    constexpr int team_warps = CFG.tile.team / 32;
    constexpr int teams = CFG.threads / CFG.tile.team;
    constexpr int ring_bytes = CFG.stages * Tile::stage_bytes;
    constexpr int team_bytes = team_warps * ring_bytes + CFG.stages * Tile::b_bytes;
    const int team = threadIdx.x / CFG.tile.team;
    T* const shared = dynamic_shared<T>();
    char* const ring_b = reinterpret_cast<char*>(shared) + team * team_bytes;
    char* const ring =
        ring_b + CFG.stages * Tile::b_bytes + threadIdx.x % CFG.tile.team / 32 * ring_bytes;
    const unsigned ring_address = shared_address(ring);
    const unsigned ring_b_address = shared_address(ring_b);
    for (int e = threadIdx.x; e < teams * team_bytes / 16; e += CFG.threads) {
        reinterpret_cast<Pack<double, 2>*>(shared)[e] = {};
    }
    __syncthreads();

    // The sums over the rows of this block's class. Those of the columns before A are dropped.
    RowClass own;
    if constexpr (CFG.bytes_a == 16) {
        own = RowClass::of(given.a, given.lda);
    }
    TsmttsmArgs<T> args = given;
    args.rows = own.count(given.rows);
    args.m = given.m + own.head;
    args.a = given.a + own.first * given.lda - own.head;
    args.lda = given.lda * own.step;
    args.b = given.b + own.first * given.ldb;
    args.ldb = given.ldb * own.step;
    const Weights weights = all_weights.every(own.first, own.step);

    const std::int64_t stride = own.blocks() * teams * CFG.rows;
    std::int64_t first = (team * own.blocks() + own.block()) * CFG.rows;
    std::int64_t left = args.rows - first;
    Tile tile(threadIdx.x % CFG.tile.team, args, first, stride);
    const auto start_next = [&](int stage) {
        if (left > 0) {
            tile.start(ring_address + stage * Tile::stage_bytes,
                       ring_b_address + stage * Tile::b_bytes, left);
            left -= stride;
        }
        commit_copies();
    };
#pragma unroll
    for (int stage = 0; stage < CFG.stages - 1; ++stage) {
        start_next(stage);
    }
    int stage = 0;
#pragma unroll 1
    for (; first < args.rows; first += stride) {
        wait_for_copies<CFG.stages - 2>();
        // All warps of the team have used the stage that is filled next, and see the rows of B.
        sync_team<CFG.tile.team>(team);
        start_next(stage == 0 ? CFG.stages - 1 : stage - 1);
        tile.add(ring + stage * Tile::stage_bytes, ring_b + stage * Tile::b_bytes,
                 weights.from(first));
        stage = stage == CFG.stages - 1 ? 0 : stage + 1;
    }
    wait_for_copies<0>();
    combine_sums<T, CFG, teams * team_bytes>(tile, given, shared, partials, counters, group,
                                             given.m, own.head);
}

template <class T, TsmttsmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    streamed_tsmttsm(TsmttsmArgs<T> args, T* partials, unsigned* counters, int group) {
    form_streamed_tsmttsm<T, CFG>(args, NoWeights(), partials, counters, group);
}

template <class T, TsmttsmConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    streamed_weighted_tsmttsm(WeightedTsmttsmArgs<T, typename WeightOf<T>::type> args, T* partials,
                              unsigned* counters, int group) {
    using Weights = RowWeights<typename WeightOf<T>::type>;
    form_streamed_tsmttsm<T, CFG>(args.product, Weights{args.w, args.ldw, args.product.rows},
                                  partials, counters, group);
}

}  // namespace quiver
