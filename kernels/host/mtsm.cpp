// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha B X + beta Y for a large B, computed as products of real matrices. X is copied once in
// a form that turns its complex numbers, and the conjugation of B, into real factors of the
// interleaved real and imaginary parts of B.
//
// If B is stored along the sum, Y consists of dot products, re Y = sum_r b_r (re x, -im x)_r and im
// Y = sum_r b_r (im x, re x)_r, where r runs over the parts of a line. The kernel computes tiles of
// rows x columns with vectors along r. If B is stored across the sum, lines of B are added, P = sum
// b re x and Q = sum b im x, and Y = P + i Q. The kernel uses vectors along the rows and adds
// several lines per pass over the results.
#include <algorithm>

#include "blockvec/scalar_list.hpp"
#include "kernels/host/pieces.hpp"

namespace quiver::host {
namespace {

/// Bytes of the part of X that all rows of a piece use at a time, and bytes of the results of a
/// piece.
constexpr std::size_t panel_bytes = 512 << 10;
constexpr std::size_t piece_bytes = 64 << 10;
/// Rows and columns of a tile of dot products, whose sums stay in registers.
constexpr int most_rows = 6;
constexpr int tile_columns = 4;
template <class Isa>
inline constexpr int tile_rows_v = Isa::registers == 32 ? most_rows : 3;
/// Lines of B added in one pass.
constexpr int most_lines = 8;

/// The product in terms of real numbers, with its workspace.
template <class A, class T>
struct RealProduct {
    using R = real_t<T>;
    using Element = std::conditional_t<sizeof(A) == 2, A, R>;
    static constexpr int parts = reals_v<T>;
    static constexpr bool converts = sizeof(A) == 2;

    const MtsmArgs<A, T>& args;
    const Element* b;
    std::int64_t ldb;
    /// Length of the sum: all real terms (along the sum), or all lines (across the sum).
    std::int64_t depth;
    int columns;
    /// Rows of Y in a piece, and terms in a panel.
    std::int64_t piece, panel;
    int chunks;
    R* x;
    std::byte* of_chunks;

    RealProduct(int threads, const MtsmArgs<A, T>& arguments, void* workspace)
        : args(arguments),
          b(reinterpret_cast<const Element*>(args.a)),
          ldb(args.lda * parts),
          depth(args.along_sum ? args.k * parts : args.k),
          columns(args.n * parts) {
        const std::size_t line = static_cast<std::size_t>(columns) * sizeof(R);
        const std::int64_t share = (args.m + threads - 1) / threads;
        const auto fitting = [&](std::size_t bytes, std::int64_t least, std::int64_t most) {
            return std::clamp(static_cast<std::int64_t>(bytes / line), least, most) / 64 * 64;
        };
        piece = std::clamp<std::int64_t>(share, most_rows, fitting(piece_bytes, 128, 4096) / parts);
        panel = fitting(panel_bytes, 512, 4096);
        chunks = static_cast<int>(std::min<std::int64_t>(
            pieces(), chunk_count(threads, args.m, static_cast<std::size_t>(args.k) * sizeof(A))));
        x = static_cast<R*>(workspace);
        of_chunks = static_cast<std::byte*>(workspace) + x_bytes();
    }

    std::int64_t pieces() const { return (args.m + piece - 1) / piece; }
    std::size_t x_bytes() const { return cache_lines(count_of(depth, columns) * sizeof(R)); }
    std::size_t results() const { return count_of(piece * (args.along_sum ? 1 : parts), columns); }
    /// Elements of the buffer for B in the precision of the sums; 0 if B has that precision.
    std::size_t widened() const {
        return !converts        ? 0
               : args.along_sum ? count_of(most_rows, panel)
                                : count_of(most_lines, piece);
    }
    /// Workspace bytes of a chunk.
    std::size_t bytes() const {
        return cache_lines(results() * sizeof(R)) + cache_lines(widened() * sizeof(R));
    }
    std::size_t workspace_bytes() const {
        return x_bytes() + static_cast<std::size_t>(chunks) * bytes();
    }

