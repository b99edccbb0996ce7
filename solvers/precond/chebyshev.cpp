// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/precond/chebyshev.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {

template <class T>
SpectrumEstimate estimate_spectrum(Context& ctx, Operator<T>& a, int steps, std::uint64_t seed) {
    const RowMap& map = a.row_map();
    SpectrumEstimate result;
    if (map.global_rows() == 0) {
        return result;
    }
    GuardedOperator<T> guarded(a);
    BlockVector<T> blocks[3];
    ctx.comm().agree([&] {
        for (BlockVector<T>& block : blocks) {
            block = BlockVector<T>(ctx, map, 1);
        }
    });
    fill_random(ctx, seed, blocks[0]);
    T sum{};
    const std::span<T> one(&sum, 1);
    const auto square = [&](BlockVector<T>& v) {
        dots(ctx, v.view(), v.view(), one);
        return static_cast<double>(real_part(sum));
    };
    double beta = std::sqrt(square(blocks[0]));
    scale(ctx, T(static_cast<real_t<T>>(1 / beta)), blocks[0].view());
    fill(ctx, T(0), blocks[1].view());
    std::vector<double> alphas;
    std::vector<double> betas{0};
    const auto most = static_cast<int>(std::min<std::int64_t>(steps, map.global_rows()));
    for (int k = 0; k < most; ++k) {
        BlockVector<T>& v = blocks[k % 3];
        BlockVector<T>& older = blocks[(k + 2) % 3];
        BlockVector<T>& next = blocks[(k + 1) % 3];
        if (k == 0) {
            fill(ctx, T(0), older.view());
        }
        guarded.apply(ctx, v.view(), next.view());
        dots(ctx, v.view(), next.view(), one);
        const auto alpha = static_cast<double>(real_part(sum));
        axpby(ctx, T(static_cast<real_t<T>>(-alpha)), v.view(), T(1), next.view());
        axpby(ctx, T(static_cast<real_t<T>>(-betas.back())), older.view(), T(1), next.view());
        beta = std::sqrt(square(next));
        if (!std::isfinite(alpha) || !std::isfinite(beta)) {
            ctx.comm().agree([&] { guarded.rethrow_pending(); });
            NumericalError error(
                "spectrum of an operator: its product is not finite in Lanczos step " +
                std::to_string(k + 1));
            error.set_collective();
            throw error;
        }
        alphas.push_back(alpha);
        betas.push_back(beta);
        if (!(beta > static_cast<double>(epsilon_v<T>) * std::abs(alpha))) {
            break;
        }
        scale(ctx, T(static_cast<real_t<T>>(1 / beta)), next.view());
    }
    const auto size = static_cast<int>(alphas.size());
    SmallMatrix<double> tridiagonal(size, size);
    for (int i = 0; i < size; ++i) {
        tridiagonal(i, i) = alphas[static_cast<std::size_t>(i)];
        if (i > 0) {
            tridiagonal(i, i - 1) = tridiagonal(i - 1, i) = betas[static_cast<std::size_t>(i)];
        }
    }
    const std::vector<double> values = hermitian_eigen(tridiagonal).values;
    result.least = values.front();
    result.largest = values.back();
    result.bound = values.back() + betas.back();
    return result;
}

template <class T>
ChebyshevPolynomial<T>::ChebyshevPolynomial(Operator<T>& a, int degree, double lower, double upper)
    : a_(a), degree_(degree), centre_((upper + lower) / 2), half_width_((upper - lower) / 2) {
    if (degree < 1 || !(lower > 0) || !(upper > lower) || !std::isfinite(upper)) {
        throw_collective(ErrorKind::input, "chebyshev: degree " + std::to_string(degree) +
                                               " on the interval from " + std::to_string(lower) +
                                               " to " + std::to_string(upper) +
                                               ": 0 < lower < upper and degree >= 1 are wanted");
    }
}

template <class T>
void ChebyshevPolynomial<T>::apply(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    const auto number = [](double value) { return T(static_cast<real_t<T>>(value)); };
    axpby(ctx, number(1 / centre_), x, T(0), y);
    if (degree_ == 1 || x.cols == 0) {
        return;
    }
    const std::size_t elements =
        static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols);
    const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), 2 * elements * sizeof(T));
    const BlockView<T> residual(scratch.as<T>(), x.rows, x.cols, x.cols, ctx.place());
    const BlockView<T> step(scratch.as<T>() + elements, x.rows, x.cols, x.cols, ctx.place());
    axpby(ctx, T(1), x, T(0), residual);
    axpby(ctx, T(1), y, T(0), step);
    const double sigma = centre_ / half_width_;
    double rho = 1 / sigma;
    for (int k = 1; k < degree_; ++k) {
        a_.apply_fused(ctx, step, residual, {T(-1), T(1), {}, {}, {}});
        const double next = 1 / (2 * sigma - rho);
        axpby(ctx, number(2 * next / half_width_), residual, number(next * rho), step);
        axpby(ctx, T(1), step, T(1), y);
        rho = next;
    }
}

#define QUIVER_INSTANTIATE(T)                                                                \
    template SpectrumEstimate estimate_spectrum(Context&, Operator<T>&, int, std::uint64_t); \
    template class ChebyshevPolynomial<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
