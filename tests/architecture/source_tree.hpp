// SPDX-License-Identifier: BSD-3-Clause
// The files of the tree that tests/architecture reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quiver::architecture {

struct SourceFile {
    /// The path relative to the root.
    std::string path;
    std::vector<std::string> lines;
};

/// Every file of the floors, c/, cmake/, examples/, python/ and tests/. The files are read once.
const std::vector<SourceFile>& source_tree();

/// True for C++ code of the host or a device, by the ending of the name.
bool is_code(std::string_view path);

/// True if `path` lies in `folder` or below it.
bool is_below(std::string_view path, std::string_view folder);

}  // namespace quiver::architecture
