// SPDX-License-Identifier: BSD-3-Clause
// Indices of nodes and entries. Private to solvers/graph/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quiver::graph {

using Index = std::int64_t;

/// An index as a subscript of a std::vector.
constexpr std::size_t at(Index index) {
    return static_cast<std::size_t>(index);
}

}  // namespace quiver::graph
