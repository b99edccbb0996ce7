// SPDX-License-Identifier: BSD-3-Clause
// orth-METHOD: X = Q R by each method of block_gram_schmidt; Q overwrites X.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"
#include "solvers/small_dense.hpp"

namespace quiver::apps::bench {
namespace {

/// The columns of the widest block: a block needs at least as many rows as columns.
constexpr std::int64_t fewest_rows = 512;

template <class T>
class OrthWorkload final : public Workload {
  public:
    OrthWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes,
                 OrthMethod method)
        : ctx_(ctx),
          sets_(c, row_bytes, least_bytes),
          map_(RowMap::by_rows(ctx.comm(), c.rows)),
          n_(c.shape.n),
          x_(ctx, sets_, n_, 11) {
        options_.method = method;
        reset();
    }

    std::int64_t sets() const override { return sets_.count; }
    void reset() override {
        x_.refill();
        r_product_.assign(static_cast<std::size_t>(sets_.count), SmallMatrix<T>::identity(n_));
    }
    /// Later calls get an orthonormal block, which takes as long as any other.
    void run(std::int64_t set) override {
        const OrthResult<T> result = block_gram_schmidt<T>(
            ctx_, map_, BlockView<const T>(nullptr, sets_.rows, 0, 0, ctx_.place()), x_.view(set),
            options_);
        multiply_r(set, result.r);
    }
    bool has(Rival& rival) override { return rival.qr() != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        SmallMatrix<T> r(n_, n_);
        rival.qr()->run(QrCall<T>{x_.view(set), r.view()});
        multiply_r(set, r);
    }
    AnyBlock output(std::int64_t set) override { return x_.view(set); }

    /// Checks Q^H Q, summed over one period of rows (the rows of Q repeat as those of X do), and
    /// compares some rows of Q R with those of X.
    double error(std::int64_t set, std::int64_t calls) override {
        const SmallMatrix<T>& r = r_product_[static_cast<std::size_t>(set)];
        // The errors of Householder QR are small relative to the norm of a column, not to an
        // element. The bound is therefore that of a sum as long as a column.
        const long double factor =
            8 * static_cast<long double>(calls) * rounding<T>(static_cast<double>(sets_.rows));
        const double rows = check_tall<T>(
            ctx_, x_.view(set), period, [&](std::int64_t row, const T* q, Worst<T>& worst) {
                const T* x = x_.row(set, row);
                for (int j = 0; j < n_; ++j) {
                    Wide<T> value = 0;
                    long double size = std::sqrt(norm_squared(x[j]));
                    for (int k = 0; k < n_; ++k) {
                        value += wide(q[k]) * wide(r(k, j));
                        size += std::sqrt(norm_squared(q[k]) * norm_squared(r(k, j)));
                    }
                    worst.compare(static_cast<T>(value), wide(x[j]), factor * size);
                }
            });
        return std::max(rows, loss(set));
    }

  private:
    void multiply_r(std::int64_t set, const SmallMatrix<T>& r) {
        SmallMatrix<T>& total = r_product_[static_cast<std::size_t>(set)];
        total = product(r, total);
    }
    double loss(std::int64_t set) {
        const std::int64_t count = std::min(period, sets_.rows);
        const std::vector<T> q = to_host<T>(ctx_, x_.view(set).row_range(0, count));
        Worst<T> worst;
        // The bound does not need the condition number: it is small for random blocks.
        const long double bound = 8 * n_ * rounding<T>(static_cast<double>(sets_.rows));
        for (int i = 0; i < n_; ++i) {
            for (int j = 0; j < n_; ++j) {
                Wide<T> sum = 0;
                for (std::int64_t p = 0; p < count; ++p) {
                    const auto times = repeats(sets_.rows, p);
                    sum += times * wide(conjugate(q[static_cast<std::size_t>(p * n_ + i)])) *
                           wide(q[static_cast<std::size_t>(p * n_ + j)]);
                }
                worst.compare(static_cast<T>(sum), Wide<T>(i == j ? 1 : 0), bound);
            }
        }
        return worst.ratio;
    }

    Context& ctx_;
    Sets sets_;
    RowMap map_;
    int n_;
    PeriodicBlock<T> x_;
    OrthOptions options_;
    /// The product of the factors R of all calls since the reset.
    std::vector<SmallMatrix<T>> r_product_;
};

class OrthKernel final : public Kernel {
  public:
    /// `passes`: reads or writes of the whole block. `products`: products of the block with n x n
    /// matrices. Both as docs/solvers.md counts them for a random block.
    OrthKernel(OrthMethod method, double passes, double products)
        : name_(std::string("orth-") + to_string(method)),
          method_(method),
          passes_(passes),
          products_(products) {}

    const char* name() const override { return name_.c_str(); }
    const char* formula() const override { return "X = Q R, Q overwrites X"; }
    Traffic traffic() const override { return Traffic::scale; }
    Cost cost(const Case& c) const override {
        const int n = c.shape.n;
        const double elements = static_cast<double>(c.rows) * n;
        return {c.rows, n, n, passes_ * scalar_bytes(c.scalar) * elements,
                products_ * multiply_add_flops(c.scalar) * elements * n};
    }
    double row_bytes(const Case& c) const override { return scalar_bytes(c.scalar) * c.shape.n; }
    std::int64_t round_rows(std::int64_t rows) const override {
        return std::max(rows, fewest_rows);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<OrthWorkload<T>>(ctx, c, row_bytes(c), least_bytes, method_);
        });
    }

  private:
    std::string name_;
    OrthMethod method_;
    double passes_;
    double products_;
};

}  // namespace

std::span<const Kernel* const> orth_kernels() {
    static const OrthKernel cholesky_qr(OrthMethod::cholesky_qr, 3, 2);
    static const OrthKernel cholesky_qr2(OrthMethod::cholesky_qr2, 5, 4);
    static const OrthKernel shifted(OrthMethod::shifted_cholesky_qr3, 5, 4);
    static const OrthKernel mixed(OrthMethod::mixed_cholesky_qr, 5, 4);
    static const OrthKernel tsqr(OrthMethod::tsqr, 4, 3);
    static const OrthKernel svqb(OrthMethod::svqb, 5, 4);
    static const OrthKernel robust(OrthMethod::robust, 5, 4);
    static const std::array<const Kernel*, 7> all{&cholesky_qr, &cholesky_qr2, &shifted, &mixed,
                                                  &tsqr,        &svqb,         &robust};
    return all;
}

}  // namespace quiver::apps::bench
