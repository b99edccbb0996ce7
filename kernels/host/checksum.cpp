// SPDX-License-Identifier: BSD-3-Clause
// Checksums on the host, a strip of columns in vector registers at a time. Compiled without
// contraction of a * b + c, like twofold.cpp.
#include <algorithm>
#include <cstring>

#include "blockvec/scalar_list.hpp"
#include "kernels/checksum_kinds.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {
namespace {

/// Real numbers of a row that are summed together, and rows summed before the sums leave the
/// registers.
constexpr int panel_reals = 64;
constexpr std::int64_t tile_rows = 128;
constexpr int most_kinds = checksum_kinds(true);

/// high + low += value. If `compensated`, the rounding error of the addition goes to low.
template <bool compensated, class V>
[[gnu::always_inline]] inline void add(V& high, V& low, const V& value) {
    if constexpr (compensated) {
        const V sum = high + value;
        const V part = sum - high;
        low += (high - (sum - part)) + (value - part);
        high = sum;
    } else {
        high += value;
    }
}

/// Running sums of numbers (first), of those sums row by row (second), and of these (third). In
/// every row, third is updated first, with the old second, then first, then second with the new
/// first. A number that has `left` rows to the end, its own included, is therefore contained left
/// (left - 1) / 2 times in third.
struct SumsOfSums {
    std::uint64_t first[panel_reals];
    std::uint64_t second[panel_reals];
    std::uint64_t third[panel_reals];
    /// The sum of the numbers times word_factor().
    std::uint64_t weighted(int j) const { return third[j] + first[j]; }
};

/// The sums of one chunk and one panel of columns.
struct PanelSums {
    double high[most_kinds][panel_reals];
    double low[most_kinds][panel_reals];
    SumsOfSums lower, upper;  // of the halves of words
};

template <class T, class S, bool given>
struct Checksum {
    using R = real_t<T>;
    static constexpr int reals = reals_v<T>;
    static constexpr bool compensated = sizeof(R) == sizeof(double);
    static constexpr int kinds = checksum_kinds(given);

    const ChecksumArgs<T, S>& args;

    /// The number of strips of LANES reals summed side by side: as many as fit with their sums into
    /// the registers. The weight of a row is then computed once for all strips, and memory is read
    /// in order.
    template <class Isa, int LANES>
    static constexpr int together = std::clamp((Isa::registers - 8) /
                                                   (kinds + (compensated ? kinds - 1 : 0)),
                                               1, panel_reals / LANES);

    /// Adds the numbers of a row to the sums of a strip.
    template <class V>
    [[gnu::always_inline]] inline void add_row(V (&high)[kinds], V (&low)[kinds], const V& x,
                                               double mixed, std::int64_t row) const noexcept {
        add<compensated>(high[checksum_plain], low[checksum_plain], x);
        add<compensated>(high[checksum_mixed], low[checksum_mixed], x * mixed);
        high[checksum_squares] += x * x;
        if constexpr (given) {
            const double* const w = as_reals(args.weights + row * args.ldw);
            V first_product = x * w[0];
            V second_product = x * w[reals];
            if constexpr (is_complex_v<T>) {
                // conj(w) x: the imaginary part of w multiplies the other part of x, with the sign
                // of -i.
                constexpr int lanes = static_cast<int>(sizeof(V) / sizeof(double));
                V turned;
                for (int l = 0; l < lanes; l += 2) {
                    turned[l] = x[l + 1];
                    turned[l + 1] = -x[l];
                }
                first_product += turned * w[1];
                second_product += turned * w[3];
            }
            add<compensated>(high[checksum_first], low[checksum_first], first_product);
            add<compensated>(high[checksum_second], low[checksum_second], second_product);
        }
    }

    template <class X, class V>
    [[gnu::always_inline]] static inline void widen(const X& source, V& x) noexcept {
        if constexpr (sizeof(V) > sizeof(double)) {
            x = __builtin_convertvector(source, V);
        } else {
            x = static_cast<double>(source);
        }
    }

