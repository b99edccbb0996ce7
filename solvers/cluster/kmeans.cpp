// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/cluster/kmeans.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/host_copy.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/cluster/kmeans_starts.hpp"
#include "solvers/equal_options.hpp"

namespace quiver {
namespace {

void check_kmeans_options(const KmeansOptions& options, std::int64_t points, int columns) {
    const auto refuse = [](const std::string& text) { throw InputError("kmeans: " + text); };
    const std::string k = "k = " + std::to_string(options.k);
    const std::string most = std::to_string(largest_kmeans);
    if (options.k < 1) {
        refuse(k + ", but at least one cluster is needed");
    }
    if (options.k > largest_kmeans) {
        refuse(k + " clusters, but at most " + most + " are supported");
    }
    if (columns < 1 || columns > largest_kmeans) {
        refuse("the points have " + std::to_string(columns) + " columns, but 1 to " + most +
               " are supported");
    }
    if (options.k > points) {
        refuse(k + " clusters, but only " + std::to_string(points) +
               (points == 1 ? " point" : " points"));
    }
    if (!(options.tol >= 0) || !std::isfinite(options.tol)) {
        refuse("tol = " + number_text(options.tol) + ", but a number from 0 on is needed");
    }
    if (options.max_iterations < 1 || options.runs < 1) {
        refuse(std::to_string(options.max_iterations) + " iterations and " +
               std::to_string(options.runs) + " runs at most, but at least 1 of each is needed");
    }
}

template <class T>
void check_starts(const SmallMatrix<T>& starts, int k, int columns) {
    if (starts.rows() == 0) {
        return;
    }
    if (starts.rows() != k || starts.cols() != columns) {
        throw InputError("kmeans: the starts are " + std::to_string(starts.rows()) + " x " +
                         std::to_string(starts.cols()) + ", but k x columns = " +
                         std::to_string(k) + " x " + std::to_string(columns) + " are needed");
    }
    if (!std::all_of(starts.data(), starts.data() + k * columns,
                     [](T value) { return std::isfinite(value); })) {
        throw InputError("kmeans: a start has NaN or infinity");
    }
}

/// Lloyd's iteration on one block of points. Centres are kept relative to the mean of the points.
template <class In>
class Lloyd {
    using T = centre_t<In>;
    using Clock = std::chrono::steady_clock;

  public:
    Lloyd(Context& ctx, const RowMap& map, BlockView<const In> x, const KmeansOptions& options)
        : ctx_(ctx),
          map_(map),
          x_(x),
          options_(options),
          origin_(static_cast<std::size_t>(x.cols)),
          sums_(options.k, x.cols + 2) {
        centre_points();
    }

    /// Some rows of `points` relative to the origin.
    template <class V>
    SmallMatrix<T> relative(const SmallMatrix<V>& points, const std::vector<int>& rows) const {
        SmallMatrix<T> centres(static_cast<int>(rows.size()), x_.cols);
        for (int j = 0; j < centres.rows(); ++j) {
            for (int p = 0; p < x_.cols; ++p) {
                centres(j, p) = static_cast<T>(points(rows[static_cast<std::size_t>(j)], p)) -
                                origin_[static_cast<std::size_t>(p)];
            }
        }
        return centres;
    }

    /// The centres of the argument and of the result are relative to the origin.
    KmeansResult<In> run(SmallMatrix<T> centres, std::span<int> labels) {
        KmeansResult<In> result;
        while (!result.converged && !result.interrupted &&
               result.iterations < options_.max_iterations) {
            assign(centres);
            result.history.push_back(inertia());
            result.relocated += relocate_empty(centres);
            const double shift = move(centres);
            ++result.iterations;
            result.converged = shift <= options_.tol * variance_;
            result.interrupted = !goes_on(result.iterations, shift) && !result.converged;
        }
        result.centres = std::move(centres);
        finish(result, labels);
        return result;
    }

    /// Writes the labels for centres relative to the origin.
    void label(const SmallMatrix<T>& centres, std::span<int> labels) {
        assign(centres, {labels, {}});
    }
    /// centres + 1 origin^T
    void make_absolute(SmallMatrix<T>& centres) const {
        for (int j = 0; j < centres.rows(); ++j) {
            for (int p = 0; p < centres.cols(); ++p) {
                centres(j, p) += origin_[static_cast<std::size_t>(p)];
            }
        }
    }

