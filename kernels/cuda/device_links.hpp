// SPDX-License-Identifier: BSD-3-Clause
// DeviceLinks: the means by which the GPUs of several ranks communicate without the host; see
// kernels/rank_links.hpp.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/nccl.hpp"
#include "kernels/cuda/peer_copies.hpp"
#include "kernels/cuda/peer_sum.hpp"

namespace quiver::cuda {

/// The links of one Context on a device.
struct DeviceLinks {
    std::unique_ptr<Nccl> nccl;
    std::unique_ptr<PeerSum> peers;
    std::shared_ptr<PeerCopies> copies;  // halos may outlive the Context
    /// The reason why each of them is missing; empty otherwise.
    std::string why_no_nccl;
    std::string why_no_peers;
    std::string why_no_copies;
    /// A stream besides the Context's, with higher priority when both wait for a multiprocessor.
    Stream side = nullptr;
    DeviceEvent packed = nullptr;  // data to send are ready, received data have been read
    DeviceEvent arrived = nullptr;

    /// Collective. The two flags select the links to try.
    DeviceLinks(Context& ctx, bool want_nccl, bool want_peers);
    DeviceLinks(const DeviceLinks&) = delete;
    DeviceLinks& operator=(const DeviceLinks&) = delete;
    ~DeviceLinks();

  private:
    std::shared_ptr<Memory> memory_;
};

}  // namespace quiver::cuda
