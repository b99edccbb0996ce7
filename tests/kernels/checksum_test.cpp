// SPDX-License-Identifier: BSD-3-Clause
// Compares checksums with sums in long double, and uses them to find faults.
#include "kernels/checksum.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/reference/reference_sums.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

template <class T>
class ChecksumTest : public ::testing::Test {};
TYPED_TEST_SUITE(ChecksumTest, Scalars, ScalarName);

struct Shape {
    std::int64_t rows;
    int cols;
    int log_chunk;
};
constexpr Shape shapes[] = {{0, 3, 12},     {1, 1, 12},     {4096, 8, 12},  {4097, 8, 12},
                            {8191, 5, 13},  {20000, 3, 14}, {9000, 17, 12}, {5000, 33, 12},
                            {4100, 64, 12}, {4100, 65, 12}, {70000, 2, 16}, {12000, 7, 13}};

/// Results of the reference: the sums, the sums of the absolute values of their terms, and the sums
/// of words.
template <class T>
struct Exact {
    std::vector<wide_t<T>> sums;
    std::vector<long double> magnitudes;
    std::vector<std::uint64_t> words;
};

template <class T>
Exact<T> exact_sums(const Global<T>& x, const Global<checksum_t<T>>& w, bool given, int log_chunk) {
    const auto chunks = static_cast<std::size_t>(checksum_chunks(x.rows, log_chunk));
    const std::size_t line = static_cast<std::size_t>(x.cols);
    const std::size_t count = chunks * static_cast<std::size_t>(checksum_kinds(given)) * line;
    Exact<T> exact{std::vector<wide_t<T>>(count), std::vector<long double>(count),
                   std::vector<std::uint64_t>(chunks * 2 * line * (is_complex_v<T> ? 2 : 1))};
    reference::checksum<wide_t<T>>(
        ChecksumArgs<T, checksum_t<T>>{x.rows, x.cols, log_chunk, x.values.data(), x.cols,
                                       given ? w.values.data() : nullptr, 2, nullptr,
                                       exact.words.data(), x.cols},
        exact.sums.data(), exact.magnitudes.data());
    return exact;
}

/// The checksums of X in host memory.
template <class T>
std::vector<checksum_t<T>> sums_of(Context& ctx, BlockView<const T> x,
                                   BlockView<const checksum_t<T>> w, int log_chunk, int block = 0) {
    const std::int64_t lines = checksum_chunks(x.rows, log_chunk) * checksum_kinds(w.cols > 0);
    std::vector<checksum_t<T>> sums(static_cast<std::size_t>(lines * x.cols));
    checksum<T>(ctx, log_chunk, x, w, BlockView<checksum_t<T>>(sums.data(), lines, x.cols, x.cols),
                {}, block);
    return sums;
}

TYPED_TEST(ChecksumTest, MatchesLongDouble) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (const Shape& shape : shapes) {
        const Global<T> x = random_global<T>(generator, shape.rows, shape.cols);
        const auto w = random_global<checksum_t<T>>(generator, shape.rows, 2);
        TestBlock<T> x_block(ctx, x, any_layout(generator), ctx.place());
        TestBlock<checksum_t<T>> w_block(ctx, w, any_layout(generator), ctx.place());
        for (const bool given : {false, true}) {
            const auto weights = given ? w_block.const_view() : BlockView<const checksum_t<T>>{};
            const auto sums = sums_of<T>(ctx, x_block.const_view(), weights, shape.log_chunk);
            const auto again = sums_of<T>(ctx, x_block.const_view(), weights, shape.log_chunk);
            ASSERT_EQ(sums, again);
            const int kinds = checksum_kinds(given);
            const Exact<T> exact = exact_sums(x, w, given, shape.log_chunk);
            for (std::size_t at = 0; at < sums.size(); ++at) {
                const int kind = static_cast<int>(static_cast<int>(at) / shape.cols % kinds);
                // Every product and the result are rounded. Sums without compensation are also
                // rounded at every term: those of s and c, and the squares, which serve as bounds.
                const bool compensated =
                    sizeof(real_t<T>) == sizeof(double) && kind != checksum_squares;
                const auto terms = static_cast<long double>(std::int64_t{1} << shape.log_chunk);
                const long double units = compensated ? 3 : 3 + terms;
                EXPECT_LE(std::abs(static_cast<wide_t<T>>(static_cast<checksum_t<T>>(sums[at])) -
                                   exact.sums[at]),
                          units * 0x1p-53L * exact.magnitudes[at])
                    << shape.rows << " x " << shape.cols << " kind " << kind;
            }
            x_block.expect_unchanged();
        }
    }
}

