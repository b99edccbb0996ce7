// SPDX-License-Identifier: BSD-3-Clause
// Products of rectangular matrices, of adjoint matrices, and of real matrices with complex blocks,
// compared with dense sums in long double.
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "tests/kernels/sparse/sparse_products.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

/// A random matrix, the same on all ranks, in which about every fifth row is empty.
template <class T>
Dense random_dense(std::mt19937_64& generator, std::int64_t rows, std::int64_t cols, double density,
                   bool integers) {
    Dense dense(rows, cols);
    for (std::int64_t i = 0; i < rows; ++i) {
        const bool empty = generator() % 5 == 0;
        for (std::int64_t j = 0; j < cols; ++j) {
            const double pick = static_cast<double>(generator() % 1024) / 1024;
            const Wide value = widen(narrow<T>(random_value(generator, integers)));
            if (!empty && pick < density) {
                dense(i, j) = {static_cast<double>(value.real()),
                               static_cast<double>(value.imag())};
            }
        }
    }
    return dense;
}

Dense adjoint_of(const Dense& dense) {
    Dense result(dense.cols, dense.rows);
    for (std::int64_t i = 0; i < dense.rows; ++i) {
        for (std::int64_t j = 0; j < dense.cols; ++j) {
            result(j, i) = std::conj(dense(i, j));
        }
    }
    return result;
}

/// A map in which rank `empty_rank`, if there are others, has no rows.
RowMap map_without(const Comm& comm, std::int64_t rows, int empty_rank) {
    std::vector<double> weights(static_cast<std::size_t>(comm.size()), 1.0);
    if (empty_rank >= 0 && empty_rank < comm.size() && comm.size() > 1) {
        weights[static_cast<std::size_t>(empty_rank)] = 0;
    }
    return RowMap::by_rows(comm, rows, weights);
}

/// This rank's rows in compressed form.
template <class T>
struct Compressed {
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;
    std::vector<T> value;

    Compressed(const Dense& dense, const RowMap& map) {
        for (std::int64_t i = map.first_row(); i < map.first_row() + map.local_rows(); ++i) {
            for (std::int64_t j = 0; j < dense.cols; ++j) {
                if (dense(i, j) != 0.0) {
                    column.push_back(j);
                    value.push_back(narrow<T>(dense(i, j)));
                }
            }
            row_start.push_back(static_cast<std::int64_t>(column.size()));
        }
    }
};

template <class T>
SparseMatrix<T> sparse_of(Context& ctx, const Dense& dense, int rank_without_rows,
                          int rank_without_columns, const SparseFormat& format = {}) {
    const RowMap map = map_without(ctx.comm(), dense.rows, rank_without_rows);
    const Compressed<T> csr(dense, map);
    return SparseMatrix<T>::from_csr(
        ctx, map, Symmetry::general,
        CsrArrays<T, std::int64_t>{csr.row_start, csr.column, csr.value, Place::host,
                                   map_without(ctx.comm(), dense.cols, rank_without_columns)},
        format);
}

struct Shape {
    std::int64_t rows;
    std::int64_t cols;
    double density;
};
constexpr Shape shapes[] = {{1, 9, 0.7},    {9, 1, 0.7},    {131, 37, 0.1},
                            {37, 131, 0.1}, {300, 3, 0.02}, {40, 40, 0.2}};

template <class T>
class RectangularMatrix : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(RectangularMatrix, Scalars);

TYPED_TEST(RectangularMatrix, ProductsOfItAndItsAdjointMatchDenseSums) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const auto other = [&] { return narrow<T>(random_value(generator, false)); };
    const SparseFormat formats[] = {
        {}, {.kind = SparseFormat::compressed_rows}, {.kind = SparseFormat::sell, .chunk = 32}};
    int turn = 0;
    for (const auto& [rows, cols, density] : shapes) {
        const SparseFormat& format = formats[turn % 3];
        const Dense dense = random_dense<T>(generator, rows, cols, density, false);
        SparseMatrix<T> a = sparse_of<T>(ctx, dense, turn - 1, 3 - turn, format);
        EXPECT_EQ(a.range_map().global_rows(), rows);
        EXPECT_EQ(a.domain_map().global_rows(), cols);
        SparseMatrix<T> adjoint = a.adjoint(ctx, format);
        EXPECT_EQ(adjoint.range_map(), a.domain_map());
        EXPECT_EQ(adjoint.domain_map(), a.range_map());
        EXPECT_EQ(adjoint.global_nonzeros(), a.global_nonzeros());
        for (const int width : {1, 2, 3, 5, 8, 33}) {
            const std::vector<Case<T>> cases{{width, T(1), T(0), 0, false, false},
                                             {width, other(), T(0), 0, true, false},
                                             {width, other(), other(), 0, true, false}};
            for (const Case<T>& test : cases) {
                check_product(ctx, a, dense, generator, test, false);
                check_product(ctx, adjoint, adjoint_of(dense), generator, test, false);
            }
        }
        ++turn;
    }
}

