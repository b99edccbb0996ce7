// SPDX-License-Identifier: BSD-3-Clause
// Vibration modes, compared with dense solutions: regular, lumped and singular M, rigid bodies,
// unstable K, ranges, participation.
#include "solvers/eigen/modes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Geometry>
#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {
namespace {

using Dense = Eigen::MatrixXd;

template <class T>
SparseMatrix<T> sparse(Context& ctx, const Dense& dense) {
    CsrRows<T> rows = rows_from_callback<T>(
        ctx.comm(), dense.rows(), Symmetry::symmetric,
        [&](std::int64_t row, RowEntries<T>& entries) {
            for (Eigen::Index column = 0; column < dense.cols(); ++column) {
                if (dense(row, column) != 0) {
                    entries.add(column, std::isfinite(dense(row, column))
                                            ? static_cast<T>(dense(row, column))
                                            : std::numeric_limits<T>::max());
                }
            }
        });
    // rows_from_callback() refuses NaN.
    std::replace(rows.value.begin(), rows.value.end(), std::numeric_limits<T>::max(),
                 std::numeric_limits<T>::quiet_NaN());
    return SparseMatrix<T>(ctx, std::move(rows));
}

/// The finite eigenvalues of K x = lambda M x, ascending: 1 / mu - s for the positive eigenvalues
/// mu of M x = mu (K + s M) x, with a positive definite K + s M. Valid for singular K and M.
std::vector<double> finite_eigenvalues(const Dense& k, const Dense& m, double s,
                                       std::int64_t infinite) {
    const Eigen::VectorXd mu = oracle::eigenvalues(m, Dense(k + s * m));
    std::vector<double> values;
    for (Eigen::Index i = mu.size() - 1; i >= infinite; --i) {
        values.push_back(1 / mu(i) - s);
    }
    return values;
}

class ModesTest : public ::testing::Test {
  protected:
    /// Springs between random pairs of `nodes` points in space, with three unknowns a node: the six
    /// rigid motions (to first order) cost no energy.
    Dense free_springs(int nodes) {
        points = Dense::Zero(nodes, 3);
        for (int i = 0; i < nodes; ++i) {
            for (int d = 0; d < 3; ++d) {
                points(i, d) = random_value<double>(generator);
            }
        }
        Dense k = Dense::Zero(3 * nodes, 3 * nodes);
        for (int i = 0; i < nodes; ++i) {
            for (int step = 1; step <= 5; ++step) {
                const int j = (i + step) % nodes;
                const Eigen::Vector3d line = (points.row(i) - points.row(j)).normalized();
                const Eigen::Matrix3d spring =
                    (2 + random_value<double>(generator)) * line * line.transpose();
                k.block<3, 3>(3 * i, 3 * i) += spring;
                k.block<3, 3>(3 * j, 3 * j) += spring;
                k.block<3, 3>(3 * i, 3 * j) -= spring;
                k.block<3, 3>(3 * j, 3 * i) -= spring;
            }
        }
        return k;
    }
    Dense lumped(int n) {
        Dense m = Dense::Zero(n, n);
        for (int i = 0; i < n; ++i) {
            m(i, i) = 2 + random_value<double>(generator);
        }
        return m;
    }
    /// Positive definite with entries next to the diagonal.
    Dense consistent(int n) {
        Dense m = lumped(n);
        for (int i = 0; i + 1 < n; ++i) {
            m(i, i + 1) = m(i + 1, i) = 0.3 * random_value<double>(generator);
        }
        return m;
    }

