// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/svd/pca.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/shape.hpp"
#include "kernels/shifted_gram.hpp"
#include "solvers/cluster/kmeans_starts.hpp"
#include "solvers/dense/projected_eigen.hpp"
#include "solvers/equal_options.hpp"
#include "solvers/svd/centred_rows.hpp"
#include "solvers/svd/singular_signs.hpp"

namespace quiver {
namespace {

constexpr int shift_sample = 256;
/// Powers of two with which products of centred rows in double are formed again if they underflow
/// (also with the first factor) or overflow. Rows in single precision have no such products.
constexpr int enlarging[] = {511, 1000};
constexpr int reducing = -600;
/// Sums of squares below this one count as underflowing: those of other columns may have.
constexpr double least_squares = 1e-200;

template <class In>
void check_pca(Context& ctx, const RowMap& map, const BlockView<const In>& x,
               const PcaOptions& options) {
    EqualOptions equal("pca");
    equal.add("k", options.k);
    equal.add("columns", x.cols);
    equal.require(ctx.comm());
    ctx.comm().agree([&] {
        require_valid(x, "pca", "X");
        require_shape(
            x.rows == map.local_rows() && map.ranks() == ctx.comm().size() &&
                x.place == ctx.place(),
            "pca", "the rows or the place of X, the row map and the Context disagree", [&] {
                return describe(x) +
                       "; rows of this rank in the map: " + std::to_string(map.local_rows());
            });
        if (x.cols < 1 || map.global_rows() < 2) {
            throw InputError("pca: X has " + std::to_string(map.global_rows()) + " rows and " +
                             std::to_string(x.cols) +
                             " columns; at least 2 rows and 1 column are needed");
        }
        const std::int64_t most = std::min<std::int64_t>(map.global_rows(), x.cols);
        if (options.k < 0 || options.k > most) {
            throw InputError("pca: k = " + std::to_string(options.k) + " components, but " +
                             std::to_string(map.global_rows()) + " rows of " +
                             std::to_string(x.cols) + " columns have 1 to " + std::to_string(most) +
                             " (0: all of them)");
        }
    });
}

/// The products of the centred rows.
struct Moments {
    std::vector<double> mean;
    std::vector<double> mean_rest;
    /// (rows - 1) 2^(2 exponent) times the covariance matrix.
    SmallMatrix<double> scatter;
    int exponent = 0;
    int passes = 0;
};

/// Forms the moments of all rows.
template <class In>
class MomentSums {
  public:
    MomentSums(Context& ctx, const RowMap& map, BlockView<const In> x)
        : ctx_(ctx), map_(map), x_(x), count_(static_cast<double>(map.global_rows())) {}

    Moments run() {
        const int most = static_cast<int>(std::min<std::int64_t>(map_.global_rows(), shift_sample));
        const SmallMatrix<double> sample = sample_rows<In>(ctx_, map_, x_, most, 1);
        std::vector<double> shift = first_shift(sample);
        Moments moments;
        bool again_before = false;
        for (bool again = true; again;) {
            const SmallMatrix<double> sums = products_in_range(shift, moments);
            again = !centre(sums, shift, moments) && !again_before;
            again_before = true;
            if (again) {
                shift = moments.mean;
            }
        }
        return moments;
    }

  private:
    /// The means of the sample, or zeros if no mean exceeds the column's mean absolute deviation: a
    /// shift then saves no digits, and without one a host multiplies rows in double in place.
    std::vector<double> first_shift(const SmallMatrix<double>& sample) const {
        const auto columns = static_cast<std::size_t>(x_.cols);
        const auto for_elements = [&](const auto& use) {
            for (int i = 0; i < sample.rows(); ++i) {
                for (std::size_t j = 0; j < columns; ++j) {
                    use(j, sample(i, static_cast<int>(j)));
                }
            }
        };
        // Relative to a row, so that the mean of equal numbers is exact.
        const std::vector<double> first(sample.data(), sample.data() + columns);
        std::vector<double> shift(columns);
        for_elements([&](std::size_t j, double value) { shift[j] += value - first[j]; });
        for (std::size_t j = 0; j < columns; ++j) {
            shift[j] = first[j] + shift[j] / sample.rows();
        }
        std::vector<double> spread(columns);
        for_elements([&](std::size_t j, double value) { spread[j] += std::abs(value - shift[j]); });
        bool small = true;
        for (std::size_t j = 0; j < columns; ++j) {
            small = small && std::abs(shift[j]) <= spread[j] / sample.rows();
            shift[j] = std::isfinite(shift[j]) ? shift[j] : 0;
        }
        if (small) {
            std::ranges::fill(shift, 0.0);
        }
        return shift;
    }

