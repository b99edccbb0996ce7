// SPDX-License-Identifier: BSD-3-Clause
// Tests that SELL-C-sigma and compressed rows give the same product, which format is chosen
// automatically, and which formats a caller may request.
#include <cstring>
#include <numeric>
#include <span>

#include "kernels/dispatch.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_layout.hpp"
#include "tests/kernels/sparse/grid.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"

namespace quiver::test {
namespace {

const std::vector<int> product_widths{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 32, 33, 64};

SparseFormat sell(int chunk, std::int64_t sigma) {
    return {.kind = SparseFormat::sell, .chunk = chunk, .sigma = sigma};
}

/// Rows of 0 to 6 entries in random columns; every fifth row is empty. Row `dense_row`, if it
/// exists, has all columns.
template <class T, class Make>
CsrRows<T> uneven_rows(const Comm& comm, std::mt19937_64& generator, std::int64_t n,
                       std::int64_t dense_row, Make&& make) {
    std::vector<Entry<T>> entries;
    const auto size = static_cast<std::uint64_t>(n);
    for (std::int64_t i = 0; i < n; ++i) {
        std::vector<std::int64_t> columns;
        if (i == dense_row) {
            columns.resize(size);
            std::iota(columns.begin(), columns.end(), std::int64_t{0});
        } else if (i % 5 != 3) {
            for (auto count = generator() % 7; count > 0; --count) {
                columns.push_back(static_cast<std::int64_t>(generator() % size));
            }
            std::sort(columns.begin(), columns.end());
            columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
        }
        for (const std::int64_t column : columns) {
            const T value = make(generator);
            if (comm.rank() == 0) {
                entries.push_back({i, column, value});
            }
        }
    }
    return rows_from_entries(comm, n, n, Symmetry::general, std::move(entries), Partition::by_rows);
}

template <class T>
class SparseFormatTest : public ::testing::Test {
  protected:
    /// Checks that Y = alpha (A - shift) X + beta Y is exact on small integers, and that the dots
    /// are within a bound.
    void check(Context& ctx, SparseMatrix<T>& a, const CsrRows<T>& rows, std::mt19937_64& generator,
               int width, Layout layout, bool fused) {
        using Exact = wide_t<T>;
        const RowMap& map = rows.map;
        const auto global_x = integer_global<T>(generator, map.global_rows(), width);
        const auto global_y = fused ? integer_global<T>(generator, map.global_rows(), width)
                                    : poisoned_global<T>(map.global_rows(), width);
        const auto shifts = integer_global<T>(generator, 1, width);
        TestBlock<T> x(ctx, global_x, map, layout);
        TestBlock<T> y(ctx, global_y, map, layout);
        const T alpha(2);
        const T beta(fused ? -1 : 0);
        const auto dot_size = static_cast<std::size_t>(fused ? width : 0);
        std::vector<T> yy(dot_size);
        std::vector<T> xy(dot_size);
        spmmv<T>(ctx, a, x.view(), y.view(),
                 {alpha, beta, fused ? std::span<const T>(shifts.values) : std::span<const T>(), yy,
                  xy});
        const Global<T> found = y.result();
        x.expect_unchanged();

        Global<T> expected(map.local_rows(), width);
        std::vector<Exact> sums(2 * dot_size);
        std::vector<long double> sizes(2 * dot_size);
        for (std::int64_t i = 0; i < map.local_rows(); ++i) {
            for (int j = 0; j < width; ++j) {
                Exact sum(0);
                for (auto k = static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i)]);
                     k < static_cast<std::size_t>(rows.row_start[static_cast<std::size_t>(i) + 1]);
                     ++k) {
                    sum += Exact(rows.value[k]) * Exact(global_x(rows.column[k], j));
                }
                const std::int64_t row = map.first_row() + i;
                const Exact own(global_x(row, j));
                if (fused) {
                    sum -= Exact(shifts(0, j)) * own;
                }
                sum *= Exact(alpha);
                if (fused) {
                    sum += Exact(beta) * Exact(global_y(row, j));
                    const auto column = static_cast<std::size_t>(j);
                    const Exact value = sum;
                    sums[column] += static_cast<Exact>(std::norm(value));
                    sums[dot_size + column] += reference::conjugate(own) * value;
                    sizes[column] += std::norm(value);
                    sizes[dot_size + column] += std::abs(own) * std::abs(value);
                }
                expected(i, j) = static_cast<T>(sum);
            }
        }
        EXPECT_TRUE(found.values == expected.values)
            << "width " << width << ", ld " << width + layout.padding << ", fused " << fused;
        for (std::size_t d = 0; d < sums.size(); ++d) {
            std::complex<double> total[2] = {narrow_sum(sums[d]),
                                             {static_cast<double>(sizes[d]), 0}};
            ctx.comm().sum(std::span<std::complex<double>>(total));
            const T dot = d < dot_size ? yy[d] : xy[d - dot_size];
            EXPECT_LE(std::abs(widen(dot) - Wide(total[0].real(), total[0].imag())),
                      4 * static_cast<long double>(epsilon_v<T>) *
                          (std::sqrt(static_cast<long double>(map.global_rows())) + 2) *
                          total[1].real())
                << "dot " << d << ", width " << width;
        }
    }

  private:
    template <class Exact>
    static std::complex<double> narrow_sum(Exact sum) {
        return {static_cast<double>(std::real(sum)), static_cast<double>(std::imag(sum))};
    }
};
TYPED_TEST_SUITE(SparseFormatTest, Scalars, ScalarName);