/// Compares sums of words with the reference, with and without weights, in blocks or not.
TYPED_TEST(ChecksumTest, SumsOfWordsAreExact) {
    using T = TypeParam;
    using Real = real_t<T>;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    for (const Shape& shape : shapes) {
        Global<T> x = random_global<T>(generator, shape.rows, shape.cols);
        const auto w = random_global<checksum_t<T>>(generator, shape.rows, 2);
        for (int i = 0; shape.rows > 0 && i < 3; ++i) {
            x(static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(shape.rows)), 0) =
                i == 0 ? T(-std::numeric_limits<Real>::infinity()) : poison<T>();
        }
        TestBlock<T> x_block(ctx, x, any_layout(generator), ctx.place());
        TestBlock<checksum_t<T>> w_block(ctx, w, any_layout(generator), ctx.place());
        const std::int64_t chunks = checksum_chunks(shape.rows, shape.log_chunk);
        const auto expected = exact_sums(x, w, false, shape.log_chunk).words;
        for (const bool given : {false, true}) {
            for (const int block : {0, 2}) {
                const auto weights =
                    given ? w_block.const_view() : BlockView<const checksum_t<T>>{};
                const std::int64_t lines = chunks * checksum_kinds(given);
                Global<checksum_t<T>> sums(lines, shape.cols);
                std::vector<std::uint64_t> words(expected.size(), 17);
                checksum<T>(
                    ctx, shape.log_chunk, x_block.const_view(), weights,
                    BlockView<checksum_t<T>>(sums.values.data(), lines, shape.cols, shape.cols),
                    words, block);
                EXPECT_EQ(words, expected)
                    << shape.rows << " x " << shape.cols << ", block " << block;
                // The other sums have the same bits as in a call without sums of words.
                const auto alone =
                    sums_of<T>(ctx, x_block.const_view(), weights, shape.log_chunk, block);
                for (std::size_t at = 0; at < alone.size(); ++at) {
                    const checksum_t<T> sum = sums.values[at];
                    // The bits of a NaN depend on the order of operands.
                    EXPECT_TRUE(same_bits(alone[at], sum) ||
                                (!is_finite(alone[at]) && !is_finite(sum)))
                        << given << ", " << at << ": " << alone[at] << ", " << sum;
                }
            }
        }
        x_block.expect_unchanged();
    }
}

/// Sums of groups of columns in one call have the same bits as a separate call for each group.
TYPED_TEST(ChecksumTest, BlocksOfColumnsHaveTheBitsOfTheirOwnCalls) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const std::int64_t rows = 9001;
    for (const auto& [cols, block] : {std::pair{24, 8}, {13, 5}, {7, 1}, {150, 66}, {6, 9}}) {
        const Global<T> x = random_global<T>(generator, rows, cols);
        TestBlock<T> x_block(ctx, x, any_layout(generator), ctx.place());
        const BlockView<const T> all = x_block.const_view();
        const auto together = sums_of<T>(ctx, all, {}, 12, block);
        for (int first = 0; first < cols; first += block) {
            const int width = std::min(block, cols - first);
            if (width < std::min(block, cols)) {
                break;  // the last group is incomplete
            }
            const auto alone = sums_of<T>(ctx, all.columns(first, width), {}, 12);
            const std::size_t lines = together.size() / static_cast<std::size_t>(cols);
            for (std::size_t line = 0; line < lines; ++line) {
                for (int j = 0; j < width; ++j) {
                    EXPECT_EQ(
                        together[line * static_cast<std::size_t>(cols) +
                                 static_cast<std::size_t>(first + j)],
                        alone[line * static_cast<std::size_t>(width) + static_cast<std::size_t>(j)])
                        << cols << " columns in blocks of " << block << ", column " << first + j;
                }
            }
        }
    }
}

