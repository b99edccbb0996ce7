// SPDX-License-Identifier: BSD-3-Clause
// Input that the Matrix Market reader must accept: every field, symmetry and variation of the
// format.
#include "kernels/sparse/matrix_market.hpp"

#include <algorithm>
#include <cstdio>

#include "kernels/sparse/matrix_market_parser.hpp"
#include "kernels/sparse/text_source.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

using Z = std::complex<double>;

Dense dense_of(std::int64_t rows, std::int64_t cols, std::initializer_list<Z> values) {
    Dense dense(rows, cols);
    std::copy(values.begin(), values.end(), dense.values.begin());
    return dense;
}

class MatrixMarketTest : public ::testing::Test {
  protected:
    /// Reads the text, plain and compressed, on all ranks with both partitions.
    template <class T>
    void expect_reads(const std::string& text, const Dense& expected,
                      Symmetry symmetry = Symmetry::general) {
        for (const std::string& path :
             {folder_.write("m.mtx", text), folder_.write_gzip("m.mtx.gz", text)}) {
            for (const Partition partition : {Partition::by_rows, Partition::by_nonzeros}) {
                const CsrRows<T> rows = read_matrix_market<T>(comm_, path, partition);
                EXPECT_EQ(gather_dense(comm_, rows), expected) << text;
                EXPECT_EQ(rows.symmetry, symmetry);
                EXPECT_EQ(rows.global_cols, expected.cols);
            }
        }
    }
    Comm comm_{MPI_COMM_WORLD};
    TemporaryFolder folder_{comm_};
};

TEST_F(MatrixMarketTest, ReadsEveryField) {
    const Dense expected = dense_of(2, 3, {1, 0, -2, 0, 3, 0});
    expect_reads<double>(
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n"
        "1 1 1.0\n2 2 3e0\n1 3 -20.0E-1\n",
        expected);
    expect_reads<double>(
        "%%MatrixMarket matrix coordinate integer general\n2 3 3\n"
        "1 1 1\n2 2 +3\n1 3 -2\n",
        expected);
    expect_reads<float>(
        "%%MatrixMarket matrix coordinate double general\n2 3 3\n"
        "1 1 1\n2 2 3\n1 3 -2\n",
        expected);
    expect_reads<double>("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n2 3\n",
                         dense_of(2, 3, {1, 0, 0, 0, 0, 1}));
    const std::string complex_text =
        "%%MatrixMarket matrix coordinate complex general\n"
        "2 2 2\n1 2 1.5 -2\n2 1 0 1\n";
    expect_reads<std::complex<double>>(complex_text, dense_of(2, 2, {0, Z(1.5, -2), Z(0, 1), 0}));
    expect_reads<std::complex<float>>(complex_text, dense_of(2, 2, {0, Z(1.5, -2), Z(0, 1), 0}));
    expect_reads<std::complex<double>>(
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n"
        "2 1 4\n",
        dense_of(2, 2, {0, 0, 4, 0}));
}

TEST_F(MatrixMarketTest, ExpandsEverySymmetry) {
    expect_reads<double>(
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n"
        "1 1 1\n2 1 2\n3 2 3\n3 3 4\n",
        dense_of(3, 3, {1, 2, 0, 2, 0, 3, 0, 3, 4}), Symmetry::symmetric);
    expect_reads<double>("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n",
                         dense_of(3, 3, {1, 0, 1, 0, 0, 0, 1, 0, 0}), Symmetry::symmetric);
    expect_reads<double>(
        "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n"
        "2 1 5\n3 2 -1\n",
        dense_of(3, 3, {0, -5, 0, 5, 0, 1, 0, -1, 0}), Symmetry::skew_symmetric);
    expect_reads<Z>(
        "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n"
        "1 1 3 0\n2 1 1 -2\n",
        dense_of(2, 2, {3, Z(1, 2), Z(1, -2), 0}), Symmetry::hermitian);
    expect_reads<Z>(
        "%%MatrixMarket matrix coordinate complex symmetric\n2 2 2\n"
        "1 1 3 1\n2 1 1 -2\n",
        dense_of(2, 2, {Z(3, 1), Z(1, -2), Z(1, -2), 0}), Symmetry::symmetric);
    expect_reads<Z>("%%MatrixMarket matrix coordinate complex skew-symmetric\n2 2 1\n2 1 1 -2\n",
                    dense_of(2, 2, {0, Z(-1, 2), Z(1, -2), 0}), Symmetry::skew_symmetric);
}