    /// Finds the modes and compares them with all finite eigenvalues `expected` from `first` on;
    /// `shifted` = K + s M is positive definite and bounds the errors.
    template <class T>
    ModesResult<T> check(const Dense& k, const Dense& m, const ModesOptions& options,
                         const std::vector<double>& expected, std::size_t first = 0,
                         BlockView<const T> directions = {}) {
        SparseMatrix<T> stiffness = sparse<T>(ctx, k);
        SparseMatrix<T> mass = sparse<T>(ctx, m);
        ModesResult<T> result = modes<T>(ctx, stiffness, mass, options, directions);
        EXPECT_TRUE(result.eigen.converged) << result.eigen.message;
        const auto count = static_cast<int>(result.frequencies.size());
        const double eps = static_cast<double>(epsilon_v<T>);
        BlockVector<T> product(ctx, mass.row_map(), count);
        mass.apply(ctx, std::as_const(result.eigen.vectors).view(), product.view());
        SmallMatrix<T> gram(count, count);
        tsmttsm(ctx, T(1), std::as_const(result.eigen.vectors).view(),
                std::as_const(product).view(), T(0), gram);
        std::vector<real_t<T>> lengths(static_cast<std::size_t>(count));
        norms(ctx, result.eigen.vectors.view(), std::span<real_t<T>>(lengths));
        const double norm = k.cwiseAbs().rowwise().sum().maxCoeff();
        for (int i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const double value = expected.at(first + at);
            // The error of an eigenvalue of a pencil is that of K times ||x||^2 for x^T M x = 1.
            const double length = lengths[at];
            EXPECT_NEAR(result.eigen.eigenvalues[at], value,
                        (200 * eps + options.solver.tol) * norm * length * length)
                << i;
            const bool rigid = std::abs(value) <= 1e-9 * norm;
            const double frequency =
                rigid ? 0 : std::copysign(std::sqrt(std::abs(value)) * options.unit, value);
            EXPECT_NEAR(result.frequencies[at], frequency,
                        1e3 * (eps + options.solver.tol) * std::sqrt(norm) * options.unit)
                << i;
            if (rigid) {
                EXPECT_EQ(result.frequencies[at], 0) << i;
            }
            for (int j = 0; j < count; ++j) {
                EXPECT_NEAR(gram(i, j), i == j ? 1 : 0, 1e3 * (eps + options.solver.tol));
            }
        }
        return result;
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    Dense points;
};

TEST_F(ModesTest, FreeBodiesHaveSixRigidModes) {
    for (const bool is_lumped : {true, false}) {
        for (const Method method : {Method::automatic, Method::shift_invert}) {
            const int nodes = 20;
            const Dense k = free_springs(nodes);
            const Dense m = is_lumped ? lumped(3 * nodes) : consistent(3 * nodes);
            ModesOptions options;
            options.solver.k = 12;
            options.solver.method = method;
            const ModesResult<double> result =
                check<double>(k, m, options, finite_eigenvalues(k, m, 1, 0));
            EXPECT_EQ(result.rigid, 6);
            EXPECT_EQ(result.unstable, 0);
            EXPECT_EQ(result.infinite, 0);
            EXPECT_EQ(result.frequencies.size(), 12u);
            for (int i = 0; i < 12; ++i) {
                const auto at = static_cast<std::size_t>(i);
                EXPECT_EQ(result.frequencies[at] == 0, i < 6) << i;
            }
        }
    }
}

TEST_F(ModesTest, SinglePrecision) {
    const Dense k = free_springs(16);
    const Dense m = lumped(48);
    ModesOptions options;
    options.solver.k = 8;
    options.solver.tol = 1e-5;
    options.rigid_below = 1e-2;  // the entries are rounded to single precision
    const std::vector<double> expected = finite_eigenvalues(k, m, 1, 0);
    SparseMatrix<float> stiffness = sparse<float>(ctx, k);
    SparseMatrix<float> mass = sparse<float>(ctx, m);
    const ModesResult<float> result = modes<float>(ctx, stiffness, mass, options);
    ASSERT_EQ(result.frequencies.size(), 8u);
    EXPECT_EQ(result.rigid, 6);
    for (std::size_t i = 6; i < 8; ++i) {
        EXPECT_NEAR(result.frequencies[i], std::sqrt(expected[i]) * hertz, 1e-3);
    }
}

TEST_F(ModesTest, ALumpedMassWithZerosHasInfiniteModes) {
    const Dense k = free_springs(12);
    Dense m = lumped(36);
    for (int i = 0; i < 36; i += 5) {
        m(i, i) = 0;
    }
    const int infinite = 8;
    ModesOptions options;
    options.solver.k = 36 - infinite;
    const ModesResult<double> result =
        check<double>(k, m, options, finite_eigenvalues(k, m, 1, infinite));
    EXPECT_EQ(result.infinite, infinite);
    EXPECT_FALSE(result.infinite_at_least);
    EXPECT_EQ(result.rigid, 6);
    EXPECT_EQ(result.frequencies.size(), 28u);
}

TEST_F(ModesTest, ASingularConsistentMassIsCounted) {
    // Pairs of equal rows: M has a null vector for each pair.
    const int n = 30;
    Dense k = free_springs(10);
    Dense m = consistent(n);
    for (int i = 0; i < 4; ++i) {
        const int a = 6 * i;
        m.row(a).setZero();
        m.col(a).setZero();
        m.row(a + 1).setZero();
        m.col(a + 1).setZero();
        m.block<2, 2>(a, a).setConstant(1.5);
    }
    ModesOptions options;
    options.solver.k = 10;
    const ModesResult<double> result = check<double>(k, m, options, finite_eigenvalues(k, m, 1, 4));
    EXPECT_EQ(result.infinite, 4);
    EXPECT_EQ(result.rigid, 6);
}

TEST_F(ModesTest, UnstableModesHaveNegativeFrequencies) {
    const Dense m = consistent(45);
    Dense k = free_springs(15);
    k -= 0.4 * Dense::Identity(45, 45);
    ModesOptions options;
    options.solver.k = 9;
    options.unit = radians_per_second;
    const ModesResult<double> result =
        check<double>(k, m, options, finite_eigenvalues(k, m, 10, 0));
    EXPECT_GE(result.unstable, 6);
    EXPECT_EQ(result.rigid, 0);
    EXPECT_LT(result.frequencies.front(), 0);
    // A range from 0 holds the unstable modes with |lambda| below its end.
    const std::vector<double> all = finite_eigenvalues(k, m, 10, 0);
    const double high = 1.01 * std::abs(all.front());
    options.range = Window{0, std::sqrt(high)};
    const ModesResult<double> in_range = check<double>(k, m, options, all);
    EXPECT_EQ(in_range.unstable, result.unstable);
    EXPECT_EQ(static_cast<std::ptrdiff_t>(in_range.frequencies.size()),
              std::count_if(all.begin(), all.end(), [&](double value) { return value <= high; }));
}

TEST_F(ModesTest, RangesAndNeighboursOfAFrequency) {
    const int n = 60;
    const Dense k = free_springs(20);
    const Dense m = consistent(n);
    const std::vector<double> all = finite_eigenvalues(k, m, 1, 0);
    const auto frequency = [&](std::size_t i) { return std::sqrt(std::max(all[i], 0.0)) * hertz; };
    for (const Method method : {Method::automatic, Method::shift_invert}) {
        ModesOptions options;
        options.solver.method = method;
        options.range =
            Window{0.5 * (frequency(9) + frequency(10)), 0.5 * (frequency(20) + frequency(21))};
        EXPECT_EQ(check<double>(k, m, options, all, 10).frequencies.size(), 11u);
        options.range->low = 0;
        const ModesResult<double> from_zero = check<double>(k, m, options, all);
        EXPECT_EQ(from_zero.frequencies.size(), 21u);
        EXPECT_EQ(from_zero.rigid, 6);
        options.range = Window{0, 0};
        EXPECT_EQ(check<double>(k, m, options, all).rigid, 6);
        options.range.reset();
        options.near = frequency(30);
        options.solver.k = 1;
        check<double>(k, m, options, all, 30);
    }
}

TEST_F(ModesTest, ParticipationIsThatOfTheDenseModes) {
    const int nodes = 14;
    const int n = 3 * nodes;
    const Dense k = free_springs(nodes);
    Dense m = Dense::Zero(n, n);  // equal in the three directions of a node
    for (int i = 0; i < nodes; ++i) {
        m.block<3, 3>(3 * i, 3 * i) =
            (2 + random_value<double>(generator)) * Eigen::Matrix3d::Identity();
    }
    std::vector<double> coordinates;
    Eigen::RowVector3d centre = Eigen::RowVector3d::Zero();
    for (int i = 0; i < nodes; ++i) {
        centre += m(3 * i, 3 * i) * points.row(i);
        for (int d = 0; d < 3; ++d) {
            coordinates.push_back(points(i, d));
        }
    }
    const double mass = m.trace() / 3;
    centre /= mass;
    Dense r = Dense::Zero(n, 6);
    for (int i = 0; i < nodes; ++i) {
        r.block<3, 3>(3 * i, 0).setIdentity();
        const Eigen::Vector3d arm = (points.row(i) - centre).transpose();
        for (int axis = 0; axis < 3; ++axis) {
            r.block<3, 1>(3 * i, 3 + axis) = Eigen::Vector3d::Unit(axis).cross(arm);
        }
    }
    ModesOptions options;
    options.solver.k = n;
    const RowMap map = RowMap::by_rows(ctx.comm(), n);
    const BlockVector<double> directions = rigid_directions<double>(ctx, map, coordinates);
    const ModesResult<double> result = check<double>(k, m, options, finite_eigenvalues(k, m, 1, 0),
                                                     0, std::as_const(directions).view());
    ASSERT_EQ(result.participation.size(), 6u);
    const Dense product = r.transpose() * m * r;
    for (int d = 0; d < 6; ++d) {
        const auto at = static_cast<std::size_t>(d);
        EXPECT_NEAR(result.total_masses[at], product(d, d), 1e-11 * mass);
        double captured = 0;
        double rigid = 0;
        const std::vector<double> masses = result.effective_masses(at);
        for (std::size_t i = 0; i < masses.size(); ++i) {
            captured += masses[i];
            rigid += i < 6 ? masses[i] : 0;
        }
        // All modes together hold the whole mass, and so do the rigid ones alone.
        EXPECT_NEAR(captured, product(d, d), 1e-9 * mass);
        EXPECT_NEAR(rigid, product(d, d), 1e-9 * mass);
    }
    for (int d = 0; d < 3; ++d) {
        EXPECT_NEAR(result.centre[static_cast<std::size_t>(d)], centre(d), 1e-12);
    }
    // The factors are x^T M r, and the modal masses those of modes with a largest element of 1.
    BlockVector<double> host(ctx, map, n, 0, Place::host);
    copy(ctx, result.eigen.vectors.view(), host.view());
    std::vector<double> sums(static_cast<std::size_t>(n) * 6);
    std::vector<double> most(static_cast<std::size_t>(n));
    const Dense mr = m * r;
    for (std::int64_t row = 0; row < map.local_rows(); ++row) {
        for (int i = 0; i < n; ++i) {
            const double x = host.view()(row, i);
            most[static_cast<std::size_t>(i)] =
                std::max(most[static_cast<std::size_t>(i)], std::abs(x));
            for (int d = 0; d < 6; ++d) {
                sums[static_cast<std::size_t>(6 * i + d)] += x * mr(map.first_row() + row, d);
            }
        }
    }
    ctx.comm().sum(std::span<double>(sums));
    ctx.comm().max(std::span<double>(most));
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_NEAR(result.modal_masses[at], 1 / (most[at] * most[at]), 1e-9 * mass);
        for (int d = 0; d < 6; ++d) {
            EXPECT_NEAR(result.participation[static_cast<std::size_t>(d)][at],
                        sums[static_cast<std::size_t>(6 * i + d)], 1e-11 * mass);
        }
    }
}

/// A free chain of springs 1e12 hides the mode of a soft spring: the limit says where.
TEST_F(ModesTest, ReportsTheFrequencyUpToWhichModesAreRigid) {
    const int n = 7;
    const double spring = 1e12;
    const double weight = 2;
    Dense k = Dense::Zero(n + 1, n + 1);
    for (int i = 0; i + 1 < n; ++i) {
        k(i, i) += spring;
        k(i + 1, i + 1) += spring;
        k(i, i + 1) = k(i + 1, i) = -spring;
    }
    const Dense m = weight * Dense::Identity(n + 1, n + 1);
    // x^T M x = 1 with M = weight I gives ||x||^2 = 1 / weight, and ||K|| = 4 spring.
    const double limit =
        std::sqrt(32 * std::numeric_limits<double>::epsilon() * 4 * spring / weight) * hertz;
    ModesOptions options;
    options.solver.k = 4;
    SparseMatrix<double> mass = sparse<double>(ctx, m);
    const auto run = [&](double soft) {
        k(n, n) = soft;
        SparseMatrix<double> stiffness = sparse<double>(ctx, k);
        return modes<double>(ctx, stiffness, mass, options);
    };
    const ModesResult<double> hidden = run(1e-6);
    EXPECT_EQ(hidden.rigid, 2);
    EXPECT_NEAR(hidden.rigid_limit, limit, 1e-6 * limit);
    const ModesResult<double> seen = run(0.1);
    EXPECT_EQ(seen.rigid, 1);
    EXPECT_GT(seen.frequencies[1], seen.rigid_limit);
    options.rigid_below = 10;
    EXPECT_EQ(run(0.1).rigid, 2);
    EXPECT_NEAR(run(0.1).rigid_limit, 10, 1e-12);
    options.rigid_below = 0;
    k(0, 0) += spring;
    k(n, n) = spring;
    const ModesResult<double> clamped = run(spring);
    EXPECT_EQ(clamped.rigid, 0);
    EXPECT_EQ(clamped.rigid_limit, 0);
}

/// A free bar whose mass is integrated with one point an element: the vector (1, -1, 1, ...) has no
/// mass. The rigid mode is found as such by both direct methods, for every length of the bar.
TEST_F(ModesTest, AFreeBarWithASingularConsistentMass) {
    for (const int n : {10, 30, 40, 60, 100, 200}) {
        Dense k = Dense::Zero(n, n);
        Dense m = Dense::Zero(n, n);
        for (int i = 0; i + 1 < n; ++i) {
            k.block(i, i, 2, 2) += (Dense(2, 2) << 1, -1, -1, 1).finished() * n;
            m.block(i, i, 2, 2) += Dense::Constant(2, 2, 0.25 / n);
        }
        SparseMatrix<double> stiffness = sparse<double>(ctx, k);
        SparseMatrix<double> mass = sparse<double>(ctx, m);
        ModesOptions options;
        options.unit = radians_per_second;
        options.solver.k = 4;
        for (const Method method : {Method::automatic, Method::dense}) {
            options.solver.method = method;
            const auto result = modes<double>(ctx, stiffness, mass, options);
            ASSERT_TRUE(result.eigen.converged) << n << " rows: " << result.eigen.message;
            EXPECT_EQ(result.infinite, 1);
            EXPECT_EQ(result.rigid, 1) << n << " rows";
            EXPECT_EQ(result.unstable, 0) << n << " rows";
            // x_i = cos(j pi i / (n - 1)) gives lambda = (2 n tan(j pi / (2 (n - 1))))^2.
            for (int j = 1; j < 4; ++j) {
                const double exact = 2 * n * std::tan(j * std::numbers::pi / (2 * (n - 1)));
                EXPECT_NEAR(result.frequencies[static_cast<std::size_t>(j)], exact, 1e-6 * exact);
            }
        }
    }
}

TEST_F(ModesTest, RigidBelowRaisesTheLimit) {
    const Dense k = free_springs(10) + 1e-6 * Dense::Identity(30, 30);
    const Dense m = Dense::Identity(30, 30);
    SparseMatrix<double> stiffness = sparse<double>(ctx, k);
    SparseMatrix<double> mass = sparse<double>(ctx, m);
    ModesOptions options;
    options.solver.k = 8;
    options.unit = radians_per_second;
    EXPECT_EQ(modes<double>(ctx, stiffness, mass, options).rigid, 0);
    options.rigid_below = 2e-3;
    EXPECT_EQ(modes<double>(ctx, stiffness, mass, options).rigid, 6);
}

TEST_F(ModesTest, EqualRanksGiveEqualBits) {
    const Dense k = free_springs(24);
    const Dense m = consistent(72);
    for (const Method method : {Method::automatic, Method::shift_invert}) {
        ModesOptions options;
        options.solver.method = method;
        const auto run = [&] {
            SparseMatrix<double> stiffness = sparse<double>(ctx, k);
            SparseMatrix<double> mass = sparse<double>(ctx, m);
            return modes<double>(ctx, stiffness, mass, options).frequencies;
        };
        EXPECT_EQ(run(), run());
    }
}

TEST_F(ModesTest, BadInputIsRefusedOnAllRanks) {
    const Dense k = free_springs(4);
    const Dense m = lumped(12);
    const auto message = [&](const Dense& stiffness, const Dense& mass,
                             const ModesOptions& options) -> std::string {
        SparseMatrix<double> a = sparse<double>(ctx, stiffness);
        SparseMatrix<double> b = sparse<double>(ctx, mass);
        try {
            modes<double>(ctx, a, b, options);
        } catch (const InputError& error) {
            EXPECT_TRUE(error.collective());
            return error.what();
        }
        return "";
    };
    ModesOptions options;
    options.solver.k = 4;
    EXPECT_EQ(message(k, m, options), "");
    Dense bad = m;
    bad(7, 7) = -1;
    EXPECT_EQ(message(k, bad, options),
              "modes: row 8 of M has NaN, infinity, or a negative mass on the diagonal");
    bad(7, 7) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(message(k, bad, options),
              "modes: row 8 of M has NaN, infinity, or a negative mass on the diagonal");
    EXPECT_EQ(message(bad, m, options), "modes: row 8 of K has NaN or infinity");
    EXPECT_EQ(message(k, Dense::Zero(12, 12), options),
              "modes: M is zero: all eigenvalues are infinite");
    bad = m;
    bad(11, 11) = 0;
    options.solver.method = Method::lobpcg;
    EXPECT_EQ(message(k, bad, options),
              "modes: M has a null space of dimension 1, which lobpcg does not take; use "
              "shift-invert, dense or auto");
    options.solver.method = Method::automatic;
    bad = m;
    bad(0, 1) = bad(1, 0) = 9;
    EXPECT_NE(message(k, bad, options).find("M has a negative eigenvalue"), std::string::npos);
    bad = m;
    bad(3, 3) = 0;
    options.solver.k = 12;
    EXPECT_EQ(message(k, bad, options),
              "modes: k = 12 modes are wanted, but only 11 of 12 eigenvalues are finite: M has a "
              "null space of dimension 1");
    options.solver.k = 4;
    options.range = Window{-1, 2};
    EXPECT_NE(message(k, m, options).find("-1: a frequency is a finite number from 0 on"),
              std::string::npos);
    options.range = Window{3, 2};
    EXPECT_NE(message(k, m, options).find("the range 3 to 2 is not ascending"), std::string::npos);
    options.range.reset();
    options.near = std::numeric_limits<double>::infinity();
    EXPECT_NE(message(k, m, options).find("a frequency is a finite number"), std::string::npos);
    EXPECT_THROW(rigid_directions<double>(ctx, RowMap::by_rows(ctx.comm(), 10), {}), ShapeError);
}

TEST_F(ModesTest, ThePairLund) {
    if (!std::filesystem::exists(data_file("lund_a.mtx.gz"))) {
        GTEST_SKIP() << "no " << data_file("lund_a.mtx.gz");
    }
    const auto dense = [&](const std::string& name) {
        const CsrRows<double> rows = read_matrix_market<double>(Comm(), data_file(name));
        Dense all = Dense::Zero(rows.global_cols, rows.global_cols);
        for (std::size_t i = 0; i + 1 < rows.row_start.size(); ++i) {
            for (auto e = static_cast<std::size_t>(rows.row_start[i]);
                 e < static_cast<std::size_t>(rows.row_start[i + 1]); ++e) {
                all(static_cast<Eigen::Index>(i), rows.column[e]) = rows.value[e];
            }
        }
        return all;
    };
    const Dense k = dense("lund_a.mtx.gz");
    const Dense m = dense("lund_b.mtx.gz");
    const Eigen::VectorXd values = oracle::eigenvalues(k, m);
    for (const Method method : {Method::automatic, Method::shift_invert}) {
        ModesOptions options;
        options.solver.k = 20;
        options.solver.method = method;
        const ModesResult<double> result =
            check<double>(k, m, options, std::vector<double>(values.begin(), values.end()));
        for (std::size_t i = 0; i < 20; ++i) {
            EXPECT_NEAR(result.eigen.eigenvalues[i] / values(static_cast<Eigen::Index>(i)), 1,
                        1e-8);
        }
    }
}

}  // namespace
}  // namespace quiver::test
