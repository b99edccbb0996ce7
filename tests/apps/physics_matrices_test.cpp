// SPDX-License-Identifier: BSD-3-Clause
// Matrices of physics and of a differential equation, compared with independent constructions:
// Kronecker products, fermion operators, distances in the plane, closed forms of spectra.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numbers>
#include <random>

#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <gtest/gtest.h>

#include "apps/matrices/generator_table.hpp"
#include "apps/matrices/generators.hpp"
#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/hamiltonian/hamiltonian_operator.hpp"
#include "kernels/random.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

using Eigen::Index;
using test::oracle::product;
using Z = std::complex<double>;
using Matrix = Eigen::MatrixXcd;
constexpr Z imaginary_unit(0, 1);

Matrix kron(const Matrix& a, const Matrix& b) {
    Matrix result(a.rows() * b.rows(), a.cols() * b.cols());
    for (Index i = 0; i < a.rows(); ++i) {
        for (Index j = 0; j < a.cols(); ++j) {
            result.block(i * b.rows(), j * b.cols(), b.rows(), b.cols()) = a(i, j) * b;
        }
    }
    return result;
}

Matrix two_by_two(Z a, Z b, Z c, Z d) {
    Matrix result(2, 2);
    result << a, b, c, d;
    return result;
}

/// A Kronecker product over `places` places: `small` at `place`, `before` at the lower places, the
/// identity at the others. Place 0 is the lowest bit of the index.
Matrix at_place(const Matrix& small, int place, int places, const Matrix& before) {
    Matrix result = Matrix::Identity(1, 1);
    for (int p = 0; p < places; ++p) {
        result = kron(p == place ? small : (p < place ? before : Matrix::Identity(2, 2)), result);
    }
    return result;
}

class PhysicsMatricesTest : public ::testing::Test {
  protected:
    Matrix dense(const std::string& spec, Symmetry symmetry = Symmetry::symmetric) {
        const auto rows = generate<Z>(comm_, spec, 2);
        EXPECT_EQ(rows.symmetry, symmetry);
        nonzeros_ = comm_.sum(rows.nonzeros());
        const test::Dense all = test::gather_dense(comm_, rows);
        Matrix result(all.rows, all.cols);
        for (Index i = 0; i < result.rows(); ++i) {
            for (Index j = 0; j < result.cols(); ++j) {
                result(i, j) = all(i, j);
            }
        }
        if (symmetry != Symmetry::general) {
            EXPECT_EQ(result, result.adjoint()) << spec;
        }
        return result;
    }
    /// Expects the eigenvalues `exact`, in any order.
    void expect_spectrum(const std::string& spec, std::vector<double> exact,
                         Symmetry symmetry = Symmetry::symmetric) {
        const Matrix a = dense(spec, symmetry);
        const Eigen::VectorXd values = test::oracle::eigenvalues(a);
        std::sort(exact.begin(), exact.end());
        ASSERT_EQ(static_cast<std::size_t>(a.rows()), exact.size()) << spec;
        const double bound = 8 * epsilon_v<double> * static_cast<double>(a.rows()) * a.norm();
        for (Index i = 0; i < a.rows(); ++i) {
            EXPECT_NEAR(values(i), exact[static_cast<std::size_t>(i)], bound) << spec << " " << i;
        }
    }
    Comm comm_{MPI_COMM_WORLD};
    std::int64_t nonzeros_ = 0;
};

TEST_F(PhysicsMatricesTest, SpinIsASumOfKroneckerProducts) {
    // The first state of a site is down, the second up.
    const Matrix one = Matrix::Identity(2, 2);
    const std::array pauli{two_by_two(0, 1, 1, 0),
                           two_by_two(0, imaginary_unit, -imaginary_unit, 0),
                           two_by_two(-1, 0, 0, 1)};
    const auto expected = [&](int spins, std::array<double, 3> j, double bx, double bz) {
        Matrix h = Matrix::Zero(1 << spins, 1 << spins);
        for (int l = 0; l < spins; ++l) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                h += j[axis] * at_place(pauli[axis], l, spins, one) *
                     at_place(pauli[axis], (l + 1) % spins, spins, one);
            }
            h += bx * at_place(pauli[0], l, spins, one) + bz * at_place(pauli[2], l, spins, one);
        }
        return h;
    };
    for (const int spins : {2, 3, 4, 6}) {
        const std::string spec = "gen:spin,L=" + std::to_string(spins);
        EXPECT_EQ(dense(spec), expected(spins, {1, 1, 1}, 1, 1));
        EXPECT_EQ(dense(spec + ",Jx=0.5,Jy=-2,Jz=1.5,Bx=0.25,Bz=-3"),
                  expected(spins, {0.5, -2, 1.5}, 0.25, -3));
    }
    // Free spins in a field: all sums of +- sqrt(Bx^2 + Bz^2).
    expect_spectrum("gen:spin,L=3,Jx=0,Jy=0,Jz=0,Bx=3,Bz=4", {-15, -5, -5, -5, 5, 5, 5, 15});
}

