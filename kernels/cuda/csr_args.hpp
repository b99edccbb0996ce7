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

/// Rows or pieces of rows, in the storage of SpmmvArgs: entries where `start` puts them, column -1
/// and value 0 as padding. If `first` is not null, chunk is 1, and slot s takes the entries from
/// number first[s] on that fill its storage; otherwise it takes all entries of its row.
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
