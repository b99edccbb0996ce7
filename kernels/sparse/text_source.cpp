// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/text_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

[[noreturn]] void throw_system_error() {
    throw InputError(std::strerror(errno));
}

[[noreturn]] void throw_long_line() {
    throw InputError("a line is longer than " + std::to_string(text_block_bytes) + " bytes");
}

/// Length of the whole lines in the text, up to and including the last newline.
std::size_t whole_lines(const char* text, std::size_t bytes) {
    const void* newline = memrchr(text, '\n', bytes);
    return newline == nullptr
               ? 0
               : static_cast<std::size_t>(static_cast<const char*>(newline) - text) + 1;
}

}  // namespace

PlainText::PlainText(const std::string& path, std::int64_t first_line, std::int64_t begin,
                     std::int64_t end)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), position_(begin), end_(end) {
    if (file_ < 0) {
        throw_system_error();
    }
    try {
        done_ = begin >= end;
        if (!done_) {
            buffer_.resize(2 * text_block_bytes);
            if (begin > first_line) {
                skip_line();
            }
        }
    } catch (...) {
        ::close(file_);
        throw;
    }
}

PlainText::~PlainText() {
    ::close(file_);
}

std::size_t PlainText::read(char* to, std::size_t bytes) {
    std::size_t got = 0;
    while (got < bytes) {
        const ssize_t n = ::pread(file_, to + got, bytes - got, position_);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            throw_system_error();
        }
        if (n == 0) {
            break;
        }
        got += static_cast<std::size_t>(n);
        position_ += n;
    }
    return got;
}

void PlainText::skip_line() {
    --position_;  // a newline before the range means that the range starts with a line
    while (true) {
        constexpr std::size_t step = 4096;
        const std::int64_t start = position_;
        const std::size_t got = read(buffer_.data(), step);
        const void* newline = got > 0 ? std::memchr(buffer_.data(), '\n', got) : nullptr;
        if (newline != nullptr) {
            position_ = start + (static_cast<const char*>(newline) - buffer_.data()) + 1;
        }
        if (newline != nullptr || got < step || position_ >= end_) {
            done_ = newline == nullptr || position_ >= end_;
            return;
        }
    }
}

std::string_view PlainText::next() {
    if (done_) {
        return {};
    }
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(used_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(valid_), buffer_.begin());
    valid_ -= used_;
    // Read from the end of the buffer to the end of the range, and a little further, because the
    // line that crosses the end is likely to be complete then.
    const auto mine = static_cast<std::size_t>(end_ - position_) + valid_;
    constexpr std::size_t likely_line = 256;
    const std::size_t wanted = std::min(mine - valid_ + likely_line, text_block_bytes);
    const std::size_t got = read(buffer_.data() + valid_, wanted);
    valid_ += got;
    if (valid_ < mine && got == wanted) {
        used_ = whole_lines(buffer_.data(), valid_);
        if (used_ == 0 || valid_ - used_ > text_block_bytes) {
            throw_long_line();
        }
        return {buffer_.data(), used_};
    }
    // The last line of the range ends with the first newline at or after the last byte of the
    // range.
    done_ = true;
    const auto last_line_end = [&]() -> std::size_t {
        const std::size_t from = std::min(mine - 1, valid_);
        const void* newline = std::memchr(buffer_.data() + from, '\n', valid_ - from);
        return newline == nullptr
                   ? 0
                   : static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data()) +
                         1;
    };
    used_ = last_line_end();
    if (used_ == 0) {
        valid_ += read(buffer_.data() + valid_, buffer_.size() - valid_);
        used_ = last_line_end();
    }
    if (used_ == 0) {
        if (valid_ == buffer_.size()) {
            throw_long_line();
        }
        used_ = valid_;
    }
    return {buffer_.data(), used_};
}

