// SPDX-License-Identifier: BSD-3-Clause
// tsmm-gram: W = V H + W / 2, then G = W^H W.
#include "kernels/tsmm_gram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/tsmm_gram.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr double beta_value = 0.5;

template <class T>
class TsmmGramWorkload final : public Workload {
  public:
    TsmmGramWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          m_(c.shape.m),
          n_(c.shape.n),
          v_(ctx, sets_, m_, 11),
          w_(ctx, sets_, n_, 12),
          h_(make_block<T>(ctx, m_, n_)),
          g_(make_block<T>(ctx, n_, n_)) {
        fill_random(ctx, 13, h_);
        h_host_ = to_host<T>(ctx, h_.view());
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        w_.refill();
        fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), g_.view());
    }
    void run(std::int64_t set) override {
        tsmm_gram(ctx_, T(1), v_.view(set), h_.view(), beta(), w_.view(set), g_.view());
    }
    bool has(Rival& rival) override { return rival.gemm() != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        rival.gemm()->run(GemmCall<T>{false, T(1), v_.view(set), h_.view(), beta(), w_.view(set)});
        rival.gemm()->run(GemmCall<T>{true, T(1), w_.view(set), w_.view(set), T(0), g_.view()});
    }
    AnyBlock output(std::int64_t set) override { return w_.view(set); }

    double error(std::int64_t set, std::int64_t calls) override {
        constexpr std::int64_t work = std::int64_t{1} << 20;
        const std::int64_t edge = std::clamp(work / (m_ * n_), std::int64_t{32}, period);
        std::vector<Wide<T>> exact(static_cast<std::size_t>(n_));
        std::vector<long double> bound(exact.size());
        const double updates = check_tall<T>(
            ctx_, w_.view(set), edge, [&](std::int64_t row, const T* computed, Worst<T>& worst) {
                exact_row(set, row, calls, exact, bound);
                for (std::size_t j = 0; j < exact.size(); ++j) {
                    worst.compare(computed[j], exact[j], bound[j]);
                }
            });
        return std::max(updates, sums_error(set, calls));
    }

  private:
    static T beta() { return T(real_t<T>(beta_value)); }

    /// After k calls W = b^k W0 + (1 - b^k) / (1 - b) V H, b = beta. Each call halves the errors of
    /// the previous calls.
    void exact_row(std::int64_t set, std::int64_t row, std::int64_t calls,
                   std::vector<Wide<T>>& exact, std::vector<long double>& bound) const {
        const long double decay = std::pow(static_cast<long double>(beta_value), calls);
        const long double share = (1 - decay) / (1 - beta_value);
        const T* v = v_.row(set, row);
        const T* w0 = w_.row(set, row);
        long double v_norm = 0;
        std::fill(exact.begin(), exact.end(), Wide<T>(0));
        std::fill(bound.begin(), bound.end(), 0.0L);
        for (int i = 0; i < m_; ++i) {
            v_norm += norm_squared(v[i]);
            const T* h = h_host_.data() + i * n_;
            for (std::size_t j = 0; j < exact.size(); ++j) {
                exact[j] += wide(v[i]) * wide(h[j]);
                bound[j] += norm_squared(h[j]);
            }
        }
        for (std::size_t j = 0; j < exact.size(); ++j) {
            exact[j] = share * exact[j] + decay * wide(w0[j]);
            bound[j] = 2 * rounding<T>(m_) *
                       (std::sqrt(v_norm * bound[j]) + std::sqrt(norm_squared(w0[j])));
        }
    }

    /// Compares G with the exact sums over one period, weighted by how often each row occurs. The
    /// bound includes the errors of W.
    double sums_error(std::int64_t set, std::int64_t calls) const {
        const auto n = static_cast<std::size_t>(n_);
        std::vector<Wide<T>> sums(n * n);
        std::vector<long double> norm(n);
        std::vector<long double> error_norm(n);
        std::vector<Wide<T>> row(n);
        std::vector<long double> bound(n);
        for (std::int64_t p = 0; p < std::min(period, sets_.rows); ++p) {
            const auto times = repeats(sets_.rows, p);
            exact_row(set, p, calls, row, bound);
            for (std::size_t i = 0; i < n; ++i) {
                norm[i] += times * std::norm(row[i]);
                error_norm[i] += times * bound[i] * bound[i];
                const Wide<T> factor = times * conjugate(row[i]);
                for (std::size_t j = 0; j < n; ++j) {
                    sums[i * n + j] += factor * row[j];
                }
            }
        }
        const std::vector<T> computed = to_host<T>(ctx_, g_.view());
        const long double factor = rounding<T>(static_cast<double>(sets_.rows));
        Worst<T> worst;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                worst.compare(computed[i * n + j], sums[i * n + j],
                              factor * std::sqrt(norm[i] * norm[j]) +
                                  std::sqrt(norm[i] * error_norm[j]) +
                                  std::sqrt(error_norm[i] * norm[j]));
            }
        }
        return worst.ratio;
    }

    static Wide<T> conjugate(const Wide<T>& value) {
        if constexpr (is_complex_v<T>) {
            return std::conj(value);
        } else {
            return value;
        }
    }

    Context& ctx_;
    Sets sets_;
    int m_, n_;
    PeriodicBlock<T> v_, w_;
    BlockVector<T> h_, g_;
    std::vector<T> h_host_;
};

class TsmmGramKernel final : public Kernel {
  public:
    const char* name() const override { return "tsmm-gram"; }
    const char* formula() const override { return "W = V H + W / 2, G = W^H W"; }
    bool has_two_widths() const override { return true; }
    Traffic traffic() const override { return Traffic::scale; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            TsmmGramArgs<T> args{};
            args.update.rows = c.rows;
            args.update.m = c.shape.m;
            args.update.n = c.shape.n;
            args.update.beta = T(1);
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return scalar_bytes(c.scalar) * (c.shape.m + c.shape.n);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<TsmmGramWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
        });
    }
};

}  // namespace

std::span<const Kernel* const> tsmm_gram_kernels() {
    static const TsmmGramKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
