// SPDX-License-Identifier: BSD-3-Clause
// A caller's compressed rows: a check, the conversion to the storage of a SparseMatrix, and the
// replacement of values there. One thread takes one row, slot or value.
#pragma once

#include "kernels/cuda/csr_args.hpp"
#include "scalar.cuh"

namespace quiver {

/// Sets *unfit to 1 if a column is not in 0 .. columns - 1, the columns of a row do not ascend, or
/// a value is not finite.
template <class T, class From>
__global__ void __launch_bounds__(256)
    csr_check(CsrOnDevice<T, From> csr, std::int64_t columns, unsigned* unfit) {
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    bool fits = true;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < csr.rows; i += threads) {
        const From begin = csr.row_start[i] - csr.row_start[0];
        const From end = csr.row_start[i + 1] - csr.row_start[0];
        From before = -1;
        for (From k = begin; k < end; ++k) {
            const From column = csr.column[k];
            fits = fits && column > before && column < columns && is_finite(csr.value[k]);
            before = column;
        }
    }
    if (!fits) {
        *unfit = 1;
    }
}

template <class T, class From, class Index>
__global__ void __launch_bounds__(256) csr_to_chunks(CsrToChunksArgs<T, From, Index> args) {
    const CsrOnDevice<T, From>& csr = args.csr;
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    const std::int64_t slots = (args.slots + args.chunk - 1) / args.chunk * args.chunk;
    for (std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         slot < slots; slot += threads) {
        const std::int64_t* const start = args.start + slot / args.chunk;
        std::int64_t to = start[0] + slot % args.chunk;
        if (slot < args.slots) {
            std::int64_t begin = 0;
            std::int64_t end = 0;
            if (args.first != nullptr) {
                begin = args.first[slot];
                end = begin + (start[1] - start[0]);
            } else {
                const std::int64_t row = args.list.row_of(slot);
                begin = csr.row_start[row] - csr.row_start[0];
                end = csr.row_start[row + 1] - csr.row_start[0];
            }
            for (std::int64_t k = begin; k < end; ++k, to += args.chunk) {
                if (csr.column != nullptr) {
                    args.column[to] = static_cast<Index>(csr.column[k]);
                }
                args.value[to] = csr.value[k];
            }
        }
        for (; to < start[1] && csr.column != nullptr; to += args.chunk) {
            args.column[to] = -1;
            args.value[to] = T{};
        }
    }
}

/// Sets *infinite to 1 if a value is not finite.
template <class T>
__global__ void __launch_bounds__(256)
    check_values(const T* value, std::int64_t count, unsigned* infinite) {
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    bool finite = true;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         k < count; k += threads) {
        finite = finite && is_finite(value[k]);
    }
    if (!finite) {
        *infinite = 1;
    }
}

/// Adds the entries of each slot to the count of its row. Rows in pieces have several slots.
template <class Index>
__global__ void __launch_bounds__(256) count_entries(PartSlots<Index> part, std::int64_t* counts) {
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         slot < part.slots; slot += threads) {
        const std::int64_t* const start = part.start + slot / part.chunk;
        std::int64_t count = 0;
        for (std::int64_t e = start[0] + slot % part.chunk; e < start[1] && part.column[e] >= 0;
             e += part.chunk) {
            ++count;
        }
        const std::int64_t row = part.list.row_of(slot);
        if (row < part.own) {
            counts[row] = count;
        } else {
            // A sum of whole numbers does not depend on its order.
            atomicAdd(
                reinterpret_cast<unsigned long long*>(counts + part.piece_row[row - part.own]),
                static_cast<unsigned long long>(count));
        }
    }
}

template <class T, class Index>
__global__ void __launch_bounds__(256) diagonal_blocks(DiagonalBlocksArgs<T, Index> args) {
    const PartSlots<Index>& part = args.part;
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         slot < part.slots; slot += threads) {
        const std::int64_t* const start = part.start + slot / part.chunk;
        std::int64_t row = part.list.row_of(slot);
        row = row < part.own ? row : part.piece_row[row - part.own];
        const std::int64_t begin = row - row % args.size;
        for (std::int64_t e = start[0] + slot % part.chunk; e < start[1] && part.column[e] >= 0;
             e += part.chunk) {
            const std::int64_t column = part.column[e] - begin;
            // Columns from `own` on are those of other ranks.
            if (column >= 0 && column < args.size && part.column[e] < part.own) {
                args.blocks[row * args.size + column] = args.value[e];
            }
        }
    }
}

/// The offsets and columns of a matrix of full blocks of `size` rows on the diagonal, of which the
/// last one may be smaller. One thread takes one row.
template <class Index>
__global__ void __launch_bounds__(256)
    rows_of_blocks(std::int64_t rows, int size, Index* row_start, Index* column) {
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         row < rows; row += threads) {
        const std::int64_t begin = row - row % size;
        const std::int64_t end = begin + size < rows ? begin + size : rows;
        const std::int64_t to = begin * size + (row - begin) * (end - begin);
        for (std::int64_t j = begin; j < end; ++j) {
            column[to + j - begin] = static_cast<Index>(j);
        }
        row_start[row] = static_cast<Index>(to);
        if (row == rows - 1) {
            row_start[rows] = static_cast<Index>(to + end - begin);
        }
    }
}

}  // namespace quiver
