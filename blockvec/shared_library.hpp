// SPDX-License-Identifier: BSD-3-Clause
// A library that is loaded when it is asked for: a program does without it otherwise, and
// does not pay for loading several hundred megabytes.
#pragma once

#include <string>
#include <utility>

#include <dlfcn.h>

#include "blockvec/error.hpp"

namespace quiver {

class SharedLibrary {
  public:
    /// Throws UnsupportedError. Never unloaded: such libraries hold threads and device state.
    explicit SharedLibrary(std::string name)
        : name_(std::move(name)), handle_(dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) {
            throw UnsupportedError("cannot load " + name_ + ": " + dlerror() +
                                   "; add its folder to LD_LIBRARY_PATH");
        }
    }

    /// find<decltype(function)>("function"): names it without linking to it.
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
