// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/chebyshev/window_series.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/search/packed.hpp"

namespace quiver {
namespace {

/// In decibels.
double attenuation(double ripple) {
    return -20 * std::log10(ripple);
}

/// Coefficients of the indicator function of [low, high], each times damping(m).
template <class Damping>
std::vector<double> damped_series(const ChebyshevInterval& spectrum, double low, double high,
                                  int degree, Damping&& damping) {
    const double from = spectrum.angle(low);
    const double to = spectrum.angle(high);
    std::vector<double> series;
    for (int m = 0; m <= degree; ++m) {
        const double plain =
            m == 0 ? (from - to) / std::numbers::pi
                   : 2 * (std::sin(m * from) - std::sin(m * to)) / (m * std::numbers::pi);
        series.push_back(damping(m) * plain);
    }
    return series;
}

}  // namespace

double jackson_damping(int m, int terms) {
    const double q = std::numbers::pi / (terms + 1);
    return ((terms - m + 1) * std::cos(m * q) + std::sin(m * q) / std::tan(q)) / (terms + 1);
}

std::vector<double> window_series(const ChebyshevInterval& spectrum, double low, double high,
                                  int degree) {
    return damped_series(spectrum, low, high, degree,
                         [&](int m) { return jackson_damping(m, degree + 1); });
}

int WindowDesign::degree() const {
    return std::max(1, static_cast<int>(std::ceil((attenuation(ripple) - 7.95) / (9.14 * step))));
}

std::vector<double> filter_series(const ChebyshevInterval& spectrum, double low, double high,
                                  const WindowDesign& design) {
    const int degree = design.degree();
    const double beta = 0.1102 * (attenuation(design.ripple) - 8.7);
    return damped_series(spectrum, low, high, degree, [&](int m) {
        const double place = static_cast<double>(m) / degree;
        return std::cyl_bessel_i(0.0, beta * std::sqrt(1 - place * place)) /
               std::cyl_bessel_i(0.0, beta);
    });
}

double series_at(const std::vector<double>& series, const ChebyshevInterval& spectrum,
                 double value) {
    const double x = (value - spectrum.centre()) / spectrum.half_width();
    double after = 0;
    double now = 0;
    for (std::size_t m = series.size() - 1; m > 0; --m) {
        after = std::exchange(now, series[m] + 2 * x * now - after);
    }
    return series[0] + x * now - after;
}

SpectralMoments::Count SpectralMoments::count(double low, double high) const {
    const int terms = static_cast<int>(of_column.front().size());
    const std::vector<double> series = window_series(spectrum, low, high, terms - 1);
    const auto columns = static_cast<double>(of_column.size());
    double sum = 0;
    double squares = 0;
    for (const std::vector<double>& moments : of_column) {
        double share = 0;
        for (std::size_t m = 0; m < moments.size(); ++m) {
            share += series[m] * moments[m] / moments[0];
        }
        share *= static_cast<double>(rows);
        sum += share;
        squares += share * share;
    }
    const double mean = sum / columns;
    const double variance = std::max(0.0, squares / columns - mean * mean);
    return {mean, std::sqrt(variance / std::max(1.0, columns - 1))};
}

template <class T>
SpectralMoments spectral_moments(Context& ctx, GuardedOperator<T>& a,
                                 const ChebyshevInterval& spectrum, int columns, int products,
                                 std::uint64_t seed, const std::function<bool()>& go_on) {
    BlockVector<T> first;
    ctx.comm().agree([&] { first = BlockVector<T>(ctx, a.row_map(), columns); });
    fill_random(ctx, seed, first);
    return spectral_moments(ctx, a, spectrum, std::move(first), products, go_on);
}

template <class T>
SpectralMoments spectral_moments(Context& ctx, GuardedOperator<T>& a,
                                 const ChebyshevInterval& spectrum, BlockVector<T> first,
                                 int products, const std::function<bool()>& go_on) {
    using Real = real_t<T>;
    BlockVector<T> second;
    ctx.comm().agree([&] { second = BlockVector<T>(ctx, a.row_map(), first.width()); });
    const auto width = static_cast<std::size_t>(first.width());
    std::vector<T> squares(width);
    std::vector<T> mixed(width);
    dots(ctx, first.view(), first.view(), std::span<T>(squares));
    SpectralMoments result{spectrum, a.row_map().global_rows(), {}};
    for (std::size_t j = 0; j < width; ++j) {
        result.of_column.push_back({static_cast<double>(real_part(squares[j]))});
    }
    const T shift = T(static_cast<Real>(spectrum.centre()));
    ApplyOptions<T> options;
    options.shift = std::span<const T>(&shift, 1);
    options.dot_yy = squares;
    options.dot_xy = mixed;
    BlockView<T> before = first.view();
    BlockView<T> now = second.view();
    for (int m = 1; m <= products && (m == 1 || !go_on || go_on()); ++m) {
        options.alpha = T(static_cast<Real>((m == 1 ? 1 : 2) / spectrum.half_width()));
        options.beta = T(m == 1 ? 0 : -1);
        if (m == 1) {
            a.apply_fused(ctx, before, now, options);
        } else {
            a.apply_fused(ctx, now, before, options);
            std::swap(now, before);
        }
        // <T_m v, T_(m-1) v> and <T_m v, T_m v>; T_i T_j = (T_(i+j) + T_|i-j|) / 2.
        for (std::size_t j = 0; j < width; ++j) {
            std::vector<double>& moments = result.of_column[j];
            const double cross = static_cast<double>(real_part(mixed[j]));
            const double own = static_cast<double>(real_part(squares[j]));
            if (m == 1) {
                moments.push_back(cross);
            } else {
                moments.push_back(2 * cross - moments[1]);
            }
            moments.push_back(2 * own - moments[0]);
            if (!std::isfinite(cross) || !std::isfinite(own)) {
                a.rethrow_pending();
                NumericalError error(
                    "density of states: the operator failed on some rank, or its product number " +
                    std::to_string(m) + " is not finite");
                error.set_collective();
                throw error;
            }
        }
    }
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                                    \
    template SpectralMoments spectral_moments(Context&, GuardedOperator<T>&,                     \
                                              const ChebyshevInterval&, int, int, std::uint64_t, \
                                              const std::function<bool()>&);                     \
    template SpectralMoments spectral_moments(Context&, GuardedOperator<T>&,                     \
                                              const ChebyshevInterval&, BlockVector<T>, int,     \
                                              const std::function<bool()>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
