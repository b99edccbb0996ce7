// SPDX-License-Identifier: BSD-3-Clause
// mtsm: Y = A X for a large A stored by rows. mtsm-columns: the same with all matrices stored by
// columns, as TSM2R in the TSM2X paper. tsmm-columns: Y = X C for tall & skinny blocks stored by
// columns (TSM2L).
#include "kernels/mtsm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/kernels/short_block.hpp"
#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/mixed.hpp"
#include "kernels/operations/mtsm.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

/// Compares one element of Y with the exact sum. The bound follows from the number of terms and the
/// norms of the row of A and of the column of X.
template <class T, class A, class X>
void compare_result(std::int64_t k, T computed, const A& a, const X& x, Worst<T>& worst) {
    Wide<T> exact = 0;
    long double a_norm = 0;
    long double x_norm = 0;
    for (std::int64_t j = 0; j < k; ++j) {
        exact += wide(a(j)) * wide(x(j));
        a_norm += norm_squared(a(j));
        x_norm += norm_squared(x(j));
    }
    worst.compare(computed, exact,
                  rounding<T>(static_cast<double>(k)) * std::sqrt(a_norm * x_norm));
}

/// The type of X, Y and the sums if the elements of the large matrix have type A.
template <class A>
using SumOf = std::conditional_t<is_short_v<A>, float, A>;
template <class A>
using LargeBlock = std::conditional_t<is_short_v<A>, ShortBlock<A>, PeriodicBlock<A>>;

/// A random X in the type of Y. If A is in half precision or bfloat16, the values of X are
/// representable in A's type. A copy of X in that type serves rivals whose operands must all have
/// one type.
template <class A>
class SmallOperand {
    using T = SumOf<A>;

  public:
    SmallOperand(Context& ctx, std::int64_t rows, int cols) : x_(make_block<T>(ctx, rows, cols)) {
        fill_random(ctx, 13, x_);
        if constexpr (is_short_v<A>) {
            short_.emplace(make_block<A>(ctx, rows, cols));
            copy(ctx, x_.view(), short_->view());
            copy(ctx, short_->view(), x_.view());
        }
        host_ = to_host<T>(ctx, x_.view());
    }
    BlockView<const T> view() const { return x_.view(); }
    T at(std::int64_t row, int column) const {
        return host_[static_cast<std::size_t>(row * x_.width() + column)];
    }
    std::int64_t rows() const { return x_.rows(); }
    int width() const { return x_.width(); }

    static bool has(Rival& rival) {
        if constexpr (is_short_v<A>) {
            return rival.mixed_gemm() != nullptr;
        } else {
            return rival.gemm() != nullptr;
        }
    }
    /// Y = A X. With `transposed`, the blocks hold the transposes: Y^T = X^T A^T.
    void multiply(Rival& rival, BlockView<const A> a, bool transposed, BlockView<T> y) const {
        if constexpr (is_short_v<A>) {
            const BlockView<const A> x = short_->view();
            rival.mixed_gemm()->run(transposed ? MixedGemmCall<A>{false, x, a, y}
                                               : MixedGemmCall<A>{false, a, x, y});
        } else {
            rival.gemm()->run(transposed ? GemmCall<T>{false, T(1), view(), a, T(0), y}
                                         : GemmCall<T>{false, T(1), a, view(), T(0), y});
        }
    }

  private:
    BlockVector<T> x_;
    std::optional<BlockVector<A>> short_;
    std::vector<T> host_;
};

template <class A>
class ByRows final : public Workload {
    using T = SumOf<A>;

