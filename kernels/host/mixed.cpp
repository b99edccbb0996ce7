// SPDX-License-Identifier: BSD-3-Clause
// Mixed-precision products on the host: rows are converted to float (or double) in pieces that stay
// in the caches, and the ordinary kernels multiply these pieces.
#include <algorithm>
#include <type_traits>

#include "kernels/host/pieces.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::host {
namespace {

/// Bytes of all pieces of a thread together.
constexpr std::size_t piece_bytes = 65536;
constexpr std::int64_t least_piece_rows = 64;

template <class Work>
std::int64_t rows_of_piece(std::int64_t rows, int columns) {
    const auto fit = static_cast<std::int64_t>(
        piece_bytes / (sizeof(Work) * static_cast<std::size_t>(std::max(columns, 1))));
    return std::clamp<std::int64_t>(fit, least_piece_rows, std::max(rows, least_piece_rows));
}

template <class In, class Sum>
struct TsmttsmSizes {
    int chunks;
    std::int64_t piece;
    std::size_t inner;
    std::size_t a, b, c;

    TsmttsmSizes(int threads, const MixedTsmttsmArgs<In, Sum>& args)
        : chunks(chunk_count(threads, args.rows,
                             static_cast<std::size_t>(args.m + args.n) * sizeof(In))),
          piece(rows_of_piece<Sum>(args.rows, args.m + args.n)),
          inner(workspace_bytes(1, product(args, piece, nullptr, nullptr, nullptr))),
          a(count_of(piece, args.m)),
          b(count_of(piece, args.n)),
          c(count_of(args.m, args.n)) {}

    /// Workspace bytes of a thread.
    std::size_t bytes() const {
        return cache_lines(a * sizeof(Sum)) + cache_lines(b * sizeof(Sum)) +
               cache_lines(c * sizeof(Sum)) + cache_lines(c * sizeof(double)) + cache_lines(inner);
    }
    static TsmttsmArgs<Sum> product(const MixedTsmttsmArgs<In, Sum>& args, std::int64_t rows,
                                    const Sum* a_piece, const Sum* b_piece, Sum* c_piece) {
        return {rows,    args.m, args.n, Sum(1),  a_piece, args.m,
                b_piece, args.n, Sum(0), c_piece, args.n};
    }
};

template <class In, class Small, class Out>
struct TsmmSizes {
    int chunks;
    std::int64_t piece;
    std::size_t inner;
    std::size_t x, y, c;

    TsmmSizes(int threads, const MixedTsmmArgs<In, Small, Out>& args)
        : chunks(chunk_count(threads, args.rows,
                             static_cast<std::size_t>(args.m) * sizeof(In) +
                                 static_cast<std::size_t>(args.n) * sizeof(Out))),
          piece(rows_of_piece<float>(args.rows, args.m + args.n)),
          inner(workspace_bytes(1, product(args, piece, nullptr, nullptr, nullptr, args.n))),
          x(count_of(piece, args.m)),
          y(std::is_same_v<Out, float> ? 0 : count_of(piece, args.n)),
          c(count_of(args.m, args.n)) {}

    std::size_t bytes() const {
        return cache_lines(x * sizeof(float)) + cache_lines(y * sizeof(float)) + cache_lines(inner);
    }
    std::size_t shared_bytes() const { return cache_lines(c * sizeof(float)); }
    static TsmmArgs<float> product(const MixedTsmmArgs<In, Small, Out>& args, std::int64_t rows,
                                   const float* x_piece, const float* c_float, float* y_piece,
                                   std::int64_t ldy) {
        return {rows,    args.m, args.n,    args.alpha, x_piece, args.m,
                c_float, args.n, args.beta, y_piece,    ldy};
    }
};

}  // namespace

template <class In, class Sum>
std::size_t workspace_bytes(int threads, const MixedTsmttsmArgs<In, Sum>& args) {
    const TsmttsmSizes<In, Sum> sizes(threads, args);
    return static_cast<std::size_t>(sizes.chunks) * sizes.bytes();
}

