// SPDX-License-Identifier: BSD-3-Clause
// Arguments of the kernels that store a caller's compressed rows as a SparseMatrix does; shared by
// host and device code.
#pragma once

#include "kernels/operations/spmmv.hpp"

namespace quiver {

/// A caller's compressed rows in device memory. From: 32 or 64 bits.
template <class T, class From>
struct CsrOnDevice {
    std::int64_t rows;
    const From* row_start;  // may begin with any number
    const From* column;
    const T* value;
};

/// Facts about compressed rows: the first and the last offset, the entries of the longest row, and
/// 1 if the offsets descend somewhere.
struct CsrFacts {
    std::int64_t first;
    std::int64_t last;
    unsigned long long longest;
    unsigned descending;
};

/// The slots of a part of a SparseMatrix, and the columns of its entries.
template <class Index>
struct PartSlots {
    std::int64_t slots;
    std::int64_t own;
    SpmmvRowList list;
    const std::int64_t* piece_row;  // the row of piece p, which has number own + p in the list
    int chunk;
    const std::int64_t* start;
    const Index* column;
};

/// blocks[row * size + column % size] = value for the entries of the blocks of `size` rows on the
/// diagonal. The other elements of the blocks stay.
template <class T, class Index>
struct DiagonalBlocksArgs {
    PartSlots<Index> part;
    const T* value;
    int size;
    T* blocks;
};

/// Rows or pieces of rows, in the storage of SpmmvArgs: entries where `start` puts them, column -1
/// and value 0 as padding. If `first` is not null, chunk is 1, and slot s takes the entries from
/// number first[s] on that fill its storage; otherwise it takes all entries of its row. If
/// csr.column is null, only the values are stored.
template <class T, class From, class Index>
struct CsrToChunksArgs {
    CsrOnDevice<T, From> csr;
    std::int64_t slots;
    const std::int64_t* first;
    SpmmvRowList list;
    int chunk;
    const std::int64_t* start;
    Index* column;
    T* value;
};

}  // namespace quiver
