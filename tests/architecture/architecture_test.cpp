// SPDX-License-Identifier: BSD-3-Clause
// Checks the include lines of the tree against the rules on includes between the floors.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/architecture/source_tree.hpp"

namespace quiver::architecture {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> floors{"blockvec", "kernels", "solvers", "apps"};

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

/// A folder of solvers/, and the other folders of solvers/ that its files may include.
struct SolverFolder {
    std::string_view folder;
    std::vector<std::string_view> others;
};
const std::vector<SolverFolder>& solver_folders() {
    static const std::vector<SolverFolder> folders{
        {"solvers/abft", {}},
        {"solvers/cluster", {}},
        {"solvers/dense", {}},
        {"solvers/orth", {}},
        {"solvers/precond", {}},
        {"solvers/linear", {"solvers/abft/", "solvers/orth/"}},
        {"solvers/graph", {"solvers/dense/", "solvers/eigen/"}},
        {"solvers/eigen",
         {"solvers/abft/", "solvers/dense/", "solvers/linear/", "solvers/orth/",
          "solvers/precond/"}},
        {"solvers/svd", {"solvers/cluster/", "solvers/dense/", "solvers/eigen/", "solvers/orth/"}}};
    return folders;
}

bool is_solver_of_another_folder(std::string_view file, std::string_view header) {
    for (const auto& [folder, others] : solver_folders()) {
        if (is_below(file, folder)) {
            const bool in_folder =
                header.find('/', std::string_view("solvers/").size()) != std::string_view::npos;
            return is_below(header, "solvers") && in_folder && !is_below(header, folder) &&
                   !is_any_of(header, others);
        }
    }
    return false;
}

/// violation() for the interfaces to other languages.
std::string violation_of_doors(std::string_view file, std::string_view header) {
    if (is_below(header, "python") && !is_below(file, "python")) {
        return "a file outside python/ includes the Python package";
    }
    const bool is_door = is_below(file, "c") || is_below(file, "python");
    if (is_below(header, "c") &&
        !(is_below(file, "c") || (is_door && is_below(header, "c/shared")))) {
        return "a file outside c/ includes the C interface (python/ may include c/shared/)";
    }
    if (is_door && is_below(header, "apps")) {
        return "an interface to another language includes apps/";
    }
    return "";
}

/// violation() for libraries of other projects.
std::string violation_of_libraries(std::string_view file, std::string_view header) {
    const bool is_rival = is_below(file, "apps/bench/rivals");
    const bool is_guest =
        is_rival || is_below(file, "apps/rival_programs") || is_below(file, "examples");
    if (is_any_of(header, {"cuda", "nvrtc", "cublas", "cusparse", "cusolver"}) &&
        file != "blockvec/device.cpp" && !is_below(file, "kernels/cuda") && !is_guest) {
        return "CUDA is included outside blockvec/device.cpp, kernels/cuda/, the bench's rivals "
               "and examples";
    }
    if (header.find("Eigen/") == 0 && file != "blockvec/eigen_interop.hpp" &&
        file.find("solvers/small_dense") != 0 && file != "solvers/precond/sparse_ldlt.cpp" &&
        !is_guest) {
        return "Eigen is included outside blockvec/eigen_interop.hpp, solvers/small_dense*, "
               "solvers/precond/sparse_ldlt.cpp, rivals and examples";
    }
    if (is_any_of(header, {"dmumps", "mumps"}) &&
        file != "solvers/eigen/shift_invert/mumps_factorisation.cpp") {
        return "MUMPS is included outside solvers/eigen/shift_invert/mumps_factorisation.cpp";
    }
    if (is_any_of(header, {"scotch"}) && file != "kernels/sparse/scotch_partition.cpp") {
        return "SCOTCH is included outside kernels/sparse/scotch_partition.cpp";
    }
    if (is_any_of(header, {"CLI/", "fmt/", "nlohmann/"}) && !is_below(file, "apps")) {
        return "a library of the command is included outside apps/";
    }
    return "";
}

/// The rule that `file` (relative to the root) breaks by including `header`; empty if none.
std::string violation(std::string_view file, std::string_view header) {
    if (is_below(file, "tests")) {
        return "";
    }
    if (is_below(file, "kernels/cuda/src")) {
        const bool embedded =
            header.ends_with(".cuh") || header == "cstdint" ||
            is_any_of(header,
                      {"kernels/operations/", "kernels/cuda/fold.hpp", "kernels/cuda/csr_args.hpp",
                       "kernels/cuda/kernel_configs.hpp", "kernels/cuda/peer_args.hpp"});
        return embedded ? "" : "a device source includes a file that is not embedded";
    }
    if (is_below(file, "kernels/operations")) {
        // This header includes <cstddef> for the leaves, outside of device code.
        const bool of_leaves = header == "cstddef" && file == "kernels/operations/cost.hpp";
        const bool plain =
            header == "cstdint" || of_leaves || is_below(header, "kernels/operations");
        return plain ? "" : "a description of an operation includes more than device code may";
    }
    if (is_below(header, "kernels/operations") && !is_below(file, "kernels") &&
        !is_below(file, "apps/bench")) {
        return "a description of an operation is included outside kernels/ and the bench";
    }
    if (is_below(header, "tests")) {
        return "a file outside tests/ includes a file of tests/";
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
        return "a leaf is included outside kernels/";
    }
    if ((is_below(file, "kernels/host") || is_below(file, "kernels/reference")) &&
        is_any_of(header,
                  {"blockvec/context.hpp", "blockvec/comm.hpp", "blockvec/mpi.hpp", "mpi.h"})) {
        return "a leaf includes more than its plain arguments";
    }
    if (is_solver_of_another_folder(file, header)) {
        return "a folder of solvers/ includes another folder that it must not include";
    }
    const bool in_room = header.find('/', std::string_view("solvers/eigen/").size()) !=
                         std::string_view::npos;  // a room: a sub-folder of solvers/eigen
    if (is_below(header, "solvers/eigen") && in_room && !is_below(file, "solvers/eigen")) {
        return "a sub-folder (room) of solvers/eigen is included from outside";
    }
    if (is_below(file, "solvers/eigen/search") && is_below(header, "solvers/eigen") && in_room &&
        !is_below(header, "solvers/eigen/search")) {
        return "solvers/eigen/search, which all methods share, includes a method";
    }
    if (std::string text = violation_of_doors(file, header); !text.empty()) {
        return text;
    }
    if (is_below(header, "examples") || (is_below(file, "examples") && is_below(header, "apps"))) {
        return "an example includes apps/, or a file includes an example";
    }
    return violation_of_libraries(file, header);
}

TEST(Architecture, TheRuleSeparatesGoodFromBadIncludes) {
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
    EXPECT_NE(violation("kernels/operations/tsmm.hpp", "cstddef"), "");
    EXPECT_NE(violation("solvers/x.cpp", "kernels/operations/tsmm.hpp"), "");
    EXPECT_NE(violation("solvers/eigen/x.cpp", "Eigen/Eigenvalues"), "");
    EXPECT_EQ(violation("solvers/eigen/shift_invert/mumps_factorisation.cpp", "dmumps_c.h"), "");
    EXPECT_NE(violation("solvers/eigen/shift_invert/x.cpp", "dmumps_c.h"), "");
    EXPECT_EQ(violation("kernels/sparse/scotch_partition.cpp", "scotch.h"), "");
    EXPECT_NE(violation("kernels/sparse/x.cpp", "scotch.h"), "");
    EXPECT_NE(violation("apps/x.cpp", "tests/support/test_context.hpp"), "");
    EXPECT_NE(violation("kernels/x.cpp", "nlohmann/json.hpp"), "");
    EXPECT_EQ(violation("solvers/eigen/x.cpp", "solvers/abft/abft.hpp"), "");
    EXPECT_EQ(violation("solvers/abft/x.cpp", "solvers/small_dense.hpp"), "");
    EXPECT_NE(violation("solvers/abft/x.cpp", "solvers/eigen/eigensolver.hpp"), "");
    EXPECT_NE(violation("solvers/abft/x.cpp", "solvers/orth/tsqr.hpp"), "");
    EXPECT_NE(violation("solvers/orth/x.cpp", "solvers/abft/abft.hpp"), "");
    EXPECT_EQ(violation("solvers/linear/x.cpp", "solvers/guarded_operator.hpp"), "");
    EXPECT_NE(violation("solvers/linear/x.cpp", "solvers/eigen/lobpcg.hpp"), "");
    EXPECT_EQ(violation("solvers/eigen/eigensolver.cpp", "solvers/eigen/automatic/both_ends.hpp"),
              "");
    EXPECT_NE(violation("apps/x.cpp", "solvers/eigen/automatic/both_ends.hpp"), "");
    EXPECT_EQ(violation("solvers/eigen/lobpcg/x.cpp", "solvers/eigen/lanczos/lanczos_basis.hpp"),
              "");
    EXPECT_NE(violation("solvers/eigen/search/x.cpp", "solvers/eigen/lanczos/lanczos_basis.hpp"),
              "");
    EXPECT_EQ(violation("examples/x.cpp", "Eigen/Core"), "");
    EXPECT_NE(violation("examples/x.cpp", "kernels/host/host_kernels.hpp"), "");
    EXPECT_NE(violation("examples/x.cpp", "apps/report.hpp"), "");
    EXPECT_EQ(violation("python/src/x.cpp", "solvers/eigen/eigensolver.hpp"), "");
    EXPECT_NE(violation("python/src/x.cpp", "kernels/host/simd.hpp"), "");
    EXPECT_NE(violation("solvers/x.cpp", "python/src/arrays.hpp"), "");
    EXPECT_EQ(violation("c/src/x.cpp", "solvers/eigen/eigensolver.hpp"), "");
    EXPECT_EQ(violation("python/src/x.cpp", "c/shared/qr.hpp"), "");
    EXPECT_NE(violation("python/src/x.cpp", "c/src/handles.hpp"), "");
    EXPECT_NE(violation("solvers/x.cpp", "c/shared/qr.hpp"), "");
    EXPECT_NE(violation("c/src/x.cpp", "apps/report.hpp"), "");
    EXPECT_NE(violation("c/src/x.cpp", "kernels/host/simd.hpp"), "");
    EXPECT_NE(violation("tests_of/x.cpp", "examples/first_solve.cpp"), "");
}

/// The header of `#include "header"` or `#include <header>`; none for any other line.
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

TEST(Architecture, EveryFolderOfSolversHasARule) {
    for (const auto& entry : fs::directory_iterator(fs::path(QUIVER_SOURCE_DIR) / "solvers")) {
        const auto has_rule = [&](const SolverFolder& one) {
            return one.folder == "solvers/" + entry.path().filename().string();
        };
        EXPECT_TRUE(!entry.is_directory() ||
                    std::any_of(solver_folders().begin(), solver_folders().end(), has_rule))
            << entry.path();
    }
}

/// The headers that cmake/QuiverHeaders.cmake lists.
std::vector<std::string> public_headers() {
    std::vector<std::string> headers;
    for (const SourceFile& file : source_tree()) {
        for (const std::string& line : file.lines) {
            const auto begin = line.find_first_not_of(' ');
            const auto end = line.find(".hpp");
            const bool lists = file.path == "cmake/QuiverHeaders.cmake" && line[0] == ' ' &&
                               end != std::string::npos;
            if (lists) {
                headers.push_back(line.substr(begin, end + 4 - begin));
            }
        }
    }
    return headers;
}

/// The project's headers that `path` includes.
std::vector<std::string> own_headers_of(std::string_view path) {
    std::vector<std::string> headers;
    for (const SourceFile& file : source_tree()) {
        for (const std::string& line : file.lines) {
            const auto header = file.path == path ? included_header(line) : std::nullopt;
            if (header && floor_of(*header)) {
                headers.push_back(*header);
            }
        }
    }
    return headers;
}

TEST(Architecture, APublicHeaderIncludesOnlyPublicHeaders) {
    std::vector<std::string> listed = public_headers();
    EXPECT_GT(listed.size(), 60U);
    for (const std::string& header : public_headers()) {
        EXPECT_TRUE(fs::exists(fs::path(QUIVER_SOURCE_DIR) / header)) << header;
        EXPECT_EQ(std::count(listed.begin(), listed.end(), header), 1) << header;
        for (const std::string& included : own_headers_of(header)) {
            EXPECT_TRUE(included == "blockvec/config.hpp" ||  // generated by the build
                        std::count(listed.begin(), listed.end(), included) == 1)
                << header << " includes " << included;
        }
    }
}

TEST(Architecture, TheHeaderOfAFloorIncludesItsPublicHeaders) {
    for (const std::string floor : {"blockvec", "kernels", "solvers"}) {
        const std::string umbrella = floor + "/" + floor + ".hpp";
        std::vector<std::string> expected;
        for (const std::string& header : public_headers()) {
            if (is_below(header, floor) && header != umbrella &&
                header != "blockvec/eigen_interop.hpp") {
                expected.push_back(header);
            }
        }
        EXPECT_EQ(own_headers_of(umbrella), expected);
    }
}

TEST(Architecture, IncludesGoStrictlyDown) {
    int includes = 0;
    int files = 0;
    for (const SourceFile& file : source_tree()) {
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

/// Operations must go through dispatch (kernels/operation.hpp), which applies the policy.
TEST(Architecture, OnlyDispatchCallsTheLeafOfAnOperation) {
    const std::vector<std::string> known{
        "kernels/leaves.hpp",      // defines it
        "kernels/operation.hpp",   // dispatch
        "kernels/dispatch.hpp",    // sums of small matrices, a part of an operation
        "kernels/sparse/halo.cpp"  // the send buffer, a part of spmmv
    };
    for (const SourceFile& file : source_tree()) {
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
    for (const SourceFile& file : source_tree()) {
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

TEST(Architecture, NoFileHoldsTabs) {
    for (const SourceFile& file : source_tree()) {
        if (!is_code(file.path) && !file.path.ends_with(".sh") && !file.path.ends_with(".cmake") &&
            !file.path.ends_with("CMakeLists.txt")) {
            continue;
        }
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            EXPECT_EQ(file.lines[i].find('\t'), std::string::npos) << file.path << ':' << i + 1;
        }
    }
}

TEST(Architecture, TheRootHasNoFoldersBesideTheFloors) {
    const std::vector<std::string> known{"apps",     "blockvec", "c",      "cmake",   "docs",
                                         "examples", "kernels",  "python", "solvers", "tests"};
    for (const auto& entry : fs::directory_iterator(QUIVER_SOURCE_DIR)) {
        const std::string name = entry.path().filename().string();
        const bool ours = entry.is_directory() && name[0] != '.' && name.find("build") != 0;
        if (ours) {
            EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;
        }
    }
}

}  // namespace
}  // namespace quiver::architecture
