// SPDX-License-Identifier: BSD-3-Clause
// Small matrices in double precision that belong to blocks of any precision. Private to solvers/.
#pragma once

#include <complex>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/mixed.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

/// double, or complex double for complex T.
template <class T>
using wide_t = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;

/// X^H X over all ranks, summed in double. Cost: one pass over X.
template <class T>
SmallMatrix<wide_t<T>> gram_in_double(Context& ctx, BlockView<const T> x) {
    SmallMatrix<wide_t<T>> gram(x.cols, x.cols);
    if constexpr (std::is_same_v<T, wide_t<T>>) {
        tsmttsm<T>(ctx, T(1), x, x, T(0), gram);
    } else if constexpr (std::is_same_v<T, float>) {
        tsmttsm(ctx, 1.0, x, x, 0.0, gram.view());
    } else {
        // The products of the real and imaginary parts, which are columns of a real block.
        const BlockView<const float> parts(reinterpret_cast<const float*>(x.data), x.rows,
                                           2 * x.cols, 2 * x.ld, x.place);
        SmallMatrix<double> real(parts.cols, parts.cols);
        tsmttsm(ctx, 1.0, parts, parts, 0.0, real.view());
        for (int i = 0; i < x.cols; ++i) {
            for (int j = 0; j < x.cols; ++j) {
                gram(i, j) = {real(2 * i, 2 * j) + real(2 * i + 1, 2 * j + 1),
                              real(2 * i, 2 * j + 1) - real(2 * i + 1, 2 * j)};
            }
        }
    }
    return gram;
}

/// The matrix rounded to another precision.
template <class To, class From>
SmallMatrix<To> rounded(const SmallMatrix<From>& from) {
    SmallMatrix<To> to(from.rows(), from.cols());
    for (int i = 0; i < from.rows(); ++i) {
        for (int j = 0; j < from.cols(); ++j) {
            to(i, j) = To(from(i, j));
        }
    }
    return to;
}

}  // namespace quiver
