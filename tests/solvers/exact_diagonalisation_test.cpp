// SPDX-License-Identifier: BSD-3-Clause
// Exact diagonalisation against published energies, formulas of free particles and dense
// eigenvalues; densities against the same polynomials of dense eigenvalues.
#include "solvers/eigen/exact_diagonalisation.hpp"

#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/hamiltonian/hamiltonian_operator.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

using Z = std::complex<double>;

HamiltonianModel parsed(const std::string& text) {
    return parse_hamiltonian(text, "test");
}

template <class T = double>
ExactResult<T> lowest(Context& ctx, const HamiltonianModel& model, int k,
                      Method method = Method::automatic) {
    ExactOptions options;
    options.eigen.k = k;
    options.eigen.method = method;
    return exact_diagonalisation<T>(ctx, model, options);
}

/// The matrix of a model on one rank.
Eigen::MatrixXcd whole_matrix(const HamiltonianModel& model,
                              const std::vector<HamiltonianTerm>& terms) {
    Context alone;
    const auto basis = std::make_shared<const StateBasis>(alone, model);
    const HamiltonianOperator<Z> h(alone, basis, terms);
    const std::int64_t n = basis->row_map().global_rows();
    Eigen::MatrixXcd matrix = Eigen::MatrixXcd::Zero(n, n);
    for (std::int64_t i = 0; i < n; ++i) {
        h.for_each_entry(i, [&](std::int64_t j, Z value) { matrix(i, j) += value; });
    }
    return matrix;
}

/// Energies of Heisenberg rings as published, for instance by Lin, Phys. Rev. B 42 (1990) 6561.
TEST(ExactDiagonalisation, FindsThePublishedEnergiesOfHeisenbergRings) {
    Context ctx = make_context();
    const std::vector<std::pair<int, double>> published{
        {4, -2}, {8, -3.6510934089}, {10, -4.5154463545}, {16, -7.1422963606}};
    for (const auto& [sites, energy] : published) {
        if (case_step() > 1 && sites % 8 != 0) {
            continue;
        }
        const std::string text =
            model_text("heisenberg,L=" + std::to_string(sites)) + "sector sz 0\n";
        // The momentum of the ground state is 0 if 4 divides the number of sites, else pi.
        const int k = sites % 4 == 0 ? 0 : sites / 2;
        const std::string momentum = "sector momentum " + std::to_string(k) + "\n";
        const std::string inversion = sites % 4 == 0 ? "1\n" : "-1\n";
        for (const std::string& sector :
             {std::string(), momentum, momentum + "sector inversion " + inversion}) {
            const auto result = lowest(ctx, parsed(text + sector), 1);
            ASSERT_TRUE(result.eigen.converged) << sites << sector;
            EXPECT_NEAR(result.eigen.eigenvalues[0], energy, 1e-9) << sites << sector;
        }
    }
}

TEST(ExactDiagonalisation, FindsLevelsWithTheirDegeneraciesAndTheGap) {
    Context ctx = make_context();
    // H = (S^2 - 3) / 2 for the total spin S of four spins: S = 0 twice, S = 1 three times, S = 2.
    const std::string text =
        "spins 4\nterm 0.5 + - 0 1 hc\nterm 0.5 + - 0 2 hc\nterm 0.5 + - 0 3 hc\n"
        "term 0.5 + - 1 2 hc\nterm 0.5 + - 1 3 hc\nterm 0.5 + - 2 3 hc\n"
        "term 1 z z 0 1\nterm 1 z z 0 2\nterm 1 z z 0 3\nterm 1 z z 1 2\nterm 1 z z 1 3\n"
        "term 1 z z 2 3\n";
    const auto result = lowest(ctx, parsed(text), 16);
    ASSERT_TRUE(result.eigen.converged);
    ASSERT_EQ(result.levels.size(), 3U);
    const std::vector<int> degeneracies{2, 9, 5};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto spin = static_cast<double>(i);
        EXPECT_NEAR(result.levels[i].energy, (spin * (spin + 1) - 3) / 2, 1e-12);
        EXPECT_EQ(result.levels[i].degeneracy, degeneracies[i]);
    }
    EXPECT_NEAR(result.gap, 1, 1e-12);
    EXPECT_TRUE(std::isnan(lowest(ctx, parsed(text), 1).gap));
}

