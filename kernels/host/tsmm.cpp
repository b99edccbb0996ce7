// SPDX-License-Identifier: BSD-3-Clause
// tsmm on the host. Complex blocks are treated as real ones of twice the width, with a small matrix
// of twice the rows and columns: each entry u + iv becomes the 2 x 2 block (u, v; -v, u).
#include <new>

#include "blockvec/scalar_list.hpp"
#include "kernels/host/block_products.hpp"
#include "kernels/host/register_tile.hpp"

namespace quiver::host {
namespace {

/// From this size on, Y is written with non-temporal stores: it would not stay in the caches, and
/// its lines need not be read before they are overwritten.
constexpr double streamed_bytes = 32 << 20;

template <class R>
struct TileArgs {
    int m;
    const R* x;
    std::int64_t ldx;
    /// Pairs of rows of C: a pair of lanes holds two entries of a column, see column_of_pair.
    const R* c;
    R* y;
    std::int64_t ldy;
    /// Address and stride of the lines to prefetch, one per step.
    const R* next_x;
    std::int64_t next_step;
    /// Number of tiles, one below the other.
    int tiles;
    /// Lines to store with each tile: one per step, and the rest up to `share` at its end.
    Stream<R>* stream;
    std::int64_t share;
};

/// Broadcasts two adjacent numbers to all pairs of lanes with one load.
template <class Isa, class R, class Vector>
[[gnu::always_inline]] inline void set_pairs(const R* from, Vector& to) {
#if defined(__x86_64__)
    using Pair = const R(*)[2];
    if constexpr (std::is_same_v<Isa, Avx512> && sizeof(R) == 8) {
        asm("vbroadcastf64x2 %1, %0" : "=v"(to) : "m"(*reinterpret_cast<Pair>(from)));
        return;
    } else if constexpr (std::is_same_v<Isa, Avx2> && sizeof(R) == 8) {
        asm("vbroadcastf128 %1, %0" : "=v"(to) : "m"(*reinterpret_cast<Pair>(from)));
        return;
    } else if constexpr (!std::is_same_v<Isa, Baseline>) {
        asm("vbroadcastsd %1, %0" : "=v"(to) : "m"(*reinterpret_cast<Pair>(from)));
        return;
    }
#endif
    for (int lane = 0; lane < lanes_v<Isa, R>; ++lane) {
        to[lane] = from[lane % 2];
    }
}

/// Pairs of lanes in 16 bytes.
template <class R>
inline constexpr int pairs_in_block = 8 / static_cast<int>(sizeof(R));

/// The column of a panel that a pair of lanes belongs to. In this order, the two numbers of each
/// pair of two vectors can be added by shuffles within 16 bytes.
template <class R>
int column_of_pair(int lanes, int vectors, int vector, int pair) {
    const int first = vector / 2 * lanes;
    if (vector % 2 == 0 && vector + 1 == vectors) {
        return first + pair;
    }
    const int block = pair / pairs_in_block<R>;
    return first + (2 * block + vector % 2) * pairs_in_block<R> + pair % pairs_in_block<R>;
}

/// The columns of X that a step multiplies: two, or the last one alone. The last column is loaded
/// alone (if m = 1), or as the second of a pair whose first column an earlier step has used.
enum class Columns : std::uint8_t { two, one, second_of_two };

/// Y(t, :) = X(t, :) C for t < tile, rows in ascending order. A step multiplies two columns of X by
/// two rows of C, with the sums over even and odd columns in adjacent lanes. This halves the loads,
/// and an incomplete last column wastes only half a vector. `vectors` registers hold vectors / 2
/// registers of a row of Y, which is written in whole vectors and one half.
template <class Isa, class R, int tile, int vectors>
struct RowTile {
    static constexpr int lanes = lanes_v<Isa, R>;
    static constexpr int lines = static_cast<int>(sizeof(R)) / 4;
    using Vector = typename VectorOf<R, lanes>::type;

