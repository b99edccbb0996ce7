// SPDX-License-Identifier: BSD-3-Clause
// HostCopy: a few results on their way to the host while the device goes on.
#pragma once

#include <cstddef>

#include "blockvec/context.hpp"

namespace quiver {

/// One copy at a time from the Context's place to host memory of its own.
class HostCopy {
  public:
    /// Room for `bytes`. The Context outlives it. Throws MemoryError.
    HostCopy(Context& ctx, std::size_t bytes);
    HostCopy(const HostCopy&) = delete;
    HostCopy& operator=(const HostCopy&) = delete;
    ~HostCopy();

    /// Enqueues the copy of what memory holds when the stream gets there.
    void begin(const void* from, std::size_t bytes);
    /// Waits for the last copy that began, and for nothing that was enqueued after it; whether
    /// there is any, the ledger is told.
    const void* wait(bool later_work);

  private:
    Context& ctx_;
    Buffer memory_;
    std::size_t bytes_ = 0;
    DeviceEvent done_ = nullptr;
};

}  // namespace quiver
