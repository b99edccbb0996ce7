// SPDX-License-Identifier: BSD-3-Clause
// Tests that products with checked indices have the same bits as without checks, and that they
// access no memory outside of the arrays and blocks, whatever the index arrays contain.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "blockvec/error.hpp"
#include "kernels/checksum.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {
namespace {

template <class T>
class IndexChecks : public ::testing::Test {};
TYPED_TEST_SUITE(IndexChecks, Scalars, ScalarName);

/// Rows of 1 to 12 entries, so that chunks are padded and sorting moves rows. For the automatic
/// format, a few rows have all columns, so that a device stores them apart.
template <class T>
CsrRows<T> uneven_rows(const Comm& comm, std::int64_t n, const SparseFormat& format) {
    const bool long_rows = format.kind == SparseFormat::automatic;
    return rows_from_callback<T>(
        comm, n, Symmetry::general, [=](std::int64_t row, RowEntries<T>& entries) {
            for (std::int64_t k = 0; long_rows && row % 300 == 7 && k < n; ++k) {
                entries.add(k, T(1));
            }
            for (std::int64_t k = 0; k <= row * 7 % 12; ++k) {
                entries.add((row + k * k * 3) % n, T(static_cast<real_t<T>>(k + 1)));
            }
        });
}

/// X and Y of one product, each surrounded by poison.
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

/// True if no element of Y was computed from poison.
template <class T>
bool read_no_poison(const Global<T>& y) {
    return std::all_of(y.values.begin(), y.values.end(), [](T value) { return is_finite(value); });
}

const SparseFormat formats[] = {{.kind = SparseFormat::compressed_rows},
                                {.kind = SparseFormat::sell, .chunk = 16, .sigma = 1},
                                {.kind = SparseFormat::sell, .chunk = 32, .sigma = 128},
                                {.kind = SparseFormat::automatic}};

TYPED_TEST(IndexChecks, ChangeNoBit) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const SparseFormat& format : formats) {
        SparseMatrix<T> a(ctx, uneven_rows<T>(ctx.comm(), 700, format), format);
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

/// Flips bits of random words in each index array, one at a time: every bit of a word once; every
/// fifth where is_host_repetition().
TYPED_TEST(IndexChecks, WrongIndicesReachNoOtherMemory) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const int step = is_host_repetition() ? 5 : 1;
    int flips = 0;
    for (const SparseFormat& format : formats) {
        SparseMatrix<T> a(ctx, uneven_rows<T>(ctx.comm(), 700, format), format);
        const auto checks = a.check_indices();
        const std::vector<MatrixArray> arrays = a.arrays();
        for (std::size_t which = 1; which < arrays.size(); ++which) {
            const MatrixArray& array = arrays[which];
            for (int bit = 0; bit < 64; bit += step) {
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
                } catch (const NumericalError&) {  // a rank may throw alone
                }
                flip();
                flips += flipped ? 1 : 0;
            }
        }
    }
    EXPECT_GE(ctx.comm().sum(std::int64_t{flips}), 3 * 2 * 64 / step);
}

enum class Changed : std::uint8_t { columns, offsets, row_list, lengths };

/// The operands of a product whose rows have three entries of 1. Poison follows the arrays.
template <class T, class Index>
struct LeafOperands {
    static constexpr std::int64_t rows = 192, of_row = 3, stored = rows * of_row;
    static constexpr std::int64_t halo_rows = 5, beyond = 1024;

    LeafOperands(int chunk, int width_, bool with_halo)
        : width(width_),
          column(stored + beyond),
          list(rows),
          start(static_cast<std::size_t>(rows / chunk + 1)),
          full(start.size(), of_row),
          value(stored + beyond, poison),
          x(static_cast<std::size_t>((rows + 8) * width), poison),
          halo(static_cast<std::size_t>((halo_rows + 8) * width), poison),
          dots(static_cast<std::size_t>(width)) {
        for (std::int64_t e = 0; e < stored; ++e) {
            const std::int64_t row = e / (of_row * chunk) * chunk + e % chunk;
            const std::int64_t k = e / chunk % of_row;
            column[static_cast<std::size_t>(e)] = static_cast<Index>((row + k * k) % rows);
            // Row 0 copies its row of X.
            value[static_cast<std::size_t>(e)] = row > 0 || k == 0 ? T(1) : T(0);
        }
        for (std::size_t c = 0; c < start.size(); ++c) {
            start[c] = static_cast<std::int64_t>(c) * chunk * of_row;
        }
        std::iota(list.begin(), list.end(), Index(0));
        std::fill_n(x.begin(), rows * width, T(1));
        std::fill_n(halo.begin(), halo_rows * width, T(1));
        args.rows = args.x_rows = args.y_rows = rows;
        args.chunk = chunk;
        args.entries = args.stored = stored;
        args.width = width;
        args.columns = rows + (with_halo ? halo_rows : 0);
        args.value = value.data();
        args.alpha = T(1);
        args.x = x.data();
        args.ldx = width;
        args.halo = with_halo ? halo.data() : nullptr;
    }
    void use_columns(const Index* from) {
        if constexpr (sizeof(Index) == 8) {
            args.column64 = from;
        } else {
            args.column32 = from;
        }
    }
    void use_list(const Index* from) {
        if constexpr (sizeof(Index) == 8) {
            args.list.wide = from;
        } else {
            args.list.narrow = from;
        }
    }

