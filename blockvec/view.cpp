// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/view.hpp"

#include <string>

#include "blockvec/error.hpp"

namespace quiver {

void throw_outside(const char* what, std::int64_t first, std::int64_t count, std::int64_t size) {
    throw ShapeError(std::string(what) + ": " + std::to_string(count) + " from index " +
                     std::to_string(first) + " do not fit a view of size " + std::to_string(size) +
                     ", 0 .. " + std::to_string(size - 1));
}

}  // namespace quiver
