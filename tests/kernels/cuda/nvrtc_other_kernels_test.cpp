// SPDX-License-Identifier: BSD-3-Clause
// As nvrtc_test.cpp, for k-means, Gram matrices in higher precision, Hamiltonians, sums over peers,
// ceilings and batches.
#include <complex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/batched_tiling.hpp"
#include "kernels/cuda/ceilings.hpp"
#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/gram_twofold_tiling.hpp"
#include "kernels/cuda/hamiltonian_launch.hpp"
#include "kernels/cuda/kmeans_tiling.hpp"
#include "kernels/cuda/nvrtc_compile.hpp"
#include "kernels/cuda/shifted_gram_tiling.hpp"
#include "kernels/cuda/tiling.hpp"
#include "tests/kernels/cuda/compiled_kernels.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::cuda {
namespace {

template <class In, class T>
void add_kmeans(Batch& batch, const char* arch) {
    for (const int d : {1, 2, 3, 7, 16, 31, 32, 64}) {
        const KmeansTiling tiling(sizeof(T), d, 64, machine_of(arch).shared_per_block);
        batch.add("kmeans_step.cuh", arch, expression<In, T>(tiling, d));
    }
}

TEST(Nvrtc, CompilesKmeansWithoutSpills) {
    Batch batch(6);
    for (const char* arch : {"sm_80", "sm_90"}) {
        add_kmeans<float, float>(batch, arch);
        add_kmeans<double, double>(batch, arch);
        add_kmeans<half_t, float>(batch, arch);
        add_kmeans<bfloat16_t, float>(batch, arch);
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 64u);
    EXPECT_EQ(report("k-means, sm_80, sm_90", all), 0);
}

/// Aligned rows without gaps, and rows at any address.
template <class In, class T>
void add_kmeans_products(Batch& batch, const char* arch) {
    const std::size_t limit = machine_of(arch).shared_per_block;
    for (const int d : {3, 8, 15, 16, 17, 31, 32, 48, 63, 64}) {
        for (const int k : {3, 64}) {
            for (const std::int64_t ld : {d, d + 3}) {
                const Layout x = Layout::of(nullptr, d, ld, sizeof(In));
                const KmeansProductsTiling tiling(sizeof(In), sizeof(T), d, k, x, limit);
                batch.add("kmeans_products.cuh", arch, expression<In, T>(tiling));
            }
        }
    }
}

TEST(Nvrtc, CompilesKmeansOnTensorCoresWithoutSpills) {
    Batch batch(40);
    for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
        add_kmeans_products<float, float>(batch, arch);
        add_kmeans_products<double, double>(batch, arch);
        add_kmeans_products<half_t, float>(batch, arch);
        add_kmeans_products<bfloat16_t, float>(batch, arch);
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 480u);
    EXPECT_EQ(report("k-means on tensor cores, sm_80, sm_90, sm_100", all), 0);
}

/// Panels on the diagonal with aligned and with odd rows, and panels beside it.
template <class In>
void add_shifted_grams(Batch& batch, const char* arch) {
    const std::size_t shared = machine_of(arch).shared_per_block;
    const auto add = [&](const GramPanel& panel, std::int64_t ld, bool scaled) {
        const auto layout = [&](int columns) {
            return Layout::of(nullptr, columns, ld, sizeof(In));
        };
        const ShiftedGramTiling tiling(sizeof(In), panel, layout(panel.m), layout(panel.n), scaled,
                                       shared);
        EXPECT_LE(tiling.shared_bytes * static_cast<std::size_t>(tiling.config.blocks), shared);
        batch.add("shifted_gram.cuh", arch, expression<In>(tiling));
    };
    for (const int n : {1, 3, 8, 17, 31, 32, 33, 48, 56, 63, 64}) {
        add(GramPanel{0, n, 0, n}, n, n == 32);
    }
    add(GramPanel{0, 64, 0, 64}, 77, true);
    add(GramPanel{0, 40, 40, 33}, 73, false);
    add(GramPanel{0, 64, 64, 64}, 128, false);
    add(GramPanel{64, 64, 128, 62}, 190, true);
}

