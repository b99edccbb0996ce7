// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm on the host. Complex blocks are treated as real ones of twice the width: with P = A^T B
// of the real and imaginary parts, (A^H B)(i, j) is P(2i, 2j) + P(2i+1, 2j+1) + i (P(2i, 2j+1) -
// P(2i+1, 2j)). This costs the same four multiply-adds and needs no shuffles.
#include "blockvec/scalar_list.hpp"
#include "kernels/host/block_products.hpp"
#include "kernels/host/register_tile.hpp"

namespace quiver::host {
namespace {

template <class R>
struct TileArgs {
    std::int64_t count;
    const R* a;
    std::int64_t a_ld;
    const R* b;
    std::int64_t b_ld;
    R* c;
    std::int64_t c_ld;
    /// Addresses and strides of the lines to prefetch, per step one line of A and some of B; null:
    /// none.
    const R* next_a;
    std::int64_t next_a_step;
    const R* next_b;
    std::int64_t next_b_step;
    int next_b_lines;
};

/// C(t, :) += sum over k < count of A(k, t) B(k, :) for t < tile. Lanes run along the columns of B
/// and fill `vectors` registers; elements beyond the last column are ignored.
template <class Isa, class R, int tile, int vectors>
struct SumTile {
    static constexpr int lanes = lanes_v<Isa, R>;
    using Vector = typename VectorOf<R, lanes>::type;
    /// Number of sets of accumulators. Consecutive k use different sets, so that a tile with few
    /// sums also hides the latency of an addition.
    static constexpr int unroll = std::max(1, (8 + tile * vectors - 1) / (tile * vectors));

    [[gnu::always_inline]] static inline void add(const TileArgs<R>& args, std::int64_t k,
                                                  Vector (&sum)[tile][vectors]) {
        Vector row[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            load_once(args.b + k * args.b_ld + v * lanes, row[v]);
        }
#pragma GCC unroll 32
        for (int t = 0; t < tile; ++t) {
            const R factor = args.a[k * args.a_ld + t];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                sum[t][v] += factor * row[v];
            }
        }
    }

    [[gnu::always_inline]] static inline void run(const TileArgs<R>& given) {
        const TileArgs<R> args = given;
        Vector sum[unroll][tile][vectors] = {};
        std::int64_t k = 0;
        for (; k + unroll <= args.count; k += unroll) {
#pragma GCC unroll 8
            for (int u = 0; u < unroll; ++u) {
                if (args.next_a != nullptr) {
                    __builtin_prefetch(args.next_a + (k + u) * args.next_a_step);
                }
                if (args.next_b != nullptr) {
                    for (int v = 0; v < args.next_b_lines; ++v) {
                        __builtin_prefetch(args.next_b + (k + u) * args.next_b_step + v * lanes);
                    }
                }
                add(args, k + u, sum[u]);
            }
        }
        if constexpr (unroll > 1) {
            for (; k < args.count; ++k) {
                add(args, k, sum[0]);
            }
        }
#pragma GCC unroll 32
        for (int t = 0; t < tile; ++t) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                R* c = args.c + t * args.c_ld + v * lanes;
                Vector total;
                std::memcpy(&total, c, sizeof(Vector));
#pragma GCC unroll 8
                for (int u = 0; u < unroll; ++u) {
                    total += sum[u][t][v];
                }
                std::memcpy(c, &total, sizeof(Vector));
            }
        }
    }
};

constexpr int most_tile_rows = 14;
template <class Isa, class R>
inline constexpr auto sum_tiles = make_tile_table<Isa, R, TileArgs<R>, SumTile, most_tile_rows>();

template <class R>
struct FoldedArgs {
    std::int64_t groups;
    const R* a;
    const R* b;
    int fold, n;
    const LaneIndex<R>* source;
    R* c;
};

/// For blocks without gaps, of at most half as many columns as lanes: a vector holds a group of
/// whole rows of B, and a permutation of the same rows of A brings a factor to every lane. Row i <
/// m of C is one vector: lane f n + j sums the products of column i of A and column j of B over the
/// f-th rows of all groups.
template <class Isa, class R, int m>
struct FoldedTile {
    static constexpr int lanes = lanes_v<Isa, R>;
    static constexpr int unroll = (8 + m - 1) / m;
    using Vector = typename VectorOf<R, lanes>::type;