    template <Columns columns>
    [[gnu::always_inline]] static inline void add(const R* c, const R* x, std::int64_t ldx,
                                                  Vector (&sum)[tile][vectors]) {
        Vector row[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            load_once(c + v * lanes, row[v]);
        }
#pragma GCC unroll 32
        for (int t = 0; t < tile; ++t) {
            Vector factor;
            if constexpr (columns == Columns::one) {
                LaneIndices<Isa, R> even_lanes;
                for (int lane = 0; lane < lanes; ++lane) {
                    even_lanes[lane] = lane % 2 - 1;
                }
                const Vector all = x[t * ldx] - Vector{};
                factor = reinterpret_cast<Vector>(reinterpret_cast<LaneIndices<Isa, R>>(all) &
                                                  even_lanes);
            } else {
                set_pairs<Isa>(x + t * ldx, factor);
            }
            if constexpr (columns == Columns::second_of_two) {
                // Mask the other column: zero times its value would be NaN if it is infinite.
                LaneIndices<Isa, R> odd_lanes;
                for (int lane = 0; lane < lanes; ++lane) {
                    odd_lanes[lane] = -(lane % 2);
                }
                factor = reinterpret_cast<Vector>(reinterpret_cast<LaneIndices<Isa, R>>(factor) &
                                                  odd_lanes);
            }
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                sum[t][v] += factor * row[v];
            }
        }
    }

    [[gnu::always_inline]] static inline void run(const TileArgs<R>& given) {
        TileArgs<R> args = given;
        Stream<R> stream = *given.stream;
        for (int i = 0; i < given.tiles; ++i) {
            run_tile(args, stream);
            args.x += tile * args.ldx;
            args.y += tile * args.ldy;
            args.next_x += tile * args.ldx;
        }
        *given.stream = stream;
    }

    [[gnu::always_inline]] static inline void run_tile(const TileArgs<R>& args, Stream<R>& stream) {
        Vector sum[tile][vectors] = {};
        std::int64_t share = args.share;
        if (args.m == 1) {
            add<Columns::one>(args.c, args.x, args.ldx, sum);
        }
        for (int k = 0; k < args.m / 2 + (args.m > 1 ? args.m % 2 : 0); ++k) {
#pragma GCC unroll 2
            for (int line = 0; line < lines; ++line) {
                __builtin_prefetch(args.next_x + (k * lines + line) * args.next_step);
            }
            const R* const c = args.c + k * vectors * lanes;
            if (2 * k + 1 < args.m) {
                add<Columns::two>(c, args.x + 2 * k, args.ldx, sum);
            } else {
                add<Columns::second_of_two>(c, args.x + 2 * k - 1, args.ldx, sum);
            }
            const std::int64_t now = std::min<std::int64_t>(lines, share);
            stream.template send<Isa>(now);
            share -= now;
        }
        stream.template send<Isa>(share);
        // Shuffles within 16 bytes combine two vectors into one of Y, see column_of_pair; a last
        // single vector gives half a vector.
        LaneIndices<Isa, R> even;
        LaneIndices<Isa, R> swapped;
        LaneIndices<Isa, R> compressed;
        constexpr int block = pairs_in_block<R> * 2;
        for (int lane = 0; lane < lanes; ++lane) {
            const int pair = lane % pairs_in_block<R>;
            even[lane] =
                (lane % block < pairs_in_block<R> ? 0 : lanes) + lane / block * block + 2 * pair;
            swapped[lane] = lane ^ 1;
            compressed[lane] = 2 * lane % lanes;
        }
        const LaneIndices<Isa, R> odd = even + 1;
#pragma GCC unroll 32
        for (int t = 0; t < tile; ++t) {
            R* y = args.y + t * args.ldy;
#pragma GCC unroll 8
            for (int v = 0; v + 1 < vectors; v += 2) {
                Vector total;
                Vector odds;
                shuffle(sum[t][v], sum[t][v + 1], even, total);
                shuffle(sum[t][v], sum[t][v + 1], odd, odds);
                total += odds;
                std::memcpy(y + v / 2 * lanes, &total, sizeof(Vector));
            }
            if constexpr (vectors % 2 != 0) {
                const Vector& alone = sum[t][vectors - 1];
                Vector total;
                shuffle(alone, swapped, total);
                const Vector twice = alone + total;
                shuffle(twice, compressed, total);
                std::memcpy(y + vectors / 2 * lanes, &total, sizeof(Vector) / 2);
            }
        }
    }
};

constexpr int most_tile_rows = 8;
template <class Isa, class R>
inline constexpr auto row_tiles = make_tile_table<Isa, R, TileArgs<R>, RowTile, most_tile_rows>();

template <class R>
struct FoldedArgs {
    int groups, fold, n;
    const R* x;
    const LaneIndex<R>* source;
    const R* c;
    R* y;
    const R* next_x;
    Stream<R>* stream;
};

/// For blocks without gaps of at most half as many columns as lanes: a vector holds `fold` whole
/// rows of X, and a permutation brings a factor to every lane of the same rows of Y.
template <class Isa, class R, int m>
struct FoldedTile {
    static constexpr int lanes = lanes_v<Isa, R>;
    using Vector = typename VectorOf<R, lanes>::type;

