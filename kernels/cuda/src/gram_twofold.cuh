// SPDX-License-Identifier: BSD-3-Clause
// X^T X in sums of two doubles, by products of integers on the tensor cores (the scheme of Ozaki,
// Ogita, Oishi, Rump, Numer. Algorithms 59 (2012) 95). Each column is scaled by a power of two and
// rounded to 64-bit integers, and an integer is the sum of eight digits d_p 256^p, -128 <= d_p <
// 128. The products of digits are added without rounding error.
#pragma once

#include "kernels/cuda/kernel_configs.hpp"
#include "kernels/operations/gram_twofold.hpp"
#include "reduce.cuh"
#include "short_mma.cuh"
#include "stage.cuh"
#include "twofold.cuh"

namespace quiver {

/// largest[j] = max(largest[j], the upper 32 bits of |x| over column j). The integers are ordered
/// like the numbers; those of infinity and NaN are the largest.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    column_maxima(std::int64_t rows, int n, const double* x, std::int64_t ldx, unsigned* largest) {
    constexpr int ahead = 8;
    __shared__ unsigned shared[THREADS];
    const int lanes = THREADS / n;
    const int lane = threadIdx.x / n;
    const int column = threadIdx.x % n;
    shared[threadIdx.x] = 0;
    __syncthreads();
    if (lane < lanes) {
        const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * lanes;
        unsigned most = 0;
        for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * lanes + lane;
             first < rows; first += ahead * stride) {
            double value[ahead];
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const std::int64_t row = first + i * stride;
                value[i] = row < rows ? load_constant(x + row * ldx + column) : 0;
            }
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                const unsigned bits = __double2hiint(value[i]) & 0x7fffffffU;
                most = bits > most ? bits : most;
            }
        }
        atomicMax(shared + column, most);
    }
    __syncthreads();
    if (threadIdx.x < n) {
        atomicMax(largest + threadIdx.x, shared[threadIdx.x]);
    }
}

/// The scaling 2^exponent of a column, from the upper 32 bits of its largest magnitude: scaled
/// elements are at most 0.97 2^63, and the largest of them is at least 0.96 2^62 unless all scaled
/// elements are integers.
class ColumnScale {
  public:
    explicit ColumnScale(unsigned largest)
        : exponent_(minimum(1085 - static_cast<int>((largest + 0x10000U) >> 20), 1074)),
          finite_(largest < 0x7ff00000U) {}
    int exponent() const { return exponent_; }
    bool is_finite() const { return finite_; }
    /// 2^(exponent - 52), which is never too large for a double.
    double factor() const { return __hiloint2double((exponent_ - 52 + 1023) << 20, 0); }
    /// An element times 2^exponent.
    static double scaled(double element, double factor) {
        return __dmul_rn(__dmul_rn(element, factor), 4503599627370496.0);
    }

  private:
    int exponent_;
    bool finite_;
};

/// Bytes k of four words become word k.
inline void transpose_bytes(unsigned (&word)[4]) {
    const unsigned low_01 = __byte_perm(word[0], word[1], 0x5140);
    const unsigned high_01 = __byte_perm(word[0], word[1], 0x7362);
    const unsigned low_23 = __byte_perm(word[2], word[3], 0x5140);
    const unsigned high_23 = __byte_perm(word[2], word[3], 0x7362);
    word[0] = __byte_perm(low_01, low_23, 0x5410);
    word[1] = __byte_perm(low_01, low_23, 0x7632);
    word[2] = __byte_perm(high_01, high_23, 0x5410);
    word[3] = __byte_perm(high_01, high_23, 0x7632);
}

/// The digits of 32 rows of 8 columns, a `group`, in shared memory: 16 fragments of 32 words, two
/// for each digit. Word `lane` of fragment 2 p + h has digit p of column lane / 4 in the rows lane
/// % 4 + 16 h + 4 i, one in a byte.
constexpr int gram_digits = 8;
constexpr int digit_words = 2 * 32;
constexpr int group_words = gram_digits * digit_words;

/// Splits the elements of a group; `x` points to the first one, its rows are PITCH apart.
template <int PITCH>
void split_group(const double* x, double factor, unsigned* digits, int lane) {
    // The carries of this sum make the digits of the bytes b - 128.
    constexpr unsigned long long offset = 0x8080808080808080ULL;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        unsigned low[4];
        unsigned high[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const double scaled =
                ColumnScale::scaled(x[(lane % 4 + 16 * h + 4 * i) * PITCH + lane / 4], factor);
            const unsigned long long bits =
                static_cast<unsigned long long>(__double2ll_rn(scaled)) + offset;
            low[i] = static_cast<unsigned>(bits);
            high[i] = static_cast<unsigned>(bits >> 32);
        }
        transpose_bytes(low);
        transpose_bytes(high);
        unsigned* const to = digits + 32 * h + lane;
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            to[p * digit_words] = low[p] ^ 0x80808080U;
            to[(p + 4) * digit_words] = high[p] ^ 0x80808080U;
        }
    }
}

