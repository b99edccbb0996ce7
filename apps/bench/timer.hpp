// SPDX-License-Identifier: BSD-3-Clause
// Times calls: with a monotonic clock on the host, with CUDA events on the stream on a device.
#pragma once

#include <chrono>

#include "blockvec/context.hpp"

namespace quiver::apps::bench {

class Timer {
  public:
    explicit Timer(const Context& ctx) : ctx_(ctx) {
        if (on_device()) {
            begin_event_ = device::create_event(true);
            end_event_ = device::create_event(true);
        }
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    ~Timer() {
        if (on_device()) {
            device::destroy_event(begin_event_);
            device::destroy_event(end_event_);
        }
    }

    /// Seconds that `calls` calls of `work` take together; waits for their end.
    template <class Work>
    double time(int calls, Work&& work) {
        if (on_device()) {
            device::record(begin_event_, ctx_.stream());
        }
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) {
            work();
        }
        if (on_device()) {
            device::record(end_event_, ctx_.stream());
            device::synchronize(end_event_);
            return device::elapsed_seconds(begin_event_, end_event_);
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

  private:
    bool on_device() const { return ctx_.place() == Place::device; }

    const Context& ctx_;
    DeviceEvent begin_event_ = nullptr;
    DeviceEvent end_event_ = nullptr;
};

}  // namespace quiver::apps::bench
