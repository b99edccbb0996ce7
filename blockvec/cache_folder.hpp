// SPDX-License-Identifier: BSD-3-Clause
// The folder of files that later runs read: compiled kernels, plans, ceilings.
#pragma once

#include <string>

namespace quiver {

/// $QUIVER_CACHE, else $XDG_CACHE_HOME/quiver, else $HOME/.cache/quiver, else "". The folder need
/// not exist.
std::string cache_folder();

}  // namespace quiver