TEST(Nvrtc, CompilesShiftedGramsWithoutSpills) {
    Batch batch(9);
    for (const char* arch : {"sm_80", "sm_90"}) {
        add_shifted_grams<float>(batch, arch);
        add_shifted_grams<double>(batch, arch);
        add_shifted_grams<half_t>(batch, arch);
        add_shifted_grams<bfloat16_t>(batch, arch);
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 120u);
    EXPECT_EQ(report("shifted Gram matrices, sm_80, sm_90", all), 0);
}

/// Devices with less shared memory have smaller tilings, or none.
TEST(GramTwofoldTiling, FitsIntoLittleSharedMemory) {
    for (const int kilobytes : {48, 64, 99, 163, 227}) {
        for (int n = 1; n <= widest_panel; ++n) {
            const GramTwofoldTiling tiling(n, Layout{}, static_cast<std::size_t>(kilobytes) << 10);
            if (tiling.shared_bytes == 0) {
                EXPECT_LT(kilobytes, 163) << n;
                continue;
            }
            const GramTwofoldConfig& config = tiling.config;
            EXPECT_GE(config.threads, 32 * config.team) << n;
            EXPECT_GE(config.rows, 32) << n;
            EXPECT_EQ(config.rows / 32 % (config.threads / 32 / config.team), 0) << n;
        }
    }
}

TEST(Nvrtc, CompilesTwofoldGramsWithoutSpills) {
    Batch batch(40);
    for (const char* arch : {"sm_80", "sm_90"}) {
        const std::size_t shared = machine_of(arch).shared_per_block;
        batch.add("gram_twofold.cuh", arch, instance("column_maxima", block_threads));
        for (int n = 1; n <= widest_panel; ++n) {
            for (const std::int64_t ld : {n, n + 1}) {
                const GramTwofoldTiling tiling(n, Layout::of(nullptr, n, ld, sizeof(double)),
                                               shared);
                EXPECT_LE(tiling.shared_bytes * static_cast<std::size_t>(tiling.config.blocks),
                          shared);
                batch.add("gram_twofold.cuh", arch, expression(tiling));
            }
        }
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 258u);
    EXPECT_EQ(report("twofold Gram matrices, sm_80, sm_90", all), 0);
}

template <class T>
void add_hamiltonian(Batch& batch, const char* arch) {
    for (const int width : {1, 4, 8, 32, 64}) {
        for (const bool symmetric : {false, true}) {
            batch.add("hamiltonian.cuh", arch, hamiltonian_expression<T>(width, symmetric));
        }
    }
}

TEST(Nvrtc, CompilesHamiltoniansWithoutSpills) {
    Batch batch(8);
    add_hamiltonian<float>(batch, "sm_90");
    add_hamiltonian<double>(batch, "sm_90");
    add_hamiltonian<std::complex<float>>(batch, "sm_90");
    add_hamiltonian<std::complex<double>>(batch, "sm_90");

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 40u);
    EXPECT_EQ(report("Hamiltonians, sm_90", all), 0);
}

/// The smallest block must fit into the shared memory of every GPU of packs, 99 KB.
TEST(KmeansTiling, FitsIntoSharedMemoryAndUsesWarps) {
    for (const std::size_t limit :
         {std::size_t{99} * 1024, std::size_t{163} * 1024, std::size_t{227} * 1024}) {
        for (const std::size_t bytes : {sizeof(float), sizeof(double)}) {
            for (int d = 1; d <= 64; ++d) {
                for (int k = 1; k <= 64; ++k) {
                    const KmeansTiling tiling(bytes, d, k, limit);
                    ASSERT_LE(tiling.shared_bytes, limit) << d << ", " << k;
                    ASSERT_TRUE(tiling.threads % 32 == 0 && tiling.threads >= 32);
                    ASSERT_TRUE(tiling.rows >= 1 && tiling.rows <= 4);
                }
            }
        }
    }
}

