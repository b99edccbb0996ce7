// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm on the host. Complex blocks are real ones of twice the width: with P = A^T B of the real
// and imaginary parts, (A^H B)(i, j) is P(2i, 2j) + P(2i+1, 2j+1) + i (P(2i, 2j+1) - P(2i+1, 2j)),
// which costs the same four multiply-adds and needs no shuffles.
#include "kernels/host/host_kernels.hpp"
#include "kernels/host/register_tile.hpp"

namespace quiver::host {
namespace {

/// partial[chunk] = A^T B over the rows of the chunk, real, m x n.
template <class R>
struct TransposedProduct {
    int m, n;
    const R* a;
    std::int64_t lda;
    const R* b;
    std::int64_t ldb;
    R* partial;

    /// How far ahead rows are fetched: several tiles pass over a block, in which the hardware sees
    /// no stream. Doubles the speed at width 32.
    static constexpr int rows_ahead = 64;

    /// Rows whose panels of A and B stay in the first caches while all tiles pass over them.
    int block_rows() const {
        const std::size_t row = static_cast<std::size_t>(m + n) * sizeof(R);
        return static_cast<int>(std::clamp<std::size_t>(32768 / row, 64, 256));
    }

    template <class Isa, int tile, int width>
    [[gnu::always_inline]] inline void add_tile(std::int64_t first, int count, int i, Panel panel,
                                                R* c) const noexcept {
        RegisterTile<Isa, R, tile, width> sums;
        sums.template multiply<rows_ahead>(count, a + first * lda + i, 1, lda,
                                           b + first * ldb + panel.first, ldb);
#pragma GCC unroll 8
        for (int t = 0; t < tile; ++t) {
            R* c_row = c + static_cast<std::int64_t>(i + t) * n + panel.first;
            if (panel.skip == 0) {
                Pack<R, width, Isa::vector_bytes> old;
                old.load(c_row);
                old.add(sums.sum[t]);
                old.store(c_row);
            } else {
                R values[width];
                sums.sum[t].store(values);
                for (int j = panel.skip; j < width; ++j) {
                    c_row[j] += values[j];
                }
            }
        }
    }

    template <class Isa, int width>
    [[gnu::always_inline]] inline void add_panel(std::int64_t first, int count, Panel panel,
                                                 R* c) const noexcept {
        if (panel.width != width) {
            if constexpr (width > 1) {
                add_panel<Isa, width / 2>(first, count, panel, c);
            }
            return;
        }
        constexpr int tile = tile_rows<Isa, R, width>;
        int i = 0;
        for (; i + tile <= m; i += tile) {
            add_tile<Isa, tile, width>(first, count, i, panel, c);
        }
        add_last_tile<Isa, tile - 1, width>(first, count, i, panel, c);
    }

    /// The m - i <= most rows of C that are left.
    template <class Isa, int most, int width>
    [[gnu::always_inline]] inline void add_last_tile(std::int64_t first, int count, int i,
                                                     Panel panel, R* c) const noexcept {
        if constexpr (most > 0) {
            if (m - i == most) {
                add_tile<Isa, most, width>(first, count, i, panel, c);
            } else {
                add_last_tile<Isa, most - 1, width>(first, count, i, panel, c);
            }
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        constexpr int widest = widest_panel<R>(Isa::vector_bytes);
        R* c = partial + static_cast<std::int64_t>(chunk.index) * m * n;
        std::fill(c, c + static_cast<std::int64_t>(m) * n, R(0));
        const int block = block_rows();
        for (std::int64_t first = chunk.first; first < chunk.last; first += block) {
            const int count = static_cast<int>(std::min<std::int64_t>(block, chunk.last - first));
            for (int j = 0; j < n;) {
                const Panel panel = panel_at(j, n, widest);
                add_panel<Isa, widest>(first, count, panel, c);
                j = panel.first + panel.width;
            }
        }
    }
};

}  // namespace

template <class T>
void run(int threads, const TsmttsmArgs<T>& args) {
    using R = real_t<T>;
    if (args.m == 0 || args.n == 0) {
        return;
    }
    // Lanes run along the columns of the second factor, so the wider block is the second.
    const bool swap = args.n < args.m;
    TransposedProduct<R> product{};
    product.m = reals_v<T> * (swap ? args.n : args.m);
    product.n = reals_v<T> * (swap ? args.m : args.n);
    product.a = as_reals(swap ? args.b : args.a);
    product.lda = reals_v<T> * (swap ? args.ldb : args.lda);
    product.b = as_reals(swap ? args.a : args.b);
    product.ldb = reals_v<T> * (swap ? args.lda : args.ldb);

    const int chunks =
        chunk_count(threads, args.rows, static_cast<std::size_t>(args.m + args.n) * sizeof(T));
    const std::int64_t size = static_cast<std::int64_t>(product.m) * product.n;
    std::vector<R> partial(static_cast<std::size_t>(size * chunks));
    product.partial = partial.data();
    run_chunks(chunks, args.rows, product);

    const auto total = [&](std::int64_t i, std::int64_t j) {
        const std::int64_t at = swap ? j * product.n + i : i * product.n + j;
        R sum = partial[static_cast<std::size_t>(at)];
        for (int chunk = 1; chunk < chunks; ++chunk) {
            sum += partial[static_cast<std::size_t>(at + chunk * size)];
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

template void run(int, const TsmttsmArgs<float>&);
template void run(int, const TsmttsmArgs<double>&);
template void run(int, const TsmttsmArgs<std::complex<float>>&);
template void run(int, const TsmttsmArgs<std::complex<double>>&);

}  // namespace quiver::host
