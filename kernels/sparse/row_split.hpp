// SPDX-License-Identifier: BSD-3-Clause
// The split of a matrix into interior and boundary rows, and the rows that it needs from other
// ranks. Private to kernels/sparse/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// The interior rows, without entries in columns of other ranks, then the boundary rows, which are
/// computed in stages.
struct RowSplit {
    std::vector<std::int64_t> order;  // empty: all rows are interior
    std::int64_t interior = 0;
    int stages = 1;
};

/// `in_stages`: true if the halo can arrive in stages. Throws as CsrRows::domain_map().
template <class T>
RowSplit split_rows(const CsrRows<T>& rows, bool in_stages);

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

template <class T>
NeededRows needed_rows(const CsrRows<T>& rows, const RowSplit& split);

}  // namespace quiver