/// Identifies neighbours by their distance in the plane, in units of the bond.
Matrix graphene_by_distance(int width, int length) {
    const double t[4] = {3 * (-0.095 / 2.78), -1, -0.1 / 2.78, -0.095 / 2.78};
    const double distances[4] = {0, 1, std::numbers::sqrt3, 2};
    const int n = width * length;
    Matrix result = Matrix::Zero(n, n);
    const auto position = [&](int row) {
        const int l = row / width;
        const int w = row % width;
        return Z(w * std::numbers::sqrt3 / 2, 1.5 * l + ((l + w) % 2 == 1 ? 0.25 : -0.25));
    };
    for (int a = 0; a < n; ++a) {
        for (int b = 0; b < n; ++b) {
            for (int shell = 0; shell < 4; ++shell) {
                if (std::abs(std::abs(position(a) - position(b)) - distances[shell]) < 0.01) {
                    result(a, b) = t[shell];
                }
            }
        }
    }
    return result;
}

std::vector<double> graphene_bands(int width, int length) {
    const double t1 = -1;
    const double t2 = -0.1 / 2.78;
    const double t3 = -0.095 / 2.78;
    std::vector<double> twice;
    for (int a = 0; a < length; ++a) {
        for (int b = 0; b < width; ++b) {
            const double kl = 2 * std::numbers::pi * a / length;
            const double kw = 2 * std::numbers::pi * b / width;
            const double d = 3 * t3 + 2 * t2 * (std::cos(2 * kw) + 2 * std::cos(kl) * std::cos(kw));
            const Z f = t1 * (2 * std::cos(kw) + std::polar(1.0, kl)) +
                        t3 * (std::polar(1.0, -kl) + 2 * std::cos(2 * kw) * std::polar(1.0, kl));
            twice.push_back(d + std::abs(f));
            twice.push_back(d - std::abs(f));
        }
    }
    // k and k + (pi, pi) are the same state of the cell of two sites.
    std::sort(twice.begin(), twice.end());
    std::vector<double> once;
    for (std::size_t i = 0; i < twice.size(); i += 2) {
        once.push_back(twice[i]);
    }
    return once;
}

TEST_F(PhysicsMatricesTest, GrapheneIsAHoneycomb) {
    EXPECT_EQ(dense("gen:graphene,W=8"), graphene_by_distance(8, 8));
    EXPECT_EQ(nonzeros_, 664);
    EXPECT_EQ(dense("gen:graphene,W=5,L=7"), graphene_by_distance(5, 7));
    EXPECT_EQ(dense("gen:graphene,W=6,L=1"), graphene_by_distance(6, 1));
    EXPECT_EQ(dense("gen:graphene,W=1,L=4"), graphene_by_distance(1, 4));
    dense("gen:graphene,W=8,boundary=periodic");
    EXPECT_EQ(nonzeros_, 832);
    for (const auto& [width, length] : {std::pair(8, 8), {6, 10}, {10, 4}, {2, 4}, {2, 2}}) {
        expect_spectrum("gen:graphene,boundary=periodic,W=" + std::to_string(width) +
                            ",L=" + std::to_string(length),
                        graphene_bands(width, length));
    }
    const Matrix disorder = dense("gen:graphene,W=8,gamma=0.25") - graphene_by_distance(8, 8);
    EXPECT_TRUE(disorder.isDiagonal());
    EXPECT_LE(disorder.cwiseAbs().maxCoeff(), 0.125);
    EXPECT_GT(disorder.cwiseAbs().maxCoeff(), 0.1);
}

