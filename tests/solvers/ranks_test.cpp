// SPDX-License-Identifier: BSD-3-Clause
// Several ranks: reductions and halos by every available way, the same results for all numbers of
// ranks, the same bits on repetition.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/rank_links.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

Device this_device() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return test::test_place() == Place::host ? Device::host()
                                             : Device::cuda(rank % std::max(1, device::count()));
}

/// The ways of reduction that the ranks of this test have.
std::vector<SumBy> all_ways(Context& ctx) {
    std::vector<SumBy> ways;
    RankLinks& links = ctx.service<RankLinks>();
    for (const SumBy way : {SumBy::peers, SumBy::nccl, SumBy::mpi}) {
        try {
            links.choose(way);
            ways.push_back(way);
        } catch (const UnsupportedError& error) {
            EXPECT_NE(std::string(error.what()).find(": "), std::string::npos) << error.what();
        }
    }
    links.choose(SumBy::automatic);
    return ways;
}

template <class T>
std::vector<T> random_values(std::mt19937_64& generator, std::size_t count) {
    std::uniform_real_distribution<real_t<T>> uniform(-1, 1);
    std::vector<T> values(count);
    for (T& value : values) {
        if constexpr (is_complex_v<T>) {
            value = T(uniform(generator), uniform(generator));
        } else {
            value = uniform(generator);
        }
    }
    return values;
}

template <class T>
class RankSums : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(RankSums, Scalars);

/// Each rank reduces its own numbers. For the reference, every rank knows the numbers of all ranks.
TYPED_TEST(RankSums, AreRightAndTheSameOnAllRanksByEveryWay) {
    using T = TypeParam;
    Context ctx = test::make_context();
    const Comm& comm = ctx.comm();
    auto generator = test::make_generator();
    RankLinks& links = ctx.service<RankLinks>();
    for (const SumBy way : all_ways(ctx)) {
        links.choose(way);
        // Counts below and above the capacity of one launch through peer memory, so that its slots
        // are reused several times.
        for (const std::size_t count : {1u, 2u, 63u, 4096u, 8192u, 8193u, 40000u, 64u}) {
            if (!links.sums_on_device(count * sizeof(T))) {
                continue;  // by MPI in host memory, as in the tests of Comm
            }
            std::vector<std::vector<T>> all;
            all.reserve(static_cast<std::size_t>(comm.size()));
            for (int rank = 0; rank < comm.size(); ++rank) {
                all.push_back(random_values<T>(generator, count));
            }
            const Buffer values = ctx.allocate(MemoryKind::device, count * sizeof(T), "a sum");
            std::vector<T> sums[2];
            for (auto& result : sums) {
                const auto& mine = all[static_cast<std::size_t>(comm.rank())];
                device::copy(values.as<void>(), mine.data(), count * sizeof(T), ctx.stream());
                links.sum(ctx, values.as<T>(), count);
                result.resize(count);
                device::copy(result.data(), values.as<void>(), count * sizeof(T), ctx.stream());
                ctx.synchronize();
                links.check();
            }
            EXPECT_EQ(std::memcmp(sums[0].data(), sums[1].data(), count * sizeof(T)), 0)
                << to_string(way) << ", " << count << ": a second sum has other bits";
            for (std::size_t i = 0; i < count; ++i) {
                test::wide_t<T> exact = 0;
                T in_order = 0;
                long double size = 0;
                for (const auto& part : all) {
                    exact += test::wide_t<T>(part[i]);
                    in_order = &part == &all.front() ? part[i] : in_order + part[i];
                    size += std::abs(test::wide_t<T>(part[i]));
                }
                if (way == SumBy::peers) {
                    ASSERT_EQ(sums[0][i], in_order) << count << ", element " << i;
                }
                ASSERT_LE(std::abs(test::wide_t<T>(sums[0][i]) - exact),
                          comm.size() * static_cast<long double>(epsilon_v<T>) * size)
                    << to_string(way) << ", " << count << ", element " << i;
            }
            std::vector<T> of_first = sums[0];
            comm.broadcast(of_first.data(), count * sizeof(T), 0);
            EXPECT_EQ(std::memcmp(of_first.data(), sums[0].data(), count * sizeof(T)), 0)
                << to_string(way) << ", " << count << ": not the same bits on all ranks";
        }
    }
}

