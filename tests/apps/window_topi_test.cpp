// SPDX-License-Identifier: BSD-3-Clause
// Windows at the band edge of a topological insulator. All states of the bulk are compared with the
// dispersion; all surface states in the gap of an open slab are compared with the eigenvalues of
// the small dense Bloch blocks of the slab.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "apps/matrices/generators.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/small_dense.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

using Z = std::complex<double>;

double momentum(int i, int n) {
    return 2 * std::numbers::pi * i / n;
}

/// +- sqrt((2 - sum cos k)^2 + sum sin^2 k), each twice, for every momentum.
std::vector<double> bulk_spectrum(int nx, int ny, int nz) {
    std::vector<double> values;
    for (int i = 0; i < nx; ++i) {
        for (int j = 0; j < ny; ++j) {
            for (int l = 0; l < nz; ++l) {
                double mass = 2;
                double square = 0;
                for (const double k : {momentum(i, nx), momentum(j, ny), momentum(l, nz)}) {
                    mass -= std::cos(k);
                    square += std::sin(k) * std::sin(k);
                }
                const double energy = std::sqrt(mass * mass + square);
                values.insert(values.end(), {energy, energy, -energy, -energy});
            }
        }
    }
    std::sort(values.begin(), values.end());
    return values;
}

/// The spectrum of a slab of nz layers, open in z. On each layer H(kx, ky) is
/// (2 - cos kx - cos ky) G1 + sin kx G2 + sin ky G3, between layers -(G1 - i G4) / 2, up to a sign
/// of the momenta.
std::vector<double> slab_spectrum(int nx, int ny, int nz) {
    const Z i(0, 1);
    std::vector<double> values;
    for (int x = 0; x < nx; ++x) {
        for (int y = 0; y < ny; ++y) {
            const double sx = std::sin(momentum(x, nx));
            const double sy = std::sin(momentum(y, ny));
            const double mass = 2 - std::cos(momentum(x, nx)) - std::cos(momentum(y, ny));
            SmallMatrix<Z> h(4 * nz, 4 * nz);
            for (int layer = 0; layer < nz; ++layer) {
                const int at = 4 * layer;
                for (int o = 0; o < 4; ++o) {
                    const double g1 = o < 2 ? 1 : -1;
                    const Z g23 = o % 2 == 0 ? sx - i * sy : sx + i * sy;
                    h(at + o, at + o) = mass * g1;
                    h(at + o, at + 3 - o) = g23;
                    if (layer + 1 < nz) {
                        const double g4 = o % 2 == 0 ? 1 : -1;
                        const int across = (o + 2) % 4;
                        h(at + 4 + o, at + o) = h(at + o, at + 4 + o) = -0.5 * g1;
                        h(at + 4 + o, at + across) = 0.5 * i * g4;
                        h(at + across, at + 4 + o) = -0.5 * i * g4;
                    }
                }
            }
            const auto part = hermitian_eigen(h).values;
            values.insert(values.end(), part.begin(), part.end());
        }
    }
    std::sort(values.begin(), values.end());
    return values;
}

/// Solves a window whose ends lie in gaps and checks every pair; returns the number of pairs.
std::size_t check_window(Context& ctx, Operator<Z>& a, const std::vector<double>& spectrum,
                         double low, double high) {
    EigenOptions options;
    options.window = Window{low, high};
    options.method = Method::filter;
    const auto result = eigensolve(ctx, EigenProblem<Z>{a}, options);
    const auto first = std::lower_bound(spectrum.begin(), spectrum.end(), low);
    const auto last = std::upper_bound(spectrum.begin(), spectrum.end(), high);
    const std::vector<double> inside(first, last);
    EXPECT_FALSE(inside.empty());
    for (const double value : spectrum) {
        EXPECT_GT(std::min(std::abs(value - low), std::abs(value - high)), 0.01);
    }
    EXPECT_EQ(result.eigenvalues.size(), inside.size());
    if (result.eigenvalues.size() == inside.size()) {
        test::check_pairs(ctx, a, result, inside, static_cast<int>(inside.size()), Which::smallest,
                          spectrum.back());
    }
    return result.eigenvalues.size();
}

TEST(TopologicalInsulatorWindow, BandEdgeOfTheBulk) {
    Context ctx = test::make_context();
    SparseMatrix<Z> a(ctx, generate<Z>(ctx.comm(), "gen:topi,nx=6,nz=4,bz=periodic", 1));
    // 28 copies of 1, then eight of the next.
    EXPECT_EQ(check_window(ctx, a, bulk_spectrum(6, 6, 4), 0.8, 1.3), 36u);
}

TEST(TopologicalInsulatorWindow, SurfaceStatesInTheGapByTwoHalves) {
    Context ctx = test::make_context();
    const auto spectrum = slab_spectrum(6, 6, 4);
    SparseMatrix<Z> a(ctx, generate<Z>(ctx.comm(), "gen:topi,nx=6,nz=4", 1));
    const std::size_t whole = check_window(ctx, a, spectrum, -0.93, 0.1);
    EXPECT_EQ(
        check_window(ctx, a, spectrum, -0.93, -0.43) + check_window(ctx, a, spectrum, -0.43, 0.1),
        whole);
}

}  // namespace
}  // namespace quiver::apps
