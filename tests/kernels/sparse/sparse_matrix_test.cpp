// SPDX-License-Identifier: BSD-3-Clause
// Compares products of a distributed sparse matrix and blocks with dense sums in long double.
#include "kernels/sparse/sparse_matrix.hpp"

#include <cstring>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

constexpr double poison = -101;
const double nan = std::numeric_limits<double>::quiet_NaN();

/// A matrix that every rank has in full, and its rows on this rank.
template <class T>
struct Problem {
    Dense dense;
    CsrRows<T> rows;
};

std::complex<double> random_value(std::mt19937_64& generator, bool integers) {
    const auto draw = [&] {
        if (integers) {
            return static_cast<double>(static_cast<int>(generator() % 9) - 4);
        }
        // A number of 20 bits, exact in single precision.
        return static_cast<double>(generator() % (1U << 20)) / (1U << 19) - 1;
    };
    const double real = draw();
    return {real, draw()};
}

/// A random n x n matrix. Rank `empty_rank`, if it exists, has no rows. About every fifth row is
/// empty.
template <class T>
Problem<T> random_problem(const Comm& comm, std::mt19937_64& generator, std::int64_t n,
                          double density, bool integers, int empty_rank = -1) {
    Problem<T> problem{Dense(n, n), {}};
    for (std::int64_t i = 0; i < n; ++i) {
        const bool empty = generator() % 5 == 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const double pick = static_cast<double>(generator() % 1024) / 1024;
            const auto value = random_value(generator, integers);
            if (!empty && pick < density) {
                problem.dense(i, j) = widen(narrow<T>(value));
            }
        }
    }
    std::vector<double> weights(static_cast<std::size_t>(comm.size()), 1.0);
    if (empty_rank >= 0 && empty_rank < comm.size() && comm.size() > 1) {
        weights[static_cast<std::size_t>(empty_rank)] = 0;
    }
    const RowMap map = RowMap::by_rows(comm, n, weights);
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;
    std::vector<T> value;
    for (std::int64_t i = map.first_row(); i < map.first_row() + map.local_rows(); ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            if (problem.dense(i, j) != 0.0) {
                column.push_back(j);
                value.push_back(narrow<T>(problem.dense(i, j)));
            }
        }
        row_start.push_back(static_cast<std::int64_t>(column.size()));
    }
    problem.rows =
        rows_from_csr<T, std::int64_t>(comm, map, Symmetry::general, row_start, column, value);
    return problem;
}

/// A global rows x cols block in row-major order, the same on all ranks.
template <class T>
std::vector<T> random_block(std::mt19937_64& generator, std::int64_t rows, int cols,
                            bool integers) {
    std::vector<T> block(static_cast<std::size_t>(rows * cols));
    for (T& element : block) {
        element = narrow<T>(random_value(generator, integers));
    }
    return block;
}

/// This rank's rows of a global block inside a wider one, with `filler` around it.
template <class T>
class PaddedBlock {
  public:
    static constexpr int left = 1;
    static constexpr int right = 2;

    PaddedBlock(Context& ctx, const RowMap& map, int width, const std::vector<T>& global, T filler)
        : ctx_(ctx),
          width_(width),
          block_(ctx, map, width + left + right),
          host_(static_cast<std::size_t>(map.local_rows()) *
                    static_cast<std::size_t>(width + left + right),
                filler) {
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            for (int j = 0; j < width; ++j) {
                at(i, left + j) =
                    global[static_cast<std::size_t>((map.first_row() + i) * width + j)];
            }
        }
        copy(ctx_, BlockView<const T>(host_view()), block_.view());
    }
    BlockView<T> view() { return block_.columns(left, width_); }
    /// An element of the block at the time of the last download().
    T operator()(std::int64_t i, int j) { return at(i, left + j); }
    /// Copies the block to the host. Returns true if the filler is unchanged.
    bool download(T filler) {
        copy(ctx_, BlockView<const T>(block_.view()), host_view());
        for (std::int64_t i = 0; i < block_.rows(); ++i) {
            for (const int j : {0, left + width_, left + width_ + 1}) {
                if (std::memcmp(&at(i, j), &filler, sizeof(T)) != 0) {
                    return false;
                }
            }
        }
        return true;
    }
    const std::vector<T>& bytes() const { return host_; }

  private:
    BlockView<T> host_view() {
        const int cols = width_ + left + right;
        return {host_.data(), block_.rows(), cols, cols, Place::host};
    }
    T& at(std::int64_t i, int j) {
        return host_[static_cast<std::size_t>(i * (width_ + left + right) + j)];
    }
    Context& ctx_;
    int width_;
    BlockVector<T> block_;
    std::vector<T> host_;
};

