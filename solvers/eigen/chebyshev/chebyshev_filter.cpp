// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/chebyshev/chebyshev_filter.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "blockvec/scalar_list.hpp"
#include "kernels/block_sums.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver {

double ChebyshevInterval::rate(double value) const {
    return std::acosh(std::max(1.0, std::abs(value - centre()) / half_width()));
}

double ChebyshevInterval::angle(double value) const {
    return std::acos(std::clamp((value - centre()) / half_width(), -1.0, 1.0));
}

double ChebyshevInterval::at_angle(double angle) const {
    return centre() + half_width() * std::cos(std::clamp(angle, 0.0, std::numbers::pi));
}

int ChebyshevInterval::degree_for(double value, double growth, int most_degree) const {
    const double degree = std::acosh(std::max(1.0, growth)) / rate(value);
    return degree < most_degree ? std::max(1, static_cast<int>(std::ceil(degree))) : most_degree;
}

template <class T>
int default_panel(Place place) {
    constexpr int device_panel = 32;
    constexpr std::size_t host_row = 128;
    return place == Place::device ? device_panel : static_cast<int>(host_row / sizeof(T));
}

template <class T>
ChebyshevFilter<T>::ChebyshevFilter(Context& ctx, GuardedOperator<T>& a,
                                    BlockView<const T> constraints, int width)
    : ctx_(ctx), a_(a), constraints_(constraints), width_(width) {
    ctx.comm().agree([&] {
        current_ = BlockVector<T>(ctx, a.row_map(), width);
        previous_ = BlockVector<T>(ctx, a.row_map(), width);
    });
}

template <class T>
void ChebyshevFilter<T>::project(BlockView<T> x) {
    if (constraints_.cols > 0) {
        SmallMatrix<T> share(constraints_.cols, x.cols);
        tsmttsm(ctx_, T(1), constraints_, x, T(0), share);
        tsmm(ctx_, T(-1), constraints_, share.view(), T(1), x);
    }
}

template <class T>
int ChebyshevFilter<T>::panel_width(int columns) const {
    // On the host panels of the full width fill cache lines. On a device panels have nearly equal
    // widths, in multiples of 4: a product with 31 columns takes twice as long as one with 32.
    constexpr int multiple = 4;
    if (ctx_.place() == Place::host) {
        return width_;
    }
    const int panels = (columns + width_ - 1) / width_;
    return std::min(width_, (columns + panels * multiple - 1) / (panels * multiple) * multiple);
}

template <class T>
template <class Panel>
void ChebyshevFilter<T>::by_panels(BlockView<T> x, Panel&& panel,
                                   const std::function<bool()>& go_on) {
    const int width = panel_width(x.cols);
    for (int begin = 0; begin < x.cols && (begin == 0 || !go_on || go_on()); begin += width) {
        panel(x.columns(begin, std::min(width, x.cols - begin)));
    }
}

template <class T>
void ChebyshevFilter<T>::apply(BlockView<T> x, const ChebyshevInterval& interval, int degree) {
    by_panels(x, [&](BlockView<T> panel) { apply_panel(panel, interval, degree); });
}

template <class T>
void ChebyshevFilter<T>::apply_series(BlockView<T> x, const ChebyshevInterval& interval,
                                      const std::vector<double>& series,
                                      const std::function<bool()>& go_on) {
    by_panels(
        x, [&](BlockView<T> panel) { apply_series_panel(panel, interval, series, go_on); }, go_on);
}

/// The last two blocks of a recurrence, with the checksums that travel with them.
template <class T>
struct ChebyshevFilter<T>::Pair {
    BlockView<T> now, before;
    BlockSums<T> now_sums = {}, before_sums = {};

    void swap() {
        std::swap(now, before);
        std::swap(now_sums, before_sums);
    }
};