template <class In, class Sum>
void tsmttsm_mixed(int threads, const MixedTsmttsmArgs<In, Sum>& args, void* workspace) {
    const TsmttsmSizes<In, Sum> sizes(threads, args);
    const bool same = args.a == args.b && args.lda == args.ldb && args.m == args.n;
    const auto sums_of = [&](int chunk) {
        return reinterpret_cast<double*>(static_cast<std::byte*>(workspace) +
                                         static_cast<std::size_t>(chunk) * sizes.bytes());
    };
    for_chunks(sizes.chunks, args.rows, [&](Chunk chunk) {
        Arrays arrays(sums_of(chunk.index));
        double* const sums = arrays.take<double>(sizes.c);
        Sum* const a = arrays.take<Sum>(sizes.a);
        Sum* const b = arrays.take<Sum>(sizes.b);
        Sum* const c = arrays.take<Sum>(sizes.c);
        void* const inner = arrays.take<std::byte>(sizes.inner);
        std::fill_n(sums, sizes.c, 0.0);
        for (std::int64_t row = chunk.first; row < chunk.last; row += sizes.piece) {
            const std::int64_t rows = std::min(sizes.piece, chunk.last - row);
            convert(rows, args.m, args.a + row * args.lda, args.lda, a, args.m);
            if (!same) {
                convert(rows, args.n, args.b + row * args.ldb, args.ldb, b, args.n);
            }
            tsmttsm(1, sizes.product(args, rows, a, same ? a : b, c), inner);
            for (std::size_t e = 0; e < sizes.c; ++e) {
                sums[e] += static_cast<double>(c[e]);
            }
        }
    });
    for (int i = 0; i < args.m; ++i) {
        for (int j = 0; j < args.n; ++j) {
            double sum = 0;
            for (int chunk = 0; chunk < sizes.chunks; ++chunk) {
                sum += sums_of(chunk)[i * args.n + j];
            }
            Sum& c = args.c[i * args.ldc + j];
            const double old = args.beta == Sum(0) ? 0 : static_cast<double>(args.beta) * c;
            c = static_cast<Sum>(static_cast<double>(args.alpha) * sum + old);
        }
    }
}

template <class In, class Small, class Out>
std::size_t workspace_bytes(int threads, const MixedTsmmArgs<In, Small, Out>& args) {
    const TsmmSizes<In, Small, Out> sizes(threads, args);
    return sizes.shared_bytes() + static_cast<std::size_t>(sizes.chunks) * sizes.bytes();
}

template <class In, class Small, class Out>
void tsmm_mixed(int threads, const MixedTsmmArgs<In, Small, Out>& args, void* workspace) {
    const TsmmSizes<In, Small, Out> sizes(threads, args);
    float* const c = static_cast<float*>(workspace);
    convert(args.m, args.n, args.c, args.ldc, c, args.n);
    std::byte* const of_chunks = static_cast<std::byte*>(workspace) + sizes.shared_bytes();
    for_chunks(sizes.chunks, args.rows, [&](Chunk chunk) {
        Arrays arrays(of_chunks + static_cast<std::size_t>(chunk.index) * sizes.bytes());
        float* const x = arrays.take<float>(sizes.x);
        [[maybe_unused]] float* const y = arrays.take<float>(sizes.y);
        void* const inner = arrays.take<std::byte>(sizes.inner);
        for (std::int64_t row = chunk.first; row < chunk.last; row += sizes.piece) {
            const std::int64_t rows = std::min(sizes.piece, chunk.last - row);
            Out* const result = args.y + row * args.ldy;
            convert(rows, args.m, args.x + row * args.ldx, args.ldx, x, args.m);
            if constexpr (std::is_same_v<Out, float>) {
                tsmm(1, sizes.product(args, rows, x, c, result, args.ldy), inner);
            } else {
                if (args.beta != 0) {
                    convert(rows, args.n, result, args.ldy, y, args.n);
                }
                tsmm(1, sizes.product(args, rows, x, c, y, args.n), inner);
                convert(rows, args.n, y, args.n, result, args.ldy);
            }
        }
    });
}

#define QUIVER_INSTANTIATE(In, Sum)                                              \
    template std::size_t workspace_bytes(int, const MixedTsmttsmArgs<In, Sum>&); \
    template void tsmttsm_mixed(int, const MixedTsmttsmArgs<In, Sum>&, void*);
QUIVER_FOR_EACH_MIXED_TSMTTSM(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(In, Small, Out)                                           \
    template std::size_t workspace_bytes(int, const MixedTsmmArgs<In, Small, Out>&); \
    template void tsmm_mixed(int, const MixedTsmmArgs<In, Small, Out>&, void*);
QUIVER_FOR_EACH_MIXED_TSMM(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