    [[gnu::always_inline]] static inline void run(const FoldedArgs<R>& given) {
        const FoldedArgs<R> args = given;
        LaneIndices<Isa, R> source[m];
        Vector c[m];
#pragma GCC unroll 8
        for (int i = 0; i < m; ++i) {
            load_once(args.source + i * lanes, source[i]);
            load_once(args.c + i * lanes, c[i]);
        }
        const std::int64_t x_step = args.fold * m;
        const std::int64_t y_step = args.fold * args.n;
        Stream<R> stream = *args.stream;
        for (int group = 0; group < args.groups; ++group) {
            Vector x;
            load_once(args.x + group * x_step, x);

            __builtin_prefetch(args.next_x + group * x_step);
            Vector y;
            shuffle(x, source[0], y);
            y *= c[0];
#pragma GCC unroll 8
            for (int i = 1; i < m; ++i) {
                Vector factor;
                shuffle(x, source[i], factor);
                y += factor * c[i];
            }
            std::memcpy(args.y + group * y_step, &y, sizeof(Vector));
            stream.template send<Isa>(1);
        }
        *args.stream = stream;
    }
};

/// The compiled forms: [m - 1].
template <class Isa, class R>
inline constexpr auto folded_table = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array<void (*)(const FoldedArgs<R>&), 8>{
        entry<Isa, FoldedTile<Isa, R, i + 1>, FoldedArgs<R>>()...};
}
(std::make_integer_sequence<int, widest_folded<Isa, R>>());

/// Y = X C + beta Y for real blocks; alpha is contained in C. A block of rows of Y is computed in a
/// buffer without gaps and then stored, so that X may be Y.
template <class T>
struct Product {
    using R = real_t<T>;
    static constexpr int most_lanes = lanes_v<Avx512, R>;
    static constexpr int line = Stream<R>::line;

    /// Numbers in the vectors of a folded C, which has at most half as many rows as lanes.
    static constexpr std::int64_t folded_size = most_lanes / 2 * most_lanes;

    int m, n;
    const R* x;
    std::int64_t ldx;
    /// The panels of C in the layout of RowTile, one after the other.
    const R* c;
    /// For folded blocks: permutations, and whole vectors of factors.
    int fold;
    const LaneIndex<R>* source;
    const R* folded_c;
    T beta;
    R* y;
    std::int64_t ldy;
    bool unread;  // Y is neither X nor an addend
    bool streamed;
    R* buffers;

    static constexpr std::int64_t packed_size(int m, int n) {
        return (m + 1) / 2 * 2 * static_cast<std::int64_t>((n + most_lanes - 1) / most_lanes) *
               most_lanes;
    }
    /// Rows whose X and Y stay in the L1 cache while all panels of C pass over them.
    static int block_rows(int m, int n) {
        const std::size_t row = static_cast<std::size_t>(m + n) * sizeof(R);
        return 8 * static_cast<int>(std::clamp<std::size_t>(512 / row, 4, 128));
    }
    /// Numbers in one of the two buffers of a chunk: a block, the part of a line before it, and one
    /// more vector.
    static std::int64_t buffer_size(int m, int n) {
        return (static_cast<std::int64_t>(block_rows(m, n)) * n + 2 * line - 1) / line * line +
               most_lanes;
    }