TEST(ExactDiagonalisation, SolvesHubbardModelsOfTwoSites) {
    Context ctx = make_context();
    for (const double u : {0.0, 4.0, -3.0}) {
        for (const bool ring : {true, false}) {
            // A ring of two sites has two bonds between them.
            const double t = ring ? 2 : 1;
            const auto model = parsed(model_text("hubbard,L=2,U=" + std::to_string(u) +
                                                 ",boundary=" + (ring ? "periodic" : "open")) +
                                      "sector up 1\nsector down 1\n");
            const auto result = lowest(ctx, model, 4);
            EXPECT_NEAR(result.eigen.eigenvalues[0], (u - std::sqrt(u * u + 16 * t * t)) / 2,
                        1e-11);
            EXPECT_NEAR(result.eigen.eigenvalues[3], (u + std::sqrt(u * u + 16 * t * t)) / 2,
                        1e-11);
        }
    }
}

/// Free fermions on a ring with a flux fill the lowest one-particle energies.
TEST(ExactDiagonalisation, FillsTheLevelsOfFreeFermions) {
    Context ctx = make_context();
    const int sites = 10;
    const double phase = 0.3;
    const std::string text = "spinless 10\nring (" + std::to_string(-std::cos(phase)) + "," +
                             std::to_string(-std::sin(phase)) + ") + - 0 1 hc\n";
    std::vector<double> levels;
    for (int k = 0; k < sites; ++k) {
        levels.push_back(-2 * std::cos(2 * std::numbers::pi * k / sites - phase));
        // One particle: the momentum is the label of its energy.
        const auto one = lowest<Z>(
            ctx, parsed(text + "sector particles 1\nsector momentum " + std::to_string(k)), 1);
        ASSERT_EQ(one.states, 1);
        EXPECT_NEAR(one.eigen.eigenvalues[0], levels.back(), 1e-5);
    }
    std::sort(levels.begin(), levels.end());
    double energy = 0;
    for (int n = 1; n <= 5; ++n) {
        energy += levels[static_cast<std::size_t>(n - 1)];
        const auto result =
            lowest<Z>(ctx, parsed(text + "sector particles " + std::to_string(n)), 1);
        EXPECT_NEAR(result.eigen.eigenvalues[0], energy, 1e-5) << n;  // six digits of the phase
    }
}

TEST(ExactDiagonalisation, GivesTheSameByEveryMethodAndScalar) {
    Context ctx = make_context();
    const auto model =
        parsed(model_text("heisenberg,L=10,Delta=0.6,boundary=open") + "sector sz 1\n");
    const Eigen::VectorXd expected = oracle::eigenvalues(whole_matrix(model, model.terms));
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg}) {
        const auto result = lowest(ctx, model, 3, method);
        const auto complex = lowest<Z>(ctx, model, 3, method);
        for (int i = 0; i < 3; ++i) {
            const auto at = static_cast<std::size_t>(i);
            EXPECT_NEAR(result.eigen.eigenvalues[at], expected[i], 1e-9) << to_string(method);
            EXPECT_NEAR(complex.eigen.eigenvalues[at], expected[i], 1e-9) << to_string(method);
        }
    }
}

/// T_m of the energies on [low, high].
double chebyshev(std::size_t m, double energy, const Window& bounds) {
    const double x = (energy - (bounds.low + bounds.high) / 2) / ((bounds.high - bounds.low) / 2);
    return std::cos(static_cast<double>(m) * std::acos(x));
}

/// The integral of a density, by the rule of midpoints.
double integral(const SpectralDensity& density) {
    double sum = 0;
    for (const double value : density.density) {
        sum += value * (density.bounds.high - density.bounds.low) /
               static_cast<double>(density.density.size());
    }
    return sum;
}

