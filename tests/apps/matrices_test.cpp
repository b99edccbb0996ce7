// SPDX-License-Identifier: BSD-3-Clause
// Generated matrices against closed forms and dense eigenvalues.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "apps/matrices/generators.hpp"
#include "blockvec/scalar.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps {
namespace {

using Matrix = Eigen::MatrixXd;

template <class T>
Matrix gather_dense(const Comm& comm, const CsrRows<T>& rows) {
    const auto n = static_cast<Eigen::Index>(rows.map.global_rows());
    EXPECT_EQ(rows.global_cols, n);
    Matrix dense = Matrix::Zero(n, n);
    for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        for (auto k = static_cast<std::size_t>(rows.row_start[at]);
             k < static_cast<std::size_t>(rows.row_start[at + 1]); ++k) {
            dense(rows.map.first_row() + i, rows.column[k]) =
                static_cast<double>(real_part(rows.value[k]));
        }
    }
    comm.sum(std::span<double>(dense.data(), static_cast<std::size_t>(dense.size())));
    return dense;
}

std::vector<double> eigenvalues_of(const Matrix& dense) {
    const Eigen::VectorXd values = test::oracle::eigenvalues(dense);
    return {values.begin(), values.end()};
}

class MatricesTest : public ::testing::Test {
  protected:
    Matrix dense(const std::string& spec) {
        const auto rows = generate<double>(comm_, spec, 2);
        EXPECT_EQ(rows.symmetry, Symmetry::symmetric);
        nonzeros_ = comm_.sum(rows.nonzeros());
        return gather_dense(comm_, rows);
    }
    std::string error_of(const std::string& spec) {
        try {
            generate<double>(comm_, spec, 1);
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    }
    Comm comm_{MPI_COMM_WORLD};
    std::int64_t nonzeros_ = 0;
};

/// The Laplace operator by its definition.
Matrix laplace(int nx, int ny, int nz, int dimensions) {
    const int n = nx * ny * nz;
    Matrix result = Matrix::Zero(n, n);
    for (int a = 0; a < n; ++a) {
        for (int b = 0; b < n; ++b) {
            const int distance = std::abs(a % nx - b % nx) + std::abs(a / nx % ny - b / nx % ny) +
                                 std::abs(a / nx / ny - b / nx / ny);
            if (distance == 0) {
                result(a, b) = 2 * dimensions;
            } else if (distance == 1) {
                result(a, b) = -1;
            }
        }
    }
    return result;
}

TEST_F(MatricesTest, LaplaceIsItsDefinition) {
    EXPECT_EQ(dense("gen:laplace1d,nx=7"), laplace(7, 1, 1, 1));
    EXPECT_EQ(dense("gen:laplace1d,nx=1"), laplace(1, 1, 1, 1));
    EXPECT_EQ(dense("gen:laplace2d,nx=5,ny=3"), laplace(5, 3, 1, 2));
    EXPECT_EQ(dense("gen:laplace2d,nx=4"), laplace(4, 4, 1, 2));
    EXPECT_EQ(dense("gen:laplace3d,nx=4,ny=3,nz=5"), laplace(4, 3, 5, 3));
    EXPECT_EQ(dense("gen:laplace3d,nz=2,nx=3"), laplace(3, 3, 2, 3));
    EXPECT_EQ(dense("gen:laplace3d,nx=1,ny=6,nz=1"), laplace(1, 6, 1, 3));
    EXPECT_EQ(generate<double>(comm_, "gen:laplace1d", 1).global_cols, 40);
    EXPECT_EQ(generate<double>(comm_, "gen:laplace3d", 1).global_cols, 64000);
}

TEST_F(MatricesTest, LaplaceHasItsExactEigenvalues) {
    for (const std::string spec :
         {"gen:laplace1d,nx=23", "gen:laplace2d,nx=9,ny=6", "gen:laplace3d,nx=5,ny=5,nz=5",
          "gen:laplace3d,nx=2,ny=7,nz=3", "gen:laplace3d,nx=1"}) {
        const Matrix a = dense(spec);
        const std::vector<double> all = eigenvalues_of(a);
        const double bound = 16 * epsilon_v<double> * static_cast<double>(all.size()) * 12;
        for (const int k : {1, 2, 7, 10, 1000}) {
            const auto kept = std::min<std::size_t>(static_cast<std::size_t>(k), all.size());
            const auto smallest = exact_eigenvalues(spec, k, true);
            const auto largest = exact_eigenvalues(spec, k, false);
            ASSERT_TRUE(smallest && largest);
            ASSERT_EQ(smallest->size(), kept);
            ASSERT_EQ(largest->size(), kept);
            for (std::size_t i = 0; i < kept; ++i) {
                EXPECT_NEAR((*smallest)[i], all[i], bound);
                EXPECT_NEAR((*largest)[i], all[all.size() - kept + i], bound);
            }
        }
        // The sum of all eigenvalues is the trace.
        const auto exact = exact_eigenvalues(spec, 1000, true);
        double sum = 0;
        for (const double value : *exact) {
            sum += value;
        }
        EXPECT_NEAR(sum, a.trace(), bound * static_cast<double>(all.size()));
    }
    // 10^18 rows: the smallest eigenvalues are near (pi / (n + 1))^2 times 3, 6, 6, 6.
    const auto tiny = exact_eigenvalues("gen:laplace3d,nx=1000000", 4, true);
    const double unit = std::pow(std::numbers::pi / 1000001, 2);
    EXPECT_NEAR((*tiny)[0] / unit, 3, 1e-9);
    EXPECT_NEAR((*tiny)[3] / unit, 6, 1e-9);
}

TEST_F(MatricesTest, SpinSzHasItsKnownNumbers) {
    struct Known {
        int spins;
        std::int64_t rows, nonzeros;
        double smallest;
    };
    // Rows, nonzeros and smallest eigenvalue, as computed by the program that defines the matrix.
    for (const Known& known :
         {Known{4, 6, 18, -8}, Known{6, 20, 92, -11.2111025509}, Known{8, 70, 354, -14.6043736357},
          Known{10, 252, 1652, -18.0617854180}}) {
        const Matrix a = dense("gen:spinSZ,L=" + std::to_string(known.spins));
        EXPECT_EQ(a.rows(), known.rows);
        EXPECT_EQ(nonzeros_, known.nonzeros);
        EXPECT_EQ(a, a.transpose());
        const std::vector<double> all = eigenvalues_of(a);
        EXPECT_NEAR(all.front(), known.smallest, 1e-10);
        EXPECT_NEAR(all.back(), known.spins, 1e-12 * known.spins);
    }
    const auto twelve = generate<double>(comm_, "gen:spinSZ,L=12", 3);
    EXPECT_EQ(twelve.global_cols, 924);
    EXPECT_EQ(comm_.sum(twelve.nonzeros()), 6572);
    EXPECT_FALSE(exact_eigenvalues("gen:spinSZ,L=4", 3, true).has_value());
}

/// H from Pauli matrices on all 2^L words, restricted to the words with L / 2 ones.
Matrix spin_by_definition(int spins, double jz, double jxy) {
    const int words = 1 << spins;
    Matrix full = Matrix::Zero(words, words);
    for (int word = 0; word < words; ++word) {
        for (int l = 0; l < spins; ++l) {
            const int next = (l + 1) % spins;
            const double sign = ((word >> l & 1) == (word >> next & 1)) ? 1 : -1;
            full(word, word) += jz * sign;
            // sx sx flips both bits with factor 1; sy sy with factor -1 for equal bits, else 1.
            const int flipped = word ^ (1 << l) ^ (1 << next);
            full(flipped, word) += jxy * (1 - sign);
        }
    }
    std::vector<int> kept;
    for (int word = 0; word < words; ++word) {
        if (std::popcount(static_cast<unsigned>(word)) == spins / 2) {
            kept.push_back(word);
        }
    }
    return full(kept, kept);
}

TEST_F(MatricesTest, SpinSzIsItsDefinition) {
    for (const int spins : {2, 4, 6, 8}) {
        EXPECT_EQ(dense("gen:spinSZ,L=" + std::to_string(spins)), spin_by_definition(spins, 1, 1));
        EXPECT_EQ(dense("gen:spinSZ,L=" + std::to_string(spins) + ",Jz=-0.5,Jxy=0.25"),
                  spin_by_definition(spins, -0.5, 0.25));
    }
}

TEST_F(MatricesTest, EveryScalarGivesTheSameMatrix) {
    const std::string spec = "gen:spinSZ,L=6,Jz=0.5";
    const Matrix expected = dense(spec);
    EXPECT_EQ(gather_dense(comm_, generate<float>(comm_, spec, 1)), expected);
    EXPECT_EQ(gather_dense(comm_, generate<std::complex<float>>(comm_, spec, 3)), expected);
    EXPECT_EQ(gather_dense(comm_, generate<std::complex<double>>(comm_, spec, 1)), expected);
}

TEST_F(MatricesTest, BadSpecificationsNameTheCure) {
    const auto expect = [&](const std::string& spec, const std::string& part) {
        const std::string message = error_of(spec);
        EXPECT_EQ(message.find(spec + ": "), 0U) << message;
        EXPECT_NE(message.find(part), std::string::npos) << message;
        EXPECT_THROW(exact_eigenvalues(spec, 1, true), InputError);
    };
    expect("gen:laplac3d", "no generator 'laplac3d'; close ones: ");
    expect("gen:laplac3d", "laplace3d");
    expect("gen:spinsz,L=4", "close ones: spinSZ");
    expect("gen:lap", "close ones: laplace1d, laplace2d, laplace3d");
    expect("gen:zzz", "there are: laplace1d, laplace2d, laplace3d, spinSZ");
    expect("gen:", "there are: ");
    expect("gen:laplace2d,nX=4", "no key 'nX'; close ones: nx");
    expect("gen:laplace2d,width=4", "there are: nx, ny");
    expect("gen:laplace2d,nx", "nx=VALUE");
    expect("gen:laplace2d,nx=", "whole number");
    expect("gen:laplace2d,", "a comma without");
    expect("gen:laplace2d,nx=4,nx=5", "twice");
    expect("gen:laplace2d,nx=four", "nx=four: a whole number from 1 on");
    expect("gen:laplace2d,nx=4.5", "whole number");
    expect("gen:laplace2d,ny=0", "ny=0: a whole number from 1 on");
    expect("gen:laplace2d,nx=-3", "whole number");
    expect("gen:laplace2d,nx=99999999999999999999", "64 bits");
    expect("gen:laplace3d,nx=3000000", "64 bits");
    expect("gen:spinSZ,L=5", "even");
    expect("gen:spinSZ,L=64", "even number of 2 .. 62");
    expect("gen:spinSZ,L=0", "whole number from 2 on");
    expect("gen:spinSZ,Jz=much", "Jz=much: a number is wanted");
    expect("gen:spinSZ,Jz=nan", "number");
    expect("gen:spin,L=63", "2 .. 62 spins");
    expect("gen:spin,L=1", "whole number from 2 on");
    expect("gen:graphene,W=4,L=5,boundary=periodic", "W=4,L=5: a periodic sheet needs even");
    expect("gen:graphene,boundary=closed", "boundary=closed: one of open|periodic is wanted");
    expect("gen:graphene,boundary=", "one of open|periodic");
    expect("gen:graphene,W=4000000000", "64 bits");
    expect("gen:anderson,L=2097152", "64 bits");
    expect("gen:anderson,seed=-1", "whole number from 0 on");
    expect("gen:hubbard,L=63", "2 .. 62 sites");
    expect("gen:hubbard,L=4,n=5", "n=5: at most one of each spin fits on each of the 4 sites");
    expect("gen:hubbard,L=40,n=20", "64 bits");
    expect("gen:topi,nx=1400000", "64 bits");
    expect("gen:matpde,n=12,order=morton", "n=12: Morton order needs a power of two");
    expect("gen:matpde,n=3037000500", "64 bits");
    expect("gen:andersen", "close ones: anderson");
    EXPECT_EQ(error_of("gen:spinSZ,L=4,Jz=-1.5e-1"), "");
    EXPECT_TRUE(is_generator("gen:x"));
    EXPECT_FALSE(is_generator("a.mtx"));
    EXPECT_FALSE(is_generator("/data/gen:x"));
}

TEST_F(MatricesTest, EveryGeneratorExplainsItself) {
    std::set<std::string> names;
    for (const GeneratorInfo& info : generators()) {
        EXPECT_TRUE(names.insert(info.name).second);
        EXPECT_GT(std::string(info.description).size(), 10U);
        EXPECT_FALSE(info.keys.empty());
        for (const GeneratorKey& key : info.keys) {
            EXPECT_FALSE(std::string(key.meaning).empty());
            EXPECT_FALSE(std::string(key.default_value).empty());
        }
    }
    EXPECT_EQ(names.size(), 14U);
}

}  // namespace
}  // namespace quiver::apps