    /// to = X C for `count` rows; `to` has no gaps.
    template <class Isa>
    [[gnu::always_inline]] inline void multiply_block(const R* x_block, int count, int ahead,
                                                      std::int64_t left, R* to,
                                                      Stream<R>& stream) const noexcept {
        constexpr int lanes = lanes_v<Isa, R>;
        const R* next = x_block + ahead * ldx;
        int r = 0;
        if (fold > 0) {
            // No vector of X may reach beyond the chunk.
            const std::int64_t safe = std::clamp<std::int64_t>(left - lanes, 0, count);
            r = static_cast<int>(safe / fold * fold);
            folded_table<Isa, R>[static_cast<std::size_t>(m - 1)](
                {r / fold, fold, n, x_block, source, folded_c, to, next, &stream});
        }
        // Columns are counted in half vectors. The last panel comes first, because it may overwrite
        // the first columns of the next row.
        constexpr int half = std::max(lanes / 2, 1);
        const Pieces panels((n + half - 1) / half, most_vectors);
        const std::int64_t pending = stream.lines;
        for (int p = panels.count - 1; p >= 0; --p) {
            const int vectors = panels.size(p);
            const int column = panels.first(p) * half;
            const int tile = most_rows<Isa>(vectors, most_tile_rows);
            const int tiles = (count - r) / tile;
            // The panels share the lines to prefetch and to store.
            const std::int64_t next_step =
                8 * ldx * tile / (std::max(m, 1) * static_cast<int>(sizeof(R)) * panels.count);
            const std::int64_t share = pending / (std::max(tiles, 1) * panels.count) + 1;
            const auto multiply_rows = [&](int first, int rows, int repeats) {
                if (repeats > 0) {
                    row_tiles<Isa, R>[static_cast<std::size_t>(vectors - 1)]
                                     [static_cast<std::size_t>(rows - 1)](
                                         {m, x_block + first * ldx, ldx,
                                          c + (m + 1) / 2 * 2 * column, to + first * n + column, n,
                                          next + first * ldx + p * tile * ldx / panels.count,
                                          next_step, repeats, &stream, share});
                }
            };
            const int done = r + tiles * tile;
            multiply_rows(r, tile, tiles);
            multiply_rows(done, count - done, done < count ? 1 : 0);
        }
    }

