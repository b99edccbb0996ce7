// SPDX-License-Identifier: BSD-3-Clause
// Reference kernels for checksums, parities and sums in two parts.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/checksum_kinds.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace quiver::reference {

/// The words of the real numbers of an element: one word, or two for a complex element.
template <class T>
std::array<std::uint64_t, is_complex_v<T> ? 2 : 1> words_of(const T& element) {
    using Word = std::conditional_t<sizeof(real_t<T>) == 8, std::uint64_t, std::uint32_t>;
    std::array<Word, is_complex_v<T> ? 2 : 1> words;
    std::memcpy(words.data(), &element, sizeof(T));
    std::array<std::uint64_t, is_complex_v<T> ? 2 : 1> wide;
    std::copy(words.begin(), words.end(), wide.begin());
    return wide;
}

/// Writes the checksums to `sums` (layout of args.sums, in Acc), the word checksums to args.words
/// and, if `magnitudes` is not null, the sums of the absolute values of the terms.
template <class Acc, class T, class S>
void checksum(const ChecksumArgs<T, S>& args, Acc* sums, long double* magnitudes) {
    constexpr std::size_t reals = is_complex_v<T> ? 2 : 1;
    const int kinds = checksum_kinds(args.weights != nullptr);
    const std::int64_t chunks = checksum_chunks(args.rows, args.log_chunk);
    const std::size_t line = static_cast<std::size_t>(args.cols) * reals;
    std::fill_n(sums, chunks * kinds * args.cols, Acc(0));
    std::fill_n(magnitudes, magnitudes == nullptr ? 0 : chunks * kinds * args.cols, 0);
    std::fill_n(args.words, args.words == nullptr ? 0 : static_cast<std::size_t>(2 * chunks) * line,
                std::uint64_t{0});
    for (std::int64_t r = 0; r < args.rows; ++r) {
        const std::int64_t chunk = r >> args.log_chunk;
        const std::int64_t first = chunk << args.log_chunk;
        const std::int64_t last = std::min(first + (std::int64_t{1} << args.log_chunk), args.rows);
        const Acc mixed(mixed_row(static_cast<std::uint32_t>(r - first)) * mixed_row_unit);
        const std::uint64_t factor = word_factor(static_cast<std::uint32_t>(last - r));
        for (int j = 0; j < args.cols; ++j) {
            const T element = args.x[r * args.ldx + j];
            const Acc x(element);
            for (int kind = 0; kind < kinds; ++kind) {
                Acc term = x;
                if (kind == checksum_mixed) {
                    term = product(mixed, x);
                } else if (kind == checksum_squares) {
                    term = Acc(std::norm(x));
                } else if (kind >= checksum_first) {
                    const S weight = args.weights[r * args.ldw + kind - checksum_first];
                    term = product(conjugate(Acc(weight)), x);
                }
                const std::int64_t at = (chunk * kinds + kind) * args.cols + j;
                sums[at] += term;
                if (magnitudes != nullptr) {
                    magnitudes[at] += std::abs(term);
                }
            }
            if (args.words != nullptr) {
                const auto words = words_of(element);
                std::uint64_t* const to = args.words + 2 * static_cast<std::size_t>(chunk) * line +
                                          static_cast<std::size_t>(j) * reals;
                for (std::size_t w = 0; w < reals; ++w) {
                    const std::uint64_t upper = words[w] >> 32;
                    const std::uint64_t lower = words[w] & 0xffffffffu;
                    to[words_plain * line + w] += words[w];
                    to[words_mixed * line + w] += factor * lower + (0xffffffffu - factor) * upper;
                }
            }
        }
    }
}

/// Bytes beyond the end of the data count as zeros.
inline void parity(const ParityArgs& args) {
    const std::int64_t pieces = parity_pieces(static_cast<std::size_t>(args.bytes));
    std::fill_n(args.parity, pieces * parity_numbers, std::uint64_t{0});
    for (std::int64_t first = 0; first < args.bytes; first += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const char*>(args.data) + first,
                    static_cast<std::size_t>(std::min<std::int64_t>(8, args.bytes - first)));
        const std::int64_t index = first / 8;
        std::uint64_t* const numbers = args.parity + (index >> log_parity_words) * parity_numbers;
        for (int bit = 0; bit < log_parity_words; ++bit) {
            numbers[bit] ^= (index >> bit) % 2 == 1 ? word : 0;
        }
        numbers[log_parity_words] ^= word;
    }
}

/// A number as the sum of a long double and its accumulated rounding errors.
struct LongPair {
    long double high = 0;
    long double low = 0;

    void add(long double value) {
        const long double sum = high + value;
        const long double part = sum - high;
        low += (high - (sum - part)) + (value - part);
        high = sum;
    }
    /// Stores the nearest double, and the next 53 bits.
    void store(double& first, double& second) const {
        first = static_cast<double>(high + low);
        second = static_cast<double>((high - first) + low);
    }
};

/// The product of two doubles is exact in two doubles.
inline void tsmttsm_twofold(const TwofoldTsmttsmArgs& args) {
    const std::int64_t size = std::int64_t{args.m} * args.n;
    for (int i = 0; i < args.m; ++i) {
        for (int j = 0; j < args.n; ++j) {
            LongPair sum;
            for (std::int64_t r = 0; r < args.rows; ++r) {
                const double a = args.a[r * args.lda + i];
                const double b = args.b[r * args.ldb + j];
                const double rounded = a * b;
                sum.add(rounded);
                sum.add(std::fma(a, b, -rounded));
            }
            sum.store(args.sums[i * args.n + j], args.sums[size + i * args.n + j]);
        }
    }
}

inline void gram_twofold(const GramTwofoldArgs& args) {
    tsmttsm_twofold(product_of(args));
}

inline void sum_twofold(const TwofoldSumArgs& args) {
    for (std::int64_t e = 0; e < args.size; ++e) {
        LongPair sum;
        for (int part = 0; part < args.parts; ++part) {
            sum.add(args.parts_of_sums[2 * part * args.size + e]);
            sum.add(args.parts_of_sums[(2 * part + 1) * args.size + e]);
        }
        sum.store(args.sums[e], args.sums[args.size + e]);
    }
}

}  // namespace quiver::reference
