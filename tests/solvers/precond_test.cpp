// SPDX-License-Identifier: BSD-3-Clause
// Compares each preconditioner with a dense oracle, and checks its effect on conjugate gradients.
#include <filesystem>

#include "blockvec/error.hpp"
#include "kernels/random.hpp"
#include "kernels/sparse/incomplete_lu.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "solvers/precond/block_jacobi.hpp"
#include "solvers/precond/chebyshev.hpp"
#include "solvers/precond/preconditioner.hpp"
#include "tests/solvers/linear_support.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {
namespace {

template <class T>
class Preconditioner : public ::testing::Test {
  protected:
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();

    /// M as a dense matrix: the product M I.
    Dense dense_of(Operator<T>& m) {
        const auto n = static_cast<int>(m.row_map().global_rows());
        TestBlock<T> x(ctx, rounded<T>(Dense::Identity(n, n)), m.row_map(), layouts[1]);
        TestBlock<T> y(ctx, poisoned_global<T>(n, n), m.row_map(), layouts[2]);
        m.apply(ctx, x.view(), y.view());
        x.expect_unchanged();
        return dense(whole(ctx, m.row_map(), y.result()));
    }
    /// A without the entries that couple the rows of different ranks, or of different blocks of
    /// `size` rows of a rank.
    Dense blocks_of(const Dense& a, const RowMap& map, std::int64_t size) {
        Dense result = Dense::Zero(a.rows(), a.cols());
        for (std::int64_t i = 0; i < a.rows(); ++i) {
            const std::int64_t first = map.first_row(map.owner(i));
            for (std::int64_t j = 0; j < a.cols(); ++j) {
                if (map.owner(j) == map.owner(i) && (i - first) / size == (j - first) / size) {
                    result(i, j) = a(i, j);
                }
            }
        }
        return result;
    }
    /// Checks ||M B - I|| <= c n eps ||B|| ||M||, the accuracy of an inverse by LU.
    static void expect_inverse(const Dense& m, const Dense& b) {
        const auto n = static_cast<double>(b.rows());
        EXPECT_LE((oracle::product(m, b) - Dense::Identity(b.rows(), b.cols())).norm(),
                  10 * n * epsilon_v<T> * b.norm() * m.norm());
    }
    /// Diagonally dominant, with entries in a band and at some places outside of it.
    Global<T> sparse_general(int n) {
        Global<T> a(n, n);
        std::uniform_int_distribution<int> die(0, 6);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                if (std::abs(i - j) <= 1 || die(generator) == 0) {
                    a(i, j) = random_value<T>(generator);
                }
            }
            a(i, i) = T(static_cast<real_t<T>>(static_cast<double>(n)));
        }
        return a;
    }
    static PreconditionerOptions options(const std::string& text) {
        return parse_preconditioner(text);
    }
};
TYPED_TEST_SUITE(Preconditioner, Scalars, ScalarName);

TYPED_TEST(Preconditioner, DiagonalBlocksComeBackAsTheyWere) {
    using T = TypeParam;
    for (const int n : {1, 6, 70}) {
        const Global<T> a = this->sparse_general(n);
        for (const SparseFormat& format :
             {SparseFormat{}, SparseFormat{SparseFormat::compressed_rows},
              SparseFormat{SparseFormat::sell, 4, 16}}) {
            SparseMatrix<T> matrix(this->ctx, rows_of(this->ctx, a), format);
            const CsrRows<T> rows = matrix.diagonal_block(this->ctx);
            const RowMap& map = matrix.row_map();
            EXPECT_TRUE(rows.map == map);
            std::size_t entry = 0;
            for (std::int64_t i = 0; i < map.local_rows(); ++i) {
                EXPECT_EQ(rows.row_start[static_cast<std::size_t>(i)],
                          static_cast<std::int64_t>(entry));
                for (std::int64_t j = map.first_row(); j < map.first_row() + map.local_rows();
                     ++j) {
                    const T value = a(map.first_row() + i, static_cast<int>(j));
                    if (value != T(0)) {
                        ASSERT_LT(entry, rows.column.size());
                        EXPECT_EQ(rows.column[entry], j);
                        EXPECT_EQ(rows.value[entry++], value);
                    }
                }
            }
            EXPECT_EQ(entry, rows.column.size());
        }
    }
}