/// Narrow columns of a block that ends at the end of its memory: a strip must not read beyond it (a
/// sanitizer checks that), and neighbouring columns must not enter the sums.
TYPED_TEST(ChecksumTest, NarrowBlocksAtTheEndOfMemory) {
    using T = TypeParam;
    using S = checksum_t<T>;
    Context ctx;
    std::mt19937_64 generator = make_generator();
    for (const std::int64_t rows : {1, 2, 3, 130, 4097}) {
        for (const int cols : {1, 2, 3, 5, 7, 11, 13, 21}) {
            const Global<T> x = random_global<T>(generator, rows, cols);
            const int kinds = checksum_kinds(false);
            const std::int64_t lines = checksum_chunks(rows, 12) * kinds;
            const auto sums_of = [&](const BlockView<const T>& view) {
                Global<S> sums(lines, view.cols);
                checksum<T>(ctx, 12, view, {},
                            BlockView<S>(sums.values.data(), lines, view.cols, view.cols));
                return sums;
            };
            const std::vector<T> exact(x.values.begin(), x.values.end());
            const Global<S> sums = sums_of(BlockView<const T>(exact.data(), rows, cols, cols));
            TestBlock<T> padded(ctx, x, Layout{9, 1}, Place::host);
            expect_same_bits(sums_of(padded.const_view()), sums);
            // Each column has the sums of a separate call.
            const int j = static_cast<int>(generator() % static_cast<unsigned>(cols));
            const Global<S> alone = sums_of(padded.const_view().columns(j, 1));
            for (std::int64_t line = 0; line < lines; ++line) {
                EXPECT_EQ(alone(line, 0), sums(line, j));
            }
        }
    }
}

/// A sum in double without compensation would lose the small terms.
TEST(Checksum, KeepsSmallTerms) {
    Context ctx = make_context();
    Global<double> x(4096, 1);
    x(0, 0) = 1e17;
    for (std::int64_t i = 1; i < 4095; ++i) {
        x(i, 0) = 1;
    }
    x(4095, 0) = -1e17;
    TestBlock<double> block(ctx, x, {}, ctx.place());
    const auto sums = sums_of<double>(ctx, block.const_view(), {}, 12);
    EXPECT_EQ(sums[checksum_plain], 4094.0);
}

/// A changed element changes the sums of its chunk only, and the quotient of the changes gives its
/// row.
TYPED_TEST(ChecksumTest, FindsTheRow) {
    using T = TypeParam;
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    const Shape shape{13000, 5, 12};
    Global<T> x = random_global<T>(generator, shape.rows, shape.cols);
    TestBlock<T> before(ctx, x, {}, ctx.place());
    const auto then = sums_of<T>(ctx, before.const_view(), {}, shape.log_chunk);
    for (int trial = 0; trial < 20; ++trial) {
        const auto row = static_cast<std::int64_t>(generator() % 13000);
        const int column = static_cast<int>(generator() % 5);
        Global<T> changed = x;
        changed(row, column) += T(real_t<T>(0.5));
        TestBlock<T> after(ctx, changed, {}, ctx.place());
        const auto now = sums_of<T>(ctx, after.const_view(), {}, shape.log_chunk);
        for (std::size_t at = 0; at < now.size(); ++at) {
            const auto line = static_cast<std::int64_t>(at) / 5;
            const bool hit = line / 3 == row >> 12 && static_cast<int>(at % 5) == column;
            EXPECT_EQ(now[at] != then[at], hit) << row << ", " << column << ", " << at;
        }
        const auto at = static_cast<std::size_t>((row >> 12) * 15 + column);
        const double quotient =
            std::real(now[at + 5] - then[at + 5]) / std::real(now[at] - then[at]);
        EXPECT_EQ(std::llround(quotient / mixed_row_unit),
                  mixed_row(static_cast<std::uint32_t>(row % 4096)));
    }
}

TEST(Checksum, EveryRowHasAWeightOfItsOwn) {
    std::vector<bool> seen(65537, false);
    for (std::uint32_t row = 0; row < 65536; ++row) {
        const std::uint32_t number = mixed_row(row);
        ASSERT_GE(number, 1u);
        ASSERT_LE(number, 65536u);
        ASSERT_FALSE(seen[number]) << row;
        seen[number] = true;
    }
}

TEST(Checksum, Misuse) {
    Context ctx = make_context();
    BlockVector<double> x(ctx, uneven_map(ctx, 100), 2);
    std::vector<double> sums(6);
    std::vector<std::uint64_t> words(4);
    const auto call = [&](int log_chunk, std::int64_t lines, std::size_t count) {
        checksum<double>(ctx, log_chunk, x.view(), {}, BlockView<double>(sums.data(), lines, 2, 2),
                         std::span<std::uint64_t>(words).first(count));
    };
    EXPECT_THROW(call(11, 3, 0), ShapeError);
    EXPECT_THROW(call(17, 3, 0), ShapeError);
    EXPECT_THROW(call(12, 2, 0), ShapeError);
    if (x.view().rows > 0) {
        EXPECT_THROW(call(12, 3, 3), ShapeError);
        EXPECT_NO_THROW(call(12, 3, 4));
    }
}

