// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/row_split.hpp"

#include <complex>
#include <cstddef>

#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_layout.hpp"

namespace quiver {
namespace {

/// Distinct columns of other ranks, ascending. Memory: about twice the result.
template <class T>
std::vector<std::int64_t> remote_columns(const CsrRows<T>& rows) {
    const RowMap columns = rows.domain_map();
    const std::int64_t first = columns.first_row();
    const std::int64_t last = first + columns.local_rows();
    std::vector<std::int64_t> remote;
    const auto compact = [&] {
        std::sort(remote.begin(), remote.end());
        remote.erase(std::unique(remote.begin(), remote.end()), remote.end());
    };
    std::size_t limit = std::size_t{1} << 20;
    for (const std::int64_t column : rows.column) {
        if (column < first || column >= last) {
            remote.push_back(column);
            if (remote.size() == limit) {
                compact();
                limit = std::max(limit, 2 * remote.size());
            }
        }
    }
    compact();
    return remote;
}

}  // namespace

template <class T>
RowSplit split_rows(const CsrRows<T>& rows, bool in_stages) {
    RowSplit split;
    const RowMap columns = rows.domain_map();
    const std::int64_t first = columns.first_row();
    const std::int64_t last = first + columns.local_rows();
    std::vector<std::int64_t> boundary;
    for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
        const auto begin = rows.column.begin() + rows.row_start[static_cast<std::size_t>(i)];
        const auto end = rows.column.begin() + rows.row_start[static_cast<std::size_t>(i) + 1];
        const bool inside = std::all_of(
            begin, end, [&](std::int64_t column) { return column >= first && column < last; });
        (inside ? split.order : boundary).push_back(i);
    }
    split.interior = std::ssize(split.order);
    if (boundary.empty()) {
        split.order.clear();
        return split;
    }
    split.order.insert(split.order.end(), boundary.begin(), boundary.end());
    if (in_stages) {
        // A stage of fewer rows would take less time than its launch costs.
        constexpr std::int64_t rows_of_stage = 400'000;
        split.stages = static_cast<int>(
            std::clamp<std::int64_t>(std::ssize(boundary) / rows_of_stage, 1, most_stages));
    }
    return split;
}

template <class T>
NeededRows needed_rows(const CsrRows<T>& rows, const RowSplit& split) {
    NeededRows needed;
    needed.ascending = remote_columns(rows);
    const std::size_t count = needed.ascending.size();
    needed.stage.assign(count, 0);
    if (split.stages == 1) {
        needed.rows = needed.ascending;
        return needed;
    }
    const RowMap columns = rows.domain_map();
    const std::int64_t first = columns.first_row();
    const std::int64_t last = first + columns.local_rows();
    // The next free position of each rank.
    std::vector<std::int64_t> next(static_cast<std::size_t>(columns.ranks()));
    for (std::size_t i = count; i-- > 0;) {
        next[static_cast<std::size_t>(columns.owner(needed.ascending[i]))] =
            static_cast<std::int64_t>(i);
    }
    needed.rows.resize(count);
    needed.place.assign(count, -1);
    auto row = split.order.begin() + split.interior;
    std::uint8_t stage = 0;
    for (const std::int64_t many :
         stage_rows(std::ssize(split.order) - split.interior, split.stages)) {
        for (const auto end = row + many; row != end; ++row) {
            const auto at = static_cast<std::size_t>(*row);
            for (std::int64_t k = rows.row_start[at]; k < rows.row_start[at + 1]; ++k) {
                const std::int64_t column = rows.column[static_cast<std::size_t>(k)];
                if (column >= first && column < last) {
                    continue;
                }
                const auto i = static_cast<std::size_t>(
                    std::lower_bound(needed.ascending.begin(), needed.ascending.end(), column) -
                    needed.ascending.begin());
                if (needed.place[i] < 0) {
                    std::int64_t& place = next[static_cast<std::size_t>(columns.owner(column))];
                    needed.rows[static_cast<std::size_t>(place)] = column;
                    needed.stage[static_cast<std::size_t>(place)] = stage;
                    needed.place[i] = place++;
                }
            }
        }
        ++stage;
    }
    return needed;
}

#define QUIVER_INSTANTIATE(T)                              \
    template RowSplit split_rows(const CsrRows<T>&, bool); \
    template NeededRows needed_rows(const CsrRows<T>&, const RowSplit&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
