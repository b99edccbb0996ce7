// SPDX-License-Identifier: BSD-3-Clause
// The folder for what is worth keeping between runs: compiled kernels, plans, the ceilings of the
// machine.
#pragma once

#include <string>

namespace quiver {

/// $QUIVER_CACHE, else $XDG_CACHE_HOME/quiver, else $HOME/.cache/quiver, else "". The folder need
/// not exist.
std::string cache_folder();

}  // namespace quiver
