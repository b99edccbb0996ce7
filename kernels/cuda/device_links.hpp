// SPDX-License-Identifier: BSD-3-Clause
// What GPUs of several ranks have to say to each other without the host: see
// kernels/rank_links.hpp.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/nccl.hpp"
#include "kernels/cuda/peer_copies.hpp"
#include "kernels/cuda/peer_sum.hpp"

namespace quiver::cuda {

/// Of one Context on a device.
struct DeviceLinks {
    std::unique_ptr<Nccl> nccl;
    std::unique_ptr<PeerSum> peers;
    std::shared_ptr<PeerCopies> copies;  // halos may outlive the Context
    /// Why there is none; empty otherwise.
    std::string why_no_nccl;
    std::string why_no_peers;
    std::string why_no_copies;
    /// Beside the Context's stream, and before it where both wait for a multiprocessor.
    Stream side = nullptr;
    DeviceEvent packed = nullptr;  // what is sent lies ready, what was received has been read
    DeviceEvent arrived = nullptr;

    /// Collective. The two flags say what to leave out.
    DeviceLinks(Context& ctx, bool want_nccl, bool want_peers);
    DeviceLinks(const DeviceLinks&) = delete;
    DeviceLinks& operator=(const DeviceLinks&) = delete;
    ~DeviceLinks();

  private:
    std::shared_ptr<Memory> memory_;
};

}  // namespace quiver::cuda
