// SPDX-License-Identifier: BSD-3-Clause
// The checksums of a block locate changed words and restore them.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/sparse/product_sums.hpp"
#include "solvers/abft/checksum.hpp"
#include "tests/solvers/abft_support.hpp"

namespace quiver::test {
namespace {

template <class T>
class AbftChecksum : public ::testing::Test {
  protected:
    /// Flips a bit of an element; bits of the imaginary part follow those of the real part.
    void flip(const BlockView<T>& x, std::int64_t row, int column, int bit) {
        std::array<unsigned char, 8> mask{};
        mask[static_cast<std::size_t>(bit % 32 / 8)] = static_cast<unsigned char>(1 << bit % 8);
        char* const element = reinterpret_cast<char*>(x.data + row * x.ld + column);
        flip_bits(ctx, element + bit / 32 * 4, std::span<const unsigned char>(mask).first(4));
    }
    std::int64_t any_row(std::int64_t rows) {
        return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(rows));
    }

    Context ctx = make_context();
    std::mt19937_64 generator = make_generator();
};
TYPED_TEST_SUITE(AbftChecksum, Scalars, ScalarName);

TYPED_TEST(AbftChecksum, EveryBitIsLocatedAndRestored) {
    using T = TypeParam;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    for (const int log_chunk : {12, 14, 16}) {
        const std::int64_t rows = (std::int64_t{1} << log_chunk) * 2 - this->any_row(4000);
        const Global<T> values = random_global<T>(this->generator, rows, 3);
        TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const BlockView<T> x = block.view();
        const Checksum<T> before(this->ctx, x, {}, log_chunk);
        const int step = log_chunk == 12 ? 1 : 13;
        for (int bit = static_cast<int>(this->generator() % static_cast<unsigned>(step));
             bit < bits; bit += step) {
            const std::int64_t edges[] = {0, (std::int64_t{1} << log_chunk) - 1, rows - 1};
            const std::int64_t row = bit % 8 < 3 ? edges[bit % 8] : this->any_row(rows);
            const int column = static_cast<int>(this->generator() % 3);
            SCOPED_TRACE("chunks of 2^" + std::to_string(log_chunk) + ", row " +
                         std::to_string(row) + " of " + std::to_string(rows) + ", bit " +
                         std::to_string(bit));
            this->flip(x, row, column, bit);
            const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
            ASSERT_EQ(found.size(), 1u);
            EXPECT_EQ(found.front().chunk, row >> log_chunk);
            EXPECT_EQ(found.front().row, row);
            EXPECT_EQ(found.front().column, column);
            ASSERT_TRUE(restore(this->ctx, x, found.front(), before));
            expect_same_bits(block.result(), values);
        }
    }
}

/// The last rows of a chunk have small factors (word_weight), and the difference of two words may
/// borrow between their halves: flips each bit in both directions.
TYPED_TEST(AbftChecksum, EveryBitOfTheLastRowsIsLocated) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    const std::int64_t rows = 4096 + 5;
    const Global<T> values = random_global<T>(this->generator, rows, 1);
    TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
    const BlockView<T> x = block.view();
    for (const std::int64_t row : {rows - 1, rows - 2, rows - 3, rows - 5}) {
        for (int bit = 0; bit < bits; ++bit) {
            for (int way = 0; way < 2; ++way) {
                const Checksum<T> before(this->ctx, x, {}, log_chunk);
                this->flip(x, row, 0, bit);
                const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
                ASSERT_EQ(found.size(), 1u);
                EXPECT_EQ(found.front().row, row) << "bit " << bit << " of row " << row;
                ASSERT_TRUE(restore(this->ctx, x, found.front(), before));
                this->flip(x, row, 0, bit);
            }
        }
    }
    expect_same_bits(block.result(), values);
}

/// A changed element is restored even if other elements make the sums NaN.
TYPED_TEST(AbftChecksum, BesideElementsThatAreNotNumbers) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    for (const int cols : {1, 3, 7}) {
        const std::int64_t rows = 2 * 4096 - 7;
        Global<T> values = random_global<T>(this->generator, rows, cols);
        for (int j = 0; j < cols; ++j) {
            values(100, j) = poison<T>();
            values(j % 2 == 0 ? rows - 1 : 4095, j) = -poison<T>();
            values(5000, j) = poison<T>();
        }
        TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const BlockView<T> x = block.view();
        const Checksum<T> before(this->ctx, x, {}, log_chunk);
        for (int trial = 0; trial < 20; ++trial) {
            const std::int64_t row = this->any_row(rows);
            this->flip(x, row, static_cast<int>(this->generator() % static_cast<unsigned>(cols)),
                       static_cast<int>(this->generator() % bits));
            const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
            bool restored = false;
            for (const FaultyChunk& fault : found) {
                restored = restore(this->ctx, x, fault, before) || restored;
            }
            EXPECT_TRUE(restored);
            expect_same_bits(block.result(), values);
        }
    }
}