    /// y_row = from + beta y_row. std::copy would be slow for pieces of a few kilobytes.
    template <class Isa>
    [[gnu::always_inline]] inline void store(const R* from, R* y_row, int count) const noexcept {
        constexpr int lanes = lanes_v<Isa, R>;
        int j = 0;
        if (beta == T(0)) {
            for (; j + lanes <= count; j += lanes) {
                typename VectorOf<R, lanes>::type values;
                load_once(from + j, values);
                std::memcpy(y_row + j, &values, sizeof(values));
            }
            for (; j < count; ++j) {
                y_row[j] = from[j];
            }
        } else if constexpr (is_complex_v<T>) {
            const R re = beta.real();
            const R im = beta.imag();
#pragma GCC ivdep
            for (; j < count; j += 2) {
                const R old_re = y_row[j];
                const R old_im = y_row[j + 1];
                y_row[j] = from[j] + (re * old_re - im * old_im);
                y_row[j + 1] = from[j + 1] + (re * old_im + im * old_re);
            }
        } else {
#pragma GCC ivdep
            for (; j < count; ++j) {
                y_row[j] = from[j] + beta * y_row[j];
            }
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const int block = block_rows(m, n);
        // Prefetch distance in rows of X.
        const int ahead = std::max(block, static_cast<int>(16384 / static_cast<int>(sizeof(R)) /
                                                           std::max<std::int64_t>(ldx, 1)));
        R* buffer = buffers + chunk.index * 2 * buffer_size(m, n);
        R* other = buffer + buffer_size(m, n);
        R* const start = y + chunk.first * ldy;
        // If streamed, held: how many numbers wait for the next block to complete their line.
        // foreign: how many numbers of the first line belong to the previous chunk.
        int held =
            streamed ? static_cast<int>(reinterpret_cast<std::uintptr_t>(start) / sizeof(R) % line)
                     : 0;
        int foreign = held;
        R* target = start - held;
        Stream<R> stream{nullptr, nullptr, 0};
        for (std::int64_t first = chunk.first; first < chunk.last; first += block) {
            const std::int64_t left = chunk.last - first;
            const int count = static_cast<int>(std::min<std::int64_t>(block, left));
            R* y_block = y + first * ldy;
            // Vector stores write beyond the block; the next block must overwrite those elements.
            const bool direct = unread && ldy == n && !streamed && left > count + lanes_v<Isa, R>;
            R* result = direct ? y_block : buffer + held;
            multiply_block<Isa>(x + first * ldx, count, ahead + block <= left ? ahead : 0, left,
                                result, stream);
            if (streamed) {
                stream.template send<Isa>(stream.lines);
                held += count * n;
                const int lines = held / line;
                held -= lines * line;
                std::copy_n(buffer + lines * line, held, other);
                stream = {buffer, target, lines};
                if (foreign > 0 && lines > 0) {
                    std::copy_n(buffer + foreign, line - foreign, start);
                    stream = {buffer + line, target + line, lines - 1};
                    foreign = 0;
                }
                target += lines * line;
                std::swap(buffer, other);
                continue;
            }
            if (result == y_block) {
                continue;
            }
            const bool gapless = ldy == n;
            const int pieces = gapless ? 1 : count;
            const int length = gapless ? count * n : n;
            for (int r = 0; r < pieces; ++r) {
                store<Isa>(result + r * n, y_block + r * ldy, length);
            }
        }
        if (streamed) {
            stream.template send<Isa>(stream.lines);
            std::copy_n(buffer + foreign, held - foreign, target + foreign);
#if defined(__x86_64__)
            asm volatile("sfence" ::: "memory");
#endif
        }
    }
};

/// Entry (i, j) of the real form of alpha C, with j counted in real columns.
template <class T>
real_t<T> real_entry(const TsmmArgs<T>& args, int i, int j) {
    if constexpr (is_complex_v<T>) {
        const T value = multiply(args.alpha, args.c[i / 2 * args.ldc + j / 2]);
        if (i % 2 == j % 2) {
            return value.real();
        }
        return i % 2 == 0 ? value.imag() : -value.imag();
    } else {
        return args.alpha * args.c[i * args.ldc + j];
    }
}

/// The two parts of the fused update: Y = beta Y D, then Y = alpha X C + Y.
template <class T>
TsmmArgs<T> in_place_part(const TsmmArgs<T>& args) {
    return {args.rows, args.n,   args.n, args.beta, args.y,  args.ldy,
            args.d,    args.ldd, T(0),   args.y,    args.ldy};
}
template <class T>
TsmmArgs<T> added_part(const TsmmArgs<T>& args) {
    return {args.rows, args.m,   args.n, args.alpha, args.x,  args.ldx,
            args.c,    args.ldc, T(1),   args.y,     args.ldy};
}

}  // namespace

template <class T>
int update_chunks(int threads, const TsmmArgs<T>& args) {
    return chunk_count(threads, args.rows, static_cast<std::size_t>(args.m + args.n) * sizeof(T));
}

template <class T>
std::size_t BlockUpdate<T>::workspace_bytes(int chunks, const TsmmArgs<T>& args) {
    using P = Product<T>;
    const int m = reals_v<T> * args.m;
    const int n = reals_v<T> * args.n;
    const std::int64_t numbers =
        P::packed_size(m, n) + 2 * P::folded_size + chunks * 2 * P::buffer_size(m, n);
    return cache_lines(sizeof(P)) +
           cache_lines(static_cast<std::size_t>(numbers) * sizeof(real_t<T>));
}

