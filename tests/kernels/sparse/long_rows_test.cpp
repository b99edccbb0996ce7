// SPDX-License-Identifier: BSD-3-Clause
// Tests matrices with long rows, which a device stores apart: the list of work, without a GPU, and
// products in the place of the tests.
#include <algorithm>
#include <numeric>
#include <set>

#include "kernels/reference/reference_kernels.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/row_split.hpp"
#include "kernels/sparse/sparse_layout.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

using Kind = SparseLayout::Kind;

/// Offsets of rows of these lengths.
std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& length) {
    std::vector<std::int64_t> start{0};
    std::partial_sum(length.begin(), length.end(), std::back_inserter(start));
    return start;
}

SparseLayout on_device(const std::vector<std::int64_t>& row_start,
                       const std::vector<std::int64_t>& order = {}, std::int64_t interior = 0,
                       int stages = 1) {
    return SparseLayout({{}, Place::device, sizeof(double), false}, row_start, order, interior, {},
                        0, stages);
}

/// The entries of each row and piece, found by a walk over the parts in order, as the kernels do.
struct Walk {
    std::vector<std::vector<std::int64_t>> of;  // of row i, and of piece p at own + p
    std::int64_t sums = 0;                      // number of parts that add pieces
    std::int64_t most_entries = 0;              // of a slot that is not in chunks
    std::int64_t most_summands = 0;

    Walk(const SparseLayout& layout, const std::vector<std::int64_t>& row_start)
        : of(row_start.size() - 1 + static_cast<std::size_t>(layout.count.pieces)) {
        const std::int64_t own = std::ssize(row_start) - 1;
        const std::vector<std::int64_t> list = layout.list();
        std::set<std::int64_t> written;
        for (const SparseLayout::Part& part : layout.part) {
            std::set<std::int64_t> of_part;
            for (std::int64_t s = 0; s < part.rows; ++s) {
                const std::int64_t row = layout.row_of(part.first_slot + s);
                if (!list.empty()) {
                    EXPECT_EQ(list.at(static_cast<std::size_t>(part.first_run + s / part.run)) +
                                  s % part.run,
                              row);
                }
                EXPECT_TRUE(of_part.insert(row).second && written.count(row) == 0)
                    << "row " << row << " is written twice";
                const auto [first, count] = layout.entries_of(part, s, row_start);
                const auto chunk = layout.start.begin() + part.first_chunk + s / part.chunk;
                EXPECT_LE(count * part.chunk, chunk[1] - chunk[0]);
                auto& entries = of.at(static_cast<std::size_t>(row));
                if (part.kind != Kind::sums) {
                    entries.resize(static_cast<std::size_t>(count));
                    std::iota(entries.begin(), entries.end(), first);
                } else {
                    most_summands = std::max(most_summands, count);
                    for (std::int64_t p = first; p < first + count; ++p) {
                        EXPECT_EQ(written.count(own + p), 1U) << "piece " << p << " is not ready";
                        const auto& piece = of.at(static_cast<std::size_t>(own + p));
                        entries.insert(entries.end(), piece.begin(), piece.end());
                    }
                }
                if (part.kind == Kind::long_rows) {
                    most_entries = std::max(most_entries, count);
                    if (row >= own) {
                        const std::int64_t whole =
                            layout.apart.piece_row.at(static_cast<std::size_t>(row - own));
                        EXPECT_TRUE(row_start[static_cast<std::size_t>(whole)] <= first &&
                                    first + count <=
                                        row_start[static_cast<std::size_t>(whole) + 1]);
                    }
                }
            }
            written.insert(of_part.begin(), of_part.end());
            sums += part.kind == Kind::sums ? 1 : 0;
        }
        EXPECT_EQ(std::ssize(written), own + layout.count.pieces);
        for (std::int64_t i = 0; i < own; ++i) {
            const auto at = static_cast<std::size_t>(i);
            EXPECT_EQ(std::ssize(of[at]), row_start[at + 1] - row_start[at]) << "row " << i;
            for (std::size_t k = 0; k < of[at].size(); ++k) {
                EXPECT_EQ(of[at][k], row_start[at] + static_cast<std::int64_t>(k)) << "row " << i;
            }
        }
    }
};

