// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues of real matrices against references by dense LAPACK or shift-and-invert. The folder
// (QUIVER_TEST_DATA, else ../shared/data beside the source) holds NAME.mtx.gz and NAME.eigs.json.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/sparse/matrix_market.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

std::filesystem::path data_folder() {
    if (const char* given = std::getenv("QUIVER_TEST_DATA")) {
        return given;
    }
    return std::filesystem::path(QUIVER_SOURCE_DIR) / ".." / "shared" / "data";
}

template <class T>
void check_largest(const std::string& file, const nlohmann::json& reference) {
    Context ctx = test::make_context();
    SparseMatrix<T> a(ctx, read_matrix_market<T>(ctx.comm(), file));
    EigenOptions options;
    options.k = static_cast<int>(reference["largest"].size());
    options.which = Which::largest;
    options.tol = 1e-11;
    const EigenResult<T> result = block_lanczos(ctx, a, options);
    EXPECT_TRUE(result.converged) << result.message;
    ASSERT_EQ(result.eigenvalues.size(), reference["largest"].size());
    for (std::size_t j = 0; j < result.eigenvalues.size(); ++j) {
        EXPECT_NEAR(result.eigenvalues[j], reference["largest"][j].get<double>(),
                    1e-10 * result.norm_estimate)
            << "eigenvalue " << j;
    }
}

TEST(RealMatrices, TenLargestOfEveryHermitianOne) {
    if (!std::filesystem::is_directory(data_folder())) {
        GTEST_SKIP() << "no folder " << data_folder() << " with matrices and references";
    }
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
        const std::string file = (data_folder() / (stem + ".mtx.gz")).string();
        if (read_matrix_market_header(Comm(MPI_COMM_WORLD), file).is_complex()) {
            check_largest<std::complex<double>>(file, reference);
        } else {
            check_largest<double>(file, reference);
        }
        ++matrices;
    }
    EXPECT_GT(matrices, 0) << data_folder();
}

}  // namespace
}  // namespace quiver
