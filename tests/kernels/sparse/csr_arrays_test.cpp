// SPDX-License-Identifier: BSD-3-Clause
// Tests SparseMatrix::from_csr: from arrays in the place of the Context it makes the same matrix,
// bit for bit, as rows_from_csr from arrays in host memory. After replace_values() a matrix is the
// same, bit for bit, as a new matrix with these values.
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/matrix_arrays.hpp"
#include "tests/kernels/sparse/grid.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

/// This rank's rows of a random matrix of n rows, at offsets that begin with `base`.
template <class T, class Index>
struct RandomCsr {
    std::vector<Index> row_start;
    std::vector<Index> column;
    std::vector<T> value;

    RandomCsr(std::mt19937_64& generator, const RowMap& map, Index base) : row_start{base} {
        const auto n = static_cast<std::uint64_t>(map.global_rows());
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            // A device stores the longest rows apart.
            const std::uint64_t length = i % 900 == 17           ? 1000
                                         : generator() % 40 == 0 ? 60
                                                                 : generator() % 9;
            std::set<Index> columns;
            for (std::uint64_t k = 0; k < std::min(length, n); ++k) {
                columns.insert(static_cast<Index>(generator() % n));
            }
            for (const Index c : columns) {
                column.push_back(c);
                value.push_back(narrow<T>({static_cast<double>(generator() % 1000) / 7 - 60,
                                           static_cast<double>(generator() % 1000) / 11}));
            }
            row_start.push_back(base + static_cast<Index>(column.size()));
        }
    }
};

/// An array in the place of a Context.
template <class V>
class Placed {
  public:
    Placed(Context& ctx, const std::vector<V>& from)
        : memory_(ctx.allocate(memory_kind(ctx.place()), from.size() * sizeof(V), "test")),
          size_(from.size()) {
        if (size_ > 0 && ctx.place() == Place::device) {
            device::copy(memory_.as<void>(), from.data(), size_ * sizeof(V), ctx.stream());
            ctx.synchronize();
        } else {
            std::copy(from.begin(), from.end(), memory_.as<V>());
        }
    }
    std::span<const V> span() const { return {memory_.as<const V>(), size_}; }

  private:
    Buffer memory_;
    std::size_t size_;
};

template <class T, class Index>
SparseMatrix<T> placed_matrix(Context& ctx, const RowMap& map, const RandomCsr<T, Index>& csr,
                              const SparseFormat& format = {}) {
    const Placed<Index> row_start(ctx, csr.row_start);
    const Placed<Index> column(ctx, csr.column);
    const Placed<T> value(ctx, csr.value);
    auto matrix = SparseMatrix<T>::template from_csr<Index>(
        ctx, map, Symmetry::general, {row_start.span(), column.span(), value.span(), ctx.place()},
        format);
    ctx.synchronize();
    return matrix;
}

std::vector<char> bytes_of(Context& ctx, const MatrixArray& array) {
    std::vector<char> copy(array.bytes);
    if (ctx.place() == Place::device && array.bytes > 0) {
        device::copy(copy.data(), array.data, array.bytes, ctx.stream());
        ctx.synchronize();
    } else if (array.bytes > 0) {
        std::memcpy(copy.data(), array.data, array.bytes);
    }
    return copy;
}

template <class T>
void expect_same_arrays(Context& ctx, const SparseMatrix<T>& a, const SparseMatrix<T>& b) {
    EXPECT_EQ(a.local_nonzeros(), b.local_nonzeros());
    EXPECT_EQ(a.global_nonzeros(), b.global_nonzeros());
    const std::vector<MatrixArray> of_a = a.arrays();
    const std::vector<MatrixArray> of_b = b.arrays();
    ASSERT_EQ(of_a.size(), of_b.size());
    for (std::size_t i = 0; i < of_a.size(); ++i) {
        EXPECT_EQ(bytes_of(ctx, of_a[i]), bytes_of(ctx, of_b[i])) << of_a[i].name;
    }
}

