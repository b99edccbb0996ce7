// SPDX-License-Identifier: BSD-3-Clause
// Tests SparseMatrix::from_csr: from arrays in the place of the Context it makes the same matrix,
// bit for bit, as rows_from_csr from arrays in host memory.
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "kernels/sparse/assemble.hpp"
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

template <class T>
void expect_same_arrays(Context& ctx, const SparseMatrix<T>& a, const SparseMatrix<T>& b) {
    EXPECT_EQ(a.local_nonzeros(), b.local_nonzeros());
    EXPECT_EQ(a.global_nonzeros(), b.global_nonzeros());
    const auto bytes = [&](const MatrixArray& array) {
        std::vector<char> copy(array.bytes);
        if (ctx.place() == Place::device && array.bytes > 0) {
            device::copy(copy.data(), array.data, array.bytes, ctx.stream());
            ctx.synchronize();
        } else if (array.bytes > 0) {
            std::memcpy(copy.data(), array.data, array.bytes);
        }
        return copy;
    };
    const std::vector<MatrixArray> of_a = a.arrays();
    const std::vector<MatrixArray> of_b = b.arrays();
    ASSERT_EQ(of_a.size(), of_b.size());
    for (std::size_t i = 0; i < of_a.size(); ++i) {
        EXPECT_EQ(bytes(of_a[i]), bytes(of_b[i])) << of_a[i].name;
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
    std::mt19937_64 generator = make_generator();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(CsrArraysTest, Scalars, ScalarName);

TYPED_TEST(CsrArraysTest, SameMatrixFromEitherPlace) {
    this->check(std::int32_t{0});
    this->check(std::int64_t{1000});
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
