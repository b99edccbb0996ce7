// SPDX-License-Identifier: BSD-3-Clause
// SharedLibrary: a library loaded on demand. A program that never needs it starts on machines
// without it, and does not load several hundred megabytes.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "blockvec/error.hpp"

namespace quiver {

/// The files of an optional library to try: the one that the environment variable names, none if it
/// is `none`; without the variable those of the known versions.
inline std::vector<std::string> library_files(const char* variable,
                                              std::vector<std::string> known) {
    const char* const chosen = std::getenv(variable);
    if (chosen == nullptr || *chosen == '\0') {
        return known;
    }
    return chosen == std::string("none") ? std::vector<std::string>()
                                         : std::vector<std::string>{chosen};
}

class SharedLibrary {
  public:
    /// Loads the library. Throws UnsupportedError. The library is never unloaded, because such
    /// libraries own threads and device state.
    explicit SharedLibrary(std::string name)
        : name_(std::move(name)), handle_(dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) {
            throw UnsupportedError("cannot load " + name_ + ": " + dlerror() +
                                   "; add its folder to LD_LIBRARY_PATH");
        }
    }

    /// The address of a function: find<decltype(function)>("function"), without linking to the
    /// library. Throws UnsupportedError.
    template <class F>
    F* find(const char* name) const {
        void* const found = dlsym(handle_, name);
        if (found == nullptr) {
            throw UnsupportedError(name_ + " has no " + name);
        }
        return reinterpret_cast<F*>(found);
    }

    /// "1.0.0", as the library's function `get_property` (of the type of cudssGetProperty) reports
    /// it. Throws UnsupportedError.
    std::string version(const char* get_property) const {
        const auto property = find<int(int, int*)>(get_property);
        std::string text;
        for (int i = 0; i < 3; ++i) {
            int number = 0;
            if (property(i, &number) != 0) {
                throw UnsupportedError(name_ + " does not report its version");
            }
            text += (i == 0 ? "" : ".") + std::to_string(number);
        }
        return text;
    }

  private:
    std::string name_;
    void* handle_;
};

}  // namespace quiver
