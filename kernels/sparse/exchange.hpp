// SPDX-License-Identifier: BSD-3-Clause
// exchange: sends items to the ranks that own them, by MPI_Alltoallv in rounds. Private to the
// project.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "blockvec/comm.hpp"

namespace quiver {

/// The MPI datatype of `bytes` bytes, at most 2^31 - 1.
struct ItemType {
    MPI_Datatype handle = MPI_DATATYPE_NULL;

    explicit ItemType(std::size_t bytes) {
        check_mpi(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &handle),
                  "MPI_Type_contiguous");
        check_mpi(MPI_Type_commit(&handle), "MPI_Type_commit");
    }
    ItemType(const ItemType&) = delete;
    ItemType& operator=(const ItemType&) = delete;
    ~ItemType() { MPI_Type_free(&handle); }
};

/// Sends item_at(i), i = 0 .. count - 1, to rank owner_of(item), and passes the received items to
/// consume(source, items). The items of a source come in the order in which it sent them.
/// Collective; `count` may differ between ranks. item_at and owner_of must be pure, and `consume`
/// must not throw. Memory: at most 2^17 items of send buffer and 2^21 of receive buffer (64 per
/// rank, from 2^15 ranks on), so that no count overflows an int.
template <class Item, class ItemAt, class OwnerOf, class Consume>
void exchange(const Comm& comm, std::int64_t count, ItemAt&& item_at, OwnerOf&& owner_of,
              Consume&& consume) {
    static_assert(std::is_trivially_copyable_v<Item>);
    if (comm.size() == 1) {
        for (std::int64_t i = 0; i < count; ++i) {
            const Item item = item_at(i);
            consume(0, std::span<const Item>(&item, 1));
        }
        return;
    }
    const std::int64_t largest = comm.max(count);
    if (largest == 0) {
        return;
    }
    const auto ranks = static_cast<std::size_t>(comm.size());
    // Large enough to amortise the latency of a message, small compared with a rank's share of a
    // matrix.
    constexpr std::size_t worthwhile = std::size_t{1} << 17;
    const std::size_t most = std::min({static_cast<std::size_t>(largest), worthwhile,
                                       std::max<std::size_t>((std::size_t{1} << 21) / ranks, 64)});
    // Left uninitialised, so that pages which no item reaches are never touched.
    std::unique_ptr<std::byte[]> send_bytes, receive_bytes;
    std::vector<int> destination, send_counts, send_starts, receive_counts, receive_starts;
    comm.agree([&] {
        send_bytes = std::make_unique_for_overwrite<std::byte[]>(most * sizeof(Item));
        receive_bytes = std::make_unique_for_overwrite<std::byte[]>(most * ranks * sizeof(Item));
        destination.resize(most);
        send_counts.resize(ranks);
        send_starts.resize(ranks + 1);
        receive_counts.resize(ranks);
        receive_starts.resize(ranks + 1);
    });
    Item* send = reinterpret_cast<Item*>(send_bytes.get());
    Item* receive = reinterpret_cast<Item*>(receive_bytes.get());
    const ItemType type(sizeof(Item));
    const auto step = static_cast<std::int64_t>(most);
    const std::int64_t rounds = (largest + step - 1) / step;
    for (std::int64_t round = 0; round < rounds; ++round) {
        const std::int64_t first = std::min(round * step, count);
        const std::int64_t last = std::min(first + step, count);
        std::fill(send_counts.begin(), send_counts.end(), 0);
        for (std::int64_t i = first; i < last; ++i) {
            const int owner = owner_of(item_at(i));
            destination[static_cast<std::size_t>(i - first)] = owner;
            ++send_counts[static_cast<std::size_t>(owner)];
        }
        std::partial_sum(send_counts.begin(), send_counts.end(), send_starts.begin() + 1);
        std::vector<int>& cursor = receive_starts;  // unused until the counts arrive
        std::copy(send_starts.begin(), send_starts.end(), cursor.begin());
        for (std::int64_t i = first; i < last; ++i) {
            const auto owner =
                static_cast<std::size_t>(destination[static_cast<std::size_t>(i - first)]);
            send[static_cast<std::size_t>(cursor[owner]++)] = item_at(i);
        }
        check_mpi(MPI_Alltoall(send_counts.data(), 1, MPI_INT, receive_counts.data(), 1, MPI_INT,
                               comm.handle()),
                  "MPI_Alltoall");
        receive_starts[0] = 0;
        std::partial_sum(receive_counts.begin(), receive_counts.end(), receive_starts.begin() + 1);
        check_mpi(
            MPI_Alltoallv(send, send_counts.data(), send_starts.data(), type.handle, receive,
                          receive_counts.data(), receive_starts.data(), type.handle, comm.handle()),
            "MPI_Alltoallv");
        for (std::size_t source = 0; source < ranks; ++source) {
            consume(static_cast<int>(source),
                    std::span<const Item>(receive + receive_starts[source],
                                          static_cast<std::size_t>(receive_counts[source])));
        }
    }
}

}  // namespace quiver
