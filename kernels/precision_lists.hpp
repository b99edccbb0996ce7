// SPDX-License-Identifier: BSD-3-Clause
// The combinations of precisions for which conversions and mixed-precision products are compiled;
// used like QUIVER_FOR_EACH_SCALAR in blockvec/scalar_list.hpp. Private to kernels/.
#pragma once

#include <complex>

#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"

/// Expands f(U, T) for each conversion from U to T: all pairs of real types and all pairs of
/// complex types.
#define QUIVER_FOR_EACH_REAL_TARGET(f, U) f(U, float) f(U, double) f(U, half_t) f(U, bfloat16_t)
#define QUIVER_FOR_EACH_CONVERSION(f)                                                        \
    QUIVER_FOR_EACH_REAL_TARGET(f, float)                                                    \
    QUIVER_FOR_EACH_REAL_TARGET(f, double)                                                   \
    QUIVER_FOR_EACH_REAL_TARGET(f, half_t)                                                   \
    QUIVER_FOR_EACH_REAL_TARGET(f, bfloat16_t)                                               \
    f(std::complex<float>, std::complex<float>) f(std::complex<float>, std::complex<double>) \
        f(std::complex<double>, std::complex<float>) f(std::complex<double>, std::complex<double>)

/// Expands f(T) for each type of the elements of a block.
#define QUIVER_FOR_EACH_ELEMENT(f) QUIVER_FOR_EACH_SCALAR(f) f(half_t) f(bfloat16_t)

/// Expands f(T) for each real type of the elements of a block.
#define QUIVER_FOR_EACH_REAL_ELEMENT(f) f(float) f(double) f(half_t) f(bfloat16_t)

/// Expands f(In, Sum) for each mixed-precision C = A^T B: the types of the elements of A and B, and
/// of C.
#define QUIVER_FOR_EACH_MIXED_TSMTTSM(f) f(half_t, float) f(bfloat16_t, float) f(float, double)

/// Expands f(In, Small, Out) for each mixed-precision Y = X C: the types of the elements of X, C
/// and Y.
#define QUIVER_FOR_EACH_MIXED_TSMM_OF(f, In) \
    f(In, float, float) f(In, float, In) f(In, In, float) f(In, In, In)
#define QUIVER_FOR_EACH_MIXED_TSMM(f) \
    QUIVER_FOR_EACH_MIXED_TSMM_OF(f, half_t) QUIVER_FOR_EACH_MIXED_TSMM_OF(f, bfloat16_t)

/// Expands f(In, T) for each precision of the points of kmeans_step and that of its centres.
#define QUIVER_FOR_EACH_KMEANS(f) \
    f(float, float) f(double, double) f(half_t, float) f(bfloat16_t, float)
