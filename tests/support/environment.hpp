// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace quiver::test {

/// Sets an environment variable during its own lifetime.
class Environment {
  public:
    Environment(const char* name, const char* value) : name_(name) {
        if (const char* const before = std::getenv(name)) {
            before_ = before;
        }
        setenv(name, value, 1);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() {
        if (before_) {
            setenv(name_, before_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }

  private:
    const char* name_;
    std::optional<std::string> before_;
};

}  // namespace quiver::test
