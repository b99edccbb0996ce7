// SPDX-License-Identifier: BSD-3-Clause
// tsmm on the host. Complex blocks are real ones of twice the width, with a small matrix of twice
// the rows and columns: each entry u + iv becomes the 2 x 2 block (u, v; -v, u).
#include "kernels/host/host_kernels.hpp"
#include "kernels/host/register_tile.hpp"

namespace quiver::host {
namespace {

/// From so many bytes on Y goes past the caches: it would not be found there again, and its lines
/// need not be read before they are written.
constexpr double streamed_bytes = 32 << 20;

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

/// For blocks without gaps, of at most half as many columns as lanes: a vector holds `fold` whole
/// rows of X, a permutation brings a factor to every lane of the same rows of Y.
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
            Vector y = __builtin_shuffle(x, source[0]) * c[0];
#pragma GCC unroll 8
            for (int i = 1; i < m; ++i) {
                y += __builtin_shuffle(x, source[i]) * c[i];
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

/// Y = X C + beta Y for real blocks, alpha in C. A block of rows of Y is made in a buffer without
/// gaps, from which it goes to Y; so X may be Y.
template <class T>
struct Product {
    using R = real_t<T>;
    static constexpr int most_lanes = lanes_v<Avx512, R>;
    static constexpr int line = Stream<R>::line;

    /// Numbers in the vectors of a folded C, of at most half as many rows as lanes.
    static constexpr std::int64_t folded_size = most_lanes / 2 * most_lanes;

    int m, n;
    const R* x;
    std::int64_t ldx;
    /// Panels of whole vectors, m rows each, one after the other.
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

    static constexpr std::int64_t padded(int cols) {
        return (cols + most_lanes - 1) / most_lanes * most_lanes;
    }
    /// Rows whose X and Y stay in the first caches while all panels of C pass over them.
    static int block_rows(int m, int n) {
        const std::size_t row = static_cast<std::size_t>(m + n) * sizeof(R);
        return 8 * static_cast<int>(std::clamp<std::size_t>(512 / row, 4, 128));
    }
    /// Numbers in one of a chunk's two buffers: a block, the part of a line before it, a vector
    /// more.
    static std::int64_t buffer_size(int m, int n) {
        return (static_cast<std::int64_t>(block_rows(m, n)) * n + 2 * line - 1) / line * line +
               most_lanes;
    }

    /// to = X C for `count` rows, to without gaps.
    template <class Isa>
    [[gnu::always_inline]] inline void multiply_block(const R* x_block, int count, int ahead,
                                                      std::int64_t left, R* to,
                                                      Stream<R>& stream) const noexcept {
        constexpr int lanes = lanes_v<Isa, R>;
        const R* next = x_block + ahead * ldx;
        int r = 0;
        if (fold > 0) {
            // No vector of X reaches beyond the chunk.
            const std::int64_t safe = std::clamp<std::int64_t>(left - lanes, 0, count);
            r = static_cast<int>(safe / fold * fold);
            folded_table<Isa, R>[static_cast<std::size_t>(m - 1)](
                {r / fold, fold, n, x_block, source, folded_c, to, next, &stream});
        }
        const Pieces panels((n + lanes - 1) / lanes, most_vectors);
        const std::int64_t pending = stream.lines;
        // The last panel first: it writes whole vectors, over the first columns of the next row.
        for (int p = panels.count - 1; p >= 0; --p) {
            const int vectors = panels.size(p);
            const int column = panels.first(p) * lanes;
            const int tile = most_rows<Isa, false>(vectors);
            const int tiles = (count - r) / tile;
            const std::int64_t share = pending / (std::max(tiles, 1) * panels.count) + 1;
            const auto multiply_rows = [&](int first, int rows, int tiles) {
                if (tiles > 0) {
                    tile_function<Isa, R, false>(rows, vectors)(
                        {m, x_block + first * ldx, ldx, c + m * column,
                         static_cast<std::int64_t>(vectors) * lanes, to + first * n + column, n,
                         next + first * ldx, m > 0 ? ldx * tile / m : 0, nullptr, 0, 0, tiles,
                         &stream, share});
                }
            };
            const int done = r + tiles * tile;
            multiply_rows(r, tile, tiles);
            multiply_rows(done, count - done, done < count ? 1 : 0);
        }
    }

    /// y_row = from + beta y_row. Not std::copy, which is slow in pieces of a few kilobytes.
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
            for (; j < count; j += 2) {
                const R old_re = y_row[j];
                const R old_im = y_row[j + 1];
                y_row[j] = from[j] + (re * old_re - im * old_im);
                y_row[j + 1] = from[j + 1] + (re * old_im + im * old_re);
            }
        } else {
            for (; j < count; ++j) {
                y_row[j] = from[j] + beta * y_row[j];
            }
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const int block = block_rows(m, n);
        // How far ahead rows of X are fetched.
        const int ahead = std::max(block, static_cast<int>(16384 / static_cast<int>(sizeof(R)) /
                                                           std::max<std::int64_t>(ldx, 1)));
        R* buffer = buffers + chunk.index * 2 * buffer_size(m, n);
        R* other = buffer + buffer_size(m, n);
        R* const start = y + chunk.first * ldy;
        // Streamed: numbers of the line that the next block continues, and those not from here.
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
            // Whole vectors reach beyond the block, which only the next one mends.
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

/// Entry (i, j) of the real form of alpha C, j counted in real columns.
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

template <class T>
int chunks_of(int threads, const TsmmArgs<T>& args) {
    return chunk_count(threads, args.rows, static_cast<std::size_t>(args.m + args.n) * sizeof(T));
}

}  // namespace

template <class T>
std::size_t workspace_bytes(int threads, const TsmmArgs<T>& args) {
    using P = Product<T>;
    const int m = reals_v<T> * args.m;
    const int n = reals_v<T> * args.n;
    return static_cast<std::size_t>(m * P::padded(n) + 2 * P::folded_size +
                                    chunks_of(threads, args) * 2 * P::buffer_size(m, n)) *
           sizeof(real_t<T>);
}

template <class T>
void run(int threads, const TsmmArgs<T>& args, void* workspace) {
    using P = Product<T>;
    using R = real_t<T>;
    if (args.rows == 0 || args.n == 0) {
        return;
    }
    const int m = reals_v<T> * args.m;
    const int n = reals_v<T> * args.n;
    R* packed = static_cast<R*>(workspace);
    const int lanes = vector_bytes() / static_cast<int>(sizeof(R));
    const Pieces panels((n + lanes - 1) / lanes, most_vectors);
    R* to = packed;
    for (int p = 0; p < panels.count; ++p) {
        const int first = panels.first(p) * lanes;
        const int last = panels.first(p + 1) * lanes;
        for (int i = 0; i < m; ++i) {
            for (int j = first; j < last; ++j) {
                *to++ = j < n ? real_entry(args, i, j) : R(0);
            }
        }
    }
    const int widest = std::max(m, n);
    R* folded_c = packed + m * P::padded(n);
    auto* source = reinterpret_cast<LaneIndex<R>*>(folded_c + P::folded_size);
    const bool folded = vector_bytes() > Baseline::vector_bytes && 2 * widest <= lanes &&
                        args.ldx == args.m && m > 0;
    const int fold = folded ? lanes / widest : 0;
    if (folded) {
        set_folded_source(lanes, fold, m, n, source);
        for (int i = 0; i < m; ++i) {
            for (int lane = 0; lane < lanes; ++lane) {
                folded_c[i * lanes + lane] = packed[i * lanes + lane % n];
            }
        }
    }
    const double bytes = static_cast<double>(args.rows) * (args.m + args.n) * sizeof(T);
    P product{};
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
    product.streamed = product.unread && args.ldy == args.n && bytes > streamed_bytes;
    product.buffers = folded_c + 2 * P::folded_size;
    run_chunks(chunks_of(threads, args), args.rows, product);
}

template std::size_t workspace_bytes(int, const TsmmArgs<float>&);
template std::size_t workspace_bytes(int, const TsmmArgs<double>&);
template std::size_t workspace_bytes(int, const TsmmArgs<std::complex<float>>&);
template std::size_t workspace_bytes(int, const TsmmArgs<std::complex<double>>&);
template void run(int, const TsmmArgs<float>&, void*);
template void run(int, const TsmmArgs<double>&, void*);
template void run(int, const TsmmArgs<std::complex<float>>&, void*);
template void run(int, const TsmmArgs<std::complex<double>>&, void*);

}  // namespace quiver::host
