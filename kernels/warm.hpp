// SPDX-License-Identifier: BSD-3-Clause
// Packs: kernels for a GPU, compiled ahead of time by `quiver warm` and by the build, so that no
// solve waits for a compiler.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace quiver {

/// The contents and place of a pack.
struct PackOptions {
    /// "sm_90" for compute capability 9.0; sm_80 or newer.
    std::string arch;
    /// The folder for quiver-ARCH.pack; "" means the folder of compiled kernels. Processes search
    /// the folders of $QUIVER_PACKS (separated by colons), the folder of compiled kernels, and
    /// those of the build and the installation.
    std::string folder = {};
    /// If true, also kernels for rarer block widths: about ten times as many.
    bool wide = false;
    /// Number of compiling threads; 0 means the cores that this process may use.
    int threads = 0;
};

/// A written pack.
struct PackResult {
    std::string file;
    int kernels = 0;
    /// Kernels that were compiled now; the others were already in the file.
    int compiled = 0;
    std::size_t bytes = 0;
};

/// Compiles the kernels that the solvers use and writes them into one file, which is renamed when
/// it is complete. Requires CUDA's compiler library (NVRTC), but no GPU. `report(done, all)` is
/// called from time to time, by one thread at a time. Throws InputError for an architecture without
/// packs, DeviceError if a kernel does not compile, UnsupportedError in a build without CUDA, Error
/// if the file cannot be written.
PackResult make_pack(const PackOptions& options,
                     const std::function<void(int done, int all)>& report = {});

/// The architecture of this machine's GPU `id`, "sm_90". Throws UnsupportedError without a GPU.
std::string device_architecture(int id = 0);

}  // namespace quiver