    /// Products whose squares neither underflow nor overflow, by the exponent of the moments or
    /// another one.
    SmallMatrix<double> products_in_range(const std::vector<double>& shift, Moments& moments) {
        SmallMatrix<double> sums = products(shift, moments);
        if constexpr (std::is_same_v<In, double>) {
            if (moments.exponent == 0 && !std::isfinite(largest_square(sums))) {
                moments.exponent = reducing;
                sums = products(shift, moments);
            }
            for (const int exponent : enlarging) {
                if (moments.exponent >= 0 && exponent > moments.exponent &&
                    largest_square(sums) < least_squares) {
                    moments.exponent = exponent;
                    sums = products(shift, moments);
                }
            }
        }
        require_finite(sums);
        return sums;
    }
    /// NaN or infinity if a column has it.
    double largest_square(const SmallMatrix<double>& sums) const {
        double most = 0;
        for (int j = 0; j < x_.cols; ++j) {
            if (!(sums(j, j) <= most) && !std::isnan(most)) {
                most = sums(j, j);
            }
        }
        return most;
    }

    /// Z^T Z over all ranks for Z = 2^exponent (X - 1 shift^T), and below it a row with the sums of
    /// the columns of Z.
    SmallMatrix<double> products(const std::vector<double>& shift, Moments& moments) {
        ++moments.passes;
        SmallMatrix<double> sums(x_.cols + 1, x_.cols);
        ctx_.comm().agree([&] {
            shifted_gram<In>(ctx_, x_, shift, std::ldexp(1.0, moments.exponent), sums,
                             Reduce::this_rank);
        });
        ctx_.comm().sum(std::span(sums.data(), static_cast<std::size_t>(x_.cols + 1) *
                                                   static_cast<std::size_t>(x_.cols)));
        return sums;
    }

    void require_finite(const SmallMatrix<double>& sums) const {
        for (int j = 0; j < x_.cols; ++j) {
            if (!std::isfinite(sums(j, j))) {
                throw_collective(ErrorKind::input,
                                 "pca: column " + std::to_string(j) +
                                     " of X (counted from 0) has NaN, infinity or a difference "
                                     "from the mean that overflows");
            }
        }
    }

    /// Moments about the mean from those about the shift. False if digits were lost: if in a column
    /// the mean of z was more than 4 standard deviations.
    bool centre(const SmallMatrix<double>& sums, const std::vector<double>& shift,
                Moments& moments) {
        const int n = x_.cols;
        moments.mean.clear();
        moments.mean_rest.clear();
        moments.scatter = SmallMatrix<double>(n, n);
        bool sound = true;
        for (int i = 0; i < n; ++i) {
            const double from = shift[static_cast<std::size_t>(i)];
            const double step = std::ldexp(sums(n, i) / count_, -moments.exponent);
            const double mean = from + step;
            const double part = mean - from;
            moments.mean.push_back(mean);
            moments.mean_rest.push_back((from - (mean - part)) + (step - part));
            for (int j = 0; j < n; ++j) {
                moments.scatter(i, j) = sums(i, j) - sums(n, i) * (sums(n, j) / count_);
            }
            moments.scatter(i, i) = std::max(moments.scatter(i, i), 0.0);
            sound = sound && sums(n, i) * (sums(n, i) / count_) <= 16 * moments.scatter(i, i);
        }
        return sound;
    }

