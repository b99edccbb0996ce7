// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues of matrices from applications, compared with references by dense LAPACK or
// shift-and-invert. The folder (QUIVER_TEST_DATA, else ../shared/data beside the source) holds
// NAME.mtx.gz and NAME.eigs.json.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/sparse/matrix_market.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/small_dense.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

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

/// Solves for one end of every matrix that has a reference for this end and at most `rows_limit`
/// rows, except the matrices of `left_out`.
void check_all(const Task& task, std::int64_t rows_limit,
               const std::set<std::string>& left_out = {}) {
    if (!std::filesystem::is_directory(test::data_folder())) {
        GTEST_SKIP() << "no folder " << test::data_folder() << " with matrices and references";
    }
    const char* end = task.which == Which::smallest ? "smallest" : "largest";
    int matrices = 0;
    for (const auto& entry : std::filesystem::directory_iterator(test::data_folder())) {
        const std::string name = entry.path().filename().string();
        const std::string ending = ".eigs.json";
        if (!name.ends_with(ending)) {
            continue;
        }
        const std::string stem = name.substr(0, name.size() - ending.size());
        SCOPED_TRACE(stem);
        const auto reference = nlohmann::json::parse(std::ifstream(entry.path()));
        if (!reference.contains(end) || reference["n"].get<std::int64_t>() > rows_limit ||
            left_out.contains(stem)) {
            continue;
        }
        const std::string file = (test::data_folder() / (stem + ".mtx.gz")).string();
        if (read_matrix_market_header(Comm(MPI_COMM_WORLD), file).is_complex()) {
            check_end<std::complex<double>>(file, reference[end], task);
        } else {
            check_end<double>(file, reference[end], task);
        }
        ++matrices;
    }
    EXPECT_GT(matrices, 0) << test::data_folder();
}

