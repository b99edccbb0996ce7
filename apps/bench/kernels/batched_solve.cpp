// SPDX-License-Identifier: BSD-3-Clause
// batched-solve, batched-inverse, batched-determinant: B = A^-1 B, A^-1 and det A of a batch of
// `rows` column-major matrices from their LU factors.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "apps/bench/kernels/batch_array.hpp"
#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "blockvec/error.hpp"
#include "kernels/batched.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/batched.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

enum class FactorUse : std::uint8_t { solve, inverse, determinant };

/// LU factors of `period` random matrices in host memory, and right-hand sides. A matrix is random
/// with 2 m added to the diagonal, and its rows are then rotated, so that every pivot is an
/// exchange and the inverse is accurate.
template <class T>
struct HostFactors {
    int m;
    int columns;
    std::int64_t period;
    std::vector<T> factors;
    std::vector<int> pivots;
    std::vector<T> right_sides;

    HostFactors(int m_, int columns_, std::int64_t matrices)
        : m(m_),
          columns(columns_),
          period(std::clamp<std::int64_t>(period_elements / (m_ * m_), 1,
                                          std::min(period_matrices, matrices))),
          factors(static_cast<std::size_t>(period * m * m)),
          pivots(static_cast<std::size_t>(period * m)),
          right_sides(static_cast<std::size_t>(period * m * columns)) {
        Context host;
        std::vector<T> made(factors.size());
        fill_random(host, 11, 0, 0, BlockView<T>(made.data(), period, m * m, m * m));
        fill_random(host, 12, 0, 0,
                    BlockView<T>(right_sides.data(), period, m * columns, m * columns));
        for (std::int64_t b = 0; b < period; ++b) {
            for (int j = 0; j < m; ++j) {
                for (int i = 0; i < m; ++i) {
                    const T added = i == j ? T(static_cast<real_t<T>>(2 * m)) : T(0);
                    const auto to = (b * m + j) * m + (i + b + 1) % m;
                    factors[static_cast<std::size_t>(to)] =
                        made[static_cast<std::size_t>((b * m + j) * m + i)] + added;
                }
            }
        }
        std::vector<int> status(static_cast<std::size_t>(period));
        lu_factor(host,
                  MatrixBatch<T>::packed(factors.data(), period, m, m, Place::host,
                                         MatrixOrder::column_major),
                  std::span<int>(pivots), std::span<int>(status));
    }

    const T* factor(std::int64_t b) const { return factors.data() + b % period * m * m; }
    const int* pivots_of(std::int64_t b) const { return pivots.data() + b % period * m; }
    const T* right_side(std::int64_t b) const {
        return right_sides.data() + b % period * m * columns;
    }

    /// The bound of an element of a residual, relative to |L| |U| |X|: that of two triangular
    /// solves.
    long double bound() const {
        return (is_complex_v<T> ? 8 : 2) * (m + 1) * static_cast<long double>(epsilon_v<T>);
    }

    /// Compares every element of L U X with P B; B is the identity without `right`.
    void check_solution(std::int64_t b, const T* x, bool right, Worst<T>& worst) const {
        const T* const lu = factor(b);
        const auto at = [this](int i, int j) { return static_cast<std::size_t>(j * m + i); };
        std::vector<int> source(static_cast<std::size_t>(m));
        for (int i = 0; i < m; ++i) {
            source[static_cast<std::size_t>(i)] = i;
        }
        for (int k = 0; k < m; ++k) {
            std::swap(source[static_cast<std::size_t>(k)],
                      source[static_cast<std::size_t>(pivots_of(b)[k])]);
        }
        std::vector<Wide<T>> upper(static_cast<std::size_t>(m));
        std::vector<long double> size(static_cast<std::size_t>(m));
        for (int column = 0; column < columns; ++column) {
            const T* const own = x + static_cast<std::ptrdiff_t>(column) * m;
            for (int i = 0; i < m; ++i) {
                Wide<T> sum = 0;
                long double sizes = 0;
                for (int k = i; k < m; ++k) {
                    sum += wide(lu[at(i, k)]) * wide(own[k]);
                    sizes += std::abs(wide(lu[at(i, k)])) * std::abs(wide(own[k]));
                }
                upper[static_cast<std::size_t>(i)] = sum;
                size[static_cast<std::size_t>(i)] = sizes;
            }
            for (int i = 0; i < m; ++i) {
                Wide<T> sum = upper[static_cast<std::size_t>(i)];
                long double sizes = size[static_cast<std::size_t>(i)];
                for (int k = 0; k < i; ++k) {
                    sum += wide(lu[at(i, k)]) * upper[static_cast<std::size_t>(k)];
                    sizes += std::abs(wide(lu[at(i, k)])) * size[static_cast<std::size_t>(k)];
                }
                const int row = source[static_cast<std::size_t>(i)];
                const T exact =
                    right ? right_side(b)[at(row, column)] : T(row == column ? real_t<T>(1) : 0);
                worst.compare(exact, sum, bound() * sizes);
            }
        }
    }

