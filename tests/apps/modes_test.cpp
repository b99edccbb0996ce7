// SPDX-License-Identifier: BSD-3-Clause
// The hexahedra of gen:hexahedra: patch tests, masses and moments of inertia, exact frequencies of
// the discrete bar, and convergence to the beam of Euler and Bernoulli.
#include "solvers/eigen/modes.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "apps/matrices/generators.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

using Matrix = Eigen::MatrixXd;

Matrix dense(const Comm& comm, const std::string& spec) {
    const test::Dense all = test::gather_dense(comm, generate<double>(comm, spec, 2));
    Matrix result(all.rows, all.rows);
    for (Eigen::Index i = 0; i < result.rows(); ++i) {
        for (Eigen::Index j = 0; j < result.cols(); ++j) {
            result(i, j) = all(i, j).real();
        }
    }
    return result;
}

const std::string block = "gen:hexahedra,nx=3,ny=2,nz=3,lx=1.5,ly=0.8,lz=2.1,E=7,nu=0.28,rho=3";
constexpr std::array<double, 3> lengths{1.5, 0.8, 2.1};
constexpr double volume = 1.5 * 0.8 * 2.1;

ModesResult<double> modes_of(Context& ctx, const std::string& spec, const ModesOptions& options,
                             const std::string& mass = "mass") {
    SparseMatrix<double> k(ctx, generate<double>(ctx.comm(), spec, 1));
    SparseMatrix<double> m(ctx, generate<double>(ctx.comm(), spec + ",matrix=" + mass, 1));
    const Mesh mesh = *generated_mesh(spec);
    const BlockVector<double> directions = rigid_directions<double>(
        ctx, k.row_map(), std::span(mesh.points).subspan(static_cast<std::size_t>(3 * mesh.fixed)));
    return modes<double>(ctx, k, m, options, std::as_const(directions).view());
}

TEST(Hexahedra, PatchTest) {
    const Comm comm(MPI_COMM_WORLD);
    const Matrix k = dense(comm, block);
    const Mesh mesh = *generated_mesh(block);
    ASSERT_EQ(k.rows(), static_cast<Eigen::Index>(mesh.points.size()));
    EXPECT_EQ((k - k.transpose()).cwiseAbs().maxCoeff(), 0);
    // Displacements u = G x have constant strain: the forces at inner nodes vanish, and the energy
    // is that of the stress in the volume.
    Eigen::Matrix3d gradient;
    gradient << 0.3, -0.2, 0.5, 0.1, 0.7, -0.4, 0.6, 0.2, -0.1;
    Eigen::VectorXd u(k.rows());
    for (Eigen::Index node = 0; node < k.rows() / 3; ++node) {
        const Eigen::Map<const Eigen::Vector3d> x(&mesh.points[static_cast<std::size_t>(3 * node)]);
        u.segment<3>(3 * node) = gradient * x;
    }
    const Eigen::Matrix3d strain = 0.5 * (gradient + gradient.transpose());
    const double lame = 7 * 0.28 / (1.28 * 0.44);
    const double shear = 7 / (2 * 1.28);
    const Eigen::Matrix3d stress =
        lame * strain.trace() * Eigen::Matrix3d::Identity() + 2 * shear * strain;
    const Eigen::VectorXd force = k * u;
    const double norm = k.cwiseAbs().rowwise().sum().maxCoeff() * u.cwiseAbs().maxCoeff();
    EXPECT_NEAR(u.dot(force), volume * stress.cwiseProduct(strain).sum(), 1e-13 * norm * 100);
    int inner = 0;
    for (Eigen::Index node = 0; node < k.rows() / 3; ++node) {
        bool is_inner = true;
        for (std::size_t d = 0; d < 3; ++d) {
            const double x = mesh.points[static_cast<std::size_t>(3 * node) + d];
            is_inner = is_inner && x > 1e-9 && x < lengths[d] - 1e-9;
        }
        if (is_inner) {
            ++inner;
            EXPECT_LE(force.segment<3>(3 * node).norm(), 1e-13 * norm) << node;
        }
    }
    EXPECT_EQ(inner, 2 * 1 * 2);
    const Eigen::VectorXd values = test::oracle::eigenvalues(k);
    EXPECT_LE(values.head(6).cwiseAbs().maxCoeff(), 1e-13 * values.maxCoeff());
    EXPECT_GE(values(6), 1e-4 * values.maxCoeff());
}