/// One changed element in each column is restored, whether its new value is infinite, NaN or a
/// number.
TYPED_TEST(AbftChecksum, OneElementOfEachColumnIsRestored) {
    using T = TypeParam;
    using Real = real_t<T>;
    constexpr int log_chunk = 12;
    const Global<T> values = random_global<T>(this->generator, 9000, 6);
    for (int trial = 0; trial < 20; ++trial) {
        Global<T> struck = values;
        const std::int64_t chunk = trial % 2;
        for (int j = 0; j < 6; ++j) {
            const T others[] = {T(std::numeric_limits<Real>::infinity()),
                                poison<T>(),
                                T(0),
                                random_value<T>(this->generator),
                                -values(0, j),
                                T(std::numeric_limits<Real>::max())};
            struck((chunk << log_chunk) + this->any_row(4096), j) =
                others[static_cast<std::size_t>(trial + j) % 6];
        }
        TestBlock<T> right(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const Checksum<T> before(this->ctx, right.view(), {}, log_chunk);
        TestBlock<T> block(this->ctx, struck, any_layout(this->generator), this->ctx.place());
        const auto found =
            Checksum<T>(this->ctx, block.view(), {}, log_chunk).changed_since(before);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found.front().chunk, chunk);
        EXPECT_EQ(found.front().row, -1);  // the columns changed in different rows
        ASSERT_TRUE(restore(this->ctx, block.view(), found.front(), before));
        expect_same_bits(block.result(), values);
    }
}

/// Two changed elements of a column are detected but not repaired. If both change by the same
/// amount, the sums look like those of twice that change in a row between them. Only bits above the
/// rounding of the floating-point sums are flipped: smaller changes appear in the word sums only,
/// which cannot distinguish these cases.
TYPED_TEST(AbftChecksum, TwoElementsOfAColumnAreNotRepaired) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(real_t<T>)) * 8;
    for (int trial = 0; trial < 200; ++trial) {
        Global<T> values = random_global<T>(this->generator, 4096, 2);
        const T constant = values(0, 0);
        if (trial % 2 == 0) {
            std::fill(values.values.begin(), values.values.end(), constant);
        }
        TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
        const BlockView<T> x = block.view();
        const Checksum<T> before(this->ctx, x, {}, log_chunk);
        const int bit =
            bits / 2 + static_cast<int>(this->generator() % static_cast<unsigned>(bits / 2));
        const std::int64_t row = this->any_row(4096);
        this->flip(x, row, 1, bit);
        this->flip(x, (row + 1 + this->any_row(4095)) % 4096, 1, bit);
        const Global<T> struck = block.result();
        const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
        ASSERT_EQ(found.size(), 1u) << "bit " << bit;
        EXPECT_EQ(found.front().column, 1);
        EXPECT_FALSE(restore(this->ctx, x, found.front(), before)) << "bit " << bit;
        expect_same_bits(block.result(), struck);
    }
}

TYPED_TEST(AbftChecksum, WithoutWordSumsFaultsAreFoundButNotLocated) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(real_t<T>)) * 8;
    const Global<T> values = random_global<T>(this->generator, 5000, 2);
    TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
    const BlockView<T> x = block.view();
    const Checksum<T> before(this->ctx, x, {}, log_chunk, WordSums::no);
    this->flip(x, 4321, 1, bits - 1);
    const auto found = Checksum<T>(this->ctx, x, {}, log_chunk).changed_since(before);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found.front().chunk, 1);
    EXPECT_EQ(found.front().row, -1);
    EXPECT_FALSE(restore(this->ctx, x, found.front(), before));
}