    /// The sign of the determinant, the logarithm of its size, and the sum of the sizes of the
    /// logarithms.
    struct Determinant {
        Wide<T> sign = 1;
        long double log_abs = 0, sizes = 0;
    };
    Determinant determinant(std::int64_t b) const {
        Determinant result;
        for (int k = 0; k < m; ++k) {
            const Wide<T> pivot = wide(factor(b)[k * m + k]);
            const long double log = std::log(std::abs(pivot));
            result.sign *= (pivots_of(b)[k] == k ? 1.0L : -1.0L) * pivot / std::abs(pivot);
            result.log_abs += log;
            result.sizes += std::abs(log);
        }
        return result;
    }
};

template <class T>
class FactorUseWorkload final : public Workload {
  public:
    FactorUseWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes,
                      FactorUse use)
        : ctx_(ctx),
          use_(use),
          m_(c.shape.m),
          n_(use == FactorUse::determinant ? 1 : c.shape.n),
          sets_(c, row_bytes, least_bytes),
          host_(m_, n_, sets_.rows),
          factors_(make_block<T>(ctx, all(), m_ * m_ + sets_.gap)),
          results_(
              make_block<T>(ctx, all(), use == FactorUse::determinant ? 1 : m_ * n_ + sets_.gap)),
          logs_(make_block<real_t<T>>(ctx, use == FactorUse::determinant ? all() : 1, 1)),
          pivots_(ctx, all() * m_, "pivots") {
        constexpr auto nan = std::numeric_limits<real_t<T>>::quiet_NaN();
        fill(ctx, T(nan), factors_.view());
        fill(ctx, T(nan), results_.view());
        repeat(host_.factors, m_ * m_, [&](std::int64_t set) { return factors(set); });
        std::vector<int> pivots;
        for (std::int64_t b = 0; b < all(); ++b) {
            const int* const own = host_.pivots_of(b % sets_.stride);
            pivots.insert(pivots.end(), own, own + m_);
        }
        pivots_.put(pivots);
    }

    std::int64_t sets() const override { return sets_.count; }
    std::int64_t most_calls() const override {
        return use_ == FactorUse::solve ? sets_.count : Workload::most_calls();
    }
    void restore() override {
        if (use_ == FactorUse::solve) {
            repeat(host_.right_sides, m_ * n_, [&](std::int64_t set) { return results(set); });
        }
    }
    void reset() override {
        constexpr auto nan = std::numeric_limits<real_t<T>>::quiet_NaN();
        fill(ctx_, T(nan), results_.view());
        fill(ctx_, nan, logs_.view());
        restore();
    }
    void run(std::int64_t set) override {
        const MatrixBatch<const T> lu = batch(factors(set), m_, factors_.view().ld);
        const std::span<const int> pivots = pivots_.part(set * sets_.stride * m_, sets_.rows * m_);
        const auto count = static_cast<std::size_t>(sets_.rows);
        switch (use_) {
            case FactorUse::solve:
                lu_solve(ctx_, lu, pivots, batch(results(set), n_, results_.view().ld));
                return;
            case FactorUse::inverse:
                lu_inverse(ctx_, lu, pivots, batch(results(set), m_, results_.view().ld));
                return;
            case FactorUse::determinant:
                lu_determinant(ctx_, lu, pivots, std::span<T>(results(set).data, count),
                               std::span<real_t<T>>(logs(set).data, count));
        }
    }
    bool has(Rival& rival) override {
        if (use_ == FactorUse::determinant || rival.batched_solve() == nullptr) {
            return false;
        }
        if (!rival_) {
            rival_.emplace(ctx_, *this);
        }
        return true;
    }
    void run(Rival& rival, std::int64_t set) override {
        const std::int64_t first = set * sets_.stride;
        rival.batched_solve()->run(BatchedSolveCall<T>{
            m_, use_ == FactorUse::solve ? n_ : 0, static_cast<int>(sets_.rows),
            rival_->factors.part(first, 1).data(), rival_->pivots.part(first * m_, 1).data(),
            rival_->results.part(first, 1).data(), rival_->status.part(first, 1).data()});
    }
    AnyBlock output(std::int64_t set) override {
        if (use_ == FactorUse::determinant) {
            return logs(set);
        }
        return results(set);
    }

    double error(std::int64_t set, std::int64_t) override {
        const double cube = std::pow(m_, 2) * n_;
        const auto edge = std::min(
            std::clamp<std::int64_t>(static_cast<std::int64_t>(1e8 / cube), 1, 64), sets_.rows);
        if (use_ == FactorUse::determinant) {
            const long double rounding = (m_ + 2) * static_cast<long double>(epsilon_v<T>);
            const double of_sign = check_tall<T>(
                ctx_, results(set), edge, [&](std::int64_t b, const T* sign, Worst<T>& worst) {
                    worst.compare(*sign, host_.determinant(b).sign, 8 * rounding);
                });
            using R = real_t<T>;
            return std::max(of_sign,
                            check_tall<R>(ctx_, logs(set), edge,
                                          [&](std::int64_t b, const R* log, Worst<R>& worst) {
                                              const auto exact = host_.determinant(b);
                                              worst.compare(*log, exact.log_abs,
                                                            4 * rounding * (exact.sizes + 1));
                                          }));
        }
        return check_tall<T>(ctx_, results(set), edge,
                             [&](std::int64_t b, const T* x, Worst<T>& worst) {
                                 host_.check_solution(b, x, use_ == FactorUse::solve, worst);
                             });
    }

  private:
    /// What a rival needs in addition: pointers, pivots counted from 1, status.
    struct ForRival {
        BatchArray<T*> factors, results;
        BatchArray<int> pivots, status;

        ForRival(Context& ctx, FactorUseWorkload& own)
            : factors(ctx, own.all(), "pointers"),
              results(ctx, own.all(), "pointers"),
              pivots(ctx, own.all() * own.m_, "pivots"),
              status(ctx, own.all(), "status") {
            std::vector<T*> to_factors;
            std::vector<T*> to_results;
            for (std::int64_t b = 0; b < own.all(); ++b) {
                to_factors.push_back(own.factors_.view().data + b * own.factors_.view().ld);
                to_results.push_back(own.results_.view().data + b * own.results_.view().ld);
            }
            factors.put(to_factors);
            results.put(to_results);
            std::vector<int> from_one = own.pivots_.get(0, own.all() * own.m_);
            for (int& pivot : from_one) {
                ++pivot;
            }
            pivots.put(from_one);
        }
    };

    std::int64_t all() const { return sets_.stride * sets_.count; }
    BlockView<T> part_of(BlockVector<T>& block, int cols, std::int64_t set) {
        return block.view().columns(0, cols).row_range(set * sets_.stride, sets_.rows);
    }
    BlockView<T> factors(std::int64_t set) { return part_of(factors_, m_ * m_, set); }
    BlockView<T> results(std::int64_t set) {
        return part_of(results_, use_ == FactorUse::determinant ? 1 : m_ * n_, set);
    }
    BlockView<real_t<T>> logs(std::int64_t set) {
        return logs_.view().row_range(set * sets_.stride, sets_.rows);
    }
    MatrixBatch<T> batch(BlockView<T> block, int cols, std::int64_t stride) const {
        auto made = MatrixBatch<T>::packed(block.data, sets_.rows, m_, cols, ctx_.place(),
                                           MatrixOrder::column_major);
        made.stride = stride;
        return made;
    }
    /// Fills the block of every set with the rows of `values`, which repeat.
    template <class Block>
    void repeat(std::vector<T>& values, int cols, Block&& block) {
        for (std::int64_t set = 0; set < sets_.count; ++set) {
            const BlockView<T> to = block(set);
            std::int64_t filled = host_.period;
            copy(ctx_, BlockView<T>(values.data(), filled, cols, cols), to.row_range(0, filled));
            while (filled < to.rows) {
                const std::int64_t count = std::min(filled, to.rows - filled);
                copy(ctx_, to.row_range(0, count), to.row_range(filled, count));
                filled += count;
            }
        }
    }

    Context& ctx_;
    FactorUse use_;
    int m_, n_;
    Sets sets_;
    HostFactors<T> host_;
    BlockVector<T> factors_, results_;
    BlockVector<real_t<T>> logs_;
    BatchArray<int> pivots_;
    std::optional<ForRival> rival_;
};

