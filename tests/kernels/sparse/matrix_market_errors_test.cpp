// SPDX-License-Identifier: BSD-3-Clause
// Input that the Matrix Market reader must refuse on all ranks, naming file and line, without
// waiting forever.
#include <vector>

#include "kernels/sparse/matrix_market.hpp"
#include "kernels/sparse/text_source.hpp"
#include "tests/kernels/sparse/sparse_support.hpp"

namespace quiver::test {
namespace {

const std::string real_general = "%%MatrixMarket matrix coordinate real general\n";
const std::string real_symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";

struct BadFile {
    std::string text;
    int line;
    std::string part;  // expected in the message
};

class MatrixMarketErrorTest : public ::testing::Test {
  protected:
    template <class T = double>
    std::string error_of(const std::string& path) {
        return message_of<InputError>(comm_, [&] { read_matrix_market<T>(comm_, path); });
    }
    template <class T = double>
    void expect_refused(const BadFile& bad) {
        for (const std::string& path :
             {folder_.write("bad.mtx", bad.text), folder_.write_gzip("bad.mtx.gz", bad.text)}) {
            const std::string message = error_of<T>(path);
            EXPECT_EQ(message.find(path + ":" + std::to_string(bad.line) + ": "), 0U)
                << message << "\nfor line " << bad.line << " of\n"
                << bad.text.substr(0, 300);
            EXPECT_NE(message.find(bad.part), std::string::npos) << message;
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        }
    }
    Comm comm_{MPI_COMM_WORLD};
    TemporaryFolder folder_{comm_};
};

TEST_F(MatrixMarketErrorTest, MissingFileAndFolder) {
    const std::string missing = folder_.path("none.mtx");
    EXPECT_EQ(error_of(missing), missing + ": No such file or directory");
    EXPECT_EQ(message_of<InputError>(comm_, [&] { read_matrix_market_header(comm_, missing); }),
              missing + ": No such file or directory");
    EXPECT_NE(error_of(folder_.path("")).find("directory"), std::string::npos);
}

TEST_F(MatrixMarketErrorTest, BadHeaders) {
    const std::vector<BadFile> files{
        {"", 1, "empty"},
        {"hello\n", 1, "%%MatrixMarket"},
        {std::string("\x7f"
                     "ELF\0\1\2\n",
                     8),
         1, "%%MatrixMarket"},
        {"\n" + real_general + "1 1 0\n", 1, "%%MatrixMarket"},
        {"%%MatrixMarket matrix coordinate real\n1 1 0\n", 1, "4 words"},
        {"%%MatrixMarket vector coordinate real general\n1 1 0\n", 1, "'vector'"},
        {"%%MatrixMarket matrix banded real general\n1 1 0\n", 1, "'banded'"},
        {"%%MatrixMarket matrix coordinate quaternion general\n1 1 0\n", 1, "'quaternion'"},
        {"%%MatrixMarket matrix coordinate real lopsided\n1 1 0\n", 1, "'lopsided'"},
        {"%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", 1, "hermitian"},
        {"%%MatrixMarket matrix coordinate integer hermitian\n1 1 0\n", 1, "hermitian"},
        {"%%MatrixMarket matrix coordinate pattern hermitian\n1 1 0\n", 1, "hermitian"},
        {"%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n", 1, "skew"},
        {"%%MatrixMarket matrix array pattern general\n1 1\n", 1, "pattern"},
        {"\xEF\xBB\xBF" + real_general + "1 1 0\n", 1, "byte order mark; save it without one"},
        {std::string("\xFF\xFE%\0%\0", 6), 1, "the text is UTF-16"},
        {"%%MatrixMarket matrix coordinate real general\r1 1 1\r1 1 3\r", 1,
         "CR only; convert them to LF"},
        {real_general + "2 2 1\r1 1 3\r", 2, "CR only"},
        {real_general, 2, "before the size line"},
        {real_general + "% only\n\n", 4, "before the size line"},
        {real_general + "2 2\n", 2, "number of entries"},
        {real_general + "% c\n\n2 x 1\n", 4, "number of columns"},
        {real_general + "2.5 2 1\n1 1 1\n", 2, "number of rows"},
        {real_general + "2 2 1 1\n1 1 1\n", 2, "unexpected text"},
        {real_general + "-2 2 1\n1 1 1\n", 2, "negative"},
        {real_general + "2 2 -1\n", 2, "negative"},
        {real_general + "99999999999999999999 2 1\n", 2, "too large"},
        {real_symmetric + "2 3 0\n", 2, "2 rows and 3 columns"},
        {"%%MatrixMarket matrix array real general\n4000000000 4000000000\n", 2, "overflow"},
        {"%%MatrixMarket matrix array real general\n2 2 4\n1\n2\n3\n4\n", 2, "unexpected text"},
    };
    for (const BadFile& bad : files) {
        expect_refused(bad);
    }
}

TEST_F(MatrixMarketErrorTest, BadEntries) {
    const std::vector<BadFile> files{
        {real_general + "2 2 2\n1 1 1\n", 3, "1 of 2 entries"},
        {real_general + "2 2 2\n", 2, "0 of 2 entries"},
        {real_general + "2 2 9000000000000000000\n1 1 1\n", 3, "1 of 9000000000000000000"},
        {real_general + "2 2 1\n% c\n1 1 1\n\n% d\n\n2 2 1\n1 2 1\n", 8, "more entries than the 1"},
        {real_general + "2 2 0\n1 1 1\n", 3, "more entries than the 0"},
        {real_general + "2 2 1\n0 1 1\n", 3, "row index 0 is outside 1 .. 2"},
        {real_general + "2 2 1\n3 1 1\n", 3, "row index 3"},
        {real_general + "2 2 1\n-1 1 1\n", 3, "row index -1"},
        {real_general + "2 3 1\n1 0 1\n", 3, "column index 0 is outside 1 .. 3"},
        {real_general + "2 3 1\n\n1 4 1\n", 4, "column index 4"},
        {real_general + "2 2 1\n99999999999999999999 1 1\n", 3, "too large"},
        {real_general + "2 2 1\n1 1 one\n", 3, "'one'"},
        {real_general + "2 2 1\n1 1 1.0x\n", 3, "'1.0x'"},
        {real_general + "2 2 1\n1 1 0x10\n", 3, "'0x10'"},
        {real_general + "2 2 1\n1 1 1e\n", 3, "'1e'"},
        {real_general + "2 2 1\n1 1 --1\n", 3, "'--1'"},
        {real_general + "2 2 1\n1 1 +-1\n", 3, "'+-1'"},
        {real_general + "2 2 1\n1 1\n", 3, "the end of the line"},
        {real_general + "2 2 1\n1\n", 3, "column index"},
        {real_general + "2 2 1\n1.5 1 1\n", 3, "row index"},
        {real_general + "2 2 1\na b c\n", 3, "'a'"},
        {real_general + "2 2 1\n1 1 1 1\n", 3, "unexpected text"},
        {real_general + "2 2 1\n1 1 nan\n", 3, "not finite"},
        {real_general + "2 2 1\n1 1 -Inf\n", 3, "not finite"},
        {real_general + "2 2 1\n1 1 1e999\n", 3, "not finite"},
        {real_general + "2 2 1\n1 1 1D999\n", 3, "not finite"},
        {real_general + "2 2 1\n1 1 \x01\x02\n", 3, "'?"},
        {real_general + "2 2 1\n1 1 " + std::string(300, '7') + "x\n", 3, "...'"},
        {real_general + "2 2 2\n1 1 1\r2 2 1\r", 3, "'2'; its lines end with CR only"},
        {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", 3, "'1.5'"},
        {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n", 3, "unexpected text"},
        {real_symmetric + "3 3 2\n1 1 1\n2 3 1\n", 4, "entry (2, 3) of a symmetric file"},
        {"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1\n2 2 1\n", 4,
         "diagonal"},
        {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", 5, "3 of 4"},
        {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n5\n", 7, "more entries"},
        {"%%MatrixMarket matrix array real general\n2 2\n1 2\n3 4\n", 3, "unexpected text"},
    };
    for (const BadFile& bad : files) {
        expect_refused(bad);
    }
    expect_refused<float>({real_general + "1 1 1\n1 1 1e39\n", 3, "single precision"});
}

TEST_F(MatrixMarketErrorTest, BadComplexFiles) {
    const std::string hermitian = "%%MatrixMarket matrix coordinate complex hermitian\n";
    using Z = std::complex<double>;
    expect_refused<double>({hermitian + "1 1 1\n1 1 1 0\n", 1, "complex"});
    expect_refused<float>({hermitian + "1 1 1\n1 1 1 0\n", 1, "complex"});
    expect_refused<Z>({hermitian + "2 2 2\n1 1 1 0\n2 2 1 0.5\n", 4, "not real"});
    expect_refused<Z>({hermitian + "2 2 2\n1 1 1 0\n1 2 1 0.5\n", 4, "upper triangle"});
    expect_refused<Z>({hermitian + "2 2 1\n1 1 1\n", 3, "the end of the line"});
    expect_refused<Z>(
        {"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 2\n\n1 3\n", 6, "not real"});
}

/// Bad lines at several places of a file of several blocks, in the ranges of several ranks.
TEST_F(MatrixMarketErrorTest, LinesAreExactInLongFiles) {
    std::vector<std::string> lines;
    std::size_t bytes = 0;
    std::int64_t entries = 0;
    while (bytes < 2 * text_block_bytes + 1000) {
        std::string line = std::to_string(lines.size() % 1000 + 1) + " 7 " +
                           std::to_string(lines.size() * 12345) + ".5\n";
        if (lines.size() % 1001 == 5) {
            line = lines.size() % 2 == 0 ? "\n" : "% remark\n";
        } else {
            ++entries;
        }
        bytes += line.size();
        lines.push_back(std::move(line));
    }
    const auto text_with = [&](std::int64_t promised) {
        std::string text = real_general + "1000 1000 " + std::to_string(promised) + "\n";
        for (const std::string& line : lines) {
            text += line;
        }
        return text;
    };
    const auto total = static_cast<int>(lines.size());
    expect_refused({text_with(entries + 1), total + 2, "of " + std::to_string(entries + 1)});
    // The last line is the entry that exceeds the declared number.
    expect_refused({text_with(entries - 1), total + 2, "more entries"});
    for (const int at : {1, total / 4, total / 2 + 1, total - 1}) {
        auto& line = lines[static_cast<std::size_t>(at)];
        const std::string kept = line;
        line = "1 1001 3\n";
        expect_refused({text_with(entries), at + 3, "column index 1001"});
        // A second error later in the file does not change the message.
        auto& last = lines.back();
        const std::string kept_last = last;
        last = at == total - 1 ? last : "bad\n";
        expect_refused({text_with(entries), at + 3, "column index 1001"});
        last = kept_last;
        line = kept;
    }
}

TEST_F(MatrixMarketErrorTest, DamagedGzip) {
    std::string text = real_general + "100 100 300000\n";
    std::uint32_t state = 1;
    for (int k = 0; k < 300000; ++k) {
        state = state * 1664525U + 1013904223U;
        text += std::to_string(k % 100 + 1) + " " + std::to_string(state % 100 + 1) + " " +
                std::to_string(state) + "\n";
    }
    const std::string path = folder_.write_gzip("g.mtx.gz", text);
    std::string bytes;
    {
        std::ifstream file(path, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(file), {});
    }
    EXPECT_EQ(error_of(path), "");
    const std::string truncated =
        error_of(folder_.write("t.mtx.gz", bytes.substr(0, bytes.size() / 2)));
    EXPECT_NE(truncated.find("truncated"), std::string::npos) << truncated;
    EXPECT_NE(truncated.find("t.mtx.gz:"), std::string::npos) << truncated;
    std::string flipped = bytes;
    for (std::size_t k = bytes.size() / 2; k < bytes.size() / 2 + 64; ++k) {
        flipped[k] = static_cast<char>(~flipped[k]);
    }
    EXPECT_NE(error_of(folder_.write("f.mtx.gz", flipped)), "");
    std::string checksum = bytes;
    checksum[checksum.size() - 6] = static_cast<char>(~checksum[checksum.size() - 6]);
    const std::string damaged = error_of(folder_.write("c.mtx.gz", checksum));
    EXPECT_NE(damaged.find("damaged"), std::string::npos) << damaged;
    const std::string head = error_of(folder_.write("h.mtx.gz", bytes.substr(0, 12)));
    EXPECT_NE(head.find("h.mtx.gz:1: "), std::string::npos) << head;
    // Two consecutive members are one text.
    const std::string rest = folder_.write_gzip("rest.gz", "1 1 1\n");
    std::ifstream file(rest, std::ios::binary);
    const std::string member(std::istreambuf_iterator<char>(file), {});
    const std::string both = error_of(folder_.write("b.mtx.gz", bytes + member));
    EXPECT_NE(both.find("b.mtx.gz:300003: more entries"), std::string::npos) << both;
}

/// Gzip data may be followed by zeros (blocks of a tape) or by another member. Both may cross the
/// boundary of a read.
TEST_F(MatrixMarketErrorTest, WhatFollowsGzipData) {
    const auto packed = [&](const std::string& text) {
        std::ifstream file(folder_.write_gzip("part.gz", text), std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string first = packed(real_general + "2 2 2\n1 1 1\n2");
    const std::string second = packed(" 2 5\n");
    const std::string empty = packed("");
    const auto error_with = [&](const std::string& bytes) {
        return error_of(folder_.write("f.mtx.gz", bytes));
    };
    for (const std::size_t zeros : {1, 2, 511, 1 << 18, 1000000}) {
        EXPECT_EQ(error_with(first + second + std::string(zeros, '\0')), "") << zeros;
        EXPECT_NE(error_with(first + second + std::string(zeros, '\0') + "x").find("not gzip data"),
                  std::string::npos)
            << zeros;
    }
    EXPECT_EQ(error_with(first + empty + second + empty), "");
    for (const std::string junk : {"x", "xy", "2 2 1\n", "\x1f", "\x1fx"}) {
        const std::string message = error_with(first + second + junk);
        EXPECT_NE(message.find("the gzip data are followed by bytes that are not gzip data"),
                  std::string::npos)
            << message;
    }
    EXPECT_NE(error_with(first + second.substr(0, 3)).find("truncated"), std::string::npos);
    EXPECT_NE(error_with(first).find("found the end of the line"), std::string::npos);
    // The first byte of a member is the last byte of a read.
    int tried = 0;
    for (std::size_t letters = 0; letters < 64; ++letters) {
        std::string bytes = packed(real_general + "1 1 1\n%" +
                                   std::string("qzjxkvbpygfwmucl" + first, 0, letters) + "\n");
        const std::size_t edge = (std::size_t{1} << 18) - 1;
        if ((edge - bytes.size()) % empty.size() == 0) {
            while (bytes.size() < edge) {
                bytes += empty;
            }
            EXPECT_EQ(error_with(bytes + packed("1 1 3\n")), "") << letters;
            EXPECT_NE(error_with(bytes + "\x1f").find("not gzip data"), std::string::npos);
            ++tried;
        }
    }
    EXPECT_GT(tried, 0);
}

TEST_F(MatrixMarketErrorTest, MoreRowsThanMemoryHolds) {
    const std::string path = folder_.write(
        "huge.mtx", real_general + "9000000000000000000 9000000000000000000 1\n1 1 1\n");
    const std::string message =
        message_of<MemoryError>(comm_, [&] { read_matrix_market<double>(comm_, path); });
    EXPECT_NE(message.find(" rows take "), std::string::npos) << message;
}

TEST_F(MatrixMarketErrorTest, LinesWithoutEnd) {
    const std::string text = real_general + "2 2 1\n1 1 " + std::string(3 * text_block_bytes, '1');
    for (const std::string& path :
         {folder_.write("l.mtx", text), folder_.write_gzip("l.mtx.gz", text)}) {
        EXPECT_NE(error_of(path).find("longer than"), std::string::npos);
    }
}

}  // namespace
}  // namespace quiver::test