/// The bytes of a file, inflated if it is gzip-compressed. zlib's own reader would ignore data
/// after a stream.
class InflatedText::Inflater {
  public:
    explicit Inflater(const std::string& path)
        : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), packed_(packed_bytes) {
        if (file_ < 0) {
            throw_system_error();
        }
        try {
            begin();
        } catch (...) {
            ::close(file_);
            throw;
        }
    }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() {
        if (gzip_) {
            inflateEnd(&stream_);
        }
        ::close(file_);
    }

    bool is_gzip() const { return gzip_; }

    /// Reads the next byte; returns -1 at the end. For headers; may alternate with `read`.
    int next_byte() {
        unsigned char byte = 0;
        return read(reinterpret_cast<char*>(&byte), 1) == 1 ? byte : -1;
    }

    /// Reads up to `bytes` available bytes; returns 0 at the end.
    std::size_t read(char* to, std::size_t bytes) {
        return gzip_ ? inflate_some(to, bytes) : copy_some(to, bytes);
    }

  private:
    static constexpr std::size_t packed_bytes = std::size_t{1} << 18;

    void begin() {
        refill();
        gzip_ = starts_member();
        if (gzip_) {
            constexpr int gzip_window = 15 + 16;  // any window size, with gzip's header
            const int code = inflateInit2(&stream_, gzip_window);
            gzip_ = code == Z_OK;
            check(code);
        }
    }

    /// Reads more data after the remaining bytes; returns false at the end of the file.
    bool refill() {
        std::copy(packed_.begin() + static_cast<std::ptrdiff_t>(used_),
                  packed_.begin() + static_cast<std::ptrdiff_t>(valid_), packed_.begin());
        valid_ -= std::exchange(used_, 0);
        ssize_t got = -1;
        do {
            got = ::read(file_, packed_.data() + valid_, packed_.size() - valid_);
        } while (got < 0 && errno == EINTR);
        if (got < 0) {
            throw_system_error();
        }
        valid_ += static_cast<std::size_t>(got);
        return got > 0;
    }

    std::size_t left() const { return valid_ - used_; }
    bool starts_member() const {
        return left() >= 2 && packed_[used_] == 0x1f && packed_[used_ + 1] == 0x8b;
    }

    std::size_t copy_some(char* to, std::size_t bytes) {
        if (left() == 0 && !refill()) {
            return 0;
        }
        const std::size_t some = std::min(bytes, left());
        std::copy_n(packed_.begin() + static_cast<std::ptrdiff_t>(used_), some, to);
        used_ += some;
        return some;
    }

    std::size_t inflate_some(char* to, std::size_t bytes) {
        stream_.next_out = reinterpret_cast<Bytef*>(to);
        stream_.avail_out = static_cast<uInt>(bytes);
        while (stream_.avail_out == bytes) {
            if (between_members_ && !next_member()) {
                return 0;
            }
            if (left() == 0 && !refill()) {
                throw InputError("the gzip data end too early: the file is truncated");
            }
            stream_.next_in = packed_.data() + used_;
            stream_.avail_in = static_cast<uInt>(left());
            const int code = inflate(&stream_, Z_NO_FLUSH);
            used_ = valid_ - stream_.avail_in;
            between_members_ = code == Z_STREAM_END;
            check(code);
        }
        return bytes - stream_.avail_out;
    }

    /// Proceeds to the next member; returns false if there is none.
    bool next_member() {
        while (left() < 2 && refill()) {
        }
        if (starts_member()) {
            check(inflateReset(&stream_));
            between_members_ = false;
            return true;
        }
        do {
            if (std::any_of(packed_.begin() + static_cast<std::ptrdiff_t>(used_),
                            packed_.begin() + static_cast<std::ptrdiff_t>(valid_),
                            [](unsigned char byte) { return byte != 0; })) {
                throw InputError("the gzip data are followed by bytes that are not gzip data");
            }
            used_ = valid_;
        } while (refill());
        return false;
    }

    void check(int code) const {
        if (code == Z_MEM_ERROR) {
            throw MemoryError("out of host memory while inflating");
        }
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
            throw InputError(std::string("the gzip data are damaged: ") +
                             (stream_.msg != nullptr ? stream_.msg : zError(code)));
        }
    }

    int file_ = -1;
    bool gzip_ = false;
    bool between_members_ = false;
    std::vector<unsigned char> packed_;
    std::size_t used_ = 0;
    std::size_t valid_ = 0;
    z_stream stream_{};
};

InflatedText::InflatedText(const std::string& path) : file_(std::make_unique<Inflater>(path)) {}
InflatedText::InflatedText(InflatedText&&) noexcept = default;
InflatedText::~InflatedText() = default;

bool InflatedText::is_gzip() const {
    return file_->is_gzip();
}

bool InflatedText::next_line(std::string& line) {
    line.clear();
    while (true) {
        const int c = file_->next_byte();
        if (c == -1) {
            return !line.empty();
        }
        ++position_;
        if (c == '\n') {
            return true;
        }
        if (line.size() == text_block_bytes) {
            throw_long_line();
        }
        line.push_back(static_cast<char>(c));
    }
}

std::size_t InflatedText::next_block(char* block) {
    std::copy(rest_.begin(), rest_.end(), block);
    std::size_t valid = rest_.size();
    rest_.clear();
    while (valid < text_block_bytes) {
        const std::size_t got = file_->read(block + valid, text_block_bytes - valid);
        if (got == 0) {
            return valid;
        }
        valid += got;
    }
    const std::size_t lines = whole_lines(block, valid);
    if (lines == 0) {
        throw_long_line();
    }
    rest_.assign(block + lines, valid - lines);
    return lines;
}

}  // namespace quiver