template <class T>
struct Case {
    int width = 1;
    T alpha = T(1);
    T beta = T(0);
    int shifts = 0;  // 0: none, 1: one for all columns, 2: one per column
    bool yy = false;
    bool xy = false;
};

/// Compares all results of one product with the oracle. With integers they must be exact.
template <class T>
void check_product(Context& ctx, SparseMatrix<T>& a, const Dense& dense, std::mt19937_64& generator,
                   const Case<T>& test, bool integers) {
    const std::int64_t n = dense.rows;
    const int width = test.width;
    const RowMap& map = a.row_map();
    const std::vector<T> x_global = random_block<T>(generator, n, width, integers);
    std::vector<T> y_global = random_block<T>(generator, n, width, integers);
    const std::vector<T> shifts = random_block<T>(
        generator, 1, test.shifts == 0 ? 0 : (test.shifts == 1 ? 1 : width), integers);
    if (test.beta == T(0)) {
        std::fill(y_global.begin(), y_global.end(), T(static_cast<real_t<T>>(nan)));
    }
    PaddedBlock<T> x(ctx, map, width, x_global, T(static_cast<real_t<T>>(nan)));
    PaddedBlock<T> y(ctx, map, width, y_global, T(poison));
    const T untouched(12345);
    std::vector<T> yy(test.yy ? static_cast<std::size_t>(width) : 0, untouched);
    std::vector<T> xy(test.xy ? static_cast<std::size_t>(width) : 0, untouched);
    spmmv(ctx, a, x.view(), y.view(), {test.alpha, test.beta, shifts, yy, xy});
    EXPECT_TRUE(y.download(T(poison))) << "padding of Y was written";
    std::string first_wrong;  // no early return: the sums below are collective

    const long double eps = epsilon_v<T>;
    const Wide alpha = widen(test.alpha);
    std::vector<Wide> sum_yy(static_cast<std::size_t>(width)), sum_xy(sum_yy);
    std::vector<double> size_yy(static_cast<std::size_t>(width)), size_xy(size_yy);
    for (std::int64_t i = 0; i < map.local_rows(); ++i) {
        const std::int64_t row = map.first_row() + i;
        for (int j = 0; j < width; ++j) {
            const auto at = [&](const std::vector<T>& block, std::int64_t r) {
                return widen(block[static_cast<std::size_t>(r * width + j)]);
            };
            Wide sum = 0;
            long double size = 0;
            long double terms = 1;
            for (std::int64_t c = 0; c < n; ++c) {
                if (dense(row, c) != 0.0) {
                    const Wide entry(dense(row, c).real(), dense(row, c).imag());
                    sum += entry * at(x_global, c);
                    size += std::abs(entry) * std::abs(at(x_global, c));
                    ++terms;
                }
            }
            if (!shifts.empty()) {
                const Wide shift =
                    widen(shifts[shifts.size() == 1 ? 0 : static_cast<std::size_t>(j)]);
                sum -= shift * at(x_global, row);
                size += std::abs(shift) * std::abs(at(x_global, row));
            }
            Wide expected = alpha * sum;
            long double bound = (std::sqrt(terms) + 2) * std::abs(alpha) * size;
            if (test.beta != T(0)) {
                expected += widen(test.beta) * at(y_global, row);
                bound += 2 * std::abs(widen(test.beta)) * std::abs(at(y_global, row));
            }
            const Wide found = widen(y(i, j));
            const long double allowed = integers ? 0 : 4 * eps * bound;
            if (first_wrong.empty() && !(std::abs(found - expected) <= allowed)) {
                std::ostringstream text;
                text << "row " << row << ", column " << j << ", width " << width << ": " << found
                     << " instead of " << expected;
                first_wrong = text.str();
            }
            const auto column = static_cast<std::size_t>(j);
            sum_yy[column] += std::norm(found);
            sum_xy[column] += std::conj(at(x_global, row)) * found;
            size_yy[column] += static_cast<double>(std::norm(found));
            size_xy[column] += static_cast<double>(std::abs(at(x_global, row)) * std::abs(found));
        }
    }
    EXPECT_EQ(first_wrong, "");
    const auto check_dots = [&](const std::vector<T>& found, const std::vector<Wide>& local,
                                const std::vector<double>& local_size) {
        std::vector<std::complex<double>> sums;
        for (std::size_t j = 0; j < found.size(); ++j) {
            sums.emplace_back(static_cast<double>(local[j].real()),
                              static_cast<double>(local[j].imag()));
            sums.emplace_back(local_size[j]);
        }
        ctx.comm().sum(std::span<std::complex<double>>(sums));
        for (std::size_t j = 0; j < found.size(); ++j) {
            const Wide expected(sums[2 * j].real(), sums[2 * j].imag());
            const long double bound =
                4 * (eps + epsilon_v<double>)*(std::sqrt(static_cast<long double>(n)) + 2) *
                sums[2 * j + 1].real();
            EXPECT_LE(std::abs(widen(found[j]) - expected), integers ? 0 : bound)
                << "dot of column " << j;
        }
    };
    check_dots(yy, sum_yy, size_yy);
    check_dots(xy, sum_xy, size_xy);
}