template <class T>
BlockUpdate<T>::BlockUpdate(const TsmmArgs<T>& args, bool may_stream, void* workspace) {
    using P = Product<T>;
    using R = real_t<T>;
    const int m = reals_v<T> * args.m;
    const int n = reals_v<T> * args.n;
    R* packed = reinterpret_cast<R*>(static_cast<char*>(workspace) + cache_lines(sizeof(P)));
    const int lanes = vector_bytes() / static_cast<int>(sizeof(R));
    const int half = std::max(lanes / 2, 1);
    const Pieces panels((n + half - 1) / half, most_vectors);
    const auto entry_or_zero = [&](int i, int j) {
        return i < m && j < n ? real_entry(args, i, j) : R(0);
    };
    R* to = packed;
    for (int p = 0; p < panels.count; ++p) {
        for (int i = 0; i < m; i += 2) {
            const bool odd_last = i + 1 == m && m > 1;
            for (int k = 0; k < panels.size(p) * half; ++k) {
                const int j = panels.first(p) * half +
                              column_of_pair<R>(lanes, panels.size(p), k / half, k % half);
                *to++ = odd_last ? R(0) : entry_or_zero(i, j);
                *to++ = entry_or_zero(odd_last ? i : i + 1, j);
            }
        }
    }
    const int widest = std::max(m, n);
    R* folded_c = packed + P::packed_size(m, n);
    auto* source = reinterpret_cast<LaneIndex<R>*>(folded_c + P::folded_size);
    const bool folded = vector_bytes() > Baseline::vector_bytes && 2 * widest <= lanes &&
                        args.ldx == args.m && m > 0;
    const int fold = folded ? lanes / widest : 0;
    if (folded) {
        set_folded_source(lanes, fold, m, n, source);
        for (int i = 0; i < m; ++i) {
            for (int lane = 0; lane < lanes; ++lane) {
                folded_c[i * lanes + lane] = real_entry(args, i, lane % n);
            }
        }
    }
    const double bytes = static_cast<double>(args.rows) * (args.m + args.n) * sizeof(T);
    P& product = *new (workspace) P{};
    product.m = m;
    product.n = n;
    product.x = as_reals(args.x);
    product.ldx = reals_v<T> * args.ldx;
    product.c = packed;
    product.fold = fold;
    product.source = source;
    product.folded_c = folded_c;
    product.beta = args.beta;
    product.y = as_reals(args.y);
    product.ldy = reals_v<T> * args.ldy;
    product.unread = args.beta == T(0) && args.x != args.y;
    product.streamed = may_stream && product.unread && args.ldy == args.n && bytes > streamed_bytes;
    product.buffers = folded_c + 2 * P::folded_size;
    product_ = &product;
}

template <class T>
void BlockUpdate<T>::rows(Chunk chunk) const {
    run_chunk(*static_cast<const Product<T>*>(product_), chunk);
}

template <class T>
std::size_t workspace_bytes(int threads, const TsmmArgs<T>& args) {
    const int chunks = update_chunks(threads, args);
    if (args.d == nullptr) {
        return BlockUpdate<T>::workspace_bytes(chunks, args);
    }
    return BlockUpdate<T>::workspace_bytes(chunks, in_place_part(args)) +
           BlockUpdate<T>::workspace_bytes(chunks, added_part(args));
}

template <class T>
void tsmm(int threads, const TsmmArgs<T>& args, void* workspace) {
    if (args.rows == 0 || args.n == 0) {
        return;
    }
    const int chunks = update_chunks(threads, args);
    if (args.d == nullptr) {
        const BlockUpdate<T> update(args, true, workspace);
        for_chunks(chunks, args.rows, [&](Chunk chunk) { update.rows(chunk); });
        return;
    }
    const TsmmArgs<T> in_place = in_place_part(args);
    const BlockUpdate<T> first(in_place, false, workspace);
    const BlockUpdate<T> second(
        added_part(args), false,
        static_cast<char*>(workspace) + BlockUpdate<T>::workspace_bytes(chunks, in_place));
    for_chunks(chunks, args.rows, [&](Chunk chunk) {
        for_cached_pieces(chunk, static_cast<std::size_t>(args.m + args.n) * sizeof(T),
                          [&](Chunk piece) {
                              first.rows(piece);
                              second.rows(piece);
                          });
    });
}

#define QUIVER_INSTANTIATE(T)                                      \
    template class BlockUpdate<T>;                                 \
    template int update_chunks(int, const TsmmArgs<T>&);           \
    template std::size_t workspace_bytes(int, const TsmmArgs<T>&); \
    template void tsmm(int, const TsmmArgs<T>&, void*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