    [[gnu::always_inline]] static inline void run(const FoldedArgs<R>& args) {
        LaneIndices<Isa, R> source[m];
#pragma GCC unroll 8
        for (int i = 0; i < m; ++i) {
            load_once(args.source + i * lanes, source[i]);
        }
        const std::int64_t a_step = args.fold * m;
        const std::int64_t b_step = args.fold * args.n;
        Vector sum[unroll][m] = {};
        const auto add = [&](std::int64_t group, Vector(&to)[m]) __attribute__((always_inline)) {
            Vector a;
            Vector b;
            load_once(args.a + group * a_step, a);
            load_once(args.b + group * b_step, b);
#pragma GCC unroll 8
            for (int i = 0; i < m; ++i) {
                Vector factor;
                shuffle(a, source[i], factor);
                to[i] += factor * b;
            }
        };
        std::int64_t group = 0;
        for (; group + unroll <= args.groups; group += unroll) {
#pragma GCC unroll 8
            for (int u = 0; u < unroll; ++u) {
                add(group + u, sum[u]);
            }
        }
        for (; group < args.groups; ++group) {
            add(group, sum[0]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < m; ++i) {
            Vector total;
            std::memcpy(&total, args.c + i * lanes, sizeof(Vector));
#pragma GCC unroll 8
            for (int u = 0; u < unroll; ++u) {
                total += sum[u][i];
            }
            std::memcpy(args.c + i * lanes, &total, sizeof(Vector));
        }
    }
};

/// The compiled forms: [m - 1].
template <class Isa, class R>
inline constexpr auto folded_table = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array<void (*)(const FoldedArgs<R>&), 8>{
        entry<Isa, FoldedTile<Isa, R, i + 1>, FoldedArgs<R>>()...};
}
(std::make_integer_sequence<int, widest_folded<Isa, R>>());

template <class R>
struct Matrix {
    const R* data;
    std::int64_t ld;
    int cols;
};

/// sum += A^T B; `vectors` registers hold a row of B and of the sum.
template <class R>
struct Part {
    Matrix<R> a;
    Matrix<R> b;
    int vectors;
    R* sum;
    std::int64_t sum_ld;
};

/// partial[chunk] = A^T B over the rows of the chunk, real, m x n, m <= n.
template <class R>
struct TransposedProduct {
    static constexpr int most_lanes = lanes_v<Avx512, R>;
    /// Largest number of rows at the end of a block that are copied, so that no vector reads beyond
    /// the block.
    static constexpr int most_tail_rows = 2 * most_lanes;

    Matrix<R> a;
    Matrix<R> b;
    R* partial;
    R* scratch;

    static constexpr std::int64_t padded(int cols) {
        return (cols + most_lanes - 1) / most_lanes * most_lanes;
    }
    /// Numbers in the scratch space of a chunk: sums in whole vectors, and a padded tail.
    static std::int64_t scratch_size(int m, int n) {
        return (padded(m) + most_lanes) * (padded(n) + most_lanes) +
               (most_tail_rows + 1) * (padded(m) + padded(n));
    }