TYPED_TEST(RectangularMatrix, IsExactOnSmallIntegers) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const auto& [rows, cols, density] : shapes) {
        const Dense dense = random_dense<T>(generator, rows, cols, density, true);
        SparseMatrix<T> a = sparse_of<T>(ctx, dense, 2, 1);
        SparseMatrix<T> adjoint = a.adjoint(ctx);
        SparseMatrix<T> twice = adjoint.adjoint(ctx);
        for (const int width : {1, 4, 17}) {
            const Case<T> test{width, T(2), T(-3), 0, true, false};
            check_product(ctx, a, dense, generator, test, true);
            check_product(ctx, adjoint, adjoint_of(dense), generator, test, true);
            check_product(ctx, twice, dense, generator, test, true);
        }
    }
}

/// The adjoint of a square general matrix is an operator with shifts and dots.
TYPED_TEST(RectangularMatrix, AdjointOfASquareMatrixTakesShiftsAndDots) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const Dense dense = random_dense<T>(generator, 61, 61, 0.15, true);
    SparseMatrix<T> a = sparse_of<T>(ctx, dense, 1, 1);
    SparseMatrix<T> adjoint = a.adjoint(ctx);
    EXPECT_EQ(adjoint.row_map(), a.row_map());
    for (const int width : {1, 3, 8}) {
        check_product(ctx, adjoint, adjoint_of(dense), generator,
                      Case<T>{width, T(2), T(-3), 2, true, true, true}, true);
    }
}

/// A matrix with few long rows: a device cuts these into pieces.
TYPED_TEST(RectangularMatrix, LongRowsAndTheirAdjoint) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    Dense dense(60, 1500);
    for (std::int64_t i = 0; i < dense.rows; ++i) {
        for (std::int64_t j = 0; j < dense.cols; ++j) {
            if (i % 29 == 3 || (i + j) % 500 == 0) {
                const Wide value = widen(narrow<T>(random_value(generator, true)));
                dense(i, j) = {static_cast<double>(value.real()),
                               static_cast<double>(value.imag())};
            }
        }
    }
    SparseMatrix<T> a = sparse_of<T>(ctx, dense, 0, 0);
    SparseMatrix<T> adjoint = a.adjoint(ctx);
    for (const int width : {1, 4}) {
        check_product(ctx, a, dense, generator, Case<T>{width, T(1), T(2), 0, true, false}, true);
        check_product(ctx, adjoint, adjoint_of(dense), generator,
                      Case<T>{width, T(1), T(2), 0, true, false}, true);
    }
}

TYPED_TEST(RectangularMatrix, AllSourcesGiveTheSameMatrix) {
    using T = TypeParam;
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    auto generator = make_generator();
    const Dense dense = random_dense<T>(generator, 23, 58, 0.2, true);
    const TemporaryFolder folder(comm);
    std::string text = std::string("%%MatrixMarket matrix coordinate ") +
                       (is_complex_v<T> ? "complex" : "real") + " general\n23 58 ";
    std::string lines;
    std::vector<Entry<T>> entries;
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < dense.rows; ++i) {
        for (std::int64_t j = 0; j < dense.cols; ++j) {
            const std::complex<double> value = dense(i, j);
            if (value == 0.0) {
                continue;
            }
            ++count;
            lines += std::to_string(i + 1) + " " + std::to_string(j + 1) + " " +
                     std::to_string(value.real()) +
                     (is_complex_v<T> ? " " + std::to_string(value.imag()) : "") + "\n";
            if (comm.rank() == 0) {
                entries.push_back({i, j, narrow<T>(value)});
            }
        }
    }
    text += std::to_string(count) + "\n" + lines;
    const auto read = read_matrix_market<T>(comm, folder.write("wide.mtx", text));
    const auto row_of = [&](std::int64_t row, RowEntries<T>& to) {
        for (std::int64_t j = dense.cols; j-- > 0;) {
            if (dense(row, j) != 0.0) {
                to.add(j, narrow<T>(dense(row, j)));
            }
        }
    };
    const CsrRows<T> sources[] = {
        read, rows_from_entries<T>(comm, dense.rows, dense.cols, Symmetry::general, entries),
        rows_from_entries<T>(comm, map_without(comm, dense.rows, 0), map_without(comm, 58, 1),
                             Symmetry::general, entries),
        rows_from_callback<T>(comm, dense.rows, Symmetry::general, row_of, Partition::by_nonzeros,
                              1, dense.cols)};
    for (const CsrRows<T>& rows : sources) {
        EXPECT_EQ(gather_dense(comm, rows), dense);
        SparseMatrix<T> a(ctx, rows);
        EXPECT_EQ(a.domain_map(), rows.column_map ? *rows.column_map : RowMap::by_rows(comm, 58));
        check_product(ctx, a, dense, generator, Case<T>{3, T(1), T(0), 0, false, false}, true);
    }
}