TYPED_TEST(SparseFormatTest, EveryFormatGivesTheExactProduct) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const SparseFormat formats[] = {{.kind = SparseFormat::compressed_rows},
                                    {},
                                    {.width = 1},
                                    {.kind = SparseFormat::sell},
                                    sell(1, 0),
                                    sell(4, 1),
                                    sell(8, 64),
                                    sell(16, 1 << 20),
                                    sell(32, 1),
                                    sell(32, 64),
                                    {.tile = 32},
                                    sell(256, 256)};
    std::size_t turn = 0;
    for (const std::int64_t n : {1, 5, 31, 64, 203}) {
        for (const std::int64_t dense_row : {std::int64_t{-1}, n / 2}) {
            const CsrRows<T> rows =
                uneven_rows<T>(ctx.comm(), generator, n, dense_row, integer_value<T>);
            for (const SparseFormat& format : formats) {
                SparseMatrix<T> a(ctx, rows, format);
                // Over all matrices, every format meets every width and every layout.
                for (const int width : product_widths) {
                    const bool all = n == 203;
                    if (all || turn % 5 == 0) {
                        this->check(ctx, a, rows, generator, width, layouts[turn % 3], false);
                        this->check(ctx, a, rows, generator, width, layouts[(turn + 1) % 3], true);
                    }
                    ++turn;
                }
            }
        }
    }
}

/// A copy of a host array in the place of the Context.
template <class V>
Buffer placed(Context& ctx, const std::vector<V>& values) {
    Buffer buffer = ctx.allocate(memory_kind(ctx.place()),
                                 std::max<std::size_t>(values.size(), 1) * sizeof(V), "test array");
    if (ctx.place() == Place::device) {
        device::copy(buffer.as<void>(), values.data(), values.size() * sizeof(V), ctx.stream());
        ctx.synchronize();
    } else {
        std::memcpy(buffer.as<void>(), values.data(), values.size() * sizeof(V));
    }
    return buffer;
}