    const T poison{std::numeric_limits<real_t<T>>::quiet_NaN()};
    int width;
    std::vector<Index> column, list;
    std::vector<std::int64_t> start;
    std::vector<std::int32_t> full;
    std::vector<T> value, x, halo, dots;
    SpmmvArgs<T> args{};
};

/// Makes memory for an index array and for Y. Row 0 of Y overlaps the array from element `first`
/// on; the other rows of Y, and 8 more, follow the array. Row 0 of the product consists of the
/// index `wrong`. When the product has written row 0, the next rows read wrong indices, as if a
/// fault had just changed them.
template <class V, class Operands>
std::vector<char> overlap(Operands& operands, const std::vector<V>& array, std::size_t first,
                          std::int64_t wrong) {
    auto& args = operands.args;
    constexpr std::size_t element = sizeof(operands.value[0]);
    const std::size_t bytes = array.size() * sizeof(V);
    args.ldy = static_cast<std::int64_t>(bytes / element) + args.width + 2;
    std::vector<char> memory(bytes +
                             static_cast<std::size_t>((args.rows + 8) * args.ldy) * element);
    std::memcpy(memory.data(), array.data(), bytes);
    args.y = reinterpret_cast<decltype(args.y)>(memory.data() + first * sizeof(V));
    const V words[] = {static_cast<V>(wrong), static_cast<V>(wrong)};
    char* const row = reinterpret_cast<char*>(operands.x.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(args.width) * element; ++i) {
        row[i] = reinterpret_cast<const char*>(words)[i % 8];
    }
    return memory;
}

template <class T, class Index>
void change_during_a_product(Changed which, int chunk, int width, bool halo, bool dots) {
    LeafOperands<T, Index> operands(chunk, width, halo);
    SpmmvArgs<T>& args = operands.args;
    args.start = operands.start.data();
    args.full = chunk > 1 ? operands.full.data() : nullptr;
    args.dot_yy = dots ? operands.dots.data() : nullptr;
    operands.use_columns(operands.column.data());
    std::vector<char> memory;
    if (which == Changed::columns) {
        memory = overlap(operands, operands.column, chunk == 1 ? 4 : 52, args.columns + 1);
        operands.use_columns(reinterpret_cast<const Index*>(memory.data()));
    } else if (which == Changed::offsets) {
        memory = overlap(operands, operands.start, 2, operands.stored + 2);
        args.start = reinterpret_cast<const std::int64_t*>(memory.data());
    } else if (which == Changed::row_list) {
        memory = overlap(operands, operands.list, 4, args.rows + 3);
        operands.use_list(reinterpret_cast<const Index*>(memory.data()));
    } else {
        memory = overlap(operands, operands.full, 4, 40);
        args.full = reinterpret_cast<const std::int32_t*>(memory.data());
    }
    host::spmmv(1, args);
    EXPECT_EQ(std::memcmp(args.y, args.x, static_cast<std::size_t>(width) * sizeof(T)), 0)
        << "row 0 did not change the indices";
    for (std::int64_t i = 0; i < args.rows; ++i) {
        const T* const row = args.y + i * args.ldy;
        ASSERT_TRUE(std::all_of(row, row + width, [](T value) { return is_finite(value); }))
            << "row " << i;
    }
    const char* const behind = reinterpret_cast<char*>(args.y + args.rows * args.ldy);
    EXPECT_TRUE(std::all_of(behind, const_cast<const char*>(memory.data() + memory.size()),
                            [](char byte) { return byte == 0; }));
}

/// An index is checked when it is used, so it may change at any time.
TYPED_TEST(IndexChecks, IndicesThatChangeDuringAProductReachNoOtherMemory) {
    using T = TypeParam;
    if (test_place() == Place::device) {
        GTEST_SKIP() << "tests the leaf of the host";
    }
    for (const int width : {1, 2, 3, 8, 70}) {
        for (const int chunk : {1, 16}) {
            for (const bool halo : {false, true}) {
                for (const bool dots : {false, true}) {
                    for (const Changed which : {Changed::columns, Changed::offsets,
                                                Changed::row_list, Changed::lengths}) {
                        if (which == Changed::lengths && (chunk == 1 || width > 1)) {
                            continue;
                        }
                        SCOPED_TRACE("array " + std::to_string(static_cast<int>(which)) +
                                     ", width " + std::to_string(width) + ", chunk " +
                                     std::to_string(chunk) + (halo ? ", halo" : "") +
                                     (dots ? ", dots" : ""));
                        change_during_a_product<T, std::int32_t>(which, chunk, width, halo, dots);
                        change_during_a_product<T, std::int64_t>(which, chunk, width, halo, dots);
                    }
                }
            }
        }
    }
}

TEST(IndexChecks, APassOverTheEntriesReportsWrongIndices) {
    Context ctx = make_context();
    SparseMatrix<double> a(ctx, uneven_rows<double>(ctx.comm(), 700, formats[2]), formats[2]);
    const unsigned char mask[] = {0x40};
    for (const MatrixArray& array : a.arrays()) {
        const std::string name = array.name;
        if ((name != "column indices" && name != "chunk offsets" && name != "row list") ||
            array.bytes < 16) {
            continue;
        }
        // Bit 62 of the second offset, or bit 30 of the first column or row.
        char* const byte = static_cast<char*>(array.data) + (name == "chunk offsets" ? 15 : 3);
        flip_bits(ctx, byte, mask);
        EXPECT_THROW(a.diagonal_block(ctx), NumericalError) << name;
        flip_bits(ctx, byte, mask);
        EXPECT_NO_THROW(a.diagonal_block(ctx)) << name;
    }
}

}  // namespace
}  // namespace quiver::test
