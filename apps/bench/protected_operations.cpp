// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/protected_operations.hpp"

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/mtsm.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "solvers/abft/guarded_kernels.hpp"
#include "solvers/abft/protected_batches.hpp"
#include "solvers/abft/protected_dense.hpp"
#include "solvers/abft/protected_products.hpp"
#include "solvers/abft/protected_updates.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::int64_t dense_order = 4000;
constexpr int most_batched_order = 64;
constexpr int least_samples = 3;
/// A sample has as many calls as take sample_seconds. After most_seconds no more samples are taken.
constexpr double sample_seconds = 1e-3;
constexpr double most_seconds = 1;

using Bits = std::vector<unsigned char>;

void add_bits(Bits& bits, const void* data, std::size_t bytes) {
    const auto* const first = static_cast<const unsigned char*>(data);
    bits.insert(bits.end(), first, first + bytes);
}

/// Appends the parity of an array in the Context's place. Any change of one or two words changes
/// the parity.
void add_parity(Context& ctx, Bits& bits, const void* data, std::size_t bytes) {
    std::vector<std::uint64_t> numbers(static_cast<std::size_t>(parity_pieces(bytes)) *
                                       parity_numbers);
    parity(ctx, data, bytes, numbers);
    add_bits(bits, numbers.data(), numbers.size() * sizeof(std::uint64_t));
}

template <class T>
void add_parity(Context& ctx, Bits& bits, const BlockView<const T>& block) {
    add_parity(
        ctx, bits, block.data,
        static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.ld) * sizeof(T));
}

/// One operation: its plain kernel, and its protected form for both modes.
struct Operation {
    OperationTimes times;
    /// Restores the initial values of operands that a call overwrites.
    std::function<void()> reset;
    std::function<void()> kernel;
    /// Computes the bits that the protected operation must produce, if the kernel's bits may
    /// differ.
    std::function<void()> expected = {};
    std::function<void(OperationGuard&)> guarded;
    std::function<Bits()> result;
    /// True if every call needs the initial values of its operands.
    bool resets = false;
};

double seconds_of(Context& ctx, const std::function<void()>& call, int calls) {
    ctx.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
        call();
    }
    ctx.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

/// Compares the bits, then times the three forms in interleaved samples.
OperationTimes measure(Context& ctx, Operation operation, int samples) {
    std::array<OperationGuard, 2> guards{OperationGuard({AbftMode::detect, {}}),
                                         OperationGuard({AbftMode::correct, {}})};
    const std::array<std::function<void()>, 3> calls{operation.kernel,
                                                     [&] { operation.guarded(guards[0]); },
                                                     [&] { operation.guarded(guards[1]); }};
    operation.reset();
    operation.expected ? operation.expected() : operation.kernel();
    const Bits right = operation.result();
    bool good = true;
    for (std::size_t mode = 1; mode < calls.size(); ++mode) {
        operation.reset();
        calls[mode]();
        good = good && operation.result() == right;
    }
    std::array<std::vector<double>, 3> seconds;
    std::array<int, 3> repeats{1, 1, 1};
    for (std::size_t way = 0; way < calls.size(); ++way) {
        operation.reset();
        const double one = seconds_of(ctx, calls[way], 1);
        if (!operation.resets) {
            repeats[way] = static_cast<int>(std::clamp(sample_seconds / one, 1.0, 1000.0));
        }
    }
    double spent = 0;
    for (int sample = 0; sample < samples && (sample < least_samples || spent < most_seconds);
         ++sample) {
        for (std::size_t way = 0; way < calls.size(); ++way) {
            if (operation.resets) {
                operation.reset();
            }
            seconds[way].push_back(seconds_of(ctx, calls[way], repeats[way]));
            spent += seconds[way].back() * repeats[way];
        }
    }
    for (std::size_t way = 0; way < calls.size(); ++way) {
        operation.times.seconds[way] = ctx.comm().max(summarise(seconds[way]).median);
    }
    for (const OperationGuard& guard : guards) {
        good = good && guard.counts.faults == 0 && guard.counts.checked == guard.counts.products;
    }
    operation.times.good = ctx.comm().max(std::int64_t{good ? 0 : 1}) == 0;
    return operation.times;
}

/// A block that only this rank has.
template <class T>
BlockVector<T> own_block(Context& ctx, std::int64_t rows, int cols) {
    return BlockVector<T>(ctx, RowMap(0, {0, rows}), cols);
}

template <class T>
BlockVector<T> random_block(Context& ctx, std::int64_t rows, int cols, std::uint64_t seed) {
    BlockVector<T> block = own_block<T>(ctx, rows, cols);
    fill_random(ctx, seed, block);
    return block;
}

template <class T>
SmallMatrix<T> random_small(int n) {
    SmallMatrix<T> c(n, n);
    Context host;
    fill_random(host, 5, 0, 0, c.view());
    return c;
}

