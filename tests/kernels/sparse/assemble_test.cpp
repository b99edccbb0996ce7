// SPDX-License-Identifier: BSD-3-Clause
// Tests that row callbacks, the caller's CSR arrays and scattered entries give the same matrix on
// any number of ranks.
#include "kernels/sparse/assemble.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/address_space_limit.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

template <class T>
class AssembleTest : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(AssembleTest, Scalars);

/// Entries of an n x m matrix in random order with duplicates; row n / 2 is empty.
template <class T>
std::vector<Entry<T>> random_entries(std::mt19937_64& generator, std::int64_t n, std::int64_t m,
                                     int count) {
    std::vector<Entry<T>> entries;
    for (int k = 0; k < count; ++k) {
        const auto row = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(n));
        const auto column = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(m));
        const std::complex<double> value(static_cast<double>(generator() % 1000) / 7 - 60,
                                         static_cast<double>(generator() % 1000) / 11);
        if (row != n / 2) {
            entries.push_back({row, column, narrow<T>(value)});
        }
    }
    return entries;
}

/// Sums the entries of each position, duplicates in ascending order, as documented in assemble.cpp.
template <class T>
Dense sum_entries(std::vector<Entry<T>> entries, std::int64_t n, std::int64_t m) {
    std::sort(entries.begin(), entries.end(), [](const Entry<T>& a, const Entry<T>& b) {
        const Wide left = widen(a.value);
        const Wide right = widen(b.value);
        return std::tuple(left.real(), left.imag()) < std::tuple(right.real(), right.imag());
    });
    std::vector<T> sums(static_cast<std::size_t>(n * m));
    for (const Entry<T>& entry : entries) {
        sums[static_cast<std::size_t>(entry.row * m + entry.column)] += entry.value;
    }
    Dense dense(n, m);
    for (std::size_t k = 0; k < sums.size(); ++k) {
        const Wide value = widen(sums[k]);
        dense.values[k] = {static_cast<double>(value.real()), static_cast<double>(value.imag())};
    }
    return dense;
}

TYPED_TEST(AssembleTest, EntriesFromAnyRankGiveTheSameMatrixBitForBit) {
    using T = TypeParam;
    const Comm comm(MPI_COMM_WORLD);
    auto generator = make_generator();
    for (const auto& [n, m] : {std::pair{1, 1}, {3, 5}, {47, 47}, {200, 30}}) {
        const auto all = random_entries<T>(generator, n, m, 6 * n);
        const Dense expected = sum_entries(all, n, m);
        for (const Partition partition : {Partition::by_rows, Partition::by_nonzeros}) {
            // Distribute the entries in two different ways.
            for (const int deal : {0, 1}) {
                std::vector<Entry<T>> mine;
                for (std::size_t k = 0; k < all.size(); ++k) {
                    const auto ranks = static_cast<std::size_t>(comm.size());
                    const std::size_t owner =
                        deal == 0 ? (k * 7 + k / 3) % ranks : k * ranks / all.size();
                    if (owner == static_cast<std::size_t>(comm.rank())) {
                        mine.push_back(all[k]);
                    }
                }
                const auto rows =
                    rows_from_entries<T>(comm, n, m, Symmetry::general, mine, partition);
                EXPECT_EQ(gather_dense(comm, rows), expected);
                EXPECT_EQ(rows.global_cols, m);
            }
        }
    }
}

TYPED_TEST(AssembleTest, CallbackSortsSumsAndUsesThreads) {
    using T = TypeParam;
    const Comm comm(MPI_COMM_WORLD);
    auto generator = make_generator();
    const std::int64_t n = 83;
    const auto all = random_entries<T>(generator, n, n, 700);
    const Dense expected = sum_entries(all, n, n);
    for (const Partition partition : {Partition::by_rows, Partition::by_nonzeros}) {
        for (const int threads : {1, 3, 200}) {
            const auto rows = rows_from_callback<T>(
                comm, n, Symmetry::symmetric,
                [&](std::int64_t row, RowEntries<T>& entries) {
                    EXPECT_TRUE(entries.column.empty() && entries.value.empty());
                    for (const Entry<T>& entry : all) {
                        if (entry.row == row) {
                            entries.add(entry.column, entry.value);
                        }
                    }
                },
                partition, threads);
            EXPECT_EQ(gather_dense(comm, rows), expected);
            EXPECT_EQ(rows.symmetry, Symmetry::symmetric);
        }
    }
}

