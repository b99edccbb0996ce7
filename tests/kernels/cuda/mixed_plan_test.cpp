// SPDX-License-Identifier: BSD-3-Clause
// Tests plans of the mixed-precision products, and the positions of elements of folded rows in the
// operands of the tensor cores. Needs no GPU: this file implements ldmatrix and mma.m16n8k16 as the
// PTX ISA defines them.
#include "kernels/cuda/mixed_plan.hpp"

#include <array>
#include <cstdlib>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "tests/kernels/cuda/compiled_kernels.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::cuda {
namespace {

using Lanes = std::array<std::array<std::array<int, 2>, 4>, 32>;

/// Loads four 8 x 8 matrices of integers. addresses[8 q + r] is the address of row r of matrix q.
/// Word q of lane l then holds the elements (l / 4, 2 (l % 4)) and (l / 4, 2 (l % 4) + 1) of matrix
/// q, or of its transpose.
Lanes load_matrices(const std::vector<int>& memory, const std::array<int, 32>& addresses,
                    bool transposed) {
    Lanes words{};
    for (int lane = 0; lane < 32; ++lane) {
        for (int q = 0; q < 4; ++q) {
            for (int half = 0; half < 2; ++half) {
                const int along = 2 * (lane % 4) + half;
                const int row = transposed ? along : lane / 4;
                const int column = transposed ? lane / 4 : along;
                const int address = addresses.at(static_cast<std::size_t>(8 * q + row)) + column;
                words[static_cast<std::size_t>(lane)][static_cast<std::size_t>(q)]
                     [static_cast<std::size_t>(half)] =
                         memory.at(static_cast<std::size_t>(address));
            }
        }
    }
    return words;
}

/// Element (i, j) of the 16 x 8 product A B. A(i, k) lies in word i / 8 + 2 (k / 8) of lane 4 (i %
/// 8) + k % 8 / 2, and B(k, j) in word first_word_of_b + k / 8 of lane 4 j + k % 8 / 2; the low
/// half of a word holds the even k.
int product(const Lanes& a, const Lanes& b, int first_word_of_b, int i, int j) {
    int sum = 0;
    for (int k = 0; k < 16; ++k) {
        const auto in_lane = static_cast<std::size_t>(k % 8 / 2);
        const auto half = static_cast<std::size_t>(k % 2);
        const int left = a[static_cast<std::size_t>(4 * (i % 8)) + in_lane]
                          [static_cast<std::size_t>(i / 8 + 2 * (k / 8))][half];
        const int right = b[static_cast<std::size_t>(4 * j) + in_lane]
                           [static_cast<std::size_t>(first_word_of_b + k / 8)][half];
        sum += left * right;
    }
    return sum;
}

/// Random integers for 16 long rows, and 64 more because loads may reach beyond the last row.
std::vector<int> run_of(std::mt19937_64& generator, int long_row) {
    std::vector<int> memory(static_cast<std::size_t>(16 * long_row + 64));
    for (int& value : memory) {
        value = static_cast<int>(generator() % 7) - 3;
    }
    return memory;
}

int fold_for(int m, int n) {
    int fold = 1;
    while (fold * m % 8 != 0 || fold * n % 8 != 0) {
        fold *= 2;
    }
    return fold;
}

TEST(FoldedSums, EveryWantedSumHasOnePlace) {
    auto generator = test::make_generator();
    for (const auto& [m, n] : {std::pair{1, 1},
                               {2, 2},
                               {3, 3},
                               {4, 4},
                               {5, 7},
                               {6, 6},
                               {8, 8},
                               {9, 9},
                               {12, 20},
                               {15, 15},
                               {16, 1},
                               {31, 33},
                               {48, 48},
                               {63, 63}}) {
        const int fold = fold_for(m, n);
        for (int split = 1; split <= fold; split *= 2) {
            for (const int shares : {1, 2}) {
                for (const bool same : {false, true}) {
                    if (same && (m != n || shares > 1)) {
                        continue;
                    }
                    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + ", split " +
                                 std::to_string(split) + ", shares " + std::to_string(shares) +
                                 (same ? ", same" : ""));
                    const FoldedProduct shape{{m, fold, split}, {n, fold, split}, same, shares};
                    const std::vector<int> a = run_of(generator, fold * m);
                    const std::vector<int> b = same ? a : run_of(generator, fold * n);
                    std::map<std::array<int, 3>, int> sums;
                    for (int slab = 0; slab < split; ++slab) {
                        for (int share = 0; share < shares; ++share) {
                            const auto words = [&](const std::vector<int>& memory, int long_row,
                                                   int chunk, MatrixRow (*row_of)(int)) {
                                std::array<int, 32> addresses{};
                                for (int lane = 0; lane < 32; ++lane) {
                                    const MatrixRow at = row_of(lane);
                                    addresses[static_cast<std::size_t>(lane)] =
                                        at.row * long_row + 8 * (chunk + at.chunk);
                                }
                                return load_matrices(memory, addresses, true);
                            };
                            for (int p = 0; p < shape.pairs(); ++p) {
                                const Lanes left =
                                    words(a, fold * m, shape.a.chunk(slab) + 2 * p, left_of_sums);
                                for (int c = 0; c < shape.chunks(); ++c) {
                                    const int chunk = c + share * shape.chunks();
                                    if (!shape.needed(p, c)) {
                                        continue;
                                    }
                                    const Lanes right =
                                        words(b, fold * n, shape.b.chunk(slab) + chunk / 2 * 2,
                                              right_of_sums);
                                    for (int lane = 0; lane < 32; ++lane) {
                                        for (int e = 0; e < 4; ++e) {
                                            const int i =
                                                16 * p + result_row(lane, e) - shape.a.offset(slab);
                                            const int j = 8 * chunk + result_column(lane, e) -
                                                          shape.b.offset(slab);
                                            if (i < 0 || j < 0 || i >= shape.a.slab() ||
                                                j >= shape.b.slab()) {
                                                continue;
                                            }
                                            const FoldedPlace row = folded_place(i, m);
                                            const FoldedPlace column = folded_place(j, n);
                                            if (row.block != column.block ||
                                                (same && row.column > column.column)) {
                                                continue;
                                            }
                                            const std::array<int, 3> key{
                                                slab * shape.a.blocks() + row.block, row.column,
                                                column.column};
                                            ASSERT_EQ(sums.count(key), 0U) << "twice";
                                            sums[key] = product(left, right, chunk % 2 * 2,
                                                                result_row(lane, e),
                                                                result_column(lane, e));
                                        }
                                    }
                                }
                            }
                        }
                    }
                    const int wanted = same ? m * (m + 1) / 2 : m * n;
                    ASSERT_EQ(sums.size(), static_cast<std::size_t>(fold * wanted));
                    for (const auto& [key, sum] : sums) {
                        int exact = 0;
                        for (int k = 0; k < 16; ++k) {
                            const int row = k * fold + key[0];
                            exact += a.at(static_cast<std::size_t>(row * m + key[1])) *
                                     b.at(static_cast<std::size_t>(row * n + key[2]));
                        }
                        ASSERT_EQ(sum, exact) << key[0] << ": " << key[1] << ", " << key[2];
                    }
                }
            }
        }
    }
}

