// SPDX-License-Identifier: BSD-3-Clause
// Checksums of blocks and parities of arrays, to find, locate and repair silent faults.
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
/// distinct for every row of a chunk, in pseudo-random order.
double mixed_weight(std::int64_t row_of_chunk);
/// The unit of mixed_weight().
inline constexpr double mixed_weight_unit = 0x1p-16;

/// The factor of the words of a row when `left` rows of its chunk remain, itself included; see
/// ChecksumWord.
std::uint32_t word_weight(std::int64_t left);

/// sums(chunk kinds + kind, j) = the checksum of this kind in column j, over one chunk of this
/// rank's rows.
///
/// X: rows x n. weights: rows x 2 in the scalar type of the sums, or without columns if there are
/// none. Both in the Context's place. sums: (chunks kinds) x n without gaps, in host memory (ready
/// when the call returns) or device memory (ready in stream order). The kernel computes plain and
/// mixed weights from the row number. Sums are accumulated in double for s and c, compensated
/// (Knuth's two-sum) for d and z, in an order that depends on the shape only: the same block gives
/// the same bits. `block` > 0: every group of `block` columns gets the same bits as a call for that
/// group alone. NaN or infinity in a column makes its sums NaN or infinite. `words`: empty, or
/// (chunks 2) x columns integers in the place of `sums`, where columns = n (complex: 2 n): words[(2
/// chunk + ChecksumWord) columns + j], with real and imaginary part of a complex column adjacent.
///
/// Throws ShapeError, also for a log_chunk outside 12 .. 16. No communication. Cost: bytes
/// sizeof(T) rows (n + 2 with weights). Source: Huang and Abraham, IEEE Trans. Comput. C-33 (1984)
/// 518; for the second weight: Jou and Abraham, Proc. IEEE 74 (1986) 732.
template <class T>
void checksum(Context& ctx, int log_chunk, std::type_identity_t<BlockView<const T>> x,
              std::type_identity_t<BlockView<const checksum_t<T>>> weights,
              BlockView<checksum_t<T>> sums, std::span<std::uint64_t> words = {}, int block = 0);

/// parity[piece parity_numbers + b] = exclusive or of all words of a piece whose index within the
/// piece has bit b set; the last number is the exclusive or of all words. These numbers are a
/// Hamming code over words. A single changed word, in any of its bits, is located and repaired
/// exactly, without the original data, for any contents and without rounding.
///
/// `data`: in the Context's place, aligned to 8 bytes, `bytes` a multiple of 4. parity: pieces x
/// parity_numbers in host memory, ready when the call returns. Throws ShapeError. Cost: one read.
/// Source: Hamming, Bell Syst. Tech. J. 29 (1950) 147, section 3, on words instead of bits.
void parity(Context& ctx, const void* data, std::size_t bytes, std::span<std::uint64_t> parity);

/// The fault in one piece of an array, found by comparing an earlier and a later parity.
struct ParityFault {
    std::int64_t piece = 0;
    /// Index in the array, in words of 8 bytes; -1 if more than one word has changed.
    std::int64_t word = -1;
    /// The changed bits.
    std::uint64_t bits = 0;
};
/// The first piece at or after `from` whose parities differ; piece = -1 if there is none.
ParityFault find_fault(std::span<const std::uint64_t> then, std::span<const std::uint64_t> now,
                       std::int64_t from = 0);

/// Flips the bits of `mask` (1 to 8 bytes in memory order) in place, to repair a fault that
/// find_fault located or to inject one. Waits for the stream.
void flip_bits(Context& ctx, void* data, std::span<const unsigned char> mask);

}  // namespace quiver
