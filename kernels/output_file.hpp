// SPDX-License-Identifier: BSD-3-Clause
// Files that a user names as outputs: one rule for every writer.
#pragma once

#include <string>
#include <string_view>

namespace quiver {

/// The destination of an output, found when the object is made:
///
/// - `-`, and every name that leads to the process's standard output or error (a redirected
///   regular file included), is written through that descriptor.
/// - A FIFO or a character device is opened and written directly; to open a FIFO waits for its
///   reader.
/// - Any other name is a regular file. Symbolic links are followed, also to a file that does not
///   exist yet, and missing parent folders are created. The text goes to a temporary name beside
///   the link's target; publish() renames it. So a reader sees the old file or the whole new one,
///   and the link stays a link.
///
/// A function of one process: callers on several ranks let one of them write.
class OutputFile {
  public:
    /// Throws InputError, which starts with "cannot write NAME", for an empty name, a folder, a
    /// block device, a socket, a loop of links, or a parent folder that cannot be created.
    explicit OutputFile(std::string name);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Removes the temporary file unless publish() has renamed it.
    ~OutputFile();

    /// As the user wrote it.
    const std::string& name() const { return name_; }
    /// False for pipes, devices, standard output and standard error.
    bool is_regular_file() const { return !part_.empty(); }
    bool is_standard_output() const;
    /// Throws InputError unless is_regular_file(): for formats that seek. `format` starts the
    /// sentence, as in "an HDF5 file".
    void require_regular_file(const std::string& format) const;
    /// The temporary name, which a writer of a seekable format creates itself. Empty unless
    /// is_regular_file().
    const std::string& part() const { return part_; }

    /// A descriptor that is open for writing, which the caller closes. Throws as fail().
    int open() const;
    /// Creates and removes the temporary file, or looks at the permissions of a pipe or device.
    /// Throws as fail().
    void check() const;
    /// Gives the finished file its name; a no-op for what is not a regular file. `durable`: the
    /// data are on the disk (fsync) before the file has its name. Throws as fail().
    void publish(bool durable = false);
    /// Throws "cannot write NAME: " and the system's text for `code`: InputError where another name
    /// is the cure, else Error.
    [[noreturn]] void fail(int code) const;

  private:
    std::string name_;
    /// Name after all links; empty unless this is a regular file.
    std::string target_;
    std::string part_;
    /// 1 or 2 if the name leads to standard output or error, else -1.
    int descriptor_ = -1;
    bool published_ = false;
};

/// Writes the text to the output `name`. Throws as OutputFile; no regular file is left partial.
void write_output(const std::string& name, std::string_view text, bool durable = false);

/// Whether two names lead to one destination: the same file after all links, or standard output.
bool same_output(const std::string& a, const std::string& b);

/// Whether `-` or another name leads to standard output.
bool is_standard_output(const std::string& name);

}  // namespace quiver
