// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {

template <class T>
void gram_factor(int /*threads*/, const GramFactorArgs<T>& args) {
    using Real = real_t<T>;
    const int n = args.n;
    const auto r = [&](int i, int j) -> T& { return args.r[i * args.ldr + j]; };
    const auto s = [&](int i, int j) -> T& { return args.s[i * args.lds + j]; };
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            r(i, j) = i <= j ? args.g[i * args.ldg + j] : T(0);
        }
    }
    for (int k = 0; k < n; ++k) {
        const Real root = std::sqrt(real_part(r(k, k)));
        const Real inverse = Real(1) / root;
        r(k, k) = T(root);
        for (int j = k + 1; j < n; ++j) {
            r(k, j) = r(k, j) * inverse;
        }
        for (int i = k + 1; i < n; ++i) {
            const T factor = conjugate(r(k, i));
            for (int j = i; j < n; ++j) {
                r(i, j) -= multiply(factor, r(k, j));
            }
        }
    }
    for (int j = 0; j < n; ++j) {
        for (int i = n - 1; i > j; --i) {
            s(i, j) = T(0);
        }
        s(j, j) = T(Real(1) / real_part(r(j, j)));
        for (int i = j - 1; i >= 0; --i) {
            T sum(0);
            for (int l = i + 1; l <= j; ++l) {
                sum += multiply(r(i, l), s(l, j));
            }
            s(i, j) = -sum * (Real(1) / real_part(r(i, i)));
        }
    }
}

#define QUIVER_INSTANTIATE(T) template void gram_factor(int, const GramFactorArgs<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