TEST_F(MatrixMarketTest, ReadsArrayFormat) {
    expect_reads<double>("%%MatrixMarket matrix array real general\n2 3\n1\n0\n3\n4\n\n5\n6\n",
                         dense_of(2, 3, {1, 3, 5, 0, 4, 6}));
    expect_reads<double>("%%MatrixMarket matrix array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
                         dense_of(3, 3, {1, 2, 3, 2, 4, 5, 3, 5, 6}), Symmetry::symmetric);
    expect_reads<double>("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3",
                         dense_of(3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0}), Symmetry::skew_symmetric);
    expect_reads<Z>("%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n",
                    dense_of(2, 2, {1, Z(2, -3), Z(2, 3), 4}), Symmetry::hermitian);
    // Zeros are not stored.
    const auto rows =
        read_matrix_market<double>(comm_, folder_.write("zeros.mtx",
                                                        "%%MatrixMarket matrix array real general\n"
                                                        "3 2\n0\n1\n0\n0.0\n0\n2\n"));
    EXPECT_EQ(comm_.sum(rows.nonzeros()), 2);
}

TEST_F(MatrixMarketTest, AllowsEveryFreedomOfTheFormat) {
    const Dense expected = dense_of(2, 2, {1, 0, 0, 2.5});
    const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
    expect_reads<double>("%%mATRIXmARKET MATRIX Coordinate REAL General\n2 2 2\n1 1 1\n2 2 2.5\n",
                         expected);
    expect_reads<double>(banner + "% comment\n\n  \t\n%\n2 2 2\n1 1 1\n2 2 2.5\n", expected);
    expect_reads<double>(banner + "2 2 2\n\n% late comment\n1 1 1\n   \n2 2 2.5\n\n\n", expected);
    expect_reads<double>(
        "%%MatrixMarket matrix coordinate real general\r\n% c\r\n2 2 2\r\n"
        "1 1 1\r\n2 2 2.5\r\n",
        expected);
    expect_reads<double>(banner + "2 2 2\n1 1 1\n2 2 2.5", expected);
    expect_reads<double>(banner + "2 2 2\r\n1 1 1\r\n2 2 2.5\r", expected);
    expect_reads<double>(banner + "  2\t2  2 \n \t1   1\t1 \t\n2 2 2.5\t\n", expected);
    expect_reads<double>(banner + "2 2 2\n1 1 1D0\n2 2 +0.25d+01\n", expected);
    expect_reads<double>(banner + "2 2 2\n1 1 1.\n2 2 +2.5\n", expected);
    expect_reads<double>(banner + "2 2 3\n1 1 .5\n2 2 2.5\n1 1 0.5\n", expected);
    expect_reads<double>(banner + "0 0 0\n", Dense(0, 0));
    expect_reads<double>(banner + "3 1 0\n", Dense(3, 1));
}

TEST_F(MatrixMarketTest, ReadsNumbersToTheLastBit) {
    const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
    const std::string text = banner +
                             "1 6 6\n1 1 0.1\n1 2 1.7976931348623157e308\n1 3 4.9e-324\n"
                             "1 4 -2.2250738585072014E-308\n1 5 1e-999\n1 6 123456789012345678\n";
    expect_reads<double>(text, dense_of(1, 6,
                                        {0.1, 1.7976931348623157e308, 4.9e-324,
                                         -2.2250738585072014e-308, 0.0, 123456789012345678.0}));
    expect_reads<float>(banner + "1 2 2\n1 1 0.1\n1 2 1e-60\n", dense_of(1, 2, {0.1F, 0.0}));
}

TEST_F(MatrixMarketTest, HeaderHolds64BitSizes) {
    const std::string path =
        folder_.write("h.mtx",
                      "%%MatrixMarket matrix coordinate complex hermitian\n% a comment\n"
                      "9000000000000000000 9000000000000000000 5000000000\n");
    const MatrixMarketHeader header = read_matrix_market_header(comm_, path);
    EXPECT_EQ(header.rows, 9000000000000000000);
    EXPECT_EQ(header.cols, 9000000000000000000);
    EXPECT_EQ(header.entries, 5000000000);
    EXPECT_TRUE(header.is_complex());
    EXPECT_EQ(header.symmetry, Symmetry::hermitian);
    EXPECT_EQ(header.format, MatrixMarketHeader::Format::coordinate);
    const std::string array =
        folder_.write("a.mtx", "%%MatrixMarket matrix array real symmetric\n100000 100000\n");
    EXPECT_EQ(read_matrix_market_header(comm_, array).entries, 5000050000);
}

