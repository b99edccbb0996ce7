// SPDX-License-Identifier: BSD-3-Clause
// shifted-gram: Z^T Z and the sums of the columns of Z = X - 1 c^T. Its sums are in host memory
// when a call returns.
#include "kernels/shifted_gram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/operations/shifted_gram.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class ShiftedGramWorkload final : public Workload {
  public:
    ShiftedGramWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.n, 11),
          sums_(c.shape.n + 1, c.shape.n) {
        for (int j = 0; j < c.shape.n; ++j) {
            shift_.push_back(0.25 - 0.01 * (j % 7));
        }
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        std::fill_n(sums_.data(), sums_.rows() * sums_.cols(),
                    std::numeric_limits<double>::quiet_NaN());
    }
    void run(std::int64_t set) override { shifted_gram<T>(ctx_, x_.view(set), shift_, 1, sums_); }
    AnyBlock output(std::int64_t) override { return sums_.view(); }

    double error(std::int64_t set, std::int64_t) override {
        if (references_.find(set) == references_.end()) {
            references_.emplace(set, reference(set));
        }
        const Reference& exact = references_.at(set);
        const auto n = static_cast<std::size_t>(sums_.cols());
        const long double factor = rounding<double>(static_cast<double>(sets_.rows));
        Worst<double> worst;
        for (std::size_t e = 0; e < exact.sums.size(); ++e) {
            worst.compare(sums_.data()[e], exact.sums[e],
                          factor * std::sqrt(exact.norms[e / n] * exact.norms[e % n]));
        }
        return worst.ratio;
    }

  private:
    /// The exact sums, and the squared norms of the columns of Z and of a column of ones.
    struct Reference {
        std::vector<long double> sums, norms;
    };

    Reference reference(std::int64_t set) const {
        const auto n = shift_.size();
        Reference exact{std::vector<long double>((n + 1) * n), std::vector<long double>(n + 1)};
        std::vector<long double> z(n + 1, 1);
        for (std::int64_t at = 0; at < std::min(period, sets_.rows); ++at) {
            const long double times = repeats(sets_.rows, at);
            const T* const row = x_.row(set, at);
            for (std::size_t j = 0; j < n; ++j) {
                z[j] = wide(row[j]) - wide(shift_[j]);
            }
            for (std::size_t i = 0; i <= n; ++i) {
                exact.norms[i] += times * z[i] * z[i];
                for (std::size_t j = 0; j < n; ++j) {
                    exact.sums[i * n + j] += times * z[i] * z[j];
                }
            }
        }
        return exact;
    }

    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_;
    std::vector<double> shift_;
    SmallMatrix<double> sums_;
    std::map<std::int64_t, Reference> references_;
};

class ShiftedGramKernel final : public Kernel {
  public:
    const char* name() const override { return "shifted-gram"; }
    const char* formula() const override { return "Z^T Z and sums of the columns, Z = X - 1 c^T"; }
    bool has_two_widths() const override { return false; }
    bool takes(Dtype scalar) const override { return scalar == Dtype::s || scalar == Dtype::d; }
    Traffic traffic() const override { return Traffic::read; }
    Cost cost(const Case& c) const override {
        ShiftedGramArgs<double> args{};
        args.rows = c.rows;
        args.n = c.shape.n;
        Cost cost = quiver::cost(args);
        cost.bytes = row_bytes(c) * static_cast<double>(c.rows);
        return cost;
    }
    double row_bytes(const Case& c) const override { return scalar_bytes(c.scalar) * c.shape.n; }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        if (c.scalar == Dtype::s) {
            return std::make_unique<ShiftedGramWorkload<float>>(ctx, c, row_bytes(c), least_bytes);
        }
        return std::make_unique<ShiftedGramWorkload<double>>(ctx, c, row_bytes(c), least_bytes);
    }
};

}  // namespace

std::span<const Kernel* const> shifted_gram_kernels() {
    static const ShiftedGramKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
