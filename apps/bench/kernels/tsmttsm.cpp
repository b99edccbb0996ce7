// SPDX-License-Identifier: BSD-3-Clause
// tsmttsm: C = X^H Y, gram: C = X^H X, and weighted: C = X^H diag(w) Y.
#include "kernels/tsmttsm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/tsmttsm.hpp"

namespace quiver::apps::bench {
namespace {

enum class Form : std::uint8_t { product, gram, weighted };

template <class T>
class TsmttsmWorkload final : public Workload {
  public:
    TsmttsmWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes, Form form)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.m, 11),
          result_(make_block<T>(ctx, c.shape.m, c.shape.n)) {
        if (form != Form::gram) {
            y_.emplace(ctx, sets_, c.shape.n, 12);
        }
        if (form == Form::weighted) {
            w_.emplace(ctx, sets_, 1, 13);
        }
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), result_.view());
    }
    void run(std::int64_t set) override {
        if (w_) {
            weighted_tsmttsm(ctx_, T(1), x_.view(set), w_->view(set), y().view(set), T(0),
                             result_.view());
            return;
        }
        tsmttsm(ctx_, T(1), x_.view(set), y().view(set), T(0), result_.view());
    }
    bool has(Rival& rival) override { return !w_ && rival.gemm() != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        rival.gemm()->run(
            GemmCall<T>{true, T(1), x_.view(set), y().view(set), T(0), result_.view()});
    }
    AnyBlock output(std::int64_t) override { return result_.view(); }

    double error(std::int64_t set, std::int64_t) override {
        if (references_.find(set) == references_.end()) {
            references_.emplace(set, reference(set));
        }
        const Reference& exact = references_.at(set);
        const int n = result_.view().cols;
        const std::vector<T> computed = to_host<T>(ctx_, result_.view());
        const long double factor = rounding<T>(static_cast<double>(sets_.rows));
        Worst<T> worst;
        for (std::size_t e = 0; e < computed.size(); ++e) {
            const std::size_t i = e / static_cast<std::size_t>(n);
            const std::size_t j = e % static_cast<std::size_t>(n);
            worst.compare(computed[e], exact.sums[e],
                          factor * std::sqrt(exact.x_norm[i] * exact.y_norm[j]));
        }
        return worst.ratio;
    }

  private:
    /// The exact sums and the squared norms of the columns.
    struct Reference {
        std::vector<Wide<T>> sums;
        std::vector<long double> x_norm, y_norm;
    };

    PeriodicBlock<T>& y() { return y_ ? *y_ : x_; }

    Reference reference(std::int64_t set) {
        const int m = static_cast<int>(result_.view().rows);
        const int n = result_.view().cols;
        Reference exact{std::vector<Wide<T>>(static_cast<std::size_t>(m * n)),
                        std::vector<long double>(static_cast<std::size_t>(m)),
                        std::vector<long double>(static_cast<std::size_t>(n))};
        for (std::int64_t p = 0; p < std::min(period, sets_.rows); ++p) {
            // The number of rows of the set that are equal to row p.
            const auto times = repeats(sets_.rows, p);
            const T* x = x_.row(set, p);
            const T* y_row = y().row(set, p);
            const auto weight = w_ ? static_cast<long double>(*w_->row(set, p)) : 1.0L;
            Wide<T>* sum = exact.sums.data();
            for (int i = 0; i < m; ++i) {
                exact.x_norm[static_cast<std::size_t>(i)] += times * norm_squared(x[i]);
                const Wide<T> factor = wide(conjugate(x[i])) * (times * weight);
                for (int j = 0; j < n; ++j) {
                    *sum++ += factor * wide(y_row[j]);
                }
            }
            for (int j = 0; j < n; ++j) {
                exact.y_norm[static_cast<std::size_t>(j)] +=
                    times * weight * weight * norm_squared(y_row[j]);
            }
        }
        return exact;
    }

    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_;
    std::optional<PeriodicBlock<T>> y_;
    std::optional<PeriodicBlock<real_t<T>>> w_;
    BlockVector<T> result_;
    /// The reference of each set. All libraries are compared with the same sums.
    std::map<std::int64_t, Reference> references_;
};

class TsmttsmKernel final : public Kernel {
  public:
    explicit TsmttsmKernel(Form form) : form_(form) {}
    const char* name() const override {
        return is_gram() ? "gram" : is_weighted() ? "weighted" : "tsmttsm";
    }
    const char* formula() const override {
        return is_gram() ? "C = X^H X" : is_weighted() ? "C = X^H diag(w) Y" : "C = X^H Y";
    }
    bool has_two_widths() const override { return !is_gram(); }
    bool has_plans() const override { return !is_weighted(); }
    bool has_atomics() const override { return !is_weighted(); }
    Traffic traffic() const override { return Traffic::read; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            const T first{}, second{};  // their addresses must differ
            TsmttsmArgs<T> args{};
            args.rows = c.rows;
            args.m = c.shape.m;
            args.n = c.shape.n;
            args.a = &first;
            args.b = is_gram() ? &first : &second;
            return is_weighted() ? quiver::cost(WeightedTsmttsmArgs<T, real_t<T>>{args, nullptr, 1})
                                 : quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override {
        return scalar_bytes(c.scalar) * (is_gram() ? c.shape.n : c.shape.m + c.shape.n) +
               (is_weighted()
                    ? visit_dtype(c.scalar,
                                  []<class T>() { return static_cast<double>(sizeof(real_t<T>)); })
                    : 0);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<TsmttsmWorkload<T>>(ctx, c, row_bytes(c), least_bytes, form_);
        });
    }

  private:
    bool is_gram() const { return form_ == Form::gram; }
    bool is_weighted() const { return form_ == Form::weighted; }
    Form form_;
};

}  // namespace

std::span<const Kernel* const> tsmttsm_kernels() {
    static const TsmttsmKernel product(Form::product);
    static const TsmttsmKernel gram(Form::gram);
    static const TsmttsmKernel weighted(Form::weighted);
    static const std::array<const Kernel*, 3> all{&product, &gram, &weighted};
    return all;
}

}  // namespace quiver::apps::bench