/// n rows of 0 to 9 entries, and some of another length, far apart.
std::vector<std::int64_t> few_long(std::int64_t n, const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> length(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < length.size(); ++i) {
        length[i] = static_cast<std::int64_t>(i * i % 10);
    }
    for (std::size_t j = 0; j < lengths.size(); ++j) {
        length[(j + 1) * length.size() / (lengths.size() + 1)] = lengths[j];
    }
    return length;
}

TEST(LongRows, AreCutSoThatEveryEntryIsComputedOnce) {
    // Rows of 65 to 512 entries are not cut; one of 32769 needs 65 pieces, and two sums of them.
    const struct {
        std::vector<std::int64_t> length;
        std::int64_t long_rows, pieces, sums;
    } cases[] = {{few_long(3000, {64, 65, 512, 400}), 3, 0, 0},
                 {few_long(3000, {513, 1024, 1025}), 3, 2 + 2 + 3, 1},
                 {few_long(40000, {32768, 90}), 2, 64, 1},
                 {few_long(40000, {32769, 32768, 600, 700}), 4, 65 + 64 + 2 + 2 + 2, 2},
                 {few_long(400, {64 * 64 * 512 + 1}), 1, 4097 + 65 + 2, 3},
                 {{100000}, 0, 0, 0},  // a single row is not longer than the average
                 {{0, 0, 0, 2000, 0, 0, 0, 0}, 1, 4, 1},
                 {std::vector<std::int64_t>(100, 0), 0, 0, 0},
                 {std::vector<std::int64_t>(100, 1000), 0, 0, 0}};
    for (const auto& c : cases) {
        SCOPED_TRACE(std::to_string(c.length.size()) + " rows, the longest " +
                     std::to_string(*std::max_element(c.length.begin(), c.length.end())));
        const std::vector<std::int64_t> row_start = offsets(c.length);
        const SparseLayout layout = on_device(row_start);
        const Walk walk(layout, row_start);
        EXPECT_EQ(layout.count.long_rows, c.long_rows);
        EXPECT_EQ(layout.count.pieces, c.pieces);
        EXPECT_EQ(walk.sums, c.sums);
        EXPECT_LE(walk.most_entries, LongRows::piece);
        EXPECT_LE(walk.most_summands, LongRows::summands);
        if (c.long_rows > 0 && c.length.size() >= 3000) {
            EXPECT_EQ(layout.format.kind, SparseFormat::sell);
            EXPECT_EQ(layout.format.chunk, 32);
            EXPECT_LE(layout.part[0].entries, 1.1 * static_cast<double>(row_start.back()));
        }
    }
}

TEST(LongRows, OfAGivenFormatOrOfTheHostStayInTheirPlace) {
    const auto row_start = offsets(few_long(3000, {600, 2000}));
    for (const SparseFormat& format :
         {SparseFormat{.kind = SparseFormat::sell}, SparseFormat{SparseFormat::compressed_rows}}) {
        EXPECT_EQ(
            SparseLayout({format, Place::device, 8, false}, row_start, {}, 3000).count.long_rows,
            0);
    }
    EXPECT_EQ(SparseLayout({{}, Place::host, 8, false}, row_start, {}, 3000).count.long_rows, 0);
    EXPECT_EQ(on_device(row_start).count.long_rows, 2);
}

TEST(LongRows, BesideManyShortOnesAreCutIfTheyTakeLonger) {
    // The rows do not pad their chunks by half.
    const std::vector<std::int64_t> padded(200000, 6);
    auto length = padded;
    length[777] = 600;
    EXPECT_EQ(on_device(offsets(length)).count.long_rows, 1);
    length[777] = 500;
    EXPECT_EQ(on_device(offsets(length)).count.long_rows, 0);
}

