// SPDX-License-Identifier: BSD-3-Clause
// Column operations on the host. They are memory-bound, so simple loops that the compiler
// vectorises suffice. A block without gaps between rows is folded: treated as a block of `fold`
// times the width with fewer rows, so that the loops of narrow blocks are long too.
#include <bit>

#include "blockvec/scalar_list.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/precision_lists.hpp"

namespace quiver::host {
namespace {

constexpr int long_row = 64;

/// The number of rows that are folded into one long row.
int fold_of(int cols) {
    return std::max(1, long_row / std::max(cols, 1));
}

/// Y = alpha X + beta Y with a coefficient for each column of the folded block.
template <class T>
struct Axpby {
    int cols;
    int fold;
    bool uniform;
    T alpha, beta;
    const T* alphas;
    const T* betas;
    const T* x;
    std::int64_t ldx;
    T* y;
    std::int64_t ldy;

    [[gnu::always_inline]] inline void uniform_row(const T* x_row, T* y_row,
                                                   std::int64_t count) const noexcept {
        if (beta == T(0) && alpha == T(0)) {
            std::fill_n(y_row, count, T(0));
        } else if (beta == T(0)) {
#pragma GCC ivdep
            for (std::int64_t j = 0; j < count; ++j) {
                y_row[j] = multiply(alpha, x_row[j]);
            }
        } else if (alpha == T(0)) {
#pragma GCC ivdep
            for (std::int64_t j = 0; j < count; ++j) {
                y_row[j] = multiply(beta, y_row[j]);
            }
        } else {
#pragma GCC ivdep
            for (std::int64_t j = 0; j < count; ++j) {
                y_row[j] = multiply(alpha, x_row[j]) + multiply(beta, y_row[j]);
            }
        }
    }

    [[gnu::always_inline]] inline void row(const T* x_row, T* y_row, int count) const noexcept {
#pragma GCC ivdep
        for (int j = 0; j < count; ++j) {
            const T ax = multiply(alphas[j], x_row[j]);
            const T by = multiply(betas[j], y_row[j]);
            y_row[j] = (alphas[j] == T(0) ? T(0) : ax) + (betas[j] == T(0) ? T(0) : by);
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        if (uniform && ldx == cols && ldy == cols) {
            uniform_row(x + chunk.first * cols, y + chunk.first * cols,
                        (chunk.last - chunk.first) * cols);
            return;
        }
        std::int64_t r = chunk.first;
        for (; r + fold <= chunk.last; r += fold) {
            if (uniform) {
                uniform_row(x + r * ldx, y + r * ldy, cols);
            } else {
                row(x + r * ldx, y + r * ldy, fold * cols);
            }
        }
        for (; r < chunk.last; ++r) {
            row(x + r * ldx, y + r * ldy, cols);
        }
    }
};

/// partial[chunk] = the column dots over the rows of the chunk, `fold` results per column.
template <class T>
struct Dots {
    int cols;
    int fold;
    const T* x;
    std::int64_t ldx;
    const T* y;
    std::int64_t ldy;
    T* partial;