template <class T>
class SparseMatrixTest : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SparseMatrixTest, Scalars);

TYPED_TEST(SparseMatrixTest, MatchesDenseProductForAllWidthsAndOptions) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const auto other = [&] { return narrow<T>(random_value(generator, false)); };
    int empty_rank = -1;
    for (const std::int64_t n : {1, 3, 37, 131}) {
        auto problem =
            random_problem<T>(ctx.comm(), generator, n, n < 10 ? 0.7 : 0.1, false, empty_rank++);
        SparseMatrix<T> a(ctx, std::move(problem.rows));
        for (const int width : {1, 2, 3, 4, 5, 8, 17, 33}) {
            const std::vector<Case<T>> cases{
                {width, T(1), T(0), 0, false, false},     {width, other(), T(0), 1, true, false},
                {width, other(), T(1), 2, false, true},   {width, T(1), other(), 0, true, true},
                {width, other(), other(), 2, true, true}, {width, T(0), other(), 1, true, true}};
            for (const Case<T>& test : cases) {
                check_product(ctx, a, problem.dense, generator, test, false);
            }
        }
    }
}

TYPED_TEST(SparseMatrixTest, IsExactOnSmallIntegers) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const std::int64_t n : {2, 5, 64, 97}) {
        auto problem = random_problem<T>(ctx.comm(), generator, n, 0.2, true, 1);
        SparseMatrix<T> a(ctx, std::move(problem.rows));
        for (const int width : {1, 3, 4, 6, 16, 31}) {
            check_product(ctx, a, problem.dense, generator, {width, T(2), T(-3), 2, true, true},
                          true);
            check_product(ctx, a, problem.dense, generator, {width, T(1), T(0), 0, true, true},
                          true);
        }
    }
}

TYPED_TEST(SparseMatrixTest, RepeatsItselfBitForBit) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const std::int64_t n = 501;
    const int width = 5;
    auto problem = random_problem<T>(ctx.comm(), generator, n, 0.05, false);
    SparseMatrix<T> a(ctx, std::move(problem.rows));
    const auto x_global = random_block<T>(generator, n, width, false);
    PaddedBlock<T> x(ctx, a.row_map(), width, x_global, T(0));
    std::vector<T> yy[2];
    std::vector<T> bytes[2];
    for (int run : {0, 1}) {
        PaddedBlock<T> y(ctx, a.row_map(), width, x_global, T(poison));
        yy[run].resize(width);
        spmmv(ctx, a, x.view(), y.view(), {.alpha = T(2), .dot_yy = yy[run]});
        EXPECT_TRUE(y.download(T(poison)));
        bytes[run] = y.bytes();
    }
    EXPECT_EQ(yy[0], yy[1]);
    EXPECT_NE(yy[0][0], T(0));
    EXPECT_EQ(bytes[0], bytes[1]);
}