TEST_F(PhysicsMatricesTest, AndersonHopsOnATorus) {
    for (const int length : {1, 2, 3, 5}) {
        std::vector<double> exact;
        exact.reserve(static_cast<std::size_t>(length * length * length));
        const auto cosine = [&](int k) { return std::cos(2 * std::numbers::pi * k / length); };
        for (int k = 0; k < length * length * length; ++k) {
            exact.push_back(
                -2 * 0.75 *
                (cosine(k % length) + cosine(k / length % length) + cosine(k / length / length)));
        }
        expect_spectrum("gen:anderson,W=0,t=0.75,L=" + std::to_string(length), exact);
    }
    dense("gen:anderson,L=6");
    EXPECT_EQ(nonzeros_, 7 * 216);
}

TEST_F(PhysicsMatricesTest, AndersonHasUniformEnergies) {
    const double width = 16.5;
    const Matrix a = dense("gen:anderson,L=9");
    const Matrix energies = a - dense("gen:anderson,L=9,W=0");
    EXPECT_TRUE(energies.isDiagonal());
    const Eigen::VectorXd e = energies.diagonal().real();
    const auto n = static_cast<double>(e.size());
    EXPECT_LE(e.cwiseAbs().maxCoeff(), width / 2);
    EXPECT_LE(std::abs(e.mean()), 5 * width / std::sqrt(12 * n));
    // (e^2) has mean W^2/12 and standard deviation W^2/(6 sqrt(5)).
    EXPECT_NEAR(e.squaredNorm() / n, width * width / 12,
                5 * width * width / (6 * std::sqrt(5 * n)));
    // Neighbouring rows are uncorrelated: the mean of n products has deviation W^2/12/sqrt(n).
    EXPECT_LE(std::abs(e.head(e.size() - 1).dot(e.tail(e.size() - 1))) / n,
              5 * width * width / (12 * std::sqrt(n)));
    EXPECT_EQ(e(17), width * (uniform(1, 17, 0) - 0.5));
    EXPECT_NE(dense("gen:anderson,L=9,seed=2"), a);
    EXPECT_EQ(dense("gen:anderson,L=9,seed=1"), a);
}

/// H on all states of 2 L modes by the Jordan-Wigner form of the operators (up modes first),
/// restricted to the states with n ups and n downs, ordered by up word, then by down word.
Matrix hubbard_by_operators(int sites, int fermions, double t, double u, bool is_ring,
                            const std::vector<double>& energy) {
    const int modes = 2 * sites;
    const Matrix lower = two_by_two(0, 1, 0, 0);
    const Matrix parity = two_by_two(1, 0, 0, -1);
    using Sparse = Eigen::SparseMatrix<Z>;
    std::vector<Sparse> c;
    c.reserve(static_cast<std::size_t>(modes));
    for (int mode = 0; mode < modes; ++mode) {
        c.emplace_back(at_place(lower, mode, modes, parity).sparseView());
    }
    // c+_a c_b
    const auto moved = [&](int a, int b) -> Sparse {
        return Sparse(c[static_cast<std::size_t>(a)].adjoint()) * c[static_cast<std::size_t>(b)];
    };
    Sparse h(c[0].rows(), c[0].cols());
    for (int site = 0; site < sites; ++site) {
        for (const int spin : {0, sites}) {
            if (site + 1 < sites || is_ring) {
                const Sparse hop = moved(spin + site, spin + (site + 1) % sites);
                h += t * (hop + Sparse(hop.adjoint()));
            }
            h += energy[static_cast<std::size_t>(site)] * moved(spin + site, spin + site);
        }
        h += u * Sparse(moved(site, site) * moved(sites + site, sites + site));
    }
    std::vector<int> kept;
    for (int up = 0; up < 1 << sites; ++up) {
        for (int down = 0; down < 1 << sites; ++down) {
            if (std::popcount(static_cast<unsigned>(up)) == fermions &&
                std::popcount(static_cast<unsigned>(down)) == fermions) {
                kept.push_back(up | down << sites);
            }
        }
    }
    return Matrix(h)(kept, kept);
}

