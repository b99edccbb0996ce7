// SPDX-License-Identifier: BSD-3-Clause
// Joules that a GPU has used, by the counter of NVIDIA's management library, which is loaded when
// asked for: its header is not in every toolkit.
#pragma once

#include <functional>

#include "blockvec/context.hpp"

namespace quiver::apps::bench {

class EnergyMeter {
  public:
    /// Of the Context's GPU. Throws UnsupportedError on the host, without the library, or for a GPU
    /// that does not count.
    explicit EnergyMeter(const Context& ctx);
    EnergyMeter(const EnergyMeter&) = delete;
    EnergyMeter& operator=(const EnergyMeter&) = delete;

    /// Joules a call: calls one after the other for at least half a second, from one step of the
    /// counter, which takes some 0.1 s, to another.
    double joules_a_call(const std::function<void()>& call) const;

  private:
    double joules() const;

    const Context& ctx_;
    void* device_ = nullptr;
    int (*read_)(void*, unsigned long long*) = nullptr;
};

}  // namespace quiver::apps::bench