    /// Sums COUNT strips, from real j of the panel that starts at column `first`, over the rows of
    /// a tile. The last strip may have fewer than LANES reals, but more than half of them.
    template <int LANES, int COUNT>
    [[gnu::always_inline]] inline void strips(int first, int j, int width, Chunk tile,
                                              std::int64_t chunk_row,
                                              PanelSums& sums) const noexcept {
        using V = typename VectorOf<double, LANES>::type;
        using X = typename VectorOf<R, LANES>::type;
        V high[COUNT][kinds];
        V low[COUNT][kinds];
#pragma GCC unroll 8
        for (int i = 0; i < COUNT; ++i) {
            for (int k = 0; k < kinds; ++k) {
                std::memcpy(&high[i][k], &sums.high[k][j + i * LANES], sizeof(V));
                std::memcpy(&low[i][k], &sums.low[k][j + i * LANES], sizeof(V));
            }
        }
        const auto mixed_of = [&](std::int64_t row) {
            return mixed_row(static_cast<std::uint32_t>(row - chunk_row)) * mixed_row_unit;
        };
        // The vector load of the last strip may read beyond the row. It stays within the block
        // except in the block's last row, which is therefore summed separately.
        const int rest = width - j - (COUNT - 1) * LANES;
        const bool ends = rest < LANES && tile.last == args.rows;
        const std::int64_t last = tile.last - (ends ? 1 : 0);
        for (std::int64_t row = tile.first; row < last; ++row) {
            const R* const from = as_reals(args.x + row * args.ldx + first) + j;
            const double mixed = mixed_of(row);
#pragma GCC unroll 8
            for (int i = 0; i < COUNT; ++i) {
                X source;
                std::memcpy(&source, from + i * LANES, sizeof(X));
                V x;
                widen(source, x);
                add_row(high[i], low[i], x, mixed, row);
            }
        }
        if (ends) {
            const R* const from = as_reals(args.x + last * args.ldx + first) + j;
#pragma GCC unroll 8
            for (int i = 0; i < COUNT; ++i) {
                X source{};
                std::memcpy(&source, from + i * LANES,
                            i + 1 < COUNT ? sizeof(X) : static_cast<std::size_t>(rest) * sizeof(R));
                V x;
                widen(source, x);
                add_row(high[i], low[i], x, mixed_of(last), last);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < COUNT; ++i) {
            for (int k = 0; k < kinds; ++k) {
                std::memcpy(&sums.high[k][j + i * LANES], &high[i][k], sizeof(V));
                std::memcpy(&sums.low[k][j + i * LANES], &low[i][k], sizeof(V));
            }
        }
    }

    /// Sums all reals from j on, COUNT * LANES at a time; fewer and narrower strips sum the rest.
    template <int LANES, int COUNT>
    [[gnu::always_inline]] inline void panel(int first, int j, int width, Chunk tile,
                                             std::int64_t chunk_row,
                                             PanelSums& sums) const noexcept {
        for (; j + COUNT * LANES <= width; j += COUNT * LANES) {
            strips<LANES, COUNT>(first, j, width, tile, chunk_row, sums);
        }
        if (j == width) {
            return;
        }
        if constexpr (COUNT > 1) {
            panel<LANES, COUNT / 2>(first, j, width, tile, chunk_row, sums);
        } else if constexpr (LANES > reals) {
            if (2 * (width - j) > LANES) {
                strips<LANES, 1>(first, j, width, tile, chunk_row, sums);
            } else {
                panel<LANES / 2, 1>(first, j, width, tile, chunk_row, sums);
            }
        }
    }

    /// The running sums of a strip's word halves, in registers.
    template <class V>
    struct StripSums {
        V first, second, third;
        [[gnu::always_inline]] StripSums(const SumsOfSums& sums, int j) {
            std::memcpy(&first, &sums.first[j], sizeof(V));
            std::memcpy(&second, &sums.second[j], sizeof(V));
            std::memcpy(&third, &sums.third[j], sizeof(V));
        }
        [[gnu::always_inline]] inline void add(const V& value) {
            third += second;
            first += value;
            second += first;
        }
        [[gnu::always_inline]] inline void store(SumsOfSums& sums, int j) const {
            std::memcpy(&sums.first[j], &first, sizeof(V));
            std::memcpy(&sums.second[j], &second, sizeof(V));
            std::memcpy(&sums.third[j], &third, sizeof(V));
        }
    };

    /// Adds a tile to the word checksums of a panel from real j on, LANES at a time. It runs after
    /// panel(), so that the tile is in the caches.
    template <int LANES>
    [[gnu::always_inline]] inline void words(int first, int j, int width, Chunk tile,
                                             PanelSums& sums) const noexcept {
        using Word = std::conditional_t<compensated, std::uint64_t, std::uint32_t>;
        using V = typename VectorOf<std::uint64_t, LANES>::type;
        using X = typename VectorOf<Word, LANES>::type;
        for (; j + LANES <= width; j += LANES) {
            StripSums<V> lower(sums.lower, j);
            StripSums<V> upper(sums.upper, j);
            for (std::int64_t row = tile.first; row < tile.last; ++row) {
                X word;
                std::memcpy(&word, as_reals(args.x + row * args.ldx + first) + j, sizeof(X));
                if constexpr (compensated) {
                    lower.add(word & 0xffffffffu);
                    upper.add(word >> 32);
                } else if constexpr (LANES > 1) {
                    lower.add(__builtin_convertvector(word, V));
                } else {
                    lower.add(word);
                }
            }
            lower.store(sums.lower, j);
            upper.store(sums.upper, j);
        }
        if constexpr (LANES > 1) {
            words<LANES / 2>(first, j, width, tile, sums);
        }
    }

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk chunks) const noexcept {
        constexpr int lanes = lanes_v<Isa, double>;
        for (std::int64_t c = chunks.first; c < chunks.last; ++c) {
            const std::int64_t begin = c << args.log_chunk;
            const std::int64_t end =
                std::min(begin + (std::int64_t{1} << args.log_chunk), args.rows);
            for (int first = 0; first < args.cols; first += panel_reals / reals) {
                const int width = std::min(panel_reals / reals, args.cols - first) * reals;
                PanelSums sums{};
                for (std::int64_t row = begin; row < end; row += tile_rows) {
                    const Chunk tile{row, std::min(row + tile_rows, end), 0};
                    panel<lanes, together<Isa, lanes>>(first, 0, width, tile, begin, sums);
                    if (args.words != nullptr) {
                        words<lanes>(first, 0, width, tile, sums);
                    }
                }
                store(c, first, width, sums);
            }
        }
    }

