// SPDX-License-Identifier: BSD-3-Clause
// What the host's processor can do, as far as kernels are chosen by it.
#pragma once

namespace quiver {

/// Bytes of the vectors that host kernels use: 64 (AVX-512 F, DQ, VL and BW), 32 (AVX2 with FMA) or
/// 16, the widest this processor has. QUIVER_VECTORS=avx2 or none in the environment keeps to
/// narrower ones, so that one machine can show what another computes: results of different widths
/// differ in their last bits. Read once. Throws InputError for another value.
int vector_bytes();

}  // namespace quiver