  private:
    /// Finds mean and variance of the points. Throws InputError on all ranks if they are not
    /// finite.
    void centre_points() {
        const auto columns = static_cast<std::size_t>(x_.cols);
        SmallMatrix<double> moments(1, x_.cols + 2);
        const auto pass = [&] {
            kmeans_step<In>(ctx_, x_, std::span<const T>(origin_), SmallMatrix<T>(1, x_.cols),
                            moments);
        };
        pass();
        require_finite(moments);
        const double count = moments(0, x_.cols);
        for (std::size_t p = 0; p < columns; ++p) {
            origin_[p] = static_cast<T>(moments(0, static_cast<int>(p)) / count);
        }
        pass();
        require_finite(moments);
        variance_ = moments(0, x_.cols + 1) / (count * x_.cols);
    }

    void require_finite(const SmallMatrix<double>& moments) {
        if (std::isfinite(moments(0, x_.cols + 1))) {
            return;
        }
        const std::vector<T> distances = measure_rows(SmallMatrix<T>(1, x_.cols)).distances;
        const auto bad = std::find_if(distances.begin(), distances.end(),
                                      [](T value) { return !std::isfinite(value); });
        constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
        const std::int64_t mine =
            bad == distances.end() ? none : map_.first_row() + (bad - distances.begin());
        const std::int64_t first = -ctx_.comm().max(-mine);
        throw_collective(ErrorKind::input,
                         first == none
                             ? "kmeans: the sum of the squared distances overflows; scale X"
                             : "kmeans: row " + std::to_string(first) +
                                   " of X (counted from 0) has NaN or infinity, or a square that "
                                   "overflows");
    }

    struct Rows {
        std::vector<T> distances;
        std::vector<int> labels;
    };
    /// Distances and labels of this rank's rows, in host memory. Not collective.
    Rows measure_rows(const SmallMatrix<T>& centres) {
        const auto count = static_cast<std::size_t>(x_.rows);
        Rows rows{std::vector<T>(count), std::vector<int>(count)};
        const MemoryKind kind = memory_kind(ctx_.place());
        const Scratch distances = ctx_.scratch(kind, count * sizeof(T));
        const Scratch labels = ctx_.scratch(kind, count * sizeof(int));
        SmallMatrix<double> sums(centres.rows(), x_.cols + 2);
        kmeans_step<In>(ctx_, x_, std::span<const T>(origin_), centres, sums,
                        {{labels.as<int>(), count}, {distances.as<T>(), count}}, Reduce::this_rank);
        const BlockView<T> there(distances.as<T>(), x_.rows, 1, 1, ctx_.place());
        copy(ctx_, there, BlockView<T>(rows.distances.data(), x_.rows, 1, 1));
        HostCopy to_host(ctx_, count * sizeof(int));
        to_host.begin(labels.as<void>(), count * sizeof(int));
        const auto* const found = static_cast<const int*>(to_host.wait(false));
        std::copy_n(found, count, rows.labels.begin());
        return rows;
    }

    void assign(const SmallMatrix<T>& centres, const KmeansRows<In>& rows = {}) {
        kmeans_step<In>(ctx_, x_, std::span<const T>(origin_), centres, sums_, rows);
    }
    double number(int j) const { return sums_(j, x_.cols); }
    double inertia() const {
        double sum = 0;
        for (int j = 0; j < options_.k; ++j) {
            sum += sums_(j, x_.cols + 1);
        }
        return sum;
    }

    /// Moves each centre to the mean of its points; returns the sum of the squared shifts.
    double move(SmallMatrix<T>& centres) const {
        double shift = 0;
        for (int j = 0; j < options_.k; ++j) {
            for (int p = 0; p < x_.cols && number(j) > 0; ++p) {
                const T mean = static_cast<T>(sums_(j, p) / number(j));
                const double difference =
                    static_cast<double>(mean) - static_cast<double>(centres(j, p));
                shift += difference * difference;
                centres(j, p) = mean;
            }
        }
        return shift;
    }

