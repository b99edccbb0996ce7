// SPDX-License-Identifier: BSD-3-Clause
// The binary interface of libquiver: exported symbols, sizes and offsets of structs. No exception
// leaves a C function.
#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "c/src/handles.hpp"

namespace quiver::c {

std::string& kept_message() {
    static std::string message;
    return message;
}
// Replaces the function of the same name in the library, which the library does not export.
void set_message(const char* message) noexcept {
    kept_message() = message;
}

}  // namespace quiver::c

namespace quiver {
namespace {

/// One line for each symbol that the shared library exports, without the version nodes.
std::string symbols() {
    const std::string command =
        std::string(QUIVER_NM) + " -D --defined-only --format=posix " QUIVER_C_LIBRARY;
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 512> line{};
    while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) {
        const std::string word =
            std::string(line.data()).substr(0, std::string(line.data()).find(' '));
        const std::string name = word.substr(0, word.find('@'));
        if (name != "QUIVER_0") {
            text += "symbol " + name + "\n";
        }
    }
    EXPECT_EQ(pipe == nullptr ? -1 : pclose(pipe), 0);
    return text;
}

std::string line(const char* what, std::size_t number) {
    return std::string(what) + " " + std::to_string(number) + "\n";
}

#define QUIVER_SIZE(S) line("size " #S, sizeof(S))
#define QUIVER_AT(S, M) line("offset " #S "." #M, offsetof(S, M))

/// Every struct with the offsets of its members.
std::string layout() {
    return QUIVER_SIZE(quiver_scalar) + QUIVER_AT(quiver_scalar, im) +  //
           QUIVER_SIZE(quiver_block) + QUIVER_AT(quiver_block, data) +
           QUIVER_AT(quiver_block, rows) + QUIVER_AT(quiver_block, ld) +
           QUIVER_AT(quiver_block, cols) + QUIVER_AT(quiver_block, type) +
           QUIVER_AT(quiver_block, place) +  //
           QUIVER_SIZE(quiver_context_options) + QUIVER_AT(quiver_context_options, place) +
           QUIVER_AT(quiver_context_options, device) + QUIVER_AT(quiver_context_options, threads) +
           QUIVER_AT(quiver_context_options, use_comm) + QUIVER_AT(quiver_context_options, comm) +
           QUIVER_AT(quiver_context_options, stream) +  //
           QUIVER_SIZE(quiver_csr) + QUIVER_AT(quiver_csr, type) +
           QUIVER_AT(quiver_csr, index_bits) + QUIVER_AT(quiver_csr, place) +
           QUIVER_AT(quiver_csr, index_base) + QUIVER_AT(quiver_csr, rows) +
           QUIVER_AT(quiver_csr, row_start) + QUIVER_AT(quiver_csr, column) +
           QUIVER_AT(quiver_csr, value) + QUIVER_AT(quiver_csr, cols) +  //
           QUIVER_SIZE(quiver_progress) + QUIVER_AT(quiver_progress, solver) +
           QUIVER_AT(quiver_progress, stage) + QUIVER_AT(quiver_progress, iteration) +
           QUIVER_AT(quiver_progress, converged) + QUIVER_AT(quiver_progress, wanted) +
           QUIVER_AT(quiver_progress, residual) + QUIVER_AT(quiver_progress, seconds);
}

std::string eigen_layout() {
    return QUIVER_SIZE(quiver_eigen_options) + QUIVER_AT(quiver_eigen_options, k) +
           QUIVER_AT(quiver_eigen_options, which) + QUIVER_AT(quiver_eigen_options, target) +
           QUIVER_AT(quiver_eigen_options, tol) + QUIVER_AT(quiver_eigen_options, max_iterations) +
           QUIVER_AT(quiver_eigen_options, seed) + QUIVER_AT(quiver_eigen_options, method) +
           QUIVER_AT(quiver_eigen_options, block) + QUIVER_AT(quiver_eigen_options, max_basis) +
           QUIVER_AT(quiver_eigen_options, abft) + QUIVER_AT(quiver_eigen_options, use_window) +
           QUIVER_AT(quiver_eigen_options, skip_hermitian_check) +
           QUIVER_AT(quiver_eigen_options, window_low) +
           QUIVER_AT(quiver_eigen_options, window_high) + QUIVER_AT(quiver_eigen_options, mass) +
           QUIVER_AT(quiver_eigen_options, preconditioner) +
           QUIVER_AT(quiver_eigen_options, inverse) + QUIVER_AT(quiver_eigen_options, start) +
           QUIVER_AT(quiver_eigen_options, constraints) +
           QUIVER_AT(quiver_eigen_options, progress) +
           QUIVER_AT(quiver_eigen_options, progress_user) +
           QUIVER_AT(quiver_eigen_options, max_seconds) +
           QUIVER_AT(quiver_eigen_options, inner) +  //
           QUIVER_SIZE(quiver_eigen_info) + QUIVER_AT(quiver_eigen_info, count) +
           QUIVER_AT(quiver_eigen_info, converged) + QUIVER_AT(quiver_eigen_info, verified) +
           QUIVER_AT(quiver_eigen_info, cluster_cut) + QUIVER_AT(quiver_eigen_info, interrupted) +
           QUIVER_AT(quiver_eigen_info, method) + QUIVER_AT(quiver_eigen_info, values) +
           QUIVER_AT(quiver_eigen_info, residuals) + QUIVER_AT(quiver_eigen_info, vectors) +
           QUIVER_AT(quiver_eigen_info, norm_estimate) + QUIVER_AT(quiver_eigen_info, tolerance) +
           QUIVER_AT(quiver_eigen_info, seconds) + QUIVER_AT(quiver_eigen_info, iterations) +
           QUIVER_AT(quiver_eigen_info, operator_applications) +
           QUIVER_AT(quiver_eigen_info, faults) + QUIVER_AT(quiver_eigen_info, message);
}

std::string linear_layout() {
    return QUIVER_SIZE(quiver_linear_options) + QUIVER_AT(quiver_linear_options, method) +
           QUIVER_AT(quiver_linear_options, x_is_guess) + QUIVER_AT(quiver_linear_options, tol) +
           QUIVER_AT(quiver_linear_options, column_tol) +
           QUIVER_AT(quiver_linear_options, max_iterations) +
           QUIVER_AT(quiver_linear_options, restart) + QUIVER_AT(quiver_linear_options, shift) +
           QUIVER_AT(quiver_linear_options, preconditioner) +  //
           QUIVER_SIZE(quiver_linear_info) + QUIVER_AT(quiver_linear_info, count) +
           QUIVER_AT(quiver_linear_info, converged) + QUIVER_AT(quiver_linear_info, residuals) +
           QUIVER_AT(quiver_linear_info, b_norms) +
           QUIVER_AT(quiver_linear_info, column_iterations) +
           QUIVER_AT(quiver_linear_info, column_converged) +
           QUIVER_AT(quiver_linear_info, iterations) +
           QUIVER_AT(quiver_linear_info, operator_applications) +
           QUIVER_AT(quiver_linear_info, preconditioner_applications) +
           QUIVER_AT(quiver_linear_info, seconds) + QUIVER_AT(quiver_linear_info, message);
}

/// Compiled programs rely on this list. New symbols, and new fields at the end of a struct that
/// begins with struct_size, may be added; any other change needs a new soname (c/CMakeLists.txt).
TEST(CAbi, SymbolsAndStructsAreThoseOfTheList) {
    std::ifstream file(QUIVER_SOURCE_DIR "/tests/doors/abi.txt");
    std::string expected;
    for (std::string text; std::getline(file, text);) {
        if (!text.empty() && text[0] != '#') {
            expected += text + "\n";
        }
    }
    EXPECT_EQ(symbols() + layout() + eigen_layout() + linear_layout(), expected);
}

template <class E>
void expect_status(const E& error, quiver_status status, const char* message) {
    EXPECT_EQ(c::enter([&] { throw error; }), status);
    EXPECT_EQ(c::kept_message(), message);
}

TEST(CAbi, EveryExceptionBecomesAStatus) {
    expect_status(Error(ErrorKind::other, "1"), QUIVER_ERROR_OTHER, "1");
    expect_status(ShapeError("2"), QUIVER_ERROR_SHAPE, "2");
    expect_status(InputError("3"), QUIVER_ERROR_INPUT, "3");
    expect_status(UnsupportedError("4"), QUIVER_ERROR_UNSUPPORTED, "4");
    expect_status(NumericalError("5"), QUIVER_ERROR_NUMERICAL, "5");
    expect_status(MemoryError("6"), QUIVER_ERROR_MEMORY, "6");
    expect_status(DeviceError("7"), QUIVER_ERROR_DEVICE, "7");
    expect_status(CommError("8"), QUIVER_ERROR_COMM, "8");
    expect_status(std::bad_alloc(), QUIVER_ERROR_MEMORY, "out of host memory");
    expect_status(std::runtime_error("9"), QUIVER_ERROR_OTHER, "9");
    expect_status(10, QUIVER_ERROR_OTHER, "an exception of unknown type");
    EXPECT_EQ(c::enter([] {}), QUIVER_OK);
    EXPECT_EQ(c::kept_message(), "");
    EXPECT_EQ(c::enter([] { return QUIVER_NOT_CONVERGED; }), QUIVER_NOT_CONVERGED);
}

}  // namespace
}  // namespace quiver