/// The largest number of rows: several ranks share the cores of a test machine, so they solve only
/// smaller matrices, except in the nightly tests.
std::int64_t most_rows(std::int64_t alone, std::int64_t several) {
    const bool is_alone = Comm(MPI_COMM_WORLD).size() == 1;
    return is_alone || std::getenv("QUIVER_TEST_ALL_CASES") != nullptr ? alone : several;
}
std::int64_t any_rows() {
    const bool is_nightly = std::getenv("QUIVER_TEST_ALL_CASES") != nullptr;
    return is_nightly ? 1 << 30 : most_rows(100'000, 9000);
}
std::int64_t few_rows() {
    return most_rows(9000, 2500);
}

TEST(RealMatrices, TenLargestByLanczos) {
    check_all({Method::lanczos, Which::largest, 1e-11}, any_rows());
}

TEST(RealMatrices, TenLargestByChebyshev) {
    check_all({Method::chebyshev, Which::largest, 1e-11}, any_rows());
}

TEST(RealMatrices, TenLargestByLobpcg) {
    check_all({Method::lobpcg, Which::largest, 1e-11}, few_rows());
}

TEST(RealMatrices, TenLargestByJacobiDavidson) {
    check_all({Method::jacobi_davidson, Which::largest, 1e-11}, few_rows());
}

/// Matrices with conditions of 1e10 and more, whose small ends need a preconditioner.
const std::set<std::string> hard_small_ends{"bcsstk13", "mhd1280b", "mhd4800b"};

TEST(RealMatrices, TenSmallestByLobpcg) {
    check_all({Method::lobpcg, Which::smallest, 1e-11}, few_rows(), hard_small_ends);
}

TEST(RealMatrices, TenSmallestByChebyshev) {
    check_all({Method::chebyshev, Which::smallest, 1e-11}, few_rows(), hard_small_ends);
}

/// The matrix of a file, distributed by rows, and its entries.
struct FileMatrix {
    FileMatrix(Context& ctx, const std::string& name)
        : all(read_matrix_market<double>(Comm(),
                                         (test::data_folder() / (name + ".mtx.gz")).string())),
          matrix(ctx, read_matrix_market<double>(
                          ctx.comm(), (test::data_folder() / (name + ".mtx.gz")).string(),
                          Partition::by_rows)) {}
    int rows() const { return static_cast<int>(all.map.global_rows()); }
    SmallMatrix<double> dense() const {
        SmallMatrix<double> result(rows(), rows());
        for (int i = 0; i < rows(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            for (auto e = all.row_start[at]; e < all.row_start[at + 1]; ++e) {
                const auto entry = static_cast<std::size_t>(e);
                result(i, static_cast<int>(all.column[entry])) = all.value[entry];
            }
        }
        return result;
    }
    std::vector<double> inverse_diagonal() const {
        std::vector<double> result(static_cast<std::size_t>(rows()), 1);
        for (std::size_t i = 0; i < result.size(); ++i) {
            for (auto e = all.row_start[i]; e < all.row_start[i + 1]; ++e) {
                const auto entry = static_cast<std::size_t>(e);
                if (all.column[entry] == static_cast<std::int64_t>(i)) {
                    result[i] = 1 / all.value[entry];
                }
            }
        }
        return result;
    }

    CsrRows<double> all;
    SparseMatrix<double> matrix;
};

/// The small ends of matrices with conditions 4e7 and 9e3, which need a diagonal preconditioner.
TEST(RealMatrices, SmallEndsByPreconditionedJacobiDavidson) {
    if (!std::filesystem::is_directory(test::data_folder())) {
        GTEST_SKIP() << "no folder " << test::data_folder();
    }
    Context ctx = test::make_context();
    for (const std::string name : {"1138_bus", "bcsstk09"}) {
        SCOPED_TRACE(name);
        FileMatrix file(ctx, name);
        auto k = test::diagonal<double>(ctx, file.inverse_diagonal());
        EigenProblem<double> problem{file.matrix};
        problem.preconditioner = &k;
        EigenOptions options;
        options.method = Method::jacobi_davidson;
        options.k = 10;
        options.tol = 1e-13;
        options.max_iterations = 40000;
        const EigenResult<double> result = eigensolve(ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        const auto reference = nlohmann::json::parse(
            std::ifstream((test::data_folder() / (name + ".eigs.json")).string()));
        // The rounding error of a Rayleigh quotient is relative to the norm.
        const double bound = reference["abs_err_bound"].get<double>() +
                             10 * epsilon_v<double> * result.norm_estimate;
        ASSERT_EQ(result.eigenvalues.size(), 10u);
        for (std::size_t j = 0; j < 10; ++j) {
            EXPECT_NEAR(result.eigenvalues[j], reference["smallest"][j].get<double>(), bound) << j;
        }
    }
}

TEST(RealMatrices, PencilOfLundByJacobiDavidson) {
    if (!std::filesystem::is_directory(test::data_folder())) {
        GTEST_SKIP() << "no folder " << test::data_folder();
    }
    Context ctx = test::make_context();
    FileMatrix a(ctx, "lund_a");
    FileMatrix b(ctx, "lund_b");
    const SmallMatrix<double> inverse = inverse_of_upper(cholesky(b.dense()).r);
    SmallMatrix<double> adjoint(inverse.cols(), inverse.rows());
    for (int i = 0; i < inverse.rows(); ++i) {
        for (int j = 0; j < inverse.cols(); ++j) {
            adjoint(j, i) = inverse(i, j);
        }
    }
    const std::vector<double> exact =
        hermitian_eigen(product(adjoint, product(a.dense(), inverse))).values;
    auto k = test::diagonal<double>(ctx, a.inverse_diagonal());
    EigenProblem<double> problem{a.matrix};
    problem.b = &b.matrix;
    problem.preconditioner = &k;
    EigenOptions options;
    options.method = Method::jacobi_davidson;
    options.k = 6;
    options.tol = 1e-13;
    options.max_iterations = 40000;
    const EigenResult<double> result = eigensolve(ctx, problem, options);
    EXPECT_TRUE(result.converged) << result.message;
    ASSERT_EQ(result.eigenvalues.size(), 6u);
    for (std::size_t j = 0; j < 6; ++j) {
        // The error of the dense reference is about eps ||B^-1 A||, relative to the largest
        // eigenvalue.
        EXPECT_NEAR(result.eigenvalues[j], exact[j], 100 * epsilon_v<double> * exact.back()) << j;
    }
}

}  // namespace
}  // namespace quiver