/// Compares a matrix of one rank with the storage that SparseLayout chooses on the host for the
/// Context's place. cols: the columns of the matrix, at least as many as there are rows.
template <class T, class Index>
void expect_storage_of_host(Context& ctx, std::int64_t cols, const std::vector<Index>& row_start,
                            const std::vector<Index>& column, const std::vector<T>& value,
                            const SparseFormat& format) {
    const auto n = std::ssize(row_start) - 1;
    const RowMap map = RowMap::by_rows(ctx.comm(), n);
    std::vector<std::int64_t> offsets;
    offsets.reserve(row_start.size());
    for (const Index offset : row_start) {
        offsets.push_back(offset - row_start.front());
    }
    SparseLayout::Columns columns_for_tiles;
    if (cols == n) {
        columns_for_tiles = [&] { return EntryColumns(std::span<const Index>(column)); };
    }
    const SparseLayout layout({format, ctx.place(), sizeof(T), is_complex_v<T>}, offsets, {}, n,
                              columns_for_tiles);
    Context host;
    const Buffer columns = make_entries<std::int32_t>(
        host, layout, offsets, "test", -1, [&](std::size_t k) { return column[k]; },
        [&](std::int64_t piece) { return cols + piece; });
    const Buffer values = make_entries<T>(
        host, layout, offsets, "test", T(0), [&](std::size_t k) { return value[k]; },
        [](std::int64_t) { return T(1); });
    std::vector<std::int32_t> list;
    for (const std::int64_t row : layout.list()) {
        list.push_back(static_cast<std::int32_t>(row));
    }
    const Placed<Index> row_start_there(ctx, row_start), column_there(ctx, column);
    const Placed<T> value_there(ctx, value);
    for (const bool in_place : {true, false}) {
        CsrArrays<T, Index> arrays_of{row_start, column, value};
        if (in_place) {
            arrays_of = {row_start_there.span(), column_there.span(), value_there.span(),
                         ctx.place()};
        }
        arrays_of.column_map = RowMap::by_rows(ctx.comm(), cols);
        const auto matrix = SparseMatrix<T>::template from_csr<Index>(ctx, map, Symmetry::general,
                                                                      arrays_of, format);
        EXPECT_EQ(matrix.format().kind, layout.format.kind);
        EXPECT_EQ(matrix.format().chunk, layout.format.chunk);
        EXPECT_EQ(matrix.format().sigma, layout.format.sigma);
        EXPECT_EQ(matrix.format().tile, layout.format.tile);
        const std::vector<MatrixArray> arrays = matrix.arrays();
        const auto same = [&](const MatrixArray& array, const void* data, std::size_t bytes) {
            const std::vector<char> found = bytes_of(ctx, array);
            return found.size() == bytes &&
                   (bytes == 0 || std::memcmp(found.data(), data, bytes) == 0);
        };
        EXPECT_TRUE(same(arrays[0], values.as<void>(), values.bytes()));
        EXPECT_TRUE(same(arrays[1], columns.as<void>(), columns.bytes()));
        EXPECT_TRUE(same(arrays[2], layout.start.data(), layout.start.size() * 8));
        EXPECT_TRUE(same(arrays[3], list.data(), list.size() * 4));
    }
}

TEST(SparseSetUp, TheLayoutDoesNotDependOnTheThreads) {
    auto generator = make_generator();
    const RandomCsr<double, std::int64_t> random(generator, RowMap(0, {0, 9001}), 0);
    const Grid grid(48);
    const auto check = [](const std::vector<std::int64_t>& row_start,
                          const std::vector<std::int64_t>& column, const SparseFormat& format,
                          Place place) {
        const auto layout = [&](int threads) {
            return SparseLayout({format, place, 8, false, threads}, row_start, {},
                                std::ssize(row_start) - 1,
                                [&] { return EntryColumns(std::span(column)); });
        };
        const SparseLayout one = layout(1);
        const SparseLayout three = layout(3);
        EXPECT_EQ(one.row, three.row);
        EXPECT_EQ(one.start, three.start);
        EXPECT_EQ(one.full, three.full);
        EXPECT_EQ(one.list(), three.list(3));
        EXPECT_EQ(one.tile, three.tile);
        EXPECT_EQ(one.apart.piece_row, three.apart.piece_row);
    };
    for (const Place place : {Place::host, Place::device}) {
        for (const SparseFormat& format :
             {SparseFormat{}, SparseFormat{SparseFormat::sell, 32, 256}}) {
            check(random.row_start, random.column, format, place);
            check(grid.row_start, grid.column, format, place);
        }
    }
}