TYPED_TEST(SparseFormatTest, LeavesAgreeWithTheReferenceForBothIndexWidths) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const std::int64_t own = 150;
    const std::int64_t halo_rows = 9;
    for (const int chunk : {1, 8, 32}) {
        // Rows in random order, columns anywhere in X and the halo.
        std::vector<std::int64_t> row_start{0};
        for (std::int64_t i = 0; i < own; ++i) {
            row_start.push_back(row_start.back() + static_cast<std::int64_t>(generator() % 9));
        }
        std::vector<std::int64_t> order(static_cast<std::size_t>(own));
        std::iota(order.begin(), order.end(), std::int64_t{0});
        std::shuffle(order.begin(), order.end(), generator);
        const SparseLayout layout(
            {chunk == 1 ? SparseFormat{SparseFormat::compressed_rows} : sell(chunk, 2 * chunk),
             ctx.place(), sizeof(T), is_complex_v<T>},
            row_start, order, own);
        std::vector<std::int64_t> column64(static_cast<std::size_t>(layout.stored()), -1);
        std::vector<T> value(column64.size(), poison<T>());
        for (std::int64_t s = 0; s < own; ++s) {
            const auto row = static_cast<std::size_t>(layout.row_of(s));
            for (std::int64_t k = 0; k < row_start[row + 1] - row_start[row]; ++k) {
                const auto at = static_cast<std::size_t>(
                    layout.start[static_cast<std::size_t>(s / chunk)] + k * chunk + s % chunk);
                column64[at] = static_cast<std::int64_t>(generator() % (own + halo_rows));
                value[at] = integer_value<T>(generator);
            }
        }
        const std::vector<std::int32_t> column32(column64.begin(), column64.end());
        const std::vector<std::int32_t> list32(layout.row.begin(), layout.row.end());
        for (const int width : {1, 2, 5, 16}) {
            const auto block = [&](std::int64_t rows) {
                return integer_global<T>(generator, rows, width).values;
            };
            const std::vector<T> x = block(own);
            const std::vector<T> halo = block(halo_rows);
            const std::vector<T> y = block(own);
            SpmmvArgs<T> args{};
            args.rows = own;
            args.chunk = chunk;
            args.entries = layout.stored();
            args.width = width;
            args.x_rows = args.y_rows = own;
            args.alpha = T(1);
            args.beta = T(2);
            args.shift = T(3);
            args.ldx = args.ldy = width;

            std::vector<T> expected = y;
            SpmmvArgs<T> plain = args;
            plain.list.wide = layout.row.data();
            plain.start = layout.start.data();
            plain.column64 = column64.data();
            plain.value = value.data();
            plain.x = x.data();
            plain.halo = halo.data();
            plain.y = expected.data();
            reference::spmmv<wide_t<T>>(plain);

            for (const bool wide : {false, true}) {
                const Buffer buffers[] = {placed(ctx, list32),       placed(ctx, layout.row),
                                          placed(ctx, layout.start), placed(ctx, layout.full),
                                          placed(ctx, column32),     placed(ctx, column64),
                                          placed(ctx, value),        placed(ctx, x),
                                          placed(ctx, halo),         placed(ctx, y)};
                args.list.narrow = wide ? nullptr : buffers[0].template as<std::int32_t>();
                args.list.wide = wide ? buffers[1].template as<std::int64_t>() : nullptr;
                args.start = buffers[2].template as<std::int64_t>();
                args.full = chunk == 1 ? nullptr : buffers[3].template as<std::int32_t>();
                args.column32 = wide ? nullptr : buffers[4].template as<std::int32_t>();
                args.column64 = wide ? buffers[5].template as<std::int64_t>() : nullptr;
                args.value = buffers[6].template as<T>();
                args.x = buffers[7].template as<T>();
                args.halo = buffers[8].template as<T>();
                args.y = buffers[9].template as<T>();
                run_leaf(ctx, operations::spmmv.leaf, args);
                std::vector<T> found(y.size());
                copy(ctx, BlockView<const T>(args.y, own, width, width, ctx.place()),
                     BlockView<T>(found.data(), own, width, width));
                EXPECT_TRUE(found == expected)
                    << "chunk " << chunk << ", width " << width << ", 64-bit indices " << wide;
            }
        }
    }
}