TEST_F(PhysicsMatricesTest, HubbardIsMadeOfFermionOperators) {
    for (const int sites : {2, 3, 4}) {
        const std::vector<double> none(static_cast<std::size_t>(sites), 0.0);
        std::vector<double> random;
        random.reserve(static_cast<std::size_t>(sites));
        for (int site = 0; site < sites; ++site) {
            random.push_back(2 * (uniform(7, site, 0) - 0.5));
        }
        for (int fermions = 1; fermions <= sites; ++fermions) {
            const std::string spec =
                "gen:hubbard,L=" + std::to_string(sites) + ",n=" + std::to_string(fermions);
            EXPECT_EQ(dense(spec), hubbard_by_operators(sites, fermions, 1, 4, false, none));
            EXPECT_EQ(dense(spec + ",t=-0.5,U=3,boundary=periodic"),
                      hubbard_by_operators(sites, fermions, -0.5, 3, true, none));
            const Matrix expected = hubbard_by_operators(sites, fermions, 1, 4, true, random);
            const double error =
                (dense(spec + ",boundary=periodic,W=2,seed=7") - expected).cwiseAbs().maxCoeff();
            EXPECT_LE(error, 16 * epsilon_v<double> * (2.0 * sites + 4));
        }
    }
    // Two sites, one up, one down: 0, U, (U -+ sqrt(U^2 + 16 t^2)) / 2.
    const double root = std::sqrt(36.0 + 16.0);
    expect_spectrum("gen:hubbard,L=2,n=1,U=6", {(6 - root) / 2, 0, 6, (6 + root) / 2});
    dense("gen:hubbard,L=6,n=3");
    EXPECT_LE(nonzeros_, 400 * 13);
}

/// E = +- sqrt(...), each twice, for every wave vector of the periodic lattice.
std::vector<double> topi_bands(std::array<int, 3> n, double t) {
    std::vector<double> bands;
    for (int k = 0; k < n[0] * n[1] * n[2]; ++k) {
        const int parts[3] = {k % n[0], k / n[0] % n[1], k / n[0] / n[1]};
        double mass = 2;
        double sines = 0;
        for (std::size_t d = 0; d < 3; ++d) {
            const double angle = 2 * std::numbers::pi * parts[d] / n[d];
            mass -= t * std::cos(angle);
            sines += t * t * std::sin(angle) * std::sin(angle);
        }
        const double energy = std::sqrt(mass * mass + sines);
        bands.insert(bands.end(), {-energy, -energy, energy, energy});
    }
    return bands;
}

/// The closed forms hold for periodic axes of one and two sites, where both bonds between two sites
/// count.
TEST_F(PhysicsMatricesTest, SmallPeriodicLatticesCountEveryBond) {
    expect_spectrum("gen:anderson,W=0,t=0.5,L=1", {-3});
    expect_spectrum("gen:anderson,W=0,t=0.5,L=2", {-3, -1, -1, -1, 1, 1, 1, 3});
    EXPECT_EQ(nonzeros_, 8 * 4);  // the diagonal, and a doubled bond along each axis
    const double root = std::sqrt(36.0 + 64.0);
    expect_spectrum("gen:hubbard,L=2,n=1,U=6,boundary=periodic",
                    {(6 - root) / 2, 0, 6, (6 + root) / 2});
    expect_spectrum("gen:hubbard,L=2,n=2,U=6,boundary=periodic", {12});
    // Twice s.s of a pair: three times 2 for the triplet, -6 for the singlet.
    expect_spectrum("gen:spin,L=2,Bx=0,Bz=0", {-6, 2, 2, 2});
    expect_spectrum("gen:spinSZ,L=2", {-6, 2});
    const double t1 = 1;
    const double t2 = 0.1 / 2.78;
    const double t3 = 0.095 / 2.78;
    // d -+ |f| for the two wave vectors (0, 0) and (pi, 0), by the formula in lattices.cpp.
    expect_spectrum("gen:graphene,W=2,L=2,boundary=periodic",
                    {-3 * t3 - 6 * t2 - (3 * t1 + 3 * t3), -3 * t3 - 6 * t2 + (3 * t1 + 3 * t3),
                     -3 * t3 + 2 * t2 - (t1 - 3 * t3), -3 * t3 + 2 * t2 + (t1 - 3 * t3)});
    const auto hermitian = Symmetry::hermitian;
    const std::string rings = ",bx=periodic,by=periodic,bz=periodic";
    expect_spectrum("gen:topi,nx=1,t=0.5" + rings, {-0.5, -0.5, 0.5, 0.5}, hermitian);
    expect_spectrum("gen:topi,nx=2,ny=1,nz=1,t=0.5" + rings,
                    {-1.5, -1.5, -0.5, -0.5, 0.5, 0.5, 1.5, 1.5}, hermitian);
    expect_spectrum("gen:topi,nx=2" + rings, topi_bands({2, 2, 2}, 1), hermitian);
}

