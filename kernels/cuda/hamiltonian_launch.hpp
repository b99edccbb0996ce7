// SPDX-License-Identifier: BSD-3-Clause
// The instances of the kernel of HamiltonianOperator.
#pragma once

#include <string>

#include "kernels/cuda/expressions.hpp"

namespace quiver::cuda {

/// The threads that share a row: the smallest power of two with `width` threads, at most 32.
constexpr int hamiltonian_lanes(int width) {
    int lanes = 1;
    while (lanes < width && lanes < 32) {
        lanes *= 2;
    }
    return lanes;
}

/// Consecutive rows of a group: one for few lanes, whose neighbours then share cache lines of X.
constexpr int hamiltonian_rows(int lanes) {
    return lanes >= 8 ? 8 : lanes >= 4 ? 4 : 1;
}

template <class T>
std::string hamiltonian_expression(int width, bool symmetric) {
    const int lanes = hamiltonian_lanes(width);
    return instance("hamiltonian", device_name<T>(), lanes, (width + lanes - 1) / lanes,
                    hamiltonian_rows(lanes), symmetric);
}

}  // namespace quiver::cuda
