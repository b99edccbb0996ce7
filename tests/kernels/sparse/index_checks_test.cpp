// SPDX-License-Identifier: BSD-3-Clause
// Products with checked indices: the same bits as without checks, and whatever the index arrays
// hold, no access outside of the arrays and blocks.
#include <bit>
#include <cmath>
#include <limits>

#include "blockvec/error.hpp"
#include "kernels/checksum.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {
namespace {

template <class T>
class IndexChecks : public ::testing::Test {};
TYPED_TEST_SUITE(IndexChecks, Scalars, ScalarName);

/// Rows of 1 to 12 entries, so that chunks are padded and sorting moves rows.
template <class T>
CsrRows<T> uneven_rows(const Comm& comm, std::int64_t n) {
    return rows_from_callback<T>(
        comm, n, Symmetry::general, [n](std::int64_t row, RowEntries<T>& entries) {
            for (std::int64_t k = 0; k <= row * 7 % 12; ++k) {
                entries.add((row + k * k * 3) % n, T(static_cast<real_t<T>>(k + 1)));
            }
        });
}

/// X and Y of one product; X has NaN with a payload around it, and so has Y.
template <class T>
struct Blocks {
    Blocks(Context& ctx, std::mt19937_64& generator, const RowMap& map, int width)
        : x(ctx, random_global<T>(generator, map.global_rows(), width), map, {2, 1}),
          y(ctx, random_global<T>(generator, map.global_rows(), width), map, {3, 0}) {}
    TestBlock<T> x, y;
};

template <class T>
ApplyOptions<T> options_of(bool fused) {
    ApplyOptions<T> options;
    options.beta = fused ? other_coefficient<T>() : T(0);
    return options;
}

/// No element of Y was computed from poison: NaN is only what the leaf writes itself, and a device
/// writes none.
template <class T>
bool read_no_poison(const Global<T>& y) {
    using R = real_t<T>;
    const R own = std::numeric_limits<R>::quiet_NaN();
    const R* const reals = reinterpret_cast<const R*>(y.values.data());
    for (std::size_t i = 0; i < y.values.size() * (sizeof(T) / sizeof(R)); ++i) {
        const bool spoilt = test_place() == Place::host && same_bits(reals[i], own);
        if (std::isnan(reals[i]) && !spoilt) {
            return false;
        }
    }
    return true;
}

const SparseFormat formats[] = {{.kind = SparseFormat::compressed_rows},
                                {.kind = SparseFormat::sell, .chunk = 16, .sigma = 1},
                                {.kind = SparseFormat::sell, .chunk = 32, .sigma = 128}};

TYPED_TEST(IndexChecks, ChangeNoBit) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const SparseFormat& format : formats) {
        SparseMatrix<T> a(ctx, uneven_rows<T>(ctx.comm(), 700), format);
        for (const int width : {1, 2, 5, 8, 70}) {
            for (const bool fused : {false, true}) {
                Blocks<T> blocks(ctx, generator, a.row_map(), width);
                BlockVector<T> plain(ctx, a.row_map(), width);
                copy(ctx, blocks.y.const_view(), plain.view());
                a.apply_fused(ctx, blocks.x.const_view(), plain.view(), options_of<T>(fused));
                const auto checks = a.check_indices();
                a.apply_fused(ctx, blocks.x.const_view(), blocks.y.view(), options_of<T>(fused));
                Global<T> expected(a.row_map().local_rows(), width);
                copy(ctx, BlockView<const T>(plain.view()),
                     BlockView<T>(expected.values.data(), expected.rows, width, width));
                expect_same_bits(blocks.y.result(), expected);
            }
        }
    }
}

/// Every bit of a random word of each index array, one after the other.
TYPED_TEST(IndexChecks, WrongIndicesReachNoOtherMemory) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    int flips = 0;
    for (const SparseFormat& format : formats) {
        SparseMatrix<T> a(ctx, uneven_rows<T>(ctx.comm(), 700), format);
        const auto checks = a.check_indices();
        const std::vector<MatrixArray> arrays = a.arrays();
        for (std::size_t which = 1; which < arrays.size(); ++which) {
            const MatrixArray& array = arrays[which];
            for (int bit = 0; bit < 64; ++bit) {
                const std::size_t words = (array.bytes + 7) / 8;
                const std::size_t byte =
                    8 * (generator() % std::max<std::size_t>(words, 1)) + bit / 8;
                const bool flipped = byte < array.bytes;
                const unsigned char mask[] = {static_cast<unsigned char>(1U << bit % 8)};
                const auto flip = [&] {
                    if (flipped) {
                        flip_bits(ctx, static_cast<char*>(array.data) + byte, mask);
                    }
                };
                const int width = std::array{1, 3, 8, 70}[generator() % 4];
                Blocks<T> blocks(ctx, generator, a.row_map(), width);
                flip();
                a.apply_fused(ctx, blocks.x.const_view(), blocks.y.view(),
                              options_of<T>(bit % 2 == 0));
                EXPECT_TRUE(read_no_poison(blocks.y.result()))
                    << array.name << " bit " << bit << " width " << width;
                blocks.x.expect_unchanged();
                try {
                    a.for_each_entry(ctx, [](std::size_t, std::int64_t, T) {});
                } catch (const NumericalError&) {  // allowed, on this rank alone
                }
                flip();
                flips += flipped ? 1 : 0;
            }
        }
    }
    EXPECT_GE(ctx.comm().sum(std::int64_t{flips}), 3 * 2 * 64);
}

/// A wrong row list, offset or column that a pass over the entries meets is told.
TEST(IndexChecks, APassOverTheEntriesTellsWrongIndices) {
    Context ctx = make_context();
    SparseMatrix<double> a(ctx, uneven_rows<double>(ctx.comm(), 700), formats[2]);
    const unsigned char mask[] = {0x40};
    for (const MatrixArray& array : a.arrays()) {
        const std::string name = array.name;
        if ((name != "column indices" && name != "chunk offsets" && name != "row list") ||
            array.bytes < 16) {
            continue;
        }
        // Bit 30 or 62: of the second offset, of the first column and row.
        char* const byte = static_cast<char*>(array.data) + (name == "chunk offsets" ? 15 : 3);
        flip_bits(ctx, byte, mask);
        EXPECT_THROW(a.diagonal_block(ctx), NumericalError) << name;
        flip_bits(ctx, byte, mask);
        EXPECT_NO_THROW(a.diagonal_block(ctx)) << name;
    }
}

}  // namespace
}  // namespace quiver::test