/// The updates and products of blocks with n columns; all of them use the same operands.
template <class T>
class BlockCases {
  public:
    BlockCases(Context& ctx, std::int64_t rows, int n)
        : ctx_(ctx),
          x_(random_block<T>(ctx, rows, n, 1)),
          first_(random_block<T>(ctx, rows, n, 2)),
          y_(own_block<T>(ctx, rows, n)),
          c_(random_small<T>(n)),
          product_(n, n) {}

    Operation tsmm_case() {
        return make_case("tsmm", tsmm_kernel(), [this](auto& g) {
            protected_tsmm(ctx_, g, T(1), x_.view(), c_, T(0), y_.view());
        });
    }
    Operation tsmm_case_with_sums() {
        x_sums_.emplace(ctx_, x_.view());
        return make_case("tsmm, sums of X known", tsmm_kernel(), [this](auto& g) {
            protected_tsmm(ctx_, g, T(1), x_.view(), c_, T(0), y_.view(),
                           {&*x_sums_, nullptr, nullptr});
        });
    }
    Operation axpby_case() {
        return make_case(
            "axpby", [this] { axpby(ctx_, T(-1), x_.view(), half, y_.view()); },
            [this](auto& g) { protected_axpby(ctx_, g, T(-1), x_.view(), half, y_.view()); });
    }
    Operation tsmttsm_case() {
        Operation operation = make_case(
            "tsmttsm",
            [this] {
                tsmttsm(ctx_, T(1), x_.view(), y_.view(), T(0), product_.view(), Reduce::this_rank);
            },
            [this](auto& g) {
                protected_tsmttsm(ctx_, g, T(1), x_.view(), y_.view(), T(0), product_.view(),
                                  Reduce::this_rank);
            });
        operation.result = [this] { return with_product({}); };
        return operation;
    }
    Operation tsmm_gram_case() {
        Operation operation = make_case(
            "tsmm_gram",
            [this] {
                tsmm_gram(ctx_, T(-1), x_.view(), c_, half, y_.view(), product_.view(),
                          Reduce::this_rank);
            },
            [this](auto& g) {
                GuardedOperations<T>(g).tsmm_gram(ctx_, T(-1), x_.view(), c_.view(), half,
                                                  y_.view(), product_.view(), Reduce::this_rank);
            });
        // The fused kernel may sum in another order.
        operation.expected = [this] {
            tsmm(ctx_, T(-1), x_.view(), c_, half, y_.view());
            tsmttsm(ctx_, T(1), y_.view(), y_.view(), T(0), product_.view(), Reduce::this_rank);
        };
        operation.result = [this] { return with_product(bits_of_y()); };
        return operation;
    }

  private:
    static constexpr T half{static_cast<real_t<T>>(0.5)};

    /// The result of the case is Y, unless the caller changes that.
    Operation make_case(const char* name, const std::function<void()>& kernel,
                        const std::function<void(OperationGuard&)>& guarded) {
        const int n = x_.width();
        return {.times = {dtype_v<T>, name, x_.rows(), n, n, {}, true},
                .reset = [this] { copy(ctx_, first_.view(), y_.view()); },
                .kernel = kernel,
                .guarded = guarded,
                .result = [this] { return bits_of_y(); }};
    }
    std::function<void()> tsmm_kernel() {
        return [this] { tsmm(ctx_, T(1), x_.view(), c_, T(0), y_.view()); };
    }
    Bits bits_of_y() {
        Bits bits;
        add_parity<T>(ctx_, bits, y_.view());
        return bits;
    }
    /// `bits` and the bits of the small product.
    Bits with_product(Bits bits) const {
        const int n = product_.rows();
        add_bits(bits, product_.data(), static_cast<std::size_t>(n * n) * sizeof(T));
        return bits;
    }

    Context& ctx_;
    const BlockVector<T> x_;
    const BlockVector<T> first_;
    BlockVector<T> y_;
    const SmallMatrix<T> c_;
    SmallMatrix<T> product_;
    std::optional<Checksum<T>> x_sums_;
};

/// Times updates and products of blocks with n columns.
template <class T>
void add_block_operations(Context& ctx, std::int64_t rows, int n, auto&& run) {
    BlockCases<T> cases(ctx, rows, n);
    run([&] { return cases.tsmm_case(); });
    run([&] { return cases.tsmm_case_with_sums(); });
    run([&] { return cases.axpby_case(); });
    run([&] { return cases.tsmttsm_case(); });
    run([&] { return cases.tsmm_gram_case(); });
}