/// GPUs whose tensor cores k-means may use have at least 163 KB for a thread block.
TEST(KmeansProductsTiling, FitsIntoSharedMemoryForAllShapes) {
    for (const std::size_t limit : {std::size_t{163} * 1024, std::size_t{227} * 1024}) {
        for (const auto& [element, scalar] :
             {std::pair<std::size_t, std::size_t>{2, 4}, {4, 4}, {8, 8}}) {
            for (int d = 1; d <= 64; ++d) {
                for (int k = 1; k <= 64; ++k) {
                    const Layout x = Layout::of(nullptr, d, d, static_cast<int>(element));
                    const KmeansProductsTiling tiling(element, scalar, d, k, x, limit);
                    ASSERT_LE(tiling.shared_bytes, limit) << d << ", " << k;
                    const KmeansConfig& config = tiling.config;
                    ASSERT_TRUE(config.warps >= 4 && config.warps <= 16) << d << ", " << k;
                    ASSERT_EQ(config.warps % config.team, 0) << d << ", " << k;
                    // A copy starts at a multiple of its bytes, and a pair of elements at a
                    // multiple of two; fragments do not read past the row.
                    ASSERT_EQ(config.pitch * static_cast<int>(element) % config.bytes, 0);
                    ASSERT_EQ(config.pitch % 2, 0);
                    ASSERT_GE(config.pitch, (d + 3) / 4 * 4);
                }
            }
        }
    }
}

TEST(Nvrtc, CompilesSumsThroughPeerMemoryWithoutSpills) {
    Batch batch;
    for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
        batch.add("peer_sum.cuh", arch, instance("peer_sum", device_name<float>()));
        batch.add("peer_sum.cuh", arch, instance("peer_sum", device_name<double>()));
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(all.size(), 6u);
    EXPECT_EQ(report("sums through peer memory", all), 0);
}

TEST(Nvrtc, CompilesTheCeilingsWithoutSpills) {
    Batch batch;
    for (const TrafficForm& form : all_traffic_forms) {
        batch.add("ceilings.cuh", "sm_90", expression(Traffic::read, form));
        batch.add("ceilings.cuh", "sm_90", expression(Traffic::copy, form));
    }
    for (const Arithmetic arithmetic : all_arithmetic) {
        batch.add("ceilings.cuh", "sm_90", expression(arithmetic));
    }
    batch.add("ceilings.cuh", "sm_80", expression(Arithmetic::double_mma_8x8x4));

    const auto all = batch.compile_all();

    EXPECT_EQ(all.size(), 2 * std::size(all_traffic_forms) + std::size(all_arithmetic) + 1);
    EXPECT_EQ(report("ceilings", all), 0);
}

/// Calls f(source, expression) for LU and Cholesky of order n.
template <class T, class F>
void for_each_factorisation(int n, BatchPacking packing, bool by_rows, F&& f) {
    for (const auto factorisation : {Factorisation::lu, Factorisation::cholesky}) {
        const auto tiling = batched_tiling<T>(factorisation, n, packing, by_rows);
        f(factorisation == Factorisation::lu ? "batched_lu.cuh" : "batched_cholesky.cuh",
          expression<T>(factorisation, tiling, n));
    }
}

/// Calls f(source, expression) for kernels of batches.
template <class T, class F>
void for_each_batched_kernel(F&& f) {
    for (const bool by_rows : {false, true}) {
        for (const auto packing :
             {BatchPacking::packed, BatchPacking::general, BatchPacking::interleaved}) {
            const int largest = packing == BatchPacking::interleaved ? 16 : largest_in_registers;
            for (int n = 1; n <= largest; ++n) {
                for_each_factorisation<T>(n, packing, by_rows, f);
            }
        }
        for (const int n : {65, 100, 512}) {
            f("batched_cholesky.cuh", expression<T>(PanelTiling(sizeof(T), n, by_rows), by_rows));
        }
    }
    for (const int n : {3, 8, 16, 32, 64, 100, 200, 512}) {
        f("batched_solve.cuh", expression<T>(SolveTiling(n, n), true));
        f("batched_solve.cuh", expression<T>(SolveTiling(n, 1), false));
    }
    f("batched_solve.cuh",
      instance("batched_determinant", device_name<T>(), device_name<real_t<T>>()));
}

