// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the host for the functions of kernels/operations/hamiltonian.hpp. Private to
// kernels/.
#pragma once

#include "blockvec/scalar.hpp"

namespace quiver {

struct EntryMath {
    template <Scalar T>
    static constexpr T plus(T a, T b) {
        return a + b;
    }
    template <Scalar T>
    static constexpr T times(T a, T b) {
        return multiply(a, b);
    }
    template <Scalar T>
    requires(!std::is_same_v<T, double>) static constexpr T times(T a, double b) {
        return a * static_cast<real_t<T>>(b);
    }
};

}  // namespace quiver
