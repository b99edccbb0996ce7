// SPDX-License-Identifier: BSD-3-Clause
// Y = alpha B X + beta Y for a large B: the products of tall & skinny blocks over pieces of it.
// Some rows of B that lie along the sum are a tall block, a panel of X is its small matrix (tsmm);
// some that lie across it are the adjoint of one (tsmttsm).
#include <algorithm>

#include "kernels/host/pieces.hpp"

namespace quiver::host {
namespace {

/// Of a panel of X and of a piece of Y: what the second cache keeps, with room for B.
constexpr std::size_t panel_bytes = 128 << 10;
constexpr std::size_t piece_bytes = 64 << 10;

/// How the work is divided; the threads share the pieces of Y.
template <class A, class T>
struct Division {
    static constexpr bool converts = sizeof(A) != sizeof(T);

    /// tsmttsm conjugates and tsmm does not; where B wants the other, conj(B X) = conj(B) conj(X)
    /// is formed, from a copy of X and into a buffer. These also take what is not row-major.
    bool conjugates, packs_x, packs_y;
    std::int64_t piece, panel;
    int chunks;
    std::size_t inner = 0;

    Division(int threads, const MtsmArgs<A, T>& args)
        : conjugates(is_complex_v<T> && args.conjugated == args.along_sum),
          packs_x(conjugates || args.x_col != 1),
          packs_y(conjugates || args.y_col != 1) {
        const auto row_bytes = static_cast<std::size_t>(args.n) * sizeof(T);
        const auto rows_in = [&](std::size_t bytes, std::int64_t most) {
            return std::clamp(static_cast<std::int64_t>(bytes / row_bytes), std::int64_t{64}, most);
        };
        const std::int64_t share = std::max<std::int64_t>((args.m + threads - 1) / threads, 16);
        piece = std::min({rows_in(piece_bytes, 1024), share, args.m});
        const std::int64_t depth = std::max<std::int64_t>(args.k, 1);
        panel = args.along_sum || converts ? std::min(rows_in(panel_bytes, 2048), depth) : depth;
        chunks = static_cast<int>(std::min<std::int64_t>(
            (args.m + piece - 1) / piece,
            chunk_count(threads, args.m, static_cast<std::size_t>(args.k) * sizeof(A))));
        for (const std::int64_t rows : {piece, args.m % piece}) {
            for (const std::int64_t terms : {panel, args.k % panel}) {
                inner =
                    std::max(inner, args.along_sum ? workspace_bytes(1, along(args, rows, terms))
                                                   : workspace_bytes(1, across(args, rows, terms)));
            }
        }
    }

    std::size_t piece_of_b() const { return converts ? count_of(piece, panel) : 0; }
    std::size_t piece_of_y(int n) const { return packs_y ? count_of(piece, n) : 0; }
    /// Of a thread.
    std::size_t bytes(int n) const {
        return cache_lines(piece_of_b() * sizeof(T)) + cache_lines(piece_of_y(n) * sizeof(T)) +
               cache_lines(inner);
    }
    std::size_t x_bytes(const MtsmArgs<A, T>& args) const {
        return packs_x ? cache_lines(count_of(args.k, args.n) * sizeof(T)) : 0;
    }

