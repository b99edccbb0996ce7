// SPDX-License-Identifier: BSD-3-Clause
// Compiles embedded device sources for given template arguments. Needs NVRTC, but no GPU.
#pragma once

#include <string>
#include <vector>

namespace quiver::cuda {

/// What one compilation is asked for, and all that its result depends on beside the embedded
/// sources and NVRTC's version.
struct CompileRequest {
    /// The name of an embedded source, "tsmm.cuh".
    std::string source;
    /// Instances of its kernels, "quiver::fill<double>".
    std::vector<std::string> expressions;
    /// "sm_90" for machine code, "compute_90" for PTX.
    std::string arch;
    std::vector<std::string> options = {};
};

struct CompiledProgram {
    /// Machine code, or PTX with its final zero.
    std::string image;
    /// The mangled names, in the order of the expressions.
    std::vector<std::string> lowered_names;
    std::string log;
};

/// Thread-safe. Throws DeviceError with the code's name and the first errors of the log.
CompiledProgram compile(const CompileRequest& request);

/// "13.0"
std::string nvrtc_version();

/// What to compile for a device: its machine code where NVRTC knows it, else PTX for the newest
/// older architecture that NVRTC knows. Throws DeviceError when there is none.
std::string arch_for(int compute_major, int compute_minor);

/// A key's text: equal texts, equal results.
std::string describe(const CompileRequest& request);

}  // namespace quiver::cuda