/// The matrix that shifts to the next point of a line or ring.
Matrix shift(int points, bool is_ring) {
    Matrix result = Matrix::Zero(points, points);
    for (int i = 0; i < points; ++i) {
        if (i + 1 < points || is_ring) {
            result((i + 1) % points, i) += 1;
        }
    }
    return result;
}

Matrix topi_by_products(std::array<int, 3> n, std::array<bool, 3> rings, double t) {
    const Matrix one = Matrix::Identity(2, 2);
    const Matrix x = two_by_two(0, 1, 1, 0);
    const Matrix y = two_by_two(0, -imaginary_unit, imaginary_unit, 0);
    const Matrix z = two_by_two(1, 0, 0, -1);
    const Matrix mass = kron(z, one);
    const Matrix gamma[3] = {kron(x, x), kron(x, y), kron(x, z)};
    Matrix h = 2 * kron(Matrix::Identity(n[0] * n[1] * n[2], n[0] * n[1] * n[2]), mass);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        Matrix lattice = Matrix::Identity(1, 1);
        for (std::size_t d = 0; d < 3; ++d) {
            lattice =
                kron(d == axis ? shift(n[d], rings[d]) : Matrix::Identity(n[d], n[d]), lattice);
        }
        const Matrix hop = kron(lattice, (mass - imaginary_unit * gamma[axis]) / 2);
        h -= t * (hop + hop.adjoint());
    }
    return h;
}

TEST_F(PhysicsMatricesTest, TopologicalInsulatorHasItsBands) {
    const auto hermitian = Symmetry::hermitian;
    const std::string rings = ",bx=periodic,by=periodic,bz=periodic";
    expect_spectrum("gen:topi,nx=3,ny=4,nz=2" + rings, topi_bands({3, 4, 2}, 1), hermitian);
    expect_spectrum("gen:topi,nx=1,ny=1,nz=5,t=0.5" + rings, topi_bands({1, 1, 5}, 0.5), hermitian);
    dense("gen:topi,nx=4,ny=3,nz=5" + rings, hermitian);
    EXPECT_EQ(nonzeros_, 13 * 4 * 60);
    EXPECT_EQ(dense("gen:topi,nx=3,ny=4,nz=5", hermitian),
              topi_by_products({3, 4, 5}, {true, true, false}, 1));
    EXPECT_EQ(dense("gen:topi,nx=4,ny=1,nz=2,bx=open,by=open,bz=periodic,t=-0.5", hermitian),
              topi_by_products({4, 1, 2}, {false, false, true}, -0.5));
    const Matrix disorder =
        dense("gen:topi,nx=3,W=2", hermitian) - dense("gen:topi,nx=3", hermitian);
    EXPECT_TRUE(disorder.isDiagonal());
    for (Index site = 0; site < 27; ++site) {
        for (Index orbital = 0; orbital < 4; ++orbital) {
            EXPECT_NEAR(disorder(4 * site + orbital, 4 * site + orbital).real(),
                        2 * (uniform(1, site, 0) - 0.5), 4 * epsilon_v<double>);
        }
    }
}

/// The differential operator from difference matrices: G^T P G, and C R + R C.
Matrix matpde_by_differences(int n, double beta) {
    const double h = 1.0 / (n + 1);
    Matrix result = Matrix::Zero(n * n, n * n);
    Matrix gradient = Matrix::Zero(n + 1, n);
    for (int i = 0; i < n; ++i) {
        gradient(i, i) = 1;
        gradient(i + 1, i) = -1;
    }
    for (int line = 0; line < n; ++line) {
        const double fixed = (line + 1) * h;
        Matrix p = Matrix::Zero(n + 1, n + 1);
        Matrix q = Matrix::Zero(n + 1, n + 1);
        for (int k = 0; k <= n; ++k) {
            p(k, k) = std::exp(-(k + 0.5) * h * fixed);
            q(k, k) = std::exp((k + 0.5) * h * fixed);
        }
        const Matrix in_x = product(product(gradient.transpose(), p), gradient);
        const Matrix in_y = product(product(gradient.transpose(), q), gradient);
        for (int a = 0; a < n; ++a) {
            for (int b = 0; b < n; ++b) {
                result(a + n * line, b + n * line) += in_x(a, b);
                result(line + n * a, line + n * b) += in_y(a, b);
            }
        }
    }
    const Matrix step = shift(n, false);
    const Matrix central = h / 2 * kron(Matrix::Identity(n, n), step.transpose() - step);
    Matrix r = Matrix::Zero(n * n, n * n);
    for (int row = 0; row < n * n; ++row) {
        const int i = row % n + 1;
        const int j = row / n + 1;
        const double sum = i * h + j * h;
        r(row, row) = beta * sum;
        result(row, row) += h * h / (1 + sum);
    }
    return result + product(r, central) + product(central, r);
}