TEST(FoldedRows, TilesThatMeetTheDiagonalAreAllOfTheProduct) {
    auto generator = test::make_generator();
    for (const auto& [m, n] :
         {std::pair{1, 1}, {3, 3}, {4, 8}, {5, 7}, {9, 9}, {16, 16}, {31, 31}, {63, 63}, {1, 64}}) {
        const int fold = fold_for(m, n);
        for (int split = 1; split <= fold; split *= 2) {
            SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + ", split " +
                         std::to_string(split));
            const FoldedProduct shape{{m, fold, split}, {n, fold, split}, false, 1};
            const std::vector<int> x = run_of(generator, fold * m);
            const std::vector<int> small = run_of(generator, std::max(m * n / 16, 1) + 1);
            const auto c = [&, n = n](int i, int j) {
                return small.at(static_cast<std::size_t>(i * n + j) % small.size());
            };
            int stored = 0;
            for (int slab = 0; slab < split; ++slab) {
                for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
                    std::array<std::array<int, 8>, 16> sums{};
                    for (int k = 0; k < shape.pairs(); ++k) {
                        if (!shape.needed(k, chunk)) {
                            continue;
                        }
                        std::array<int, 32> addresses{};
                        Lanes right{};
                        for (int lane = 0; lane < 32; ++lane) {
                            const MatrixRow at = left_of_rows(lane);
                            addresses[static_cast<std::size_t>(lane)] =
                                at.row * fold * m + 8 * (shape.a.chunk(slab) + 2 * k + at.chunk);
                            for (int half = 0; half < 2; ++half) {
                                for (int next = 0; next < 2; ++next) {
                                    const int i = 16 * k + operand_row(lane, half) + next -
                                                  shape.a.offset(slab);
                                    const int j =
                                        8 * chunk + operand_column(lane) - shape.b.offset(slab);
                                    const bool inside = i >= 0 && j >= 0 && i < shape.a.slab() &&
                                                        j < shape.b.slab() && i / m == j / n;
                                    right[static_cast<std::size_t>(lane)][static_cast<std::size_t>(
                                        half)][static_cast<std::size_t>(next)] =
                                        inside ? c(i % m, j % n) : 0;
                                }
                            }
                        }
                        const Lanes left = load_matrices(x, addresses, false);
                        for (int i = 0; i < 16; ++i) {
                            for (int j = 0; j < 8; ++j) {
                                sums[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
                                    product(left, right, 0, i, j);
                            }
                        }
                    }
                    for (int lane = 0; lane < 32; ++lane) {
                        for (int e = 0; e < 4; ++e) {
                            const int i = result_row(lane, e);
                            const int j = 8 * chunk + result_column(lane, e) - shape.b.offset(slab);
                            if (j < 0 || j >= shape.b.slab()) {
                                continue;
                            }
                            const int row = i * fold + slab * shape.a.blocks() + j / n;
                            int exact = 0;
                            for (int k = 0; k < m; ++k) {
                                exact += x.at(static_cast<std::size_t>(row * m + k)) * c(k, j % n);
                            }
                            ASSERT_EQ(sums[static_cast<std::size_t>(i)]
                                          [static_cast<std::size_t>(result_column(lane, e))],
                                      exact)
                                << row << ", " << j % n;
                            ++stored;
                        }
                    }
                }
            }
            ASSERT_EQ(stored, 16 * fold * n);
        }
    }
}

