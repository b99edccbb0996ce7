// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/text_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

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

/// Length of the whole lines in the text: up to and with its last newline.
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
    --position_;  // the byte before the range tells whether the range starts with a line
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
    // Bytes from the front of the buffer to the end of the range; the line that the end cuts is
    // likely to be complete a little later.
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
    // The last line of the range ends with the first newline at or after its last byte.
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

void InflatedText::Close::operator()(gzFile_s* file) const {
    gzclose_r(file);
}

InflatedText::InflatedText(const std::string& path) : file_(gzopen(path.c_str(), "rbe")) {
    if (!file_) {
        throw_system_error();
    }
    gzbuffer(file_.get(), 1 << 18);
}

bool InflatedText::is_gzip() {
    return gzdirect(file_.get()) == 0;
}

void InflatedText::check() {
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) {
        throw_system_error();
    }
    if (code == Z_BUF_ERROR) {
        throw InputError("the gzip data ends too early: the file is truncated");
    }
    if (code == Z_MEM_ERROR) {
        throw MemoryError("out of host memory while inflating");
    }
    if (code != Z_OK && code != Z_STREAM_END) {
        // zlib puts the path before the reason; the caller does so too.
        const char* reason = std::strrchr(text, ':');
        throw InputError(std::string("the gzip data is damaged:") +
                         (reason != nullptr ? reason + 1 : text));
    }
}

bool InflatedText::next_line(std::string& line) {
    line.clear();
    while (true) {
        const int c = gzgetc(file_.get());
        if (c == -1) {
            check();
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
        const int got =
            gzread(file_.get(), block + valid, static_cast<unsigned>(text_block_bytes - valid));
        if (got <= 0) {
            check();
            return valid;
        }
        valid += static_cast<std::size_t>(got);
    }
    const std::size_t lines = whole_lines(block, valid);
    if (lines == 0) {
        throw_long_line();
    }
    rest_.assign(block + lines, valid - lines);
    return lines;
}

}  // namespace quiver
