// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/cache_folder.hpp"

#include <cstdlib>

namespace quiver {

std::string cache_folder() {
    const auto value_of = [](const char* variable) {
        const char* value = std::getenv(variable);
        return std::string(value == nullptr ? "" : value);
    };
    if (std::string given = value_of("QUIVER_CACHE"); !given.empty()) {
        return given;
    }
    if (const std::string given = value_of("XDG_CACHE_HOME"); !given.empty()) {
        return given + "/quiver";
    }
    const std::string home = value_of("HOME");
    return home.empty() ? "" : home + "/.cache/quiver";
}

}  // namespace quiver
