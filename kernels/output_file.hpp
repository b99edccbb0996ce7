// SPDX-License-Identifier: BSD-3-Clause
// Files that a user names as outputs: one rule for every writer.
#pragma once

#include <string>
#include <string_view>

namespace quiver {

/// The destination of an output. The constructor decides from the name which kind it is:
///
/// - `-`, and every name that leads to the process's standard output or error (a redirected regular
///   file included), is written through that descriptor.
/// - A FIFO or a character device is opened and written directly. Opening a FIFO waits for its
///   reader.
/// - Any other name is a regular file. Symbolic links are followed, also to a file that does not
///   exist yet, and missing parent folders are created. The text goes to a temporary file beside
///   the link's target; publish() renames it. A reader therefore sees the old file or the complete
///   new one. The link stays a link, and the new file has the permissions of the old one.
///
/// Not collective: with several ranks, only one of them may write an output.
class OutputFile {
  public:
    /// Throws InputError, which starts with "cannot write NAME", for an empty name, a folder, a
    /// block device, a socket, a loop of links, or a parent folder that cannot be created.
    explicit OutputFile(std::string name);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    /// Removes the temporary file unless publish() has renamed it.
    ~OutputFile();

    /// The name as the user wrote it.
    const std::string& name() const { return name_; }
    /// False for pipes, devices, standard output and standard error.
    bool is_regular_file() const { return !part_.empty(); }
    bool is_standard_output() const;
    /// For formats that seek: throws InputError unless is_regular_file(). `format` is the subject
    /// of the message, as in "an HDF5 file".
    void require_regular_file(const std::string& format) const;
    /// The temporary name, for writers that create the file themselves. Empty unless
    /// is_regular_file().
    const std::string& part() const { return part_; }

    /// Opens a descriptor for writing; the caller closes it. Throws as fail().
    int open() const;
    /// Creates and removes the temporary file, or checks the permissions of a pipe or device.
    /// Throws as fail().
    void check() const;
    /// Renames the finished temporary file to its target; a no-op for other kinds. `durable`: the
    /// data are on the disk (fsync) before the file gets its name. Throws as fail().
    void publish(bool durable = false);
    /// Throws "cannot write NAME: " and the system's text for `code`: InputError if another name
    /// could succeed, else Error.
    [[noreturn]] void fail(int code) const;

  private:
    std::string name_;
    /// Name after all links; empty unless this is a regular file.
    std::string target_;
    std::string part_;
    /// The permissions of the file that will be replaced; -1 if there is none.
    int permissions_ = -1;
    /// 1 or 2 if the name leads to standard output or error, else -1.
    int descriptor_ = -1;
    bool published_ = false;
};

/// Writes the text to the output `name`. Throws as OutputFile; no regular file is left partial.
void write_output(const std::string& name, std::string_view text, bool durable = false);

/// True if two names have one destination: the same file after all links, or standard output.
bool same_output(const std::string& a, const std::string& b);

/// True if the name is `-` or leads to standard output.
bool is_standard_output(const std::string& name);

}  // namespace quiver