// Enough rows for several threads, each of which gets at least 64 KiB, also of the rows that are
// sent to other ranks.
TYPED_TEST(SparseMatrixTest, ManyThreadsGiveTheSameValues) {
    using T = TypeParam;
    Context ctx(Comm(MPI_COMM_WORLD), Device::host(3));
    auto generator = make_generator();
    const std::int64_t n = 20000;
    const int width = 5;
    const auto rows = rows_from_callback<T>(ctx.comm(), n, Symmetry::general,
                                            [&](std::int64_t row, RowEntries<T>& entries) {
                                                entries.add(row, T(2));
                                                entries.add(n - 1 - row, T(-1));
                                            });
    const auto x_global = random_block<T>(generator, n, width, true);
    for (const auto kind : {SparseFormat::compressed_rows, SparseFormat::sell}) {
        SparseMatrix<T> a(ctx, rows, {.kind = kind});
        PaddedBlock<T> x(ctx, a.row_map(), width, x_global, T(0));
        PaddedBlock<T> y(ctx, a.row_map(), width, x_global, T(poison));
        std::vector<T> yy(width);
        std::vector<T> expected(width);
        spmmv(ctx, a, x.view(), y.view(), {.dot_yy = yy});
        EXPECT_TRUE(y.download(T(poison)));
        for (int j = 0; j < width; ++j) {
            const auto entry = [&](std::int64_t row) {
                return x_global[static_cast<std::size_t>(row * width + j)];
            };
            for (std::int64_t row = 0; row < n; ++row) {
                const T value = T(2) * entry(row) - entry(n - 1 - row);
                expected[static_cast<std::size_t>(j)] += abs_squared(value);
                const std::int64_t i = row - a.row_map().first_row();
                if (i >= 0 && i < a.row_map().local_rows() && !(y(i, j) == value)) {
                    ADD_FAILURE() << "row " << row << ", column " << j << ": " << y(i, j)
                                  << " instead of " << value;
                    break;
                }
            }
        }
        EXPECT_EQ(yy, expected);
    }
}

TYPED_TEST(SparseMatrixTest, MatrixWithoutRowsOrEntriesWorks) {
    using T = TypeParam;
    Context ctx = make_context();
    for (const std::int64_t n : {0, 7}) {
        SparseMatrix<T> a(ctx, rows_from_entries<T>(ctx.comm(), n, n, Symmetry::general, {}));
        EXPECT_EQ(a.global_nonzeros(), 0);
        EXPECT_EQ(a.halo_size(), 0);
        const std::vector<T> ones(static_cast<std::size_t>(3 * n), T(1));
        PaddedBlock<T> x(ctx, a.row_map(), 3, ones, T(0));
        PaddedBlock<T> y(ctx, a.row_map(), 3, ones, T(poison));
        std::vector<T> xy(3, T(9));
        spmmv(ctx, a, x.view(), y.view(), {.beta = T(2), .dot_xy = xy});
        EXPECT_TRUE(y.download(T(poison)));
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            EXPECT_EQ(y(i, 1), T(2));
        }
        EXPECT_EQ(xy, std::vector<T>(3, T(static_cast<real_t<T>>(2 * n))));
        BlockVector<T> none(ctx, a.row_map(), 0, 1);
        a.apply(ctx, none.view(), none.view());
    }
}

