// SPDX-License-Identifier: BSD-3-Clause
// tsmm: Y = X C, and Y = X C + Y / 2.
#include "kernels/tsmm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/tsmm.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr double beta_value = 0.5;

template <class T>
class TsmmWorkload final : public Workload {
  public:
    TsmmWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes, bool adds)
        : ctx_(ctx),
          adds_(adds),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.m, 11),
          y_(ctx, sets_, c.shape.n, 12),
          c_(make_block<T>(ctx, c.shape.m, c.shape.n)) {
        fill_random(ctx, 13, c_);
        c_host_ = to_host<T>(ctx, c_.view());
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        if (adds_) {
            y_.refill();
        } else {
            fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y_.all());
        }
    }
    void run(std::int64_t set) override {
        tsmm(ctx_, T(1), x_.view(set), c_.view(), beta(), y_.view(set));
    }
    bool has(Rival& rival) override { return rival.gemm() != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        rival.gemm()->run(GemmCall<T>{false, T(1), x_.view(set), c_.view(), beta(), y_.view(set)});
    }
    AnyBlock output(std::int64_t set) override { return y_.view(set); }

    double error(std::int64_t set, std::int64_t calls) override {
        const auto m = static_cast<int>(c_.view().rows);
        const int n = c_.view().cols;
        // After k calls Y = b^k Y0 + (1 - b^k) / (1 - b) X C, b = beta. Each call halves the errors
        // of the previous calls.
        const long double decay = adds_ ? std::pow(static_cast<long double>(beta_value), calls) : 0;
        const long double share = adds_ ? (1 - decay) / (1 - beta_value) : 1;
        const long double factor = (adds_ ? 2 : 1) * rounding<T>(m);
        const auto check_row = [&](std::int64_t row, const T* computed, Worst<T>& worst) {
            const T* x = x_.row(set, row);
            const T* y0 = y_.row(set, row);
            long double x_norm = 0;
            for (int i = 0; i < m; ++i) {
                x_norm += norm_squared(x[i]);
            }
            for (int j = 0; j < n; ++j) {
                Wide<T> exact = 0;
                long double c_norm = 0;
                for (int i = 0; i < m; ++i) {
                    const T c = c_host_[static_cast<std::size_t>(i * n + j)];
                    exact += wide(x[i]) * wide(c);
                    c_norm += norm_squared(c);
                }
                const long double added = adds_ ? std::sqrt(norm_squared(y0[j])) : 0;
                worst.compare(computed[j], share * exact + decay * wide(y0[j]),
                              factor * (std::sqrt(x_norm * c_norm) + added));
            }
        };
        // Limits the reference to about two million multiply-adds, more for very wide shapes.
        constexpr std::int64_t work = std::int64_t{1} << 20;
        const std::int64_t edge =
            std::clamp(work / (std::int64_t{m} * n), std::int64_t{32}, period);
        return check_tall<T>(ctx_, y_.view(set), edge, check_row);
    }

  private:
    T beta() const { return adds_ ? T(real_t<T>(beta_value)) : T(0); }

    Context& ctx_;
    bool adds_;
    Sets sets_;
    PeriodicBlock<T> x_, y_;
    BlockVector<T> c_;
    std::vector<T> c_host_;
};

class TsmmKernel final : public Kernel {
  public:
    explicit TsmmKernel(bool adds) : adds_(adds) {}
    const char* name() const override { return adds_ ? "tsmm-beta" : "tsmm"; }
    const char* formula() const override { return adds_ ? "Y = X C + Y / 2" : "Y = X C"; }
    bool has_two_widths() const override { return true; }
    bool has_plans() const override { return true; }
    Traffic traffic() const override { return adds_ ? Traffic::scale : Traffic::copy; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            TsmmArgs<T> args{};
            args.rows = c.rows;
            args.m = c.shape.m;
            args.n = c.shape.n;
            args.beta = adds_ ? T(real_t<T>(beta_value)) : T(0);
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return scalar_bytes(c.scalar) * (c.shape.m + c.shape.n);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<TsmmWorkload<T>>(ctx, c, row_bytes(c), least_bytes, adds_);
        });
    }

  private:
    bool adds_;
};

}  // namespace

std::span<const Kernel* const> tsmm_kernels() {
    static const TsmmKernel plain(false);
    static const TsmmKernel beta(true);
    static const std::array<const Kernel*, 2> all{&plain, &beta};
    return all;
}

}  // namespace quiver::apps::bench
