// SPDX-License-Identifier: BSD-3-Clause
// RankLinks: how the ranks of a Context add up and exchange what lies in device memory.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver {

namespace cuda {
struct DeviceLinks;
struct PeerRows;
struct RankMessage;
class PeerHalo;
}  // namespace cuda

/// How a sum over the ranks of values in device memory is made.
enum class SumBy : std::uint8_t {
    automatic,  // by size, see RankLinks
    peers,      // one kernel that writes to the memory of all other GPUs of the node
    nccl,
    mpi  // copied to page-locked host memory and back
};

const char* to_string(SumBy way);

/// A service of a Context with several ranks, ctx.service<RankLinks>(), made when a sum over the
/// ranks, or a sparse matrix, first needs it: collective then. Where every rank has a GPU of its
/// own, sums and halos stay on the devices: NCCL where libnccl.so.2 is found, and on one node
/// sums of up to 64 KiB by a kernel of our own, through peer memory (no multicast), and halos by
/// copies into the memory of the rank that needs them. All else is
/// copied to page-locked host memory and goes through MPI: several ranks on a GPU, GPU and host
/// ranks in one run, no NCCL. A FallbackEvent says why.
///
/// The environment's QUIVER_LINKS leaves things out: `mpi` (all staged), `nccl` (no peer memory),
/// `peers` (no NCCL).
class RankLinks {
  public:
    explicit RankLinks(Context& ctx);

    /// Whether a sum of so many bytes of device memory stays there. The same on all ranks.
    bool sums_on_device(std::size_t bytes) const { return way_of(bytes) != SumBy::mpi; }
    /// values <- sums over the ranks, count of them in device memory, enqueued on the stream. Only
    /// where sums_on_device(). Same ranks and GPUs: same bits, on all ranks. Cost: one all-reduce.
    template <class T>
    void sum(Context& ctx, T* values, std::size_t count);
    /// To be called when the stream has got past a sum. Throws DeviceError where a rank did not
    /// come to it within a minute; its values are NaN.
    void check() const;

    /// Whether the rows that ranks need from each other travel from device to device.
    bool halos_on_device() const;
    /// Whether they do by copies into peer memory, piece by piece.
    bool copies_halos() const;
    /// One that is copied straight into place, by the copy engines; none where that cannot be.
    /// Collective, also where it is none.
    std::shared_ptr<cuda::PeerHalo> peer_halo(Context& ctx, std::vector<cuda::PeerRows> receives,
                                              std::vector<cuda::PeerRows> sends);
    /// A stream beside the Context's, for what travels.
    Stream side() const;
    /// Starts messages from and to device memory beside the stream, behind what it has to do now;
    /// finish_exchange() makes it wait for them. By NCCL, where there is one.
    void start_exchange(Context& ctx, std::span<const cuda::RankMessage> sends,
                        std::span<const cuda::RankMessage> receives);
    void finish_exchange(Context& ctx);

    /// The way that sums of so many bytes take.
    SumBy way_of(std::size_t bytes) const;
    /// Insists on a way, for measurements; the same on all ranks. Throws UnsupportedError, which
    /// says why it cannot be.
    void choose(SumBy way);
    /// "peer memory up to 64 KiB, else NCCL 2.28.3": sums, and halos, and why not better.
    std::string describe_sums() const;
    std::string describe_halos() const;
    /// Seconds that a sum through peer memory waits for a rank, 60 unless set.
    void set_most_wait(double seconds);

  private:
    void require(SumBy way) const;

    std::shared_ptr<cuda::DeviceLinks> device_;
    /// Why all goes through MPI; empty otherwise.
    std::string why_staged_;
    SumBy chosen_ = SumBy::automatic;
};

}  // namespace quiver