TYPED_TEST(AssembleTest, UserCsrOfEitherIndexWithAnyBase) {
    using T = TypeParam;
    const Comm comm(MPI_COMM_WORLD);
    const std::int64_t n = 4 * comm.size() + 1;
    // If there are several ranks, rank 0 has no rows. Row i has columns (2i + 1) % n, then 0 twice.
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(comm.size()) + 1, n);
    offsets[0] = 0;
    for (int r = 1; r < comm.size(); ++r) {
        offsets[static_cast<std::size_t>(r)] = 4 * (r - 1);
    }
    const RowMap map(comm.rank(), offsets);
    Dense expected(n, n);
    for (std::int64_t i = 0; i < n; ++i) {
        expected(i, (2 * i + 1) % n) += static_cast<double>(i + 1);
        expected(i, 0) += 7.0;
    }
    const auto check = [&]<class Index>(Index base) {
        std::vector<Index> row_start{base};
        std::vector<Index> column;
        std::vector<T> value;
        for (std::int64_t i = map.first_row(); i < map.first_row() + map.local_rows(); ++i) {
            column.insert(column.end(), {static_cast<Index>((2 * i + 1) % n), Index(0), Index(0)});
            value.insert(value.end(), {T(static_cast<real_t<T>>(i + 1)), T(3), T(4)});
            row_start.push_back(static_cast<Index>(base + static_cast<Index>(column.size())));
        }
        for (const int threads : {1, 3}) {
            const auto rows = rows_from_csr<T, Index>(comm, map, Symmetry::general, row_start,
                                                      column, value, threads);
            EXPECT_EQ(gather_dense(comm, rows), expected);
            EXPECT_EQ(rows.map, map);
        }
    };
    check(std::int32_t{0});
    check(std::int32_t{1});
    check(std::int64_t{1000});
}

