// SPDX-License-Identifier: BSD-3-Clause
// axpby: Y = -1.5 X + 0.5 Y.
#include "kernels/operations/axpby.hpp"

#include <array>
#include <cmath>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"

namespace quiver::apps::bench {
namespace {

constexpr double alpha = -1.5;
constexpr double beta = 0.5;

template <class T>
class AxpbyWorkload final : public Workload {
  public:
    AxpbyWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.n, 11),
          y_(ctx, sets_, c.shape.n, 12) {}

    std::int64_t sets() const override { return sets_.count; }
    void reset() override { y_.refill(); }
    void run(std::int64_t set) override {
        axpby(ctx_, T(real_t<T>(alpha)), x_.view(set), T(real_t<T>(beta)), y_.view(set));
    }
    AnyBlock output(std::int64_t set) override { return y_.view(set); }

    double error(std::int64_t set, std::int64_t calls) override {
        // After k calls Y = beta^k Y0 + alpha (1 - beta^k) / (1 - beta) X. Each call halves the
        // errors of the previous calls.
        const long double decay = std::pow(static_cast<long double>(beta), calls);
        const long double share = alpha * (1 - decay) / (1 - beta);
        const int n = y_.view(set).cols;
        return check_tall<T>(
            ctx_, y_.view(set), period, [&](std::int64_t row, const T* computed, Worst<T>& worst) {
                const T* x = x_.row(set, row);
                const T* y0 = y_.row(set, row);
                for (int j = 0; j < n; ++j) {
                    const long double size =
                        3 * std::sqrt(norm_squared(x[j])) + std::sqrt(norm_squared(y0[j]));
                    worst.compare(computed[j], decay * wide(y0[j]) + share * wide(x[j]),
                                  rounding<T>(2) * size);
                }
            });
    }

  private:
    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_, y_;
};

class AxpbyKernel final : public Kernel {
  public:
    const char* name() const override { return "axpby"; }
    const char* formula() const override { return "Y = a X + b Y"; }
    Traffic traffic() const override { return Traffic::scale; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            AxpbyArgs<T> args{};
            args.rows = c.rows;
            args.cols = c.shape.n;
            args.alpha = args.beta = T(1);
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return 2 * scalar_bytes(c.scalar) * c.shape.n;
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<AxpbyWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
        });
    }
};

}  // namespace

std::span<const Kernel* const> axpby_kernels() {
    static const AxpbyKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