    /// Rows that stay in the L1 cache while all tiles pass over them.
    std::int64_t block_rows() const {
        const std::size_t row = static_cast<std::size_t>(a.cols + b.cols) * sizeof(R);
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(24576 / row), 32, 256);
    }

    template <class Isa>
    [[gnu::always_inline]] inline void add_block(const Part<R>& part, std::int64_t count,
                                                 bool more) const noexcept {
        constexpr int lanes = lanes_v<Isa, R>;
        const Pieces panels(part.vectors, most_vectors);
        for (int p = 0; p < panels.count; ++p) {
            const int vectors = panels.size(p);
            const Pieces tiles(part.a.cols, most_rows<Isa>(vectors, most_tile_rows));
            for (int t = 0; t < tiles.count; ++t) {
                const int first = tiles.first(t);
                const int column = panels.first(p) * lanes;
                const int calls = panels.count * tiles.count;
                const int call = p * tiles.count + t;
                // The hardware prefetches the stream of a single pass. Several passes divide the
                // next block evenly: each prefetches one line of A and one of B for a row. If the
                // passes are too few for all lines of B, the first pass over a panel prefetches the
                // columns of B in this panel.
                const bool fetch = more && calls > 1;
                const bool wide = panels.count > 2 && tiles.count <= 2;
                const std::int64_t ahead = count + call * count / calls;
                const R* next_a = part.a.data + ahead * part.a.ld;
                const R* next_b =
                    part.b.data + (wide ? count * part.b.ld + column : ahead * part.b.ld);
                sum_tiles<Isa, R>[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(
                    tiles.size(t) - 1)](
                    {count, part.a.data + first, part.a.ld, part.b.data + column, part.b.ld,
                     part.sum + first * part.sum_ld + column, part.sum_ld, fetch ? next_a : nullptr,
                     part.a.ld / calls, fetch && (!wide || t == 0) ? next_b : nullptr,
                     wide ? part.b.ld : part.b.ld / calls, wide ? vectors : 1});
            }
        }
    }

    /// Calls use(a, b, count, more) for each block of rows; `more`: another whole block follows.
    /// Rows whose last vector would extend beyond the `readable` rows are passed as a padded copy.
    template <class Use>
    [[gnu::always_inline]] inline void for_blocks(Chunk chunk, std::int64_t readable,
                                                  std::int64_t overread_a, std::int64_t overread_b,
                                                  std::int64_t block, R* tail,
                                                  const Use& use) const noexcept {
        const auto unsafe = [](const Matrix<R>& matrix, std::int64_t overread) {
            return std::max<std::int64_t>(0, (overread + matrix.ld - 1) / matrix.ld);
        };
        const std::int64_t safe =
            std::clamp(readable - std::max(unsafe(a, overread_a), unsafe(b, overread_b)),
                       chunk.first, chunk.last);
        for (std::int64_t first = chunk.first; first < safe; first += block) {
            const std::int64_t count = std::min(block, safe - first);
            use(Matrix<R>{a.data + first * a.ld, a.ld, a.cols},
                Matrix<R>{b.data + first * b.ld, b.ld, b.cols}, count,
                first + 2 * block <= chunk.last);
        }
        if (safe == chunk.last) {
            return;
        }
        const std::int64_t count = chunk.last - safe;
        const auto copy = [&](const Matrix<R>& from, std::int64_t ld, R* to) {
            for (std::int64_t r = 0; r < count; ++r) {
                std::copy_n(from.data + (safe + r) * from.ld, from.cols, to + r * ld);
            }
            return Matrix<R>{to, ld, from.cols};
        };
        const Matrix<R> a_tail = copy(a, padded(a.cols), tail);
        const Matrix<R> b_tail =
            copy(b, padded(b.cols), tail + (most_tail_rows + 1) * padded(a.cols));
        use(a_tail, b_tail, count, false);
    }

    /// Adds the sums of the piece to those of its chunk. `starts` sets the sums of the chunk to
    /// zero first; `ends` combines them at the end.
    template <class Isa>
    [[gnu::always_inline]] inline void add(Chunk chunk, std::int64_t readable, bool starts,
                                           bool ends) const noexcept {
        constexpr int lanes = lanes_v<Isa, R>;
        const int m = a.cols;
        const int n = b.cols;
        R* c = partial + static_cast<std::int64_t>(chunk.index) * m * n;
        const std::int64_t size = scratch_size(m, n);
        R* sums = scratch + chunk.index * size;
        if (starts) {
            std::fill_n(sums, size, R(0));
        }
        R* tail = sums + size - (most_tail_rows + 1) * (padded(m) + padded(n));

        if (n <= widest_folded<Isa, R> && a.ld == m && b.ld == n) {
            const auto add = folded_table<Isa, R>[static_cast<std::size_t>(m - 1)];
            const int fold = lanes / n;
            const std::int64_t block = 1024 * fold;
            auto* source = reinterpret_cast<LaneIndex<R>*>(sums + m * lanes);
            set_folded_source(lanes, fold, m, n, source);
            // Number of groups whose vectors end inside the chunk. A padded copy of the remaining
            // rows prevents reads beyond the chunk.
            const std::int64_t groups =
                std::max<std::int64_t>(0, (chunk.last - chunk.first - lanes) / fold);
            const std::int64_t end = chunk.first + groups * fold;
            for (std::int64_t first = chunk.first; first < end; first += block) {
                add({std::min(block, end - first) / fold, a.data + first * m, b.data + first * n,
                     fold, n, source, sums});
            }
            const std::int64_t left = chunk.last - end;
            R* b_tail = tail + (most_tail_rows + 1) * padded(m);
            std::copy_n(a.data + end * m, left * m, tail);
            std::copy_n(b.data + end * n, left * n, b_tail);
            std::fill_n(tail + left * m, fold * m, R(0));
            std::fill_n(b_tail + left * n, fold * n, R(0));
            add({(left + fold - 1) / fold, tail, b_tail, fold, n, source, sums});
            for (int i = 0; i < (ends ? m : 0); ++i) {
                for (int j = 0; j < n; ++j) {
                    R total(0);
                    for (int f = 0; f < fold; ++f) {
                        total += sums[i * lanes + f * n + j];
                    }
                    c[i * n + j] = total;
                }
            }
            return;
        }

        // The last columns of B that do not fill a vector use a whole vector. Alternatively, lanes
        // run along the columns of A for these columns, if that saves a tenth of the multiply-adds
        // and these matter compared with memory traffic.
        const int left = n % lanes;
        const int whole = n / lanes;
        const int a_vectors = (m + lanes - 1) / lanes;
        const bool turn = left > 0 && (whole + 1) * lanes > 20 &&
                          10 * (m * whole + left * a_vectors) < 9 * m * (whole + 1);
        const int vectors = left > 0 && !turn ? whole + 1 : whole;
        const std::int64_t sum_ld = static_cast<std::int64_t>(vectors) * lanes;
        R* turned = sums + m * sum_ld;
        const std::int64_t turned_ld = static_cast<std::int64_t>(a_vectors) * lanes;
        for_blocks(
            chunk, readable, turn ? turned_ld - m : 0, turn ? 0 : sum_ld - n, block_rows(), tail,
            [&](const Matrix<R>& a_block, const Matrix<R>& b_block, std::int64_t count, bool more)
                __attribute__((always_inline)) {
                    add_block<Isa>({a_block, b_block, vectors, sums, sum_ld}, count, more);
                    if (turn) {
                        add_block<Isa>({{b_block.data + whole * lanes, b_block.ld, left},
                                        a_block,
                                        a_vectors,
                                        turned,
                                        turned_ld},
                                       count, false);
                    }
                });
        for (int i = 0; i < (ends ? m : 0); ++i) {
            for (int j = 0; j < n; ++j) {
                c[i * n + j] =
                    j < sum_ld ? sums[i * sum_ld + j] : turned[(j - sum_ld) * turned_ld + i];
            }
        }
    }
};

