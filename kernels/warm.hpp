// SPDX-License-Identifier: BSD-3-Clause
// Packs: a GPU's kernels compiled ahead of time, so that no solve waits for a compiler. This is
// what `quiver warm` and the build do.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace quiver {

struct PackOptions {
    /// "sm_90" for compute capability 9.0; sm_80 or newer.
    std::string arch;
    /// Where quiver-ARCH.pack is written; "" takes the folder of compiled kernels. Processes look
    /// into the folders of $QUIVER_PACKS (separated by colons), that folder, the build's and the
    /// installation's.
    std::string folder = {};
    /// Also kernels for rarer block widths: about ten times as many.
    bool wide = false;
    /// Threads that compile; 0 takes the cores that this process may use.
    int threads = 0;
};

struct PackResult {
    std::string file;
    int kernels = 0;
    /// Kernels that had to be compiled; the others were in the file already.
    int compiled = 0;
    std::size_t bytes = 0;
};

/// Compiles the kernels that solvers take and writes them into one file, aside and renamed. Needs
/// CUDA's compiler library (NVRTC), but no GPU. `report(done, all)` is called now and then, by one
/// thread at a time. Throws InputError for an architecture that there are no packs for, DeviceError
/// where a kernel does not compile, UnsupportedError in a build without CUDA, Error where the file
/// cannot be written.
PackResult make_pack(const PackOptions& options,
                     const std::function<void(int done, int all)>& report = {});

/// The architecture of this machine's GPU `id`, "sm_90". Throws UnsupportedError without a GPU.
std::string device_architecture(int id = 0);

}  // namespace quiver
