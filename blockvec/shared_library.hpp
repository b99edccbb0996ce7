// SPDX-License-Identifier: BSD-3-Clause
// SharedLibrary: a library loaded on demand. A program that never needs it starts on machines
// without it, and does not load several hundred megabytes.
#pragma once

#include <string>
#include <utility>

#include <dlfcn.h>

#include "blockvec/error.hpp"

namespace quiver {

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

  private:
    std::string name_;
    void* handle_;
};

}  // namespace quiver
