// SPDX-License-Identifier: BSD-3-Clause
// Compiled programs on disk. Needs no GPU.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/kernel_pack.hpp"
#include "kernels/cuda/nvrtc_compile.hpp"

namespace quiver::cuda {

/// A folder of compiled programs that threads and processes share, behind packs of kernels that
/// were compiled ahead of time. A file belongs to one key (the request, the embedded sources,
/// NVRTC's version), carries the key's text and a checksum, and is written aside and renamed: a
/// reader sees all of it or nothing. A damaged file or folder only costs a compilation.
class CubinCache {
  public:
    using Packs = std::vector<std::shared_ptr<const KernelPack>>;

    /// Makes `folder` if it is missing (mode 0700); "" keeps nothing. Waits as long as `patience`
    /// for another process that compiles the same program.
    explicit CubinCache(std::string folder = default_folder(),
                        std::chrono::milliseconds patience = std::chrono::minutes(1),
                        Packs packs = {});

    /// $QUIVER_CACHE, else $XDG_CACHE_HOME/quiver, else $HOME/.cache/quiver, else "".
    static std::string default_folder();

    /// From the folder, or from a pack or the compiler and then put into the folder. Throws
    /// DeviceError when it does not compile. The log is that of a compilation, empty for a program
    /// found. Thread-safe.
    CompiledProgram get(const CompileRequest& request);
    /// The same, but nothing where another process or thread is compiling the program.
    std::optional<CompiledProgram> get_unless_busy(const CompileRequest& request);
    /// Whether get() would find the program without compiling, as far as names tell.
    bool has(const CompileRequest& request) const;

    /// Where the program of a request is kept.
    std::string path(const CompileRequest& request) const;
    const Packs& packs() const { return packs_; }
    /// How many calls of get compiled.
    int compilations() const { return compilations_; }

  private:
    std::optional<CompiledProgram> find_file(const std::string& path, const std::string& key,
                                             std::size_t expressions) const;
    std::optional<CompiledProgram> find_in_packs(const std::string& key,
                                                 std::size_t expressions) const;
    /// `insist`: compiles also where another holder of the lock outlasts the patience.
    std::optional<CompiledProgram> get_within(const CompileRequest& request,
                                              std::chrono::milliseconds patience, bool insist);

    std::string folder_;
    std::chrono::milliseconds patience_;
    Packs packs_;
    std::atomic<int> compilations_ = 0;
};

}  // namespace quiver::cuda