/// D += A B for signed bytes, A 16 x 32, B 32 x 8, D 16 x 8. With g = lane / 4 and t = lane % 4, a
/// lane holds A(g + 8 h, .) in a[h] and a[2 + h], B(., g) in b[0] and b[1], D(g + 8 h, 2 t + e) in
/// d[2 h + e]. PTX ISA, mma.m16n8k32 for .s8.
inline void byte_mma(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Sums of the products of digits have one number for each level p + q.
constexpr int gram_levels = 2 * gram_digits - 1;

/// The value of the levels in two doubles.
template <class Level>
Twofold value_of_levels(const Level& level) {
    Twofold sum{0, 0};
#pragma unroll
    for (int k = gram_levels / 3 - 1; k >= 0; --k) {
        // At most 2^31 (1 + 2^8 + 2^16) < 2^53.
        const long long part = level(3 * k) + 256LL * level(3 * k + 1) + 65536LL * level(3 * k + 2);
        add_to(sum,
               __dmul_rn(static_cast<double>(part), __hiloint2double((1023 + 24 * k) << 20, 0)));
    }
    return sum;
}

/// The digits of a group as right operands.
struct RightDigits {
    unsigned digit[gram_digits][2];

    RightDigits(unsigned group, int lane) {
#pragma unroll
        for (int p = 0; p < gram_digits; p += 2) {
            unsigned word[4];
            load_matrices(word, group + 4 * p * digit_words + 16 * lane);
            digit[p][0] = word[0];
            digit[p][1] = word[1];
            digit[p + 1][0] = word[2];
            digit[p + 1][1] = word[3];
        }
    }
};

/// Adds the products of left operands p = 0 .. COUNT - 1, the digits p of two halves that are
/// `distance` words apart, with the digits q to sum[p + q].
template <int COUNT, int LEVELS>
void add_products(int (&sum)[LEVELS][4], unsigned left, int distance, const RightDigits& right,
                  int lane) {
    static_assert(COUNT + gram_digits - 1 <= LEVELS);
    const unsigned first = left + 4 * (lane / 8 % 2 * distance + lane / 16 * 32) + lane % 8 * 16;
    unsigned digit[2][4];
    load_matrices(digit[0], first);
#pragma unroll
    for (int p = 0; p < COUNT; ++p) {
        if (p + 1 < COUNT) {
            load_matrices(digit[(p + 1) % 2], first + 4 * (p + 1) * digit_words);
        }
#pragma unroll
        for (int q = 0; q < gram_digits; ++q) {
            byte_mma(sum[p + q], digit[p % 2], right.digit[q]);
        }
    }
}

/// The sums of 16 x 8 columns: groups a and a + 1 by group b.
struct GramTile {
    static constexpr int entries = 4;
    int sum[gram_levels][4] = {};

    /// `digits`: the address of the digits of 32 rows.
    void add(unsigned digits, int a, int b, int lane) {
        const RightDigits right(digits + 4 * b * group_words, lane);
        add_products<gram_digits>(sum, digits + 4 * a * group_words, group_words, right, lane);
    }
    Twofold value(int entry) const {
        return value_of_levels([&](int level) { return sum[level][entry]; });
    }
    void clear() {
#pragma unroll
        for (int e = 0; e < 4 * gram_levels; ++e) {
            sum[e / 4][e % 4] = 0;
        }
    }
};

/// The sums of 8 x 8 columns: group a by itself. The upper and the lower half of a product have
/// the digits p and p + 4 of the group on the left.
struct GramDiagonalTile {
    static constexpr int entries = 2;
    static constexpr int half = gram_digits / 2;
    static constexpr int levels = half + gram_digits - 1;
    int sum[levels][4] = {};

    void add(unsigned digits, int a, int lane) {
        const unsigned group = digits + 4 * a * group_words;
        const RightDigits right(group, lane);
        add_products<half>(sum, group, half * digit_words, right, lane);
    }
    Twofold value(int entry) const {
        return value_of_levels([&](int level) {
            return (level < levels ? sum[level < levels ? level : 0][entry] : 0) +
                   (level >= half ? sum[level >= half ? level - half : 0][entry + 2] : 0);
        });
    }
    void clear() {
#pragma unroll
        for (int e = 0; e < 4 * levels; ++e) {
            sum[e / 4][e % 4] = 0;
        }
    }
};

/// The work of a warp. The columns are `groups` groups of 8. Tile k of 16 x 8 belongs to warp k %
/// team of the warps of a team. The tile of 8 x 8 of group 2 k by itself belongs to warp team - 1 -
/// k; the products of group 2 k + 1 with itself are part of a tile of 16 x 8. Together they cover
/// the upper triangle.
template <GramTwofoldConfig CFG>
struct GramWork {
    static constexpr int groups = ceil_div(CFG.n, 8);
    static constexpr int blocks = ceil_div(groups, 2);
    static constexpr int tiles = groups / 2 * (groups - groups / 2);
    static constexpr int own_tiles = ceil_div(tiles, CFG.team);
    static constexpr int entries = GramTile::entries * own_tiles + GramDiagonalTile::entries;
    static_assert(blocks <= CFG.team);

    int member;
    int a[own_tiles + 1];
    int b[own_tiles + 1];

    explicit GramWork(int member_) : member(member_) {
#pragma unroll
        for (int k = 0; k < own_tiles; ++k) {
            int left = k * CFG.team + member;
            int block = 0;
            while (has_tile(k) && left >= groups - 1 - 2 * block) {
                left -= groups - 1 - 2 * block;
                ++block;
            }
            a[k] = 2 * block;
            b[k] = 2 * block + 1 + left;
        }
    }
    bool has_tile(int k) const {
        return (k + 1) * CFG.team <= tiles || k * CFG.team + member < tiles;
    }
    bool has_diagonal() const {
        return blocks == CFG.team || CFG.team - 1 - member < blocks;
    }
    int diagonal() const {
        return 2 * (CFG.team - 1 - member);
    }
    /// Calls use(entry, i, j) for the existing entries on and above the diagonal of a lane.
    template <class Use>
    void for_each_entry(int lane, Use use) const {
        const auto visit = [&](int entry, int i, int j) {
            if (i <= j && j < CFG.n) {
                use(entry, i, j);
            }
        };
#pragma unroll
        for (int k = 0; k < own_tiles; ++k) {
            if (has_tile(k)) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    visit(4 * k + e, 8 * (a[k] + e / 2) + lane / 4,
                          8 * b[k] + lane % 4 * 2 + e % 2);
                }
            }
        }
        if (has_diagonal()) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                visit(4 * own_tiles + e, 8 * diagonal() + lane / 4,
                      8 * diagonal() + lane % 4 * 2 + e);
            }
        }
    }
};