TYPED_TEST(SparseFormatTest, LeavesKnowRunsOfRows) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    const Grid grid(11);  // 1331 rows: the last run is not full
    const SparseLayout layout({{.kind = SparseFormat::sell, .chunk = 32, .sigma = 1, .tile = 64},
                               Place::device,
                               sizeof(T),
                               is_complex_v<T>},
                              grid.row_start, {}, grid.rows(), grid.columns());
    ASSERT_GE(layout.part[0].run, 16);
    std::vector<std::int32_t> column(static_cast<std::size_t>(layout.stored()), -1);
    std::vector<T> value(column.size(), poison<T>());
    const std::vector<std::int64_t> first_rows = layout.list();
    const std::vector<std::int32_t> list(first_rows.begin(), first_rows.end());
    for (std::int64_t s = 0; s < grid.rows(); ++s) {
        const auto row = static_cast<std::size_t>(layout.row_of(s));
        for (std::int64_t k = 0; k < grid.row_start[row + 1] - grid.row_start[row]; ++k) {
            const auto at = static_cast<std::size_t>(
                layout.start[static_cast<std::size_t>(s / 32)] + k * 32 + s % 32);
            column[at] = static_cast<std::int32_t>(
                grid.column[static_cast<std::size_t>(grid.row_start[row] + k)]);
            value[at] = integer_value<T>(generator);
        }
    }
    for (const int width : product_widths) {
        const auto x = integer_global<T>(generator, grid.rows(), width).values;
        const auto y = integer_global<T>(generator, grid.rows(), width).values;
        SpmmvArgs<T> args{};
        args.rows = args.x_rows = args.y_rows = grid.rows();
        args.chunk = 32;
        args.list.log_run = std::countr_zero(static_cast<unsigned>(layout.part[0].run));
        args.tile = layout.tile;
        args.entries = layout.stored();
        args.width = width;
        args.alpha = T(2);
        args.beta = T(static_cast<real_t<T>>(width % 2));
        args.ldx = args.ldy = width;
        std::vector<T> expected = y;
        SpmmvArgs<T> plain = args;
        plain.list.log_run = 0;
        plain.list.wide = layout.row.data();
        plain.start = layout.start.data();
        plain.column32 = column.data();
        plain.value = value.data();
        plain.x = x.data();
        plain.y = expected.data();
        reference::spmmv<wide_t<T>>(plain);

        const Buffer buffers[] = {placed(ctx, list),   placed(ctx, layout.start),
                                  placed(ctx, column), placed(ctx, value),
                                  placed(ctx, x),      placed(ctx, y)};
        args.list.narrow = buffers[0].template as<std::int32_t>();
        args.start = buffers[1].template as<std::int64_t>();
        args.column32 = buffers[2].template as<std::int32_t>();
        args.value = buffers[3].template as<T>();
        args.x = buffers[4].template as<T>();
        args.y = buffers[5].template as<T>();
        run_leaf(ctx, operations::spmmv.leaf, args);
        std::vector<T> found(y.size());
        copy(ctx, BlockView<const T>(args.y, grid.rows(), width, width, ctx.place()),
             BlockView<T>(found.data(), grid.rows(), width, width));
        EXPECT_TRUE(found == expected) << "width " << width;
    }
}

