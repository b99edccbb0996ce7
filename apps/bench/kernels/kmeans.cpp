// SPDX-License-Identifier: BSD-3-Clause
// kmeans: one step of Lloyd's iteration for m centres and n columns. Its sums are in host memory
// when a call returns.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/kmeans_step.hpp"
#include "kernels/operations/kmeans_step.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class KmeansWorkload final : public Workload {
  public:
    KmeansWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.n, 11),
          origin_(static_cast<std::size_t>(c.shape.n)),
          centres_(c.shape.m, c.shape.n),
          sums_(c.shape.m, c.shape.n + 2) {
        for (int j = 0; j < centres_.rows(); ++j) {
            for (int p = 0; p < centres_.cols(); ++p) {
                centres_(j, p) = static_cast<T>(2 * uniform(13, j, p) - 1);
            }
        }
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        std::fill_n(sums_.data(), sums_.rows() * sums_.cols(),
                    std::numeric_limits<double>::quiet_NaN());
    }
    void run(std::int64_t set) override {
        kmeans_step<T>(ctx_, x_.view(set), std::span<const T>(origin_), centres_, sums_);
    }
    AnyBlock output(std::int64_t) override { return sums_.view(); }

    double error(std::int64_t set, std::int64_t) override {
        if (references_.find(set) == references_.end()) {
            references_.emplace(set, reference(set));
        }
        const std::vector<Sum>& exact = references_.at(set);
        Worst<double> worst;
        for (std::size_t e = 0; e < exact.size(); ++e) {
            worst.compare(sums_.data()[e], exact[e].value, exact[e].bound);
        }
        return worst.ratio;
    }

  private:
    struct Sum {
        long double value = 0, bound = 0;
    };

    long double distance(const T* row, int centre) const {
        long double sum = 0;
        for (int p = 0; p < centres_.cols(); ++p) {
            const long double difference = wide(row[p]) - wide(centres_(centre, p));
            sum += difference * difference;
        }
        return sum;
    }

    /// The sums, and their bounds: sums in T of at most 8192 rows are added in double. A row that
    /// rounding may assign to another centre counts in the bounds of both.
    std::vector<Sum> reference(std::int64_t set) const {
        const int d = centres_.cols();
        const auto eps = static_cast<long double>(epsilon_v<T>);
        const long double factor = eps * (std::min(sets_.rows, std::int64_t{8192}) + d + 8);
        std::vector<Sum> sums(static_cast<std::size_t>(centres_.rows() * (d + 2)));
        for (std::int64_t at = 0; at < std::min(period, sets_.rows); ++at) {
            const long double times = repeats(sets_.rows, at);
            const T* const row = x_.row(set, at);
            std::vector<long double> distances;
            distances.reserve(static_cast<std::size_t>(centres_.rows()));
            for (int j = 0; j < centres_.rows(); ++j) {
                distances.push_back(distance(row, j));
            }
            const auto nearest = std::min_element(distances.begin(), distances.end());
            const long double limit = *nearest + 8 * (d + 3) * eps * d;
            const auto candidates = std::count_if(distances.begin(), distances.end(),
                                                  [&](long double each) { return each <= limit; });
            for (int j = 0; j < centres_.rows(); ++j) {
                const bool chosen = j == nearest - distances.begin();
                const bool unsure =
                    candidates > 1 && distances[static_cast<std::size_t>(j)] <= limit;
                for (int e = 0; e < d + 2 && (chosen || unsure); ++e) {
                    const long double value = e < d ? wide(row[e]) : e == d ? 1 : *nearest;
                    Sum& sum = sums[static_cast<std::size_t>(j * (d + 2) + e)];
                    sum.value += chosen ? times * value : 0;
                    sum.bound += chosen ? times * (e == d ? eps : factor) * std::abs(value) : 0;
                    sum.bound += unsure ? times * (std::abs(value) + eps) : 0;
                }
            }
        }
        return sums;
    }

    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_;
    std::vector<T> origin_;
    SmallMatrix<T> centres_;
    SmallMatrix<double> sums_;
    std::map<std::int64_t, std::vector<Sum>> references_;
};

class KmeansKernel final : public Kernel {
  public:
    const char* name() const override { return "kmeans"; }
    const char* formula() const override { return "sums of the rows at each of m centres"; }
    bool has_two_widths() const override { return true; }
    int most_columns() const override { return largest_kmeans; }
    bool takes(Dtype scalar) const override { return scalar == Dtype::s || scalar == Dtype::d; }
    Traffic traffic() const override { return Traffic::read; }
    Cost cost(const Case& c) const override {
        KmeansStepArgs<double, double> args{};
        args.rows = c.rows;
        args.k = c.shape.m;
        args.d = c.shape.n;
        Cost cost = quiver::cost(args);
        cost.bytes = row_bytes(c) * static_cast<double>(c.rows);
        return cost;
    }
    double row_bytes(const Case& c) const override { return scalar_bytes(c.scalar) * c.shape.n; }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        if (c.scalar == Dtype::s) {
            return std::make_unique<KmeansWorkload<float>>(ctx, c, row_bytes(c), least_bytes);
        }
        return std::make_unique<KmeansWorkload<double>>(ctx, c, row_bytes(c), least_bytes);
    }
};

}  // namespace

std::span<const Kernel* const> kmeans_kernels() {
    static const KmeansKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