Layout plain(int columns) {
    return Layout::of(nullptr, columns, columns, 2);
}

/// Calls f(shape) for products C = A^T B of blocks with and without gaps.
template <class F>
void for_each_sum_shape(int m, int n, F&& f) {
    for (const bool same : {false, true}) {
        if (same && m != n) {
            continue;
        }
        MixedShape shape;
        shape.m = m;
        shape.n = n;
        shape.same = same;
        const int usual = mixed_unit(plain(m), m, plain(n), n);
        for (const int unit : {usual, 2}) {
            shape.unit = unit;
            f(shape);
        }
    }
}
template <class F>
void for_each_row_shape(int m, int n, F&& f) {
    for (int choice = 0; choice < 8; ++choice) {
        MixedShape shape;
        shape.tsmm = true;
        shape.scalar = choice % 2 == 0 ? Dtype::h : Dtype::b;
        shape.m = m;
        shape.n = n;
        shape.small_is_float = choice % 2 == 0;
        shape.out_is_float = choice / 2 % 2 == 0;
        shape.adds = choice / 4 == 1 && !shape.out_is_float;
        for (const int unit : {mixed_unit(plain(m), m, plain(m), m), 2}) {
            shape.unit = unit;
            shape.flat = unit == 0;
            f(shape);
        }
    }
}

TEST(MixedPlans, EveryShapeHasOne) {
    const int step = std::getenv("QUIVER_TEST_ALL_CASES") != nullptr ? 1 : 7;
    for (int m = 1; m <= widest_mixed; ++m) {
        for (int n = 1; n <= widest_mixed; ++n) {
            if (n != m && n != widest_mixed && (5 * m + n) % step != 0) {
                continue;
            }
            const auto check = [&](const std::vector<MixedPlan>& plans) {
                ASSERT_FALSE(plans.empty()) << m << " x " << n;
                for (const MixedPlan& plan : plans) {
                    EXPECT_EQ(plan.threads(), 256) << to_text(plan);
                }
            };
            for_each_sum_shape(
                m, n, [&](const MixedShape& shape) { check(mixed_plans(shape, Machine{})); });
            for_each_row_shape(
                m, n, [&](const MixedShape& shape) { check(mixed_plans(shape, Machine{})); });
        }
    }
    for (const int m : {65, 100, 199, 256}) {
        for_each_row_shape(m, 16, [&](const MixedShape& shape) {
            EXPECT_FALSE(mixed_plans(shape, Machine{}).empty()) << m;
        });
    }
}

TEST(MixedPlans, TheFirstChoicesCompileForHopperWithFewSpills) {
    Batch batch(6);
    const auto add = [&](const PlannedKernel& planned) {
        batch.add(planned.source, "sm_90", planned.expression);
    };
    for (const int width : {1, 2, 3, 4, 5, 8, 13, 16, 20, 31, 32, 48, 57, 64}) {
        bool first = true;
        for_each_sum_shape(width, width, [&](MixedShape shape) {
            shape.scalar = width % 2 == 0 ? Dtype::h : Dtype::b;
            if (shape.unit != 2 || first) {
                add(kernel_of(mixed_plans(shape, {}).at(0), shape, {}).value());
            }
            first = false;
        });
        int choice = width;
        for_each_row_shape(width, width, [&](const MixedShape& shape) {
            if (choice++ % 5 == 0) {
                add(kernel_of(mixed_plans(shape, {}).at(0), shape, {}).value());
            }
        });
    }
    for (const auto& [m, n] : {std::pair{1, 1}, {3, 5}, {8, 8}, {17, 64}, {64, 64}}) {
        for (const int words : {1, 2}) {
            const WideShape shape{m, n, words};
            add(kernel_of(wide_plan(shape), shape, {}).value());
        }
    }

    const auto all = batch.compile_all();

    report("mixed precision, sm_90", all);
    for (const Resources& kernel : all) {
        EXPECT_LE(kernel.spilled_bytes, 64) << kernel.expression;
    }
}

}  // namespace
}  // namespace quiver::cuda