TEST_F(MatrixMarketTest, DuplicatesAreSummedTheSameForAnyRanks) {
    // 0.1 + 0.2 + 0.3 depends on the order; the documented order is ascending.
    std::string text = "%%MatrixMarket matrix coordinate real general\n5 5 3000\n";
    const double terms[3] = {0.3, 0.1, 0.2};
    for (int k = 0; k < 3000; ++k) {
        char line[64];
        std::snprintf(line, sizeof(line), "%d %d %.1f\n", k % 5 + 1, k / 5 % 5 + 1,
                      terms[k / 25 % 3]);
        text += line;
    }
    double sum = 0;
    for (const double term : {0.1, 0.2, 0.3}) {
        for (int k = 0; k < 40; ++k) {
            sum += term;
        }
    }
    Dense expected(5, 5);
    std::fill(expected.values.begin(), expected.values.end(), sum);
    expect_reads<double>(text, expected);
}

/// Lines have many lengths, so that ranges and blocks end anywhere in a line.
TEST_F(MatrixMarketTest, CutsLongFilesCorrectly) {
    auto generator = make_generator();
    const std::int64_t n = 50000;
    std::string text;
    std::int64_t entries = 0;
    double sum = 0;
    double weighted = 0;
    while (text.size() < 3 * text_block_bytes) {
        const auto row = static_cast<std::int64_t>(generator() % n);
        const auto column = static_cast<std::int64_t>(generator() % n);
        const auto value = static_cast<double>(static_cast<int>(generator() % 2001) - 1000);
        text += std::to_string(row + 1) + std::string(1 + generator() % 9, ' ') +
                std::to_string(column + 1) + " " + std::to_string(static_cast<int>(value)) + "\n";
        if (generator() % 50 == 0) {
            text += generator() % 2 == 0 ? "\n" : "% remark\n";
        }
        ++entries;
        sum += value;
        weighted += value * static_cast<double>(row % 97 + 3 * (column % 89));
    }
    text = "%%MatrixMarket matrix coordinate integer general\n" + std::to_string(n) + " " +
           std::to_string(n) + " " + std::to_string(entries) + "\n" + text;
    for (const std::string& path :
         {folder_.write("long.mtx", text), folder_.write_gzip("long.mtx.gz", text)}) {
        const auto rows = read_matrix_market<double>(comm_, path);
        double found = 0;
        double found_weighted = 0;
        for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
            const auto at = static_cast<std::size_t>(i);
            for (auto k = static_cast<std::size_t>(rows.row_start[at]);
                 k < static_cast<std::size_t>(rows.row_start[at + 1]); ++k) {
                found += rows.value[k];
                found_weighted +=
                    rows.value[k] * static_cast<double>((rows.map.first_row() + i) % 97 +
                                                        3 * (rows.column[k] % 89));
            }
        }
        double sums[2] = {found, found_weighted};
        comm_.sum(std::span<double>(sums));
        EXPECT_EQ(sums[0], sum);
        EXPECT_EQ(sums[1], weighted);
    }
}

/// Every way to cut a small file into three ranges gives every line exactly once.
TEST_F(MatrixMarketTest, PlainTextGivesEveryLineOnce) {
    for (const std::string text : {"1\n22\n\n333\n4444\n", "1\n22\n\n333\n4444", "\n\n", "x"}) {
        const std::string path = folder_.write("t.txt", text);
        const auto size = static_cast<std::int64_t>(text.size());
        for (std::int64_t first = 0; first <= size; ++first) {
            for (std::int64_t second = first; second <= size; ++second) {
                std::string joined;
                for (const auto& [begin, end] :
                     {std::pair(std::int64_t{0}, first), {first, second}, {second, size}}) {
                    PlainText source(path, 0, begin, end);
                    for (auto block = source.next(); !block.empty(); block = source.next()) {
                        const bool starts_line = joined.empty() || joined.back() == '\n';
                        EXPECT_TRUE(starts_line);
                        joined += block;
                    }
                }
                EXPECT_EQ(joined, text) << first << " " << second;
            }
        }
    }
}

TEST_F(MatrixMarketTest, ArrayOrdinalsRunThroughColumns) {
    for (const Symmetry symmetry :
         {Symmetry::general, Symmetry::symmetric, Symmetry::skew_symmetric, Symmetry::hermitian}) {
        MatrixMarketHeader header;
        header.symmetry = symmetry;
        header.rows = 7;
        header.cols = symmetry == Symmetry::general ? 4 : 7;
        std::int64_t ordinal = 0;
        for (std::int64_t j = 0; j < header.cols; ++j) {
            std::int64_t i = 0;
            if (symmetry != Symmetry::general) {
                i = symmetry == Symmetry::skew_symmetric ? j + 1 : j;
            }
            for (; i < header.rows; ++i) {
                EXPECT_EQ(array_place(header, ordinal++), std::pair(i, j));
            }
        }
        EXPECT_EQ(array_length(header), ordinal);
    }
}

}  // namespace
}  // namespace quiver::test