/// unchanged_since() tells all ranks of a change on one rank.
TYPED_TEST(AbftChecksum, OneChangedBitOfARank) {
    using T = TypeParam;
    const std::int64_t rows = 100 + this->any_row(2000);
    const Global<T> values = random_global<T>(this->generator, rows, 3);
    TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
    const BlockView<T> x = block.view();
    const Checksum<T> before(this->ctx, x);
    EXPECT_TRUE(unchanged_since(this->ctx, before, BlockView<const T>(x)));
    const int rank =
        static_cast<int>(this->generator() % static_cast<unsigned>(this->ctx.comm().size()));
    const std::int64_t row = this->any_row(rows);
    if (rank == this->ctx.comm().rank()) {
        this->flip(x, row, 1, 0);
    }
    EXPECT_FALSE(unchanged_since(this->ctx, before, BlockView<const T>(x)));
}

TYPED_TEST(AbftChecksum, RefusesSumsOfAnotherBlock) {
    using T = TypeParam;
    const Global<T> values = random_global<T>(this->generator, 9000, 3);
    TestBlock<T> block(this->ctx, values, {}, this->ctx.place());
    const BlockView<T> x = block.view();
    const Checksum<T> sums(this->ctx, x, {}, 12);
    EXPECT_NO_THROW(sums.changed_since(Checksum<T>(this->ctx, x.columns(0, 2), {}, 12), 1));
    EXPECT_THROW(sums.changed_since(Checksum<T>(this->ctx, x.columns(0, 2), {}, 12), 2),
                 ShapeError);
    EXPECT_THROW(sums.changed_since(Checksum<T>(this->ctx, x.row_range(0, 8999), {}, 12)),
                 ShapeError);
    EXPECT_THROW(sums.changed_since(Checksum<T>(this->ctx, x, {}, 13)), ShapeError);
}

/// correct() restores a block from a correct copy.
TYPED_TEST(AbftChecksum, ARightCopyRestoresTheBlock) {
    using T = TypeParam;
    constexpr int log_chunk = 12;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8;
    const Global<T> values = random_global<T>(this->generator, 20000, 5);
    TestBlock<T> twin(this->ctx, values, any_layout(this->generator), this->ctx.place());
    for (const bool write : {false, true}) {
        TestBlock<T> block(this->ctx, values, any_layout(this->generator), this->ctx.place());
        const BlockView<T> x = block.view();
        this->flip(x, 100, 2, bits / 2);
        this->flip(x, 9000, 4, bits - 1);
        this->flip(x, 9001, 4, bits - 1);
        const Global<T> struck = block.result();
        const Correction correction = correct(this->ctx, x, twin.const_view(), log_chunk, write);
        EXPECT_EQ(correction.rows, 1);
        EXPECT_EQ(correction.chunks, 1);
        expect_same_bits(block.result(), write ? values : struck);
    }
}

/// Reference sums in long double over all rows of a block. values: rows x width; given: the
/// weights, rows x 2.
template <class T>
struct ExactSums {
    using Sum = checksum_t<T>;
    using Wide = wide_t<Sum>;
    const std::vector<T>& values;
    const std::vector<Sum>& given;
    std::size_t width;
    int log_chunk;

    /// The sum of one kind in column j, and the sum of the squares of its terms.
    std::pair<Wide, long double> operator()(int kind, std::size_t j) const {
        std::pair<Wide, long double> result{};
        for (std::size_t i = 0; i < values.size() / width; ++i) {
            const auto x = static_cast<Wide>(static_cast<Sum>(values[i * width + j]));
            const auto row = static_cast<std::int64_t>(i) & ((std::int64_t{1} << log_chunk) - 1);
            const Wide term =
                kind == checksum_plain   ? x
                : kind == checksum_mixed ? x * Wide(mixed_weight(row))
                : kind == checksum_squares
                    ? Wide(std::norm(x))
                    : x * static_cast<Wide>(conjugate(
                              given[2 * i + static_cast<std::size_t>(kind - checksum_first)]));
            result.first += term;
            result.second += std::norm(term);
        }
        return result;
    }
};

/// Reads a sum of SpmmvSums: each of its `parts` real numbers is stored as two numbers, `line`
/// apart, that must be added.
template <class Sum>
wide_t<Sum> number_at(const double* found, std::size_t line, std::size_t parts) {
    wide_t<Sum> result{};
    for (std::size_t part = 0; part < parts; ++part) {
        reinterpret_cast<long double*>(&result)[part] = found[part] + found[part + line];
    }
    return result;
}

/// A request for sums of a product, and their memory in the place of the blocks.
template <class T>
struct AskedSums {
    static constexpr std::size_t reals = is_complex_v<T> ? 2 : 1;
    std::size_t line;
    std::size_t block = 2 * SpmmvSums::kinds * line;
    Buffer memory;
    SpmmvSums ask;

