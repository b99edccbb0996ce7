// SPDX-License-Identifier: BSD-3-Clause
// tsmm-pair: Y = X C + Y D for a D of norm at most 1/2.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/tsmm.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class TsmmPairWorkload final : public Workload {
  public:
    TsmmPairWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.m, 11),
          y_(ctx, sets_, c.shape.n, 12),
          c_(make_block<T>(ctx, c.shape.m, c.shape.n)),
          d_(make_block<T>(ctx, c.shape.n, c.shape.n)) {
        fill_random(ctx, 13, c_);
        fill_random(ctx, 14, d_);
        c_host_ = to_host<T>(ctx, c_.view());
        // Norm at most 1/2, so that the influence of earlier values of Y decays.
        d_host_ = to_host<T>(ctx, d_.view());
        const int n = c.shape.n;
        for (T& value : d_host_) {
            value *= static_cast<real_t<T>>(0.35 / n);
        }
        copy(ctx, BlockView<T>(d_host_.data(), n, n, n), d_.view());
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        y_.refill();
        if (product_) {
            fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), product_->view());
        }
    }
    void run(std::int64_t set) override {
        apart_ = false;
        tsmm(ctx_, T(1), x_.view(set), c_.view(), T(1), y_.view(set), d_.view());
    }
    bool has(Rival& rival) override {
        if (rival.gemm() == nullptr) {
            return false;
        }
        // No gemm works in place, so the result goes to a separate block.
        if (!product_) {
            product_.emplace(make_block<T>(ctx_, sets_.rows, d_.view().cols));
        }
        return true;
    }
    void run(Rival& rival, std::int64_t set) override {
        apart_ = true;
        rival.gemm()->run(
            GemmCall<T>{false, T(1), y_.view(set), d_.view(), T(0), product_->view()});
        rival.gemm()->run(
            GemmCall<T>{false, T(1), x_.view(set), c_.view(), T(1), product_->view()});
    }
    AnyBlock output(std::int64_t set) override { return y_.view(set); }

    double error(std::int64_t set, std::int64_t calls) override {
        const auto m = static_cast<int>(c_.view().rows);
        const int n = c_.view().cols;
        // After 80 calls, further calls change the result by less than the resolution of long
        // double.
        const std::int64_t steps = apart_ ? 1 : std::min<std::int64_t>(calls, 80);
        long double c_norm = 0;
        for (const T& value : c_host_) {
            c_norm += norm_squared(value);
        }
        const auto at = [n](int i, int j) { return static_cast<std::size_t>(i * n + j); };
        std::vector<Wide<T>> added(static_cast<std::size_t>(n));
        std::vector<Wide<T>> now(added.size());
        std::vector<Wide<T>> next(added.size());
        const auto check_row = [&](std::int64_t row, const T* computed, Worst<T>& worst) {
            const T* x = x_.row(set, row);
            const T* y0 = y_.row(set, row);
            long double x_norm = 0;
            long double y_norm = 0;
            std::fill(added.begin(), added.end(), Wide<T>(0));
            for (int i = 0; i < m; ++i) {
                x_norm += norm_squared(x[i]);
                for (int j = 0; j < n; ++j) {
                    added[static_cast<std::size_t>(j)] += wide(x[i]) * wide(c_host_[at(i, j)]);
                }
            }
            for (int j = 0; j < n; ++j) {
                y_norm += norm_squared(y0[j]);
                now[static_cast<std::size_t>(j)] = wide(y0[j]);
            }
            for (std::int64_t step = 0; step < steps; ++step) {
                next = added;
                for (int i = 0; i < n; ++i) {
                    for (int j = 0; j < n; ++j) {
                        next[static_cast<std::size_t>(j)] +=
                            now[static_cast<std::size_t>(i)] * wide(d_host_[at(i, j)]);
                    }
                }
                std::swap(now, next);
            }
            // |Y| <= 2 |x| |C| + |y0|, and each call halves the errors of the previous calls.
            const long double bound =
                2 * rounding<T>(m + n) * (2 * std::sqrt(x_norm * c_norm) + std::sqrt(y_norm) / 2);
            for (int j = 0; j < n; ++j) {
                worst.compare(computed[j], now[static_cast<std::size_t>(j)], bound);
            }
        };
        constexpr std::int64_t work = std::int64_t{1} << 20;
        const std::int64_t edge =
            std::clamp<std::int64_t>(work / ((m + n * steps) * n), 16, period);
        return check_tall<T>(ctx_, apart_ ? product_->view() : y_.view(set), edge, check_row);
    }

  private:
    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_, y_;
    BlockVector<T> c_, d_;
    std::vector<T> c_host_, d_host_;
    /// The result of a rival, and whether the last call was a rival's.
    std::optional<BlockVector<T>> product_;
    bool apart_ = false;
};

class TsmmPairKernel final : public Kernel {
  public:
    const char* name() const override { return "tsmm-pair"; }
    const char* formula() const override { return "Y = X C + Y D"; }
    bool has_two_widths() const override { return true; }
    Traffic traffic() const override { return Traffic::scale; }
    bool has_plans() const override { return true; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            const T element{};
            TsmmArgs<T> args{};
            args.rows = c.rows;
            args.m = c.shape.m;
            args.n = c.shape.n;
            args.beta = T(1);
            args.d = &element;
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return scalar_bytes(c.scalar) * (c.shape.m + c.shape.n);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<TsmmPairWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
        });
    }
};

}  // namespace

std::span<const Kernel* const> tsmm_pair_kernels() {
    static const TsmmPairKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
