// SPDX-License-Identifier: BSD-3-Clause
// The kernels that OpenBLAS has chosen for this processor.
#pragma once

#include <string>

namespace quiver::apps {

/// The name of the processor whose kernels the OpenBLAS of this process uses; empty if none was
/// loaded with the program.
std::string blas_kernels();

/// Starts the program again if its OpenBLAS is older than the processor and has therefore chosen
/// kernels without AVX2: dense solves and MUMPS then take twice the time. The environment variable
/// OPENBLAS_CORETYPE, which OpenBLAS reads only while it is loaded, tells the second start which
/// kernels to use. A value of the user is respected. Call this function first in main().
void restart_with_fitting_blas_kernels(char** argv);

}  // namespace quiver::apps