TYPED_TEST(Preconditioner, BlockJacobiInvertsTheBlocks) {
    using T = TypeParam;
    for (const int n : {1, 13, 75}) {
        const Global<T> a = this->sparse_general(n);
        SparseMatrix<T> matrix = sparse(this->ctx, a);
        for (const std::string text :
             {"jacobi", "block-jacobi,size=3", "block-jacobi", "block-jacobi,size=64"}) {
            SCOPED_TRACE(text + ", " + std::to_string(n) + " rows");
            const PreconditionerOptions wish = this->options(text);
            const auto m = make_preconditioner(this->ctx, matrix, wish);
            const int size = wish.kind == PreconditionerKind::jacobi ? 1 : wish.block_size;
            const Dense blocks = this->blocks_of(dense(a), matrix.row_map(), size);
            const Dense inverse = this->dense_of(*m);
            this->expect_inverse(inverse, blocks);
            EXPECT_EQ(this->blocks_of(inverse, matrix.row_map(), size), inverse);
            if (this->ctx.place() == Place::device && size <= 8) {
                // The blocks of so few rows were inverted on the host. The kernels of large blocks
                // take seconds to compile, and the tests of batches check them.
                const auto of_device = block_jacobi(this->ctx, matrix, size, 0);
                this->expect_inverse(this->dense_of(*of_device), blocks);
            }
        }
    }
}

/// Every storage format, with long rows that are stored in pieces, and rows of other ranks.
TYPED_TEST(Preconditioner, DiagonalBlocksAreTakenFromEveryStorage) {
    using T = TypeParam;
    const std::int64_t n = 1601;
    const auto value_of = [](std::int64_t row, std::int64_t column) {
        return T(static_cast<real_t<T>>(1 + (row * 7 + column * 3) % 11));
    };
    const auto has_entry = [](std::int64_t row, std::int64_t column) {
        return row % 400 == 3 || (row + column) % 3 == 0 || column == n - 1 - row;
    };
    CsrRows<T> rows;
    rows.map = RowMap::by_rows(this->ctx.comm(), n);
    rows.global_cols = n;
    const std::int64_t first = rows.map.first_row();
    const std::int64_t own = rows.map.local_rows();
    for (std::int64_t row = first; row < first + own; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
            if (has_entry(row, column) && (row % 400 == 3 || std::abs(row - column) < 40)) {
                rows.column.push_back(column);
                rows.value.push_back(value_of(row, column));
            }
        }
        rows.row_start.push_back(rows.nonzeros());
    }
    for (const SparseFormat& format : {SparseFormat{}, SparseFormat{SparseFormat::compressed_rows},
                                       SparseFormat{SparseFormat::sell, 4, 16}}) {
        SparseMatrix<T> matrix(this->ctx, rows, format);
        for (const std::int64_t size : {1, 7, 64}) {
            const Buffer buffer = matrix.diagonal_blocks(this->ctx, static_cast<int>(size));
            std::vector<T> blocks(buffer.bytes() / sizeof(T));
            ASSERT_EQ(std::ssize(blocks), (own + size - 1) / size * size * size);
            if (this->ctx.place() == Place::device) {
                device::copy(blocks.data(), buffer.as<void>(), buffer.bytes(), this->ctx.stream());
                this->ctx.synchronize();
            } else {
                std::copy_n(buffer.as<T>(), blocks.size(), blocks.data());
            }
            for (std::int64_t k = 0; k < std::ssize(blocks); ++k) {
                const std::int64_t i = k / size;
                const std::int64_t j = i / size * size + k % size;
                const bool is_entry = i < own && j < own && has_entry(first + i, first + j) &&
                                      ((first + i) % 400 == 3 || std::abs(i - j) < 40);
                const T expected = is_entry             ? value_of(first + i, first + j)
                                   : i >= own && i == j ? T(1)
                                                        : T(0);
                ASSERT_EQ(blocks[static_cast<std::size_t>(k)], expected)
                    << size << ", row " << i << ", column " << j;
            }
        }
    }
}

