// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/spectral_density.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "solvers/eigen/chebyshev/window_series.hpp"
#include "solvers/eigen/lanczos/spectrum_bounds.hpp"
#include "solvers/equal_options.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {
namespace {

/// Columns that are multiplied at once.
constexpr int density_panel = 16;

void check_density_options(const DensityOptions& options) {
    const auto in_range = [](const char* name, int value, int least) {
        if (value < least || value > max_pairs) {
            throw InputError("spectral density: " + std::string(name) + " = " +
                             std::to_string(value) + " is not from " + std::to_string(least) +
                             " to " + std::to_string(max_pairs));
        }
    };
    in_range("moments", options.moments, 2);
    in_range("columns", options.columns, 0);
    in_range("points", options.points, 1);
    if (options.bounds &&
        !(std::isfinite(options.bounds->low) && std::isfinite(options.bounds->high) &&
          options.bounds->low < options.bounds->high)) {
        throw InputError("spectral density: the bounds are not two finite ascending numbers");
    }
}

/// The checks, and that all ranks have the same options and number of columns. Collective.
void require_density_options(const Comm& comm, const DensityOptions& options, int columns) {
    const Window bounds = options.bounds.value_or(Window{});
    EqualOptions all("spectral density");
    all.add("moments", options.moments);
    all.add("columns", columns);
    all.add("points", options.points);
    all.add("bounds (whether they are given)", options.bounds.has_value());
    all.add("bounds.low", bounds.low);
    all.add("bounds.high", bounds.high);
    all.add("seed", options.seed);
    all.add("keep_going (whether it is given)", static_cast<bool>(options.keep_going));
    all.require(comm);
    comm.agree([&] { check_density_options(options); });
}

/// The moments of all columns, whose blocks `fill` makes: fill(block, first column).
template <class T>
class MomentRun {
  public:
    MomentRun(Context& ctx, Operator<T>& h, const DensityOptions& options)
        : ctx_(ctx), a_(h), options_(options), products_(std::max(1, options.moments / 2)) {
        if (options.bounds) {
            interval_ = {options.bounds->low, options.bounds->high, 0};
        } else {
            const CountedBounds found = bounds_of_spectrum(ctx, h, options.seed);
            applications_ = found.applications;
            interval_ = {found.bounds.low, found.bounds.high, 0};
            widen(0.01 * interval_.half_width() + 1e-6 * found.bounds.norm);
        }
    }

    /// Repeats with wider bounds, up to eight times in all, until they contain the spectrum.
    template <class Fill>
    SpectralMoments run(std::int64_t columns, const Fill& fill) {
        constexpr int most_attempts = 8;
        for (int attempt = 1;; ++attempt) {
            SpectralMoments all = run_once(columns, fill);
            if (interrupted_ || is_bounded(all)) {
                return all;
            }
            if (options_.bounds || attempt == most_attempts) {
                NumericalError error("spectral density: the spectrum is not within " +
                                     std::to_string(interval_.low) + " to " +
                                     std::to_string(interval_.high) +
                                     (options_.bounds ? "; omit the bounds" : ""));
                error.set_collective();
                throw error;
            }
            widen(0.2 * interval_.half_width());
        }
    }
    SpectralDensity result() const {
        SpectralDensity density;
        density.bounds = {interval_.low, interval_.high};
        density.interrupted = interrupted_;
        density.operator_applications = applications_ + a_.applications();
        return density;
    }

  private:
    void widen(double margin) {
        const double least = 1e-12 * std::max(1.0, std::abs(interval_.centre()));
        interval_.low -= std::max(margin, least);
        interval_.high += std::max(margin, least);
    }
    template <class Fill>
    SpectralMoments run_once(std::int64_t columns, const Fill& fill) {
        SpectralMoments all{interval_, a_.row_map().global_rows(), {}};
        for (std::int64_t first = 0; first < columns && !interrupted_; first += density_panel) {
            const int width =
                static_cast<int>(std::min<std::int64_t>(density_panel, columns - first));
            BlockVector<T> start;
            ctx_.comm().agree([&] { start = BlockVector<T>(ctx_, a_.row_map(), width); });
            fill(start.view(), first);
            std::int64_t done = 0;
            const std::function<bool()> go_on = [&] { return go_on_after(first, columns, ++done); };
            SpectralMoments some =
                spectral_moments(ctx_, a_, interval_, std::move(start), products_, go_on);
            std::move(some.of_column.begin(), some.of_column.end(),
                      std::back_inserter(all.of_column));
        }
        return all;
    }
    /// Reports the progress. Returns false on all ranks if keep_going does so on one.
    bool go_on_after(std::int64_t first, std::int64_t columns, std::int64_t done) {
        IterationEvent event;
        event.solver = "kpm";
        event.iteration = a_.applications();
        event.converged = static_cast<int>(std::min<std::int64_t>(first, max_pairs));
        event.wanted = static_cast<int>(std::min<std::int64_t>(columns, max_pairs));
        event.residual = 1.0 - static_cast<double>(done) / products_;
        event.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
        event.stage = "density";
        ctx_.emit(event);
        if (options_.keep_going) {
            const std::int64_t ends = options_.keep_going(event) ? 0 : 1;
            interrupted_ = ctx_.comm().max(ends) > 0;
        }
        return !interrupted_;
    }
    /// |<v| T_m |v>| <= <v|v> holds if the spectrum is within the bounds.
    static bool is_bounded(const SpectralMoments& all) {
        for (const std::vector<double>& moments : all.of_column) {
            const double most = moments[0] * (1 + 1e-4);
            for (const double moment : moments) {
                if (std::abs(moment) > most) {
                    return false;
                }
            }
        }
        return true;
    }