template <class T>
int chunks_of(int threads, const TsmttsmArgs<T>& args) {
    return chunk_count(threads, args.rows, static_cast<std::size_t>(args.m + args.n) * sizeof(T));
}

/// Size of a chunk's part of the workspace, in real numbers.
template <class T>
std::int64_t chunk_size(const TsmttsmArgs<T>& args) {
    const int m = reals_v<T> * std::min(args.m, args.n);
    const int n = reals_v<T> * std::max(args.m, args.n);
    return static_cast<std::int64_t>(m) * n + TransposedProduct<real_t<T>>::scratch_size(m, n);
}

/// True if A and B are exchanged: lanes run along the columns of the second factor, so that the
/// wider block must be the second.
template <class T>
bool is_swapped(const TsmttsmArgs<T>& args) {
    return args.n < args.m;
}

template <class T>
TransposedProduct<real_t<T>> product_of(int chunks, const TsmttsmArgs<T>& args, void* workspace) {
    using R = real_t<T>;
    const bool swap = is_swapped(args);
    const Matrix<R> a{as_reals(args.a), reals_v<T> * args.lda, reals_v<T> * args.m};
    const Matrix<R> b{as_reals(args.b), reals_v<T> * args.ldb, reals_v<T> * args.n};
    R* partial = static_cast<R*>(workspace);
    return {swap ? b : a, swap ? a : b, partial,
            partial + chunks * static_cast<std::int64_t>(a.cols) * b.cols};
}

/// A piece with its options, for run_chunk.
template <class R>
struct Piece {
    TransposedProduct<R> product;
    std::int64_t readable;
    bool starts, ends;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        product.template add<Isa>(chunk, readable, starts, ends);
    }
};

}  // namespace

template <class T>
std::size_t BlockSums<T>::workspace_bytes(int chunks, const TsmttsmArgs<T>& args) {
    return static_cast<std::size_t>(chunks * chunk_size(args)) * sizeof(real_t<T>);
}

template <class T>
BlockSums<T>::BlockSums(int chunks, const TsmttsmArgs<T>& args, void* workspace)
    : chunks_(chunks), args_(args), workspace_(workspace) {}

template <class T>
void BlockSums<T>::add(Chunk piece, std::int64_t readable, bool first, bool last) const {
    run_chunk(Piece<real_t<T>>{product_of(chunks_, args_, workspace_), readable, first, last},
              piece);
}

