// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/row_split.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <utility>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_layout.hpp"

namespace quiver {
namespace {

/// Calls use(column) for the columns of other ranks in the boundary rows of a range of split.order.
template <class T, class Use>
void visit_remote(const CsrRows<T>& rows, const RowSplit& split, std::int64_t first_slot,
                  std::int64_t slots, Use&& use) {
    const RowMap map = rows.domain_map();
    const std::int64_t first = map.first_row();
    const std::int64_t last = first + map.local_rows();
    for (std::int64_t s = first_slot; s < first_slot + slots; ++s) {
        const auto row = static_cast<std::size_t>(split.order[static_cast<std::size_t>(s)]);
        for (auto k = static_cast<std::size_t>(rows.row_start[row]);
             k < static_cast<std::size_t>(rows.row_start[row + 1]); ++k) {
            if (rows.column[k] < first || rows.column[k] >= last) {
                use(rows.column[k]);
            }
        }
    }
}

/// Collects distinct columns. Memory: about twice the result.
class DistinctColumns {
  public:
    void add(std::int64_t column) {
        columns_.push_back(column);
        if (columns_.size() == limit_) {
            compact();
            limit_ = std::max(limit_, 2 * columns_.size());
        }
    }
    /// Ascending.
    std::vector<std::int64_t> take() {
        compact();
        return std::move(columns_);
    }

  private:
    void compact() {
        std::sort(columns_.begin(), columns_.end());
        columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
    }
    std::vector<std::int64_t> columns_;
    std::size_t limit_ = std::size_t{1} << 20;
};

}  // namespace

std::vector<std::int64_t> remote_columns(const RowMap& map, std::span<const std::int64_t> columns) {
    const std::int64_t first = map.first_row();
    const std::int64_t last = first + map.local_rows();
    DistinctColumns distinct;
    for (const std::int64_t column : columns) {
        if (column < first || column >= last) {
            distinct.add(column);
        }
    }
    return distinct.take();
}

template <class T>
RowSplit split_rows(const CsrRows<T>& rows, bool in_stages, int threads) {
    RowSplit split;
    const std::int64_t own = rows.map.local_rows();
    const RowMap columns = rows.domain_map();
    if (columns.local_rows() == columns.global_rows()) {
        split.interior = own;
        return split;
    }
    const std::int64_t first = columns.first_row();
    const std::int64_t last = first + columns.local_rows();
    std::vector<char> inside(static_cast<std::size_t>(own));
    std::int64_t interior = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : interior)
    for (std::int64_t i = 0; i < own; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool all = std::all_of(
            rows.column.begin() + rows.row_start[at], rows.column.begin() + rows.row_start[at + 1],
            [&](std::int64_t column) { return column >= first && column < last; });
        inside[at] = all ? 1 : 0;
        interior += all ? 1 : 0;
    }
    split.interior = interior;
    if (interior == own) {
        return split;
    }
    split.order.resize(static_cast<std::size_t>(own));
    auto next_inside = split.order.begin();
    auto next_boundary = split.order.begin() + interior;
    for (std::int64_t i = 0; i < own; ++i) {
        *(inside[static_cast<std::size_t>(i)] != 0 ? next_inside : next_boundary)++ = i;
    }
    if (in_stages) {
        // A stage of fewer rows would take less time than its launch costs.
        constexpr std::int64_t rows_of_stage = 400'000;
        split.stages = static_cast<int>(
            std::clamp<std::int64_t>((own - interior) / rows_of_stage, 1, most_stages));
    }
    return split;
}

template <class T>
NeededRows needed_rows(const CsrRows<T>& rows, const RowSplit& split) {
    NeededRows needed;
    DistinctColumns distinct;
    visit_remote(rows, split, split.interior, std::ssize(split.order) - split.interior,
                 [&](std::int64_t column) { distinct.add(column); });
    needed.ascending = distinct.take();
    const std::size_t count = needed.ascending.size();
    needed.stage.assign(count, 0);
    if (split.stages == 1) {
        needed.rows = needed.ascending;
        return needed;
    }
    const RowMap columns = rows.domain_map();
    // The next free position of each rank.
    std::vector<std::int64_t> next(static_cast<std::size_t>(columns.ranks()));
    for (std::size_t i = count; i-- > 0;) {
        next[static_cast<std::size_t>(columns.owner(needed.ascending[i]))] =
            static_cast<std::int64_t>(i);
    }
    needed.rows.resize(count);
    needed.place.assign(count, -1);
    std::int64_t first_slot = split.interior;
    std::uint8_t stage = 0;
    for (const std::int64_t many :
         stage_rows(std::ssize(split.order) - split.interior, split.stages)) {
        visit_remote(rows, split, first_slot, many, [&](std::int64_t column) {
            const auto i = static_cast<std::size_t>(
                std::lower_bound(needed.ascending.begin(), needed.ascending.end(), column) -
                needed.ascending.begin());
            if (needed.place[i] < 0) {
                std::int64_t& place = next[static_cast<std::size_t>(columns.owner(column))];
                needed.rows[static_cast<std::size_t>(place)] = column;
                needed.stage[static_cast<std::size_t>(place)] = stage;
                needed.place[i] = place++;
            }
        });
        first_slot += many;
        ++stage;
    }
    return needed;
}

#define QUIVER_INSTANTIATE(T)                                   \
    template RowSplit split_rows(const CsrRows<T>&, bool, int); \
    template NeededRows needed_rows(const CsrRows<T>&, const RowSplit&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