class FactorUseKernel final : public Kernel {
  public:
    explicit FactorUseKernel(FactorUse use) : use_(use) {}
    const char* name() const override {
        return use_ == FactorUse::solve     ? "batched-solve"
               : use_ == FactorUse::inverse ? "batched-inverse"
                                            : "batched-determinant";
    }
    const char* formula() const override {
        return use_ == FactorUse::solve     ? "B = A^-1 B from LU factors, rows matrices m x m"
               : use_ == FactorUse::inverse ? "A^-1 from LU factors, rows matrices"
                                            : "det A from LU factors, rows matrices";
    }
    bool has_two_widths() const override { return use_ == FactorUse::solve; }
    Traffic traffic() const override {
        return use_ == FactorUse::determinant ? Traffic::read : Traffic::scale;
    }
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            BatchOf<const T> factor{};
            factor.count = c.rows;
            factor.rows = factor.cols = c.shape.m;
            const int pivots{};
            if (use_ == FactorUse::determinant) {
                T sign{};
                return quiver::cost(DeterminantArgs<T, real_t<T>>{factor, &pivots, &sign, nullptr});
            }
            BatchOf<T> b{};
            b.count = c.rows;
            b.rows = c.shape.m;
            b.cols = c.shape.n;
            return quiver::cost(
                BatchedSolveArgs<T>{factor, &pivots, b, use_ == FactorUse::inverse});
        });
    }
    double row_bytes(const Case& c) const override {
        const double results = use_ == FactorUse::determinant ? 1 : c.shape.m * c.shape.n;
        return (std::pow(c.shape.m, 2) + results) * scalar_bytes(c.scalar);
    }
    std::int64_t round_rows(std::int64_t rows) const override {
        return std::min(rows, most_matrices);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        if (c.shape.m > largest_batched_lu) {
            throw UnsupportedError(std::string(name()) + ": matrices of order 1 to " +
                                   std::to_string(largest_batched_lu));
        }
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<FactorUseWorkload<T>>(ctx, c, row_bytes(c), least_bytes, use_);
        });
    }

  private:
    FactorUse use_;
};

}  // namespace

std::span<const Kernel* const> batched_solve_kernels() {
    static const FactorUseKernel solve(FactorUse::solve);
    static const FactorUseKernel inverse(FactorUse::inverse);
    static const FactorUseKernel determinant(FactorUse::determinant);
    static const std::array<const Kernel*, 3> all{&solve, &inverse, &determinant};
    return all;
}

}  // namespace quiver::apps::bench
