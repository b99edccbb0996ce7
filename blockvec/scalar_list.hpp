// SPDX-License-Identifier: BSD-3-Clause
// The list of the public scalars, for explicit instantiation.
#pragma once

#include <complex>

/// Expands f(T) for each of the four public scalars, for instantiations as follows.
//     #define QUIVER_INSTANTIATE(T) template void fill(Context&, T, BlockView<T>);
//     QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
//     #undef QUIVER_INSTANTIATE
#define QUIVER_FOR_EACH_SCALAR(f) f(float) f(double) f(std::complex<float>) f(std::complex<double>)
