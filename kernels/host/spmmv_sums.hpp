// SPDX-License-Identifier: BSD-3-Clause
// The last step of a sparse product with SpmmvSums on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "blockvec/scalar.hpp"
#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/sparse/product_sums.hpp"

namespace quiver::host {

/// Adds the sums of the parts of the rows, with their rounding errors, to the caller's sums. Before
/// the first rows of a product it sets the caller's sums to zero.
template <class T>
void add_sums(const SpmmvArgs<T>& args, const std::vector<double>& parts) {
    const std::size_t line = reals_v<T> * static_cast<std::size_t>(args.width);
    const std::size_t block = std::size_t{2} * SpmmvSums::kinds * line;
    double* const blocks[] = {args.sums->x, args.sums->old, args.sums->y};
    for (double* const sums : blocks) {
        if (sums != nullptr && !args.sums->stored) {
            std::fill_n(sums, block, 0.0);
        }
    }
    args.sums->stored = true;
    for (std::size_t at = 0; at < parts.size(); ++at) {
        double* const sums = blocks[at / block % 3];
        if (sums == nullptr) {
            continue;
        }
        double* const to = sums + at % block;
        if (at / line % 2 == 1) {
            *to += parts[at];
            continue;
        }
        const double sum = *to + parts[at];
        const double part = sum - *to;
        to[line] += (*to - (sum - part)) + (parts[at] - part);
        *to = sum;
    }
}

}  // namespace quiver::host
