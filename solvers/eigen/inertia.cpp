// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/inertia.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver {

template <class T>
Inertia inertia(const CsrRows<T>& rows, double shift) {
    const std::int64_t n = rows.map.local_rows();
    if (n > most_inertia_rows) {
        throw InputError("inertia: " + std::to_string(n) + " rows; at most " +
                         std::to_string(most_inertia_rows) + " are possible");
    }
    const SparseLdlt<T> factor(rows, nullptr, shift);
    Inertia result;
    result.reliable = factor.complete();
    if (!result.reliable) {
        return result;
    }
    result.error = factor.error();
    const double noise = std::numeric_limits<double>::epsilon() * factor.norm();
    for (const double value : factor.pivots()) {
        result.reliable = result.reliable && std::abs(value) > noise && std::isfinite(value);
        ++(value < 0 ? result.below : result.above);
    }
    return result;
}

#define QUIVER_INSTANTIATE(T) template Inertia inertia(const CsrRows<T>&, double);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