    /// The `most` farthest points of all ranks that are not at their centre, farthest first, and
    /// the first row of equals first; column 3 and later of the result have the point.
    SmallMatrix<double> find_far_points(const SmallMatrix<T>& centres, int most) {
        const Rows rows = measure_rows(centres);
        std::vector<std::int64_t> order(rows.distances.size());
        std::iota(order.begin(), order.end(), std::int64_t{0});
        const auto distance = [&](std::int64_t i) {
            return rows.distances[static_cast<std::size_t>(i)];
        };
        const auto count = std::min(order.size(), static_cast<std::size_t>(most));
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                          order.end(), [&](std::int64_t a, std::int64_t b) {
                              return distance(a) > distance(b) ||
                                     (distance(a) == distance(b) && a < b);
                          });
        order.resize(count);
        const int ranks = ctx_.comm().size();
        SmallMatrix<double> all(ranks * most, 3 + x_.cols);
        const std::vector<double> points = points_of(order);
        for (std::size_t i = 0; i < count; ++i) {
            const int to = ctx_.comm().rank() * most + static_cast<int>(i);
            const auto row = static_cast<std::size_t>(order[i]);
            all(to, 0) = static_cast<double>(rows.distances[row]);
            all(to, 1) = static_cast<double>(map_.first_row() + order[i]);
            all(to, 2) = rows.labels[row];
            std::copy_n(points.data() + i * static_cast<std::size_t>(x_.cols), x_.cols,
                        &all(to, 3));
        }
        ctx_.comm().sum(std::span(all.data(), static_cast<std::size_t>(all.rows()) *
                                                  static_cast<std::size_t>(all.cols())));
        return all;
    }

    /// Rows of this rank, in double precision.
    std::vector<double> points_of(const std::vector<std::int64_t>& rows) {
        const auto columns = static_cast<std::size_t>(x_.cols);
        const auto count = static_cast<std::int64_t>(rows.size());
        const Scratch memory =
            ctx_.scratch(memory_kind(ctx_.place()), rows.size() * columns * sizeof(In));
        const BlockView<In> there(memory.as<In>(), count, x_.cols, x_.cols, ctx_.place());
        gather_rows<In>(ctx_, x_, rows, there);
        std::vector<double> points(rows.size() * columns);
        copy(ctx_, there, BlockView<double>(points.data(), count, x_.cols, x_.cols));
        return points;
    }

    /// Gives the empty clusters the points that are farthest from their centres; returns how many.
    int relocate_empty(const SmallMatrix<T>& centres) {
        std::vector<int> empty;
        for (int j = 0; j < options_.k; ++j) {
            if (number(j) == 0) {
                empty.push_back(j);
            }
        }
        if (empty.empty()) {
            return 0;
        }
        const SmallMatrix<double> far = find_far_points(centres, static_cast<int>(empty.size()));
        std::vector<int> order(static_cast<std::size_t>(far.rows()));
        std::iota(order.begin(), order.end(), 0);
        // Ranks are in the order of their rows.
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return far(a, 0) > far(b, 0); });
        int moved = 0;
        for (const int j : empty) {
            const int from = order[static_cast<std::size_t>(moved)];
            if (!(far(from, 0) > 0)) {
                break;  // fewer different points than clusters
            }
            const int old = static_cast<int>(far(from, 2));
            for (int p = 0; p < x_.cols; ++p) {
                const double value =
                    far(from, 3 + p) - static_cast<double>(origin_[static_cast<std::size_t>(p)]);
                sums_(old, p) -= value;
                sums_(j, p) = value;
            }
            sums_(old, x_.cols) -= 1;
            sums_(j, x_.cols) = 1;
            ++moved;
        }
        return moved;
    }

    /// Reports an iteration; false if it shall be the last.
    bool goes_on(int iteration, double shift) {
        IterationEvent event;
        event.solver = "kmeans";
        event.stage = "lloyd";
        event.iteration = iteration;
        event.converged = -1;
        event.residual = variance_ > 0 ? std::sqrt(shift / variance_) : 0;
        event.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
        ctx_.emit(event);
        if (!options_.keep_going) {
            return true;
        }
        return ctx_.comm().max(std::int64_t{options_.keep_going(event) ? 0 : 1}) == 0;
    }

    /// Assigns the points to the last centres.
    void finish(KmeansResult<In>& result, std::span<int> labels) {
        assign(result.centres, {labels, {}});
        result.inertia = inertia();
        for (int j = 0; j < options_.k; ++j) {
            result.sizes.push_back(static_cast<std::int64_t>(number(j)));
            result.inertias.push_back(sums_(j, x_.cols + 1));
        }
    }

    Context& ctx_;
    const RowMap& map_;
    BlockView<const In> x_;
    const KmeansOptions& options_;
    std::vector<T> origin_;
    /// The mean over the columns of their variances.
    double variance_ = 0;
    SmallMatrix<double> sums_;
    Clock::time_point begin_ = Clock::now();
};