TEST(Hexahedra, MassesAndMoments) {
    Context ctx = test::make_context();
    const double mass = 3 * volume;
    ModesOptions options;
    for (const std::string kind : {"mass", "lumped"}) {
        const ModesResult<double> result = modes_of(ctx, block, options, kind);
        EXPECT_TRUE(result.eigen.converged) << result.eigen.message;
        EXPECT_EQ(result.rigid, 6);
        for (std::size_t d = 0; d < 3; ++d) {
            EXPECT_NEAR(result.total_masses[d], mass, 1e-12 * mass);
            EXPECT_NEAR(result.centre[d], 0.5 * lengths[d], 1e-12);
            if (kind == "mass") {  // lumped masses at the corners have larger moments
                const double b = lengths[(d + 1) % 3];
                const double c = lengths[(d + 2) % 3];
                EXPECT_NEAR(result.total_masses[3 + d], mass * (b * b + c * c) / 12, 1e-11 * mass);
            }
        }
        for (std::size_t d = 0; d < 6; ++d) {
            double captured = 0;
            for (const double one : result.effective_masses(d)) {
                captured += one;
            }
            EXPECT_NEAR(captured / result.total_masses[d], 1, 1e-9);
        }
    }
}

TEST(Hexahedra, MassesAreThoseOfTheElements) {
    const Comm comm(MPI_COMM_WORLD);
    const Matrix consistent = dense(comm, block + ",matrix=mass");
    const Matrix lumped = dense(comm, block + ",matrix=lumped");
    // On a box the row sums of the consistent mass matrix are the lumped masses.
    EXPECT_LE((consistent.rowwise().sum() - lumped.diagonal()).cwiseAbs().maxCoeff(), 1e-14);
    EXPECT_LE((lumped - Matrix(lumped.diagonal().asDiagonal())).cwiseAbs().maxCoeff(), 0);
    EXPECT_GT(test::oracle::eigenvalues(consistent)(0), 0);
    EXPECT_EQ((consistent - consistent.transpose()).cwiseAbs().maxCoeff(), 0);
}

/// Without Poisson's ratio, longitudinal waves in a clamped bar are those of linear elements on a
/// line: lambda = 6 c^2 / h^2 (1 - cos t) / (2 + cos t), t = (2 j - 1) pi h / (2 L).
TEST(Hexahedra, ABarHasTheFrequenciesOfLinearElements) {
    Context ctx = test::make_context();
    ModesOptions options;
    options.unit = radians_per_second;
    options.solver.k = 1;
    for (const int j : {1, 2, 5}) {
        const double h = 1.0 / 8;
        const double t = (2 * j - 1) * std::numbers::pi * h / 2;
        const double lambda =
            6 / (h * h) * (1 - std::cos(t)) / (2 + std::cos(t)) * 4.0;  // c^2 = E / rho
        options.near = std::sqrt(lambda);
        const ModesResult<double> result = modes_of(
            ctx, "gen:hexahedra,nx=8,ny=1,nz=1,lx=1,ly=0.3,lz=0.2,E=8,nu=0,rho=2,support=clamped",
            options);
        ASSERT_EQ(result.frequencies.size(), 1u);
        EXPECT_NEAR(result.frequencies[0] / std::sqrt(lambda), 1, 1e-10) << j;
        EXPECT_GT(result.effective_masses(0)[0], 0) << j;
    }
}

/// The first frequency of a slender clamped beam, 1.8751^2 / (2 pi L^2) sqrt(E I / (rho A)): the
/// error of trilinear elements falls with the square of their length.
TEST(Hexahedra, ABeamConvergesToEulerAndBernoulli) {
    Context ctx = test::make_context();
    ModesOptions options;
    options.solver.k = 1;
    std::vector<double> found;
    for (const int nx : {150, 300, 600}) {
        const ModesResult<double> result =
            modes_of(ctx,
                     "gen:hexahedra,nx=" + std::to_string(nx) +
                         ",ny=1,nz=1,lx=100,ly=1,lz=1.25,E=1e6,nu=0,rho=2,support=clamped",
                     options);
        EXPECT_TRUE(result.eigen.converged) << result.eigen.message;
        found.push_back(result.frequencies.at(0));
        EXPECT_NEAR(result.effective_masses(1)[0] / result.total_masses[1], 0.6131, 0.01);
    }
    const double root = 1.875104068711961;
    const double exact =
        root * root * hertz / (100.0 * 100.0) * std::sqrt(1e6 / 12 / 2);  // I / A = ly^2 / 12
    const double order = std::log2((found[0] - found[1]) / (found[1] - found[2]));
    EXPECT_NEAR(order, 2, 0.1);
    EXPECT_NEAR((4 * found[2] - found[1]) / 3 / exact, 1, 2e-3);
    EXPECT_NEAR(found[2] / exact, 1, 0.01);
}

TEST(Hexahedra, BadValuesAreRefused) {
    const Comm comm(MPI_COMM_WORLD);
    for (const auto& [keys, text] :
         {std::pair{"nu=0.5", "nu is not between -1 and 0.5"},
          std::pair{"E=0", "E is not positive"}, std::pair{"rho=-1", "rho is not positive"},
          std::pair{"lx=0", "lx is not positive"}, std::pair{"nx=2000000", "too many elements"},
          std::pair{"matrix=damping", "one of"}}) {
        try {
            generate<double>(comm, std::string("gen:hexahedra,") + keys, 1);
            ADD_FAILURE() << keys;
        } catch (const InputError& error) {
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace quiver::apps