    [[gnu::always_inline]] inline void row(const T* x_row, const T* y_row, T* sum,
                                           int count) const noexcept {
#pragma GCC ivdep
        for (int j = 0; j < count; ++j) {
            sum[j] += multiply(conjugate(x_row[j]), y_row[j]);
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunk) const noexcept {
        const int width = fold * cols;
        T* total = partial + static_cast<std::int64_t>(chunk.index) * 2 * width;
        T* sum = total + width;
        std::fill_n(total, width, T(0));
        // Summing blocks first keeps the rounding errors of long columns small.
        const std::int64_t block = std::int64_t{256} * fold;
        for (std::int64_t first = chunk.first; first < chunk.last; first += block) {
            const std::int64_t last = std::min(first + block, chunk.last);
            std::fill_n(sum, width, T(0));
            std::int64_t r = first;
            for (; r + fold <= last; r += fold) {
                row(x + r * ldx, y + r * ldy, sum, width);
            }
            for (; r < last; ++r) {
                row(x + r * ldx, y + r * ldy, sum, cols);
            }
            for (int j = 0; j < width; ++j) {
                total[j] += sum[j];
            }
        }
    }
};

/// Rounds a double to float, to odd if inexact, so that a further rounding to a shorter format
/// gives the correctly rounded result. Source: Boldo, Melquiond, IEEE TC 57(4), 2008.
float round_to_odd(double value) {
    const float nearest = static_cast<float>(value);
    if (static_cast<double>(nearest) == value || !std::isfinite(nearest) || std::isnan(value)) {
        return nearest;
    }
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    if (std::abs(static_cast<double>(nearest)) > std::abs(value)) {
        --bits;
    }
    return std::bit_cast<float>(bits | 1u);
}

template <class T, class U>
T converted(U value) {
    constexpr bool from_short = std::is_same_v<U, half_t> || std::is_same_v<U, bfloat16_t>;
    if constexpr (std::is_same_v<T, U>) {
        return value;
    } else if constexpr (from_short) {
        return converted<T>(to_float(value));
    } else if constexpr (std::is_same_v<U, double> && sizeof(T) == sizeof(half_t)) {
        return converted<T>(round_to_odd(value));
    } else if constexpr (std::is_same_v<T, half_t>) {
        return to_half(value);
    } else if constexpr (std::is_same_v<T, bfloat16_t>) {
        return to_bfloat16(value);
    } else {
        return static_cast<T>(value);
    }
}

/// Calls row(r) for every row. The loop is compiled once, not for each instruction set.
template <class Row>
void for_rows(int threads, std::int64_t rows, std::size_t bytes_per_row, const Row& row) {
    for_chunks(chunk_count(threads, rows, bytes_per_row), rows, [&](const Chunk& chunk) {
        for (std::int64_t r = chunk.first; r < chunk.last; ++r) {
            row(r);
        }
    });
}

}  // namespace

template <class T>
void axpby(int threads, const AxpbyArgs<T>& args) {
    const bool gapless = args.ldx == args.cols && args.ldy == args.cols;
    const bool uniform = args.alphas == nullptr && args.betas == nullptr;
    const int fold = gapless && !uniform ? fold_of(args.cols) : 1;
    std::vector<T> alphas;
    std::vector<T> betas;
    if (!uniform) {
        for (int copy = 0; copy < fold; ++copy) {
            for (int j = 0; j < args.cols; ++j) {
                alphas.push_back(args.alphas != nullptr ? args.alphas[j] : args.alpha);
                betas.push_back(args.betas != nullptr ? args.betas[j] : args.beta);
            }
        }
    }
    const Axpby<T> kernel{args.cols,    fold,   uniform,  args.alpha, args.beta, alphas.data(),
                          betas.data(), args.x, args.ldx, args.y,     args.ldy};
    run_chunks(chunk_count(threads, args.rows, 3 * sizeof(T) * static_cast<std::size_t>(args.cols)),
               args.rows, kernel);
}

template <class T>
void dots(int threads, const DotsArgs<T>& args) {
    const bool gapless = args.ldx == args.cols && args.ldy == args.cols;
    const int fold = gapless ? fold_of(args.cols) : 1;
    const int width = fold * args.cols;
    const int chunks =
        chunk_count(threads, args.rows, 2 * sizeof(T) * static_cast<std::size_t>(args.cols));
    std::vector<T> partial(static_cast<std::size_t>(chunks) * 2 * static_cast<std::size_t>(width));
    run_chunks(chunks, args.rows,
               Dots<T>{args.cols, fold, args.x, args.ldx, args.y, args.ldy, partial.data()});
    for (int j = 0; j < args.cols; ++j) {
        T sum(0);
        for (int chunk = 0; chunk < chunks; ++chunk) {
            for (int copy = 0; copy < fold; ++copy) {
                sum +=
                    partial[static_cast<std::size_t>(chunk) * 2 * static_cast<std::size_t>(width) +
                            static_cast<std::size_t>(copy * args.cols + j)];
            }
        }
        args.result[j] = sum;
    }
}

template <class U, class T>
void convert(int threads, const ConvertArgs<U, T>& args) {
    for_rows(threads, args.rows, (sizeof(U) + sizeof(T)) * static_cast<std::size_t>(args.cols),
             [&](std::int64_t r) {
                 const U* x_row = args.x + r * args.ldx;
                 T* y_row = args.y + r * args.ldy;
                 for (int j = 0; j < args.cols; ++j) {
                     y_row[j] = converted<T>(x_row[j]);
                 }
             });
}

template <class T>
void gather_columns(int threads, const GatherColumnsArgs<T>& args) {
    const auto width = static_cast<std::size_t>(args.y_cols);
    const bool in_place = static_cast<const T*>(args.y) == args.x;
    const int chunks = chunk_count(threads, args.rows, 2 * sizeof(T) * width);
    std::vector<T> gathered(in_place ? static_cast<std::size_t>(chunks) * width : 0);
    for_chunks(chunks, args.rows, [&](const Chunk& chunk) {
        for (std::int64_t r = chunk.first; r < chunk.last; ++r) {
            const T* x_row = args.x + r * args.ldx;
            T* y_row = args.y + r * args.ldy;
            T* row =
                in_place ? gathered.data() + static_cast<std::size_t>(chunk.index) * width : y_row;
            for (int j = 0; j < args.y_cols; ++j) {
                row[j] = x_row[args.source[j]];
            }
            if (in_place) {
                std::copy_n(row, width, y_row);
            }
        }
    });
}

template <class T>
void fill(int threads, const FillArgs<T>& args) {
    for_rows(threads, args.rows, sizeof(T) * static_cast<std::size_t>(args.cols),
             [&](std::int64_t r) { std::fill_n(args.x + r * args.ldx, args.cols, args.value); });
}

template <class T>
void gather_rows(int threads, const GatherRowsArgs<T>& args) {
    for_rows(threads, args.rows, 2 * sizeof(T) * static_cast<std::size_t>(args.cols),
             [&](std::int64_t r) {
                 std::copy_n(args.x + args.row_of(r) * args.ldx, args.cols, args.y + r * args.cols);
             });
}

#define QUIVER_INSTANTIATE(T)                                       \
    template void axpby(int, const AxpbyArgs<T>&);                  \
    template void dots(int, const DotsArgs<T>&);                    \
    template void gather_columns(int, const GatherColumnsArgs<T>&); \
    template void fill(int, const FillArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(T) template void gather_rows(int, const GatherRowsArgs<T>&);
QUIVER_FOR_EACH_ELEMENT(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

#define QUIVER_INSTANTIATE(U, T) template void convert(int, const ConvertArgs<U, T>&);
QUIVER_FOR_EACH_CONVERSION(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