  public:
    ByRows(Context& ctx, const Case& c, std::int64_t depth, double row_bytes, double least_bytes)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          a_(ctx, sets_, static_cast<int>(depth), 11),
          y_(ctx, sets_, c.shape.n, 12),
          x_(ctx, depth, c.shape.n) {}
    std::int64_t sets() const override { return sets_.count; }
    void reset() override { fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y_.all()); }
    void run(std::int64_t set) override {
        const MatrixView<const A> a = BlockView<const A>(a_.view(set));
        const MatrixView<const T> x = x_.view();
        mtsm(ctx_, T(1), a, x, T(0), MatrixView<T>(y_.view(set)));
    }
    bool has(Rival& rival) override { return x_.has(rival); }
    void run(Rival& rival, std::int64_t set) override {
        x_.multiply(rival, a_.view(set), false, y_.view(set));
    }
    AnyBlock output(std::int64_t set) override { return y_.view(set); }

    double error(std::int64_t set, std::int64_t) override {
        const std::int64_t k = x_.rows();
        const int n = x_.width();
        const auto check_row = [&](std::int64_t row, const T* computed, Worst<T>& worst) {
            const auto* const a = a_.row(set, row);
            for (int j = 0; j < n; ++j) {
                compare_result<T>(
                    k, computed[j], [&](std::int64_t i) { return a[i]; },
                    [&](std::int64_t i) { return x_.at(i, j); }, worst);
            }
        };
        constexpr std::int64_t work = std::int64_t{1} << 20;
        return check_tall<T>(ctx_, y_.view(set),
                             std::clamp<std::int64_t>(work / (k * n), 32, period), check_row);
    }

  private:
    Context& ctx_;
    Sets sets_;
    LargeBlock<A> a_;
    PeriodicBlock<T> y_;
    SmallOperand<A> x_;
};

/// The layout of `count` matrices stored by columns: each row of the block is one column of a
/// matrix.
Sets sets_of_lines(const Case& c, std::int64_t lines, std::int64_t count) {
    Case each = c;
    each.rows = lines;
    Sets sets(each, 1, 0);
    sets.stride = lines;
    sets.count = count;
    return sets;
}

template <class A>
class ByColumns final : public Workload {
    using T = SumOf<A>;

  public:
    ByColumns(Context& ctx, const Case& c, std::int64_t depth, double set_bytes, double least_bytes,
              bool is_tsmm)
        : ctx_(ctx),
          is_tsmm_(is_tsmm),
          rows_(c.rows),
          depth_(depth),
          n_(c.shape.n),
          count_(std::max<std::int64_t>(
              1, static_cast<std::int64_t>(std::ceil(least_bytes / set_bytes)))),
          a_(ctx, sets_of_lines(c, depth, count_), static_cast<int>(rows_), 11),
          y_(make_block<T>(ctx, n_ * count_, static_cast<int>(rows_) + c.ld_extra)),
          x_(ctx, n_, static_cast<int>(depth)) {}
    std::int64_t sets() const override { return count_; }
    void reset() override { fill(ctx_, T(std::numeric_limits<real_t<T>>::quiet_NaN()), y_.view()); }
    void run(std::int64_t set) override {
        const auto a = MatrixView<const A>(BlockView<const A>(a_.view(set))).transposed();
        const auto x = MatrixView<const T>(x_.view()).transposed();
        const auto y = MatrixView<T>(y_of(set)).transposed();
        if constexpr (!is_short_v<A>) {
            if (is_tsmm_) {
                tsmm<T>(ctx_, T(1), a, x, T(0), y);
                return;
            }
        }
        mtsm(ctx_, T(1), a, x, T(0), y);
    }
    bool has(Rival& rival) override { return x_.has(rival); }
    void run(Rival& rival, std::int64_t set) override {
        x_.multiply(rival, a_.view(set), true, y_of(set));
    }
    AnyBlock output(std::int64_t set) override { return y_of(set); }

    double error(std::int64_t set, std::int64_t) override {
        if (!is_all_finite(y_of(set))) {
            return std::numeric_limits<double>::infinity();
        }
        Worst<T> worst;
        const auto check_rows = [&](std::int64_t first, std::int64_t count) {
            const std::vector<T> y = to_host<T>(
                ctx_, y_of(set).columns(static_cast<int>(first), static_cast<int>(count)));
            for (std::int64_t row = 0; row < count; ++row) {
                for (int j = 0; j < n_; ++j) {
                    compare_result<T>(
                        depth_, y[static_cast<std::size_t>(j * count + row)],
                        [&](std::int64_t i) { return a_.row(set, i)[first + row]; },
                        [&](std::int64_t i) { return x_.at(j, static_cast<int>(i)); }, worst);
                }
            }
        };
        constexpr std::int64_t edge = 32;
        const std::int64_t some = std::min(edge, rows_);
        check_rows(0, some);
        check_rows(rows_ - some, some);
        std::mt19937_64 generator(1);
        std::uniform_int_distribution<std::int64_t> any(0, rows_ - 1);
        for (std::int64_t i = 0; i < edge; ++i) {
            check_rows(any(generator), 1);
        }
        return worst.ratio;
    }