template <class T>
void BlockSums<T>::finish() const {
    using R = real_t<T>;
    const TsmttsmArgs<T>& args = args_;
    const bool swap = is_swapped(args);
    const TransposedProduct<R> product = product_of(chunks_, args, workspace_);
    const R* partial = product.partial;
    const std::int64_t size = static_cast<std::int64_t>(product.a.cols) * product.b.cols;

    const auto total = [&](std::int64_t i, std::int64_t j) {
        const R* value = partial + (swap ? j * product.b.cols + i : i * product.b.cols + j);
        R sum = *value;
        for (int chunk = 1; chunk < chunks_; ++chunk) {
            sum += value[chunk * size];
        }
        return sum;
    };
    for (int i = 0; i < args.m; ++i) {
        for (int j = 0; j < args.n; ++j) {
            T sum;
            if constexpr (is_complex_v<T>) {
                sum = T(total(2 * i, 2 * j) + total(2 * i + 1, 2 * j + 1),
                        total(2 * i, 2 * j + 1) - total(2 * i + 1, 2 * j));
            } else {
                sum = total(i, j);
            }
            T& c = args.c[i * args.ldc + j];
            const T scaled = multiply(args.alpha, sum);
            c = args.beta == T(0) ? scaled : scaled + multiply(args.beta, c);
        }
    }
}

namespace {

/// If C has more bytes, it does not stay in the second-level cache while blocks of rows are added
/// to it. tsmttsm then computes panels of at most panel_columns() rows and columns.
constexpr std::size_t most_sum_bytes = std::size_t{1} << 20;

template <class T>
constexpr int panel_columns() {
    return sizeof(T) == 4 ? 352 : sizeof(T) == 8 ? 256 : 176;
}

template <class T>
bool has_panels(const TsmttsmArgs<T>& args) {
    return static_cast<std::size_t>(args.m) * static_cast<std::size_t>(args.n) * sizeof(T) >
           most_sum_bytes;
}

/// The panel of C whose first element is C(i, j).
template <class T>
TsmttsmArgs<T> panel_of(const TsmttsmArgs<T>& args, int i, int j) {
    TsmttsmArgs<T> panel = args;
    panel.m = std::min(panel_columns<T>(), args.m - i);
    panel.n = std::min(panel_columns<T>(), args.n - j);
    panel.a += i;
    panel.b += j;
    panel.c += i * args.ldc + j;
    return panel;
}

/// C(j + s, i + r) <- the conjugate of C(i + r, j + s), for the panel of C(i, j).
template <class T>
void copy_adjoint(const TsmttsmArgs<T>& args, const TsmttsmArgs<T>& panel, int i, int j) {
    for (int row = 0; row < panel.m; ++row) {
        for (int column = 0; column < panel.n; ++column) {
            args.c[(j + column) * args.ldc + i + row] =
                conjugate(panel.c[row * panel.ldc + column]);
        }
    }
}

template <class T>
void add_panel(int threads, const TsmttsmArgs<T>& args, void* workspace) {
    const int chunks = chunks_of(threads, args);
    const BlockSums<T> sums(chunks, args, workspace);
    for_chunks(chunks, args.rows, [&](Chunk chunk) { sums.add(chunk, args.rows, true, true); });
    sums.finish();
}

}  // namespace

template <class T>
std::size_t workspace_bytes(int threads, const TsmttsmArgs<T>& args) {
    if (!has_panels(args)) {
        return BlockSums<T>::workspace_bytes(chunks_of(threads, args), args);
    }
    std::size_t most = 0;
    for (const int i : {0, (args.m - 1) / panel_columns<T>() * panel_columns<T>()}) {
        for (const int j : {0, (args.n - 1) / panel_columns<T>() * panel_columns<T>()}) {
            const TsmttsmArgs<T> panel = panel_of(args, i, j);
            most = std::max(most, BlockSums<T>::workspace_bytes(chunks_of(threads, panel), panel));
        }
    }
    return most;
}

template <class T>
void tsmttsm(int threads, const TsmttsmArgs<T>& args, void* workspace) {
    if (args.m == 0 || args.n == 0) {
        return;
    }
    if (!has_panels(args)) {
        add_panel(threads, args, workspace);
        return;
    }
    // A Gram matrix is Hermitian: the panels below the diagonal are copies.
    const bool computes_half = args.a == args.b && args.lda == args.ldb && args.m == args.n &&
                               args.beta == T(0) && conjugate(args.alpha) == args.alpha;
    for (int i = 0; i < args.m; i += panel_columns<T>()) {
        for (int j = computes_half ? i : 0; j < args.n; j += panel_columns<T>()) {
            const TsmttsmArgs<T> panel = panel_of(args, i, j);
            add_panel(threads, panel, workspace);
            if (computes_half && j > i) {
                copy_adjoint(args, panel, i, j);
            }
        }
    }
}

