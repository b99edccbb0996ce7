// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/cubin_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/cuda/program_record.hpp"

namespace quiver::cuda {
namespace {

void make_folders(const std::string& folder) {
    for (std::size_t end = 0; end != std::string::npos;) {
        end = folder.find('/', end + 1);
        static_cast<void>(::mkdir(folder.substr(0, end).c_str(), 0700));
    }
}

/// Returns nothing unless the file exists, is complete and belongs to the key.
std::optional<CompiledProgram> read(const std::string& path, const std::string& key,
                                    std::size_t expressions) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    std::ostringstream record;
    record << file.rdbuf();
    return from_record(std::move(record).str(), key, expressions);
}

/// Holds a lock on a file in a scope, unless another holder exceeds the patience or the file system
/// does not support locks. The system releases the lock if the process dies. The lock file is never
/// removed, because removal would race with processes that open it.
class FileLock {
  public:
    FileLock(const std::string& path, std::chrono::milliseconds patience)
        : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        if (file_ < 0) {
            return;
        }
        const auto end = std::chrono::steady_clock::now() + patience;
        while (::flock(file_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
            busy_ = true;
            if (std::chrono::steady_clock::now() >= end) {
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        busy_ = false;
    }
    /// True if another holder exceeded the patience.
    bool busy() const { return busy_; }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;
    ~FileLock() {
        if (file_ >= 0) {
            static_cast<void>(::close(file_));
        }
    }

  private:
    int file_;
    bool busy_ = false;
};

}  // namespace

CubinCache::CubinCache(std::string folder, std::chrono::milliseconds patience, Packs packs)
    : folder_(std::move(folder)), patience_(patience), packs_(std::move(packs)) {
    if (!folder_.empty()) {
        make_folders(folder_);
    }
}

std::string CubinCache::path(const CompileRequest& request) const {
    return folder_ + "/" + record_name(key_of(request)) + ".cubin";
}

bool CubinCache::has(const CompileRequest& request) const {
    const std::string name = record_name(key_of(request));
    return std::any_of(packs_.begin(), packs_.end(),
                       [&](const auto& pack) { return pack->has(name); }) ||
           (!folder_.empty() && ::access((folder_ + "/" + name + ".cubin").c_str(), R_OK) == 0);
}

std::optional<CompiledProgram> CubinCache::find_file(const std::string& path,
                                                     const std::string& key,
                                                     std::size_t expressions) const {
    return folder_.empty() ? std::nullopt : read(path, key, expressions);
}

std::optional<CompiledProgram> CubinCache::find_in_packs(const std::string& key,
                                                         std::size_t expressions) const {
    for (const auto& pack : packs_) {
        if (const auto record = pack->find(record_name(key))) {
            if (auto found = from_record(*record, key, expressions)) {
                return found;
            }
        }
    }
    return std::nullopt;
}

CompiledProgram CubinCache::get(const CompileRequest& request) {
    return *get_within(request, patience_, true);
}

std::optional<CompiledProgram> CubinCache::get_unless_busy(const CompileRequest& request) {
    return get_within(request, std::chrono::milliseconds(0), false);
}

std::optional<CompiledProgram> CubinCache::get_within(const CompileRequest& request,
                                                      std::chrono::milliseconds patience,
                                                      bool insist) {
    const std::string key = key_of(request);
    const std::string file = path(request);
    const std::size_t expressions = request.expressions.size();
    if (auto found = find_file(file, key, expressions)) {
        return found;
    }
    // A folder that is not writable is not an error: the next process compiles the program again.
    const auto keep = [&](const CompiledProgram& program) {
        if (!folder_.empty()) {
            static_cast<void>(write_whole(folder_, file, to_record(key, program)));
        }
    };
    if (auto found = find_in_packs(key, expressions)) {
        // Store the record as a file, which needs no decompression next time.
        keep(*found);
        return found;
    }
    if (folder_.empty()) {
        ++compilations_;
        return compile(request);
    }
    const FileLock lock(file + ".lock", patience);
    if (auto found = find_file(file, key, expressions)) {
        return found;
    }
    if (lock.busy() && !insist) {
        return std::nullopt;
    }
    ++compilations_;
    CompiledProgram program = compile(request);
    keep(program);
    return program;
}

}  // namespace quiver::cuda
