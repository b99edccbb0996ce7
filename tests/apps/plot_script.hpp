// SPDX-License-Identifier: BSD-3-Clause
// Finds a Python that can run apps/bench/plot.py.
#pragma once

#include <cstdlib>
#include <string>

namespace quiver::test {

inline constexpr const char* no_matplotlib =
    "no python3 with matplotlib here; install the package python3-matplotlib";

/// A Python interpreter that has matplotlib: python3 of the PATH, else /usr/bin/python3; empty if
/// neither has it.
inline std::string python_with_matplotlib() {
    for (const char* python : {"python3", "/usr/bin/python3"}) {
        if (std::system((std::string(python) + " -c 'import matplotlib' 2>/dev/null").c_str()) ==
            0) {
            return python;
        }
    }
    return "";
}

}  // namespace quiver::test
