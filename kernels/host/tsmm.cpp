// SPDX-License-Identifier: BSD-3-Clause
// tsmm on the host. Complex blocks are real ones of twice the width, with a small matrix of twice
// the rows and columns: each entry u + iv becomes the 2 x 2 block (u, v; -v, u).
#include "kernels/host/host_kernels.hpp"
#include "kernels/host/register_tile.hpp"

namespace quiver::host {
namespace {

/// Y = X C + beta Y for real blocks, with C cut into panels of columns, one after the other: the
/// panel that brings column j starts at packed + j m.
template <class T>
struct Product {
    using R = real_t<T>;
    int m, n;
    const R* x;
    std::int64_t ldx;
    const R* packed;
    T beta;
    R* y;
    std::int64_t ldy;
    /// Set when the product is in place and has several panels: the first panel's result would
    /// overwrite what the second one reads. Holds block_rows() x m for each chunk.
    R* saved;

    /// Rows that pass over one panel of C while they stay in the first caches.
    int block_rows() const {
        const std::size_t row = static_cast<std::size_t>(std::max(m, 1)) * sizeof(R);
        return 8 * static_cast<int>(std::clamp<std::size_t>(4096 / row, 4, 32));
    }

    template <class Isa, int tile, int width>
    [[gnu::always_inline]] inline void tile_product(const R* x_row, std::int64_t x_step,
                                                    const R* c_panel, R* y_row,
                                                    int skip) const noexcept {
        RegisterTile<Isa, R, tile, width> sums;
        sums.multiply(m, x_row, x_step, 1, c_panel, width);
#pragma GCC unroll 8
        for (int t = 0; t < tile; ++t) {
            R* y_t = y_row + t * ldy;
            if (beta == T(0)) {
                sums.sum[t].store(y_t);
                continue;
            }
            R values[width];
            sums.sum[t].store(values);
            if constexpr (is_complex_v<T>) {
                for (int j = skip; j < width; j += 2) {
                    const T old = multiply(beta, T(y_t[j], y_t[j + 1]));
                    y_t[j] = values[j] + old.real();
                    y_t[j + 1] = values[j + 1] + old.imag();
                }
            } else {
                for (int j = skip; j < width; ++j) {
                    y_t[j] = values[j] + beta * y_t[j];
                }
            }
        }
    }

    template <class Isa, int width>
    [[gnu::always_inline]] inline void panel_product(int count, const R* x_block,
                                                     std::int64_t x_step, Panel panel,
                                                     R* y_block) const noexcept {
        if (panel.width != width) {
            if constexpr (width > reals_v<T>) {
                panel_product<Isa, width / 2>(count, x_block, x_step, panel, y_block);
            }
            return;
        }
        constexpr int tile = tile_rows<Isa, R, width>;
        const R* c_panel = packed + static_cast<std::int64_t>(panel.first + panel.skip) * m;
        R* y_panel = y_block + panel.first;
        int r = 0;
        for (; r + tile <= count; r += tile) {
            tile_product<Isa, tile, width>(x_block + r * x_step, x_step, c_panel, y_panel + r * ldy,
                                           panel.skip);
        }
        for (; r < count; ++r) {
            tile_product<Isa, 1, width>(x_block + r * x_step, x_step, c_panel, y_panel + r * ldy,
                                        panel.skip);
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        constexpr int widest = widest_panel<R>(Isa::vector_bytes);
        const int block = block_rows();
        for (std::int64_t first = chunk.first; first < chunk.last; first += block) {
            const int count = static_cast<int>(std::min<std::int64_t>(block, chunk.last - first));
            const R* x_block = x + first * ldx;
            std::int64_t x_step = ldx;
            if (saved != nullptr) {
                R* copy = saved + static_cast<std::int64_t>(chunk.index) * block * m;
                if (ldx == m) {
                    std::copy_n(x_block, static_cast<std::int64_t>(count) * m, copy);
                } else {
                    for (int r = 0; r < count; ++r) {
                        std::copy_n(x_block + r * ldx, m, copy + static_cast<std::int64_t>(r) * m);
                    }
                }
                x_block = copy;
                x_step = m;
            }
            for (int j = 0; j < n;) {
                const Panel panel = panel_at(j, n, widest);
                panel_product<Isa, widest>(count, x_block, x_step, panel, y + first * ldy);
                j = panel.first + panel.width;
            }
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

/// One cache line; a vector of them is aligned to lines.
template <class R>
struct alignas(64) Line {
    R values[64 / sizeof(R)];
};

/// alpha C as Product wants it.
template <class T>
std::vector<Line<real_t<T>>> pack(const TsmmArgs<T>& args, int widest) {
    using R = real_t<T>;
    const int m = reals_v<T> * args.m;
    const int n = reals_v<T> * args.n;
    // The last panel reaches back over less than its width.
    const std::size_t size = static_cast<std::size_t>(m) * static_cast<std::size_t>(n + widest);
    std::vector<Line<R>> lines(size * sizeof(R) / sizeof(Line<R>) + 1);
    R* packed = lines.front().values;
    for (int j = 0; j < n;) {
        const Panel panel = panel_at(j, n, widest);
        for (int i = 0; i < m; ++i) {
            for (int v = 0; v < panel.width; ++v) {
                *packed++ = real_entry(args, i, panel.first + v);
            }
        }
        j = panel.first + panel.width;
    }
    return lines;
}

}  // namespace

template <class T>
void run(int threads, const TsmmArgs<T>& args) {
    using R = real_t<T>;
    if (args.rows == 0 || args.n == 0) {
        return;
    }
    const int widest = widest_panel<R>(vector_bytes());
    const auto packed = pack(args, widest);
    Product<T> product{};
    product.m = reals_v<T> * args.m;
    product.n = reals_v<T> * args.n;
    product.x = as_reals(args.x);
    product.ldx = reals_v<T> * args.ldx;
    product.packed = packed.front().values;
    product.beta = args.beta;
    product.y = as_reals(args.y);
    product.ldy = reals_v<T> * args.ldy;
    const int chunks =
        chunk_count(threads, args.rows, static_cast<std::size_t>(args.m + args.n) * sizeof(T));
    std::vector<R> saved;
    if (static_cast<const T*>(args.y) == args.x &&
        panel_at(0, product.n, widest).width < product.n) {
        saved.resize(static_cast<std::size_t>(chunks) *
                     static_cast<std::size_t>(product.block_rows()) *
                     static_cast<std::size_t>(product.m));
        product.saved = saved.data();
    }
    run_chunks(chunks, args.rows, product);
}

template void run(int, const TsmmArgs<float>&);
template void run(int, const TsmmArgs<double>&);
template void run(int, const TsmmArgs<std::complex<float>>&);
template void run(int, const TsmmArgs<std::complex<double>>&);

}  // namespace quiver::host
