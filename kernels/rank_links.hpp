// SPDX-License-Identifier: BSD-3-Clause
// RankLinks: all-reduces and exchanges of device memory between the ranks of a Context.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"

namespace quiver {

namespace cuda {
struct DeviceLinks;
struct PeerRows;
struct RankMessage;
class PeerHalo;
}  // namespace cuda

/// The method of an all-reduce of values in device memory.
enum class SumBy : std::uint8_t {
    automatic,  // by size, see RankLinks
    peers,      // one kernel that writes to the memory of all other GPUs of the node
    nccl,
    mpi  // MPI messages, staged in page-locked host memory
};

const char* to_string(SumBy way);

/// A service of a Context with several ranks, ctx.service<RankLinks>(). The first all-reduce or
/// sparse matrix that needs it constructs it, collectively. If every rank has its own GPU,
/// all-reduces and halos stay on the devices: by NCCL if libnccl.so.2 is found; on one node,
/// all-reduces of up to 64 KiB by a kernel of this library through peer memory (no multicast), and
/// halos by copies into the memory of the receiving rank. In all other cases (several ranks per
/// GPU, GPU and host ranks in one run, no NCCL) the data are staged in page-locked host memory and
/// go through MPI. A FallbackEvent gives the reason.
///
/// The environment variable QUIVER_LINKS disables methods: `mpi` (everything is staged), `nccl` (no
/// peer memory), `peers` (no NCCL).
class RankLinks {
  public:
    explicit RankLinks(Context& ctx);

    /// True if an all-reduce of `bytes` bytes of device memory stays there. The same on all ranks.
    bool sums_on_device(std::size_t bytes) const { return way_of(bytes) != SumBy::mpi; }
    /// values <- sum over the ranks of `count` values in device memory, enqueued on the stream.
    /// Requires sums_on_device(). The same ranks and GPUs give the same bits, on all ranks. Cost:
    /// one all-reduce.
    template <class T>
    void sum(Context& ctx, T* values, std::size_t count);
    /// Throws DeviceError if a rank did not join the last all-reduce within the time limit; the
    /// values are then NaN. Call it after the stream has finished the all-reduce.
    void check() const;

    /// True if the halo rows that ranks exchange travel from device to device.
    bool halos_on_device() const;
    /// True if halo rows travel by copies into peer memory, piece by piece.
    bool copies_halos() const;
    /// A halo that copy engines write directly into peer memory; null if that is impossible.
    /// Collective even when it returns null.
    std::shared_ptr<cuda::PeerHalo> peer_halo(Context& ctx, std::vector<cuda::PeerRows> receives,
                                              std::vector<cuda::PeerRows> sends);
    /// A stream besides the Context's, for exchanges.
    Stream side() const;
    /// Starts messages from and to device memory on the side stream, after the work already
    /// enqueued on the Context's stream. finish_exchange() makes the Context's stream wait for
    /// them. Requires NCCL.
    void start_exchange(Context& ctx, std::span<const cuda::RankMessage> sends,
                        std::span<const cuda::RankMessage> receives);
    void finish_exchange(Context& ctx);

    /// All rows of a distributed block, in rank order and without gaps, in device memory: valid in
    /// stream order and until the next call. `mine`: this rank's rows in device memory, of
    /// `row_bytes` bytes each, `pitch` bytes apart. Requires halos_on_device(). Collective; all
    /// ranks pass the same map and row_bytes. Throws MemoryError on all ranks. Cost: every rank
    /// sends its rows to every other rank; memory for all rows stays allocated. A new map, or rows
    /// larger than before, cost some messages through the host.
    const void* gather_rows(Context& ctx, const RowMap& map, const void* mine, std::size_t pitch,
                            std::size_t row_bytes);

    /// The method of an all-reduce of `bytes` bytes.
    SumBy way_of(std::size_t bytes) const;
    /// Forces a method, for measurements. All ranks must choose the same. Throws UnsupportedError
    /// with the reason if the method is not available.
    void choose(SumBy way);
    /// Descriptions for messages, with the reason for any fallback: "peer memory up to 64 KiB, else
    /// NCCL 2.28.3".
    std::string describe_sums() const;
    std::string describe_halos() const;
    /// Sets how many seconds an all-reduce through peer memory waits for a rank; the default is 60.
    void set_most_wait(double seconds);

  private:
    /// The memory of gather_rows().
    struct Gathered {
        RowMap map;
        std::shared_ptr<cuda::PeerHalo> copies;  // null without copies into peer memory
        Buffer rows;                             // for NCCL
    };
    void require(SumBy way) const;
    unsigned char* reserve_gathered(Context& ctx, const RowMap& map, std::size_t row_bytes);

    std::shared_ptr<cuda::DeviceLinks> device_;
    Gathered gathered_;
    /// The reason why everything goes through MPI; empty otherwise.
    std::string why_staged_;
    SumBy chosen_ = SumBy::automatic;
};

}  // namespace quiver
