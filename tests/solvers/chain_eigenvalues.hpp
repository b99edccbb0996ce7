// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues of chains of springs and masses, to all digits.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace quiver::test {

/// The eigenvalues with the numbers first to first + k - 1 (ascending, from 0; all between 1e-20
/// and 1e30) of A x = lambda B x for a positive definite tridiagonal A with the entries -right[i]
/// beside the diagonal, and a diagonal B: bisection by the signs of the pivots of A - lambda B, in
/// the precision of long double.
inline std::vector<double> chain_eigenvalues(const std::vector<double>& diagonal,
                                             const std::vector<double>& right,
                                             const std::vector<double>& masses, int k,
                                             int first = 0) {
    const auto count_below = [&](long double lambda) {
        int count = 0;
        long double pivot = 1;
        for (std::size_t i = 0; i < diagonal.size(); ++i) {
            const long double side = i == 0 ? 0.0L : right[i - 1];
            pivot = diagonal[i] - lambda * masses[i] - side * side / pivot;
            count += pivot < 0 ? 1 : 0;
        }
        return count;
    };
    std::vector<double> values;
    for (int index = first; index < first + k; ++index) {
        long double low = 1e-20L;
        long double high = 1e30L;
        for (int step = 0; step < 90; ++step) {
            const long double middle = std::sqrt(low * high);
            (count_below(middle) > index ? high : low) = middle;
        }
        values.push_back(static_cast<double>(high));
    }
    return values;
}

}  // namespace quiver::test
