// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/csr_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class Index>
constexpr const char* integer_name = sizeof(Index) == 4 ? "int" : "long";

/// Launches an instance of a kernel of csr_layout.cuh with a thread for each of `count` numbers, up
/// to 16 blocks per multiprocessor.
template <class Of, class... Arguments>
void launch_layout(Context& ctx, const char* name, const Of& of, std::int64_t count,
                   const Arguments&... arguments) {
    launch(ctx, ctx.service<Specialiser>().get(ctx, "csr_layout.cuh", instance(name, of)),
           {.blocks = blocks_for(ctx, count, block_threads, 16), .threads = block_threads},
           arguments...);
}

/// A zeroed V of the device, which use(pointer) changes in stream order. Waits for its value.
template <class V, class Use>
V value_after(Context& ctx, Use&& use) {
    const Scratch memory = ctx.scratch(MemoryKind::device, sizeof(V));
    device::set_zero(memory.as<void>(), sizeof(V), ctx.stream());
    use(memory.as<V>());
    V value{};
    device::copy(&value, memory.as<void>(), sizeof(V), ctx.stream());
    ctx.synchronize();
    return value;
}

/// Copies an array of the host to device memory, in stream order. The array must live until the
/// stream is synchronised.
void to_device(Context& ctx, const Scratch& to, std::span<const std::int64_t> from) {
    device::copy(to.as<void>(), from.data(), from.size_bytes(), ctx.stream());
}

}  // namespace

template <class From>
CsrFacts csr_facts(Context& ctx, const RowsOnDevice<From>& csr) {
    return value_after<CsrFacts>(ctx, [&](CsrFacts* facts) {
        launch_layout(ctx, "csr_facts", integer_name<From>, csr.rows, csr.row_start, csr.rows,
                      facts);
    });
}

template <class From>
void sort_windows(Context& ctx, const RowsOnDevice<From>& csr, std::int64_t sigma,
                  std::int64_t* row) {
    const auto size =
        static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min(sigma, csr.rows))));
    const auto windows = static_cast<unsigned>((csr.rows + sigma - 1) / sigma);
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "csr_layout.cuh",
                                          instance("sort_windows", integer_name<From>)),
           {.blocks = windows,
            .threads = block_threads,
            .shared_bytes = static_cast<std::size_t>(size) * sizeof(std::uint64_t)},
           csr.row_start, csr.rows, sigma, size, row);
}

template <class From>
std::int64_t chunk_starts(Context& ctx, const RowsOnDevice<From>& csr, const std::int64_t* row,
                          int chunk, std::int64_t* start) {
    const std::int64_t chunks = (csr.rows + chunk - 1) / chunk;
    launch_layout(ctx, "chunk_entries", integer_name<From>, chunks, csr.row_start, csr.rows, row,
                  chunk, chunks, start);
    prefix_sums(ctx, start, chunks);
    std::int64_t stored = 0;
    device::copy(&stored, start + chunks, sizeof(stored), ctx.stream());
    ctx.synchronize();
    return stored;
}

unsigned row_breaks(Context& ctx, const std::int64_t* row, std::int64_t rows) {
    return value_after<unsigned>(ctx, [&](unsigned* breaks) {
        launch_layout(ctx, "row_breaks", block_threads, rows, row, rows, breaks);
    });
}

template <class Index>
void first_rows(Context& ctx, const std::int64_t* row, std::int64_t run, std::int64_t runs,
                Index* list) {
    launch_layout(ctx, "first_rows", integer_name<Index>, runs, row, run, runs, list);
}

void rows_of_groups(Context& ctx, std::span<const std::int64_t> order, int together,
                    std::int64_t rows, std::int64_t* row) {
    const Scratch on_device = ctx.scratch(MemoryKind::device, order.size_bytes());
    to_device(ctx, on_device, order);
    launch_layout(ctx, "rows_of_groups", block_threads, rows, on_device.as<const std::int64_t>(),
                  std::ssize(order), together, rows, row);
    ctx.synchronize();
}

template <class From>
GroupColumns columns_of_groups(Context& ctx, const RowsOnDevice<From>& csr,
                               std::span<const std::int64_t> groups, int together) {
    const std::int64_t count = std::ssize(groups);
    const Scratch group = ctx.scratch(MemoryKind::device, groups.size_bytes());
    const Scratch bounds = ctx.scratch(MemoryKind::device, 2 * groups.size_bytes());
    to_device(ctx, group, groups);
    launch_layout(ctx, "group_bounds", integer_name<From>, count, csr.row_start,
                  group.as<const std::int64_t>(), count, together, bounds.as<std::int64_t>());
    std::vector<std::int64_t> bounds_on_host(2 * groups.size());
    device::copy(bounds_on_host.data(), bounds.as<void>(), 2 * groups.size_bytes(), ctx.stream());
    ctx.synchronize();
    GroupColumns result;
    std::vector<std::int64_t> places(groups.size());
    result.start.assign(1, 0);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        places[i] = static_cast<std::int64_t>(result.start.back());
        result.start.push_back(
            result.start.back() +
            static_cast<std::size_t>(bounds_on_host[2 * i + 1] - bounds_on_host[2 * i]));
    }
    result.column.resize(result.start.back());
    if (result.column.empty()) {
        return result;
    }
    const std::size_t bytes = result.column.size() * sizeof(std::int64_t);
    const Scratch columns = ctx.scratch(MemoryKind::device, bytes);
    to_device(ctx, group, places);
    launch_layout(ctx, "group_columns", integer_name<From>, count * block_threads, csr.column,
                  bounds.as<const std::int64_t>(), group.as<const std::int64_t>(), count,
                  columns.as<std::int64_t>());
    device::copy(result.column.data(), columns.as<void>(), bytes, ctx.stream());
    ctx.synchronize();
    return result;
}

#define QUIVER_INSTANTIATE(Index)                                                                  \
    template CsrFacts csr_facts(Context&, const RowsOnDevice<Index>&);                             \
    template void sort_windows(Context&, const RowsOnDevice<Index>&, std::int64_t, std::int64_t*); \
    template std::int64_t chunk_starts(Context&, const RowsOnDevice<Index>&, const std::int64_t*,  \
                                       int, std::int64_t*);                                        \
    template void first_rows(Context&, const std::int64_t*, std::int64_t, std::int64_t, Index*);   \
    template GroupColumns columns_of_groups(Context&, const RowsOnDevice<Index>&,                  \
                                            std::span<const std::int64_t>, int);
QUIVER_INSTANTIATE(std::int32_t)
QUIVER_INSTANTIATE(std::int64_t)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
