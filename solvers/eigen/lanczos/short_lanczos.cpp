// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lanczos/short_lanczos.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <string>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/search/given_columns.hpp"
#include "solvers/eigen/search/rayleigh_ritz.hpp"
#include "solvers/guarded_operator.hpp"
#include "solvers/small_dense.hpp"

namespace quiver {
namespace {

/// All ranks hold the same reduced sums, so all of them throw.
[[noreturn]] void fail(int step, const std::string& text) {
    NumericalError error("bounds of the spectrum: in Lanczos step " + std::to_string(step) + " " +
                         text);
    error.set_collective();
    throw error;
}

template <class T>
void project(Context& ctx, BlockView<const T> constraints, BlockView<T> x) {
    if (constraints.cols > 0) {
        SmallMatrix<T> share(constraints.cols, x.cols);
        tsmttsm(ctx, T(1), constraints, x, T(0), share);
        tsmm(ctx, T(-1), constraints, share.view(), T(1), x);
    }
}

/// Ritz values and residuals of the tridiagonal matrix. Values closer than `apart` times the norm
/// count as one: a copy appears when the vectors lose orthogonality.
void take_ritz_pairs(const std::vector<double>& alphas, const std::vector<double>& betas,
                     double apart, ShortLanczos& result) {
    const int size = static_cast<int>(alphas.size());
    SmallMatrix<double> h(size, size);
    for (int i = 0; i < size; ++i) {
        h(i, i) = alphas[static_cast<std::size_t>(i)];
        if (i > 0) {
            h(i, i - 1) = h(i - 1, i) = betas[static_cast<std::size_t>(i - 1)];
        }
    }
    const HermitianEigen<double> eigen = hermitian_eigen(h);
    if (!eigen.converged) {
        fail(size, "the dense eigensolver failed");
    }
    result.coupling = betas.back();
    result.norm = std::max(std::abs(eigen.values.front()), std::abs(eigen.values.back()));
    for (int j = 0; j < size; ++j) {
        const double value = eigen.values[static_cast<std::size_t>(j)];
        const double residual = result.coupling * std::abs(eigen.vectors(size - 1, j));
        if (j > 0 && value - result.values.back() <= apart * result.norm) {
            result.residuals.back() = std::min(result.residuals.back(), residual);
        } else {
            result.values.push_back(value);
            result.residuals.push_back(residual);
        }
    }
}

}  // namespace

template <class T>
ShortLanczos short_lanczos(Context& ctx, Operator<T>& op, BlockView<const T> constraints, int steps,
                           std::uint64_t seed) {
    GuardedOperator<T> a(op);
    const RowMap& map = a.row_map();
    const double eps = static_cast<double>(epsilon_v<T>);
    BlockVector<T> v;     // the current vector
    BlockVector<T> next;  // A v minus its components along the current and the previous vector
    BlockVector<T> pair;  // the current and the previous vector, side by side
    ctx.comm().agree([&] {
        v = BlockVector<T>(ctx, map, 1);
        next = BlockVector<T>(ctx, map, 1);
        pair = BlockVector<T>(ctx, map, 2);
    });
    const auto scaled = [&](double factor, BlockView<const T> from, BlockView<T> to) {
        axpby(ctx, T(static_cast<real_t<T>>(factor)), from, T(0), to);
    };
    fill_random(ctx, seed, next);
    project<T>(ctx, constraints, next.view());
    project<T>(ctx, constraints, next.view());
    real_t<T> length = 0;
    norms<T>(ctx, next.view(), std::span<real_t<T>>(&length, 1));
    fill(ctx, T(0), pair.view());
    std::vector<double> alphas;
    std::vector<double> betas;
    double beta = static_cast<double>(length);
    double size = largest_image<T>(ctx, a, constraints);
    // Bound of the orthogonality that neighbouring vectors have lost. Each step adds the error of
    // one projection onto such vectors; the shorter the remainder, the larger the share of rounding
    // errors in it.
    double lost = 0;
    ShortLanczos result;
    for (int step = 1; step <= steps; ++step) {
        const int now = step % 2;
        scaled(1 / beta, next.view(), v.view());
        copy(ctx, BlockView<const T>(v.view()), pair.columns(now, 1));
        a.apply(ctx, v.view(), next.view());
        project<T>(ctx, constraints, next.view());
        SmallMatrix<T> c(2, 1);
        SmallMatrix<T> square(1, 1);
        tsmttsm<T>(ctx, T(1), pair.view(), next.view(), T(0), c);
        tsmm_gram<T>(ctx, T(-1), pair.view(), c.view(), T(1), next.view(), square.view());
        if (!is_finite(c(0, 0)) || !is_finite(c(1, 0)) || !is_finite(square(0, 0))) {
            a.rethrow_pending();
            fail(step, "the operator failed on some rank, or its product is not finite");
        }
        const T coupled = c(1 - now, 0);
        const double before = betas.empty() ? 0 : betas.back();
        alphas.push_back(static_cast<double>(real_part(c(now, 0))));
        beta = std::sqrt(std::max(0.0, static_cast<double>(real_part(square(0, 0)))));
        betas.push_back(beta);
        size = std::max({size, std::abs(alphas.back()), beta});
        HermitianDefect defect(size);
        defect.compare(c(now, 0), T(real_part(c(now, 0))));
        defect.compare(coupled, T(static_cast<real_t<T>>(before)));
        defect.check<T>([&](const std::string& why) { fail(step, why); }, "", lost);
        if (!(beta > size / 100)) {
            result.products = a.applications();
            return result;
        }
        lost = 2 * (lost + eps) * (size / beta);
    }
    result.complete = true;
    result.products = a.applications();
    take_ritz_pairs(alphas, betas, std::sqrt(eps), result);
    result.norm = std::max(result.norm, size);
    if (result.norm > 0 && result.norm < NormRange<T>().least) {
        char text[32];
        std::snprintf(text, sizeof(text), "%.1e", result.norm);
        fail(static_cast<int>(alphas.size()),
             std::string("a norm of about ") + text +
                 " is so small that squares underflow; scale the matrix");
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                            \
    template ShortLanczos short_lanczos(Context&, Operator<T>&, BlockView<const T>, int, \
                                        std::uint64_t);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
