// SPDX-License-Identifier: BSD-3-Clause
// KernelPack: kernels compiled ahead of time, in one compressed file per architecture. Requires no
// GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quiver::cuda {

/// A file of program records (kernels/cuda/program_record.hpp), each compressed separately. A
/// damaged pack costs compilations but never gives a wrong kernel: each record contains its key and
/// a checksum.
class KernelPack {
  public:
    /// Reads the index. Returns null unless the file exists and its index is valid.
    static std::shared_ptr<const KernelPack> open(const std::string& path);
    KernelPack(const KernelPack&) = delete;
    KernelPack& operator=(const KernelPack&) = delete;
    ~KernelPack();

    bool has(const std::string& name) const { return entries_.contains(name); }
    /// The record of a name; nothing if the pack does not contain it or the record is damaged.
    /// Thread-safe.
    std::optional<std::string> find(const std::string& name) const;
    std::size_t size() const { return entries_.size(); }

    /// Writes a pack of (name, record) under a temporary name and renames it. Throws Error on
    /// failure.
    static void write(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& records);

    /// "quiver-sm_90.pack"
    static std::string file_name(const std::string& arch);
    /// The packs that a process uses for an architecture, in the order of the folders: those of
    /// $QUIVER_PACKS (separated by colons), of the cache, of the build, of the installation.
    static std::vector<std::shared_ptr<const KernelPack>> installed(const std::string& arch);

  private:
    struct Entry {
        std::uint64_t offset;
        std::size_t stored, bytes;
    };
    explicit KernelPack(int file) : file_(file) {}

    int file_;
    std::unordered_map<std::string, Entry> entries_;
};

}  // namespace quiver::cuda