TEST_F(PhysicsMatricesTest, MatpdeIsItsDifferentialEquation) {
    for (const int n : {1, 2, 4, 7, 16}) {
        const std::string spec = "gen:matpde,n=" + std::to_string(n);
        const Matrix a = dense(spec, Symmetry::general);
        EXPECT_EQ(nonzeros_, 5 * n * n - 4 * n);
        const Matrix expected = matpde_by_differences(n, 20);
        // The rounding of an entry: a sum of four exponentials with arguments of at most 1.
        const double bound = 64 * epsilon_v<double> * expected.cwiseAbs().maxCoeff();
        EXPECT_LE((a - expected).cwiseAbs().maxCoeff(), bound);
        const Matrix without = dense(spec + ",beta=0", Symmetry::general);
        EXPECT_LE((without - matpde_by_differences(n, 0)).cwiseAbs().maxCoeff(), bound);
        EXPECT_LE((without - without.transpose()).cwiseAbs().maxCoeff(), bound);
    }
    const Matrix plain = dense("gen:matpde,n=8", Symmetry::general);
    EXPECT_GT((plain - plain.transpose()).norm(), 1);
    const Matrix morton = dense("gen:matpde,n=8,order=morton", Symmetry::general);
    std::vector<int> place;
    for (int row = 0; row < 64; ++row) {
        const int i = (row & 1) + (row >> 1 & 2) + (row >> 2 & 4);
        const int j = (row >> 1 & 1) + (row >> 2 & 2) + (row >> 3 & 4);
        place.push_back(i + 8 * j);
    }
    EXPECT_EQ(morton, Matrix(plain(place, place)));
}

TEST_F(PhysicsMatricesTest, AnyRanksAndThreadsGiveTheSameBits) {
    for (const std::string spec :
         {"spin,L=7,Bx=0.1", "graphene,W=9,L=11,gamma=0.3", "anderson,L=7", "hubbard,L=6,n=2,W=0.7",
          "topi,nx=3,ny=5,nz=4,W=1", "matpde,n=13", "elements,nx=3,ny=2,nz=4", "irregular,n=90",
          "knn,n=90,k=4,clusters=3"}) {
        const auto alone = generate<Z>(Comm(), "gen:" + spec, 1);
        const auto shared = generate<Z>(comm_, "gen:" + spec, 3);
        EXPECT_EQ(test::gather_dense(comm_, shared), test::gather_dense(Comm(), alone)) << spec;
    }
}

/// In matrices near the largest size that 64 bits hold, the transposed entry of every entry is
/// stored, and is its conjugate if the matrix is Hermitian.
TEST_F(PhysicsMatricesTest, HugeMatricesAreHermitian) {
    std::mt19937_64 generator = test::make_generator();
    for (const std::string spec :
         {"gen:laplace3d,nx=2000000", "gen:spinSZ,L=62", "gen:spin,L=62",
          "gen:graphene,W=3000000000,L=3000000002,boundary=periodic,gamma=1",
          "gen:anderson,L=2097151", "gen:hubbard,L=34,n=17,boundary=periodic,W=1",
          "gen:topi,nx=1300000,W=1,bz=periodic", "gen:matpde,n=2147483648,order=morton",
          "gen:matpde,n=3000000000"}) {
        const GeneratedMatrix matrix = make_matrix(spec);
        const auto row_of = [&](std::int64_t row) {
            RowEntries<Z> entries;
            if (matrix.make_complex_row) {
                matrix.make_complex_row(row, entries);
            } else {
                RowEntries<double> real;
                matrix.make_row(row, real);
                entries.column = real.column;
                entries.value.assign(real.value.begin(), real.value.end());
            }
            return entries;
        };
        EXPECT_GT(matrix.rows, std::int64_t{1} << 58) << spec;
        for (int sample = 0; sample < 40; ++sample) {
            std::int64_t row = sample < 2
                                   ? (matrix.rows - 1) * sample
                                   : static_cast<std::int64_t>(generator() >> 1) % matrix.rows;
            const RowEntries<Z> entries = row_of(row);
            EXPECT_GE(entries.column.size(), 3U) << spec;
            for (std::size_t k = 0; k < entries.column.size(); ++k) {
                ASSERT_GE(entries.column[k], 0) << spec;
                ASSERT_LT(entries.column[k], matrix.rows) << spec;
                const RowEntries<Z> mirror = row_of(entries.column[k]);
                const auto at = std::find(mirror.column.begin(), mirror.column.end(), row);
                ASSERT_NE(at, mirror.column.end()) << spec << " row " << row;
                if (matrix.symmetry != Symmetry::general) {
                    EXPECT_EQ(mirror.value[static_cast<std::size_t>(at - mirror.column.begin())],
                              std::conj(entries.value[k]))
                        << spec << " row " << row;
                }
            }
        }
    }
}