TYPED_TEST(RankSums, OfProductsAgreeWithOneRankByEveryWay) {
    using T = TypeParam;
    Context ctx = test::make_context();
    const std::int64_t rows = 501;
    constexpr int m = 7;
    constexpr int n = 5;
    // One rank has all rows, in a Context of its own.
    Context alone(Comm(), this_device());
    const auto gram = [&](Context& where, Place small, T beta) {
        BlockVector<T> a(where, RowMap::by_rows(where.comm(), rows), m);
        BlockVector<T> b(where, a.row_map(), n);
        fill_random(where, 3, a);
        fill_random(where, 4, b);
        std::vector<T> c(m * n, T(2));
        if (small == Place::host) {
            tsmttsm(where, T(1), std::as_const(a).view(), std::as_const(b).view(), beta,
                    BlockView<T>(c.data(), m, n, n));
            return c;
        }
        const Buffer buffer = where.allocate(MemoryKind::device, c.size() * sizeof(T), "C");
        device::copy(buffer.as<void>(), c.data(), c.size() * sizeof(T), where.stream());
        tsmttsm(where, T(1), std::as_const(a).view(), std::as_const(b).view(), beta,
                BlockView<T>(buffer.as<T>(), m, n, n, Place::device));
        device::copy(c.data(), buffer.as<void>(), c.size() * sizeof(T), where.stream());
        where.synchronize();
        return c;
    };
    for (const SumBy way : all_ways(ctx)) {
        ctx.service<RankLinks>().choose(way);
        for (const Place small : {Place::host, Place::device}) {
            if (small == Place::device && ctx.place() == Place::host) {
                continue;
            }
            const std::vector<T> expected = gram(alone, small, T(3));
            const std::vector<T> sums = gram(ctx, small, T(3));
            // Entries are at most 1 in size (complex: sqrt(2)).
            const auto bound = 2 * test::sum_bound<T>(rows, T(1), 2.0L * rows, T(3), 2.0L);
            for (std::size_t i = 0; i < sums.size(); ++i) {
                EXPECT_LE(static_cast<long double>(std::abs(sums[i] - expected[i])), bound)
                    << to_string(way) << ", " << to_string(small) << ", element " << i;
            }
            const std::vector<T> again = gram(ctx, small, T(3));
            EXPECT_EQ(std::memcmp(again.data(), sums.data(), sums.size() * sizeof(T)), 0);
        }
    }
}

TEST(RankLinks, ReportTheirWayAndTheReason) {
    Context ctx = test::make_context();
    RankLinks& links = ctx.service<RankLinks>();
    const std::string sums = links.describe_sums();
    const std::string halos = links.describe_halos();
    if (ctx.place() == Place::host) {
        const char* const why =
            ctx.comm().size() == 1 ? "there is one rank" : "all ranks work on the host";
        EXPECT_EQ(sums, std::string("MPI, staged in host memory (") + why + ")");
        EXPECT_EQ(halos, sums);
        EXPECT_EQ(links.way_of(8), SumBy::mpi);
        EXPECT_THROW(links.choose(SumBy::peers), UnsupportedError);
        EXPECT_THROW(links.choose(SumBy::nccl), UnsupportedError);
    } else {
        if (ctx.comm().rank() == 0) {
            std::printf("[ LINKS    ] sums: %s; halos: %s\n", sums.c_str(), halos.c_str());
        }
        EXPECT_EQ(links.halos_on_device(), halos.find("MPI") == std::string::npos);
        EXPECT_EQ(links.sums_on_device(64), sums.find("MPI") == std::string::npos);
    }
}

