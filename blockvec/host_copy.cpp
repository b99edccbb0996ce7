// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/host_copy.hpp"

#include <cstring>

#include "blockvec/overhead.hpp"

namespace quiver {

HostCopy::HostCopy(Context& ctx, std::size_t bytes)
    : ctx_(ctx),
      memory_(ctx.allocate(ctx.place() == Place::device ? MemoryKind::pinned : MemoryKind::host,
                           bytes, "buffer for results on the host")) {
    if (ctx.place() == Place::device) {
        done_ = device::create_event(false);
    }
}

HostCopy::~HostCopy() {
    if (done_ != nullptr) {
        // A copy in flight still writes to the memory: wait before it is freed.
        try {
            device::synchronize(done_);
        } catch (const std::exception&) {
            // The next call that uses the device reports the error.
        }
        device::destroy_event(done_);
    }
}

void HostCopy::begin(const void* from, std::size_t bytes) {
    bytes_ = bytes;
    if (bytes == 0) {
        return;
    }
    if (ctx_.place() == Place::host) {
        std::memcpy(memory_.as<void>(), from, bytes);
        return;
    }
    device::copy(memory_.as<void>(), from, bytes, ctx_.stream());
    device::record(done_, ctx_.stream());
}

const void* HostCopy::wait(bool later_work) {
    const OverheadCounts::Pause pause(ctx_, later_work ? Overhead::late_result : Overhead::result,
                                      static_cast<double>(bytes_));
    if (done_ != nullptr) {
        device::synchronize(done_);
    }
    return memory_.as<void>();
}

}  // namespace quiver
