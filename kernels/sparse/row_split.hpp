// SPDX-License-Identifier: BSD-3-Clause
// Which rows of a matrix wait for a halo, and what of other ranks they need. Private to
// kernels/sparse/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Rows without entries of other ranks' columns, then the others, which are computed in stages.
struct RowSplit {
    std::vector<std::int64_t> order;  // empty: all rows are of the first kind
    std::int64_t interior = 0;
    int stages = 1;
};

/// `in_stages`: the halo comes piece by piece.
template <class T>
RowSplit split_rows(const CsrRows<T>& rows, bool in_stages);

/// Columns of other ranks, by rank: as they ascend, or, of several stages, as they are first used.
struct NeededRows {
    std::vector<std::int64_t> ascending;
    std::vector<std::int64_t> place;  // of each in the halo; empty: its own number
    std::vector<std::int64_t> rows;   // in the halo's order
    std::vector<std::uint8_t> stage;  // of each of these

    std::int64_t place_of(std::int64_t column) const {
        const auto at =
            std::lower_bound(ascending.begin(), ascending.end(), column) - ascending.begin();
        return place.empty() ? at : place[static_cast<std::size_t>(at)];
    }
};

template <class T>
NeededRows needed_rows(const CsrRows<T>& rows, const RowSplit& split);

}  // namespace quiver