TEST(BatchedTiling, FitsIntoSharedMemoryAndCopiesWholeWords) {
    const auto check = [](const BatchedTiling& tiling, int n, std::size_t bytes) {
        // 99 KB is the smallest limit of the GPUs of packs; some notes are static.
        ASSERT_LE(tiling.shared_bytes, std::size_t{96} * 1024);
        ASSERT_TRUE(tiling.threads % 32 == 0 && tiling.matrices >= 1);
        ASSERT_TRUE(tiling.warps == 1 || tiling.matrices == 1);
        const auto piece = static_cast<int>(bytes) * n *
                           (tiling.pitch != n ? 1
                            : tiling.gap != 0 ? n
                                              : n * tiling.matrices);
        ASSERT_EQ(piece % tiling.word, 0);
        if (tiling.pitch != n) {
            ASSERT_EQ(tiling.pitch * static_cast<int>(bytes) % tiling.word, 0);
        }
    };
    for (const auto factorisation : {Factorisation::lu, Factorisation::cholesky}) {
        for (const bool by_rows : {false, true}) {
            for (int n = 1; n <= largest_in_registers; ++n) {
                SCOPED_TRACE(n);
                const auto packed = BatchPacking::packed;
                check(batched_tiling<float>(factorisation, n, packed, by_rows), n, 4);
                check(batched_tiling<double>(factorisation, n, packed, by_rows), n, 8);
                check(batched_tiling<std::complex<float>>(factorisation, n, packed, by_rows), n, 8);
                check(batched_tiling<std::complex<double>>(factorisation, n, packed, by_rows), n,
                      16);
            }
        }
    }
    const auto design = [](Factorisation factorisation, int n) {
        return batched_tiling<double>(factorisation, n, BatchPacking::packed, false).design;
    };
    EXPECT_EQ(design(Factorisation::lu, 8), BatchedDesign::by_thread);
    EXPECT_EQ(design(Factorisation::lu, 16), BatchedDesign::by_rows);
    EXPECT_EQ(design(Factorisation::lu, 64), BatchedDesign::by_panels);
    EXPECT_EQ(design(Factorisation::cholesky, 64), BatchedDesign::by_tiles);
}

TEST(Nvrtc, CompilesBatchedFactorisationsInDoubleWithFewSpills) {
    Batch batch(4);
    const auto add = [&](const char* source, const std::string& expression) {
        batch.add(source, "sm_90", expression);
    };
    // The smallest and largest orders of each design, and some in between.
    const std::vector<int> orders{1, 4, 8, 9, 16, 19, 23, 24, 32, 33, 48, 49, 64};
    for (const int n : orders) {
        for_each_factorisation<double>(n, BatchPacking::packed, n % 2 == 0, add);
    }
    add("batched_cholesky.cuh", expression<double>(PanelTiling(sizeof(double), 512, false), false));

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 2 * orders.size() + 1);
    report("batched LU and Cholesky in double, sm_90", all);
    for (const Resources& kernel : all) {
        // A few words of addresses may be spilled if the elements use all registers.
        EXPECT_LE(kernel.spilled_bytes, 32) << kernel.expression;
    }
}

TEST(Nvrtc, CompilesSomeBatchedKernelsOfAllScalars) {
    Batch batch(800);
    for (const Dtype dtype : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        visit_dtype(dtype, [&]<class T>() {
            for_each_batched_kernel<T>([&](const char* source, const std::string& expression) {
                batch.add(source, "sm_90", expression);
            });
        });
    }

    const auto all = batch.compile_all();

    EXPECT_GT(batch.offered(), 2000u);
    report("batched kernels of all scalars, sm_90", all);
}

}  // namespace
}  // namespace quiver::cuda