TEST(LongRows, OfTheBoundaryFollowTheHalo) {
    const std::int64_t n = 50000;
    const auto row_start = offsets(few_long(n, {700, 90, 40000, 513, 3000}));
    // The last 30000 rows are boundary rows.
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (const int stages : {1, 3}) {
        const SparseLayout layout = on_device(row_start, order, 20000, stages);
        const Walk walk(layout, row_start);
        EXPECT_EQ(layout.count.boundary_rows, 30000);
        EXPECT_EQ(layout.count.long_rows, 5);
        // The rows 8333 and 16666 are interior rows.
        ASSERT_EQ(std::ssize(layout.part), 1 + 1 + stages + 1 + 2);
        int stage = 0;
        for (std::size_t p = 0; p < layout.part.size(); ++p) {
            const SparseLayout::Part& part = layout.part[p];
            const auto before_sums = layout.part.size() - 2;
            EXPECT_EQ(part.kind, p == 1 || p + 1 == before_sums ? Kind::long_rows
                                 : p < before_sums              ? Kind::rows
                                                                : Kind::sums);
            EXPECT_EQ(part.chunk, part.kind == Kind::rows ? 32 : 1);
            EXPECT_GE(part.stage, stage);
            stage = part.stage;
            EXPECT_EQ(stage, p < 2 ? 0 : std::min<int>(static_cast<int>(p) - 1, stages));
            for (std::int64_t s = 0; s < part.rows; ++s) {
                const std::int64_t row = layout.row_of(part.first_slot + s);
                const std::int64_t whole =
                    row < n ? row
                    : part.kind == Kind::sums
                        ? -1
                        : layout.apart.piece_row[static_cast<std::size_t>(row - n)];
                if (part.stage == 0) {
                    EXPECT_LT(whole, 20000);
                } else if (part.kind != Kind::sums) {
                    EXPECT_GE(whole, 20000);
                }
            }
        }
    }
}

/// Rows of up to 7 entries in random columns, and of some long rows with every `step`-th column.
template <class T, class Make>
CsrRows<T> long_rows(const Comm& comm, std::mt19937_64& generator, std::int64_t n,
                     std::int64_t distance, std::int64_t step, Make&& make) {
    const std::uint64_t seed = generator();
    return rows_from_callback<T>(
        comm, n, Symmetry::general, [=, &make](std::int64_t row, RowEntries<T>& entries) {
            std::mt19937_64 of_row(seed + static_cast<std::uint64_t>(row));
            if (row % distance == distance / 2) {
                for (std::int64_t j = row % step; j < n; j += step) {
                    entries.add(j, make(of_row));
                }
            } else if (row % 5 != 3) {
                std::set<std::int64_t> columns;
                for (auto count = of_row() % 8; count > 0; --count) {
                    columns.insert(static_cast<std::int64_t>(of_row() % n));
                }
                for (const std::int64_t j : columns) {
                    entries.add(j, make(of_row));
                }
            }
        });
}

template <class T>
class LongRowsTest : public ::testing::Test {};
TYPED_TEST_SUITE(LongRowsTest, Scalars, ScalarName);

/// `sums` and `sizes`: this rank's part of the dots and of their sums of absolute values.
template <class T>
void expect_dots(Context& ctx, const std::vector<T>& found, const std::vector<wide_t<T>>& sums,
                 const std::vector<double>& sizes, std::int64_t n) {
    for (std::size_t j = 0; j < sums.size(); ++j) {
        std::complex<double> total[] = {
            {static_cast<double>(std::real(sums[j])), static_cast<double>(std::imag(sums[j]))},
            {sizes[j], 0}};
        ctx.comm().sum(std::span<std::complex<double>>(total));
        EXPECT_LE(std::abs(widen(found[j]) - Wide(total[0].real(), total[0].imag())),
                  4 * static_cast<long double>(epsilon_v<T>) *
                      (std::sqrt(static_cast<long double>(n)) + 2) * total[1].real());
    }
}