/// Random bytes in the place under test, and their parity.
class ParityArray {
  public:
    ParityArray(Context& ctx, std::mt19937_64& generator, std::size_t bytes)
        : ctx_(ctx), bytes_(bytes), buffer_(ctx.allocate(memory_kind(ctx.place()), bytes, "test")) {
        std::vector<char> values(bytes);
        std::generate(values.begin(), values.end(),
                      [&] { return static_cast<char>(generator() & 255); });
        copy(ctx, BlockView<const float>(reinterpret_cast<float*>(values.data()), words(), 1, 1),
             BlockView<float>(buffer_.as<float>(), words(), 1, 1, ctx.place()));
        std::vector<std::uint64_t> expected(static_cast<std::size_t>(parity_pieces(bytes)) *
                                            parity_numbers);
        reference::parity(
            ParityArgs{values.data(), static_cast<std::int64_t>(bytes), expected.data()});
        EXPECT_EQ(parity(), expected);
    }
    std::vector<std::uint64_t> parity() {
        std::vector<std::uint64_t> result(static_cast<std::size_t>(parity_pieces(bytes_)) *
                                          parity_numbers);
        quiver::parity(ctx_, buffer_.as<void>(), bytes_, result);
        return result;
    }
    void flip(std::size_t byte, std::span<const unsigned char> mask) {
        flip_bits(ctx_, buffer_.as<char>() + byte, mask);
    }

  private:
    std::int64_t words() const { return static_cast<std::int64_t>(bytes_ / 4); }
    Context& ctx_;
    std::size_t bytes_;
    Buffer buffer_;
};

TEST(Parity, FindsAndRepairsOneWord) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    constexpr std::size_t piece = std::size_t{8} << log_parity_words;
    for (const std::size_t bytes :
         {std::size_t{4}, std::size_t{8}, std::size_t{2052}, piece, piece + 4, 2 * piece + 1000}) {
        ParityArray array(ctx, generator, bytes);
        const auto then = array.parity();
        EXPECT_EQ(find_fault(then, array.parity()).piece, -1);
        for (int trial = 0; trial < 20; ++trial) {
            const std::size_t byte = generator() % bytes;
            const std::array<unsigned char, 1> mask{
                static_cast<unsigned char>(1 + generator() % 255)};
            array.flip(byte, mask);
            const ParityFault fault = find_fault(then, array.parity());
            ASSERT_EQ(fault.word, static_cast<std::int64_t>(byte / 8)) << bytes;
            EXPECT_EQ(fault.piece, static_cast<std::int64_t>(byte / piece));
            std::array<unsigned char, 8> all{};
            std::memcpy(all.data(), &fault.bits, 8);
            EXPECT_EQ(all[byte % 8], mask[0]);
            array.flip(byte / 8 * 8,
                       std::span(all).first(std::min<std::size_t>(8, bytes - byte / 8 * 8)));
            EXPECT_EQ(array.parity(), then);
        }
    }
}

/// Two changed words are distinguished from one, even if the same bits of both changed.
TEST(Parity, TwoWordsAreNotOne) {
    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
    constexpr std::size_t bytes = 100000;
    ParityArray array(ctx, generator, bytes);
    const auto then = array.parity();
    for (int trial = 0; trial < 40; ++trial) {
        const std::size_t first = generator() % (bytes / 8);
        const std::size_t second = (first + 1 + generator() % (bytes / 8 - 1)) % (bytes / 8);
        const std::array<unsigned char, 1> a{static_cast<unsigned char>(1 + generator() % 255)};
        const std::array<unsigned char, 1> b =
            trial % 2 == 0 ? a : std::array{static_cast<unsigned char>(1 + generator() % 255)};
        array.flip(8 * first, a);
        array.flip(8 * second, b);
        const ParityFault fault = find_fault(then, array.parity());
        EXPECT_EQ(fault.piece, 0);
        EXPECT_EQ(fault.word, -1);
        array.flip(8 * first, a);
        array.flip(8 * second, b);
    }
}

}  // namespace
}  // namespace quiver::test
