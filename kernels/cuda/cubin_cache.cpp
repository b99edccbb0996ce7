// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/cubin_cache.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cuda/embedded_sources.hpp"
#include "kernels/cuda/hash.hpp"

namespace quiver::cuda {
namespace {

constexpr std::string_view magic = "quiver cubin 1";

std::string hex(std::uint64_t value) {
    char digits[17] = {};
    std::to_chars(digits, digits + 16, value, 16);
    return digits;
}

std::uint64_t hash_of_sources() {
    std::uint64_t result = hash_start;
    for (const EmbeddedSource& source : embedded_sources()) {
        result = hash(source.text, hash(source.name, result));
    }
    return result;
}

void make_folders(const std::string& folder) {
    for (std::size_t end = 0; end != std::string::npos;) {
        end = folder.find('/', end + 1);
        static_cast<void>(::mkdir(folder.substr(0, end).c_str(), 0700));
    }
}

std::string join(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::uint64_t checksum(const std::string& key, const std::string& names, const std::string& image) {
    return hash(image, hash(names, hash(key)));
}

/// Nothing unless the file is there, whole, and the key's.
std::optional<CompiledProgram> read(const std::string& path, const std::string& key,
                                    std::size_t expressions) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    std::ostringstream buffer;
    buffer << file.rdbuf();
    const std::string all = std::move(buffer).str();
    const std::size_t header_end = all.find('\n');
    if (header_end == std::string::npos || all.compare(0, magic.size(), magic) != 0) {
        return std::nullopt;
    }
    std::istringstream header(all.substr(magic.size(), header_end - magic.size()));
    std::size_t key_bytes = 0;
    std::size_t names_bytes = 0;
    std::size_t image_bytes = 0;
    std::string sum;
    header >> key_bytes >> names_bytes >> image_bytes >> sum;
    std::size_t left = all.size() - header_end - 1;
    for (const std::size_t part : {key_bytes, names_bytes, image_bytes}) {
        if (part > left) {
            return std::nullopt;
        }
        left -= part;
    }
    const std::string stored_key = all.substr(header_end + 1, key_bytes);
    const std::string names = all.substr(header_end + 1 + key_bytes, names_bytes);
    CompiledProgram result;
    result.image = all.substr(header_end + 1 + key_bytes + names_bytes, image_bytes);
    result.lowered_names = split(names);
    if (!header || left != 0 || stored_key != key || result.lowered_names.size() != expressions ||
        sum != hex(checksum(key, names, result.image))) {
        return std::nullopt;
    }
    return result;
}

/// Best effort: a folder that cannot be written is no error.
void write(const std::string& folder, const std::string& path, const std::string& key,
           const CompiledProgram& program) {
    const std::string names = join(program.lowered_names);
    std::string all(magic);
    for (const std::size_t bytes : {key.size(), names.size(), program.image.size()}) {
        all += " " + std::to_string(bytes);
    }
    all += " " + hex(checksum(key, names, program.image)) + "\n" + key + names + program.image;

    std::string aside = folder + "/writing.XXXXXX";
    const int file = ::mkstemp(aside.data());
    if (file < 0) {
        return;
    }
    std::size_t done = 0;
    while (done < all.size()) {
        const ssize_t count = ::write(file, all.data() + done, all.size() - done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    const bool closed = ::close(file) == 0;
    if (done != all.size() || !closed || ::rename(aside.c_str(), path.c_str()) != 0) {
        static_cast<void>(::unlink(aside.c_str()));
    }
}

/// Holds a lock on a file while in scope, unless another holder outlasts the patience or locks do
/// not work there. The system releases it when a process dies. The file stays: to remove it would
/// race with who opens it.
class FileLock {
  public:
    FileLock(const std::string& path, std::chrono::milliseconds patience)
        : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        if (file_ < 0) {
            return;
        }
        const auto end = std::chrono::steady_clock::now() + patience;
        while (::flock(file_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
               std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;
    ~FileLock() {
        if (file_ >= 0) {
            static_cast<void>(::close(file_));
        }
    }

  private:
    int file_;
};

}  // namespace

CubinCache::CubinCache(std::string folder, std::chrono::milliseconds patience)
    : folder_(std::move(folder)),
      patience_(patience),
      version_("; NVRTC " + nvrtc_version() + ", sources " + hex(hash_of_sources())) {
    if (!folder_.empty()) {
        make_folders(folder_);
    }
}

std::string CubinCache::default_folder() {
    const auto value_of = [](const char* variable) {
        const char* value = std::getenv(variable);
        return std::string(value == nullptr ? "" : value);
    };
    if (std::string given = value_of("QUIVER_CACHE"); !given.empty()) {
        return given;
    }
    if (const std::string given = value_of("XDG_CACHE_HOME"); !given.empty()) {
        return given + "/quiver";
    }
    const std::string home = value_of("HOME");
    return home.empty() ? "" : home + "/.cache/quiver";
}

std::string CubinCache::key(const CompileRequest& request) const {
    return describe(request) + version_;
}

std::string CubinCache::path(const CompileRequest& request) const {
    // Two hashes, since a collision would make two programs push each other out.
    const std::uint64_t first = hash(key(request));
    return folder_ + "/" + hex(first) + hex(hash(key(request), ~first)) + ".cubin";
}

CompiledProgram CubinCache::compile_counted(const CompileRequest& request) {
    ++compilations_;
    return compile(request);
}

CompiledProgram CubinCache::get(const CompileRequest& request) {
    if (folder_.empty()) {
        return compile_counted(request);
    }
    const std::string text = key(request);
    const std::string file = path(request);
    if (auto found = read(file, text, request.expressions.size())) {
        return *std::move(found);
    }
    const FileLock lock(file + ".lock", patience_);
    if (auto found = read(file, text, request.expressions.size())) {
        return *std::move(found);
    }
    CompiledProgram program = compile_counted(request);
    write(folder_, file, text, program);
    return program;
}

}  // namespace quiver::cuda
