// SPDX-License-Identifier: BSD-3-Clause
// KernelList: kernels by source and name expression.
#pragma once

#include <string>
#include <vector>

namespace quiver::cuda {

/// An instance of a kernel in an embedded source.
struct KernelInstance {
    const char* source;
    std::string expression;
    /// True if kernels of a pack compute the same result until this kernel is compiled.
    bool can_wait = false;
};
using KernelList = std::vector<KernelInstance>;

}  // namespace quiver::cuda