TEST(SpectralDensity, OfAnExactTraceHasTheMomentsOfAllEnergies) {
    Context ctx = make_context();
    const auto model = parsed(model_text("heisenberg,L=8,h=0.3") + "sector momentum 1\n");
    const Eigen::VectorXd energies = oracle::eigenvalues(whole_matrix(model, model.terms));
    ExactOptions options;
    options.eigen.k = 0;
    options.density = DensityOptions{.moments = 60, .columns = 0, .points = 3000};
    const auto result = exact_diagonalisation<Z>(ctx, model, options);
    ASSERT_TRUE(result.density && !result.probe && result.levels.empty());
    const SpectralDensity& density = *result.density;
    EXPECT_LT(density.bounds.low, energies[0]);
    EXPECT_GT(density.bounds.high, energies[energies.size() - 1]);
    ASSERT_GE(density.moments.size(), 60U);
    for (std::size_t m = 0; m < density.moments.size(); ++m) {
        double expected = 0;
        for (const double energy : energies) {
            expected += chebyshev(m, energy, density.bounds);
        }
        EXPECT_NEAR(density.moments[m], expected, 1e-10 * static_cast<double>(result.states)) << m;
    }
    EXPECT_NEAR(integral(density), static_cast<double>(result.states), 0.05);
    // The sum of Gaussians whose width is that of Jackson's kernel, well inside the spectrum.
    const double e = (density.bounds.high - density.bounds.low) / 2;
    for (std::size_t i = 0; i < density.energies.size(); i += 50) {
        const double x = (density.energies[i] - density.bounds.low - e) / e;
        if (std::abs(x) > 0.7) {
            continue;
        }
        double expected = 0;
        for (const double energy : energies) {
            const double angle = std::acos((energy - density.bounds.low - e) / e) - std::acos(x);
            const double width = std::numbers::pi / static_cast<double>(density.moments.size());
            expected += std::exp(-angle * angle / (2 * width * width)) /
                        (width * std::sqrt(2 * std::numbers::pi) * e * std::sqrt(1 - x * x));
        }
        EXPECT_NEAR(density.density[i], expected, 0.06 * static_cast<double>(result.states) / e);
    }
}

TEST(SpectralDensity, OfRandomColumnsIsWithinItsErrors) {
    Context ctx = make_context();
    const auto model = parsed(model_text("heisenberg,L=10") + "sector sz 0\n");
    HamiltonianOperator<double> h(ctx, model);
    DensityOptions options{.moments = 40, .columns = 0, .points = 64};
    const SpectralDensity exact = density_of_states<double>(ctx, h, options);
    options.columns = 20;
    options.bounds = exact.bounds;
    const SpectralDensity random = density_of_states<double>(ctx, h, options);
    int far = 0;
    for (std::size_t i = 0; i < 64; ++i) {
        EXPECT_GT(random.errors[i], 0);
        far += std::abs(random.density[i] - exact.density[i]) > 3 * random.errors[i] ? 1 : 0;
    }
    EXPECT_LE(far, 3);
    EXPECT_NEAR(integral(random), 252, 10);
}

/// The spectral function of A = sum exp(i q j) Sz_j on the ground state.
TEST(SpectralDensity, OfAProbeHasTheMomentsOfItsTransitions) {
    Context ctx = make_context();
    std::string text = model_text("heisenberg,L=8") + "sector sz 0\n";
    for (int j = 0; j < 8; ++j) {
        const Z value = std::polar(1.0, std::numbers::pi / 4 * 3 * j);
        text += "probe (" + std::to_string(value.real()) + "," + std::to_string(value.imag()) +
                ") z " + std::to_string(j) + "\n";
    }
    const auto model = parsed(text);
    const oracle::Eigenpairs pairs = oracle::eigenpairs(whole_matrix(model, model.terms));
    const Eigen::VectorXcd excited = whole_matrix(model, model.probe) * pairs.vectors.col(0);
    ExactOptions options;
    options.eigen.k = 2;
    options.eigen.tol = 1e-12;
    options.density = DensityOptions{.moments = 50, .columns = 4};
    const auto result = exact_diagonalisation<Z>(ctx, model, options);
    ASSERT_TRUE(result.probe);
    EXPECT_NEAR(result.probe->moments[0], excited.squaredNorm(), 1e-9);
    for (std::size_t m = 0; m < result.probe->moments.size(); ++m) {
        double expected = 0;
        for (Eigen::Index n = 0; n < pairs.values.size(); ++n) {
            expected += std::norm(pairs.vectors.col(n).dot(excited)) *
                        chebyshev(m, pairs.values[n], result.probe->bounds);
        }
        EXPECT_NEAR(result.probe->moments[m], expected, 1e-8) << m;
    }
}

/// The ground level of three spins in a ring has four states; a part of them would depend on the
/// random start.
TEST(SpectralDensity, RefusesAProbeOnAPartOfTheGroundLevel) {
    Context ctx = make_context();
    const auto model = parsed(model_text("heisenberg,L=3") + "probe 1 z 0\n");
    ExactOptions options;
    options.eigen.k = 1;
    options.density = DensityOptions{.moments = 10, .columns = 2};
    EXPECT_THROW(exact_diagonalisation<double>(ctx, model, options), InputError);
    options.eigen.k = 4;
    EXPECT_TRUE(exact_diagonalisation<double>(ctx, model, options).probe);
}

