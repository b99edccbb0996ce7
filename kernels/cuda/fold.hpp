// SPDX-License-Identifier: BSD-3-Clause
// The positions of folded rows' elements in the operands of a tensor-core product; shared by host
// and device code.
//
// `fold` rows of a block without gaps form one long row, whose length is a multiple of 16 bytes for
// any width, so that ldmatrix can read it. In the product of long rows, only the `fold` diagonal
// blocks are needed; only 16 x 8 tiles that intersect one of them are computed. `split` warps share
// the diagonal blocks: each warp has a slab of fold / split blocks, which starts at an element
// (offset) of an 8-element chunk.
#pragma once

namespace quiver {

/// One operand: `width` columns per row, `fold` rows per long row, `split` slabs.
struct FoldedSide {
    int width, fold, split;

    constexpr int blocks() const { return fold / split; }
    constexpr int slab() const { return blocks() * width; }
    constexpr int chunk(int s) const { return s * slab() / 8; }
    constexpr int offset(int s) const { return s * slab() % 8; }
    /// Number of chunks that the widest slab intersects.
    constexpr int chunks() const {
        int most = 0;
        for (int s = 0; s < split; ++s) {
            const int met = (offset(s) + slab() + 7) / 8;
            most = met > most ? met : most;
        }
        return most;
    }
};

/// The product of A's slabs and B's slabs, in tiles of two chunks of A x one chunk of B. SAME: A is
/// B, and only the upper triangle of a diagonal block is needed. The chunks of B are divided among
/// `shares` warps.
struct FoldedProduct {
    FoldedSide a, b;
    bool same;
    int shares;

    constexpr int pairs() const { return (a.chunks() + 1) / 2; }
    constexpr int chunks() const { return (b.chunks() + shares - 1) / shares; }
    /// True if in some share and slab, tile (pair, chunk) contains a needed element.
    constexpr bool needed(int pair, int chunk) const {
        for (int s = 0; s < a.split; ++s) {
            for (int share = 0; share < shares; ++share) {
                const int first_i = 16 * pair - a.offset(s);
                const int first_j = 8 * (chunk + share * chunks()) - b.offset(s);
                for (int block = 0; block < a.blocks(); ++block) {
                    const int i = first_i - block * a.width;
                    const int j = first_j - block * b.width;
                    const int least_i = i < 0 ? 0 : i;
                    const int most_j = j + 7 < b.width ? j + 7 : b.width - 1;
                    if (i + 15 >= 0 && i < a.width && j + 7 >= 0 && j < b.width &&
                        (!same || least_i <= most_j)) {
                        return true;
                    }
                }
            }
        }
        return false;
    }
    constexpr int tiles() const {
        int count = 0;
        for (int pair = 0; pair < pairs(); ++pair) {
            for (int chunk = 0; chunk < chunks(); ++chunk) {
                count += needed(pair, chunk) ? 1 : 0;
            }
        }
        return count;
    }
};

/// The position of an element of a slab: its diagonal block and its column within the block.
struct FoldedPlace {
    int block, column;
};
constexpr FoldedPlace folded_place(int element, int width) {
    return {element / width, element % width};
}

/// The row (of 16) and the chunk (of two) whose address a lane passes to ldmatrix, so that the four
/// returned words are operands of mma.m16n8k16.
struct MatrixRow {
    int row, chunk;
};
/// For A in A^T B, read transposed: words in the order of the left operand, of two chunks.
constexpr MatrixRow left_of_sums(int lane) {
    return {lane % 8 + lane / 16 * 8, lane / 8 % 2};
}
/// For B in A^T B, read transposed: two words for the right operand of each of two chunks.
constexpr MatrixRow right_of_sums(int lane) {
    return {lane % 8 + lane / 8 % 2 * 8, lane / 16};
}
/// For X in X C, read untransposed: the left operand, 16 rows by two chunks.
constexpr MatrixRow left_of_rows(int lane) {
    return {lane % 8 + lane / 8 % 2 * 8, lane / 16};
}
/// Row and column of the 16 x 8 result that entry e of a lane holds.
constexpr int result_row(int lane, int e) {
    return lane / 4 + e / 2 * 8;
}
constexpr int result_column(int lane, int e) {
    return lane % 4 * 2 + e % 2;
}
/// The right operand of 16 x 8: word h of a lane holds rows operand_row(lane, h) and the next of
/// column operand_column(lane).
constexpr int operand_row(int lane, int half) {
    return lane % 4 * 2 + half * 8;
}
constexpr int operand_column(int lane) {
    return lane / 4;
}

/// Row pitch in shared memory, in elements. The eight 16-byte pieces that ldmatrix reads together
/// lie in different banks if the pitch is an odd number of pieces; rows that need padding anyway
/// get such a pitch.
constexpr int padded_pitch(int columns) {
    return ((columns + 7) / 8 | 1) * 8;
}
/// Row pitch of long rows that the copy engine copies: unpadded, so that one copy per stage
/// suffices, unless the banks would serialise more than two rows and the long rows are large enough
/// for separate copies.
constexpr int bulk_pitch(int long_row) {
    return long_row % 32 == 0 && long_row >= 256 ? long_row + 8 : long_row;
}
/// The row pitch for either kind of copy: `bytes` is the size of the threads' copies, or 0 for rows
/// without gaps.
constexpr int row_pitch(int columns, int fold, int bytes) {
    return bytes == 0 ? bulk_pitch(fold * columns) : padded_pitch(columns);
}
/// Row pitch of results of 4 or 2 bytes, whose pairs are stored by eight rows at a time.
constexpr int result_pitch(int columns) {
    const int whole = (columns + 7) / 8 * 8;
    return whole % 16 == 0 ? whole + 8 : whole;
}

}  // namespace quiver
