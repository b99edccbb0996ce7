// SPDX-License-Identifier: BSD-3-Clause
// The walls between the floors, read from the include lines of the tree.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> floors{"blockvec", "kernels", "solvers", "apps"};

bool is_below(std::string_view path, std::string_view folder) {
    return path.substr(0, folder.size()) == folder && path.size() > folder.size() &&
           path[folder.size()] == '/';
}

std::optional<std::size_t> floor_of(std::string_view path) {
    for (std::size_t floor = 0; floor < floors.size(); ++floor) {
        if (is_below(path, floors[floor])) {
            return floor;
        }
    }
    return std::nullopt;
}

bool is_any_of(std::string_view path, const std::vector<std::string_view>& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](std::string_view prefix) { return path.find(prefix) == 0; });
}

/// What is wrong with `file` (relative to the root) including `header`; empty when nothing is.
std::string violation(std::string_view file, std::string_view header) {
    if (is_below(file, "tests")) {
        return "";
    }
    if (is_below(file, "kernels/cuda/src")) {
        const bool embedded =
            header.ends_with(".cuh") || header == "cstdint" ||
            is_any_of(header, {"kernels/operations/", "kernels/cuda/fold.hpp",
                               "kernels/cuda/kernel_configs.hpp", "kernels/cuda/peer_args.hpp"});
        return embedded ? "" : "a device source includes something that is not embedded";
    }
    if (is_below(file, "kernels/operations")) {
        const bool plain = header == "cstdint" || is_below(header, "kernels/operations");
        return plain ? "" : "the description of an operation includes what device code cannot";
    }
    if (is_below(header, "kernels/operations") && !is_below(file, "kernels") &&
        !is_below(file, "apps/bench")) {
        return "the description of an operation is seen outside kernels/ and the bench";
    }
    if (is_below(header, "tests")) {
        return "the project includes a test";
    }
    const auto from = floor_of(file);
    const auto to = floor_of(header);
    if (from && to && *to > *from) {
        return "upward include";
    }
    if (!is_below(file, "kernels") &&
        is_any_of(header,
                  {"kernels/host/", "kernels/cuda/", "kernels/reference/", "kernels/leaf_args",
                   "kernels/leaves", "kernels/operation.hpp", "kernels/operation_table.hpp",
                   "kernels/precision_lists", "kernels/dispatch"})) {
        return "a leaf is seen from outside kernels/";
    }
    if ((is_below(file, "kernels/host") || is_below(file, "kernels/reference")) &&
        is_any_of(header, {"blockvec/context.hpp", "blockvec/comm.hpp", "mpi.h"})) {
        return "a leaf sees more than plain arguments";
    }
    const bool is_rival = is_below(file, "apps/bench/rivals");
    if (is_any_of(header, {"cuda", "nvrtc", "cublas", "cusparse", "cusolver"}) &&
        file != "blockvec/device.cpp" && !is_below(file, "kernels/cuda") && !is_rival) {
        return "CUDA is seen outside blockvec/device.cpp, kernels/cuda/ and the bench's rivals";
    }
    if (header.find("Eigen/") == 0 && file != "blockvec/eigen_interop.hpp" &&
        file.find("solvers/small_dense") != 0 && file != "solvers/precond/sparse_ldlt.cpp" &&
        !is_rival) {
        return "Eigen is seen outside blockvec/eigen_interop.hpp, solvers/small_dense*, "
               "solvers/precond/sparse_ldlt.cpp and rivals";
    }
    if (is_any_of(header, {"CLI/", "fmt/", "nlohmann/"}) && !is_below(file, "apps")) {
        return "a library of the command is seen outside apps/";
    }
    return "";
}

TEST(Architecture, TheRuleItselfTellsGoodFromBad) {
    EXPECT_EQ(violation("solvers/eigen/x.cpp", "kernels/tsmttsm.hpp"), "");
    EXPECT_EQ(violation("kernels/tsmm.cpp", "kernels/host/simd.hpp"), "");
    EXPECT_EQ(violation("tests/kernels/x.cpp", "kernels/host/simd.hpp"), "");
    EXPECT_EQ(violation("kernels/cuda/launcher.cpp", "cuda_runtime_api.h"), "");
    EXPECT_EQ(violation("blockvec/eigen_interop.hpp", "Eigen/Core"), "");
    EXPECT_NE(violation("blockvec/interop.hpp", "Eigen/Core"), "");
    EXPECT_EQ(violation("apps/bench/rivals/x.cpp", "cublas_v2.h"), "");
    EXPECT_NE(violation("apps/bench/x.cpp", "cublas_v2.h"), "");
    EXPECT_NE(violation("blockvec/x.hpp", "kernels/tsmm.hpp"), "");
    EXPECT_NE(violation("kernels/x.cpp", "solvers/eigen/block_lanczos.hpp"), "");
    EXPECT_NE(violation("solvers/x.cpp", "apps/report.hpp"), "");
    EXPECT_NE(violation("solvers/x.cpp", "kernels/host/simd.hpp"), "");
    EXPECT_NE(violation("apps/x.cpp", "kernels/cuda/cuda_kernels.hpp"), "");
    EXPECT_NE(violation("kernels/host/x.cpp", "blockvec/context.hpp"), "");
    EXPECT_NE(violation("kernels/tsmm.cpp", "cuda_runtime_api.h"), "");
    EXPECT_NE(violation("kernels/cuda/src/x.cuh", "cuda_fp16.h"), "");
    EXPECT_EQ(violation("kernels/cuda/src/x.cuh", "kernels/operations/tsmm.hpp"), "");
    EXPECT_EQ(violation("apps/bench/kernels/x.cpp", "kernels/operations/tsmm.hpp"), "");
    EXPECT_NE(violation("kernels/operations/tsmm.hpp", "blockvec/view.hpp"), "");
    EXPECT_NE(violation("solvers/x.cpp", "kernels/operations/tsmm.hpp"), "");
    EXPECT_NE(violation("solvers/eigen/x.cpp", "Eigen/Eigenvalues"), "");
    EXPECT_NE(violation("apps/x.cpp", "tests/support/test_context.hpp"), "");
    EXPECT_NE(violation("kernels/x.cpp", "nlohmann/json.hpp"), "");
}

