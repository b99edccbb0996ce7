// SPDX-License-Identifier: BSD-3-Clause
// The tuning table that comes with the library, embedded at build time.
#pragma once

namespace quiver::cuda {

/// Text of kernels/tuning/h200.txt; see TuningTable.
const char* shipped_tuning();

}  // namespace quiver::cuda
