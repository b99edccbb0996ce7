// SPDX-License-Identifier: BSD-3-Clause
// The kinds of checksums and their numbering, shared by the public functions and the leaves.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "blockvec/scalar.hpp"

namespace quiver {

/// The scalar type of checksums: double, or complex double for complex blocks.
template <class T>
using checksum_t = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

/// The checksums of one column over a chunk of rows, by summand.
enum ChecksumKind : int {
    /// x_i.
    checksum_plain,
    /// mixed_weight(i) x_i, with i counted from the first row of the chunk. The weights are exact,
    /// in (0, 1] and distinct. The error of this checksum, divided by that of the plain one,
    /// therefore identifies a single wrong row.
    checksum_mixed,
    /// |x_i|^2.
    checksum_squares,
    /// conj(w_i) x_i, for each of the two columns of given weights.
    checksum_first,
    checksum_second,
};
/// Checksums of the words u_i that hold the real numbers of a column (separately for real and
/// imaginary parts), as integers modulo 2^64: words_plain sums u_i; words_mixed sums f_i lo(u_i) +
/// (2^32 - 1 - f_i) hi(u_i), where lo and hi are the 32-bit halves (s and c have no upper half) and
/// f_i = word_weight(rows from i to the end of the chunk). There is no rounding: a single changed
/// word, in any of its bits, is located and repaired exactly.
enum ChecksumWord : int { words_plain, words_mixed };
constexpr int word_kinds = 2;
enum class WordSums { no, yes };

/// Number of kinds without and with given weights.
constexpr int checksum_kinds(bool given) {
    return given ? 5 : 3;
}

constexpr int least_log_chunk = 12;
constexpr int most_log_chunk = 16;
/// Number of chunks of 2^log_chunk rows; the last chunk may be shorter.
constexpr std::int64_t checksum_chunks(std::int64_t rows, int log_chunk) {
    return (rows + (std::int64_t{1} << log_chunk) - 1) >> log_chunk;
}

/// Binary logarithm of the number of 8-byte words in a piece; each piece of an array has its own
/// parity.
constexpr int log_parity_words = 16;
/// Length of the parity of a piece: one number per bit of a word's index, and one for all words.
constexpr int parity_numbers = log_parity_words + 1;

/// Number of pieces of an array of `bytes` bytes.
constexpr std::int64_t parity_pieces(std::size_t bytes) {
    const std::size_t piece = std::size_t{8} << log_parity_words;
    return static_cast<std::int64_t>((bytes + piece - 1) / piece);
}

}  // namespace quiver
