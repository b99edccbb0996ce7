// SPDX-License-Identifier: BSD-3-Clause
// The sources of the text of a matrix file: a byte range of a plain file, or a gzip stream. Both
// deliver blocks of whole lines. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quiver {

/// The largest number of bytes in a block, and therefore the longest readable line.
inline constexpr std::size_t text_block_bytes = std::size_t{1} << 22;

/// The lines whose first byte lies in [begin, end) of a plain file. However a file is cut into
/// ranges, these deliver every line exactly once. Errors are InputError without file and line.
class PlainText {
  public:
    /// `first_line` is a byte at which a line starts, at most `begin`.
    PlainText(const std::string& path, std::int64_t first_line, std::int64_t begin,
              std::int64_t end);
    PlainText(const PlainText&) = delete;
    PlainText& operator=(const PlainText&) = delete;
    ~PlainText();

    /// The next block of whole lines (the last line of the file may lack its newline), valid until
    /// the next call; empty at the end.
    std::string_view next();

  private:
    std::size_t read(char* to, std::size_t bytes);
    void skip_line();

    int file_ = -1;
    std::int64_t position_ = 0;  // offset of the next read
    std::int64_t end_ = 0;
    bool done_ = false;
    std::vector<char> buffer_;
    std::size_t used_ = 0;   // bytes of the block returned last
    std::size_t valid_ = 0;  // bytes in the buffer
};

/// A whole file from its start, inflated if it is gzip-compressed (any number of members, followed
/// by any number of zeros), otherwise unchanged. Errors, including a damaged or truncated stream
/// and bytes after it, are InputError without file and line.
class InflatedText {
  public:
    explicit InflatedText(const std::string& path);
    InflatedText(InflatedText&&) noexcept;
    ~InflatedText();

    bool is_gzip() const;
    /// Reads the next line without its newline; returns false at the end of the text.
    bool next_line(std::string& line);
    /// Number of bytes that next_line has read.
    std::int64_t position() const { return position_; }
    /// Fills `block` (text_block_bytes long) with whole lines (the last line of the text with or
    /// without its newline) and returns their length; 0 at the end.
    std::size_t next_block(char* block);

  private:
    class Inflater;

    std::unique_ptr<Inflater> file_;
    std::int64_t position_ = 0;
    std::string rest_;  // start of a line, left from the last block
};

}  // namespace quiver
