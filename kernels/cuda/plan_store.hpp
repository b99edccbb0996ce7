// SPDX-License-Identifier: BSD-3-Clause
// Plans chosen by the model, kept on disk. Needs no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace quiver::cuda {

/// What the model said of a shape takes milliseconds to find, so it is kept beside the compiled
/// kernels: lines "KEY PLAN CHECKSUM" of one file, which threads and processes append to. A file
/// belongs to a version, the hash of all that a choice depends on; whatever is wrong with it, or a
/// line of it, only costs the search.
class PlanStore {
  public:
    /// `folder` "" keeps nothing; it must exist.
    PlanStore(const std::string& folder, const std::string& version);

    /// Null where the key is not known.
    const std::string* find(std::uint64_t key) const;
    void add(std::uint64_t key, const std::string& plan);
    /// Adds lines of another store's text, in memory only.
    void remember(const std::string& lines);
    std::string text() const;

    /// "" where nothing is kept.
    const std::string& path() const { return path_; }
    /// Changes with the sources of the model.
    static std::uint64_t model_version();

  private:
    std::string path_;
    std::unordered_map<std::uint64_t, std::string> plans_;
};

}  // namespace quiver::cuda