TYPED_TEST(SparseFormatTest, HostResultsHaveTheSameBitsInEveryFormat) {
    using T = TypeParam;
    if (test_place() == Place::device) {
        GTEST_SKIP() << "on a device, the lanes of a warp share a row of compressed rows";
    }
    Context ctx = make_context();
    auto generator = make_generator();
    const std::int64_t n = 401;
    const CsrRows<T> rows = uneven_rows<T>(ctx.comm(), generator, n, 7, random_value<T>);
    for (const int width : product_widths) {
        const auto global = random_global<T>(generator, n, width);
        std::optional<Global<T>> first;
        for (const SparseFormat& format :
             {SparseFormat{SparseFormat::compressed_rows}, sell(8, 1), sell(16, 32), sell(32, 0)}) {
            if (width == 1 && format.kind == SparseFormat::compressed_rows) {
                continue;  // AVX-512 adds the entries of a row in another order
            }
            SparseMatrix<T> a(ctx, rows, format);
            TestBlock<T> x(ctx, global, rows.map, layouts[0]);
            TestBlock<T> y(ctx, poisoned_global<T>(n, width), rows.map, layouts[1]);
            a.apply(ctx, x.view(), y.view());
            const Global<T> found = y.result();
            if (first) {
                expect_same_bits(found, *first);
            }
            first = found;
        }
    }
}

TYPED_TEST(SparseFormatTest, StorageIsKnownWithoutAMatrix) {
    using T = TypeParam;
    Context ctx = make_context();
    auto generator = make_generator();
    for (const std::int64_t n : {0, 1, 40, 1000}) {
        const CsrRows<T> rows = uneven_rows<T>(ctx.comm(), generator, n, 7, random_value<T>);
        for (const SparseFormat& format :
             {SparseFormat{}, SparseFormat{.width = 1}, sell(8, 1), sell(16, 64), sell(32, 0)}) {
            const SparseMatrix<T> a(ctx, rows, format);
            const SparseStorage storage = storage_of(rows, ctx.place(), format);
            EXPECT_EQ(storage.format.kind, a.format().kind);
            EXPECT_EQ(storage.format.chunk, a.format().chunk);
            EXPECT_EQ(storage.format.sigma, a.format().sigma);
            if (rows.nonzeros() > 0) {
                EXPECT_EQ(
                    static_cast<double>(storage.entries) / static_cast<double>(rows.nonzeros()),
                    a.padding());
            }
        }
    }
}

TYPED_TEST(SparseFormatTest, PaddingTouchesNoOtherRow) {
    using T = TypeParam;
    Context ctx = make_context();
    // Row 0 has all columns, the other rows only the diagonal. Row 0 of X is NaN, so only row 0 of
    // Y may be NaN.
    const std::int64_t n = 70;
    const CsrRows<T> rows = rows_from_callback<T>(
        ctx.comm(), n, Symmetry::general, [](std::int64_t row, RowEntries<T>& entries) {
            for (std::int64_t j = 0; j < (row == 0 ? n : 1); ++j) {
                entries.add(row + j, T(2));
            }
        });
    for (const SparseFormat& format : {sell(8, 1), sell(32, 64)}) {
        SparseMatrix<T> a(ctx, rows, format);
        for (const int width : {1, 4, 9}) {
            Global<T> global(n, width, [] { return T(1); });
            for (int j = 0; j < width; ++j) {
                global(0, j) = poison<T>();
            }
            TestBlock<T> x(ctx, global, rows.map, layouts[0]);
            TestBlock<T> y(ctx, poisoned_global<T>(n, width), rows.map, layouts[0]);
            a.apply(ctx, x.view(), y.view());
            const Global<T> found = y.result();
            for (std::int64_t i = 0; i < found.rows; ++i) {
                if (rows.map.first_row() + i > 0) {
                    EXPECT_EQ(found(i, 0), T(2)) << "row " << rows.map.first_row() + i;
                } else {
                    EXPECT_FALSE(is_finite(found(i, 0)));
                }
            }
        }
    }
}

