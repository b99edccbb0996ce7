// SPDX-License-Identifier: BSD-3-Clause
// The folder of real matrices: QUIVER_TEST_DATA, else ../shared/data relative to the source tree.
// It holds NAME.mtx.gz and NAME.eigs.json; it need not exist.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace quiver::test {

inline std::filesystem::path data_folder() {
    const char* given = std::getenv("QUIVER_TEST_DATA");
    return given != nullptr ? std::filesystem::path(given)
                            : std::filesystem::path(QUIVER_SOURCE_DIR) / ".." / "shared" / "data";
}

inline std::string data_file(const std::string& name) {
    return (data_folder() / name).string();
}

}  // namespace quiver::test
