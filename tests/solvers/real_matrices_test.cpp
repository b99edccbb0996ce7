// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues of real matrices against references by dense LAPACK or shift-and-invert. The folder
// (QUIVER_TEST_DATA, else ../shared/data beside the source) holds NAME.mtx.gz and NAME.eigs.json.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/sparse/matrix_market.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

std::filesystem::path data_folder() {
    if (const char* given = std::getenv("QUIVER_TEST_DATA")) {
        return given;
    }
    return std::filesystem::path(QUIVER_SOURCE_DIR) / ".." / "shared" / "data";
}

struct Task {
    Method method;
    Which which;
    double tolerance;
};

template <class T>
void check_end(const std::string& file, const nlohmann::json& reference, const Task& task) {
    Context ctx = test::make_context();
    SparseMatrix<T> a(ctx, read_matrix_market<T>(ctx.comm(), file));
    EigenOptions options;
    options.k = static_cast<int>(reference.size());
    options.which = task.which;
    options.tol = task.tolerance;
    options.method = task.method;
    const EigenResult<T> result = eigensolve(ctx, EigenProblem<T>{a}, options);
    EXPECT_TRUE(result.converged) << result.message;
    ASSERT_EQ(result.eigenvalues.size(), reference.size());
    for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
        EXPECT_NEAR(result.eigenvalues[j], reference[j].get<double>(),
                    10 * task.tolerance * result.norm_estimate)
            << "eigenvalue " << j;
    }
}

/// One end of every matrix with a reference for it and at most so many rows.
void check_all(const Task& task, std::int64_t most_rows) {
    if (!std::filesystem::is_directory(data_folder())) {
        GTEST_SKIP() << "no folder " << data_folder() << " with matrices and references";
    }
    const char* end = task.which == Which::smallest ? "smallest" : "largest";
    int matrices = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_folder())) {
        const std::string name = entry.path().filename().string();
        const std::string ending = ".eigs.json";
        if (!name.ends_with(ending)) {
            continue;
        }
        const std::string stem = name.substr(0, name.size() - ending.size());
        SCOPED_TRACE(stem);
        const auto reference = nlohmann::json::parse(std::ifstream(entry.path()));
        if (!reference.contains(end) || reference["n"].get<std::int64_t>() > most_rows) {
            continue;
        }
        const std::string file = (data_folder() / (stem + ".mtx.gz")).string();
        if (read_matrix_market_header(Comm(MPI_COMM_WORLD), file).is_complex()) {
            check_end<std::complex<double>>(file, reference[end], task);
        } else {
            check_end<double>(file, reference[end], task);
        }
        ++matrices;
    }
    EXPECT_GT(matrices, 0) << data_folder();
}

TEST(RealMatrices, TenLargestByLanczos) {
    check_all({Method::lanczos, Which::largest, 1e-11}, 1 << 30);
}

TEST(RealMatrices, TenLargestByChebyshev) {
    check_all({Method::chebyshev, Which::largest, 1e-11}, 1 << 30);
}

}  // namespace
}  // namespace quiver
