// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/cluster/kmeans_starts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "blockvec/scalar.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver {
namespace {

/// Uniform numbers of sample_rows have column 0, those of choose_starts columns from 1 on.
constexpr std::int64_t sample_column = 0;

/// The integer in 0 .. count - 1 for a number in [0, 1).
std::int64_t scaled_to(double unit, std::int64_t count) {
    return std::min(static_cast<std::int64_t>(unit * static_cast<double>(count)), count - 1);
}

/// Points stored by columns, so that loops over the points are contiguous.
class PointColumns {
  public:
    explicit PointColumns(const SmallMatrix<double>& points)
        : count_(static_cast<std::size_t>(points.rows())),
          columns_(static_cast<std::size_t>(points.cols())),
          values_(count_ * columns_) {
        for (int i = 0; i < points.rows(); ++i) {
            for (int p = 0; p < points.cols(); ++p) {
                values_[static_cast<std::size_t>(p) * count_ + static_cast<std::size_t>(i)] =
                    points(i, p);
            }
        }
    }
    std::size_t count() const { return count_; }
    /// distances[i] = ||x_i - x_at||^2
    void measure(std::size_t at, std::vector<double>& distances) const {
        std::fill(distances.begin(), distances.end(), 0.0);
        for (std::size_t p = 0; p < columns_; ++p) {
            const double* const column = values_.data() + p * count_;
            const double centre = column[at];
            for (std::size_t i = 0; i < count_; ++i) {
                const double difference = column[i] - centre;
                distances[i] += difference * difference;
            }
        }
    }

  private:
    std::size_t count_;
    std::size_t columns_;
    std::vector<double> values_;
};

/// The first point at which the running sum of the weights exceeds `target`.
std::size_t find_weight(const std::vector<double>& weights, double target) {
    double sum = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] > 0) {
            sum += weights[i];
            last = i;
            if (sum > target) {
                return i;
            }
        }
    }
    return last;
}

}  // namespace

template <class In>
SmallMatrix<double> sample_rows(Context& ctx, const RowMap& map, BlockView<const In> x, int count,
                                std::uint64_t seed) {
    SmallMatrix<double> sample(count, x.cols);
    std::vector<std::int64_t> own;
    int first = 0;
    for (int i = 0; i < count; ++i) {
        const std::int64_t begin = map.global_rows() * i / count;
        const std::int64_t end = map.global_rows() * (i + 1) / count;
        const std::int64_t row =
            begin + scaled_to(uniform(seed, i, sample_column), end - begin) - map.first_row();
        if (row >= 0 && row < map.local_rows()) {
            first = own.empty() ? i : first;
            own.push_back(row);
        }
    }
    const auto rows = static_cast<std::int64_t>(own.size());
    const Scratch memory = ctx.scratch(memory_kind(ctx.place()),
                                       own.size() * static_cast<std::size_t>(x.cols) * sizeof(In));
    const BlockView<In> chosen(memory.as<In>(), rows, x.cols, x.cols, ctx.place());
    gather_rows<In>(ctx, x, own, chosen);
    copy(ctx, chosen,
         BlockView<double>(sample.data() + static_cast<std::ptrdiff_t>(first) * x.cols, rows,
                           x.cols, x.cols));
    // Every other rank adds zeros.
    ctx.comm().sum(std::span(sample.data(),
                             static_cast<std::size_t>(count) * static_cast<std::size_t>(x.cols)));
    return sample;
}

std::vector<int> choose_starts(const SmallMatrix<double>& points, int k, std::uint64_t seed) {
    const PointColumns columns(points);
    const std::size_t count = columns.count();
    const auto any = [&](double unit) {
        return static_cast<std::size_t>(scaled_to(unit, points.rows()));
    };
    const int trials = 2 + static_cast<int>(std::log(k));
    std::vector<int> chosen{static_cast<int>(any(uniform(seed, 0, 1)))};
    std::vector<double> nearest(count);
    columns.measure(static_cast<std::size_t>(chosen.front()), nearest);
    std::vector<double> distances(count);
    std::vector<double> best(count);
    while (static_cast<int>(chosen.size()) < k) {
        const double potential = std::accumulate(nearest.begin(), nearest.end(), 0.0);
        double least = 0;
        std::size_t winner = count;
        for (int trial = 0; trial < trials; ++trial) {
            const double unit = uniform(seed, static_cast<std::int64_t>(chosen.size()), 1 + trial);
            // If all points coincide with centres, any point serves.
            const std::size_t candidate =
                potential > 0 ? find_weight(nearest, unit * potential) : any(unit);
            columns.measure(candidate, distances);
            double left = 0;
            for (std::size_t i = 0; i < count; ++i) {
                distances[i] = std::min(distances[i], nearest[i]);
                left += distances[i];
            }
            if (winner == count || left < least) {
                least = left;
                winner = candidate;
                best.swap(distances);
            }
        }
        chosen.push_back(static_cast<int>(winner));
        nearest.swap(best);
    }
    return chosen;
}

#define QUIVER_INSTANTIATE(In)                                                                  \
    template SmallMatrix<double> sample_rows(Context&, const RowMap&, BlockView<const In>, int, \
                                             std::uint64_t);
QUIVER_INSTANTIATE(float)
QUIVER_INSTANTIATE(double)
QUIVER_INSTANTIATE(half_t)
QUIVER_INSTANTIATE(bfloat16_t)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