/// Stores the sums of a pair of columns, in units of their scales, at (i, j) and (j, i).
inline void store_gram(const GramTwofoldArgs& args, const unsigned* largest, int i, int j,
                       Twofold sum) {
    const ColumnScale left(largest[i]);
    const ColumnScale right(largest[j]);
    const int exponent = -left.exponent() - right.exponent();
    double high = __dadd_rn(sum.high, sum.low);
    double low = __dadd_rn(sum.low, -__dadd_rn(high, -sum.high));
    high = scalbn(high, exponent);
    low = is_finite(high) ? scalbn(low, exponent) : 0;
    if (!left.is_finite() || !right.is_finite()) {
        high = __longlong_as_double(0x7ff8000000000000LL);
        low = 0;
    }
    const int n = args.n;
    args.sums[i * n + j] = args.sums[j * n + i] = high;
    args.sums[n * n + i * n + j] = args.sums[n * n + j * n + i] = low;
}

/// The sums of the products, flushed from the integers of a thread to sums of two doubles in shared
/// memory.
template <GramTwofoldConfig CFG>
class GramSums {
    using Work = GramWork<CFG>;

  public:
    GramSums(const Work& work, Twofold* shared) : work_(work), shared_(shared + threadIdx.x) {
#pragma unroll
        for (int e = 0; e < Work::entries; ++e) {
            shared_[e * CFG.threads] = {0, 0};
        }
    }
    /// Adds the products of 32 rows.
    void add(unsigned digits, int lane) {
#pragma unroll
        for (int k = 0; k < Work::own_tiles; ++k) {
            if (work_.has_tile(k)) {
                tile_[k].add(digits, work_.a[k], work_.b[k], lane);
            }
        }
        if (work_.has_diagonal()) {
            diagonal_.add(digits, work_.diagonal(), lane);
        }
    }
    void flush() {
#pragma unroll
        for (int k = 0; k < Work::own_tiles; ++k) {
#pragma unroll
            for (int e = 0; e < GramTile::entries; ++e) {
                append(GramTile::entries * k + e, tile_[k].value(e));
            }
            tile_[k].clear();
        }
#pragma unroll
        for (int e = 0; e < GramDiagonalTile::entries; ++e) {
            append(GramTile::entries * Work::own_tiles + e, diagonal_.value(e));
        }
        diagonal_.clear();
    }

  private:
    void append(int entry, Twofold value) {
        Twofold& sum = shared_[entry * CFG.threads];
        sum = sum + value;
    }

    const Work& work_;
    Twofold* const shared_;
    GramTile tile_[Work::own_tiles + 1];
    GramDiagonalTile diagonal_;
};