/// A tridiagonal matrix has no fill: the factors are exact.
TYPED_TEST(Preconditioner, IncompleteFactorsOfATridiagonalMatrixAreExact) {
    using T = TypeParam;
    const int n = 30;
    Global<T> a(n, n);
    for (int i = 0; i < n; ++i) {
        a(i, i) = T(3);
        if (i > 0) {
            a(i, i - 1) = random_value<T>(this->generator);
            a(i - 1, i) = conjugate(a(i, i - 1));
        }
    }
    SparseMatrix<T> matrix = sparse(this->ctx, a);
    for (const std::string text : {"ic", "ilu"}) {
        const auto m = make_preconditioner(this->ctx, matrix, this->options(text));
        const Dense block = this->blocks_of(dense(a), matrix.row_map(), n);
        this->expect_inverse(this->dense_of(*m), block);
    }
}

/// With D the factors give (A - sigma B)^-1; with |D| they give a positive definite M with (M (A -
/// sigma B))^2 = I.
TYPED_TEST(Preconditioner, CompleteFactorsInvert) {
    using T = TypeParam;
    for (const int n : {1, 2, 17, 70}) {
        const auto make = [&](bool indefinite) {
            Global<T> a = this->sparse_general(n);
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < i; ++j) {
                    a(j, i) = conjugate(a(i, j));
                }
                if (indefinite && i % 3 == 1) {
                    a(i, i) = -a(i, i);
                }
            }
            return a;
        };
        const Global<T> a = make(true);
        const Global<T> b = make(false);
        SparseMatrix<T> matrix = sparse(this->ctx, a);
        SparseMatrix<T> mass = sparse(this->ctx, b);
        for (const bool pencil : {false, true}) {
            SCOPED_TRACE(std::to_string(n) + (pencil ? " rows, a pencil" : " rows"));
            PreconditionerOptions wish = this->options("ldlt,shift=0.25");
            const Dense shifted =
                dense(a) - 0.25 * (pencil ? dense(b) : Dense(Dense::Identity(n, n)));
            const Dense block = this->blocks_of(shifted, matrix.row_map(), n);
            const auto absolute =
                make_preconditioner(this->ctx, matrix, wish, pencil ? &mass : nullptr);
            const Dense m = this->dense_of(*absolute);
            const Dense sign = oracle::product(m, block);
            EXPECT_LE((oracle::product(sign, sign) - Dense::Identity(n, n)).norm(),
                      20.0 * n * epsilon_v<T> * block.norm() * m.norm() * sign.norm());
            EXPECT_LE((m - m.adjoint()).norm(), 100.0 * n * epsilon_v<T> * m.norm());
            EXPECT_GT(oracle::eigenvalues(Dense(0.5 * (m + m.adjoint()))).minCoeff(), 0);
            // With D, the inverse is that of the whole matrix on several ranks, too.
            wish.absolute = false;
            const auto inverse =
                make_preconditioner(this->ctx, matrix, wish, pencil ? &mass : nullptr);
            this->expect_inverse(this->dense_of(*inverse), shifted);
        }
    }
}