    Context& ctx_;
    GuardedOperator<T> a_;
    const DensityOptions& options_;
    int products_;
    ChebyshevInterval interval_{};
    std::int64_t applications_ = 0;
    bool interrupted_ = false;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The Chebyshev series of a column's density, with the kernel, at x = cos(angle).
double density_at(const std::vector<double>& moments, double angle) {
    const std::size_t terms = moments.size();
    double sum = moments[0];
    for (std::size_t m = 1; m < terms; ++m) {
        sum += 2 * jackson_damping(static_cast<int>(m), static_cast<int>(terms)) * moments[m] *
               std::cos(static_cast<double>(m) * angle);
    }
    return sum / (std::numbers::pi * std::sin(angle));
}

/// The moments of the columns that have as many as the first column, times `weight`, divided by
/// mu_0 if `normalised`. Without errors their mean is the only column.
std::vector<std::vector<double>> weighted_moments(const SpectralMoments& all, double weight,
                                                  bool normalised, bool errors) {
    std::vector<std::vector<double>> columns;
    for (const std::vector<double>& moments : all.of_column) {
        // An interrupted panel has fewer moments than the one before.
        if (moments.size() == all.of_column.front().size()) {
            columns.push_back(moments);
            for (double& moment : columns.back()) {
                moment *= weight / (normalised ? moments[0] : 1);
            }
        }
    }
    if (errors || columns.empty()) {
        return columns;
    }
    std::vector<double> mean(columns.front().size());
    for (const std::vector<double>& moments : columns) {
        for (std::size_t m = 0; m < mean.size(); ++m) {
            mean[m] += moments[m] / static_cast<double>(columns.size());
        }
    }
    return {mean};
}

/// The mean over the columns of their densities, and its standard error.
void fill_density(const ChebyshevInterval& interval,
                  const std::vector<std::vector<double>>& columns, int points,
                  SpectralDensity& result) {
    const std::size_t terms = columns.empty() ? 0 : columns.front().size();
    const auto count = static_cast<double>(columns.size());
    result.moments.assign(terms, 0);
    for (const std::vector<double>& moments : columns) {
        for (std::size_t m = 0; m < terms; ++m) {
            result.moments[m] += moments[m] / count;
        }
    }
    const double width = interval.high - interval.low;
    result.resolution = std::numbers::pi * interval.half_width() /
                        static_cast<double>(std::max<std::size_t>(terms, 1));
    for (int i = 0; i < points && terms > 0; ++i) {
        const double energy = interval.low + width * (i + 0.5) / points;
        double sum = 0;
        double squares = 0;
        for (const std::vector<double>& moments : columns) {
            const double value =
                density_at(moments, interval.angle(energy)) / interval.half_width();
            sum += value;
            squares += value * value;
        }
        const double mean = sum / count;
        const double variance = std::max(0.0, squares / count - mean * mean);
        result.energies.push_back(energy);
        result.density.push_back(mean);
        result.errors.push_back(std::sqrt(variance / std::max(1.0, count - 1)));
    }
}

}  // namespace

template <class T>
SpectralDensity density_of_states(Context& ctx, Operator<T>& h, const DensityOptions& options) {
    require_density_options(ctx.comm(), options, options.columns);
    const RowMap& map = h.row_map();
    const bool exact = options.columns == 0;
    MomentRun<T> run(ctx, h, options);
    const std::int64_t columns = exact ? map.global_rows() : options.columns;
    const SpectralMoments all = run.run(columns, [&](BlockView<T> block, std::int64_t first) {
        if (!exact) {
            fill_random(ctx, options.seed, map.first_row(), static_cast<int>(first), block);
            return;
        }
        fill(ctx, T(0), block);
        for (int j = 0; j < block.cols; ++j) {
            const std::int64_t row = first + j - map.first_row();
            if (row >= 0 && row < map.local_rows()) {
                fill(ctx, T(1), block.row_range(row, 1).columns(j, 1));
            }
        }
    });
    SpectralDensity result = run.result();
    fill_density(all.spectrum,
                 weighted_moments(all, static_cast<double>(map.global_rows()), true, !exact),
                 options.points, result);
    return result;
}

template <class T>
SpectralDensity spectral_function(Context& ctx, Operator<T>& h, BlockView<const T> v,
                                  const DensityOptions& options) {
    require_density_options(ctx.comm(), options, v.cols);
    MomentRun<T> run(ctx, h, options);
    const SpectralMoments all = run.run(v.cols, [&](BlockView<T> block, std::int64_t first) {
        copy(ctx, v.columns(static_cast<int>(first), block.cols), block);
    });
    SpectralDensity result = run.result();
    fill_density(all.spectrum, weighted_moments(all, 1, false, false), options.points, result);
    return result;
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template SpectralDensity density_of_states(Context&, Operator<T>&, const DensityOptions&); \
    template SpectralDensity spectral_function(Context&, Operator<T>&, BlockView<const T>,     \
                                               const DensityOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
