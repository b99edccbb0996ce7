// SPDX-License-Identifier: BSD-3-Clause
// Products of a protected matrix with injected faults, and the outcome of each fault.
#pragma once

#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/random.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "tests/support/bounds.hpp"
#include "tests/support/fixtures.hpp"
#include "tests/support/problems.hpp"

namespace quiver::test {

/// Options that inject one fault at `place` in every product.
inline InjectOptions strikes(FaultPlace place, std::uint64_t seed) {
    InjectOptions inject;
    inject.rate = 1;
    inject.where[static_cast<int>(FaultPlace::output)] = false;
    inject.where[static_cast<int>(place)] = true;
    inject.seed = seed;
    return inject;
}

/// Copies this rank's rows to host memory.
template <class T>
std::vector<T> download(Context& ctx, BlockView<const T> x) {
    std::vector<T> values(static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols));
    copy(ctx, x, BlockView<T>(values.data(), x.rows, x.cols, x.cols));
    return values;
}

template <class T>
bool same_values(const std::vector<T>& a, const std::vector<T>& b) {
    return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// The largest deviation of the plain and mixed sums of Y's columns from those of `exact`, in units
/// of their bounds. Infinite if an element is not finite.
template <class T>
double effect(const ProtectedMatrix<T>& a, const std::vector<T>& y, const std::vector<T>& exact,
              int cols) {
    double worst = 0;
    for (int j = 0; j < cols; ++j) {
        wide_t<T> plain{};
        wide_t<T> mixed{};
        const std::int64_t mask = (std::int64_t{1} << a.log_chunk()) - 1;
        for (std::size_t i = 0; i < y.size() / static_cast<std::size_t>(cols); ++i) {
            const std::size_t at = i * static_cast<std::size_t>(cols) + static_cast<std::size_t>(j);
            const wide_t<T> change =
                static_cast<wide_t<T>>(y[at]) - static_cast<wide_t<T>>(exact[at]);
            const auto weight =
                static_cast<long double>(mixed_weight(static_cast<std::int64_t>(i) & mask));
            plain += change;
            mixed += change * weight;
        }
        const double sizes[2] = {static_cast<double>(std::abs(plain)),
                                 static_cast<double>(std::abs(mixed))};
        for (int k = 0; k < 2; ++k) {
            const double units = sizes[k] / a.bound(k, j);
            worst = std::isfinite(units) ? std::max(worst, units) : INFINITY;
        }
    }
    return worst;
}

/// The most by which a bound of the code may exceed the theoretical bound of the tests, whose
/// constant is 1. The code has the constant 4 (complex: 8) for arithmetic and 16 for checksums in
/// double precision, and it adds the rounding of encoded weights.
inline constexpr double most_bound = 40;

/// The 2-norm of each column over all ranks.
template <class T>
std::vector<double> column_lengths(Context& ctx, BlockView<const T> x) {
    std::vector<real_t<T>> lengths(static_cast<std::size_t>(x.cols));
    norms(ctx, x, std::span<real_t<T>>(lengths));
    return {lengths.begin(), lengths.end()};
}

}  // namespace quiver::test
