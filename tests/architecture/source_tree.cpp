// SPDX-License-Identifier: BSD-3-Clause
#include "tests/architecture/source_tree.hpp"

#include <filesystem>
#include <fstream>
#include <utility>

namespace quiver::architecture {

namespace fs = std::filesystem;

const std::vector<SourceFile>& source_tree() {
    static const std::vector<SourceFile> files = [] {
        std::vector<SourceFile> result;
        const fs::path root = QUIVER_SOURCE_DIR;
        for (const char* folder : {"apps", "blockvec", "c", "cmake", "examples", "kernels",
                                   "python", "solvers", "tests"}) {
            for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
                if (!entry.is_regular_file()) {
                    continue;
                }
                SourceFile file{entry.path().lexically_relative(root).generic_string(), {}};
                std::ifstream in(entry.path());
                for (std::string line; std::getline(in, line);) {
                    file.lines.push_back(line);
                }
                result.push_back(std::move(file));
            }
        }
        return result;
    }();
    return files;
}

bool is_code(std::string_view path) {
    return path.ends_with(".hpp") || path.ends_with(".cpp") || path.ends_with(".cuh");
}

bool is_below(std::string_view path, std::string_view folder) {
    return path.substr(0, folder.size()) == folder && path.size() > folder.size() &&
           path[folder.size()] == '/';
}

}  // namespace quiver::architecture