TYPED_TEST(Preconditioner, CompleteFactorsOfWhatHasNone) {
    using T = TypeParam;
    std::string said;
    this->ctx.set_event_sink([&](const Event& event) {
        if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
            said = fallback->what;
        }
    });
    // A chain of even length on every rank with a zero diagonal: the shift moves by 1e-6.
    const int n = 8 * this->ctx.comm().size();
    Global<T> chain(n, n);
    for (int i = 0; i + 1 < n; ++i) {
        chain(i, i + 1) = chain(i + 1, i) = T(1);
    }
    SparseMatrix<T> matrix = sparse(this->ctx, chain);
    const Dense m = this->dense_of(*make_preconditioner(this->ctx, matrix, this->options("ldlt")));
    EXPECT_NE(said.find("the shift moves by"), std::string::npos) << said;
    const Dense sign = oracle::product(m, this->blocks_of(dense(chain), matrix.row_map(), n));
    EXPECT_LE((oracle::product(sign, sign) - Dense::Identity(n, n)).norm(),
              (2e-6 + 1e6 * epsilon_v<T>)*n * sign.norm() * m.norm());
    this->ctx.set_event_sink({});

    const auto error_of = [&](SparseMatrix<T>& of) {
        try {
            make_preconditioner(this->ctx, of, this->options("ldlt"));
        } catch (const InputError& error) {
            EXPECT_TRUE(error.collective());
            return std::string(error.what());
        }
        return std::string("none");
    };
    chain(1, 0) = T(2);
    SparseMatrix<T> skewed = sparse(this->ctx, chain);
    EXPECT_NE(error_of(skewed).find("not Hermitian"), std::string::npos) << error_of(skewed);
    auto large = diagonal<T>(
        this->ctx,
        std::vector<double>(static_cast<std::size_t>(50001 * this->ctx.comm().size()), 1.0));
    EXPECT_NE(error_of(large).find("50001 rows on this rank; at most 50000 are possible"),
              std::string::npos)
        << error_of(large);
}

/// The definition of ILU(0): L U agrees with A wherever A has an entry.
TYPED_TEST(Preconditioner, IncompleteFactorsAgreeOnThePattern) {
    using T = TypeParam;
    const int n = 40;
    Global<T> a = this->sparse_general(n);
    for (const bool symmetric : {false, true}) {
        if (symmetric) {
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < i; ++j) {
                    a(j, i) = conjugate(a(i, j));
                }
            }
        }
        SparseMatrix<T> matrix = sparse(this->ctx, a);
        const auto m =
            make_preconditioner(this->ctx, matrix, this->options(symmetric ? "ic" : "ilu"));
        const Dense product = oracle::inverse(this->dense_of(*m));
        const Dense block = this->blocks_of(dense(a), matrix.row_map(), n);
        const double bound = 10.0 * n * epsilon_v<T> * block.cwiseAbs().maxCoeff();
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                if (block(i, j) != 0.0) {
                    EXPECT_LE(std::abs(product(i, j) - block(i, j)), bound) << i << ", " << j;
                }
            }
        }
        EXPECT_GT((product - block).norm(), 10 * bound) << "the pattern must omit fill";
    }
}

/// Strict triangles are nilpotent: as many sweeps as rows give the exact inverses. With fewer
/// sweeps M is still positive definite if A is.
TYPED_TEST(Preconditioner, SweepsTendToTriangularSolves) {
    using T = TypeParam;
    const int n = 24;
    const Global<T> a = hermitian<T>(this->generator, spread(n, 2, 9));
    SparseMatrix<T> matrix = sparse(this->ctx, a);
    for (const std::string name : {"ic", "ilu"}) {
        const auto all = make_preconditioner(this->ctx, matrix, this->options(name + ",sweeps=24"));
        this->expect_inverse(this->dense_of(*all), this->blocks_of(dense(a), matrix.row_map(), n));
    }
    for (const int sweeps : {1, 2, 5}) {
        const auto m = make_preconditioner(this->ctx, matrix,
                                           this->options("ic,sweeps=" + std::to_string(sweeps)));
        const Dense inverse = this->dense_of(*m);
        EXPECT_LE((inverse - inverse.adjoint()).norm(), 100 * n * epsilon_v<T> * inverse.norm());
        EXPECT_GT(oracle::eigenvalues(Dense(0.5 * (inverse + inverse.adjoint()))).minCoeff(), 0);
    }
}