TEST(SpectralDensity, RefusesBoundsThatDoNotHoldTheSpectrumAndStops) {
    Context ctx = make_context();
    HamiltonianOperator<double> h(ctx, parsed(model_text("heisenberg,L=8") + "sector sz 0\n"));
    DensityOptions options{.moments = 200, .columns = 2, .bounds = Window{-1, 1}};
    EXPECT_THROW(density_of_states<double>(ctx, h, options), NumericalError);
    options.bounds = Window{1, -1};
    EXPECT_THROW(density_of_states<double>(ctx, h, options), InputError);
    options = {.moments = 1};
    EXPECT_THROW(density_of_states<double>(ctx, h, options), InputError);
    if (ctx.comm().size() > 1) {
        options = {.moments = 100 + ctx.comm().rank()};
        EXPECT_THROW(density_of_states<double>(ctx, h, options), InputError);
    }
    options = {.moments = 400, .columns = 2};
    int calls = 0;
    options.keep_going = [&](const IterationEvent&) { return ++calls < 5; };
    const SpectralDensity stopped = density_of_states<double>(ctx, h, options);
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_LT(stopped.moments.size(), 20U);
}

/// The states of a ring of 22 spins that all symmetries leave unchanged are counted by the lemma of
/// Burnside: the sum over the 88 elements of the number of words with 11 ones that an element
/// fixes. Translations: all C(22, 11) words, and 2 of each of 10; reflections with two fixed sites:
/// 2 C(10, 5) of each of 11; with inversion: 2^11 of the translation by 11 and 2 of each of 10, and
/// 2^11 of each of 11 reflections without fixed sites.
TEST(ExactDiagonalisation, TheSearchForStatesEndsWhereAnyRankWantsIt) {
    const HamiltonianModel model = parsed(model_text("heisenberg,L=22") +
                                          "sector sz 0\nsector momentum 0\nsector reflection 1\n"
                                          "sector inversion 1\n");
    Context ctx = make_context();
    int calls = 0;
    const StateBasis whole(ctx, model, [&](const IterationEvent&) { return ++calls > 0; });
    EXPECT_FALSE(whole.interrupted());
    EXPECT_EQ(whole.row_map().global_rows(),
              (705432 + 10 * 2 + 11 * 2 * 252 + 2048 + 10 * 2 + 11 * 2048) / 88);
    // 4 parts on one rank, 2 on two or three.
    ASSERT_GT(calls, 1);
    ExactOptions options;
    options.eigen.k = 2;
    options.eigen.keep_going = [&, last = calls - 1](const IterationEvent& event) {
        return ctx.comm().rank() != 0 || event.iteration != last;
    };
    const auto result = exact_diagonalisation<double>(ctx, model, options);
    EXPECT_TRUE(result.eigen.interrupted);
    EXPECT_FALSE(result.eigen.converged);
    EXPECT_EQ(result.states, 0);
    EXPECT_TRUE(result.levels.empty());
    EXPECT_NE(result.eigen.message.find("search for the states"), std::string::npos);
    const StateBasis ended(ctx, model, [](const IterationEvent&) { return false; });
    EXPECT_TRUE(ended.interrupted());
    EXPECT_EQ(ended.row_map().global_rows(), 0);
}

/// One state, and a constant.
TEST(ExactDiagonalisation, SolvesTheSmallestSectors) {
    Context ctx = make_context();
    const auto one = lowest(ctx, parsed(model_text("heisenberg,L=6") + "sector sz 3\n"), 5);
    EXPECT_EQ(one.states, 1);
    EXPECT_NEAR(one.eigen.eigenvalues.at(0), 1.5, 1e-13);
    ExactOptions options;
    options.eigen.k = 3;
    options.density = DensityOptions{.moments = 20, .columns = 2};
    const auto constant = exact_diagonalisation<double>(ctx, parsed("spins 3\nterm 2\n"), options);
    EXPECT_NEAR(constant.eigen.eigenvalues.at(2), 2, 1e-13);
    EXPECT_NEAR(integral(*constant.density), 8, 1);
}

}  // namespace
}  // namespace quiver::test
