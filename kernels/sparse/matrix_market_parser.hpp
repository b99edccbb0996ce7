// SPDX-License-Identifier: BSD-3-Clause
// The parser of Matrix Market text: header and entries, with line numbers for errors. No MPI.
// Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "kernels/sparse/text_source.hpp"

namespace quiver {

/// The header, and where the data start.
struct MatrixMarketLayout {
    MatrixMarketHeader header;
    std::int64_t data_offset = 0;  // bytes of text before the first data line
    std::int64_t data_line = 1;    // number of the first data line, counted from 1
    bool gzip = false;
};

/// Reads banner, comments and size line. Throws InputError with file and line.
MatrixMarketLayout parse_header(const std::string& path, InflatedText& text);

/// Number of values in a file in array format: all elements, or the lower triangle with or without
/// the diagonal, column by column.
std::int64_t array_length(const MatrixMarketHeader& header);
/// Row and column (from 0) of value number `ordinal` of a file in array format.
std::pair<std::int64_t, std::int64_t> array_place(const MatrixMarketHeader& header,
                                                  std::int64_t ordinal);

/// A run of consecutive lines that one rank parses; `index` is its number in file order.
struct TextPiece {
    std::int64_t index = 0;
    std::int64_t lines = 0;
    std::int64_t entries = 0;
    /// The positions of lines without an entry: (entries before the line, number of such lines so
    /// far).
    std::vector<std::pair<std::int64_t, std::int64_t>> skips;

    /// The line (from 0, within the piece) of entry number `entry`.
    std::int64_t line_of(std::int64_t entry) const;
};

/// The first error in this rank's text: the index of its piece and its line within the piece.
struct TextFailure {
    static constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();
    std::int64_t piece = nowhere;
    std::int64_t line = 0;
    ErrorKind kind = ErrorKind::none;
    std::string text;
};

/// Parses the data lines of one rank, piece by piece. Never throws: it keeps the first failure and
/// ignores all later text.
template <class T>
class EntryParser {
  public:
    explicit EntryParser(const MatrixMarketHeader& header) : header_(header) {}

    void begin_piece(std::int64_t index) noexcept;
    /// Parses whole lines that continue the piece.
    void parse(const char* text, std::size_t bytes) noexcept;
    /// Records a failure of the piece that is not an error of its text, with `text` as message.
    void fail(ErrorKind kind, const std::string& text) noexcept;

    const TextFailure& failure() const { return failure_; }
    const std::vector<TextPiece>& pieces() const { return pieces_; }
    /// Entries counted from 0, with the mirrored triangle of a symmetric matrix. In array format,
    /// row is the ordinal within the piece, column is the position of the piece in pieces(), and
    /// zeros are omitted.
    std::vector<Entry<T>>& entries() { return entries_; }

  private:
    const char* parse_line(const char* at, const char* end);
    void add_coordinate(std::int64_t row, std::int64_t column, T value);

    MatrixMarketHeader header_;
    std::vector<TextPiece> pieces_;
    TextFailure failure_;
    std::vector<Entry<T>> entries_;
};

/// Appends the entry and, if the file holds one triangle only, its mirror image.
template <class T>
void append_expanded(std::vector<Entry<T>>& entries, Symmetry symmetry, const Entry<T>& entry);

}  // namespace quiver
