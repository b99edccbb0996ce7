// SPDX-License-Identifier: BSD-3-Clause
// Which sums there are, and their numbers: what the face and the leaves of checksums share.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "blockvec/scalar.hpp"

namespace quiver {

/// The scalar of sums: double, or complex double of complex blocks.
template <class T>
using checksum_t = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

/// The sums that are made of every column of a chunk of rows.
enum ChecksumKind : int {
    /// Of x_i.
    checksum_plain,
    /// Of mixed_weight(i) x_i, i counted from the chunk's first row: exact weights in (0, 1],
    /// another for every row, so that the quotient of two differences gives the row.
    checksum_mixed,
    /// Of |x_i|^2.
    checksum_squares,
    /// Of conj(w_i) x_i for the two columns of given weights.
    checksum_first,
    checksum_second,
};
/// The sums of the words that hold the real numbers of a column (of its real and of its imaginary
/// parts), as integers modulo 2^64: of u_i, and of f_i lo(u_i) + (2^32 - 1 - f_i) hi(u_i) with
/// f_i = word_weight(rows from i to the chunk's end) and the halves of 32 bits of u_i, which has no
/// upper one in s and c. They know nothing of rounding: one word that has changed, in any of its
/// bits, is placed and mended exactly.
enum ChecksumWord : int { words_plain, words_mixed };
constexpr int word_kinds = 2;
enum class WordSums { no, yes };

/// Kinds there are without and with given weights.
constexpr int checksum_kinds(bool given) {
    return given ? 5 : 3;
}

constexpr int least_log_chunk = 12;
constexpr int most_log_chunk = 16;
/// Chunks of 2^log_chunk rows, the last one may be shorter.
constexpr std::int64_t checksum_chunks(std::int64_t rows, int log_chunk) {
    return (rows + (std::int64_t{1} << log_chunk) - 1) >> log_chunk;
}

/// Words of 8 bytes in a piece of an array that has a parity of its own.
constexpr int log_parity_words = 16;
/// Numbers of each piece's parity: one for each bit of a word's index, and one for all words.
constexpr int parity_numbers = log_parity_words + 1;

/// How many pieces an array of so many bytes has.
constexpr std::int64_t parity_pieces(std::size_t bytes) {
    const std::size_t piece = std::size_t{8} << log_parity_words;
    return static_cast<std::int64_t>((bytes + piece - 1) / piece);
}

}  // namespace quiver
