// SPDX-License-Identifier: BSD-3-Clause
// Where the text of a matrix file comes from: a byte range of a plain file, or a gzip stream. Both
// give blocks of whole lines. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quiver {

/// Bytes of text that a block holds at most, and so the longest line that can be read.
inline constexpr std::size_t text_block_bytes = std::size_t{1} << 22;

/// The lines whose first byte lies in [begin, end) of a plain file: cut at any bytes, the ranges of
/// a file give every line exactly once. Errors are InputError without file and line.
class PlainText {
  public:
    /// `first_line` is a byte at which a line starts, at most `begin`.
    PlainText(const std::string& path, std::int64_t first_line, std::int64_t begin,
              std::int64_t end);
    PlainText(const PlainText&) = delete;
    PlainText& operator=(const PlainText&) = delete;
    ~PlainText();

    /// The next block of whole lines (the file's last one may lack its newline), valid until the
    /// next call; empty at the end.
    std::string_view next();

  private:
    std::size_t read(char* to, std::size_t bytes);
    void skip_line();

    int file_ = -1;
    std::int64_t position_ = 0;  // where the next read starts
    std::int64_t end_ = 0;
    bool done_ = false;
    std::vector<char> buffer_;
    std::size_t used_ = 0;   // bytes of the block given out last
    std::size_t valid_ = 0;  // bytes in the buffer
};

/// A whole file from its start, inflated if it is gzip'd (any number of members, zeros behind
/// them), as it is if not. Errors, among them a damaged or truncated stream and bytes that follow
/// it, are InputError without file and line.
class InflatedText {
  public:
    explicit InflatedText(const std::string& path);
    InflatedText(InflatedText&&) noexcept;
    ~InflatedText();

    bool is_gzip() const;
    /// The next line without its newline; false at the end of the text.
    bool next_line(std::string& line);
    /// Bytes of text read so far by next_line.
    std::int64_t position() const { return position_; }
    /// Fills `block` (text_block_bytes long) with whole lines, the text's last one with or without
    /// its newline, and returns their length; 0 at the end.
    std::size_t next_block(char* block);

  private:
    class Inflater;

    std::unique_ptr<Inflater> file_;
    std::int64_t position_ = 0;
    std::string rest_;  // start of a line, left over from the last block
};

}  // namespace quiver
