// SPDX-License-Identifier: BSD-3-Clause
// Checksums of blocks and of arrays: what finds, places and mends silent faults.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"
#include "kernels/checksum_kinds.hpp"

namespace quiver {

/// The second weight of row i of a chunk, mixed_row(i) / 2^16: a multiple of 2^-16 in (0, 1],
/// another for every row of a chunk, in an order without pattern.
double mixed_weight(std::int64_t row_of_chunk);
/// Its unit.
inline constexpr double mixed_weight_unit = 0x1p-16;

/// The factor of a row's words from which `left` rows of its chunk are left, itself included: see
/// ChecksumWord.
std::uint32_t word_weight(std::int64_t left);

/// sums(chunk kinds + kind, j) = the sum of that kind over a chunk of column j of this rank's rows.
///
/// X: rows x n and weights: rows x 2 of the scalar of sums, or no columns for none, in the
/// Context's place; sums: (chunks kinds) x n without gaps in host or device memory, ready when the
/// call returns or when the stream gets there. Plain and mixed weights are made in registers from
/// the row's number. Sums are in double for s and c, compensated (Knuth's two-sum) for d and z, in
/// an order that the shape alone fixes: same bits for the same block. `block` > 0: each so many
/// columns get the bits that a call for them alone would give. What is not finite makes its sums
/// so. `words`: empty, or where sums are, (chunks 2) x (n, complex 2 n) numbers: words[(2 chunk +
/// ChecksumWord) columns + j], those of a complex column side by side.
///
/// Throws ShapeError, also for a log_chunk outside 12 .. 16. No communication. Cost: bytes
/// sizeof(T) rows (n + 2 with weights). Source: Huang and Abraham, IEEE Trans. Comput. C-33 (1984)
/// 518; the second weight: Jou and Abraham, Proc. IEEE 74 (1986) 732.
template <class T>
void checksum(Context& ctx, int log_chunk, std::type_identity_t<BlockView<const T>> x,
              std::type_identity_t<BlockView<const checksum_t<T>>> weights,
              BlockView<checksum_t<T>> sums, std::span<std::uint64_t> words = {}, int block = 0);

/// parity[piece parity_numbers + b] = exclusive or of the words of a piece whose index within it
/// has bit b, the last number that of all words: a Hamming code over words. One word that has
/// changed, in any of its bits, is found and mended exactly, without its source; no rounding, any
/// data.
///
/// `data`: host or device memory as the Context's place, aligned to 8 bytes, `bytes` a multiple of
/// 4. parity: pieces x parity_numbers, host memory, ready when the call returns. Cost: one read.
/// Source: Hamming, Bell Syst. Tech. J. 29 (1950) 147, section 3, on words in the place of bits.
void parity(Context& ctx, const void* data, std::size_t bytes, std::span<std::uint64_t> parity);

/// What two parities of one array, then and now, say of a piece.
struct ParityFault {
    std::int64_t piece = 0;
    /// Of the array, in words of 8 bytes; -1: more than one word has changed.
    std::int64_t word = -1;
    /// The bits that have changed.
    std::uint64_t bits = 0;
};
/// The first piece that differs at or after `from`; piece = -1: none.
ParityFault find_fault(std::span<const std::uint64_t> then, std::span<const std::uint64_t> now,
                       std::int64_t from = 0);

/// Flips the bits of `mask`, 1 to 8 bytes in the order of memory, in place: mends what find_fault
/// has found, and injects faults. Waits for the stream.
void flip_bits(Context& ctx, void* data, std::span<const unsigned char> mask);

}  // namespace quiver
