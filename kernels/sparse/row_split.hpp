// SPDX-License-Identifier: BSD-3-Clause
// The split of a matrix into interior and boundary rows, and the rows that it needs from other
// ranks. Private to kernels/sparse/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Distinct columns of other ranks, ascending. Memory: about twice the result.
std::vector<std::int64_t> remote_columns(const RowMap& map, std::span<const std::int64_t> columns);

/// The interior rows, without entries in columns of other ranks, then the boundary rows, which are
/// computed in stages.
struct RowSplit {
    std::vector<std::int64_t> order;  // empty: all rows are interior
    std::int64_t interior = 0;
    int stages = 1;
};

/// `in_stages`: true if the halo can arrive in stages. Throws as CsrRows::domain_map(). Cost: one
/// pass over the columns, unless this rank has all of them.
template <class T>
RowSplit split_rows(const CsrRows<T>& rows, bool in_stages, int threads = 1);

/// The columns of other ranks, sorted by rank; within a rank in ascending order or, with several
/// stages, in order of first use.
struct NeededRows {
    std::vector<std::int64_t> ascending;
    std::vector<std::int64_t> place;  // position of each in the halo; empty: the same order
    std::vector<std::int64_t> rows;   // the columns in the halo's order
    std::vector<std::uint8_t> stage;  // stage of each of `rows`

    std::int64_t place_of(std::int64_t column) const {
        const auto at =
            std::lower_bound(ascending.begin(), ascending.end(), column) - ascending.begin();
        return place.empty() ? at : place[static_cast<std::size_t>(at)];
    }
};

/// Cost: one pass over the boundary rows, and a sort of the columns of other ranks.
template <class T>
NeededRows needed_rows(const CsrRows<T>& rows, const RowSplit& split);

}  // namespace quiver