template <class T>
class CsrArraysTest : public ::testing::Test {
  protected:
    template <class Index>
    void check(Index base) {
        Context ctx = make_context();
        for (const std::int64_t n : {1, 31, 700, 3001}) {
            const RowMap map = RowMap::by_rows(ctx.comm(), n);
            RandomCsr<T, Index> csr(generator, map, base);
            SparseFormat sorted{SparseFormat::sell, 32, 256};
            for (const SparseFormat& format :
                 {SparseFormat{}, SparseFormat{SparseFormat::compressed_rows}, sorted,
                  SparseFormat{SparseFormat::sell, 8, 1}}) {
                const auto expected = [&] {
                    return SparseMatrix<T>(
                        ctx,
                        rows_from_csr<T, Index>(ctx.comm(), map, Symmetry::general, csr.row_start,
                                                csr.column, csr.value),
                        format);
                };
                expect_same_arrays(ctx, placed_matrix(ctx, map, csr, format), expected());
                // After a reversal of the array, the columns of a row are not sorted and may
                // repeat.
                std::reverse(csr.column.begin(), csr.column.end());
                expect_same_arrays(ctx, placed_matrix(ctx, map, csr, format), expected());
                std::reverse(csr.column.begin(), csr.column.end());
            }
        }
    }
    /// Replaces the values of a matrix of each format, from either place, and compares with a new
    /// matrix of the new values.
    template <class Index>
    void check_replacement(Index base) {
        Context ctx = make_context();
        for (const std::int64_t n : {1, 31, 3001}) {
            const RowMap map = RowMap::by_rows(ctx.comm(), n);
            for (const bool sorted : {true, false}) {
                RandomCsr<T, Index> csr(generator, map, base);
                if (!sorted) {
                    std::reverse(csr.column.begin(), csr.column.end());
                }
                RandomCsr<T, Index> other = csr;
                for (T& value : other.value) {
                    value = random_value<T>(generator);
                }
                const Placed<T> here(ctx, other.value);
                for (const SparseFormat& format :
                     {SparseFormat{}, SparseFormat{SparseFormat::compressed_rows},
                      SparseFormat{SparseFormat::sell, 32, 256}}) {
                    const SparseMatrix<T> expected = placed_matrix(ctx, map, other, format);
                    SparseMatrix<T> a = placed_matrix(ctx, map, csr, format);
                    a.replace_values(ctx, other.value);
                    expect_same_arrays(ctx, a, expected);
                    SparseMatrix<T> b = placed_matrix(ctx, map, csr, format);
                    b.replace_values(ctx, here.span(), ctx.place());
                    expect_same_arrays(ctx, b, expected);
                }
            }
        }
    }
    std::mt19937_64 generator = make_generator();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(CsrArraysTest, Scalars, ScalarName);

TYPED_TEST(CsrArraysTest, SameMatrixFromEitherPlace) {
    this->check(std::int32_t{0});
    this->check(std::int64_t{1000});
}

TYPED_TEST(CsrArraysTest, TheSetUpDoesNotDependOnTheThreads) {
    Context one(Comm(MPI_COMM_WORLD), Device::host(1));
    Context three(Comm(MPI_COMM_WORLD), Device::host(3));
    const auto n = static_cast<std::int64_t>(2000 + this->generator() % 4000);
    const RowMap map = RowMap::by_rows(one.comm(), n);
    RandomCsr<TypeParam, std::int32_t> csr(this->generator, map, 7);
    for (int pass = 0; pass < 2; ++pass) {  // sorted rows, then others
        for (const SparseFormat& format :
             {SparseFormat{}, SparseFormat{SparseFormat::compressed_rows},
              SparseFormat{SparseFormat::sell, 32, 256}}) {
            expect_same_arrays(one, placed_matrix(one, map, csr, format),
                               placed_matrix(three, map, csr, format));
        }
        std::reverse(csr.column.begin(), csr.column.end());
    }
}

TYPED_TEST(CsrArraysTest, TheStorageIsThatOfTheHost) {
    using T = TypeParam;
    Context ctx = make_context();
    if (ctx.comm().size() > 1) {
        GTEST_SKIP() << "one rank";
    }
    const std::vector<SparseFormat> formats{
        {},
        {SparseFormat::compressed_rows},
        {SparseFormat::sell, 32, 256},
        {SparseFormat::sell, 16, 4096},
        {SparseFormat::sell, 16, 8192},  // the device cannot sort such windows
        {SparseFormat::sell, 64, 0},
        {SparseFormat::sell, 8, 24},
        {SparseFormat::automatic, 0, 0, 4, 64}};
    // Rows of random lengths, some long; rows of slowly changing lengths; rows of equal lengths.
    for (int kind = 0; kind < 3; ++kind) {
        const std::int64_t n = 9001;
        const RowMap map = RowMap::by_rows(ctx.comm(), n);
        RandomCsr<T, int> csr(this->generator, map, 1000);
        if (kind > 0) {
            csr.row_start.assign(1, 1000);
            csr.column.clear();
            for (std::int64_t i = 0; i < n; ++i) {
                const int length = kind == 1 ? 2 + static_cast<int>(i / 40 % 7) : 5;
                for (int k = 0; k < length; ++k) {
                    csr.column.push_back(static_cast<int>(std::min(i, n - 10)) + k);
                }
                csr.row_start.push_back(1000 + static_cast<int>(csr.column.size()));
            }
            csr.value.assign(csr.column.size(), T(2));
        }
        for (const SparseFormat& format : formats) {
            SCOPED_TRACE("kind " + std::to_string(kind) + ", chunk " +
                         std::to_string(format.chunk) + ", sigma " + std::to_string(format.sigma));
            expect_storage_of_host<T, int>(ctx, n, csr.row_start, csr.column, csr.value, format);
            if (kind == 0) {
                expect_storage_of_host<T, int>(ctx, n + 500, csr.row_start, csr.column, csr.value,
                                               format);
            }
        }
    }
    // Grids: tiles are useful for 48 points in each direction, but not for 33.
    for (const int points : {33, 48}) {
        const Grid grid(points);
        for (const int tile : {0, 1, 256}) {
            SCOPED_TRACE(std::to_string(points) + " points, tiles of " + std::to_string(tile));
            const std::int64_t n = std::ssize(grid.row_start) - 1;
            const SparseFormat format{SparseFormat::automatic, 0, 0, 0, tile};
            const std::vector<T> value(grid.column.size(), T(3));
            expect_storage_of_host<T, std::int64_t>(ctx, n, grid.row_start, grid.column, value,
                                                    format);
            // A rectangular matrix has no tiles.
            if (points == 48 && tile != 1) {
                expect_storage_of_host<T, std::int64_t>(ctx, n + 1, grid.row_start, grid.column,
                                                        value, format);
            }
        }
    }
}

TYPED_TEST(CsrArraysTest, ReplacedValuesGiveTheMatrixOfTheNewValues) {
    this->check_replacement(std::int32_t{0});
    this->check_replacement(std::int64_t{1000});
}

TYPED_TEST(CsrArraysTest, ReplacedValuesOfRowsKeepTheSymmetry) {
    using T = TypeParam;
    Context ctx = make_context();
    const RowMap map = RowMap::by_rows(ctx.comm(), 3001);
    const RandomCsr<T, std::int64_t> csr(this->generator, map, 0);
    CsrRows<T> rows{map, 3001, Symmetry::skew_symmetric, csr.row_start, csr.column, csr.value};
    SparseMatrix<T> a(ctx, rows);
    for (T& value : rows.value) {
        value = random_value<T>(this->generator);
    }
    a.replace_values(ctx, rows.value);
    EXPECT_EQ(a.symmetry(), Symmetry::skew_symmetric);
    expect_same_arrays(ctx, a, SparseMatrix<T>(ctx, rows));
}

TYPED_TEST(CsrArraysTest, WrongNewValuesAreRefusedOnAllRanksAndChangeNothing) {
    using T = TypeParam;
    Context ctx = make_context();
    const RowMap map = RowMap::by_rows(ctx.comm(), 400);
    const RandomCsr<T, int> csr(this->generator, map, 0);
    const SparseMatrix<T> before = placed_matrix(ctx, map, csr);
    SparseMatrix<T> a = placed_matrix(ctx, map, csr);
    const bool last = ctx.comm().rank() == ctx.comm().size() - 1;
    std::vector<T> wrong(csr.value.size(), T(1));
    wrong.resize(wrong.size() + (last ? 1 : 0));
    EXPECT_THROW(a.replace_values(ctx, wrong), ShapeError);
    wrong.assign(csr.value.size(), T(1));
    wrong.back() = last ? T(std::numeric_limits<real_t<T>>::infinity()) : T(1);
    EXPECT_THROW(a.replace_values(ctx, wrong), InputError);
    EXPECT_THROW(a.replace_values(ctx, Placed<T>(ctx, wrong).span(), ctx.place()), InputError);
    if (ctx.place() == Place::host) {
        EXPECT_THROW(a.replace_values(ctx, csr.value, Place::device), ShapeError);
    }
    expect_same_arrays(ctx, a, before);
}

TYPED_TEST(CsrArraysTest, WrongArraysAreRefusedOnAllRanks) {
    using T = TypeParam;
    Context ctx = make_context();
    const RowMap map = RowMap::by_rows(ctx.comm(), 40);
    const RandomCsr<T, int> good(this->generator, map, 0);
    const bool last = ctx.comm().rank() == ctx.comm().size() - 1;
    RandomCsr<T, int> bad = good;
    bad.column.push_back(40);
    bad.value.push_back(T(1));
    ++bad.row_start.back();
    EXPECT_THROW(placed_matrix(ctx, map, last ? bad : good), InputError);
    bad.column.back() = 0;
    bad.value.back() = T(std::numeric_limits<real_t<T>>::quiet_NaN());
    EXPECT_THROW(placed_matrix(ctx, map, last ? bad : good), InputError);
    bad = good;
    bad.value.push_back(T(1));
    EXPECT_THROW(placed_matrix(ctx, map, last ? bad : good), ShapeError);
    bad = good;
    bad.row_start.pop_back();
    EXPECT_THROW(placed_matrix(ctx, map, last ? bad : good), ShapeError);
    Context host;
    EXPECT_THROW((SparseMatrix<T>::template from_csr<int>(
                     host, map, Symmetry::general,
                     {good.row_start, good.column, good.value, Place::device})),
                 ShapeError);
}

}  // namespace
}  // namespace quiver::test