    static TsmmArgs<T> along(const MtsmArgs<A, T>& args, std::int64_t rows, std::int64_t terms) {
        return {rows,    static_cast<int>(terms),
                args.n,  T(1),
                nullptr, terms,
                nullptr, args.n,
                T(1),    nullptr,
                args.n};
    }
    static TsmttsmArgs<T> across(const MtsmArgs<A, T>& args, std::int64_t rows,
                                 std::int64_t terms) {
        return {terms,   static_cast<int>(rows),
                args.n,  T(1),
                nullptr, rows,
                nullptr, args.n,
                T(1),    nullptr,
                args.n};
    }
};

template <class T>
T conjugate_if(bool conjugates, T value) {
    return conjugates ? conjugate(value) : value;
}

/// Rows first .. last - 1 of Y.
template <class A, class T>
void multiply_piece(const Division<A, T>& division, const MtsmArgs<A, T>& args, const T* x,
                    std::int64_t ldx, std::int64_t first, std::int64_t last, void* workspace) {
    Arrays arrays(workspace);
    T* const b = arrays.take<T>(division.piece_of_b());
    T* const buffer = arrays.take<T>(division.piece_of_y(args.n));
    void* const inner = arrays.take<std::byte>(division.inner);
    const std::int64_t rows = last - first;
    T* const y = division.packs_y ? buffer : args.y + first * args.y_row;
    const std::int64_t ldy = division.packs_y ? args.n : args.y_row;
    const T alpha = division.packs_y ? T(1) : args.alpha;
    T beta = division.packs_y ? T(0) : args.beta;
    std::int64_t k = 0;
    do {
        const std::int64_t terms = std::min(division.panel, args.k - k);
        const A* const lines =
            args.a + (args.along_sum ? first * args.lda + k : k * args.lda + first);
        const T* factor = nullptr;
        std::int64_t ld = args.lda;
        if constexpr (Division<A, T>::converts) {
            ld = args.along_sum ? terms : rows;
            convert(args.along_sum ? rows : terms, static_cast<int>(ld), lines, args.lda, b, ld);
            factor = b;
        } else {
            factor = lines;
        }
        if (args.along_sum) {
            run(1,
                TsmmArgs<T>{rows, static_cast<int>(terms), args.n, alpha, factor, ld, x + k * ldx,
                            ldx, beta, y, ldy},
                inner);
        } else {
            run(1,
                TsmttsmArgs<T>{terms, static_cast<int>(rows), args.n, alpha, factor, ld,
                               x + k * ldx, ldx, beta, y, ldy},
                inner);
        }
        beta = T(1);
        k += terms;
    } while (k < args.k);
    if (!division.packs_y) {
        return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        for (int j = 0; j < args.n; ++j) {
            T& to = args.y[(first + i) * args.y_row + j * args.y_col];
            const T sum =
                quiver::multiply(args.alpha, conjugate_if(division.conjugates, y[i * args.n + j]));
            to = args.beta == T(0) ? sum : sum + quiver::multiply(args.beta, to);
        }
    }
}

}  // namespace

template <class A, class T>
std::size_t workspace_bytes(int threads, const MtsmArgs<A, T>& args) {
    if (args.m == 0 || args.n == 0) {
        return 0;
    }
    const Division<A, T> division(threads, args);
    return division.x_bytes(args) +
           static_cast<std::size_t>(division.chunks) * division.bytes(args.n);
}

template <class A, class T>
void run(int threads, const MtsmArgs<A, T>& args, void* workspace) {
    if (args.m == 0 || args.n == 0) {
        return;
    }
    const Division<A, T> division(threads, args);
    const T* x = args.x;
    std::int64_t ldx = args.x_row;
    if (division.packs_x) {
        T* const packed = static_cast<T*>(workspace);
        for_chunks(chunk_count(threads, args.k, static_cast<std::size_t>(args.n) * sizeof(T)),
                   args.k, [&](Chunk chunk) {
                       for (std::int64_t k = chunk.first; k < chunk.last; ++k) {
                           for (int j = 0; j < args.n; ++j) {
                               packed[k * args.n + j] = conjugate_if(
                                   division.conjugates, args.x[k * args.x_row + j * args.x_col]);
                           }
                       }
                   });
        x = packed;
        ldx = args.n;
    }
    auto* const of_chunks = static_cast<std::byte*>(workspace) + division.x_bytes(args);
    for_chunks(division.chunks, (args.m + division.piece - 1) / division.piece, [&](Chunk chunk) {
        void* const own =
            of_chunks + static_cast<std::size_t>(chunk.index) * division.bytes(args.n);
        for (std::int64_t piece = chunk.first; piece < chunk.last; ++piece) {
            const std::int64_t first = piece * division.piece;
            multiply_piece(division, args, x, ldx, first, std::min(first + division.piece, args.m),
                           own);
        }
    });
}

template std::size_t workspace_bytes(int, const MtsmArgs<float, float>&);
template std::size_t workspace_bytes(int, const MtsmArgs<double, double>&);
template std::size_t workspace_bytes(int,
                                     const MtsmArgs<std::complex<float>, std::complex<float>>&);
template std::size_t workspace_bytes(int,
                                     const MtsmArgs<std::complex<double>, std::complex<double>>&);
template std::size_t workspace_bytes(int, const MtsmArgs<half_t, float>&);
template std::size_t workspace_bytes(int, const MtsmArgs<bfloat16_t, float>&);
template void run(int, const MtsmArgs<float, float>&, void*);
template void run(int, const MtsmArgs<double, double>&, void*);
template void run(int, const MtsmArgs<std::complex<float>, std::complex<float>>&, void*);
template void run(int, const MtsmArgs<std::complex<double>, std::complex<double>>&, void*);
template void run(int, const MtsmArgs<half_t, float>&, void*);
template void run(int, const MtsmArgs<bfloat16_t, float>&, void*);

}  // namespace quiver::host
