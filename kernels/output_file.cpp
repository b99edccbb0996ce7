// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blockvec/error.hpp"
#include "kernels/sync_file.hpp"

namespace quiver {
namespace {

namespace fs = std::filesystem;

using Status = struct stat;

constexpr std::string_view standard_output = "-";

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw InputError("cannot write " + (name.empty() ? "''" : name) + ": " + why);
}

/// STDOUT_FILENO or STDERR_FILENO if the given file is open there, else -1. A file that is open
/// there must not be replaced by renaming, which would lose the text that the shell redirects
/// there.
int descriptor_of(const Status& status) {
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
        Status open_one{};
        if (::fstat(descriptor, &open_one) == 0 && open_one.st_dev == status.st_dev &&
            open_one.st_ino == status.st_ino) {
            return descriptor;
        }
    }
    return -1;
}

/// The name behind all symbolic links of the last component, whether or not it exists.
fs::path follow_links(const std::string& name) {
    constexpr int most_links = 40;  // the limit of Linux
    fs::path target = name;
    std::error_code error;
    for (int links = 0; fs::is_symlink(target, error); ++links) {
        if (links == most_links) {
            refuse(name, std::strerror(ELOOP));
        }
        const fs::path next = fs::read_symlink(target, error);
        if (error) {
            refuse(name, error.message());
        }
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    return target;
}

/// Writes the whole text; returns 0, or errno.
int write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(file, text.data(), text.size());
        if (count < 0 && errno != EINTR) {
            return errno;
        }
        text.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
    return 0;
}

}  // namespace

OutputFile::OutputFile(std::string name) : name_(std::move(name)) {
    if (name_.empty()) {
        refuse(name_, "the name of a file is wanted");
    }
    if (name_ == standard_output) {
        descriptor_ = STDOUT_FILENO;
        return;
    }
    Status status{};
    if (::stat(name_.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) {
            refuse(name_, "it is a directory");
        }
        descriptor_ = descriptor_of(status);
        if (descriptor_ >= 0 || S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
            return;
        }
        if (!S_ISREG(status.st_mode)) {
            refuse(name_, "it is neither a regular file nor a pipe nor a character device");
        }
        permissions_ = static_cast<int>(status.st_mode & 0777U);
    }
    const fs::path target = follow_links(name_);
    if (target.filename().empty()) {
        refuse(name_, "it is the name of a folder, the name of a file is wanted");
    }
    std::error_code error;
    if (const fs::path folder = target.parent_path();
        !folder.empty() && !fs::is_directory(folder, error)) {
        fs::create_directories(folder, error);
        if (error) {
            fail(error.value());
        }
    }
    target_ = target.string();
    part_ = target_ + "." + std::to_string(::getpid()) + ".part";
}

OutputFile::~OutputFile() {
    if (is_regular_file() && !published_) {
        ::unlink(part_.c_str());
    }
}

bool OutputFile::is_standard_output() const {
    return descriptor_ == STDOUT_FILENO;
}

void OutputFile::require_regular_file(const std::string& format) const {
    if (!is_regular_file()) {
        refuse(name_, format + " needs a regular file, not a pipe, a device or standard output");
    }
}

int OutputFile::open() const {
    if (descriptor_ >= 0) {
        std::fflush(nullptr);  // keeps the order of earlier prints
        const int copy = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
        if (copy < 0) {
            fail(errno);
        }
        return copy;
    }
    int file = -1;
    // The owner reads and writes the file until publish() sets its final permissions.
    const int permissions = permissions_ < 0 ? 0666 : permissions_ | S_IRUSR | S_IWUSR;
    do {
        file = is_regular_file()
                   ? ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, permissions)
                   : ::open(name_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    } while (file < 0 && errno == EINTR);
    if (file < 0) {
        fail(errno);
    }
    return file;
}

void OutputFile::check() const {
    if (is_regular_file()) {
        const int file = open();
        ::close(file);
        ::unlink(part_.c_str());
    } else if (descriptor_ < 0 && ::access(name_.c_str(), W_OK) != 0) {
        fail(errno);
    }
}

void OutputFile::publish(bool durable) {
    if (!is_regular_file()) {
        return;
    }
    if (const int code = durable ? sync_file(part_) : 0; code != 0) {
        fail(code);
    }
    // The umask may have removed bits when the file was created.
    if (permissions_ >= 0 && ::chmod(part_.c_str(), static_cast<mode_t>(permissions_)) != 0) {
        fail(errno);
    }
    if (::rename(part_.c_str(), target_.c_str()) != 0) {
        fail(errno);
    }
    published_ = true;
}

void OutputFile::fail(int code) const {
    const std::string message = "cannot write " + name_ + ": " + std::strerror(code);
    switch (code) {
        case ENOENT:
        case ENOTDIR:
        case EISDIR:
        case EACCES:
        case EPERM:
        case EROFS:
        case ENAMETOOLONG:
        case ELOOP:
            throw InputError(message);
        default:
            throw Error(ErrorKind::other, message);
    }
}

void write_output(const std::string& name, std::string_view text, bool durable) {
    OutputFile output(name);
    const int file = output.open();
    int code = write_all(file, text);
    if (::close(file) != 0 && code == 0) {
        code = errno;
    }
    if (code != 0) {
        output.fail(code);
    }
    output.publish(durable);
}

bool is_standard_output(const std::string& name) {
    Status status{};
    return name == standard_output || (!name.empty() && ::stat(name.c_str(), &status) == 0 &&
                                       descriptor_of(status) == STDOUT_FILENO);
}

bool same_output(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) {
        return false;
    }
    if (is_standard_output(a) || is_standard_output(b)) {
        return is_standard_output(a) && is_standard_output(b);
    }
    std::error_code error;
    return fs::weakly_canonical(follow_links(a), error) ==
           fs::weakly_canonical(follow_links(b), error);
}

}  // namespace quiver
