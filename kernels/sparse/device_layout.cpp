// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/device_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "kernels/sparse/matrix_arrays.hpp"

namespace quiver {

/// The steps of choose_storage for rows in device memory.
template <class Index>
struct DeviceLayout<Index>::Steps {
    DeviceLayout& layout;
    Context& ctx;
    const FormatChoice& choice;

    void arrange(int chunk, std::int64_t sigma) { layout.arrange(ctx, chunk, sigma); }
    double padding() const {
        return layout.complete ? static_cast<double>(layout.stored) /
                                     static_cast<double>(layout.counts_.entries)
                               : 1.0;
    }
    void store_apart(std::int64_t /*longest*/) { layout.complete = false; }
    void arrange_tiles() {
        if (layout.complete && layout.columns_ == layout.rows_.rows) {
            layout.arrange_tiles(ctx, choice);
        }
    }
};

template <class Index>
DeviceLayout<Index>::DeviceLayout(Context& ctx, const FormatChoice& choice,
                                  const cuda::RowsOnDevice<Index>& rows, std::int64_t columns,
                                  const RowCounts& counts)
    : complete(counts.entries > 0 && counts.longest <= cuda::longest_sorted_row),
      format(choice.wish),
      wide(std::max(rows.rows, columns) > std::numeric_limits<std::int32_t>::max()),
      rows_(rows),
      columns_(columns),
      counts_(counts) {
    if (!complete) {
        return;
    }
    part = {{.rows = rows.rows}, {.stage = 1, .first_slot = rows.rows}};
    Steps steps{*this, ctx, choice};
    choose_storage(steps, format, choice, counts);
    if (complete) {
        find_runs(ctx);
    }
}

template <class Index>
void DeviceLayout<Index>::arrange(Context& ctx, int chunk, std::int64_t sigma) {
    complete = complete && sigma <= cuda::largest_window;
    if (!complete) {
        return;
    }
    format.chunk = chunk;
    format.sigma = sigma;
    row_ = Buffer();
    if (sigma > 1) {
        row_ =
            ctx.allocate(MemoryKind::device,
                         static_cast<std::size_t>(rows_.rows) * sizeof(std::int64_t), "row order");
        cuda::sort_windows(ctx, rows_, sigma, row_.as<std::int64_t>());
    }
    arrange_chunks(ctx);
}

template <class Index>
void DeviceLayout<Index>::arrange_chunks(Context& ctx) {
    const std::int64_t chunks = (rows_.rows + format.chunk - 1) / format.chunk;
    start = Buffer();
    start =
        ctx.allocate(MemoryKind::device,
                     static_cast<std::size_t>(chunks + 1) * sizeof(std::int64_t), "chunk offsets");
    stored = cuda::chunk_starts(ctx, rows_, row_.template as<const std::int64_t>(), format.chunk,
                                start.as<std::int64_t>());
    for (SparseLayout::Part& p : part) {
        p.chunk = format.chunk;
    }
    part[0].entries = stored;
    part[1].first_chunk = chunks;
}

template <class Index>
void DeviceLayout<Index>::arrange_tiles(Context& ctx, const FormatChoice& choice) {
    const int rows_of_tile = choice.wish.tile > 0 ? choice.wish.tile : usual_tile;
    const int groups_of_tile = rows_of_tile / rows_together;
    const std::int64_t groups = rows_.rows / rows_together;
    ChunkSampler sampler;
    sampler.chunks = groups;
    sampler.chunk = rows_together;
    sampler.threads = choice.threads;
    sampler.targets = [&](std::span<const std::int64_t> wanted) {
        cuda::GroupColumns columns = cuda::columns_of_groups(ctx, rows_, wanted, rows_together);
        return ChunkTargets{std::move(columns.start), std::move(columns.column)};
    };
    sampler.chunk_of = [&](std::int64_t row) {
        const std::int64_t group = row / rows_together;
        return group < groups ? group : -1;
    };
    const std::vector<std::int64_t> order = useful_tiles(sampler, groups_of_tile, choice, [&] {
        const auto size = static_cast<std::size_t>(rows_.rows) + 1;
        std::vector<std::int64_t> row_start = in_host_memory<std::int64_t>(
            ctx, Place::device, std::span<const Index>(rows_.row_start, size));
        const std::int64_t first = row_start.front();
        for (std::int64_t& offset : row_start) {
            offset -= first;
        }
        const std::vector<Index> column = in_host_memory<Index>(
            ctx, Place::device,
            std::span<const Index>(rows_.column, static_cast<std::size_t>(counts_.entries)));
        return tiled_order({row_start,
                            EntryColumns(std::span<const Index>(column)),
                            0,
                            {},
                            0,
                            groups,
                            rows_together},
                           groups_of_tile, choice.threads);
    });
    if (order.empty()) {
        return;
    }
    const std::int64_t before = stored;
    row_ = ctx.allocate(MemoryKind::device,
                        static_cast<std::size_t>(rows_.rows) * sizeof(std::int64_t), "row order");
    cuda::rows_of_groups(ctx, order, rows_together, rows_.rows, row_.as<std::int64_t>());
    arrange_chunks(ctx);
    if (static_cast<double>(stored) > most_growth_by_tiles * static_cast<double>(before)) {
        row_ = Buffer();
        arrange_chunks(ctx);
        return;
    }
    format.tile = rows_of_tile;
}

template <class Index>
void DeviceLayout<Index>::find_runs(Context& ctx) {
    constexpr unsigned longest_run = 1U << 30;
    part[0].run = part[1].run = longest_run;
    if (row_.bytes() > 0) {
        const auto* row = row_.template as<const std::int64_t>();
        part[0].run = 1 << std::countr_zero(cuda::row_breaks(ctx, row, rows_.rows) | longest_run);
    }
    const std::int64_t runs = (rows_.rows + part[0].run - 1) / part[0].run;
    part[1].first_run = runs;
    if (row_.bytes() == 0) {
        return;
    }
    const auto* row = row_.template as<const std::int64_t>();
    const auto fill = [&]<class To>(To /*width*/) {
        list = ctx.allocate(MemoryKind::device, static_cast<std::size_t>(runs) * sizeof(To),
                            "row list");
        cuda::first_rows(ctx, row, part[0].run, runs, list.as<To>());
    };
    wide ? fill(std::int64_t{}) : fill(std::int32_t{});
}

template class DeviceLayout<std::int32_t>;
template class DeviceLayout<std::int64_t>;

}  // namespace quiver
