// SPDX-License-Identifier: BSD-3-Clause
// batched-lu, batched-cholesky: LU and Cholesky of a batch of `rows` column-major matrices.
#include "kernels/batched.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/operands.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/operations/batched.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::int64_t most_matrices = 1000000;
/// The batch repeats after this many different matrices, or earlier if these would have more than
/// period_elements elements.
constexpr std::int64_t period_matrices = 257;
constexpr std::int64_t period_elements = std::int64_t{1} << 22;

/// An array of a plain type in the Context's place.
template <class V>
class Array {
  public:
    Array(Context& ctx, std::int64_t size, const char* what)
        : ctx_(ctx),
          size_(static_cast<std::size_t>(size)),
          // NOLINTNEXTLINE(bugprone-sizeof-expression): V may be a pointer
          memory_(ctx.allocate(memory_kind(ctx.place()), size_ * sizeof(V), what)) {}

    std::span<V> part(std::int64_t first, std::int64_t count) {
        return {memory_.template as<V>() + first, static_cast<std::size_t>(count)};
    }
    void put(const std::vector<V>& values) {
        move(part(0, 1).data(), values.data(), values.size());
    }
    std::vector<V> get(std::int64_t first, std::int64_t count) {
        std::vector<V> values(static_cast<std::size_t>(count));
        move(values.data(), part(first, count).data(), values.size());
        return values;
    }

  private:
    void move(V* to, const V* from, std::size_t count) {
        if (ctx_.place() == Place::device) {
            // NOLINTNEXTLINE(bugprone-sizeof-expression)
            device::copy(to, from, count * sizeof(V), ctx_.stream());
            ctx_.synchronize();
        } else {
            std::copy_n(from, count, to);
        }
    }

    Context& ctx_;
    std::size_t size_;
    Buffer memory_;
};

template <class T>
class BatchedWorkload final : public Workload {
  public:
    BatchedWorkload(Context& ctx, const Case& c, double row_bytes, double least_bytes,
                    bool cholesky)
        : ctx_(ctx),
          cholesky_(cholesky),
          n_(c.shape.n),
          elements_(n_ * n_),
          sets_(c, row_bytes, least_bytes),
          inputs_(make_block<T>(ctx, sets_.rows, elements_)),
          factors_(make_block<T>(ctx, sets_.stride * sets_.count, elements_ + sets_.gap)),
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
             factors_.view().columns(elements_, sets_.gap));
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
        if (cholesky_) {
            cholesky_factor(ctx_, batch, status_of(set));
        } else {
            lu_factor(ctx_, batch, pivots_of(set), status_of(set));
        }
    }
    bool has(Rival& rival) override { return library(rival) != nullptr; }
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
        return check_tall<T>(ctx_, block(set), std::min(edge, sets_.rows),
                             [&](std::int64_t row, const T* computed, Worst<T>& worst) {
                                 check_matrix(set, row, computed, worst);
                             });
    }

  private:
    Batched* library(Rival& rival) const {
        return cholesky_ ? rival.batched_cholesky() : rival.batched_lu();
    }
    BlockView<T> block(std::int64_t set) {
        return factors_.view().columns(0, elements_).row_range(set * sets_.stride, sets_.rows);
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
        const BlockView<T> inputs = inputs_.view();
        copy(ctx_, made, inputs.row_range(0, period_));
        for (std::int64_t filled = period_; filled < inputs.rows;) {
            const std::int64_t count = std::min(filled, inputs.rows - filled);
            copy(ctx_, inputs.row_range(0, count), inputs.row_range(filled, count));
            filled += count;
        }
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
    int n_;
    int elements_;
    Sets sets_;
    BlockVector<T> inputs_, factors_;
    Array<int> pivots_, status_;
    Array<T*> pointers_;
    std::vector<T> matrices_;
    std::int64_t period_ = 1;
    int first_pivot_ = 0;
};

class BatchedKernel final : public Kernel {
  public:
    explicit BatchedKernel(bool cholesky) : cholesky_(cholesky) {}
    const char* name() const override { return cholesky_ ? "batched-cholesky" : "batched-lu"; }
    const char* formula() const override {
        return cholesky_ ? "A = L L^H, rows matrices" : "P A = L U, rows matrices";
    }
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
        const int largest = cholesky_ ? largest_batched_cholesky : largest_batched_lu;
        if (c.shape.n > largest) {
            throw UnsupportedError(std::string(name()) + ": matrices of order 1 to " +
                                   std::to_string(largest));
        }
        return visit_dtype(c.scalar, [&]<class T>() -> std::unique_ptr<Workload> {
            return std::make_unique<BatchedWorkload<T>>(ctx, c, row_bytes(c), least_bytes,
                                                        cholesky_);
        });
    }

  private:
    bool cholesky_;
};

}  // namespace

std::span<const Kernel* const> batched_kernels() {
    static const BatchedKernel lu(false);
    static const BatchedKernel cholesky(true);
    static const std::array<const Kernel*, 2> all{&lu, &cholesky};
    return all;
}

}  // namespace quiver::apps::bench