/// More entries than the callback's thread keeps in one block, and a row that is longer than one.
TEST(Assemble, ManyEntriesDoNotDependOnTheThreads) {
    const Comm comm;
    const std::int64_t n = 60'000;
    const auto length = [](std::int64_t row) { return row == 41'000 ? n : row % 7; };
    const auto make_row = [&](std::int64_t row, RowEntries<double>& entries) {
        for (std::int64_t j = length(row); j-- > 0;) {
            entries.add(j, static_cast<double>(row + j));
        }
    };
    for (const int threads : {1, 3}) {
        const auto rows = rows_from_callback<double>(comm, n, Symmetry::general, make_row,
                                                     Partition::by_rows, threads);
        std::size_t k = 0;
        for (std::int64_t row = 0; row < n; ++row) {
            ASSERT_EQ(rows.row_start[static_cast<std::size_t>(row)], static_cast<std::int64_t>(k));
            for (std::int64_t j = 0; j < length(row); ++j, ++k) {
                ASSERT_EQ(rows.column.at(k), j);
                ASSERT_EQ(rows.value.at(k), static_cast<double>(row + j));
            }
        }
        EXPECT_EQ(rows.nonzeros(), static_cast<std::int64_t>(k));
        EXPECT_EQ(rows.row_start.back(), static_cast<std::int64_t>(k));
        EXPECT_EQ(rows.value.size(), k);
    }
}

TEST(Assemble, BalancesNonzeros) {
    const Comm comm(MPI_COMM_WORLD);
    // The first tenth of the rows holds nearly all entries.
    const std::int64_t n = 1000;
    const auto make_row = [](std::int64_t row, RowEntries<double>& entries) {
        for (std::int64_t j = 0; j < (row < 100 ? 400 : 1); ++j) {
            entries.add(j, 1.0);
        }
    };
    const auto from_callback =
        rows_from_callback<double>(comm, n, Symmetry::general, make_row, Partition::by_nonzeros);
    std::vector<Entry<double>> entries;
    for (std::int64_t row = comm.rank(); row < n; row += comm.size()) {
        for (std::int64_t j = 0; j < (row < 100 ? 400 : 1); ++j) {
            entries.push_back({row, j, 1.0});
        }
    }
    const auto from_entries = rows_from_entries(comm, n, n, Symmetry::general, entries);
    EXPECT_EQ(from_callback.map, from_entries.map);
    // A rank has at most its share of entries and rows, and one more row.
    EXPECT_LE(from_callback.nonzeros(), (40900 + n) / comm.size() + 400);
    EXPECT_EQ(comm.sum(from_callback.nonzeros()), 40900);
    EXPECT_EQ(gather_dense(comm, from_callback), gather_dense(comm, from_entries));
}

TEST(Assemble, ErrorsReachAllRanks) {
    const Comm comm(MPI_COMM_WORLD);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto callback = [&](std::int64_t column, double value) {
        return message_of<InputError>(comm, [&] {
            rows_from_callback<double>(
                comm, 10, Symmetry::general,
                [&](std::int64_t row, RowEntries<double>& entries) {
                    entries.add(row == 3 ? column : 0, row == 3 ? value : 1.0);
                },
                Partition::by_rows, 2);
        });
    };
    EXPECT_EQ(callback(10, 1), "row callback: row 3, column 10: the matrix has columns 0 .. 9");
    EXPECT_EQ(callback(-1, 1), "row callback: row 3, column -1: the matrix has columns 0 .. 9");
    EXPECT_EQ(callback(2, nan), "row callback: row 3, column 2: the value is not finite");
    EXPECT_EQ(callback(2, 1), "");
    EXPECT_EQ(message_of<Error>(comm,
                                [&] {
                                    rows_from_callback<double>(
                                        comm, 10, Symmetry::general,
                                        [](std::int64_t row, RowEntries<double>&) {
                                            if (row == 9) {
                                                throw std::runtime_error("from the callback");
                                            }
                                        });
                                }),
              "from the callback");
    const auto entries = [&](std::int64_t row, std::int64_t column, double value) {
        return message_of<InputError>(comm, [&] {
            std::vector<Entry<double>> mine;
            if (comm.rank() == comm.size() - 1) {
                mine.push_back({row, column, value});
            }
            rows_from_entries(comm, 4, 5, Symmetry::general, mine);
        });
    };
    EXPECT_EQ(entries(4, 0, 1), "entries: row 4, column 0: the matrix has rows 0 .. 3");
    EXPECT_EQ(entries(0, 5, 1), "entries: row 0, column 5: the matrix has columns 0 .. 4");
    EXPECT_EQ(entries(0, 4, nan), "entries: row 0, column 4: the value is not finite");
    EXPECT_EQ(entries(3, 4, 1), "");

    const RowMap map = RowMap::by_rows(comm, comm.size());
    const auto csr = [&](std::vector<int> row_start, std::vector<int> column, std::size_t values) {
        const bool mine = comm.rank() == 0;
        const std::vector<double> value(mine ? values : 1, 1.0);
        if (!mine) {
            row_start = {0, 1};
            column = {0};
        }
        return message_of<Error>(comm, [&] {
            rows_from_csr<double, int>(comm, map, Symmetry::general, row_start, column, value);
        });
    };
    EXPECT_EQ(csr({0, 1}, {0}, 1), "");
    EXPECT_NE(csr({0}, {}, 0), "");
    EXPECT_NE(csr({1, 0}, {}, 0), "");
    EXPECT_NE(csr({0, 2}, {0}, 2), "");
    EXPECT_NE(csr({0, 1}, {0}, 2), "");
    EXPECT_NE(csr({0, 1}, {comm.size()}, 1), "");
    EXPECT_NE(csr({0, 1}, {-1}, 1), "");
}

TEST(Assemble, ReportsTheMissingBytesAndTheirPurpose) {
    const Comm comm(MPI_COMM_WORLD);
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::string message = message_of<MemoryError>(comm, [&] {
        rows_from_callback<double>(comm, most, Symmetry::general,
                                   [](std::int64_t, RowEntries<double>&) {});
    });
    EXPECT_EQ(message.find("sparse matrix: 9223372036854775807 rows take "), 0u) << message;
    EXPECT_NE(message.find(" MB of memory on this rank and "), std::string::npos) << message;
    // 16 bytes for each row.
    EXPECT_NE(message.find(" and 147573952589676 MB on its node"), std::string::npos) << message;
    EXPECT_EQ(message.find('-'), std::string::npos) << message;

    if (address_space_is_vast) {
        return;
    }
    // Adds rows of 2^18 entries until the memory limit is reached: 256 MiB above the present use.
    message = message_of<MemoryError>(comm, [&] {
        const AddressSpaceLimit limit(rlim_t{256} << 20);
        rows_from_callback<double>(comm, 1 << 18, Symmetry::general,
                                   [](std::int64_t, RowEntries<double>& entries) {
                                       for (std::int64_t k = 0; k < 1 << 18; ++k) {
                                           entries.add(k, 1.0);
                                       }
                                   });
    });
    EXPECT_NE(message.find(" x 8 bytes of memory for "), std::string::npos) << message;
    const auto begin = message.find(": ") + 2;
    const std::int64_t elements = std::stoll(message.substr(begin, message.find(" x ") - begin));
    EXPECT_EQ(elements % (1 << 18), 0) << message;
    EXPECT_LE(elements, std::int64_t{1} << 36) << message;
    EXPECT_GE(elements, std::int64_t{4} << 20) << message;
}

}  // namespace
}  // namespace quiver::test