  private:
    /// Without gaps, sums the squares in the place of Y, because a long Y takes seconds to copy.
    bool is_all_finite(BlockView<T> y) {
        if (y.ld == y.cols) {
            const BlockView<const T> all(y.data, y.rows * y.cols, 1, 1, y.place);
            T square[1];
            dots<T>(ctx_, all, all, square);
            return is_finite(square[0]);
        }
        const std::vector<T> values = to_host<T>(ctx_, y);
        return std::all_of(values.begin(), values.end(), [](T value) { return is_finite(value); });
    }
    BlockView<T> y_of(std::int64_t set) {
        return y_.view().row_range(set * n_, n_).columns(0, static_cast<int>(rows_));
    }

    Context& ctx_;
    bool is_tsmm_;
    std::int64_t rows_, depth_;
    int n_;
    std::int64_t count_;
    LargeBlock<A> a_;
    BlockVector<T> y_;
    SmallOperand<A> x_;
};

class MtsmKernel final : public Kernel {
  public:
    enum class Form { rows, columns, tsmm };
    explicit MtsmKernel(Form form) : form_(form) {}
    const char* name() const override {
        return form_ == Form::rows      ? "mtsm"
               : form_ == Form::columns ? "mtsm-columns"
                                        : "tsmm-columns";
    }
    const char* formula() const override {
        return form_ == Form::rows      ? "Y = A X, A: rows x m (one width: rows x rows)"
               : form_ == Form::columns ? "Y = A X, the same, all stored by columns"
                                        : "Y = X C, all stored by columns";
    }
    bool has_two_widths() const override { return true; }
    int most_columns() const override { return form_ == Form::tsmm ? 512 : 1 << 20; }
    /// h and b are the type of A; X and Y are then float.
    bool takes(Dtype scalar) const override { return form_ != Form::tsmm || Kernel::takes(scalar); }
    bool few_rows_are_short() const override { return form_ == Form::tsmm; }
    Traffic traffic() const override { return form_ == Form::tsmm ? Traffic::copy : Traffic::read; }
    Cost cost(const Case& c) const override {
        const auto of = [&]<class A>() {
            MtsmArgs<A, SumOf<A>> args{};
            args.m = c.rows;
            args.k = depth(c);
            args.n = c.shape.n;
            return quiver::cost(args);
        };
        return is_short(c.scalar) ? visit_short(c.scalar, of) : visit_dtype(c.scalar, of);
    }
    double row_bytes(const Case& c) const override {
        return scalar_bytes(c.scalar) * static_cast<double>(depth(c)) + sum_bytes(c) * c.shape.n;
    }
    std::int64_t default_rows(const Case& c, double bytes) const override {
        return is_square(c)
                   ? std::max(std::int64_t{1},
                              static_cast<std::int64_t>(std::sqrt(bytes / scalar_bytes(c.scalar))))
                   : Kernel::default_rows(c, bytes);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        const auto make = [&]<class A>() -> std::unique_ptr<Workload> {
            if (form_ == Form::rows) {
                return std::make_unique<ByRows<A>>(ctx, c, depth(c), row_bytes(c), least_bytes);
            }
            return std::make_unique<ByColumns<A>>(ctx, c, depth(c),
                                                  row_bytes(c) * static_cast<double>(c.rows),
                                                  least_bytes, form_ == Form::tsmm);
        };
        return is_short(c.scalar) ? visit_short(c.scalar, make) : visit_dtype(c.scalar, make);
    }

  private:
    /// A case with one width has a square A.
    bool is_square(const Case& c) const { return form_ != Form::tsmm && c.shape.m == c.shape.n; }
    static bool is_short(Dtype scalar) { return scalar == Dtype::h || scalar == Dtype::b; }
    static double sum_bytes(const Case& c) {
        return scalar_bytes(is_short(c.scalar) ? Dtype::s : c.scalar);
    }
    std::int64_t depth(const Case& c) const { return is_square(c) ? c.rows : c.shape.m; }

    Form form_;
};

}  // namespace

std::span<const Kernel* const> mtsm_kernels() {
    static const MtsmKernel rows(MtsmKernel::Form::rows);
    static const MtsmKernel columns(MtsmKernel::Form::columns);
    static const MtsmKernel tsmm(MtsmKernel::Form::tsmm);
    static const std::array<const Kernel*, 3> all{&rows, &columns, &tsmm};
    return all;
}

}  // namespace quiver::apps::bench