TYPED_TEST(RectangularMatrix, RepeatsItselfBitForBit) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const Dense dense = random_dense<T>(generator, 211, 97, 0.2, false);
    const auto x_global = random_block<T>(generator, 211, 5, false);
    std::vector<T> bytes[2];
    for (auto& run : bytes) {
        SparseMatrix<T> a = sparse_of<T>(ctx, dense, 0, 1);
        SparseMatrix<T> adjoint = a.adjoint(ctx);
        PaddedBlock<T> x(ctx, a.range_map(), 5, x_global, T(0));
        PaddedBlock<T> y(ctx, a.domain_map(), 5, x_global, T(poison));
        spmmv(ctx, adjoint, x.view(), y.view());
        EXPECT_TRUE(y.download(T(poison)));
        run = y.bytes();
    }
    EXPECT_EQ(bytes[0], bytes[1]);
}

template <class R>
class RealTimesComplex : public ::testing::Test {};
using RealScalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealTimesComplex, RealScalars);

TYPED_TEST(RealTimesComplex, MatchesDenseSums) {
    using R = TypeParam;
    using C = std::complex<R>;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const bool integers : {true, false}) {
        const Dense square = random_dense<R>(generator, 83, 83, 0.1, integers);
        const Dense wide = random_dense<R>(generator, 30, 71, 0.2, integers);
        SparseMatrix<R> a = sparse_of<R>(ctx, square, 1, 1);
        SparseMatrix<R> b = sparse_of<R>(ctx, wide, 0, 2);
        for (const int width : {1, 2, 5, 16}) {
            check_block_product(ctx, a, square, generator,
                                Case<C>{width, C(1), C(0), 0, false, false}, integers);
            check_block_product(ctx, a, square, generator,
                                Case<C>{width, C(-2), C(3), 1, true, true, true}, integers);
            check_block_product(ctx, a, square, generator,
                                Case<C>{width, C(2), C(0), 2, false, true, false}, integers);
            check_block_product(ctx, b, wide, generator,
                                Case<C>{width, C(2), C(-1), 0, true, false}, integers);
        }
    }
}

TEST(RectangularMatrix, RefusesWhatNeedsOneDistributionOnAllRanks) {
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    SparseMatrix<double> a(
        ctx, rows_from_entries<double>(comm, 10, 8, Symmetry::general, {{0, 1, 1.0}, {9, 7, 1.0}},
                                       Partition::by_rows));
    BlockVector<double> x(ctx, a.domain_map(), 2), y(ctx, a.range_map(), 2);
    fill(ctx, 1.0, x.view());
    const std::vector<double> shift{1.0};
    std::vector<double> two(2);
    const std::string wanted = "a shift and dots with X need a square matrix";
    for (const ApplyOptions<double>& options :
         {ApplyOptions<double>{.shift = shift}, ApplyOptions<double>{.dot_xy = two},
          ApplyOptions<double>{.dot_xx = two}}) {
        const std::string message =
            message_of<ShapeError>(comm, [&] { spmmv(ctx, a, x.view(), y.view(), options); });
        EXPECT_NE(message.find(wanted), std::string::npos) << message;
        EXPECT_NE(message.find("10 x 8"), std::string::npos) << message;
    }
    EXPECT_NO_THROW(spmmv(ctx, a, x.view(), y.view(), {.dot_yy = two}));
    BlockVector<std::complex<double>> cx(ctx, a.domain_map(), 1), cy(ctx, a.range_map(), 1);
    std::vector<std::complex<double>> one(1);
    EXPECT_NE(
        message_of<ShapeError>(comm, [&] { spmmv(ctx, a, cx.view(), cy.view(), {.dot_xy = one}); }),
        "");
    const std::string message = message_of<ShapeError>(comm, [&] { a.row_map(); });
    EXPECT_EQ(message,
              "sparse matrix: 10 rows and 8 columns; the matrix must be square. Solvers and shifts "
              "need one distribution of X and Y; products of other matrices use range_map() and "
              "domain_map()");
    EXPECT_NE(message_of<ShapeError>(comm, [&] { a.diagonal_block(ctx); }), "");
}

