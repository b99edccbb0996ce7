// SPDX-License-Identifier: BSD-3-Clause
// PeerWindows: device memory that the ranks of one node open to each other.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver::cuda {

/// Whole pages of the device: what another process opens is the allocation that memory is part of.
/// Throws MemoryError.
unsigned char* allocate_pages(std::size_t bytes, const char* what);

/// By which another process opens pages (cudaIpcMemHandle_t).
using PagesHandle = std::array<char, 64>;
PagesHandle handle_of(unsigned char* pages);
/// On the current device. Throws DeviceError.
unsigned char* open_pages(PagesHandle handle);
void close_pages(unsigned char* opened) noexcept;
/// All ranks' handles, by rank. Collective.
std::vector<PagesHandle> gather_handles(const Comm& comm, const PagesHandle& mine);

/// A window of each rank, zero at first, open to all others (cudaIpc).
class PeerWindows {
  public:
    /// Collective. Throws an Error on all ranks where it cannot be.
    PeerWindows(const Context& ctx, std::size_t bytes);
    PeerWindows(const PeerWindows&) = delete;
    PeerWindows& operator=(const PeerWindows&) = delete;
    /// The own window stays until the process ends: no rank knows when the others have closed it,
    /// and one that fails cannot wait for them.
    ~PeerWindows();

    unsigned char* operator[](int rank) const { return window_[static_cast<std::size_t>(rank)]; }

  private:
    int rank_;
    std::vector<unsigned char*> window_;
};

}  // namespace quiver::cuda
