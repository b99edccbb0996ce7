// SPDX-License-Identifier: BSD-3-Clause
// tsmm-in-place: X = X C for a rotation C.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/tsmm.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"

namespace quiver::apps::bench {
namespace {

constexpr long double angle = 1;

/// C = I + U (R - I) U^H with the rotation R in the plane of two orthonormal columns U. Repeated
/// products with C keep all norms, the powers of C are known, and no power is the identity. A
/// single column cannot be rotated: there C = -1.
template <class T>
class Rotation {
  public:
    explicit Rotation(int m) : m_(m) {
        std::vector<T> random(2 * static_cast<std::size_t>(m));
        Context host;
        fill_random(host, 13, 0, 0, BlockView<T>(random.data(), m, 2, 2));
        for (std::size_t column = 0; column < 2; ++column) {
            std::vector<Wide<T>>& u = plane_[column];
            for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
                u.push_back(wide(random[2 * i + column]));
            }
            if (column == 1) {
                const Wide<T> overlap = product(plane_[0], u);
                for (std::size_t i = 0; i < u.size(); ++i) {
                    u[i] -= plane_[0][i] * overlap;
                }
            }
            const long double norm = std::sqrt(std::abs(product(u, u)));
            for (Wide<T>& element : u) {
                element /= norm;
            }
        }
    }

    /// x C^calls
    std::vector<Wide<T>> apply(const std::vector<Wide<T>>& x, std::int64_t calls) const {
        std::vector<Wide<T>> y = x;
        if (m_ == 1) {
            y[0] *= calls % 2 == 0 ? 1 : -1;
            return y;
        }
        std::array<Wide<T>, 2> part{};
        for (std::size_t i = 0; i < x.size(); ++i) {
            part[0] += x[i] * plane_[0][i];
            part[1] += x[i] * plane_[1][i];
        }
        const long double turned = angle * static_cast<long double>(calls);
        const long double c = std::cos(turned) - 1;
        const long double s = std::sin(turned);
        const Wide<T> first = part[0] * c - part[1] * s;
        const Wide<T> second = part[0] * s + part[1] * c;
        for (std::size_t i = 0; i < x.size(); ++i) {
            y[i] += first * conjugate_wide(plane_[0][i]) + second * conjugate_wide(plane_[1][i]);
        }
        return y;
    }

    /// C, row by row.
    std::vector<T> matrix() const {
        std::vector<T> all;
        for (int i = 0; i < m_; ++i) {
            std::vector<Wide<T>> unit(static_cast<std::size_t>(m_));
            unit[static_cast<std::size_t>(i)] = 1;
            for (const Wide<T>& element : apply(unit, 1)) {
                all.push_back(static_cast<T>(element));
            }
        }
        return all;
    }

  private:
    static Wide<T> conjugate_wide(Wide<T> value) {
        if constexpr (is_complex_v<T>) {
            return std::conj(value);
        } else {
            return value;
        }
    }
    /// a^H b
    static Wide<T> product(const std::vector<Wide<T>>& a, const std::vector<Wide<T>>& b) {
        Wide<T> sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            sum += conjugate_wide(a[i]) * b[i];
        }
        return sum;
    }

    int m_;
    std::array<std::vector<Wide<T>>, 2> plane_;
};

template <class T>
class InPlaceWorkload final : public Workload {
  public:
    InPlaceWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          x_(ctx, sets_, c.shape.n, 11),
          c_(make_block<T>(ctx, c.shape.n, c.shape.n)),
          rotation_(c.shape.n) {
        std::vector<T> matrix = rotation_.matrix();
        const int n = c.shape.n;
        copy(ctx, BlockView<T>(matrix.data(), n, n, n), c_.view());
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override { x_.refill(); }
    void run(std::int64_t set) override {
        tsmm(ctx_, T(1), x_.view(set), c_.view(), T(0), x_.view(set));
    }
    AnyBlock output(std::int64_t set) override { return x_.view(set); }

    double error(std::int64_t set, std::int64_t calls) override {
        const int n = c_.view().cols;
        // The errors of all calls add up.
        const long double factor = static_cast<long double>(calls) * rounding<T>(n);
        return check_tall<T>(ctx_, x_.view(set), period,
                             [&](std::int64_t row, const T* computed, Worst<T>& worst) {
                                 const T* x = x_.row(set, row);
                                 const std::vector<Wide<T>> before(x, x + n);
                                 long double x_norm = 0;
                                 for (int i = 0; i < n; ++i) {
                                     x_norm += norm_squared(x[i]);
                                 }
                                 const auto exact = rotation_.apply(before, calls);
                                 for (int j = 0; j < n; ++j) {
                                     worst.compare(computed[j], exact[static_cast<std::size_t>(j)],
                                                   factor * std::sqrt(x_norm));
                                 }
                             });
    }

  private:
    Context& ctx_;
    Sets sets_;
    PeriodicBlock<T> x_;
    BlockVector<T> c_;
    Rotation<T> rotation_;
};

class TsmmInPlaceKernel final : public Kernel {
  public:
    const char* name() const override { return "tsmm-in-place"; }
    const char* formula() const override { return "X = X C"; }
    bool has_plans() const override { return true; }
    Traffic traffic() const override { return Traffic::scale; }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            TsmmArgs<T> args{};
            args.rows = c.rows;
            args.m = args.n = c.shape.n;
            return quiver::cost(args);
        });
    }
    double row_bytes(const Case& c) const override { return scalar_bytes(c.scalar) * c.shape.n; }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<InPlaceWorkload<T>>(ctx, c, row_bytes(c), least_bytes);
        });
    }
};

}  // namespace

std::span<const Kernel* const> tsmm_in_place_kernels() {
    static const TsmmInPlaceKernel kernel;
    static const std::array<const Kernel*, 1> all{&kernel};
    return all;
}

}  // namespace quiver::apps::bench