TEST(RectangularMatrix, RefusesMapsThatDoNotFit) {
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    const auto refusal = [&](Symmetry symmetry, std::int64_t cols, std::int64_t mapped) {
        CsrRows<double> rows =
            rows_from_entries<double>(comm, 10, cols, Symmetry::general, {}, Partition::by_rows);
        rows.symmetry = symmetry;
        if (mapped > 0) {
            rows.column_map = RowMap::by_rows(comm, mapped);
        }
        return message_of<ShapeError>(comm, [&] { SparseMatrix<double>(ctx, rows); });
    };
    EXPECT_EQ(refusal(Symmetry::general, 8, 8), "");
    EXPECT_NE(refusal(Symmetry::general, 8, 9).find("has 9 rows"), std::string::npos);
    EXPECT_EQ(refusal(Symmetry::symmetric, 8, 0),
              "sparse matrix: 10 rows and 8 columns; a symmetric matrix is square");
}

TEST(RealTimesComplex, RefusesComplexFactors) {
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    SparseMatrix<double> a(
        ctx, rows_from_entries<double>(comm, 10, 10, Symmetry::general, {{0, 1, 1.0}}));
    using C = std::complex<double>;
    BlockVector<C> x(ctx, a.row_map(), 2), y(ctx, a.row_map(), 2);
    const std::vector<C> shift{C(0, 1)};
    std::vector<C> three(3);
    for (const ApplyOptions<C>& options :
         {ApplyOptions<C>{.alpha = C(1, 2)}, ApplyOptions<C>{.beta = C(0, -1)},
          ApplyOptions<C>{.shift = shift}}) {
        const std::string message =
            message_of<InputError>(comm, [&] { spmmv(ctx, a, x.view(), y.view(), options); });
        EXPECT_NE(message.find("takes real factors"), std::string::npos) << message;
    }
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.dot_xy = three}), ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.shift = three}), ShapeError);
}

TYPED_TEST(RectangularMatrix, ReplacedValuesLeaveTheAdjointThatWasMadeBefore) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const Case<T> product{3, T(1), T(0), 0, false, false};
    for (const auto& [rows, cols, density] : shapes) {
        const Dense before = random_dense<T>(generator, rows, cols, density, false);
        Dense after = before;
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
                after(i, j) *= static_cast<double>(1 + (i + 3 * j) % 4);
            }
        }
        SparseMatrix<T> a = sparse_of<T>(ctx, before, 0, 1);
        SparseMatrix<T> adjoint = a.adjoint(ctx);
        const Dense adjoint_after = adjoint_of(after);
        const std::vector<T> values = Compressed<T>(after, a.range_map()).value;
        a.replace_values(ctx, values);
        check_product(ctx, a, after, generator, product, false);
        check_product(ctx, adjoint, adjoint_of(before), generator, product, false);
        adjoint.replace_values(ctx, Compressed<T>(adjoint_after, adjoint.range_map()).value);
        check_product(ctx, adjoint, adjoint_after, generator, product, false);
        EXPECT_THROW(a.replace_values(ctx, std::vector<T>(values.size() + 1)), ShapeError);
    }
}

/// The adjoint of a Hermitian matrix is the matrix itself; that of a complex symmetric one is not.
TEST(AdjointMatrix, OfAHermitianMatrixSharesItsMemory) {
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    using C = std::complex<double>;
    const auto matrix = [&](Symmetry symmetry) {
        const std::vector<Entry<C>> entries{
            {0, 5, C(1, 2)}, {5, 0, symmetry == Symmetry::hermitian ? C(1, -2) : C(1, 2)}};
        return SparseMatrix<C>(
            ctx, rows_from_entries<C>(comm, 6, 6, symmetry,
                                      comm.rank() == 0 ? entries : std::vector<Entry<C>>(),
                                      Partition::by_rows));
    };
    const auto entries_of = [](const SparseMatrix<C>& a) { return a.arrays().front().data; };
    SparseMatrix<C> hermitian = matrix(Symmetry::hermitian);
    SparseMatrix<C> same = hermitian.adjoint(ctx);
    EXPECT_EQ(entries_of(same), entries_of(hermitian));
    std::vector<C> values;
    for (const std::int64_t row : {0, 5}) {
        if (hermitian.row_map().owner(row) == comm.rank()) {
            values.push_back(row == 0 ? C(3, 4) : C(3, -4));
        }
    }
    hermitian.replace_values(ctx, values);
    Dense replaced(6, 6);
    replaced(0, 5) = C(3, 4);
    replaced(5, 0) = C(3, -4);
    SparseMatrix<C> symmetric = matrix(Symmetry::symmetric);
    SparseMatrix<C> conjugated = symmetric.adjoint(ctx);
    Dense dense(6, 6);
    dense(0, 5) = dense(5, 0) = C(1, -2);
    auto generator = make_generator();
    const Case<C> product{2, C(1), C(0), 0, false, false};
    check_product(ctx, conjugated, dense, generator, product, true);
    check_product(ctx, hermitian, replaced, generator, product, true);
    check_product(ctx, same, replaced, generator, product, true);
}

}  // namespace
}  // namespace quiver::test
