// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs --vectors`: the file holds eigenvectors.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/hdf5_file.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

constexpr int nx = 7;
constexpr int ny = 5;
constexpr int wanted = 4;

/// (A x)(i, j) of the five-point Laplacian for column `col` of X.
template <class T>
T laplace(const BlockView<const T>& x, int i, int j, int col) {
    const auto at = [&](int a, int b) {
        return a < 0 || a >= nx || b < 0 || b >= ny ? T(0) : x(a + nx * b, col);
    };
    return real_t<T>(4) * at(i, j) - at(i - 1, j) - at(i + 1, j) - at(i, j - 1) - at(i, j + 1);
}

template <class T>
void expect_eigenvectors(const std::string& path, const EigsOutcome& outcome) {
    Context ctx;
    const auto block = read_block_vector<T>(ctx, path);
    const auto values = read_block_vector<double>(ctx, path, std::nullopt, "eigenvalues");
    const auto residuals = read_block_vector<double>(ctx, path, std::nullopt, "residuals");
    const BlockView<const T> x = block.view();
    ASSERT_EQ(x.rows, nx * ny);
    ASSERT_EQ(x.cols, wanted);
    ASSERT_EQ(values.rows(), wanted);
    ASSERT_EQ(residuals.rows(), wanted);
    // The solver's tolerance plus the rounding of the product below; ||A|| < 8.
    const double bound = (outcome.json["tolerance"].get<double>() + 10.0 * epsilon_v<T>)*8;
    for (int col = 0; col < wanted; ++col) {
        const double lambda = values.view()(col, 0);
        EXPECT_EQ(lambda, outcome.json["eigenvalues"][static_cast<std::size_t>(col)].get<double>());
        double residual = 0;
        double norm = 0;
        for (int i = 0; i < nx; ++i) {
            for (int j = 0; j < ny; ++j) {
                const T value = x(i + nx * j, col);
                residual +=
                    abs_squared(laplace(x, i, j, col) - static_cast<real_t<T>>(lambda) * value);
                norm += abs_squared(value);
            }
        }
        EXPECT_LE(std::sqrt(residual), bound) << col;
        EXPECT_NEAR(norm, 1, 100.0 * epsilon_v<T>) << col;
    }
}

TEST(EigsVectors, AreEigenvectorsForAnyNumberOfRanks) {
    if (!config::have_hdf5) {
        GTEST_SKIP() << "built without HDF5";
    }
    const std::string problem = "gen:laplace2d,nx=7,ny=5 -k 4 --vectors ";
    for (const int ranks : {1, 3}) {
        const Folder folder;
        const std::string path = folder.path("x.h5");
        const EigsOutcome real = run_eigs(problem + path + " --scalar d", ranks);
        ASSERT_EQ(real.status, 0) << real.err;
        expect_eigenvectors<double>(path, real);
        const EigsOutcome complex = run_eigs(problem + path + " --scalar c", ranks);
        ASSERT_EQ(complex.status, 0) << complex.err;
        expect_eigenvectors<std::complex<float>>(path, complex);
    }
}

TEST(EigsVectors, ABadPathIsReportedBeforeTheWork) {
    const Folder folder;
    const Outcome outcome = run_command(
        "eigs gen:laplace2d,nx=7,ny=5 --vectors " + folder.write("file", "") + "/x.h5", 2);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(config::have_hdf5 ? "--vectors" : "libhdf5-dev"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace quiver::test