    Context& ctx_;
    const RowMap& map_;
    BlockView<const In> x_;
    double count_;
};

PcaResult components_of(Context& ctx, Moments&& moments, std::int64_t rows, int wanted) {
    const int n = moments.scatter.rows();
    const auto most = static_cast<int>(std::min<std::int64_t>(rows, n));
    const int k = wanted == 0 ? most : wanted;
    const double divisor = static_cast<double>(rows - 1);
    PcaResult result;
    result.mean = std::move(moments.mean);
    result.mean_rest = std::move(moments.mean_rest);
    result.passes = moments.passes;
    const auto unscaled = [&](double square) { return std::ldexp(square, -2 * moments.exponent); };
    double total = 0;
    for (int j = 0; j < n; ++j) {
        total += moments.scatter(j, j) / divisor;
    }
    result.total_variance = unscaled(total);
    const HermitianEigen<double> eigen = projected_eigen(ctx, moments.scatter);
    if (!eigen.converged) {
        throw_collective(ErrorKind::numerical,
                         "pca: the eigenvalues of the covariance matrix did not converge");
    }
    SmallMatrix<double> vectors(n, k);
    for (int c = 0; c < most; ++c) {
        const double value =
            std::max(eigen.values[static_cast<std::size_t>(n - 1 - c)], 0.0) / divisor;
        if (c >= k) {
            result.noise_variance += unscaled(value / (most - k));
            continue;
        }
        result.variances.push_back(unscaled(value));
        result.ratios.push_back(total > 0 ? value / total : 0);
        result.singular_values.push_back(std::ldexp(std::sqrt(value * divisor), -moments.exponent));
        for (int j = 0; j < n; ++j) {
            vectors(j, c) = eigen.vectors(j, n - 1 - c);
        }
    }
    multiply_columns(vectors, phases_of(vectors));
    result.components = SmallMatrix<double>(k, n);
    for (int c = 0; c < k; ++c) {
        for (int j = 0; j < n; ++j) {
            result.components(c, j) = vectors(j, c);
        }
    }
    return result;
}

}  // namespace

template <class In>
PcaResult pca(Context& ctx, const RowMap& map, BlockView<const In> x, const PcaOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    check_pca<In>(ctx, map, x, options);
    PcaResult result =
        components_of(ctx, MomentSums<In>(ctx, map, x).run(), map.global_rows(), options.k);
    // Rounding of z and of the sums of its products, whose norms are at most 17 variances.
    result.error = 17 * std::numeric_limits<double>::epsilon() *
                       (8 + 4 * std::sqrt(static_cast<double>(x.cols))) * result.total_variance +
                   std::numeric_limits<double>::denorm_min();
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

template <class In>
void pca_scores(Context& ctx, const PcaResult& pca, BlockView<const In> x,
                BlockView<centre_t<In>> y) {
    using T = centre_t<In>;
    const int k = pca.components.rows();
    const int n = pca.components.cols();
    require_shape(x.cols == n && y.cols == k && x.rows == y.rows && x.place == ctx.place() &&
                      y.place == ctx.place() && !overlap(x, y),
                  "pca_scores", "X and Y do not fit the components", [&] {
                      return std::to_string(k) + " components of " + std::to_string(n) +
                             " columns; X: " + describe(x) + "; Y: " + describe(y);
                  });
    std::vector<T> shift;
    SmallMatrix<T> vectors(n, k);
    SmallMatrix<T> constants(1, k);
    for (int j = 0; j < n; ++j) {
        const double mean = pca.mean[static_cast<std::size_t>(j)];
        shift.push_back(static_cast<T>(mean));
        const double rest =
            (mean - static_cast<double>(shift.back())) + pca.mean_rest[static_cast<std::size_t>(j)];
        for (int c = 0; c < k; ++c) {
            vectors(j, c) = static_cast<T>(pca.components(c, j));
            constants(0, c) -= static_cast<T>(rest * pca.components(c, j));
        }
    }
    const auto multiply = [&](BlockView<const T> z, BlockView<const T> ones, std::int64_t first) {
        const BlockView<T> part = y.row_range(first, z.rows);
        tsmm<T>(ctx, T(1), ones, constants, T(0), part);
        tsmm<T>(ctx, T(1), z, vectors, T(1), part);
    };
    CentredRows<In>(ctx, x, shift).for_each_part(multiply);
}

#define QUIVER_INSTANTIATE(In, T)                                                            \
    template PcaResult pca(Context&, const RowMap&, BlockView<const In>, const PcaOptions&); \
    template void pca_scores(Context&, const PcaResult&, BlockView<const In>, BlockView<T>);
QUIVER_INSTANTIATE(float, float)
QUIVER_INSTANTIATE(double, double)
QUIVER_INSTANTIATE(half_t, float)
QUIVER_INSTANTIATE(bfloat16_t, float)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