TEST(SparseMatrix, PlansTheHaloThatItsRowsNeed) {
    Context ctx = make_context();
    constexpr std::int64_t n = 40;
    // Every row needs the next three rows, cyclically, and the last row. All ranks have neighbours.
    SparseMatrix<double> a(
        ctx, rows_from_callback<double>(ctx.comm(), n, Symmetry::general,
                                        [](std::int64_t row, RowEntries<double>& entries) {
                                            for (std::int64_t k = 1; k <= 3; ++k) {
                                                entries.add((row + k) % n, double(k));
                                            }
                                            entries.add(n - 1, 0.5);
                                        }));
    const int ranks = ctx.comm().size();
    std::int64_t expected = 0;
    if (ranks > 1) {
        expected = ctx.comm().rank() == ranks - 1 ? 3 : 4;
    }
    EXPECT_EQ(a.halo_size(), expected);
    BlockVector<double> x(ctx, a.row_map(), 2), y(ctx, a.row_map(), 2);
    std::vector<double> host(static_cast<std::size_t>(2 * a.row_map().local_rows()));
    const auto view = [&] {
        return BlockView<double>(host.data(), a.row_map().local_rows(), 2, 2);
    };
    for (int step = 0; step < 3; ++step) {
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            view()(i, 0) = static_cast<double>(a.row_map().first_row() + i + step);
            view()(i, 1) = -view()(i, 0);
        }
        copy(ctx, BlockView<const double>(view()), x.view());
        a.apply(ctx, x.view(), y.view());
        copy(ctx, BlockView<const double>(y.view()), view());
        for (std::int64_t i = 0; i < a.row_map().local_rows(); ++i) {
            double sum = 0.5 * static_cast<double>(n - 1 + step);
            for (std::int64_t k = 1; k <= 3; ++k) {
                sum += static_cast<double>(k * ((a.row_map().first_row() + i + k) % n + step));
            }
            EXPECT_EQ(view()(i, 0), sum);
            EXPECT_EQ(view()(i, 1), -sum);
        }
    }
}

TEST(SparseMatrix, TwoMatricesAndChangingWidthsDoNotDisturbEachOther) {
    Context ctx = make_context();
    auto generator = make_generator();
    auto first = random_problem<double>(ctx.comm(), generator, 61, 0.2, true);
    auto second = random_problem<double>(ctx.comm(), generator, 61, 0.3, true);
    SparseMatrix<double> a(ctx, std::move(first.rows));
    SparseMatrix<double> b(ctx, std::move(second.rows));
    SparseMatrix<double> moved = std::move(a);
    for (const int width : {2, 9, 1, 16, 3}) {
        check_product(ctx, moved, first.dense, generator, {width, 1.0, 0.0, 0, true, false}, true);
        check_product(ctx, b, second.dense, generator, {width, 1.0, 2.0, 1, false, true}, true);
    }
}

TEST(SparseMatrix, CountsItsCallsInTheLedger) {
    Context ctx = make_context();
    auto generator = make_generator();
    auto problem = random_problem<double>(ctx.comm(), generator, 30, 0.3, true);
    SparseMatrix<double> a(ctx, std::move(problem.rows));
    BlockVector<double> x(ctx, a.row_map(), 4), y(ctx, a.row_map(), 4);
    fill(ctx, 1.0, x.view());
    ctx.ledger().clear();
    a.apply(ctx, x.view(), y.view());
    a.apply(ctx, x.view(), y.view());
    const auto records = ctx.ledger().records();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_STREQ(records[0].call.name, "spmmv");
    EXPECT_EQ(records[0].calls, 2);
    EXPECT_EQ(records[0].flops, 2.0 * 2 * 4 * static_cast<double>(a.local_nonzeros()));
    EXPECT_EQ(records[0].bytes,
              2.0 * (12.0 * static_cast<double>(a.local_nonzeros()) +
                     8.0 * 4 * 2 * static_cast<double>(a.row_map().local_rows())));
}

TEST(SparseMatrix, RefusesWrongShapes) {
    Context ctx = make_context();
    auto generator = make_generator();
    auto problem = random_problem<double>(ctx.comm(), generator, 40, 0.1, true);
    SparseMatrix<double> a(ctx, std::move(problem.rows));
    BlockVector<double> x(ctx, a.row_map(), 4, 8), y(ctx, a.row_map(), 4);
    std::vector<double> three(3);
    EXPECT_THROW(a.apply(ctx, x.columns(0, 3), y.view()), ShapeError);
    EXPECT_THROW(a.apply(ctx, x.view(), x.view()), ShapeError);
    EXPECT_THROW(a.apply(ctx, x.columns(0, 4), x.columns(3, 4)), ShapeError);
    EXPECT_THROW(
        a.apply(ctx, x.view().row_range(0, x.rows() - 1), y.view().row_range(0, y.rows() - 1)),
        ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.shift = three}), ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.dot_yy = three}), ShapeError);
    EXPECT_THROW(spmmv(ctx, a, x.view(), y.view(), {.dot_xy = three}), ShapeError);
    a.apply(ctx, x.columns(0, 4), x.columns(4, 4));  // neighbours in one block do not overlap
}