/// "header" of `#include "header"` or `#include <header>`.
std::optional<std::string> included_header(const std::string& line) {
    const auto hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') {
        return std::nullopt;
    }
    const auto word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) {
        return std::nullopt;
    }
    const auto begin = line.find_first_of("\"<", word);
    const auto end = line.find_first_of("\">", begin + 1);
    if (begin == std::string::npos || end == std::string::npos) {
        return std::nullopt;
    }
    return line.substr(begin + 1, end - begin - 1);
}

TEST(Architecture, ReadsIncludeLines) {
    EXPECT_EQ(included_header("#include \"a/b.hpp\""), "a/b.hpp");
    EXPECT_EQ(included_header("  #  include <vector>  // why"), "vector");
    EXPECT_EQ(included_header("// #include \"a/b.hpp\""), std::nullopt);
    EXPECT_EQ(included_header("int include;"), std::nullopt);
}

struct SourceFile {
    std::string path;
    std::vector<std::string> lines;
};

const std::vector<SourceFile>& tree() {
    static const std::vector<SourceFile> files = [] {
        std::vector<SourceFile> result;
        const fs::path root = QUIVER_SOURCE_DIR;
        for (const char* folder : {"apps", "blockvec", "cmake", "kernels", "solvers", "tests"}) {
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

bool is_code(const std::string& path) {
    const std::string extension = fs::path(path).extension().string();
    return extension == ".hpp" || extension == ".cpp" || extension == ".cuh";
}

TEST(Architecture, IncludesGoStrictlyDown) {
    int includes = 0;
    int files = 0;
    for (const SourceFile& file : tree()) {
        if (!is_code(file.path)) {
            continue;
        }
        ++files;
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            if (const auto header = included_header(file.lines[i])) {
                ++includes;
                const std::string wrong = violation(file.path, *header);
                EXPECT_EQ(wrong, "") << file.path << ':' << i + 1 << ": " << file.lines[i];
            }
        }
    }
    EXPECT_GT(files, 50);
    EXPECT_GT(includes, 300);
}

/// An operation goes through dispatch (kernels/operation.hpp), which knows the policy.
TEST(Architecture, OnlyDispatchCallsTheLeafOfAnOperation) {
    const std::vector<std::string> known{
        "kernels/leaves.hpp",      // defines it
        "kernels/operation.hpp",   // dispatch
        "kernels/dispatch.hpp",    // sums of small matrices, a part of an operation
        "kernels/sparse/halo.cpp"  // the send buffer, a part of spmmv
    };
    for (const SourceFile& file : tree()) {
        if (!is_below(file.path, "kernels") || !is_code(file.path) ||
            std::find(known.begin(), known.end(), file.path) != known.end()) {
            continue;
        }
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            EXPECT_EQ(file.lines[i].find("run_leaf("), std::string::npos)
                << file.path << ':' << i + 1;
        }
    }
}

TEST(Architecture, EveryCodeFileSaysItsLicence) {
    for (const SourceFile& file : tree()) {
        const bool script = file.path.ends_with(".sh");
        if (is_code(file.path) || script || file.path.ends_with("CMakeLists.txt")) {
            const std::size_t line =
                script && !file.lines.empty() && file.lines[0][0] == '#' && file.lines[0][1] == '!'
                    ? 1
                    : 0;
            ASSERT_GT(file.lines.size(), line) << file.path;
            EXPECT_NE(file.lines[line].find("SPDX-License-Identifier: BSD-3-Clause"),
                      std::string::npos)
                << file.path;
        }
    }
}

TEST(Architecture, NoFileIsOver600LinesOrHoldsTabs) {
    constexpr std::size_t most_lines = 600;
    for (const SourceFile& file : tree()) {
        if (!is_code(file.path) && !file.path.ends_with(".sh") && !file.path.ends_with(".cmake") &&
            !file.path.ends_with("CMakeLists.txt")) {
            continue;
        }
        EXPECT_LE(file.lines.size(), most_lines) << file.path;
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            EXPECT_EQ(file.lines[i].find('\t'), std::string::npos) << file.path << ':' << i + 1;
        }
    }
}

TEST(Architecture, NothingBesideTheFloorsStandsAtTheTop) {
    const std::vector<std::string> known{"apps",    "blockvec", "cmake", "docs",
                                         "kernels", "solvers",  "tests"};
    for (const auto& entry : fs::directory_iterator(QUIVER_SOURCE_DIR)) {
        const std::string name = entry.path().filename().string();
        const bool ours = entry.is_directory() && name[0] != '.' && name.find("build") != 0;
        if (ours) {
            EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;
        }
    }
}

}  // namespace
