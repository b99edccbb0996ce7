// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm-mixed: C = X^T Y, and tsmm-mixed: Y = X C, of blocks in half precision or bfloat16 with
// results in float.
#include "kernels/mixed.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/kernels/short_block.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/tsmm.hpp"
#include "kernels/operations/tsmttsm.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class MixedTsmttsmWorkload final : public Workload {
  public:
    MixedTsmttsmWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.m, 11),
          y_(ctx, sets_, c.shape.n, 12),
          result_(make_block<float>(ctx, c.shape.m, c.shape.n)) {}

    std::int64_t sets() const override { return sets_.count; }
    void reset() override { fill(ctx_, std::numeric_limits<float>::quiet_NaN(), result_.view()); }
    void run(std::int64_t set) override {
        tsmttsm(ctx_, 1.0F, x_.view(set), y_.view(set), 0.0F, result_.view());
    }
    bool has(Rival& rival) override { return rival.mixed_gemm() != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        rival.mixed_gemm()->run(MixedGemmCall<T>{true, x_.view(set), y_.view(set), result_.view()});
    }
    AnyBlock output(std::int64_t) override { return result_.view(); }

    double error(std::int64_t set, std::int64_t) override {
        const int m = static_cast<int>(result_.view().rows);
        const int n = result_.view().cols;
        if (references_.find(set) == references_.end()) {
            references_.emplace(set, reference(set, m, n));
        }
        const std::vector<Sum>& exact = references_.at(set);
        const std::vector<float> computed = to_host<float>(ctx_, result_.view());
        // The error bound that kernels/mixed.hpp documents.
        const long double factor =
            epsilon_v<float> * (256 + static_cast<long double>(sets_.rows) / (1 << 20));
        Worst<float> worst;
        for (std::size_t e = 0; e < computed.size(); ++e) {
            worst.compare(computed[e], exact[e].value, factor * exact[e].size);
        }
        return worst.ratio;
    }

  private:
    struct Sum {
        long double value = 0, size = 0;
    };

    std::vector<Sum> reference(std::int64_t set, int m, int n) const {
        std::vector<Sum> sums(static_cast<std::size_t>(m * n));
        for (std::int64_t p = 0; p < std::min(period, sets_.rows); ++p) {
            const auto times = repeats(sets_.rows, p);
            const float* const x = x_.row(set, p);
            const float* const y = y_.row(set, p);
            for (int i = 0; i < m; ++i) {
                for (int j = 0; j < n; ++j) {
                    Sum& sum = sums[static_cast<std::size_t>(i * n + j)];
                    const long double term = times * x[i] * y[j];
                    sum.value += term;
                    sum.size += std::abs(term);
                }
            }
        }
        return sums;
    }

    Context& ctx_;
    Sets sets_;
    ShortBlock<T> x_, y_;
    BlockVector<float> result_;
    std::map<std::int64_t, std::vector<Sum>> references_;
};

template <class T>
class MixedTsmmWorkload final : public Workload {
  public:
    MixedTsmmWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.m, 11),
          y_(make_block<float>(ctx, sets_.stride * sets_.count, c.shape.n + sets_.gap)),
          c_(make_block<T>(ctx, c.shape.m, c.shape.n)),
          c_host_(static_cast<std::size_t>(c.shape.m * c.shape.n)),
          n_(c.shape.n) {
        BlockVector<float> values = make_block<float>(ctx, c.shape.m, c.shape.n);
        fill_random(ctx, 13, values);
        copy(ctx, values.view(), c_.view());
        copy(ctx, c_.view(), BlockView<float>(c_host_.data(), c.shape.m, n_, n_));
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override { fill(ctx_, std::numeric_limits<float>::quiet_NaN(), y_.view()); }
    void run(std::int64_t set) override { tsmm(ctx_, 1.0F, x_.view(set), c_.view(), 0.0F, y(set)); }
    bool has(Rival& rival) override { return rival.mixed_gemm() != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        rival.mixed_gemm()->run(MixedGemmCall<T>{false, x_.view(set), c_.view(), y(set)});
    }
    AnyBlock output(std::int64_t set) override { return y(set); }

    double error(std::int64_t set, std::int64_t) override {
        const auto m = static_cast<int>(c_.view().rows);
        const auto check_row = [&](std::int64_t row, const float* computed, Worst<float>& worst) {
            const float* const x = x_.row(set, row);
            for (int j = 0; j < n_; ++j) {
                long double exact = 0;
                long double size = 0;
                for (int i = 0; i < m; ++i) {
                    const long double term = static_cast<long double>(x[i]) *
                                             c_host_[static_cast<std::size_t>(i * n_ + j)];
                    exact += term;
                    size += std::abs(term);
                }
                worst.compare(computed[j], exact, 2.0L * epsilon_v<float> * (m + 2.0L) * size);
            }
        };
        constexpr std::int64_t work = std::int64_t{1} << 20;
        const std::int64_t edge =
            std::clamp(work / (std::int64_t{m} * n_), std::int64_t{32}, period);
        return check_tall<float>(ctx_, y(set), edge, check_row);
    }

  private:
    BlockView<float> y(std::int64_t set) {
        return y_.view().row_range(set * sets_.stride, sets_.rows).columns(0, n_);
    }

    Context& ctx_;
    Sets sets_;
    ShortBlock<T> x_;
    BlockVector<float> y_;
    BlockVector<T> c_;
    std::vector<float> c_host_;
    int n_;
};

class MixedKernel final : public Kernel {
  public:
    explicit MixedKernel(bool rows) : rows_(rows) {}
    const char* name() const override { return rows_ ? "tsmm-mixed" : "tsmttsm-mixed"; }
    const char* formula() const override {
        return rows_ ? "Y = X C, X in h or b, Y in s" : "C = X^T Y, X and Y in h or b, C in s";
    }
    bool has_two_widths() const override { return true; }
    bool takes(Dtype scalar) const override { return scalar == Dtype::h || scalar == Dtype::b; }
    Traffic traffic() const override { return rows_ ? Traffic::scale : Traffic::read; }
    Cost cost(const Case& c) const override {
        return visit_short(c.scalar, [&]<class T>() {
            const auto with_sizes = [&](auto args) {
                args.rows = c.rows;
                args.m = c.shape.m;
                args.n = c.shape.n;
                return args;
            };
            if (rows_) {
                return quiver::cost(with_sizes(MixedTsmmArgs<T, T, float>{}));
            }
            const T first{}, second{};  // their addresses must differ
            auto args = with_sizes(MixedTsmttsmArgs<T, float>{});
            args.a = &first;
            args.b = &second;
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return 2.0 * c.shape.m + (rows_ ? 4.0 : 2.0) * c.shape.n;
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_short(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            if (rows_) {
                return std::make_unique<MixedTsmmWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
            }
            return std::make_unique<MixedTsmttsmWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
        });
    }

  private:
    bool rows_;
};

}  // namespace

std::span<const Kernel* const> mixed_kernels() {
    static const MixedKernel tsmttsm(false);
    static const MixedKernel tsmm(true);
    static const std::array<const Kernel*, 2> all{&tsmttsm, &tsmm};
    return all;
}

}  // namespace quiver::apps::bench