TEST(SparseMatrix, RefusesBadRowsOnAllRanks) {
    Context ctx = make_context();
    const Comm& comm = ctx.comm();
    const auto rows = [&](std::int64_t cols) {
        return rows_from_entries<double>(comm, 6, cols, Symmetry::general,
                                         {{0, 1, 1.0}, {5, 2, 1.0}}, Partition::by_rows);
    };
    EXPECT_NE(message_of<ShapeError>(comm, [&] { SparseMatrix<double>(ctx, rows(7)); }), "");
    CsrRows<double> bad = rows(6);
    if (comm.rank() == comm.size() - 1) {
        bad.column.back() = 6;
    }
    EXPECT_EQ(message_of<InputError>(comm, [&] { SparseMatrix<double>(ctx, bad); }),
              "sparse matrix: row 5 has column 6, but the matrix has columns 0 .. 5");
    CsrRows<double> torn = rows(6);
    if (comm.rank() == 0) {
        torn.value.push_back(1.0);
    }
    EXPECT_NE(message_of<ShapeError>(comm, [&] { SparseMatrix<double>(ctx, torn); }), "");
}

// NOLINTBEGIN(bugprone-use-after-move): tests the state after a move
TEST(SparseMatrix, RefusesToWorkOnceMovedFrom) {
    Context ctx = make_context();
    const auto rows = rows_from_entries<double>(ctx.comm(), 6, 6, Symmetry::general,
                                                {{0, 1, 1.0}, {5, 2, 1.0}}, Partition::by_rows);
    SparseMatrix<double> first(ctx, rows);
    const RowMap map = first.row_map();
    SparseMatrix<double> second(std::move(first));
    BlockVector<double> x(ctx, map, 2);
    BlockVector<double> y(ctx, map, 2);
    fill(ctx, 1.0, x.view());
    EXPECT_NO_THROW(second.apply(ctx, x, y));
    const std::vector<int> widths{2};
    EXPECT_THROW(first.apply(ctx, x, y), InputError);
    EXPECT_THROW(first.repeat(ctx, x, y), InputError);
    EXPECT_THROW(first.row_map(), InputError);
    EXPECT_THROW(first.global_nonzeros(), InputError);
    EXPECT_THROW(first.halo_size(), InputError);
    EXPECT_THROW(first.padding(), InputError);
    EXPECT_THROW(first.format(), InputError);
    EXPECT_THROW(first.arrays(), InputError);
    EXPECT_THROW(first.received(1), InputError);
    EXPECT_THROW(first.diagonal_block(ctx), InputError);
    EXPECT_THROW(storage_of(CsrRows<double>{map, 6, Symmetry::general, {}, {}, {}}, Place::host),
                 ShapeError);
    first = std::move(second);
    EXPECT_NO_THROW(first.apply(ctx, x, y));
    EXPECT_THROW(second.symmetry(), InputError);
}
// NOLINTEND(bugprone-use-after-move)

/// Single precision has no number 2^24 + 1001, the column of an entry of rank 0 on several ranks.
TEST(GatheredRows, ColumnsBeyondTheIntegersOfSinglePrecision) {
    Context ctx = make_context();
    const std::int64_t n = (std::int64_t{1} << 24) + 1002;
    std::vector<Entry<float>> entries;
    if (ctx.comm().rank() == 0) {
        entries = {{0, n - 1, 3.0F}, {n - 1, 0, 3.0F}};
    }
    SparseMatrix<float> a(ctx, rows_from_entries<float>(ctx.comm(), n, n, Symmetry::symmetric,
                                                        std::move(entries), Partition::by_rows));
    BlockVector<float> ones(ctx, a.row_map(), 1);
    fill(ctx, 1.0F, ones.view());
    const CsrRows<float> rows = scaled_rows<float>(ctx, a, std::as_const(ones).view());
    std::vector<std::int64_t> expected;
    if (a.row_map().first_row() == 0 && a.row_map().local_rows() > 0) {
        expected.push_back(n - 1);
    }
    if (a.row_map().first_row() + a.row_map().local_rows() == n) {
        expected.push_back(0);
    }
    EXPECT_EQ(rows.column, expected);
}

}  // namespace
}  // namespace quiver::test
