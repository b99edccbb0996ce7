// SPDX-License-Identifier: BSD-3-Clause
// PeerWindows: device memory that the ranks of one node open to each other.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "blockvec/context.hpp"

namespace quiver::cuda {

/// Allocates whole pages of the device, because another process opens the whole allocation that
/// contains an address. Throws MemoryError.
unsigned char* allocate_pages(std::size_t bytes, const char* what);

/// The handle by which another process opens pages (cudaIpcMemHandle_t).
using PagesHandle = std::array<char, 64>;
PagesHandle handle_of(unsigned char* pages);
/// Opens pages on the current device. Throws DeviceError.
unsigned char* open_pages(PagesHandle handle);
void close_pages(unsigned char* opened) noexcept;
/// The handles of all ranks, in rank order. Collective.
std::vector<PagesHandle> gather_handles(const Comm& comm, const PagesHandle& mine);

/// One window per rank, initially zero, open to all other ranks (cudaIpc).
class PeerWindows {
  public:
    /// Collective. Throws an Error on all ranks if the windows cannot be opened.
    PeerWindows(const Context& ctx, std::size_t bytes);
    PeerWindows(const PeerWindows&) = delete;
    PeerWindows& operator=(const PeerWindows&) = delete;
    /// This rank's own window stays until the process ends: no rank knows when the others have
    /// closed it, and a rank that fails cannot wait for them.
    ~PeerWindows();

    unsigned char* operator[](int rank) const { return window_[static_cast<std::size_t>(rank)]; }

  private:
    int rank_;
    std::vector<unsigned char*> window_;
};

}  // namespace quiver::cuda