template <class In>
void check_kmeans(Context& ctx, const RowMap& map, const BlockView<const In>& x,
                  const KmeansOptions& options, std::span<int> labels,
                  const SmallMatrix<centre_t<In>>& starts) {
    EqualOptions equal("kmeans");
    equal.add("k", options.k);
    equal.add("tol", options.tol);
    equal.add("max_iterations", options.max_iterations);
    equal.add("runs", options.runs);
    equal.add("seed", options.seed);
    equal.add("columns", x.cols);
    equal.add("keep_going", static_cast<bool>(options.keep_going));
    equal.add_list(
        "starts", starts.data(),
        static_cast<std::size_t>(starts.rows()) * static_cast<std::size_t>(starts.cols()),
        sizeof(centre_t<In>));
    equal.require(ctx.comm());
    ctx.comm().agree([&] {
        require_valid(x, "kmeans", "X");
        const bool fits = x.rows == map.local_rows() && map.ranks() == ctx.comm().size() &&
                          (labels.empty() || labels.size() == static_cast<std::size_t>(x.rows));
        require_shape(fits, "kmeans", "the rows of X, the row map and the labels disagree", [&] {
            return describe(x) +
                   "; rows of this rank in the map: " + std::to_string(map.local_rows()) +
                   "; labels: " + std::to_string(labels.size());
        });
        check_kmeans_options(options, map.global_rows(), x.cols);
        check_starts(starts, options.k, x.cols);
    });
}

}  // namespace

template <class In>
KmeansResult<In> kmeans(Context& ctx, const RowMap& map, BlockView<const In> x,
                        const KmeansOptions& options, std::span<int> labels,
                        const SmallMatrix<centre_t<In>>& starts) {
    const auto begin = std::chrono::steady_clock::now();
    check_kmeans<In>(ctx, map, x, options, labels, starts);
    Lloyd<In> lloyd(ctx, map, x, options);
    const int runs = starts.rows() > 0 ? 1 : options.runs;
    const int sample_size = static_cast<int>(
        std::min<std::int64_t>(map.global_rows(), std::max(4096, 256 * options.k)));
    const auto choose = [&](const Lloyd<In>& solver, int run) {
        if (starts.rows() > 0) {
            std::vector<int> all(static_cast<std::size_t>(options.k));
            std::iota(all.begin(), all.end(), 0);
            return solver.relative(starts, all);
        }
        const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(run);
        const SmallMatrix<double> points = sample_rows(ctx, map, x, sample_size, seed);
        return solver.relative(points, choose_starts(points, options.k, seed));
    };
    // Two runs often find the same clusters in another order. Their inertias then differ by
    // rounding errors, which depend on the ranks: the earlier run wins, so that the labels do not.
    constexpr double equal_inertias =
        std::max(1e-12, 16.0 * std::numeric_limits<centre_t<In>>::epsilon());
    KmeansResult<In> best;
    int last = 0;
    for (int run = 0; run < runs && !best.interrupted; ++run) {
        KmeansResult<In> result = lloyd.run(choose(lloyd, run), labels);
        result.run = run;
        last = run;
        const bool interrupted = result.interrupted;
        if (run == 0 || result.inertia < (1 - equal_inertias) * best.inertia) {
            best = std::move(result);
        }
        best.interrupted = interrupted;
    }
    // On every rank, also on one without rows.
    if (best.run != last) {
        lloyd.label(best.centres, labels);
    }
    lloyd.make_absolute(best.centres);
    best.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return best;
}

#define QUIVER_INSTANTIATE(In, T)                                                  \
    template KmeansResult<In> kmeans(Context&, const RowMap&, BlockView<const In>, \
                                     const KmeansOptions&, std::span<int>, const SmallMatrix<T>&);
QUIVER_INSTANTIATE(float, float)
QUIVER_INSTANTIATE(double, double)
QUIVER_INSTANTIATE(half_t, float)
QUIVER_INSTANTIATE(bfloat16_t, float)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
