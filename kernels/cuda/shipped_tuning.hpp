// SPDX-License-Identifier: BSD-3-Clause
// The tuning table that ships with the library, embedded at build time.
#pragma once

namespace quiver::cuda {

/// The text of kernels/tuning/h200.txt; see TuningTable.
const char* shipped_tuning();

}  // namespace quiver::cuda
