// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/inner_product.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {

template <class T>
InnerProduct<T> inner_product(Context& ctx, Operator<T>* b, int power_steps) {
    InnerProduct<T> result{b, real_t<T>(1)};
    if (b == nullptr || b->row_map().global_rows() == 0) {
        return result;
    }
    const auto fail = [](const std::string& text) {
        NumericalError error("inner product: " + text);
        error.set_collective();  // reduced sums are equal on all ranks
        throw error;
    };
    BlockVector<T> x;
    BlockVector<T> y;
    ctx.comm().agree([&] {
        x = BlockVector<T>(ctx, b->row_map(), 1);
        y = BlockVector<T>(ctx, b->row_map(), 1);
    });
    constexpr std::uint64_t seed = 20;
    fill_random(ctx, seed, x);
    GuardedProduct guarded;
    real_t<T> length = 0;
    norms(ctx, std::as_const(x).view(), std::span<real_t<T>>(&length, 1));
    result.norm = 0;
    for (int step = 0; step < power_steps; ++step) {
        scale(ctx, T(1) / length, x.view());
        guarded.apply(ctx, *b, std::as_const(x).view(), y.view());
        T sums[2] = {};
        dots(ctx, std::as_const(y).view(), std::as_const(y).view(), std::span<T>(sums, 1),
             Reduce::this_rank);
        dots(ctx, std::as_const(x).view(), std::as_const(y).view(), std::span<T>(sums + 1, 1),
             Reduce::this_rank);
        ctx.comm().sum(std::span<T>(sums));
        if (!is_finite(sums[0]) || !is_finite(sums[1])) {
            guarded.rethrow();
            fail("the product with B is not finite, or failed on some rank");
        }
        if (!(real_part(sums[1]) > real_t<T>(0))) {
            throw_indefinite(IndefiniteError::Operand::mass,
                             "inner product: B is not positive definite: x^H B x = " +
                                 number_text(static_cast<double>(real_part(sums[1]))) +
                                 " for a unit vector x");
        }
        length = std::sqrt(real_part(sums[0]));
        result.norm = std::max(result.norm, length);
        std::swap(x, y);
    }
    return result;
}

#define QUIVER_INSTANTIATE(T) template InnerProduct<T> inner_product(Context&, Operator<T>*, int);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
