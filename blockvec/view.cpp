// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/view.hpp"

#include <string>

#include "blockvec/error.hpp"

namespace quiver {

void throw_outside(const char* what, std::int64_t first, std::int64_t count, std::int64_t size) {
    throw ShapeError(std::string(what) + ": " + std::to_string(count) + " from number " +
                     std::to_string(first) + " on are not all among the " + std::to_string(size) +
                     " that the view has, 0 .. " + std::to_string(size - 1));
}

}  // namespace quiver
