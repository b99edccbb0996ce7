// SPDX-License-Identifier: BSD-3-Clause
// PlanStore: plans chosen by the model, stored on disk. Requires no GPU.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace quiver::cuda {

/// The search of the model takes milliseconds per shape. Its results are therefore stored beside
/// the compiled kernels: lines "KEY PLAN CHECKSUM" of one file, to which threads and processes
/// append. A file belongs to a version, the hash of everything that a choice depends on. A damaged
/// file or line only costs a new search.
class PlanStore {
  public:
    /// `folder` must exist; "" stores nothing.
    PlanStore(const std::string& folder, const std::string& version);

    /// Null if the key is unknown.
    const std::string* find(std::uint64_t key) const;
    void add(std::uint64_t key, const std::string& plan);
    /// Adds lines of another store's text, in memory only.
    void remember(const std::string& lines);
    std::string text() const;

    /// The path of the file; "" if nothing is stored.
    const std::string& path() const { return path_; }
    /// A hash that changes with the sources of the model.
    static std::uint64_t model_version();

  private:
    std::string path_;
    std::unordered_map<std::uint64_t, std::string> plans_;
};

}  // namespace quiver::cuda