TEST(SparseFormat, IsChosenByPlaceWidthAndRowLengths) {
    Context ctx = make_context();
    const bool device = ctx.place() == Place::device;
    const auto kind = [&]<class T>(const CsrRows<T>& rows, int width) {
        return SparseMatrix<T>(ctx, rows, {.width = width}).format().kind;
    };
    const auto banded = [&]<class T>(T value) {
        return rows_from_callback<T>(ctx.comm(), 4096, Symmetry::general,
                                     [value](std::int64_t row, RowEntries<T>& entries) {
                                         for (std::int64_t k = 0; k < 5; ++k) {
                                             entries.add((row + k) % 4096, value);
                                         }
                                     });
    };
    const auto vectors = SparseFormat::sell;
    const auto host_rows = device ? SparseFormat::sell : SparseFormat::compressed_rows;
    EXPECT_EQ(kind(banded(1.0), 0), host_rows);
    EXPECT_EQ(kind(banded(1.0f), 1), vectors);
    EXPECT_EQ(kind(banded(1.0), 8), host_rows);
    EXPECT_EQ(kind(banded(std::complex<double>(1)), 1), host_rows);

    const SparseMatrix<double> even(ctx, banded(1.0));
    EXPECT_EQ(even.format().sigma, 1);
    EXPECT_LE(even.padding(), 1.05);
    if (device) {
        EXPECT_EQ(even.format().chunk, 32);
    }

    // Sorting avoids the padding of rows with 7 and 1 entries in turn. It does not help eight rows
    // with 500 entries, which do not fill a chunk.
    const auto by_turns = [&](std::int64_t period, std::int64_t length) {
        return rows_from_callback<double>(ctx.comm(), 4096, Symmetry::general,
                                          [=](std::int64_t row, RowEntries<double>& entries) {
                                              for (std::int64_t k = 0;
                                                   k < (row % period == 0 ? length : 1); ++k) {
                                                  entries.add((row + k) % 4096, 1.0);
                                              }
                                          });
    };
    const SparseMatrix<double> sorted(ctx, by_turns(2, 7), {.width = 1});
    EXPECT_EQ(sorted.format().kind, SparseFormat::sell);
    EXPECT_GT(sorted.format().sigma, 1);
    EXPECT_LE(sorted.padding(), 1.1);
    const SparseMatrix<double> unsorted(ctx, by_turns(2, 7), sell(32, 1));
    EXPECT_EQ(unsorted.format().sigma, 1);
    EXPECT_NEAR(unsorted.padding(), 7 / 4.0, 0.15);  // 0.15: the last chunk of each part
    // A device stores these rows apart.
    const SparseMatrix<double> long_rows(ctx, by_turns(512, 500));
    EXPECT_EQ(long_rows.format().kind, device ? SparseFormat::sell : SparseFormat::compressed_rows);
    EXPECT_EQ(long_rows.format().chunk, device ? 32 : 1);
    EXPECT_NEAR(long_rows.padding(), 1.0, device ? 0.05 : 0.0);
}

TEST(SparseFormat, RefusesInvalidInput) {
    Context ctx = make_context();
    const auto message = [&](const SparseFormat& format) {
        return message_of<InputError>(ctx.comm(), [&] {
            SparseMatrix<double>(ctx,
                                 rows_from_entries<double>(ctx.comm(), 9, 9, Symmetry::general,
                                                           {{0, 1, 1.0}, {5, 2, 1.0}}),
                                 format);
        });
    };
    EXPECT_EQ(message(sell(4, 8)), "");
    EXPECT_EQ(
        message(sell(12, 0)),
        "sparse format: chunk 12 and sigma 0 for blocks of width 0: the chunk must be a power of "
        "two, 1 to 256, or 0 for the library's choice");
    for (const SparseFormat& bad :
         {sell(512, 0), sell(-1, 0), sell(8, 12), sell(8, -8), sell(0, 64),
          SparseFormat{.kind = SparseFormat::compressed_rows, .chunk = 8},
          SparseFormat{.kind = SparseFormat::automatic, .chunk = 8}, SparseFormat{.width = -1}}) {
        const std::string text = message(bad);
        EXPECT_NE(text.find("chunk " + std::to_string(bad.chunk)), std::string::npos) << text;
        EXPECT_NE(text.find("sigma " + std::to_string(bad.sigma)), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace quiver::test
