// SPDX-License-Identifier: BSD-3-Clause
// PeerSum: all-reduce over the GPUs of one node through peer memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockvec/context.hpp"
#include "kernels/cuda/peer_args.hpp"
#include "kernels/cuda/peer_windows.hpp"

namespace quiver::cuda {

/// Windows of memory that the ranks of one node open to each other (cudaIpc), and the all-reduce
/// through them: one launch, without the host. All ranks and all runs give the same bits, because
/// every rank adds in rank order. Latency: one write to a peer and one flag.
class PeerSum {
  public:
    /// Bytes of the payload of one launch; longer vectors take several launches.
    static constexpr std::int64_t slot_bytes = 64 * 1024;

    /// Collective; tests an all-reduce at the end. Throws an Error on all ranks if peer memory is
    /// not available.
    explicit PeerSum(Context& ctx);
    PeerSum(const PeerSum&) = delete;
    PeerSum& operator=(const PeerSum&) = delete;

    /// values <- sums over the ranks, in device memory, enqueued on the Context's stream. All ranks
    /// must make the same calls. If a rank does not join in time, the values become NaN and late()
    /// returns that rank. R: float, double.
    template <class R>
    void sum(Context& ctx, R* values, std::size_t count);
    /// The rank that did not join in time, as of the current position of the stream; -1: none.
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