    /// Copies the factors of term k for column c to x[c depth + k] (along the sum) or x[k columns +
    /// c] (across the sum).
    void copy_x(Chunk terms) const {
        for (std::int64_t k = terms.first; k < terms.last; ++k) {
            for (int j = 0; j < args.n; ++j) {
                const T value = args.x[k * args.x_row + j * args.x_col];
                if constexpr (parts == 1) {
                    x[args.along_sum ? j * depth + k : k * columns + j] = value;
                } else if (args.along_sum) {
                    const R sign = args.conjugated ? -1 : 1;
                    R* const re = x + 2 * j * depth + 2 * k;
                    R* const im = re + depth;
                    re[0] = value.real();
                    re[1] = -sign * value.imag();
                    im[0] = value.imag();
                    im[1] = sign * value.real();
                } else {
                    x[k * columns + 2 * j] = value.real();
                    x[k * columns + 2 * j + 1] = value.imag();
                }
            }
        }
    }

    /// Element (i, j) of the results of a piece. Across the sum, column c starts at c * ld; along
    /// the sum, the rows are contiguous.
    T result(const R* sums, std::int64_t ld, std::int64_t i, int j) const {
        if constexpr (parts == 1) {
            return sums[args.along_sum ? i * columns + j : j * ld + i];
        } else if (args.along_sum) {
            return {sums[i * columns + 2 * j], sums[i * columns + 2 * j + 1]};
        } else {
            const R* const p = sums + 2 * j * ld + 2 * i;
            const R* const q = p + ld;
            return args.conjugated ? T(p[0] + q[1], q[0] - p[1]) : T(p[0] - q[1], p[1] + q[0]);
        }
    }
};

template <class R, int lanes>
[[gnu::always_inline]] inline R total(const typename VectorOf<R, lanes>::type& values) noexcept {
    if constexpr (lanes == 1) {
        return values;
    } else {
        typename VectorOf<R, lanes / 2>::type half[2];
        std::memcpy(half, &values, sizeof(values));
        return total<R, lanes / 2>(half[0] + half[1]);
    }
}

/// sums[i ld + c] += sum_r rows[i ldb + r] x[c ldx + r] for a tile. AHEAD: prefetches the next ROWS
/// rows.
template <class Isa, class R, int ROWS, int COLUMNS, bool AHEAD>
[[gnu::always_inline]] inline void add_dots(const R* rows, std::int64_t ldb, const R* x,
                                            std::int64_t ldx, std::int64_t terms, R* sums,
                                            std::int64_t ld) noexcept {
    constexpr int lanes = lanes_v<Isa, R>;
    using Vector = typename VectorOf<R, lanes>::type;
    Vector sum[ROWS][COLUMNS] = {};
    std::int64_t r = 0;
    for (; r + lanes <= terms; r += lanes) {
        Vector left[ROWS];
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; ++i) {
            std::memcpy(&left[i], rows + i * ldb + r, sizeof(Vector));
            if (AHEAD) {
                __builtin_prefetch(rows + (ROWS + i) * ldb + r);
            }
        }
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; ++c) {
            Vector right;
            load_once(x + c * ldx + r, right);
#pragma GCC unroll 8
            for (int i = 0; i < ROWS; ++i) {
                sum[i][c] += left[i] * right;
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; ++c) {
            R dot = total<R, lanes>(sum[i][c]);
            for (std::int64_t rest = r; rest < terms; ++rest) {
                dot += rows[i * ldb + rest] * x[c * ldx + rest];
            }
            sums[i * ld + c] += dot;
        }
    }
}

/// The arguments of RowDots and AddLines, which are compiled once for each instruction set and
/// serve the B of all scalars.
template <class R>
struct PanelArgs {
    const R* b;
    std::int64_t ldb;
    const R* x;
    std::int64_t ldx;
    /// Length of a row or line of B, in real numbers.
    std::int64_t length;
    R* sums;
    std::int64_t ld;
    int columns;
};

/// add_dots for all columns; x[c ldx + r], sums[i ld + c].
template <class Isa, class R, int ROWS>
struct RowDots {
    [[gnu::always_inline]] static void run(const PanelArgs<R>& args) noexcept {
        const auto [rows, ldb, x, ldx, terms, sums, ld, columns] = args;
        const int tiles = columns / tile_columns * tile_columns;
        if (tiles > 0) {
            add_dots<Isa, R, ROWS, tile_columns, true>(rows, ldb, x, ldx, terms, sums, ld);
        } else {
            add_dots<Isa, R, ROWS, 1, true>(rows, ldb, x, ldx, terms, sums, ld);
        }
        int c = tiles > 0 ? tile_columns : 1;
        for (; c < tiles; c += tile_columns) {
            add_dots<Isa, R, ROWS, tile_columns, false>(rows, ldb, x + c * ldx, ldx, terms,
                                                        sums + c, ld);
        }
        for (; c < columns; ++c) {
            add_dots<Isa, R, ROWS, 1, false>(rows, ldb, x + c * ldx, ldx, terms, sums + c, ld);
        }
    }
};

/// sums[c ld + i] += sum of `b[k ldb + i] x[k ldx + c]` over LINES lines.
template <class Isa, class R, int LINES>
struct AddLines {
    [[gnu::always_inline]] static void run(const PanelArgs<R>& args) noexcept {
        const auto [lines, ldb, x, ldx, length, sums, ld, columns] = args;
        constexpr int width = 2 * lanes_v<Isa, R>;
        using Vectors = Pack<R, width, Isa::vector_bytes>;
        std::int64_t i = 0;
        for (; i + width <= length; i += width) {
            Vectors line[LINES];
#pragma GCC unroll 8
            for (int k = 0; k < LINES; ++k) {
                line[k].load(lines + k * ldb + i);
            }
            for (int c = 0; c < columns; ++c) {
                Vectors sum;
                sum.load(sums + c * ld + i);
#pragma GCC unroll 8
                for (int k = 0; k < LINES; ++k) {
                    sum.add_product(x[k * ldx + c], line[k]);
                }
                sum.store(sums + c * ld + i);
            }
        }
        for (int c = 0; c < columns && i < length; ++c) {
            for (std::int64_t rest = i; rest < length; ++rest) {
                R sum = sums[c * ld + rest];
                for (int k = 0; k < LINES; ++k) {
                    sum += x[k * ldx + c] * lines[k * ldb + rest];
                }
                sums[c * ld + rest] = sum;
            }
        }
    }
};

template <class Isa, class R, template <class, class, int> class Function, int count>
void add_panel(const PanelArgs<R>& args) noexcept {
    entry<Isa, Function<Isa, R, count>, PanelArgs<R>>()(args);
}

/// Computes all pieces of a chunk.
template <class A, class T>
struct Pieces {
    using Real = RealProduct<A, T>;
    using R = typename Real::R;
    const Real& product;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const MtsmArgs<A, T>& args = product.args;
        Arrays arrays(product.of_chunks + static_cast<std::size_t>(chunk.index) * product.bytes());
        R* const sums = arrays.take<R>(product.results());
        R* const buffer = arrays.take<R>(product.widened());
        for (std::int64_t piece = chunk.first; piece < chunk.last; ++piece) {
            const std::int64_t first = piece * product.piece;
            const std::int64_t rows = std::min(product.piece, args.m - first);
            const std::int64_t ld = rows * Real::parts;
            std::fill_n(sums, rows * product.columns * (args.along_sum ? 1 : Real::parts), R(0));
            if (args.along_sum) {
                add_rows<Isa>(first, rows, sums, buffer);
            } else {
                add_columns<Isa>(first * Real::parts, ld, sums, buffer);
            }
            store(first, rows, sums, ld);
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void add_rows(std::int64_t first, std::int64_t rows, R* sums,
                                                R* buffer) const noexcept {
        constexpr int together = tile_rows_v<Isa>;
        for (std::int64_t k = 0; k < product.depth; k += product.panel) {
            const std::int64_t terms = std::min(product.panel, product.depth - k);
            const R* const x = product.x + k;
            for (std::int64_t i = 0; i < rows;) {
                const std::int64_t count = rows - i >= together ? together : 1;
                std::int64_t ldb = product.ldb;
                const R* const b = widen((first + i) * ldb + k, count, terms, buffer, ldb);
                const PanelArgs<R> panel{b,
                                         ldb,
                                         x,
                                         product.depth,
                                         terms,
                                         sums + i * product.columns,
                                         product.columns,
                                         product.columns};
                if (count == together) {
                    add_panel<Isa, R, RowDots, together>(panel);
                } else {
                    add_panel<Isa, R, RowDots, 1>(panel);
                }
                i += count;
            }
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void add_columns(std::int64_t first, std::int64_t length, R* sums,
                                                   R* buffer) const noexcept {
        constexpr int together = Isa::registers == 32 ? most_lines : most_lines / 2;
        for (std::int64_t k = 0; k < product.depth;) {
            const std::int64_t left = product.depth - k;
            const int count = left >= together ? together : left >= 2 ? 2 : 1;
            std::int64_t ldb = product.ldb;
            const R* const b = widen(k * ldb + first, count, length, buffer, ldb);
            const PanelArgs<R> panel{b,
                                     ldb,
                                     product.x + k * product.columns,
                                     product.columns,
                                     length,
                                     sums,
                                     length,
                                     product.columns};
            if (count == together) {
                add_panel<Isa, R, AddLines, together>(panel);
            } else if (count == 2) {
                add_panel<Isa, R, AddLines, 2>(panel);
            } else {
                add_panel<Isa, R, AddLines, 1>(panel);
            }
            k += count;
        }
    }

    /// Elements of B from `at` on in the precision of the sums; sets `ld` to the distance of the
    /// lines.
    [[gnu::always_inline]] inline const R* widen(std::int64_t at, std::int64_t lines,
                                                 std::int64_t length, R* buffer,
                                                 std::int64_t& ld) const noexcept {
        if constexpr (Real::converts) {
            convert(lines, static_cast<int>(length), product.b + at, product.ldb, buffer, length);
            ld = length;
            return buffer;
        } else {
            return product.b + at;
        }
    }

    [[gnu::always_inline]] inline void store(std::int64_t first, std::int64_t rows, const R* sums,
                                             std::int64_t ld) const noexcept {
        const MtsmArgs<A, T>& args = product.args;
        // The inner loop runs along the contiguous direction of Y.
        const bool by_rows = args.y_col <= args.y_row;
        const std::int64_t lines = by_rows ? rows : args.n;
        const std::int64_t length = by_rows ? args.n : rows;
        for (std::int64_t line = 0; line < lines; ++line) {
#pragma GCC ivdep
            for (std::int64_t e = 0; e < length; ++e) {
                const std::int64_t i = by_rows ? line : e;
                const std::int64_t j = by_rows ? e : line;
                T& y = args.y[(first + i) * args.y_row + j * args.y_col];
                const T sum =
                    quiver::multiply(args.alpha, product.result(sums, ld, i, static_cast<int>(j)));
                y = args.beta == T(0) ? sum : sum + quiver::multiply(args.beta, y);
            }
        }
    }
};

}  // namespace

template <class A, class T>
std::size_t workspace_bytes(int threads, const MtsmArgs<A, T>& args) {
    return args.m == 0 || args.n == 0 ? 0
                                      : RealProduct<A, T>(threads, args, nullptr).workspace_bytes();
}

template <class A, class T>
void mtsm(int threads, const MtsmArgs<A, T>& args, void* workspace) {
    if (args.m == 0 || args.n == 0) {
        return;
    }
    const RealProduct<A, T> product(threads, args, workspace);
    for_chunks(chunk_count(threads, args.k, static_cast<std::size_t>(args.n) * sizeof(T)), args.k,
               [&](Chunk terms) { product.copy_x(terms); });
    run_chunks(product.chunks, product.pieces(), Pieces<A, T>{product});
}

#define QUIVER_INSTANTIATE(T)                                         \
    template std::size_t workspace_bytes(int, const MtsmArgs<T, T>&); \
    template void mtsm(int, const MtsmArgs<T, T>&, void*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

template std::size_t workspace_bytes(int, const MtsmArgs<half_t, float>&);
template std::size_t workspace_bytes(int, const MtsmArgs<bfloat16_t, float>&);
template void mtsm(int, const MtsmArgs<half_t, float>&, void*);
template void mtsm(int, const MtsmArgs<bfloat16_t, float>&, void*);

}  // namespace quiver::host