TYPED_TEST(Preconditioner, ChebyshevIsItsPolynomial) {
    using T = TypeParam;
    const std::vector<double> values = spread(24, 0.5, 9);
    const Global<T> a = hermitian<T>(this->generator, values);
    SparseMatrix<T> matrix = sparse(this->ctx, a);
    const auto [eigenvalues, vectors] = oracle::eigenpairs(dense(a));
    for (const int degree : {1, 2, 5, 16}) {
        const double lower = 1;
        const double upper = 9.5;
        const auto m = make_preconditioner(
            this->ctx, matrix,
            this->options("chebyshev,lower=1,upper=9.5,degree=" + std::to_string(degree)));
        const auto cosh_form = [&](double t) {  // T_d(t)
            return std::abs(t) <= 1 ? std::cos(degree * std::acos(t))
                                    : (t < 0 && degree % 2 == 1 ? -1 : 1) *
                                          std::cosh(degree * std::acosh(std::abs(t)));
        };
        Eigen::VectorXcd p(24);
        for (int i = 0; i < 24; ++i) {
            const double t = eigenvalues(i);
            const double q = cosh_form((upper + lower - 2 * t) / (upper - lower)) /
                             cosh_form((upper + lower) / (upper - lower));
            p(i) = (1 - q) / t;
            EXPECT_GT(p(i).real(), 0);
        }
        const Dense expected = oracle::product(Dense(vectors * p.asDiagonal()), vectors.adjoint());
        EXPECT_LE((this->dense_of(*m) - expected).norm(),
                  100.0 * degree * epsilon_v<T> * expected.norm());
    }
}

TYPED_TEST(Preconditioner, LanczosStepsBoundTheSpectrum) {
    using T = TypeParam;
    SparseMatrix<T> matrix = sparse(this->ctx, hermitian<T>(this->generator, spread(60, -3, 11)));
    const double noise = 100 * epsilon_v<T> * 11;
    for (const int steps : {1, 6, 12, 200}) {
        const SpectrumEstimate spectrum = estimate_spectrum<T>(this->ctx, matrix, steps);
        EXPECT_GE(spectrum.bound, steps > 1 ? 11 - noise : 0);
        EXPECT_LE(spectrum.largest, 11 + noise);
        EXPECT_GE(spectrum.least, -3 - noise);
        EXPECT_LE(spectrum.bound, 25 + noise);
    }
}

TYPED_TEST(Preconditioner, FewerIterationsOnTheLaplacian) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 12, 12, 12);
    BlockVector<T> b(this->ctx, a.row_map(), 3);
    BlockVector<T> x(this->ctx, a.row_map(), 3);
    fill_random(this->ctx, 3, b);
    LinearOptions solver;
    solver.tol = usual_tolerance<T>();
    solver.share_search_space = false;
    const auto iterations = [&](Operator<T>* m) {
        const LinearResult result = linear_solve(
            this->ctx, LinearMethod::cg, LinearProblem<T>{a, b.view(), {}, m}, x.view(), solver);
        EXPECT_TRUE(result.converged) << result.message;
        return result.iterations;
    };
    const std::int64_t plain = iterations(nullptr);
    // Jacobi is omitted, because the diagonal is constant.
    for (const auto& [text, share] : {std::pair<std::string, double>{"block-jacobi,size=12", 0.95},
                                      {"chebyshev,degree=6", 0.4},
                                      {"ic", 0.8},
                                      {"ilu", 0.8},
                                      {"ic,sweeps=3", 0.8},
                                      {"ilu,sweeps=3", 0.8}}) {
        if (test_place() == Place::device && (text == "ic" || text == "ilu")) {
            continue;
        }
        SCOPED_TRACE(text);
        const auto m = make_preconditioner(this->ctx, a, this->options(text));
        EXPECT_LE(static_cast<double>(iterations(m.get())), share * static_cast<double>(plain));
    }
}

