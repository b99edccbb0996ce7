// SPDX-License-Identifier: BSD-3-Clause
// Compiled programs on disk. Needs no GPU.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kernels/cuda/nvrtc_compile.hpp"

namespace quiver::cuda {

/// A folder of compiled programs that threads and processes share. A file belongs to one key (the
/// request, the embedded sources, NVRTC's version), carries the key's text and a checksum, and is
/// written aside and renamed: whoever reads it sees all of it or nothing. Whatever is wrong with a
/// file or with the folder only costs a compilation.
class CubinCache {
  public:
    /// `folder` is made if it is missing (mode 0700); "" keeps nothing. Another process that
    /// compiles the same program is waited for as long as `patience`.
    explicit CubinCache(std::string folder = default_folder(),
                        std::chrono::milliseconds patience = std::chrono::minutes(1));

    /// $QUIVER_CACHE, else $XDG_CACHE_HOME/quiver, else $HOME/.cache/quiver, else "".
    static std::string default_folder();

    /// From the folder, or compiled and put there. Throws DeviceError when it does not compile. The
    /// log is that of a compilation, empty for a program found.
    CompiledProgram get(const CompileRequest& request);

    /// Where the program of a request is kept.
    std::string path(const CompileRequest& request) const;
    /// How many calls of get compiled.
    int compilations() const { return compilations_; }

  private:
    std::string key(const CompileRequest& request) const;
    CompiledProgram compile_counted(const CompileRequest& request);

    std::string folder_;
    std::chrono::milliseconds patience_;
    /// What all keys of this library end with.
    std::string version_;
    int compilations_ = 0;
};

}  // namespace quiver::cuda
