// SPDX-License-Identifier: BSD-3-Clause
// A temporary folder that all ranks of a test share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "blockvec/comm.hpp"

namespace quiver::test {

/// Rank 0 creates and removes the folder. Constructor and destructor are collective.
class SharedFolder {
  public:
    explicit SharedFolder(const Comm& comm) : comm_(comm) {
        char name[256] = {};
        if (comm_.rank() == 0) {
            const std::string pattern =
                (std::filesystem::temp_directory_path() / "quiver-test-XXXXXX").string();
            pattern.copy(name, sizeof(name) - 1);
            EXPECT_NE(mkdtemp(name), nullptr);
        }
        comm_.broadcast(name, sizeof(name), 0);
        folder_ = name;
    }
    SharedFolder(const SharedFolder&) = delete;
    SharedFolder& operator=(const SharedFolder&) = delete;
    ~SharedFolder() {
        comm_.barrier();
        if (comm_.rank() == 0) {
            std::error_code ignored;
            std::filesystem::remove_all(folder_, ignored);
        }
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    /// The number of files in the folder. Collective, with a barrier before and after.
    std::int64_t files() const {
        comm_.barrier();
        const std::int64_t count = std::distance(std::filesystem::directory_iterator(folder_), {});
        comm_.barrier();
        return count;
    }

  protected:
    Comm comm_;

  private:
    std::filesystem::path folder_;
};

}  // namespace quiver::test
