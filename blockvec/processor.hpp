// SPDX-License-Identifier: BSD-3-Clause
// The vector width of the host processor, by which host kernels are chosen.
#pragma once

namespace quiver {

/// Bytes of the vectors that host kernels use: 64 (AVX-512 F, DQ, VL and BW), 32 (AVX2 with FMA) or
/// 16, the widest that this processor has. The environment variable QUIVER_VECTORS limits the
/// width: avx512 (the default), avx2 or none (16 bytes). A limit reproduces the results of another
/// machine, because results of different widths differ in their last bits. The variable is read
/// once. Throws InputError for any other value.
int vector_bytes();

}  // namespace quiver