/// Times products with one dense matrix, protected in both modes, for all widths.
template <class T>
void add_dense_products(Context& ctx, std::int64_t order, std::span<const int> widths, auto&& run) {
    std::optional<BlockVector<T>> a;
    std::array<OperationGuard, 2> guards{OperationGuard({AbftMode::detect, {}}),
                                         OperationGuard({AbftMode::correct, {}})};
    std::array<std::optional<ProtectedDense<T>>, 2> guarded;
    for (const int n : widths) {
        std::optional<BlockVector<T>> x;
        std::optional<BlockVector<T>> y;
        run([&] {
            if (!a) {
                a = random_block<T>(ctx, order, static_cast<int>(order), 3);
                for (std::size_t mode = 0; mode < 2; ++mode) {
                    guarded[mode].emplace(ctx, guards[mode], MatrixView<T>(a->view()));
                }
            }
            x = random_block<T>(ctx, order, n, 1);
            y = own_block<T>(ctx, order, n);
            return Operation{.times = {dtype_v<T>, "mtsm", order, order, n, {}, true},
                             .reset = [&] { fill(ctx, T(0), y->view()); },
                             .kernel =
                                 [&] {
                                     mtsm(ctx, T(1), MatrixView<const T>(std::as_const(*a).view()),
                                          MatrixView<const T>(std::as_const(*x).view()), T(0),
                                          MatrixView<T>(y->view()));
                                 },
                             .guarded =
                                 [&](OperationGuard& guard) {
                                     const std::size_t mode = guard.writes() ? 1 : 0;
                                     guarded[mode]->apply(ctx, T(1), std::as_const(*x).view(), T(0),
                                                          y->view());
                                     // The matrix has its own guard, so copy its counts.
                                     guard.counts = guards[mode].counts;
                                 },
                             .result =
                                 [&] {
                                     Bits bits;
                                     add_parity<T>(ctx, bits, y->view());
                                     return bits;
                                 }};
        });
    }
}

/// Times LU and Cholesky of random matrices, diagonally dominant; Cholesky reads only their lower
/// triangles.
template <class T>
void add_batches(Context& ctx, std::int64_t count, int n, auto&& run) {
    std::optional<BlockVector<T>> inputs;
    std::optional<BlockVector<T>> factors;
    std::optional<BlockVector<float>> words;
    for (const bool lu : {true, false}) {
        run([&] {
            if (!inputs) {
                inputs = random_block<T>(ctx, count, n * n, 4);
                for (int i = 0; i < n; ++i) {
                    fill(ctx, T(static_cast<real_t<T>>(2 * n)),
                         inputs->view().columns(i * (n + 1), 1));
                }
                factors = own_block<T>(ctx, count, n * n);
                static_assert(sizeof(int) == sizeof(float));
                words = own_block<float>(ctx, count * (n + 1), 1);
                fill(ctx, 0.0F, words->view());
            }
            const auto batch = [&] {
                MatrixBatch<T> a = MatrixBatch<T>::packed(factors->view().data, count, n, n,
                                                          ctx.place(), MatrixOrder::column_major);
                a.stride = factors->view().ld;
                return a;
            };
            int* const first = reinterpret_cast<int*>(words->view().data);
            const auto matrices = static_cast<std::size_t>(count);
            const std::span<int> pivots(first, matrices * static_cast<std::size_t>(n));
            const std::span<int> status(first + pivots.size(), matrices);
            return Operation{
                .times = {dtype_v<T>, lu ? "lu_factor" : "cholesky_factor", count, n, n, {}, true},
                .reset = [&] { copy(ctx, inputs->view(), factors->view()); },
                .kernel =
                    [=, &ctx] {
                        lu ? lu_factor(ctx, batch(), pivots, status)
                           : cholesky_factor(ctx, batch(), status);
                    },
                .guarded =
                    [=, &ctx](OperationGuard& guard) {
                        lu ? protected_lu_factor(ctx, guard, batch(), pivots, status)
                           : protected_cholesky_factor(ctx, guard, batch(), status);
                    },
                .result =
                    [&] {
                        Bits bits;
                        add_parity<T>(ctx, bits, factors->view());
                        add_parity<float>(ctx, bits, words->view());
                        return bits;
                    },
                .resets = true};
        });
    }
}

}  // namespace

int time_operations(Context& ctx, const OperationCases& cases, const Budget& budget,
                    const std::function<void(const OperationTimes&)>& show) {
    int left_out = 0;
    const auto run = [&](auto&& prepare) {
        if (ctx.comm().max(std::int64_t{budget.exhausted() ? 1 : 0}) > 0) {
            ++left_out;
            return;
        }
        show(measure(ctx, prepare(), cases.samples));
    };
    visit_dtype(cases.scalar, [&]<class T>() {
        for (const std::int64_t rows : cases.rows) {
            for (const int n : cases.widths) {
                add_block_operations<T>(ctx, rows, n, run);
            }
        }
        const std::int64_t most_rows = *std::max_element(cases.rows.begin(), cases.rows.end());
        add_dense_products<T>(ctx, std::min(dense_order, most_rows), cases.widths, run);
        const std::int64_t matrices = ctx.place() == Place::device ? 100'000 : 10'000;
        for (const int n : cases.widths) {
            if (n <= most_batched_order) {
                add_batches<T>(ctx, std::min(matrices, most_rows), n, run);
            }
        }
    });
    return left_out;
}

}  // namespace quiver::apps::bench
