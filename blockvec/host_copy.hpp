// SPDX-License-Identifier: BSD-3-Clause
// HostCopy: copies small results to the host while the device continues to work.
#pragma once

#include <cstddef>

#include "blockvec/context.hpp"

namespace quiver {

/// One asynchronous copy at a time, from the Context's place to host memory that this object owns.
class HostCopy {
  public:
    /// Allocates room for `bytes`. The Context must outlive this object. Throws MemoryError.
    HostCopy(Context& ctx, std::size_t bytes);
    HostCopy(const HostCopy&) = delete;
    HostCopy& operator=(const HostCopy&) = delete;
    ~HostCopy();

    /// Enqueues the copy; it reads `from` when the stream reaches it. `bytes` is at most the room.
    void begin(const void* from, std::size_t bytes);
    /// Waits for the last copy that began, but not for work enqueued after it. Returns the copied
    /// bytes, which are valid until the next begin(). `later_work` says whether later work is
    /// enqueued: the overhead counters then count a late_result instead of a result.
    const void* wait(bool later_work);

  private:
    Context& ctx_;
    Buffer memory_;
    std::size_t bytes_ = 0;
    DeviceEvent done_ = nullptr;
};

}  // namespace quiver
