// SPDX-License-Identifier: BSD-3-Clause
// batched-lu, batched-cholesky: LU and Cholesky of a batch of `rows` column-major matrices, and the
// same for interleaved matrices.
#include "kernels/batched.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "apps/bench/kernels/batch_array.hpp"
#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/batched.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class BatchedWorkload final : public Workload {
  public:
    BatchedWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes,
                    bool cholesky, bool interleaved)
        : ctx_(ctx),
          cholesky_(cholesky),
          interleaved_(interleaved),
          n_(c.shape.n),
          elements_(n_ * n_),
          sets_(c, row_bytes, least_bytes),
          inputs_(make_block<T>(ctx, lines(), length())),
          factors_(make_block<T>(ctx, lines_a_set() * sets_.count, length() + sets_.gap)),
          pivots_(ctx, sets_.stride * sets_.count * n_, "pivots"),
          status_(ctx, sets_.stride * sets_.count, "status"),
          pointers_(ctx, sets_.stride * sets_.count, "pointers") {
        make_inputs();
        std::vector<T*> pointers;
        for (std::int64_t b = 0; b < sets_.stride * sets_.count; ++b) {
            pointers.push_back(factors_.view().data + b * factors_.view().ld);
        }
        pointers_.put(pointers);
        fill(ctx, T(std::numeric_limits<real_t<T>>::quiet_NaN()),
             factors_.view().columns(length(), sets_.gap));
    }

    std::int64_t sets() const override { return sets_.count; }
    std::int64_t most_calls() const override { return sets_.count; }
    void restore() override {
        for (std::int64_t set = 0; set < sets_.count; ++set) {
            copy(ctx_, inputs_.view(), block(set));
        }
    }
    void reset() override {
        restore();
        const auto all = static_cast<std::size_t>(sets_.stride * sets_.count);
        pivots_.put(std::vector<int>(all * static_cast<std::size_t>(n_), -1));
        status_.put(std::vector<int>(all, -1));
    }
    void run(std::int64_t set) override {
        first_pivot_ = 0;
        auto batch = MatrixBatch<T>::packed(block(set).data, sets_.rows, n_, n_, ctx_.place(),
                                            MatrixOrder::column_major);
        batch.stride = factors_.view().ld;
        batch.interleaved = interleaved_;
        if (cholesky_) {
            cholesky_factor(ctx_, batch, status_of(set));
        } else {
            lu_factor(ctx_, batch, pivots_of(set), status_of(set));
        }
    }
    bool has(Rival& rival) override { return !interleaved_ && library(rival) != nullptr; }
    void run(Rival& rival, std::int64_t set) override {
        first_pivot_ = 1;
        library(rival)->run(BatchedCall<T>{
            n_, static_cast<int>(sets_.rows), pointers_.part(set * sets_.stride, 1).data(),
            cholesky_ ? nullptr : pivots_of(set).data(), status_of(set).data()});
    }
    AnyBlock output(std::int64_t set) override { return block(set); }

    /// Checks the status and the finiteness of all matrices, and the backward error of some.
    double error(std::int64_t set, std::int64_t) override {
        const auto status = status_.get(set * sets_.stride, sets_.rows);
        if (std::any_of(status.begin(), status.end(), [](int each) { return each != 0; })) {
            return std::numeric_limits<double>::infinity();
        }
        const double cube = std::pow(n_, 3);
        const auto edge = std::clamp<std::int64_t>(static_cast<std::int64_t>(1e8 / cube), 1, 64);
        if (interleaved_) {
            return error_of_interleaved(set, std::min(edge, sets_.rows));
        }
        return check_tall<T>(ctx_, block(set), std::min(edge, sets_.rows),
                             [&](std::int64_t row, const T* computed, Worst<T>& worst) {
                                 check_matrix(set, row, computed, worst);
                             });
    }

  private:
    Batched* library(Rival& rival) const {
        return cholesky_ ? rival.batched_cholesky() : rival.batched_lu();
    }
    // The lines of a set are matrices or, if interleaved, elements of all matrices.
    std::int64_t lines() const { return interleaved_ ? elements_ : sets_.rows; }
    std::int64_t lines_a_set() const { return interleaved_ ? elements_ : sets_.stride; }
    int length() const { return interleaved_ ? static_cast<int>(sets_.rows) : elements_; }
    BlockView<T> block(std::int64_t set) {
        return factors_.view().columns(0, length()).row_range(set * lines_a_set(), lines());
    }
    std::span<int> pivots_of(std::int64_t set) {
        return pivots_.part(set * sets_.stride * n_, sets_.rows * n_);
    }
    std::span<int> status_of(std::int64_t set) {
        return status_.part(set * sets_.stride, sets_.rows);
    }

    /// Random matrices for LU; for Cholesky Hermitian ones with 2 n added to the diagonal.
    void make_inputs() {
        period_ = std::clamp<std::int64_t>(period_elements / elements_, 1, period_matrices);
        period_ = std::min(period_, sets_.rows);
        matrices_.resize(static_cast<std::size_t>(period_ * elements_));
        const BlockView<T> made(matrices_.data(), period_, elements_, elements_);
        Context host;
        fill_random(host, 11, 0, 0, made);
        for (std::int64_t b = 0; cholesky_ && b < period_; ++b) {
            for (int i = 0; i < n_; ++i) {
                for (int j = 0; j < i; ++j) {
                    made(b, i * n_ + j) = conjugate(made(b, j * n_ + i));
                }
                made(b, i * n_ + i) =
                    T(real_part(made(b, i * n_ + i)) + static_cast<real_t<T>>(2 * n_));
            }
        }
        if (interleaved_) {
            interleave_inputs();
            return;
        }
        const BlockView<T> inputs = inputs_.view();
        copy(ctx_, made, inputs.row_range(0, period_));
        for (std::int64_t filled = period_; filled < inputs.rows;) {
            const std::int64_t count = std::min(filled, inputs.rows - filled);
            copy(ctx_, inputs.row_range(0, count), inputs.row_range(filled, count));
            filled += count;
        }
    }

    void interleave_inputs() {
        std::vector<T> all(static_cast<std::size_t>(elements_ * sets_.rows));
        for (int e = 0; e < elements_; ++e) {
            for (std::int64_t b = 0; b < sets_.rows; ++b) {
                all[static_cast<std::size_t>(e * sets_.rows + b)] =
                    matrices_[static_cast<std::size_t>(b % period_ * elements_ + e)];
            }
        }
        copy(ctx_, BlockView<T>(all.data(), lines(), length(), length()), inputs_.view());
    }

    /// As check_tall, with the first and last `edge` matrices and every 64th part of the batch.
    double error_of_interleaved(std::int64_t set, std::int64_t edge) {
        const std::vector<T> all = to_host<T>(ctx_, block(set));
        if (!std::all_of(all.begin(), all.end(), [](T value) { return is_finite(value); })) {
            return std::numeric_limits<double>::infinity();
        }
        Worst<T> worst;
        std::vector<T> matrix(static_cast<std::size_t>(elements_));
        const std::int64_t step = std::max<std::int64_t>(sets_.rows / 64, 1);
        for (std::int64_t b = 0; b < sets_.rows; ++b) {
            if (b < edge || b >= sets_.rows - edge || b % step == 0) {
                for (int e = 0; e < elements_; ++e) {
                    matrix[static_cast<std::size_t>(e)] =
                        all[static_cast<std::size_t>(e * sets_.rows + b)];
                }
                check_matrix(set, b, matrix.data(), worst);
            }
        }
        return worst.ratio;
    }

    /// Compares every element of P A - L U or A - L L^H with 2 (n + 1) eps (|L| |U|); for complex
    /// scalars with 8 instead of 2.
    void check_matrix(std::int64_t set, std::int64_t matrix, const T* computed, Worst<T>& worst) {
        const auto at = [n = n_](int i, int j) { return j * n + i; };
        const T* const input = matrices_.data() + matrix % period_ * elements_;
        std::vector<int> source(static_cast<std::size_t>(n_));
        for (int i = 0; i < n_; ++i) {
            source[static_cast<std::size_t>(i)] = i;
        }
        if (!cholesky_) {
            const auto pivots = pivots_.get((set * sets_.stride + matrix) * n_, n_);
            for (int k = 0; k < n_; ++k) {
                const int p = pivots[static_cast<std::size_t>(k)] - first_pivot_;
                if (p < k || p >= n_) {
                    worst.ratio = std::numeric_limits<double>::infinity();
                    return;
                }
                std::swap(source[static_cast<std::size_t>(k)], source[static_cast<std::size_t>(p)]);
            }
        }
        for (int j = 0; j < n_; ++j) {
            for (int i = 0; i < n_; ++i) {
                if (cholesky_ && i < j) {
                    // Our Cholesky must leave the other triangle unchanged; rivals may overwrite
                    // it.
                    if (first_pivot_ == 0) {
                        worst.compare(computed[at(i, j)], wide(input[at(i, j)]), 0);
                    }
                    continue;
                }
                Wide<T> sum = 0;
                long double size = 0;
                for (int k = 0; k <= std::min(i, j); ++k) {
                    const Wide<T> l = !cholesky_ && k == i ? Wide<T>(1) : wide(computed[at(i, k)]);
                    const Wide<T> u =
                        wide(cholesky_ ? conjugate(computed[at(j, k)]) : computed[at(k, j)]);
                    sum += l * u;
                    size += std::abs(l) * std::abs(u);
                }
                const T exact = input[at(source[static_cast<std::size_t>(i)], j)];
                worst.compare(exact, sum,
                              (is_complex_v<T> ? 8 : 2) * (n_ + 1) *
                                  static_cast<long double>(epsilon_v<T>) * size);
            }
        }
    }

    Context& ctx_;
    bool cholesky_;
    bool interleaved_;
    int n_;
    int elements_;
    Sets sets_;
    BlockVector<T> inputs_, factors_;
    BatchArray<int> pivots_, status_;
    BatchArray<T*> pointers_;
    std::vector<T> matrices_;
    std::int64_t period_ = 1;
    int first_pivot_ = 0;
};