TEST_F(PhysicsMatricesTest, ComplexMatricesNeedComplexScalars) {
    for (const std::string spec : {"gen:topi,nx=2", "gen:topi,nx=2,W=3"}) {
        EXPECT_TRUE(is_complex_generator(spec));
        EXPECT_NE(test::message_of<InputError>(comm_, [&] { generate<double>(comm_, spec, 1); })
                      .find("the matrix is complex"),
                  std::string::npos);
        EXPECT_THROW(generate<float>(comm_, spec, 1), InputError);
        const auto narrow = generate<std::complex<float>>(comm_, "gen:topi,nx=2", 1);
        EXPECT_EQ(narrow.symmetry, Symmetry::hermitian);
        EXPECT_EQ(test::gather_dense(comm_, narrow),
                  test::gather_dense(comm_, generate<Z>(comm_, "gen:topi,nx=2", 1)));
    }
    EXPECT_FALSE(is_complex_generator("gen:matpde"));
    EXPECT_THROW(is_complex_generator("gen:nosuch"), InputError);
}

/// The stored matrices number the states as HamiltonianOperator does.
TEST_F(PhysicsMatricesTest, AreThoseOfHamiltoniansWithoutStoredEntries) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"gen:spinSZ,L=10,Jz=0.7,Jxy=1.3",
         "spins 10\nsector sz 0\nring 2.6 + - 0 1 hc\nring 2.8 z z 0 1\n"},
        {"gen:spin,L=7,Jx=0.3,Jy=-0.8,Jz=1.1,Bx=0.4,Bz=0.9",
         "spins 7\nring 1.2 x x 0 1\nring -3.2 y y 0 1\nring 4.4 z z 0 1\nring 0.8 x 0\n"
         "ring 1.8 z 0\n"},
        {"gen:hubbard,L=5,n=2,t=0.6,U=3,boundary=periodic",
         "fermions 5\nsector up 2\nsector down 2\nring 0.6 +u -u 0 1 hc\n"
         "ring 0.6 +d -d 0 1 hc\nring 3 nu nd 0 0\n"}};
    Context ctx;
    for (const auto& [spec, text] : cases) {
        const CsrRows<double> stored = generate<double>(Comm(), spec, 1);
        const HamiltonianOperator<double> computed(ctx, parse_hamiltonian(text, spec));
        const auto rows = static_cast<std::size_t>(computed.row_map().global_rows());
        ASSERT_EQ(stored.row_start.size(), rows + 1) << spec;
        for (std::size_t row = 0; row < rows; ++row) {
            std::map<std::int64_t, double> difference;
            for (auto k = static_cast<std::size_t>(stored.row_start[row]);
                 k < static_cast<std::size_t>(stored.row_start[row + 1]); ++k) {
                difference[stored.column[k]] += stored.value[k];
            }
            computed.for_each_entry(
                static_cast<std::int64_t>(row),
                [&](std::int64_t column, double value) { difference[column] -= value; });
            for (const auto& [column, value] : difference) {
                ASSERT_NEAR(value, 0, 1e-13) << spec << ": " << row << ", " << column;
            }
        }
    }
}

}  // namespace
}  // namespace quiver::apps
