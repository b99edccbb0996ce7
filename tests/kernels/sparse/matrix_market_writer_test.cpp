// SPDX-License-Identifier: BSD-3-Clause
// Writes matrices as Matrix Market files: tests the text, reading it back, and failures.
#include "kernels/sparse/matrix_market_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

/// The bits of a number, so that 0 and -0 differ.
template <class T>
std::array<std::uint64_t, 2> bits_of(T value) {
    const Wide wide = widen(value);
    return {std::bit_cast<std::uint64_t>(static_cast<double>(wide.real())),
            std::bit_cast<std::uint64_t>(static_cast<double>(wide.imag()))};
}

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Entries with random mantissas and exponents, mirrored as `symmetry` requires; the same on all
/// ranks.
template <class T>
std::vector<Entry<T>> random_entries(std::mt19937_64& generator, int n, int count,
                                     Symmetry symmetry) {
    using R = real_t<T>;
    const int largest = std::numeric_limits<R>::max_exponent - 1;
    const auto number = [&] {
        const auto mantissa =
            static_cast<R>(std::uniform_real_distribution<double>(-1, 1)(generator));
        const int exponent =
            generator() % 4 == 0
                ? static_cast<int>(generator() % (2U * static_cast<unsigned>(largest))) - largest
                : 0;
        return std::ldexp(mantissa, exponent);
    };
    std::vector<Entry<T>> entries;
    std::vector<bool> taken(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    for (int k = 0; k < count; ++k) {
        auto row = static_cast<std::int64_t>(generator() % static_cast<unsigned>(n));
        auto column = static_cast<std::int64_t>(generator() % static_cast<unsigned>(n));
        T value{};
        if constexpr (is_complex_v<T>) {
            value = T(number(), number());
        } else {
            value = number();
        }
        if (symmetry != Symmetry::general && row < column) {
            std::swap(row, column);
        }
        const auto place = static_cast<std::size_t>(row * n + column);
        if (taken[place] || (symmetry == Symmetry::skew_symmetric && row == column)) {
            continue;
        }
        taken[place] = true;
        if (symmetry == Symmetry::hermitian && row == column) {
            value = T(real_part(value));
        }
        entries.push_back({row, column, value});
        if (symmetry != Symmetry::general && row != column) {
            const T mirrored = symmetry == Symmetry::hermitian        ? conjugate(value)
                               : symmetry == Symmetry::skew_symmetric ? -value
                                                                      : value;
            entries.push_back({column, row, mirrored});
        }
    }
    return entries;
}

/// Checks that this rank's rows are the same, bit for bit.
template <class T>
void expect_same(const CsrRows<T>& found, const CsrRows<T>& expected) {
    EXPECT_EQ(found.map, expected.map);
    EXPECT_EQ(found.global_cols, expected.global_cols);
    EXPECT_EQ(found.row_start, expected.row_start);
    EXPECT_EQ(found.column, expected.column);
    ASSERT_EQ(found.value.size(), expected.value.size());
    for (std::size_t k = 0; k < found.value.size(); ++k) {
        EXPECT_EQ(bits_of(found.value[k]), bits_of(expected.value[k])) << k;
    }
}

class WriterTest : public ::testing::Test {
  protected:
    template <class T>
    CsrRows<T> rows_of(std::int64_t rows, std::int64_t cols, Symmetry symmetry,
                       std::vector<Entry<T>> entries) {
        if (comm_.rank() != 0) {
            entries.clear();
        }
        return rows_from_entries<T>(comm_, rows, cols, symmetry, std::move(entries),
                                    Partition::by_rows);
    }
    /// Checks that the folder has exactly the named files.
    void expect_only(std::vector<std::string> names) {
        comm_.barrier();
        std::vector<std::string> found;
        for (const auto& item : std::filesystem::directory_iterator(folder_.path(""))) {
            found.push_back(item.path().filename().string());
        }
        std::sort(found.begin(), found.end());
        std::sort(names.begin(), names.end());
        EXPECT_EQ(found, names);
        comm_.barrier();
    }
    Comm comm_{MPI_COMM_WORLD};
    TemporaryFolder folder_{comm_};
};

TEST_F(WriterTest, WritesTheTextOfTheFormat) {
    const std::string path = folder_.path("a.mtx");
    const auto general = rows_of<double>(
        3, 4, Symmetry::general, {{0, 3, 0.1}, {0, 0, -2}, {2, 1, 1e-300}, {2, 2, 1.0 / 3}});
    EXPECT_EQ(write_matrix_market(comm_, path, general, "two\nlines"), 4);
    EXPECT_EQ(text_of(path),
              "%%MatrixMarket matrix coordinate real general\n% two lines\n3 4 4\n"
              "1 1 -2\n1 4 0.1\n3 2 1e-300\n3 3 0.3333333333333333\n");
    const auto symmetric = rows_of<float>(2, 2, Symmetry::symmetric,
                                          {{0, 0, 0.5F}, {0, 1, 0.1F}, {1, 0, 0.1F}, {1, 1, 4}});
    EXPECT_EQ(write_matrix_market(comm_, path, symmetric), 3);
    EXPECT_EQ(text_of(path),
              "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n"
              "1 1 0.5\n2 1 0.10000000149011612\n2 2 4\n");
    using Z = std::complex<double>;
    const auto hermitian =
        rows_of<Z>(2, 2, Symmetry::hermitian, {{0, 0, Z(3, 0)}, {0, 1, Z(1, 2)}, {1, 0, Z(1, -2)}});
    EXPECT_EQ(write_matrix_market(comm_, path, hermitian), 2);
    EXPECT_EQ(text_of(path),
              "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 -2\n");
    const auto skew =
        rows_of<double>(2, 2, Symmetry::skew_symmetric, {{0, 0, 0}, {0, 1, -5}, {1, 0, 5}});
    EXPECT_EQ(write_matrix_market(comm_, path, skew), 1);
    EXPECT_EQ(text_of(path),
              "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n");
    EXPECT_EQ(write_matrix_market(comm_, path, rows_of<double>(0, 0, Symmetry::general, {})), 0);
    EXPECT_EQ(text_of(path), "%%MatrixMarket matrix coordinate real general\n0 0 0\n");
    const auto zeros = rows_of<Z>(1, 3, Symmetry::general,
                                  {{0, 0, Z(-0.0, 1)}, {0, 1, Z(1, -0.0)}, {0, 2, Z(-0.0, -0.0)}});
    EXPECT_EQ(write_matrix_market(comm_, path, zeros), 3);
    EXPECT_EQ(
        text_of(path),
        "%%MatrixMarket matrix coordinate complex general\n1 3 3\n1 1 0 1\n1 2 1 0\n1 3 0 0\n");
    const auto zero = rows_of<float>(1, 1, Symmetry::general, {{0, 0, -0.0F}});
    EXPECT_EQ(write_matrix_market(comm_, path, zero), 1);
    EXPECT_EQ(text_of(path), "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 0\n");
    expect_only({"a.mtx"});
}

template <class T>
class WriterTypedTest : public WriterTest {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(WriterTypedTest, Scalars);

TYPED_TEST(WriterTypedTest, WhatIsWrittenIsReadBackToTheLastBit) {
    using T = TypeParam;
    auto generator = make_generator();
    for (const Symmetry symmetry :
         {Symmetry::general, Symmetry::symmetric, Symmetry::skew_symmetric, Symmetry::hermitian}) {
        if (symmetry == Symmetry::hermitian && !is_complex_v<T>) {
            continue;
        }
        const auto rows = this->template rows_of<T>(
            37, 37, symmetry, random_entries<T>(generator, 37, 400, symmetry));
        for (const std::string name : {"m.mtx", "m.mtx.gz"}) {
            const std::string path = this->folder_.path(name);
            const std::int64_t listed = write_matrix_market(this->comm_, path, rows);
            const MatrixMarketHeader header = read_matrix_market_header(this->comm_, path);
            EXPECT_EQ(header.entries, listed);
            EXPECT_EQ(header.symmetry, symmetry);
            EXPECT_EQ(header.is_complex(), is_complex_v<T>);
            expect_same(read_matrix_market<T>(this->comm_, path, Partition::by_rows), rows);
        }
        const std::string packed = text_of(this->folder_.path("m.mtx.gz"));
        EXPECT_EQ(packed.substr(0, 2), "\x1f\x8b");
        EXPECT_LT(packed.size(), text_of(this->folder_.path("m.mtx")).size());
    }
}

TYPED_TEST(WriterTypedTest, ExtremeNumbersComeBack) {
    using T = TypeParam;
    using R = real_t<T>;
    using Limits = std::numeric_limits<R>;
    std::vector<Entry<T>> entries;
    for (const R value : {R(0), -R(0), Limits::max(), Limits::lowest(), Limits::min(),
                          Limits::denorm_min(), Limits::epsilon(), R(1) + Limits::epsilon(),
                          R(1) / R(3), R(16777216), R(123456789), R(1e22)}) {
        const auto column = static_cast<std::int64_t>(entries.size());
        if constexpr (is_complex_v<T>) {
            entries.push_back({1, column, T(value, -value)});
        } else {
            entries.push_back({1, column, value});
        }
    }
    const auto rows = this->template rows_of<T>(4, 12, Symmetry::general, entries);
    const std::string path = this->folder_.path("m.mtx");
    EXPECT_EQ(write_matrix_market(this->comm_, path, rows), 12);
    auto expected = rows;
    for (T& value : expected.value) {
        value += T(0);  // -0 comes back as 0
    }
    expect_same(read_matrix_market<T>(this->comm_, path, Partition::by_rows), expected);
}

/// The text is longer than several blocks, and the same for any number of ranks.
TEST_F(WriterTest, LongMatricesTravelInBlocks) {
    const std::int64_t n = 120000;
    const auto make_row = [n](std::int64_t row, RowEntries<double>& entries) {
        for (const std::int64_t step : {0, 1, 300, 77777}) {
            entries.add((row + step) % n, 1.0 / static_cast<double>(row + step + 3));
        }
    };
    const auto rows = rows_from_callback<double>(comm_, n, Symmetry::general, make_row);
    const auto alone = rows_from_callback<double>(Comm(), n, Symmetry::general, make_row);
    const std::string path = folder_.path("long.mtx");
    EXPECT_EQ(write_matrix_market(comm_, path, rows), 4 * n);
    comm_.barrier();
    EXPECT_GT(std::filesystem::file_size(path), std::size_t{3} << 22);
    expect_same(read_matrix_market<double>(comm_, path, Partition::by_rows), rows);
    if (comm_.rank() == 0) {
        write_matrix_market(Comm(), folder_.path("alone.mtx"), alone);
        EXPECT_TRUE(text_of(path) == text_of(folder_.path("alone.mtx")));
    }
    comm_.barrier();
}

TEST_F(WriterTest, RefusesWhatTheFormatDoesNotHold) {
    using Z = std::complex<double>;
    const std::string path = folder_.path("m.mtx");
    auto rows = rows_of<double>(5, 5, Symmetry::general, {{0, 0, 1}, {4, 2, 3}});
    for (double& value : rows.value) {
        value = value == 3 ? std::numeric_limits<double>::infinity() : value;
    }
    EXPECT_EQ(message_of<InputError>(comm_, [&] { write_matrix_market(comm_, path, rows); }),
              "writing a matrix: row 5, column 3: the value is not finite");
    const auto hermitian = rows_of<Z>(3, 3, Symmetry::hermitian, {{2, 2, Z(1, 1)}});
    EXPECT_NE(message_of<InputError>(comm_, [&] { write_matrix_market(comm_, path, hermitian); })
                  .find("row 3, column 3: the diagonal of a hermitian"),
              std::string::npos);
    const auto skew = rows_of<double>(3, 3, Symmetry::skew_symmetric, {{1, 1, 2}});
    EXPECT_NE(message_of<InputError>(comm_, [&] { write_matrix_market(comm_, path, skew); })
                  .find("skew-symmetric matrix is not zero"),
              std::string::npos);
    expect_only({});
}

TEST_F(WriterTest, BadPathsAreInputErrors) {
    const auto rows = rows_of<double>(2, 2, Symmetry::general, {{1, 1, 2}});
    const std::string file = folder_.write("file", "");
    for (const std::string& path :
         {file + "/m.mtx", folder_.path(""), std::string(), folder_.path(std::string(300, 'x'))}) {
        for (const bool only_check : {true, false}) {
            const std::string message = message_of<InputError>(comm_, [&] {
                if (only_check) {
                    check_matrix_market_path(comm_, path);
                } else {
                    write_matrix_market(comm_, path, rows);
                }
            });
            EXPECT_EQ(message.find("cannot write "), 0U) << message;
        }
    }
    check_matrix_market_path(comm_, folder_.path("good.mtx"));
    expect_only({"file"});
}

/// On a disk with room for 5 MB, simulated by a limit of the process, all ranks throw an error
/// other than InputError. No new file remains, and an existing file is unchanged.
TEST_F(WriterTest, FullDiskLeavesNothing) {
    const auto rows = rows_from_callback<double>(
        comm_, 100000, Symmetry::general, [](std::int64_t row, RowEntries<double>& entries) {
            for (std::int64_t k = 0; k < 8; ++k) {
                entries.add((row + k) % 100000, 1.0 / static_cast<double>(row + k + 3));
            }
        });
    const std::string old = folder_.write("m.mtx", "old");
    ErrorKind kind = ErrorKind::none;
    bool collective = false;
    std::string message;
    try {
        const FileSizeLimit limit(5'000'000);
        write_matrix_market(comm_, old, rows);
    } catch (const Error& error) {
        kind = error.kind();
        collective = error.collective();
        message = error.what();
    }
    EXPECT_EQ(kind, ErrorKind::other);
    EXPECT_TRUE(collective);
    EXPECT_EQ(message.find("cannot write " + old), 0U) << message;
    EXPECT_EQ(text_of(old), "old");
    expect_only({"m.mtx"});
}

}  // namespace
}  // namespace quiver::test