/// A thread block makes digits of `rows` rows of X at a time, while the copies of further rows are
/// in flight and the products of the digits before are formed. `team` warps cover the columns;
/// several teams share the rows.
template <GramTwofoldConfig CFG>
__global__ void __launch_bounds__(CFG.threads, CFG.blocks)
    gram_twofold(GramTwofoldArgs args, const unsigned* largest, Twofold* partials,
                 unsigned* counters, int group) {
    using Work = GramWork<CFG>;
    constexpr int warps = CFG.threads / 32;
    constexpr int teams = warps / CFG.team;
    constexpr int steps = CFG.rows / 32;
    constexpr int pieces = steps * Work::groups;
    static_assert(steps % teams == 0);
    // Sums of at most 8 products of 2^14 stay below 2^31.
    constexpr int flush_chunks = 16000 / 32 / (steps / teams);
    // The pieces of the last columns may be read beyond the last row.
    constexpr int stage = CFG.rows * CFG.pitch + 8;
    unsigned* const digits = dynamic_shared<unsigned>();
    double* const raw = reinterpret_cast<double*>(digits + 2 * pieces * group_words);
    Twofold* const sums = reinterpret_cast<Twofold*>(raw + CFG.stages * stage);
    __shared__ double factors[8 * Work::groups];
    if (threadIdx.x < 8 * Work::groups) {
        factors[threadIdx.x] = ColumnScale(largest[minimum<int>(threadIdx.x, CFG.n - 1)]).factor();
    }
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const Work work(warp % CFG.team);
    GramSums<CFG> gram(work, sums);

    const std::int64_t all = (args.rows + CFG.rows - 1) / CFG.rows;
    const int count =
        blockIdx.x < all ? static_cast<int>((all - 1 - blockIdx.x) / gridDim.x) + 1 : 0;
    const auto start = [&](int k) {
        if (k < count) {
            const std::int64_t first =
                (blockIdx.x + static_cast<std::int64_t>(k) * gridDim.x) * CFG.rows;
            copy_rows<double, CFG.threads, CFG.rows, CFG.n, CFG.pitch, CFG.bytes>(
                raw + k % CFG.stages * stage, args.x + first * args.ldx, args.ldx,
                args.rows - first);
        }
        commit_copies();
    };
    const auto split = [&](int k) {
        const double* const from = raw + k % CFG.stages * stage;
        unsigned* const to = digits + k % 2 * pieces * group_words;
        for (int e = warp; e < pieces; e += warps) {
            const int step = e / Work::groups;
            const int column = e % Work::groups * 8;
            split_group<CFG.pitch>(from + step * 32 * CFG.pitch + column,
                                   factors[column + lane / 4], to + e * group_words, lane);
        }
    };

    for (int k = 0; k < CFG.stages; ++k) {
        start(k);
    }
    wait_for_copies<CFG.stages - 1>();
    __syncthreads();
    if (count > 0) {
        split(0);
    }
    int until_flush = flush_chunks;
    for (int k = 0; k < count; ++k) {
        wait_for_copies<CFG.stages - 2>();
        __syncthreads();
        start(k + CFG.stages);
        // Half of the warps splits first, so that products and splits overlap.
#pragma unroll 1
        for (int phase = 0; phase < 2; ++phase) {
            if (phase == warp / (warps / 2)) {
                if (k + 1 < count) {
                    split(k + 1);
                }
            } else {
                const unsigned mine = shared_address(digits + k % 2 * pieces * group_words);
#pragma unroll 1
                for (int step = warp / CFG.team; step < steps; step += teams) {
                    gram.add(mine + 4 * step * Work::groups * group_words, lane);
                }
            }
        }
        if (--until_flush == 0) {
            gram.flush();
            until_flush = flush_chunks;
        }
    }
    gram.flush();
    __syncthreads();

    Twofold* const mine = partials + static_cast<std::int64_t>(blockIdx.x) * (CFG.n * CFG.n);
    if (warp < CFG.team) {
        work.for_each_entry(lane, [&](int entry, int i, int j) {
            Twofold total = sums[entry * CFG.threads + threadIdx.x];
            for (int team = 1; team < teams; ++team) {
                total = total + sums[entry * CFG.threads + team * CFG.team * 32 + threadIdx.x];
            }
            mine[i * CFG.n + j] = total;
        });
    }
    sum_over_blocks<CFG.n * CFG.n, CFG.threads>(
        CFG.n * CFG.n, partials, counters, group, reinterpret_cast<Twofold*>(digits),
        [&](int e, Twofold total) {
            if (e / CFG.n <= e % CFG.n) {
                store_gram(args, largest, e / CFG.n, e % CFG.n, total);
            }
        });
}

}  // namespace quiver