    AskedSums(Context& ctx, int width, const Buffer& weights, int log_chunk)
        : line(reals * static_cast<std::size_t>(width)),
          memory(ctx.allocate(memory_kind(ctx.place()), 3 * block * sizeof(double), "sums")) {
        const std::vector<double> poison(3 * block, std::numeric_limits<double>::quiet_NaN());
        copy(ctx, BlockView<const double>(row(poison.data(), Place::host)), row(ctx.place()));
        ask.weights = weights.as<const double>();
        ask.log_chunk = log_chunk;
        ask.y = memory.as<double>();
    }
    double* block_of(int number) const {
        return memory.as<double>() + static_cast<std::size_t>(number) * block;
    }
    /// All sums, in host memory.
    std::vector<double> found(Context& ctx) const {
        std::vector<double> sums(3 * block);
        copy(ctx, BlockView<const double>(row(ctx.place())), row(sums.data(), Place::host));
        return sums;
    }

  private:
    BlockView<double> row(const double* data, Place place) const {
        const auto numbers = static_cast<int>(3 * block);
        return {const_cast<double*>(data), 1, numbers, numbers, place};
    }
    BlockView<double> row(Place place) const { return row(memory.as<double>(), place); }
};

/// Compares the sums of one kind in all columns with long double.
template <class T>
void expect_sums(const ExactSums<T>& exact, const double* found, int kind) {
    using Sum = checksum_t<T>;
    constexpr std::size_t reals = is_complex_v<T> ? 2 : 1;
    const std::size_t line = reals * exact.width;
    for (std::size_t j = 0; j < exact.width; ++j) {
        const auto [wanted, squares] = exact(kind, j);
        const bool is_squares = kind == checksum_squares;
        wide_t<Sum> sum = number_at<Sum>(
            found + 2 * static_cast<std::size_t>(kind) * line + reals * j, line, reals);
        if constexpr (is_complex_v<T>) {  // the parts hold the squares of real and imaginary parts
            sum = is_squares ? wide_t<Sum>(sum.real() + sum.imag()) : sum;
        }
        const wide_t<Sum> difference = sum - wanted;
        // Rounding of products and of sums within a group of rows remains; later additions are
        // compensated. Squares are rounded within groups of up to 64 rows.
        const double rounded = is_squares ? 64 : 4;
        const auto bound = static_cast<double>(16 * epsilon_v<double> * std::sqrt(squares) +
                                               rounded * epsilon_v<double> * std::abs(wanted));
        EXPECT_LE(static_cast<double>(std::abs(difference)), bound)
            << "width " << exact.width << ", kind " << kind << ", column " << j;
    }
}

/// Compares the dots x^H y of all columns with long double.
template <class T>
void expect_dots(const std::vector<T>& x, const std::vector<T>& y, const double* found, int width) {
    using Sum = checksum_t<T>;
    constexpr std::size_t reals = is_complex_v<T> ? 2 : 1;
    const auto columns = static_cast<std::size_t>(width);
    for (std::size_t j = 0; j < columns; ++j) {
        wide_t<Sum> wanted{};
        long double squares = 0;
        for (std::size_t at = j; at < x.size(); at += columns) {
            const auto term = static_cast<wide_t<Sum>>(conjugate(static_cast<Sum>(x[at]))) *
                              static_cast<wide_t<Sum>>(static_cast<Sum>(y[at]));
            wanted += term;
            squares += std::norm(term);
        }
        const wide_t<Sum> dot = number_at<Sum>(found + reals * j, reals * columns, reals);
        const auto bound = static_cast<double>(16 * epsilon_v<double> * std::sqrt(squares) +
                                               4 * epsilon_v<double> * std::abs(wanted));
        EXPECT_LE(static_cast<double>(std::abs(dot - wanted)), bound)
            << "width " << width << ", column " << j;
    }
}

template <class Sum>
std::vector<Sum> random_weights(std::mt19937_64& generator, std::int64_t rows) {
    std::vector<Sum> weights(2 * static_cast<std::size_t>(rows));
    for (Sum& weight : weights) {
        weight = random_value<Sum>(generator);
    }
    return weights;
}

