// SPDX-License-Identifier: BSD-3-Clause
// dots: x_j^H y_j for all columns. Its results are in host memory when a call returns.
#include "kernels/operations/dots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class DotsWorkload final : public Workload {
  public:
    DotsWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.n, 11),
          y_(ctx, sets_, c.shape.n, 12),
          result_(static_cast<std::size_t>(c.shape.n)) {}

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        std::fill(result_.begin(), result_.end(), T(std::numeric_limits<real_t<T>>::quiet_NaN()));
    }
    void run(std::int64_t set) override {
        dots<T>(ctx_, x_.view(set), y_.view(set), std::span<T>(result_));
    }
    AnyBlock output(std::int64_t) override {
        const int n = static_cast<int>(result_.size());
        return BlockView<T>(result_.data(), 1, n, n);
    }

    double error(std::int64_t set, std::int64_t) override {
        Worst<T> worst;
        for (std::size_t j = 0; j < result_.size(); ++j) {
            Wide<T> exact = 0;
            long double x_norm = 0;
            long double y_norm = 0;
            for (std::int64_t p = 0; p < std::min(period, sets_.rows); ++p) {
                // The number of rows of the set that are equal to row p.
                const auto times = repeats(sets_.rows, p);
                const T x = x_.row(set, p)[j];
                const T y = y_.row(set, p)[j];
                exact += times * wide(conjugate(x)) * wide(y);
                x_norm += times * norm_squared(x);
                y_norm += times * norm_squared(y);
            }
            worst.compare(
                result_[j], exact,
                rounding<T>(static_cast<double>(sets_.rows)) * std::sqrt(x_norm * y_norm));
        }
        return worst.ratio;
    }

  private:
    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_, y_;
    std::vector<T> result_;
};

class DotsKernel final : public Kernel {
  public:
    const char* name() const override { return "dots"; }
    const char* formula() const override { return "x_j^H y_j"; }
    Traffic traffic() const override { return Traffic::read; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            const T first{}, second{};  // their addresses must differ
            DotsArgs<T> args{};
            args.rows = c.rows;
            args.cols = c.shape.n;
            args.x = &first;
            args.y = &second;
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return 2 * scalar_bytes(c.scalar) * c.shape.n;
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<DotsWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
        });
    }
};

}  // namespace

std::span<const Kernel* const> dots_kernels() {
    static const DotsKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
