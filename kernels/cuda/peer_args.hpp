// SPDX-License-Identifier: BSD-3-Clause
// Arguments and memory layout of an all-reduce through peer memory; shared by host and device code.
#pragma once

#include <cstdint>

namespace quiver {

constexpr int most_peers = 16;
constexpr int most_peer_blocks = 16;

/// values <- their sums over the ranks, added in rank order. Each rank has a window of memory that
/// the others write to: payloads for 2 turns x ranks, and one flag for each payload and each block.
template <class R>
struct PeerSumArgs {
    R* values;
    int count;
    int rank, ranks;
    unsigned turn;            // number of this all-reduce, from 1
    std::int64_t slot_bytes;  // bytes of a payload
    std::int64_t most_wait;   // nanoseconds
    unsigned* late;           // in host memory: 1 + a rank that did not join in time
    unsigned char* window[most_peers];

    std::int64_t slot(int sender) const {
        return static_cast<std::int64_t>(turn % 2) * ranks + sender;
    }
    /// The payload of `sender` in the window of `receiver`.
    R* payload(int receiver, int sender) const {
        return reinterpret_cast<R*>(window[receiver] + slot(sender) * slot_bytes);
    }
    /// The flag that holds the turn of the payload.
    unsigned* flag(int receiver, int sender, int block) const {
        unsigned char* const flags = window[receiver] + 2 * ranks * slot_bytes;
        return reinterpret_cast<unsigned*>(flags) + slot(sender) * most_peer_blocks + block;
    }
};

/// Bytes of a window.
constexpr std::int64_t peer_window_bytes(int ranks, std::int64_t slot_bytes) {
    return 2 * ranks * (slot_bytes + most_peer_blocks * std::int64_t{sizeof(unsigned)});
}

}  // namespace quiver