TEST(RankLinks, AMissingRankIsAnError) {
    Context ctx = test::make_context();
    RankLinks& links = ctx.service<RankLinks>();
    try {
        links.choose(SumBy::peers);
    } catch (const UnsupportedError& error) {
        GTEST_SKIP() << error.what();
    }
    links.set_most_wait(0.2);
    if (ctx.comm().rank() == 0) {
        const Buffer values = ctx.allocate(MemoryKind::device, 8 * sizeof(double), "a sum");
        device::set_zero(values.as<void>(), values.bytes(), ctx.stream());
        links.sum(ctx, values.as<double>(), 8);
        std::vector<double> sums(8);
        device::copy(sums.data(), values.as<void>(), values.bytes(), ctx.stream());
        ctx.synchronize();
        EXPECT_THROW(links.check(), DeviceError);
        EXPECT_TRUE(std::all_of(sums.begin(), sums.end(), [](double x) { return x != x; }));
    }
    ctx.comm().barrier();
}

/// Runs f(Context) on the first `count` ranks.
template <class F>
void on_first(int count, F&& f) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < count ? 0 : MPI_UNDEFINED, rank, &part);
    if (part != MPI_COMM_NULL) {
        Context ctx(Comm(part), this_device());
        MPI_Comm_free(&part);
        f(ctx);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

template <class T>
class RankAnswers : public ::testing::Test {};
TYPED_TEST_SUITE(RankAnswers, Scalars);

TYPED_TEST(RankAnswers, AreTheSameForEveryNumberOfRanksAndHaveTheSameBitsAgain) {
    using T = TypeParam;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const auto spectrum = test::laplace3d_spectrum(9, 8, 7);
    for (int count = 1; count <= ranks; ++count) {
        on_first(count, [&](Context& ctx) {
            auto a = test::laplace3d<T>(ctx, 9, 8, 7);
            EigenOptions options;
            options.k = 6;
            options.block = 3;
            const auto first = block_lanczos(ctx, a, options);
            test::check_pairs(ctx, a, first, spectrum, options.k, options.which);
            const auto again = block_lanczos(ctx, a, options);
            EXPECT_EQ(first.eigenvalues, again.eigenvalues) << count << " ranks";
            EXPECT_EQ(first.residuals, again.residuals) << count << " ranks";
        });
    }
}

/// The columns of up to two entries of each row, which have the values pattern_factor. The diagonal
/// is 2.
struct Pattern {
    const char* name;
    std::int64_t (*other)(std::int64_t row, std::int64_t rows, int which);  // -1: none
};
constexpr std::int64_t pattern_rows = 403;
constexpr int pattern_factor[] = {1, -3};
constexpr Pattern patterns[] = {
    {"scattered rows of all other ranks",
     [](std::int64_t row, std::int64_t rows, int which) -> std::int64_t {
         if (which == 0) {
             return row % 3 == 0 ? (row * 7 + 5) % rows : -1;
         }
         return row % 5 == 0 ? (row + rows / 2) % rows : -1;
     }},
    {"a run of rows of the neighbours, as with planes of a grid",
     [](std::int64_t row, std::int64_t rows, int which) -> std::int64_t {
         const std::int64_t to = which == 0 ? row - 11 : row + 11;
         return to < 0 || to >= rows ? -1 : to;
     }},
    {"only the first row needs others, the last ones",
     [](std::int64_t row, std::int64_t rows, int which) -> std::int64_t {
         return row == 0 ? rows - 1 - which : -1;
     }},
    {"none", [](std::int64_t, std::int64_t, int) -> std::int64_t { return -1; }},
};

/// Products of widths that grow and shrink, with rows that need neighbouring or distant rows.
TYPED_TEST(RankAnswers, OfProductsAreTheSameForEveryNumberOfRanks) {
    using T = TypeParam;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    constexpr int widest = 19;
    const auto value = [](std::int64_t row, int j) {
        return T(static_cast<real_t<T>>((row % 101) * (j + 1)));
    };
    const auto check = [&](Context& ctx, const Pattern& pattern) {
        const std::int64_t rows = pattern_rows;
        auto a =
            test::matrix_from_rows<T>(ctx, rows, [&](std::int64_t row, RowEntries<T>& entries) {
                entries.add(row, T(2));
                for (int which = 0; which < 2; ++which) {
                    const std::int64_t other = pattern.other(row, rows, which);
                    if (other >= 0) {
                        entries.add(other, T(static_cast<real_t<T>>(pattern_factor[which])));
                    }
                }
            });
        const std::int64_t first = a.row_map().first_row();
        const std::int64_t own = a.row_map().local_rows();
        BlockVector<T> all_x(ctx, a.row_map(), widest);
        BlockVector<T> all_y(ctx, a.row_map(), widest);
        std::vector<T> host(static_cast<std::size_t>(own * widest));
        for (const int width : {1, 8, 3, 16, 8}) {
            for (const bool apart : {false, true}) {
                BlockVector<T> narrow_x(ctx, a.row_map(), width);
                BlockVector<T> narrow_y(ctx, a.row_map(), width);
                const BlockView<T> x =
                    apart ? all_x.view().columns(widest - width, width) : narrow_x.view();
                const BlockView<T> y = apart ? all_y.view().columns(0, width) : narrow_y.view();
                const BlockView<T> view(host.data(), own, width, width);
                // X changes as soon as the product returns: by then the rows to send must have been
                // read.
                for (int factor = 1; factor <= 3; ++factor) {
                    for (std::int64_t i = 0; i < own; ++i) {
                        for (int j = 0; j < width; ++j) {
                            view(i, j) = value(first + i, j) * T(static_cast<real_t<T>>(factor));
                        }
                    }
                    copy(ctx, BlockView<const T>(view), x);
                    a.apply(ctx, BlockView<const T>(x), y);
                }
                fill(ctx, T(7), x);
                copy(ctx, BlockView<const T>(y), view);
                for (std::int64_t i = 0; i < own; ++i) {
                    const std::int64_t row = first + i;
                    for (int j = 0; j < width; ++j) {
                        T exact = T(6) * value(row, j);
                        for (int which = 0; which < 2; ++which) {
                            const std::int64_t other = pattern.other(row, rows, which);
                            if (other >= 0) {
                                exact += T(static_cast<real_t<T>>(3 * pattern_factor[which])) *
                                         value(other, j);
                            }
                        }
                        ASSERT_EQ(view(i, j), exact)
                            << pattern.name << ": " << ctx.comm().size() << " ranks, row " << row
                            << ", column " << j << " of " << width << (apart ? ", apart" : "");
                    }
                }
            }
        }
    };
    for (int count = 1; count <= ranks; ++count) {
        on_first(count, [&](Context& ctx) {
            for (const Pattern& pattern : patterns) {
                check(ctx, pattern);
            }
        });
    }
}

/// Enough rows for a halo in several stages. The numbers are small integers, exact in every scalar.
TYPED_TEST(RankAnswers, OfProductsWithManyHaloRowsAreExact) {
    using T = TypeParam;
    Context ctx = test::make_context();
    const std::int64_t each = ctx.place() == Place::device ? 1'000'000 : 3'000;
    const std::int64_t rows = each * ctx.comm().size();
    const auto partner = [rows, each](std::int64_t row, int which) {
        return which == 0   ? (row + each + 1 + row % 2) % rows
               : which == 1 ? rows - 1 - row
                            : (row * 5 + 3) % rows;
    };
    auto a = test::matrix_from_rows<T>(ctx, rows, [&](std::int64_t row, RowEntries<T>& entries) {
        entries.add(row, T(1));
        for (int which = 0; which < 3 && row % 7 != 0; ++which) {
            entries.add(partner(row, which), T(static_cast<real_t<T>>(which + 2)));
        }
    });
    const auto value = [](std::int64_t row, int j) {
        return static_cast<real_t<T>>(row % 97 + 3 * j);
    };
    const std::int64_t first = a.row_map().first_row();
    const std::int64_t own = a.row_map().local_rows();
    for (const int width : {1, 4}) {
        BlockVector<T> x(ctx, a.row_map(), width);
        BlockVector<T> y(ctx, a.row_map(), width);
        std::vector<T> host(static_cast<std::size_t>(own * width));
        const BlockView<T> view(host.data(), own, width, width);
        for (std::int64_t i = 0; i < own; ++i) {
            for (int j = 0; j < width; ++j) {
                view(i, j) = T(value(first + i, j));
            }
        }
        copy(ctx, BlockView<const T>(view), x.view());
        std::vector<T> yy(static_cast<std::size_t>(width));
        ApplyOptions<T> options;
        options.dot_yy = yy;
        for (int repeat = 0; repeat < 3; ++repeat) {
            a.apply(ctx, std::as_const(x).view(), y.view());
        }
        a.apply_fused(ctx, std::as_const(x).view(), y.view(), options);
        copy(ctx, std::as_const(y).view(), view);
        double squares = 0;
        for (std::int64_t i = 0; i < own; ++i) {
            const std::int64_t row = first + i;
            for (int j = 0; j < width; ++j) {
                real_t<T> exact = value(row, j);
                for (int which = 0; which < 3 && row % 7 != 0; ++which) {
                    exact += static_cast<real_t<T>>(which + 2) * value(partner(row, which), j);
                }
                ASSERT_EQ(view(i, j), T(exact)) << "row " << row << ", column " << j;
                squares += j == 0 ? static_cast<double>(exact) * static_cast<double>(exact) : 0;
            }
        }
        ctx.comm().sum(std::span<double>(&squares, 1));
        EXPECT_NEAR(static_cast<double>(std::real(yy[0])), squares,
                    std::sqrt(64.0 * static_cast<double>(rows)) *
                        static_cast<double>(epsilon_v<T>) * squares);
    }
}

/// Matrices are created and destroyed, and several exist at once: their halos reuse the resources
/// of earlier matrices.
TEST(RankLinks, ServeMatricesThatAreCreatedAndDestroyed) {
    Context ctx = test::make_context();
    std::vector<SparseMatrix<double>> kept;
    const auto product_of_ones = [&](SparseMatrix<double>& a, int width, double expected) {
        BlockVector<double> x(ctx, a.row_map(), width);
        BlockVector<double> y(ctx, a.row_map(), width);
        fill(ctx, 1.0, x.view());
        a.apply(ctx, std::as_const(x).view(), y.view());
        std::vector<double> host(static_cast<std::size_t>(a.row_map().local_rows() * width));
        const BlockView<double> view(host.data(), a.row_map().local_rows(), width, width);
        copy(ctx, std::as_const(y).view(), view);
        EXPECT_TRUE(
            std::all_of(host.begin(), host.end(), [&](double value) { return value == expected; }));
    };
    for (int turn = 0; turn < 8; ++turn) {
        const std::int64_t rows = 97 + 40 * turn;
        auto a = test::matrix_from_rows<double>(
            ctx, rows, [&](std::int64_t row, RowEntries<double>& entries) {
                entries.add((row + rows / 2) % rows, turn + 1.0);
                entries.add((row + rows / 3) % rows, 1.0);
            });
        for (const int width : {2, 9, 4}) {
            product_of_ones(a, width, turn + 2.0);
        }
        if (turn % 3 == 0) {
            kept.push_back(std::move(a));
        }
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
        product_of_ones(kept[i], 9, 3.0 * static_cast<double>(i) + 2.0);
    }
}

TEST(MixedRanks, OnHostAndGpuGiveTheSameAnswers) {
    if (test::test_place() == Place::host) {
        GTEST_SKIP() << "needs a GPU";
    }
    const Comm world(MPI_COMM_WORLD);
    const bool on_host = world.rank() == 0;
    Context ctx(world, on_host ? Device::host() : this_device());
    if (world.size() > 1) {
        EXPECT_EQ(ctx.service<RankLinks>().describe_sums(),
                  "MPI, staged in host memory (some ranks work on the host, others on GPUs)");
    }
    auto a = test::laplace3d<double>(ctx, 12, 11, 10);
    EigenOptions options;
    options.k = 5;
    const auto result = block_lanczos(ctx, a, options);
    test::check_pairs(ctx, a, result, test::laplace3d_spectrum(12, 11, 10), options.k,
                      options.which);
}

}  // namespace
}  // namespace quiver
