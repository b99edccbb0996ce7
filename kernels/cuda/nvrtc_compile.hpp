// SPDX-License-Identifier: BSD-3-Clause
// Compiles embedded device sources for given template arguments. Requires NVRTC, but no GPU.
#pragma once

#include <string>
#include <vector>

namespace quiver::cuda {

/// One compilation. The result depends on these fields, the embedded sources and the version of
/// NVRTC only.
struct CompileRequest {
    /// The name of an embedded source, for instance "tsmm.cuh".
    std::string source;
    /// The requested kernel instances, for instance "quiver::fill<double>".
    std::vector<std::string> expressions;
    /// "sm_90" for machine code, "compute_90" for PTX.
    std::string arch;
    std::vector<std::string> options = {};
};

/// The result of a compilation.
struct CompiledProgram {
    /// Machine code, or PTX with its terminating zero.
    std::string image;
    /// The mangled names, in the order of the expressions.
    std::vector<std::string> lowered_names;
    std::string log;
};

/// Thread-safe. Throws DeviceError with the name of the error code and the first errors of the log.
CompiledProgram compile(const CompileRequest& request);

/// The version of NVRTC, for instance "13.0".
std::string nvrtc_version();

/// The compilation target for a device: its machine code if NVRTC supports it, else PTX for the
/// newest older architecture that NVRTC supports. Throws DeviceError if there is none.
std::string arch_for(int compute_major, int compute_minor);

/// The text of a request for its key: equal texts give equal results.
std::string describe(const CompileRequest& request);

}  // namespace quiver::cuda