/// Requests a different selection of sums in each turn.
template <class T>
void ask_by(int turn, bool on_host, AskedSums<T>& sums) {
    sums.ask.x = turn % 3 > 0 ? sums.block_of(1) : nullptr;
    sums.ask.old = on_host ? sums.block_of(2) : nullptr;
    sums.ask.xy = !on_host && turn % 2 == 1 ? sums.block_of(2) : nullptr;
    sums.ask.plain_of_x = turn % 3 == 2;
    sums.ask.given_of_y = turn % 4 >= 2;
}

/// The sums that a product forms of X, of the new Y and, on the host, of the old Y agree with long
/// double. Y has the same bits as without sums.
TYPED_TEST(AbftChecksum, SumsOfAProduct) {
    using T = TypeParam;
    using Sum = checksum_t<T>;
    Context& ctx = this->ctx;
    const bool on_host = ctx.place() == Place::host;
    constexpr int log_chunk = 12;
    const SparseFormat formats[] = {{},
                                    {.kind = SparseFormat::compressed_rows},
                                    {.kind = SparseFormat::sell, .chunk = 32, .sigma = 128}};
    int turn = 0;
    for (const SparseFormat& format : formats) {
        SparseMatrix<T> a = laplace3d<T>(ctx, 19, 17, 15, format);
        const auto checks = a.check_indices();
        const RowMap& map = a.row_map();
        const auto weights = random_weights<Sum>(this->generator, map.local_rows());
        const std::size_t bytes = weights.size() * sizeof(Sum);
        const Buffer placed = ctx.allocate(memory_kind(ctx.place()), bytes, "weights");
        copy(ctx, BlockView<const Sum>(weights.data(), map.local_rows(), 2, 2),
             BlockView<Sum>(placed.template as<Sum>(), map.local_rows(), 2, 2, ctx.place()));
        for (const int width : {1, 2, 3, 4, 5, 8, 12, 16, 17, 20, 32, 33, 40, 70}) {
            if (format.kind != SparseFormat::automatic && width % 4 > 1) {
                continue;
            }
            const auto random = [&] {
                return random_global<T>(this->generator, map.global_rows(), width);
            };
            TestBlock<T> x(ctx, random(), map, any_layout(this->generator));
            // Both in one layout: on a device the order of the sums depends on the alignment.
            const auto before = random();
            const Layout layout = any_layout(this->generator);
            TestBlock<T> y(ctx, before, map, layout);
            TestBlock<T> plain(ctx, before, map, layout);
            ++turn;
            AskedSums<T> sums(ctx, width, placed, log_chunk);
            SpmmvSums& ask = sums.ask;
            ask_by(turn, on_host, sums);
            ApplyOptions<T> options;
            options.alpha = other_coefficient<T>();
            options.beta = turn % 2 == 0 ? T(-1) : T(0);
            const std::vector<T> shifts(turn % 5 < 3 ? static_cast<std::size_t>(width) : 0, T(2));
            options.shift = shifts;
            const std::vector<T> old = download<T>(ctx, y.const_view());
            a.apply_fused(ctx, x.const_view(), plain.view(), options);

            a.apply_summed(ctx, x.const_view(), y.view(), options, ask);

            x.expect_unchanged();
            const std::vector<T> now = download<T>(ctx, y.const_view());
            EXPECT_TRUE(same_values(now, download<T>(ctx, plain.const_view())));
            if (map.local_rows() == 0) {
                continue;
            }
            EXPECT_TRUE(ask.stored);
            const std::vector<double> found = sums.found(ctx);
            const auto check = [&](const std::vector<T>& values, int block, bool without,
                                   bool given) {
                const ExactSums<T> exact{values, weights, static_cast<std::size_t>(width),
                                         log_chunk};
                for (int kind = 0; kind < SpmmvSums::kinds; ++kind) {
                    if (kind == checksum_squares || (kind < checksum_squares ? without : given)) {
                        expect_sums(exact, &found[static_cast<std::size_t>(block) * sums.block],
                                    kind);
                    }
                }
            };
            check(now, 0, true, ask.given_of_y);
            if (ask.x != nullptr) {
                check(download<T>(ctx, x.const_view()), 1, ask.plain_of_x, true);
            } else {
                EXPECT_TRUE(turn % 3 == 0 || !on_host);
            }
            if (on_host) {
                check(old, 2, true, false);
            } else if (ask.xy != nullptr) {
                expect_dots(download<T>(ctx, x.const_view()), now, &found[2 * sums.block], width);
            }
        }
    }
}

}  // namespace
}  // namespace quiver::test