    [[gnu::always_inline]] inline void store(std::int64_t c, int first, int width,
                                             const PanelSums& sums) const noexcept {
        for (int k = 0; k < kinds; ++k) {
            double* const to = as_reals(args.sums + (c * kinds + k) * args.cols + first);
            for (int j = 0; j < width; ++j) {
                to[j] = sums.high[k][j] + sums.low[k][j];
            }
        }
        if (args.words != nullptr) {
            std::uint64_t* const plain = args.words + (c * word_kinds * args.cols + first) * reals;
            std::uint64_t* const mixed = plain + std::int64_t{args.cols} * reals;
            for (int j = 0; j < width; ++j) {
                const std::uint64_t upper = sums.upper.first[j];
                plain[j] = sums.lower.first[j] + (upper << 32);
                mixed[j] = sums.lower.weighted(j) - sums.upper.weighted(j) + 0xffffffffu * upper;
            }
        }
        if constexpr (is_complex_v<T>) {
            double* const squares =
                as_reals(args.sums + (c * kinds + checksum_squares) * args.cols + first);
            for (int j = 0; j < width; j += 2) {
                squares[j] += squares[j + 1];
                squares[j + 1] = 0;
            }
        }
    }
};

struct Parity {
    const ParityArgs& args;

    template <class Isa>
    [[gnu::always_inline]] inline void rows(Chunk pieces) const noexcept {
        constexpr std::int64_t piece_words = std::int64_t{1} << log_parity_words;
        constexpr int low_bits = 8;  // of a word's index within a run
        constexpr int run = 1 << low_bits;
        const auto* const bytes = static_cast<const unsigned char*>(args.data);
        for (std::int64_t p = pieces.first; p < pieces.last; ++p) {
            std::uint64_t column[run] = {};  // exclusive or of all words with the same low bits
            std::uint64_t high[log_parity_words - low_bits] = {};
            const std::int64_t first = p * piece_words;
            for (std::int64_t r = 0; r < piece_words / run; ++r) {
                const std::int64_t offset = (first + r * run) * 8;
                const std::int64_t count = std::min<std::int64_t>(args.bytes - offset, run * 8);
                if (count <= 0) {
                    break;
                }
                std::uint64_t word[run] = {};
                std::memcpy(word, bytes + offset, static_cast<std::size_t>(count));
                std::uint64_t all = 0;
                for (int i = 0; i < run; ++i) {
                    column[i] ^= word[i];
                    all ^= word[i];
                }
                for (int b = 0; b < log_parity_words - low_bits; ++b) {
                    high[b] ^= (r >> b & 1) != 0 ? all : 0;
                }
            }
            std::uint64_t* const to = args.parity + p * parity_numbers;
            std::fill_n(to, parity_numbers, std::uint64_t{0});
            for (int i = 0; i < run; ++i) {
                for (int b = 0; b < low_bits; ++b) {
                    to[b] ^= (i >> b & 1) != 0 ? column[i] : 0;
                }
                to[log_parity_words] ^= column[i];
            }
            std::copy_n(high, log_parity_words - low_bits, to + low_bits);
        }
    }
};

}  // namespace

template <class T, class S>
void checksum(int threads, const ChecksumArgs<T, S>& args) {
    const std::int64_t chunks = checksum_chunks(args.rows, args.log_chunk);
    const std::size_t chunk_bytes = (sizeof(T) * static_cast<std::size_t>(args.cols))
                                    << args.log_chunk;
    const int parts =
        static_cast<int>(std::min<std::int64_t>(chunks, chunk_count(threads, chunks, chunk_bytes)));
    if (args.weights != nullptr) {
        run_chunks(parts, chunks, Checksum<T, S, true>{args});
    } else {
        run_chunks(parts, chunks, Checksum<T, S, false>{args});
    }
}

void parity(int threads, const ParityArgs& args) {
    const std::int64_t pieces = parity_pieces(static_cast<std::size_t>(args.bytes));
    const int parts =
        static_cast<int>(std::min<std::int64_t>(pieces, chunk_count(threads, pieces, 1 << 19)));
    run_chunks(parts, pieces, Parity{args});
}

#define QUIVER_INSTANTIATE(T) template void checksum(int, const ChecksumArgs<T, checksum_t<T>>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
