// SPDX-License-Identifier: BSD-3-Clause
// The kernels that choose the storage order of compressed rows in device memory; see
// src/csr_layout.cuh. Arrays without a place in their comment are in device memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/cuda/csr_args.hpp"

namespace quiver::cuda {

/// Offsets and columns of a caller's rows. From: 32 or 64 bits.
template <class From>
struct RowsOnDevice {
    std::int64_t rows;
    const From* row_start;  // may begin with any number
    const From* column;
};

/// Windows of more rows, and rows of more entries, cannot be sorted.
inline constexpr std::int64_t largest_window = 4096;
inline constexpr std::int64_t longest_sorted_row = (std::int64_t{1} << 32) - 1;

/// Waits for the result.
template <class From>
CsrFacts csr_facts(Context& ctx, const RowsOnDevice<From>& csr);

/// row[s] = the row of slot s after the rows of each window of sigma rows were sorted by descending
/// length.
template <class From>
void sort_windows(Context& ctx, const RowsOnDevice<From>& csr, std::int64_t sigma,
                  std::int64_t* row);

/// start[c] = the first entry of chunk c, and start[chunks] the number of all entries with padding,
/// which is returned. `row` may be null: slot s is row s. Waits for the result.
template <class From>
std::int64_t chunk_starts(Context& ctx, const RowsOnDevice<From>& csr, const std::int64_t* row,
                          int chunk, std::int64_t* start);

/// The bits of all slots below 2^30 whose row does not follow that of the slot before. Waits for
/// the result.
unsigned row_breaks(Context& ctx, const std::int64_t* row, std::int64_t rows);

/// list[r] = row[r * run] for all runs.
template <class Index>
void first_rows(Context& ctx, const std::int64_t* row, std::int64_t run, std::int64_t runs,
                Index* list);

/// The rows in the order of their groups of `together` rows, where `order` is in host memory; the
/// other rows keep their places.
void rows_of_groups(Context& ctx, std::span<const std::int64_t> order, int together,
                    std::int64_t rows, std::int64_t* row);

/// The columns of the entries of some groups of `together` rows, in host memory: those of group i
/// are column[start[i]] .. column[start[i + 1] - 1].
struct GroupColumns {
    std::vector<std::size_t> start;
    std::vector<std::int64_t> column;
};
template <class From>
GroupColumns columns_of_groups(Context& ctx, const RowsOnDevice<From>& csr,
                               std::span<const std::int64_t> groups, int together);

}  // namespace quiver::cuda