/// One step: before <- alpha (A - c) now + beta before, projected onto the complement of the
/// constraints. Then swaps both blocks, so that `now` is the result. last: no step follows.
template <class T>
void ChebyshevFilter<T>::step(Pair& pair, ApplyOptions<T> options, bool last) {
    pair.before_sums.may_wait = !last && constraints_.cols == 0;
    options.x_sums = &pair.now_sums;
    options.y_sums = &pair.before_sums;
    a_.apply_fused(ctx_, pair.now, pair.before, options);
    if (constraints_.cols > 0) {
        project(pair.before);
        pair.before_sums.forget();
    }
    pair.swap();
}

/// Calls sweep(true), which keeps no copies of overwritten blocks. If a product was lost on some
/// rank, calls sweep(false), which keeps them.
template <class T>
template <class Sweep>
void ChebyshevFilter<T>::run_repeatable(Sweep&& sweep) {
    const OperatorFaults before = a_.faults();
    sweep(true);
    if (before.repairs && ctx_.comm().max(a_.faults().lost - before.lost) > 0) {
        sweep(false);
    }
}

template <class T>
void ChebyshevFilter<T>::apply_panel(BlockView<T> x, const ChebyshevInterval& interval,
                                     int degree) {
    using Real = real_t<T>;
    const double half = interval.half_width();
    const T shift = T(static_cast<Real>(interval.centre()));
    const double first = half / (interval.one - interval.centre());
    BlockView<T> now;
    run_repeatable([&](bool repeatable) {
        Pair pair{packed(previous_, x.cols), packed(current_, x.cols)};
        copy(ctx_, x, pair.now);
        ApplyOptions<T> options;
        options.shift = std::span<const T>(&shift, 1);
        options.alpha = T(static_cast<Real>(first / half));
        options.repeatable = repeatable;
        step(pair, options, degree < 2);
        double sigma = first;
        for (int i = 2; i <= degree; ++i) {
            const double next = 1 / (2 / first - sigma);
            options.alpha = T(static_cast<Real>(2 * next / half));
            options.beta = T(static_cast<Real>(-sigma * next));
            step(pair, options, i == degree);
            sigma = next;
        }
        now = pair.now;
    });
    copy(ctx_, now, x);
}

template <class T>
void ChebyshevFilter<T>::apply_series_panel(BlockView<T> x, const ChebyshevInterval& interval,
                                            const std::vector<double>& series,
                                            const std::function<bool()>& go_on) {
    constexpr std::size_t steps_between_calls = 8;
    using Real = real_t<T>;
    const auto scalar = [](double value) { return T(static_cast<Real>(value)); };
    const double half = interval.half_width();
    const T shift = scalar(interval.centre());
    // X accumulates the sum: a sweep that may be repeated needs a copy of the first X.
    const std::size_t kept = a_.faults().repairs ? static_cast<std::size_t>(x.rows) *
                                                       static_cast<std::size_t>(x.cols) * sizeof(T)
                                                 : 0;
    const Scratch memory = ctx_.scratch(memory_kind(ctx_.place()), kept);
    const BlockView<T> start(memory.template as<T>(), x.rows, x.cols, x.cols, x.place);
    if (kept > 0) {
        copy(ctx_, x, start);
    }
    run_repeatable([&](bool repeatable) {
        if (!repeatable) {
            copy(ctx_, start, x);
        }
        Pair pair{packed(previous_, x.cols), packed(current_, x.cols)};
        copy(ctx_, x, pair.now);
        scale(ctx_, scalar(series[0]), x);
        ApplyOptions<T> options;
        options.shift = std::span<const T>(&shift, 1);
        options.alpha = scalar(1 / half);
        options.repeatable = repeatable;
        for (std::size_t m = 1; m < series.size(); ++m) {
            if (go_on && m % steps_between_calls == 0 && !go_on()) {
                break;
            }
            // The first step writes T_1 X beside X; later steps overwrite T_(m-2) X by T_m X.
            step(pair, options, m + 1 == series.size());
            axpby(ctx_, scalar(series[m]), pair.now, T(1), x);
            options.alpha = scalar(2 / half);
            options.beta = T(-1);
        }
    });
}

#define QUIVER_INSTANTIATE(T)             \
    template int default_panel<T>(Place); \
    template class ChebyshevFilter<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
