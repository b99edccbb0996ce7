// SPDX-License-Identifier: BSD-3-Clause
// The energy that a GPU uses, from the counter of NVIDIA's management library. The library is
// loaded at run time, because its header is not in every toolkit.
#pragma once

#include <functional>

#include "blockvec/context.hpp"

namespace quiver::apps::bench {

class EnergyMeter {
  public:
    /// Reads the counter of the Context's GPU. Throws UnsupportedError on the host, without the
    /// library, or for a GPU without a counter.
    explicit EnergyMeter(const Context& ctx);
    EnergyMeter(const EnergyMeter&) = delete;
    EnergyMeter& operator=(const EnergyMeter&) = delete;

    /// Joules per call. Repeats the call for at least half a second and measures from one step of
    /// the counter to another; the counter steps about every 0.1 s.
    double joules_a_call(const std::function<void()>& call) const;

  private:
    double joules() const;

    const Context& ctx_;
    void* device_ = nullptr;
    int (*read_)(void*, unsigned long long*) = nullptr;
};

}  // namespace quiver::apps::bench
