// SPDX-License-Identifier: BSD-3-Clause
// The sparse product on the host: one row of A at a time against panels of 8, 4, 2 and 1 columns
// that stay in registers. Complex entries multiply real and imaginary parts of X apart and are put
// together once a row.
#include "kernels/host/host_kernels.hpp"
#include "kernels/host/simd.hpp"

namespace quiver::host {
namespace {

template <class T>
struct Spmmv {
    SpmmvArgs<T> args;
    /// Shift, beta or dots: whether the end of a row is more than a scaling.
    bool fused;
    bool shifted;
    /// (Y, Y) and (X, Y) of each chunk, 2 x width.
    T* partial;

    [[gnu::always_inline]] inline const T* x_row(std::int64_t entry) const noexcept {
        const std::int64_t column =
            args.column64 != nullptr ? args.column64[entry] : args.column32[entry];
        return column < args.own ? args.x + column * args.ldx
                                 : args.halo + (column - args.own) * args.width;
    }

    /// Columns j .. j + width - 1 of row i; `dots` is the chunk's part of `partial`.
    template <class Isa, int width>
    [[gnu::always_inline]] inline void row_panel(std::int64_t i, int j, T* dots) const noexcept {
        using R = real_t<T>;
        constexpr int reals = reals_v<T> * width;
        using Columns = Pack<R, reals, Isa::vector_bytes>;
        Columns sum;
        Columns imaginary;
        sum.zero();
        imaginary.zero();
        const std::int64_t end = args.row_start[i + 1];
        for (std::int64_t entry = args.row_start[i]; entry < end; ++entry) {
            Columns x;
            x.load(as_reals(x_row(entry) + j));
            if constexpr (is_complex_v<T>) {
                sum.add_product(args.value[entry].real(), x);
                imaginary.add_product(args.value[entry].imag(), x);
            } else {
                sum.add_product(args.value[entry], x);
            }
        }
        T* y = args.y + i * args.ldy + j;
        T values[width];
        sum.store(as_reals(values));
        if constexpr (is_complex_v<T>) {
            T rotated[width];
            imaginary.store(as_reals(rotated));
            for (int v = 0; v < width; ++v) {
                values[v] += T(-rotated[v].imag(), rotated[v].real());
            }
        }
        if (!fused) {
            for (int v = 0; v < width; ++v) {
                y[v] = multiply(args.alpha, values[v]);
            }
            return;
        }
        const T* x = args.x + i * args.ldx + j;
        for (int v = 0; v < width; ++v) {
            T value = values[v];
            if (shifted) {
                const T shift = args.shifts != nullptr ? args.shifts[j + v] : args.shift;
                value -= multiply(shift, x[v]);
            }
            value = multiply(args.alpha, value);
            if (args.beta != T(0)) {
                value += multiply(args.beta, y[v]);
            }
            y[v] = value;
            if (args.dot_yy != nullptr) {
                dots[j + v] += T(abs_squared(value));
            }
            if (args.dot_xy != nullptr) {
                dots[args.width + j + v] += multiply(conjugate(x[v]), value);
            }
        }
    }

    /// All rows of a chunk for a width known when compiled, or for any (0).
    template <class Isa, int fixed>
    [[gnu::always_inline]] inline void rows_of_width(Chunk chunk, T* dots) const noexcept {
        for (std::int64_t k = chunk.first; k < chunk.last; ++k) {
            const std::int64_t i = args.list != nullptr ? args.list[k] : k;
            if constexpr (fixed > 0) {
                row_panel<Isa, fixed>(i, 0, dots);
            } else {
                int j = 0;
                for (; j + 8 <= args.width; j += 8) {
                    row_panel<Isa, 8>(i, j, dots);
                }
                if (args.width - j >= 4) {
                    row_panel<Isa, 4>(i, j, dots);
                    j += 4;
                }
                if (args.width - j >= 2) {
                    row_panel<Isa, 2>(i, j, dots);
                    j += 2;
                }
                if (args.width - j >= 1) {
                    row_panel<Isa, 1>(i, j, dots);
                }
            }
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        T* dots = partial + static_cast<std::int64_t>(chunk.index) * 2 * args.width;
        switch (args.width) {
            case 1:
                return rows_of_width<Isa, 1>(chunk, dots);
            case 2:
                return rows_of_width<Isa, 2>(chunk, dots);
            case 4:
                return rows_of_width<Isa, 4>(chunk, dots);
            case 8:
                return rows_of_width<Isa, 8>(chunk, dots);
            default:
                return rows_of_width<Isa, 0>(chunk, dots);
        }
    }
};

}  // namespace

template <class T>
void run(int threads, const SpmmvArgs<T>& args) {
    const auto width = static_cast<std::size_t>(args.width);
    // An entry costs as much as a few numbers of the blocks; rows of few entries are assumed.
    const int chunks = chunk_count(threads, args.rows, sizeof(T) * (4 * width + 8));
    std::vector<T> partial(static_cast<std::size_t>(chunks) * 2 * width);
    Spmmv<T> product{args, false, false, partial.data()};
    product.shifted = args.shifts != nullptr || args.shift != T(0);
    product.fused =
        product.shifted || args.beta != T(0) || args.dot_yy != nullptr || args.dot_xy != nullptr;
    run_chunks(chunks, args.rows, product);
    for (std::size_t j = 0; j < width; ++j) {
        T yy(0);
        T xy(0);
        for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(chunks); ++chunk) {
            yy += partial[chunk * 2 * width + j];
            xy += partial[chunk * 2 * width + width + j];
        }
        if (args.dot_yy != nullptr) {
            args.dot_yy[j] = yy;
        }
        if (args.dot_xy != nullptr) {
            args.dot_xy[j] = xy;
        }
    }
}

template void run(int, const SpmmvArgs<float>&);
template void run(int, const SpmmvArgs<double>&);
template void run(int, const SpmmvArgs<std::complex<float>>&);
template void run(int, const SpmmvArgs<std::complex<double>>&);

}  // namespace quiver::host
