// SPDX-License-Identifier: BSD-3-Clause
// The kernels that a Context has used, by all that decides about one.
#pragma once

#include <array>
#include <map>

#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/specialiser.hpp"

namespace quiver::cuda {

/// A service of the Context, ctx.service<ReadyKernels>().
class ReadyKernels {
  public:
    explicit ReadyKernels(Context&) {}

    /// The first number names the operation.
    using Key = std::array<int, 12>;
    struct Ready {
        PlannedKernel planned;
        Kernel* kernel = nullptr;
    };
    /// make(): the plan's kernel, of `source`.
    template <class Make>
    const Ready& get(Context& ctx, const Key& key, const char* source, Make&& make) {
        const auto found = ready_.find(key);
        if (found != ready_.end()) {
            return found->second;
        }
        const PlannedKernel planned = make();
        Kernel& kernel = ctx.service<Specialiser>().get(ctx, source, planned.expression);
        return ready_.emplace(key, Ready{planned, &kernel}).first->second;
    }

  private:
    std::map<Key, Ready> ready_;
};

}  // namespace quiver::cuda
