// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/projected_eigen.hpp"

#include <complex>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "solvers/dense/dense_pencil.hpp"

namespace quiver {
namespace {

/// Every rank solves smaller orders itself, because LAPACK would save little.
constexpr int least_shared_order = 256;

}  // namespace

template <Scalar T>
HermitianEigen<T> projected_eigen(Context& ctx, const SmallMatrix<T>& h) {
    using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
    const int n = h.rows();
    if (n < least_shared_order) {
        return hermitian_eigen(h);
    }
    std::vector<double> values(static_cast<std::size_t>(n));
    SmallMatrix<Wide> vectors(n, n);
    ctx.comm().agree([&] {
        if (ctx.comm().rank() != 0) {
            return;
        }
        SmallMatrix<Wide> a(n, n);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j <= i; ++j) {
                a(i, j) = Wide(h(i, j));
                a(j, i) = conjugate(a(i, j));
            }
        }
        DensePencil<Wide> pencil(ctx, std::move(a), {});
        pencil.solve({}, 0);
        values = pencil.values();
        std::vector<int> order(values.size());
        std::iota(order.begin(), order.end(), 0);
        vectors = pencil.vectors(order);
    });
    ctx.comm().broadcast(values.data(), values.size() * sizeof(double), 0);
    ctx.comm().broadcast(vectors.data(), values.size() * values.size() * sizeof(Wide), 0);
    HermitianEigen<T> result{{}, SmallMatrix<T>(n, n), true};
    for (const double value : values) {
        result.values.push_back(static_cast<real_t<T>>(value));
    }
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            result.vectors(i, j) = T(vectors(i, j));
        }
    }
    return result;
}

#define QUIVER_INSTANTIATE(T) \
    template HermitianEigen<T> projected_eigen(Context&, const SmallMatrix<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