/// Small integers, so that every sum is exact, in any order.
TYPED_TEST(LongRowsTest, GiveTheExactProductAndTheSameBitsTwice) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const struct {
        std::int64_t n, distance, step;
        std::vector<int> widths;
    } cases[] = {{700, 300, 1, {1, 2, 3, 4, 5, 8, 12, 16, 17, 33, 70}},
                 {5000, 1700, 3, {1, 6, 7, 11, 24, 64}},
                 {40000, 30000, 1, {1, 3, 8}}};
    for (const auto& c : cases) {
        if (test_place() == Place::host && c.n > 700) {
            continue;  // the host has no limits of long rows
        }
        const CsrRows<T> rows =
            long_rows<T>(ctx.comm(), generator, c.n, c.distance, c.step, integer_value<T>);
        const SparseStorage storage = storage_of(rows, Place::device);
        EXPECT_GT(ctx.comm().sum(storage.long_rows), 0);
        SparseMatrix<T> a(ctx, rows);
        const RowMap& map = rows.map;
        for (const int width : c.widths) {
            SCOPED_TRACE(std::to_string(c.n) + " rows, width " + std::to_string(width));
            const auto global_x = integer_global<T>(generator, c.n, width);
            const auto global_y = integer_global<T>(generator, c.n, width);
            const auto shifts = integer_global<T>(generator, 1, width);
            TestBlock<T> x(ctx, global_x, map, layouts[width % 3]);
            for (const bool fused : {false, true}) {
                const T beta(fused ? -1 : 0);
                std::vector<T> dots[2];
                std::optional<Global<T>> first;
                for (const int run : {0, 1}) {
                    TestBlock<T> y(ctx, fused ? global_y : poisoned_global<T>(c.n, width), map,
                                   layouts[(width + 1) % 3]);
                    ApplyOptions<T> options{T(2), beta};
                    if (fused) {
                        options.shift = shifts.values;
                        dots[run].resize(static_cast<std::size_t>(width));
                        options.dot_xy = dots[run];
                    }
                    a.apply_fused(ctx, x.view(), y.view(), options);
                    const Global<T> found = y.result();
                    if (first) {
                        expect_same_bits(found, *first);
                    }
                    first = found;
                }
                EXPECT_EQ(dots[0], dots[1]);
                std::vector<wide_t<T>> sums(static_cast<std::size_t>(width));
                std::vector<double> sizes(sums.size());
                for (std::int64_t i = 0; i < map.local_rows(); ++i) {
                    const std::int64_t row = map.first_row() + i;
                    const auto at = static_cast<std::size_t>(i);
                    for (int j = 0; j < width; ++j) {
                        wide_t<T> sum(0);
                        for (auto k = static_cast<std::size_t>(rows.row_start[at]);
                             k < static_cast<std::size_t>(rows.row_start[at + 1]); ++k) {
                            sum +=
                                wide_t<T>(rows.value[k]) * wide_t<T>(global_x(rows.column[k], j));
                        }
                        if (fused) {
                            sum -= wide_t<T>(shifts(0, j)) * wide_t<T>(global_x(row, j));
                        }
                        sum = wide_t<T>(T(2)) * sum + wide_t<T>(beta) * wide_t<T>(global_y(row, j));
                        ASSERT_EQ((*first)(i, j), static_cast<T>(sum))
                            << "row " << row << ", column " << j << ", fused " << fused;
                        const wide_t<T> own(global_x(row, j));
                        sums[static_cast<std::size_t>(j)] += reference::conjugate(own) * sum;
                        sizes[static_cast<std::size_t>(j)] +=
                            static_cast<double>(std::abs(own) * std::abs(sum));
                    }
                }
                if (fused) {
                    expect_dots(ctx, dots[0], sums, sizes, c.n);
                }
            }
        }
    }
}

TYPED_TEST(LongRowsTest, AreReadBackInOrder) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const std::int64_t n = 1500;
    const CsrRows<T> rows = long_rows<T>(ctx.comm(), generator, n, 700, 1, random_value<T>);
    SparseMatrix<T> a(ctx, rows);
    std::vector<std::vector<T>> found(static_cast<std::size_t>(rows.map.local_rows()));
    a.for_each_entry(ctx,
                     [&](std::size_t row, std::int64_t, T value) { found[row].push_back(value); });
    for (std::size_t i = 0; i < found.size(); ++i) {
        const std::vector<T> expected(rows.value.begin() + rows.row_start[i],
                                      rows.value.begin() + rows.row_start[i + 1]);
        ASSERT_EQ(found[i], expected) << "row " << i;
    }
    const CsrRows<T> block = a.diagonal_block(ctx);
    const std::int64_t first = rows.map.first_row();
    for (std::size_t i = 0; i < found.size(); ++i) {
        std::vector<std::int64_t> expected;
        for (auto k = static_cast<std::size_t>(rows.row_start[i]);
             k < static_cast<std::size_t>(rows.row_start[i + 1]); ++k) {
            if (rows.column[k] >= first && rows.column[k] < first + rows.map.local_rows()) {
                expected.push_back(rows.column[k]);
            }
        }
        const std::vector<std::int64_t> columns(block.column.begin() + block.row_start[i],
                                                block.column.begin() + block.row_start[i + 1]);
        ASSERT_EQ(columns, expected) << "row " << i;
    }
}

}  // namespace
}  // namespace quiver::test
