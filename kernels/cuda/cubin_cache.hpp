// SPDX-License-Identifier: BSD-3-Clause
// CubinCache: compiled programs on disk. Requires no GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/cache_folder.hpp"
#include "kernels/cuda/kernel_pack.hpp"
#include "kernels/cuda/nvrtc_compile.hpp"

namespace quiver::cuda {

/// A folder of compiled programs that threads and processes share, backed by packs of kernels that
/// were compiled ahead of time. Each file belongs to one key (the request, its source with all that
/// this includes, NVRTC's version) and contains the text of the key and a checksum. Files are
/// written under a temporary name and renamed: a reader sees either the complete file or none. A
/// damaged file or folder only costs a compilation.
class CubinCache {
  public:
    using Packs = std::vector<std::shared_ptr<const KernelPack>>;

    /// Creates `folder` if it is missing (mode 0700); "" stores nothing. Waits up to `patience` for
    /// another process that compiles the same program.
    explicit CubinCache(std::string folder = cache_folder(),
                        std::chrono::milliseconds patience = std::chrono::minutes(1),
                        Packs packs = {});

    /// Returns the program from the folder, otherwise from a pack or the compiler, and then stores
    /// it in the folder. Throws DeviceError if the program does not compile. The log is that of the
    /// compilation, empty if none was needed. Thread-safe.
    CompiledProgram get(const CompileRequest& request);
    /// As get(), but returns nothing if another process or thread is compiling the program.
    std::optional<CompiledProgram> get_unless_busy(const CompileRequest& request);
    /// True if get() would find the program without compiling, judged by names only.
    bool has(const CompileRequest& request) const;

    /// The file path of a request's program.
    std::string path(const CompileRequest& request) const;
    const Packs& packs() const { return packs_; }
    /// Number of calls of get() that compiled.
    int compilations() const { return compilations_; }

  private:
    std::optional<CompiledProgram> find_file(const std::string& path, const std::string& key,
                                             std::size_t expressions) const;
    std::optional<CompiledProgram> find_in_packs(const std::string& key,
                                                 std::size_t expressions) const;
    /// `insist`: compile even if another holder of the lock exceeds the patience.
    std::optional<CompiledProgram> get_within(const CompileRequest& request,
                                              std::chrono::milliseconds patience, bool insist);

    std::string folder_;
    std::chrono::milliseconds patience_;
    Packs packs_;
    std::atomic<int> compilations_ = 0;
};

}  // namespace quiver::cuda