namespace {

/// Number of scaled rows that are formed at a time. They stay in the L1 cache.
template <class T>
std::int64_t weighted_rows(const TsmttsmArgs<T>& args) {
    return std::clamp<std::int64_t>(
        16384 / (static_cast<std::int64_t>(sizeof(T)) * std::max(1, std::min(args.m, args.n))), 32,
        1024);
}
/// Elements of a chunk's buffer for the scaled rows, in whole cache lines.
template <class T>
std::int64_t weighted_size(const TsmttsmArgs<T>& args) {
    const auto elements =
        static_cast<std::size_t>(weighted_rows(args) * std::min(args.m, args.n)) * sizeof(T);
    return static_cast<std::int64_t>(cache_lines(elements) / sizeof(T));
}

/// C += A^H diag(w) B over a chunk: scales a few rows of the narrower block at a time and adds the
/// product of these rows.
template <class T, class R>
void add_weighted(const WeightedTsmttsmArgs<T, R>& args, int chunks, Chunk chunk, T* scaled,
                  void* sums) {
    const TsmttsmArgs<T>& product = args.product;
    const bool scales_b = product.n <= product.m;
    const int cols = scales_b ? product.n : product.m;
    const std::int64_t step = weighted_rows(product);
    std::int64_t first = chunk.first;
    do {
        const std::int64_t last = std::min(first + step, chunk.last);
        const T* from =
            scales_b ? product.b + first * product.ldb : product.a + first * product.lda;
        const std::int64_t ld = scales_b ? product.ldb : product.lda;
        for (std::int64_t r = 0; r < last - first; ++r) {
            const R weight = args.w[(first + r) * args.ldw];
            for (int j = 0; j < cols; ++j) {
                scaled[r * cols + j] = weight * from[r * ld + j];
            }
        }
        TsmttsmArgs<T> part = product;
        part.rows = last - first;
        part.a = scales_b ? product.a + first * product.lda : scaled;
        part.lda = scales_b ? product.lda : cols;
        part.b = scales_b ? scaled : product.b + first * product.ldb;
        part.ldb = scales_b ? cols : product.ldb;
        BlockSums<T>(chunks, part, sums)
            .add(Chunk{0, part.rows, chunk.index}, part.rows, first == chunk.first,
                 last == chunk.last);
        first = last;
    } while (first < chunk.last);
}

}  // namespace

template <class T, class R>
std::size_t workspace_bytes(int threads, const WeightedTsmttsmArgs<T, R>& args) {
    const int chunks = chunks_of(threads, args.product);
    return cache_lines(BlockSums<T>::workspace_bytes(chunks, args.product)) +
           static_cast<std::size_t>(chunks * weighted_size(args.product)) * sizeof(T);
}

template <class T, class R>
void weighted_tsmttsm(int threads, const WeightedTsmttsmArgs<T, R>& args, void* workspace) {
    const TsmttsmArgs<T>& product = args.product;
    if (product.m == 0 || product.n == 0) {
        return;
    }
    const int chunks = chunks_of(threads, product);
    T* const scaled =
        reinterpret_cast<T*>(static_cast<std::byte*>(workspace) +
                             cache_lines(BlockSums<T>::workspace_bytes(chunks, product)));
    for_chunks(chunks, product.rows, [&](Chunk chunk) {
        add_weighted(args, chunks, chunk, scaled + chunk.index * weighted_size(product), workspace);
    });
    BlockSums<T>(chunks, product, workspace).finish();
}

template <class T>
using WeightedArgs = WeightedTsmttsmArgs<T, real_t<T>>;

#define QUIVER_INSTANTIATE(T)                                           \
    template std::size_t workspace_bytes(int, const WeightedArgs<T>&);  \
    template void weighted_tsmttsm(int, const WeightedArgs<T>&, void*); \
    template class BlockSums<T>;                                        \
    template std::size_t workspace_bytes(int, const TsmttsmArgs<T>&);   \
    template void tsmttsm(int, const TsmttsmArgs<T>&, void*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
