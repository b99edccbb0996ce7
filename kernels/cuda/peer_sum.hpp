// SPDX-License-Identifier: BSD-3-Clause
// PeerSum: sums over the GPUs of one node through each other's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockvec/context.hpp"
#include "kernels/cuda/peer_args.hpp"
#include "kernels/cuda/peer_windows.hpp"

namespace quiver::cuda {

/// Windows of memory that the ranks of one node open to each other (cudaIpc), and the sums made
/// through them: one launch, no host. The same bits on all ranks and on every run, since all add in
/// the order of the ranks. Latency: one write to a peer, one flag.
class PeerSum {
  public:
    /// Payload of one launch; longer sums take several.
    static constexpr std::int64_t slot_bytes = 64 * 1024;

    /// Collective; tries a sum in the end. Throws an Error on all ranks where it cannot be.
    explicit PeerSum(Context& ctx);
    PeerSum(const PeerSum&) = delete;
    PeerSum& operator=(const PeerSum&) = delete;

    /// values <- sums over the ranks, in device memory, enqueued on the Context's stream. All ranks
    /// make the same calls. Where a rank does not come in time the values become NaN and late()
    /// tells. R: float, double.
    template <class R>
    void sum(Context& ctx, R* values, std::size_t count);
    /// The rank that did not come, as far as the stream has got; -1: none.
    int late() const;
    double most_wait_seconds() const { return most_wait_seconds_; }
    void set_most_wait(double seconds) { most_wait_seconds_ = seconds; }

  private:
    void try_out(Context& ctx);

    double most_wait_seconds_ = 60;
    int rank_;
    int ranks_;
    unsigned turn_ = 0;
    Buffer late_;
    PeerWindows windows_;
};

}  // namespace quiver::cuda
