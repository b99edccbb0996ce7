// SPDX-License-Identifier: BSD-3-Clause
// The device sources, embedded at build time.
#pragma once

#include <span>

namespace quiver::cuda {

/// One embedded source file.
struct EmbeddedSource {
    /// The name in #include lines.
    const char* name;
    const char* text;
};

std::span<const EmbeddedSource> embedded_sources();

}  // namespace quiver::cuda
