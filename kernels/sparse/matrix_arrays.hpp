// SPDX-License-Identifier: BSD-3-Clause
// Arrays of a matrix in the place of a Context. Private to kernels/sparse/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/sparse_layout.hpp"

namespace quiver {

/// Copies an array of the host to device memory, with elements converted to To, and waits for the
/// copy. All threads convert a piece into page-locked memory while the piece before is in flight.
template <class To, class From>
void copy_to_device(Context& ctx, To* to, std::span<const From> from) {
    constexpr std::size_t piece = (std::size_t{16} << 20) / sizeof(To);
    constexpr std::size_t of_thread = (std::size_t{64} << 10) / sizeof(To);
    const std::size_t most = std::min(piece, from.size());
    const Scratch stage = ctx.scratch(MemoryKind::pinned, 2 * most * sizeof(To));
    std::array<DeviceEvent, 2> copied{device::create_event(false), device::create_event(false)};
    for (std::size_t begin = 0, i = 0; begin < from.size(); begin += piece, ++i) {
        const std::size_t count = std::min(piece, from.size() - begin);
        To* const here = stage.as<To>() + i % 2 * most;
        if (i >= 2) {
            device::synchronize(copied[i % 2]);
        }
#pragma omp parallel for num_threads(ctx.threads()) schedule(static)
        for (std::size_t block = 0; block < count; block += of_thread) {
            const auto part = from.subspan(begin + block, std::min(of_thread, count - block));
            if constexpr (std::is_same_v<To, From>) {
                std::copy(part.begin(), part.end(), here + block);
            } else {
                std::transform(part.begin(), part.end(), here + block,
                               [](From value) { return static_cast<To>(value); });
            }
        }
        device::copy(to + begin, here, count * sizeof(To), ctx.stream());
        device::record(copied[i % 2], ctx.stream());
    }
    ctx.synchronize();
    for (const DeviceEvent event : copied) {
        device::destroy_event(event);
    }
}

inline Buffer to_place(Context& ctx, Buffer host, const char* what) {
    if (ctx.place() == Place::host || host.bytes() == 0) {
        return host;
    }
    Buffer result = ctx.allocate(MemoryKind::device, host.bytes(), what);
    copy_to_device(ctx, result.as<char>(),
                   std::span<const char>(host.as<const char>(), host.bytes()));
    return result;
}

template <class V>
Buffer host_array(Context& ctx, std::int64_t size, const char* what) {
    return ctx.allocate(MemoryKind::host, static_cast<std::size_t>(size) * sizeof(V), what);
}

/// Fills a new array in the Context's place with at(i), using all threads.
template <class V, class At>
Buffer make_array(Context& ctx, std::int64_t size, const char* what, At&& at) {
    Buffer host = host_array<V>(ctx, size, what);
    V* data = host.as<V>();
#pragma omp parallel for num_threads(ctx.threads()) schedule(static)
    for (std::int64_t i = 0; i < size; ++i) {
        data[i] = static_cast<V>(at(static_cast<std::size_t>(i)));
    }
    return to_place(ctx, std::move(host), what);
}

/// The entries in storage order: at(k) for entry k of the rows, sum_at(p) for piece p in a sum,
/// `padding` elsewhere.
template <class V, class At, class SumAt>
Buffer make_entries(Context& ctx, const SparseLayout& layout,
                    const std::vector<std::int64_t>& row_start, const char* what, V padding,
                    At&& at, SumAt&& sum_at) {
    // The kernels of a device read entry 0 in place of entries that do not exist.
    const std::int64_t size =
        layout.stored() + (layout.stored() == 0 && ctx.place() == Place::device ? 1 : 0);
    Buffer host = host_array<V>(ctx, size, what);
    V* data = host.as<V>();
    std::fill(data + layout.stored(), data + size, padding);
    for (const SparseLayout::Part& part : layout.part) {
        const int chunk = part.chunk;
        const bool sums = part.kind == SparseLayout::Kind::sums;
        const std::int64_t chunks = (part.rows + chunk - 1) / chunk;
#pragma omp parallel for num_threads(ctx.threads()) schedule(static)
        for (std::int64_t c = 0; c < chunks; ++c) {
            const auto start = layout.start.begin() + part.first_chunk + c;
            if (chunk > 1) {  // chunks of one row have no padding
                std::fill(data + start[0], data + start[1], padding);
            }
            for (std::int64_t s = c * chunk; s < std::min((c + 1) * chunk, part.rows); ++s) {
                const auto [first, count] = layout.entries_of(part, s, row_start);
                V* to = data + start[0] + (s - c * chunk);
                for (std::int64_t k = first; k < first + count; ++k, to += chunk) {
                    *to = static_cast<V>(sums ? sum_at(k) : at(static_cast<std::size_t>(k)));
                }
            }
        }
    }
    return to_place(ctx, std::move(host), what);
}

/// Throws NumericalError if `sound` is false: an index of a matrix is out of range.
inline void require_sound_index(bool sound) {
    if (!sound) {
        throw NumericalError(
            "sparse matrix: an index array has changed in memory; read the matrix again");
    }
}

/// The elements of an array in either place, as To, in host memory.
template <class To, class V>
std::vector<To> in_host_memory(Context& ctx, Place place, std::span<const V> from) {
    if (place == Place::host) {
        return {from.begin(), from.end()};
    }
    std::vector<V> values(from.size());
    if (!values.empty()) {
        device::copy(values.data(), from.data(), from.size_bytes(), ctx.stream());
        ctx.synchronize();
    }
    if constexpr (std::is_same_v<To, V>) {
        return values;
    } else {
        return {values.begin(), values.end()};
    }
}

}  // namespace quiver