TYPED_TEST(Preconditioner, EveryMethodTakesOne) {
    using T = TypeParam;
    Global<T> a = hermitian<T>(this->generator, spread(36, 1, 9));
    for (int i = 0; i < 36; ++i) {  // badly scaled
        for (int j = 0; j < 36; ++j) {
            a(i, j) *= static_cast<real_t<T>>(std::pow(1.1, i + j));
        }
    }
    LinearSystem<T> system(this->ctx, a, random_global<T>(this->generator, 36, 5));
    for (const LinearMethod method : all_methods) {
        for (const std::string text : {"jacobi", "block-jacobi,size=4"}) {
            for (const bool share : {true, false}) {
                SCOPED_TRACE(std::string(to_string(method)) + " " + text);
                const auto m = make_preconditioner(this->ctx, system.matrix(), this->options(text));
                system.use_preconditioner(m.get());
                LinearOptions solver;
                solver.tol = std::sqrt(usual_tolerance<T>());
                solver.share_search_space = share;
                solver.restart = 36;
                const LinearResult result = system.solve(method, solver);
                system.expect_solved(result, solver);
                EXPECT_GT(result.preconditioner_applications, 0);
            }
        }
    }
}

TYPED_TEST(Preconditioner, WhatIsSingularIsNamed) {
    using T = TypeParam;
    Global<T> a(12, 12);
    for (int i = 0; i < 12; ++i) {
        a(i, i) = i == 7 ? T(0) : T(2);
    }
    a(7, 6) = a(6, 7) = T(1);
    SparseMatrix<T> matrix = sparse(this->ctx, a);
    const auto error_of = [&](const std::string& text) {
        try {
            make_preconditioner(this->ctx, matrix, this->options(text));
        } catch (const Error& error) {
            EXPECT_TRUE(error.collective());
            return std::string(error.what());
        }
        return std::string("none");
    };
    EXPECT_NE(error_of("jacobi").find("rows 8 to 8 is singular"), std::string::npos)
        << error_of("jacobi");
    EXPECT_NE(error_of("chebyshev").find("positive definite"), std::string::npos)
        << error_of("chebyshev");
    for (const std::string name : {"ilu", "ic"}) {
        EXPECT_NE(error_of(name).find("preconditioner " + name +
                                      ": incomplete factorisation: row 8 has no diagonal entry"),
                  std::string::npos)
            << error_of(name);
    }
}

/// IC(0) of Kershaw's matrix has a negative pivot: the diagonal is enlarged, and an event reports
/// it.
TYPED_TEST(Preconditioner, PivotsThatBreakDownAreShifted) {
    using T = TypeParam;
    const double kershaw[4][4] = {{3, -2, 0, 2}, {-2, 3, -2, 0}, {0, -2, 3, -2}, {2, 0, -2, 3}};
    const int ranks = this->ctx.comm().size();
    Global<T> a(4 * ranks, 4 * ranks);
    for (int i = 0; i < 4 * ranks; ++i) {
        for (int j = 0; j < 4; ++j) {
            a(i, i / 4 * 4 + j) = T(static_cast<real_t<T>>(kershaw[i % 4][j]));
        }
    }
    std::string said;
    this->ctx.set_event_sink([&](const Event& event) {
        if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
            said = fallback->what;
        }
    });
    LinearSystem<T> system(this->ctx, a, random_global<T>(this->generator, 4 * ranks, 2));
    const auto m = make_preconditioner(this->ctx, system.matrix(), this->options("ic"));
    EXPECT_NE(said.find("enlarged by"), std::string::npos);
    system.use_preconditioner(m.get());
    LinearOptions solver;
    solver.tol = usual_tolerance<T>();
    system.expect_solved(system.solve(LinearMethod::cg, solver), solver);
    this->ctx.set_event_sink({});
    const Global<T> negative(3 * ranks, 3 * ranks);
    Global<T> minus = negative;
    for (int i = 0; i < 3 * ranks; ++i) {
        minus(i, i) = T(-1);
    }
    SparseMatrix<T> matrix = sparse(this->ctx, minus);
    EXPECT_THROW(make_preconditioner(this->ctx, matrix, this->options("ic")), InputError);
}