class BatchedKernel final : public Kernel {
  public:
    explicit BatchedKernel(bool cholesky, bool interleaved = false)
        : cholesky_(cholesky), interleaved_(interleaved) {}
    const char* name() const override {
        return interleaved_
                   ? (cholesky_ ? "batched-cholesky-interleaved" : "batched-lu-interleaved")
                   : (cholesky_ ? "batched-cholesky" : "batched-lu");
    }
    const char* formula() const override {
        return interleaved_ ? (cholesky_ ? "A = L L^H, rows interleaved matrices up to 16 x 16"
                                         : "P A = L U, rows interleaved matrices up to 16 x 16")
                            : (cholesky_ ? "A = L L^H, rows matrices" : "P A = L U, rows matrices");
    }
    bool belongs_to_all() const override { return !interleaved_; }
    Traffic traffic() const override { return Traffic::scale; }
    /// Counts whole matrices for Cholesky too, although only one triangle must be moved.
    Cost cost(const Case& c) const override {
        return visit_dtype(c.scalar, [&]<class T>() {
            BatchOf<T> a{};
            a.count = c.rows;
            a.rows = a.cols = c.shape.n;
            if (!cholesky_) {
                return quiver::cost(LuArgs<T>{a, nullptr, nullptr});
            }
            Cost whole = quiver::cost(CholeskyArgs<T>{a, nullptr});
            const double n = c.shape.n;
            whole.bytes = static_cast<double>(c.rows) * (2 * n * n * sizeof(T) + sizeof(int));
            return whole;
        });
    }
    double row_bytes(const Case& c) const override {
        return std::pow(c.shape.n, 2) * scalar_bytes(c.scalar);
    }
    std::int64_t round_rows(std::int64_t rows) const override {
        return std::min(rows, most_matrices);
    }
    std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                      double least_bytes) const override {
        const int largest = interleaved_ ? largest_interleaved
                            : cholesky_  ? largest_batched_cholesky
                                         : largest_batched_lu;
        if (c.shape.n > largest) {
            throw UnsupportedError(std::string(name()) + ": matrices of order 1 to " +
                                   std::to_string(largest));
        }
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<BatchedWorkload<T>>(ctx, c, row_bytes(c), least_bytes,
                                                        cholesky_, interleaved_);
        });
    }

  private:
    bool cholesky_;
    bool interleaved_;
};

}  // namespace

std::span<const Kernel* const> batched_kernels() {
    static const BatchedKernel lu(false);
    static const BatchedKernel cholesky(true);
    static const BatchedKernel interleaved_lu(false, true);
    static const BatchedKernel interleaved_cholesky(true, true);
    static const std::array<const Kernel*, 4> all{&lu, &cholesky, &interleaved_lu,
                                                  &interleaved_cholesky};
    return all;
}

}  // namespace quiver::apps::bench
