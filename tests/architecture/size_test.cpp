// SPDX-License-Identifier: BSD-3-Clause
// Limits on the sizes of functions and classes: a function does one thing, a class is one thing.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/architecture/code_shape.hpp"
#include "tests/architecture/source_tree.hpp"

namespace quiver::architecture {
namespace {

constexpr int most_function_lines = 80;
constexpr int most_data_members = 20;
constexpr std::size_t most_file_lines = 800;

/// A function or class that may be larger, up to `most`, and the reason. Do not add entries: split
/// the function instead. An entry that is no longer needed fails the test. Only functions of tests
/// may be larger.
struct Exception {
    std::string_view path;
    std::string_view name;
    int most;
    std::string_view reason;
};

constexpr Exception long_functions[] = {
    {"tests/apps/bench_report_test.cpp", "BenchReport.JsonHasTheFieldsOfItsSchema", 90,
     "a list: one check for each field of the schema"},
    {"tests/apps/cli_bench_test.cpp", "BenchCommand.MisuseIsRefusedWithOneLine", 90,
     "a table: one row for each misuse"},
    {"tests/apps/cli_misuse_test.cpp", "file_rows", 150, "a table: one row for each bad file"},
    {"tests/apps/cli_misuse_test.cpp", "option_rows", 120, "a table: one row for each bad option"},
    {"tests/kernels/cuda/mixed_plan_test.cpp", "FoldedSums.EveryWantedSumHasOnePlace", 100,
     "an enumeration of every sum of a warp"},
    {"tests/kernels/sparse/sparse_format_test.cpp",
     "SparseFormatTest.LeavesAgreeWithTheReferenceForBothIndexWidths", 90,
     "nested loops over formats and shapes"},
};

constexpr Exception large_classes[] = {
    {"apps/bench/rivals/cusparse.cpp", "CuSparse", 31,
     "one member for each function that it loads"},
    {"apps/eigs.hpp", "EigsOptions", 24, "a record: one member for each option"},
    {"apps/report.hpp", "EigsReport", 36, "a record: one member for each field of the report"},
    {"kernels/operations/spmmv.hpp", "SpmmvArgs", 31, "a record: the arguments of a leaf"},
    {"solvers/eigen/eigen_result.hpp", "EigenResult", 23,
     "a record: one member for each field of the result"},
    {"solvers/eigen/jacobi_davidson/jada_basis.hpp", "JadaBasis", 33,
     "six blocks and their small matrices"},
    {"solvers/eigen/lanczos/lanczos_recurrence.hpp", "LanczosRecurrence", 26,
     "the columns, their small matrices and the Ritz pairs"},
    {"solvers/eigen/lobpcg/lobpcg_space.hpp", "LobpcgSpace", 27,
     "the blocks of [Q X P W] and their products"},
    {"solvers/linear/linear_columns.hpp", "LinearColumns", 26,
     "the state of a solve that all linear solvers share"},
};

/// Device code is exempt: registers and inlining limit it instead.
bool runs_on_the_host(std::string_view path) {
    return is_code(path) && !is_below(path, "kernels/cuda/src");
}

std::string text_of(const SourceFile& file) {
    std::string text;
    for (const std::string& line : file.lines) {
        text += line + '\n';
    }
    return text;
}

int limit_of(std::span<const Exception> exceptions, std::string_view path, std::string_view name,
             int usual) {
    const auto found = std::find_if(exceptions.begin(), exceptions.end(), [&](const Exception& e) {
        return e.path == path && e.name == name;
    });
    return found == exceptions.end() ? usual : found->most;
}

/// Checks that every exception is needed. `size_of` returns the largest size of that name, or 0.
template <class SizeOf>
void expect_all_needed(std::span<const Exception> exceptions, int usual, SizeOf&& size_of) {
    for (const Exception& exception : exceptions) {
        int size = 0;
        for (const SourceFile& file : source_tree()) {
            if (file.path == exception.path) {
                size = size_of(shape_of(text_of(file)), exception.name);
            }
        }
        EXPECT_GT(size, usual) << exception.path << ": " << exception.name
                               << " no longer needs its exception: remove the entry";
        EXPECT_FALSE(exception.reason.empty()) << exception.name;
    }
}

TEST(Sizes, FunctionsAreShort) {
    int functions = 0;
    for (const SourceFile& file : source_tree()) {
        if (!runs_on_the_host(file.path)) {
            continue;
        }
        for (const FunctionShape& function : shape_of(text_of(file)).functions) {
            ++functions;
            EXPECT_LE(function.lines,
                      limit_of(long_functions, file.path, function.name, most_function_lines))
                << file.path << ':' << function.first_line << ": the function " << function.name;
        }
    }
    EXPECT_GT(functions, 4000);
    for (const Exception& exception : long_functions) {
        EXPECT_TRUE(is_below(exception.path, "tests")) << exception.path;
    }
    expect_all_needed(long_functions, most_function_lines,
                      [](const CodeShape& shape, std::string_view name) {
                          int lines = 0;
                          for (const FunctionShape& function : shape.functions) {
                              lines = std::max(lines, function.name == name ? function.lines : 0);
                          }
                          return lines;
                      });
}

TEST(Sizes, ClassesHaveFewDataMembers) {
    int classes = 0;
    for (const SourceFile& file : source_tree()) {
        if (!runs_on_the_host(file.path)) {
            continue;
        }
        for (const ClassShape& one : shape_of(text_of(file)).classes) {
            ++classes;
            EXPECT_LE(one.data_members,
                      limit_of(large_classes, file.path, one.name, most_data_members))
                << file.path << ':' << one.first_line << ": the class " << one.name;
        }
    }
    EXPECT_GT(classes, 500);
    expect_all_needed(large_classes, most_data_members,
                      [](const CodeShape& shape, std::string_view name) {
                          int members = 0;
                          for (const ClassShape& one : shape.classes) {
                              members = std::max(members, one.name == name ? one.data_members : 0);
                          }
                          return members;
                      });
}

/// Longer files are slow to compile and hard to read; this limit says nothing about responsibility.
TEST(Sizes, FilesAreOfReadableLength) {
    for (const SourceFile& file : source_tree()) {
        if (is_code(file.path) || file.path.ends_with(".sh") || file.path.ends_with(".cmake") ||
            file.path.ends_with("CMakeLists.txt")) {
            EXPECT_LE(file.lines.size(), most_file_lines) << file.path;
        }
    }
}

}  // namespace
}  // namespace quiver::architecture