TEST(PreconditionerNames, AreReadOrRefused) {
    EXPECT_EQ(parse_preconditioner("none").kind, PreconditionerKind::none);
    EXPECT_EQ(parse_preconditioner("block-jacobi,size=+12").block_size, 12);
    EXPECT_EQ(parse_preconditioner("ldlt,shift=-1.5").shift, -1.5);
    EXPECT_FALSE(parse_preconditioner("ldlt").shift.has_value());
    const PreconditionerOptions polynomial =
        parse_preconditioner("chebyshev,degree=3,lower=0.5,upper=1d1,ratio=7");
    EXPECT_EQ(polynomial.degree, 3);
    EXPECT_EQ(polynomial.lower, 0.5);
    EXPECT_EQ(polynomial.upper, 10);
    EXPECT_EQ(polynomial.ratio, 7);
    for (const std::string text :
         {"", "Jacobi", "jacobi,size=2", "block-jacobi,size=0", "block-jacobi,size=65",
          "block-jacobi,size=", "block-jacobi,", "block-jacobi,size=2x", "chebyshev,degree=0",
          "chebyshev,lower=3,upper=2", "chebyshev,ratio=1", "chebyshev,upper=nan", "ic,degree=2",
          "ilu,sweeps=1001", "jacobi,sweeps=2", "ldlt,sweeps=2", "ldlt,shift=inf", "ldlt,shift="}) {
        EXPECT_THROW(parse_preconditioner(text), InputError) << text;
    }
    const std::pair<const char*, const char*> said[] = {
        {"block-jacobi,size=1048577", "size=1048577: a whole number from 1 to 64 is wanted"},
        {"chebyshev,degree=99999999999", "a whole number from 1 to 1000 is wanted"},
        {"ic,sweeps=-1", "preconditioner ic: sweeps=-1: a whole number from 0 to 1000 is wanted"},
        {"block-jacobi,size=2,size=3", "the key size is given twice"},
        {"ilu,fill=1", "there is no key 'fill'; keys: sweeps"},
        {"none,x=1", "keys: none; block-jacobi has size, chebyshev degree"},
        {"jacobi,size=3", "preconditioner jacobi: there is no key 'size'; keys: none;"},
        {"jacobi,", "a comma without a key=value after it"},
    };
    for (const auto& [text, words] : said) {
        try {
            parse_preconditioner(text);
            ADD_FAILURE() << text;
        } catch (const InputError& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    }
}

/// Real matrices, if their folder exists.
TEST(RealMatrices, PreconditionersSaveIterations) {
    if (!std::filesystem::is_directory(data_folder())) {
        GTEST_SKIP() << "no folder " << data_folder() << " with matrices";
    }
    Context ctx = make_context();
    for (const std::string name : {"wathen7400", "bcsstk09"}) {
        SCOPED_TRACE(name);
        SparseMatrix<double> a(ctx,
                               read_matrix_market<double>(ctx.comm(), data_file(name + ".mtx.gz")));
        BlockVector<double> b(ctx, a.row_map(), 4);
        BlockVector<double> x(ctx, a.row_map(), 4);
        fill_random(ctx, 5, b);
        LinearOptions options;
        options.tol = 1e-8;
        options.max_iterations = 5000;
        const auto iterations = [&](const std::string& text) {
            const auto m = make_preconditioner(ctx, a, parse_preconditioner(text));
            const LinearResult result =
                linear_solve(ctx, LinearMethod::cg, LinearProblem<double>{a, b.view(), {}, m.get()},
                             x.view(), options);
            EXPECT_TRUE(result.converged) << text << ": " << result.message;
            return static_cast<double>(result.iterations);
        };
        const double plain = iterations("none");
        EXPECT_LT(iterations("jacobi"), 0.9 * plain);
        EXPECT_LT(iterations("block-jacobi,size=6"), 0.9 * plain);
        EXPECT_LT(iterations("chebyshev,degree=8"), 0.5 * plain);
        EXPECT_LT(iterations("ic"), 0.5 * plain);
    }
}

}  // namespace
}  // namespace quiver::test
