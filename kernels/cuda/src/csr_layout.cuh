// SPDX-License-Identifier: BSD-3-Clause
// The storage order of a caller's compressed rows on a device. Each kernel gives the numbers that
// SparseLayout computes on the host.
#pragma once

#include "kernels/cuda/csr_args.hpp"
#include "scalar.cuh"

namespace quiver {

/// Calls use(i) for i = first .. count - 1, divided over all threads of the grid.
template <class Use>
void for_each_of_grid(std::int64_t first, std::int64_t count, Use use) {
    const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = first + static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < count; i += threads) {
        use(i);
    }
}

/// The facts about the rows; *facts must be zero before. Maxima of whole numbers do not depend on
/// their order.
template <class From>
__global__ void __launch_bounds__(256)
    csr_facts(const From* row_start, std::int64_t rows, CsrFacts* facts) {
    std::int64_t longest = 0;
    bool ascending = true;
    for_each_of_grid(0, rows, [&](std::int64_t i) {
        const std::int64_t length = std::int64_t{row_start[i + 1]} - std::int64_t{row_start[i]};
        ascending = ascending && length >= 0;
        longest = length > longest ? length : longest;
    });
    if (longest > 0) {
        atomicMax(&facts->longest, static_cast<unsigned long long>(longest));
    }
    if (!ascending) {
        facts->descending = 1;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        facts->first = row_start[0];
        facts->last = row_start[rows];
    }
}

/// Sorts the rows of each window of sigma rows by descending length; rows of equal length keep
/// their order. One window a block. `size` is a power of two that is not less than sigma or the
/// number of rows; the block has 8 bytes of shared memory for each.
template <class From>
__global__ void __launch_bounds__(256)
    sort_windows(const From* row_start, std::int64_t rows, std::int64_t sigma, int size,
                 std::int64_t* row) {
    auto* const key = dynamic_shared<unsigned long long>();
    const std::int64_t begin = blockIdx.x * sigma;
    const std::int64_t slots = minimum(sigma, rows - begin);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        // The longest row has the smallest key; the number of a row decides between equal lengths.
        key[i] = ~0ULL;
        if (i < slots) {
            const auto length =
                static_cast<unsigned>(row_start[begin + i + 1] - row_start[begin + i]);
            key[i] = static_cast<unsigned long long>(~length) << 32 | static_cast<unsigned>(i);
        }
    }
    // A bitonic sort.
    for (int run = 2; run <= size; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size; i += blockDim.x) {
                const int other = i ^ distance;
                const bool ascending = (i & run) == 0;
                if (other > i && (key[i] > key[other]) == ascending) {
                    const unsigned long long larger = key[i];
                    key[i] = key[other];
                    key[other] = larger;
                }
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < slots; i += blockDim.x) {
        row[begin + i] = begin + static_cast<std::int64_t>(key[i] & 0xffffffffU);
    }
}

/// start[c] = the entries of chunk c with padding. `row`: the row of each slot; null: slot s is row
/// s.
template <class From>
__global__ void __launch_bounds__(256)
    chunk_entries(const From* row_start, std::int64_t rows, const std::int64_t* row, int chunk,
                  std::int64_t chunks, std::int64_t* start) {
    for_each_of_grid(0, chunks, [&](std::int64_t c) {
        std::int64_t longest = 0;
        const std::int64_t end = minimum((c + 1) * chunk, rows);
        for (std::int64_t s = c * chunk; s < end; ++s) {
            const std::int64_t i = row == nullptr ? s : row[s];
            const std::int64_t length = std::int64_t{row_start[i + 1]} - std::int64_t{row_start[i]};
            longest = length > longest ? length : longest;
        }
        start[c] = longest * chunk;
    });
}

/// Sets in *breaks the bits of all slots whose row does not follow that of the slot before.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    row_breaks(const std::int64_t* row, std::int64_t rows, unsigned* breaks) {
    unsigned found = 0;
    for_each_of_grid(1, rows, [&](std::int64_t s) {
        found |= row[s] == row[s - 1] + 1 ? 0U : static_cast<unsigned>(s);
    });
    if (found != 0) {
        atomicOr(breaks, found);
    }
}

/// list[r] = the row of slot r * run.
template <class Index>
__global__ void __launch_bounds__(256)
    first_rows(const std::int64_t* row, std::int64_t run, std::int64_t runs, Index* list) {
    for_each_of_grid(0, runs, [&](std::int64_t r) { list[r] = static_cast<Index>(row[r * run]); });
}

/// The rows in the order of their groups: `order` has the group of each `together` slots; the rows
/// behind the last group keep their places.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    rows_of_groups(const std::int64_t* order, std::int64_t groups, int together, std::int64_t rows,
                   std::int64_t* row) {
    for_each_of_grid(0, rows, [&](std::int64_t s) {
        const std::int64_t group = s / together;
        row[s] = group < groups ? order[group] * together + s % together : s;
    });
}

/// bounds[2 i] and bounds[2 i + 1] = the first entry of group[i], and the end of its entries.
template <class From>
__global__ void __launch_bounds__(256)
    group_bounds(const From* row_start, const std::int64_t* group, std::int64_t groups,
                 int together, std::int64_t* bounds) {
    for_each_of_grid(0, groups, [&](std::int64_t i) {
        const std::int64_t first = row_start[0];
        bounds[2 * i] = row_start[group[i] * together] - first;
        bounds[2 * i + 1] = row_start[(group[i] + 1) * together] - first;
    });
}

/// Copies the columns of entries bounds[2 i] .. bounds[2 i + 1] - 1 to `columns`, from place[i] on.
/// One block takes one group at a time.
template <class From>
__global__ void __launch_bounds__(256)
    group_columns(const From* column, const std::int64_t* bounds, const std::int64_t* place,
                  std::int64_t groups, std::int64_t* columns) {
    for (std::int64_t i = blockIdx.x; i < groups; i += gridDim.x) {
        const std::int64_t first = bounds[2 * i];
        const std::int64_t count = bounds[2 * i + 1] - first;
        for (std::int64_t k = threadIdx.x; k < count; k += blockDim.x) {
            columns[place[i] + k] = column[first + k];
        }
    }
}

}  // namespace quiver
