// SPDX-License-Identifier: BSD-3-Clause
// Compiles the device sources, without a GPU, and reads registers and spills from the compiler's
// log. Each test compiles a random part of its instances; with QUIVER_TEST_ALL_CASES 20 times as
// many.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"
#include "kernels/checksum.hpp"
#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/mtsm_plan.hpp"
#include "kernels/cuda/nvrtc_compile.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/plan_fields.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/cuda/shipped_tuning.hpp"
#include "kernels/cuda/spmmv_tiling.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/operations/spmmv.hpp"
#include "tests/kernels/cuda/compiled_kernels.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::cuda {
namespace {

/// The plan of the shipped table, or the model's first choice if the table has none.
template <class Plan>
Plan planned(const ProductShape& shape, const Machine& machine,
             std::vector<Plan> (*all)(const ProductShape&, const Machine&, std::size_t)) {
    static const TuningTable shipped = [] {
        TuningTable table;
        table.add(shipped_tuning(), "the shipped tuning table");
        return table;
    }();
    const std::string* row =
        machine.bulk_copies ? shipped.find(operation_of<Plan>, shape) : nullptr;
    if (row != nullptr) {
        return plan_of<Plan>(*row).value();
    }
    const std::vector<Plan> plans = all(shape, machine, 1);
    EXPECT_FALSE(plans.empty()) << operation_of<Plan> << " " << shape.m << "x" << shape.n;
    return plans.empty() ? Plan{} : plans.front();
}

/// The layout of a block without gaps at an aligned address.
Layout plain(const ProductShape& shape, int columns) {
    return Layout::of(nullptr, columns, columns, shape.scalar_bytes());
}

void add_products(Batch& batch, const char* arch, Dtype scalar, int m, int n) {
    const Machine machine = machine_of(arch);
    for (const bool same : {false, true}) {
        if (m <= widest_panel && n <= widest_panel && (!same || m == n)) {
            const ProductShape shape(scalar, m, n, same);
            const auto plan = planned<TsmttsmPlan>(shape, machine, tsmttsm_plans);
            const auto kernel = kernel_of(plan, shape, plain(shape, m), plain(shape, n), machine);
            ASSERT_TRUE(kernel) << to_text(plan);
            batch.add("tsmttsm.cuh", arch, kernel->expression);
        }
    }
    const ProductShape shape(scalar, m, n);
    if (m > widest_panel && tsmm_plans(shape, machine, 1).empty()) {
        return;  // computed in panels
    }
    const auto plan = planned<TsmmPlan>(shape, machine, tsmm_plans);
    const auto kernel = kernel_of(plan, shape, plain(shape, m), plain(shape, n), machine);
    ASSERT_TRUE(kernel) << to_text(plan);
    batch.add("tsmm.cuh", arch, kernel->expression);
}

/// Adds tsmm with two sources, and tsmm_gram, for shapes that have a fused kernel.
void add_fused(Batch& batch, const char* arch, Dtype scalar, int m, int n) {
    const Machine machine = machine_of(arch);
    const auto pair = ProductShape::pair(scalar, m, n);
    const auto pairs = tsmm_plans(pair, machine, 1);
    if (!pairs.empty()) {
        const auto kernel = kernel_of(pairs.front(), pair, plain(pair, m), plain(pair, n), machine);
        ASSERT_TRUE(kernel) << to_text(pairs.front());
        batch.add("tsmm.cuh", arch, kernel->expression);
    }
    ProductShape shape(scalar, m, n);
    for (const bool adds : {false, true}) {
        shape.adds = adds;
        const auto plans = tsmm_gram_plans(shape, machine, 1);
        if (!plans.empty()) {
            const auto kernel =
                kernel_of(plans.front(), shape, plain(shape, m), plain(shape, n), machine);
            ASSERT_TRUE(kernel) << to_text(plans.front().update);
            batch.add("tsmm_gram.cuh", arch, kernel->expression);
        }
    }
}

/// Calls f(source, expression) for column operations, checksums, the kernels that convert sparse
/// matrices, and some sparse products.
template <class T, class F>
void for_each_column_kernel(F&& f) {
    const std::string name = device_name<T>();
    for (const char* kernel :
         {"axpby", "dots", "gather_columns", "gather_columns_in_place", "gather_rows", "fill"}) {
        f("column_ops.cuh", instance(kernel, name));
    }
    f("csr.cuh", instance("csr_to_chunks", name, "long", "long"));
    f("csr.cuh", instance("check_values", name));
    f("csr.cuh", instance("count_entries", sizeof(T) > 8 ? "long" : "int"));
    f("csr.cuh", instance("diagonal_blocks", name, sizeof(T) > 8 ? "long" : "int"));
    f("csr.cuh", instance("rows_of_blocks", sizeof(T) > 8 ? "long" : "int"));
    for (const KernelInstance& kernel : csr_kernels<T, std::int32_t>()) {
        f(kernel.source, kernel.expression);
    }
    for (const KernelInstance& kernel : csr_kernels<T, std::int64_t>()) {
        f(kernel.source, kernel.expression);
    }
    f("random.cuh", instance("fill_random", name));
    f("gram_factor.cuh", instance("gram_factor", name));
    for (const bool given : {false, true}) {
        for (const bool words : {false, true}) {
            f("checksum.cuh",
              instance("checksum", name, device_name<checksum_t<T>>(), given, words));
        }
    }
    std::set<std::string> products;
    for (const int width : {1, 2, 3, 4, 5, 8, 16, 31, 32, 64}) {
        for (const std::size_t align : {alignof(T), std::size_t{16}}) {
            // Chunks of 32 rows, and compressed rows, most of them apart; seven entries per row.
            for (const int chunk : {32, 1}) {
                for (const auto ending :
                     {SpmmvEnding::scaled, SpmmvEnding::fused,
                      width % 3 == 2 ? SpmmvEnding::dotted_xx : SpmmvEnding::dotted,
                      SpmmvEnding::summed}) {
                    const int sums =
                        ending == SpmmvEnding::summed ? std::array{0, 1, 10}[width % 3] : 0;
                    const SpmmvTiling tiling({.scalar_bytes = sizeof(T),
                                              .width = width,
                                              .align = align,
                                              .chunk = chunk,
                                              .row_entries = 7,
                                              .halo = width % 2 == 0,
                                              .fused = ending == SpmmvEnding::fused,
                                              .dots = has_dots(ending),
                                              .sums = ending == SpmmvEnding::summed,
                                              .apart = chunk == 1 && width < 64});
                    const bool wide = width == (has_dots(ending) ? 5 : 4);
                    const bool checked = width == 3 || width == 8 || wide;
                    products.insert(expression<T>(tiling, wide ? "long" : "int", width % 2 == 0,
                                                  ending, checked, sums));
                }
            }
        }
    }
    for (const std::string& product : products) {
        f("spmmv.cuh", product);
    }
}

template <class F>
void for_each_conversion(F&& f) {
    const std::vector<std::string> real = {device_name<float>(), device_name<double>(),
                                           device_name<half_t>(), device_name<bfloat16_t>()};
    const std::vector<std::string> complex = {device_name<std::complex<float>>(),
                                              device_name<std::complex<double>>()};
    for (const auto& family : {real, complex}) {
        for (const auto& from : family) {
            for (const auto& to : family) {
                f("convert.cuh", instance("convert", from, to));
            }
        }
    }
}

TEST(Nvrtc, CompilesProductsInDoubleWithoutSpills) {
    Batch batch(16);
    for (int width = 1; width <= widest_panel; ++width) {
        add_products(batch, "sm_90", Dtype::d, width, width);
        const bool dots = width % 2 == 0;
        const SpmmvTiling tiling({.scalar_bytes = sizeof(double),
                                  .width = width,
                                  .align = 16,
                                  .chunk = width % 3 == 0 ? 1 : 32,
                                  .row_entries = 7,
                                  .halo = width % 4 > 1,
                                  .dots = dots});
        batch.add("spmmv.cuh", "sm_90",
                  expression<double>(tiling, "int", width % 4 > 1,
                                     !dots            ? SpmmvEnding::scaled
                                     : width % 4 == 0 ? SpmmvEnding::dotted_xx
                                                      : SpmmvEnding::dotted,
                                     width % 3 == 1));
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 4U * widest_panel);
    EXPECT_EQ(report("tsmttsm, tsmm and spmmv in double, sm_90", all), 0);
}

/// Expects no spills. Sparse products with checksums use all registers; they may spill a few bytes
/// outside of their loops. The ending of such a kernel is the last template argument but one.
void expect_few_spills(const std::vector<Resources>& all) {
    for (const Resources& kernel : all) {
        const std::size_t end = kernel.expression.rfind(',');
        const std::size_t begin = kernel.expression.rfind(',', end - 1);
        const bool summed = kernel.expression.find("::spmmv") != std::string::npos &&
                            std::stoi(kernel.expression.substr(begin + 1, end - begin - 1)) >=
                                static_cast<int>(SpmmvEnding::summed);
        EXPECT_LE(kernel.spilled_bytes, summed ? 80 : 0) << kernel.expression;
    }
}

template <class T>
void add_summed(Batch& batch) {
    for (const int width : {1, 4, 8, 16, 20, 32}) {
        const int all = spmmv_weighs_y | spmmv_weighs_x | spmmv_plain_x;
        const int x_and_dots = spmmv_weighs_x | spmmv_dots_xy;
        for (const int sums :
             {spmmv_weighs_y + 0, width <= (is_complex_v<T> ? 8 : 16) ? all : x_and_dots}) {
            const bool halo = width % 8 != 0;
            const SpmmvTiling tiling({.scalar_bytes = sizeof(T),
                                      .width = width,
                                      .align = 16,
                                      .chunk = 32,
                                      .row_entries = 7,
                                      .halo = halo,
                                      .sums = true});
            batch.add("spmmv.cuh", "sm_90",
                      expression<T>(tiling, "int", halo, SpmmvEnding::summed, true, sums));
        }
    }
}

TEST(Nvrtc, CompilesProductsWithChecksumsWithFewSpills) {
    Batch batch(6);
    add_summed<double>(batch);
    add_summed<std::complex<double>>(batch);

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 24U);
    report("spmmv with checksums, sm_90", all);
    expect_few_spills(all);
}

TEST(Nvrtc, CompilesStreamedProductsWithFewSpills) {
    Batch batch(8);
    std::set<std::string> seen;
    std::set<std::string> wide;
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (const ProductShape& shape : ProductShape::streamed_products(scalar)) {
            for (const Layout& layout : {Layout{}, Layout::any(shape.scalar_bytes())}) {
                const auto plan = tsmm_plans(shape, Machine{}, 1).at(0);
                const auto kernel = kernel_of(plan, shape, layout, layout, Machine{});
                ASSERT_TRUE(kernel) << to_text(plan);
                if (seen.insert(kernel->expression).second) {
                    batch.add(kernel->source, "sm_90", kernel->expression);
                }
                if (shape.n > 16) {
                    wide.insert(kernel->expression);
                }
            }
        }
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 50u);
    report("streamed tsmm, sm_90", all);
    for (const Resources& kernel : all) {
        // The sums of 16 rows and 64 complex columns or more leave few registers for addresses.
        EXPECT_LE(kernel.spilled_bytes, wide.contains(kernel.expression) ? 32 : 0)
            << kernel.expression;
    }
}

TEST(Nvrtc, CompilesStreamedSumsWithFewSpills) {
    Batch batch(15);
    std::set<std::string> seen;
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (const ProductShape& shape : ProductShape::streamed_sums(scalar)) {
            const Layout any = Layout::any(shape.scalar_bytes());
            for (const Layout& layout : {Layout{}, any}) {
                const auto plan = tsmttsm_plans(shape, Machine{}, 1).at(0);
                const auto kernel = kernel_of(plan, shape, layout, any, Machine{});
                ASSERT_TRUE(kernel) << to_text(plan);
                for (const char* name : {"streamed_tsmttsm", "streamed_weighted_tsmttsm"}) {
                    const std::string instance = with_template(kernel->expression, name);
                    if (seen.insert(instance).second) {
                        batch.add(kernel->source, "sm_90", instance);
                    }
                }
            }
        }
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 224u);
    report("streamed tsmttsm, sm_90", all);
    for (const Resources& kernel : all) {
        // The fastest plan for this shape has 128 sums in a thread.
        const bool has_many_sums =
            kernel.expression.find(".m=512,.n=16,.same=false,.tile_m=8") != std::string::npos;
        EXPECT_LE(kernel.spilled_bytes, has_many_sums ? 136 : 0) << kernel.expression;
    }
}

/// Lanes with different signs must stay in one loop. If the compiler makes two loops of it, every
/// product occurs twice, and the lanes of a warp wait for one another forever.
TEST(Nvrtc, LanesOfComplexTensorProductsShareOneLoop) {
    const ProductShape shape(Dtype::z, 58, 46);
    TsmmPlan plan;
    plan.tensor = true;
    plan.stages = 2;
    plan.team = plan.threads = 96;
    const Layout gaps{false, 16, true};
    const auto kernel = kernel_of(plan, shape, gaps, gaps, Machine{});
    ASSERT_TRUE(kernel);
    const std::string ptx = compile({kernel->source, {kernel->expression}, "compute_90"}).image;
    int products = 0;
    for (auto at = ptx.find("mma.sync"); at != std::string::npos;
         at = ptx.find("mma.sync", at + 1)) {
        ++products;
    }
    const int tiles = 2 * 46 / 8 + 1;
    EXPECT_EQ(products, 2 * tiles) << "the loop is unrolled twice";
}

TEST(Nvrtc, CompilesFusedProductsInDoubleWithoutSpills) {
    Batch batch(8);
    for (int width = 1; width <= widest_panel; width += width < 4 ? 1 : 5) {
        add_fused(batch, "sm_90", Dtype::d, width, width);
    }

    const auto all = batch.compile_all();

    EXPECT_GT(batch.offered(), 40u);
    EXPECT_EQ(report("two sources, and updates with sums, in double, sm_90", all), 0);
}

TEST(Nvrtc, CompilesSomeOfEverythingElse) {
    auto generator = test::make_generator();
    Batch batch(30);
    for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
        const auto add = [&](const char* source, const std::string& expression) {
            if (generator() % 20 == 0) {
                batch.add(source, arch, expression);
            }
        };
        for (const Dtype dtype : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
            for (const int m : {1, 2, 3, 5, 8, 11, 16, 17, 32, 48, 63, 64, 100, 200}) {
                for (const int n : {1, 2, 4, 7, 8, 12, 16, 31, 32}) {
                    // Planning takes long, too.
                    if (generator() % 20 == 0) {
                        add_products(batch, arch, dtype, m, n);
                        add_fused(batch, arch, dtype, m, n);
                    }
                }
            }
            visit_dtype(dtype, [&]<class T>() { for_each_column_kernel<T>(add); });
        }
        for_each_conversion(add);
    }

    const auto all = batch.compile_all();

    EXPECT_GT(batch.offered(), 300u);
    report("all scalars, sm_80, sm_90, sm_100", all);
}

TEST(Nvrtc, CompilesAtomicSums) {
    Batch batch;
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (const auto& [m, n, same] :
             {std::tuple{3, 3, false}, {3, 3, true}, {16, 16, true}, {40, 4, false}}) {
            const ProductShape shape(scalar, m, n, same);
            auto plan = planned<TsmttsmPlan>(shape, {}, tsmttsm_plans);
            plan.atomics = true;
            const auto kernel = kernel_of(plan, shape, plain(shape, m), plain(shape, n), {});
            ASSERT_TRUE(kernel) << to_text(plan);
            batch.add("tsmttsm.cuh", "sm_90", kernel->expression);
        }
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(all.size(), 16u);
    report("tsmttsm with atomics, sm_90", all);
    for (const Resources& kernel : all) {
        // If the plan uses all registers, two of them may be spilled for the addresses in C, after
        // the sums.
        EXPECT_LE(kernel.spilled_bytes, 8) << kernel.expression;
    }
}

TEST(Nvrtc, CompilesColumnKernelsAndSparseProductsInDouble) {
    Batch batch(8);
    const auto add = [&](const char* source, const std::string& expression) {
        batch.add(source, "sm_90", expression);
    };
    for_each_column_kernel<double>(add);
    for_each_conversion(add);

    const auto all = batch.compile_all();

    report("column operations, spmmv, convert, sm_90", all);
    expect_few_spills(all);
}

/// Adds the kernel of the model's first choice for large matrices without gaps.
void add_mtsm(Batch& batch, const char* arch, Dtype a, int n, bool along_sum, bool conjugated) {
    MtsmShape shape;
    shape.a = a;
    shape.scalar = a == Dtype::h || a == Dtype::b ? Dtype::s : a;
    shape.n = n;
    shape.along_sum = along_sum;
    shape.conjugated = conjugated;
    shape.unit_x = Layout::of(nullptr, n, n, shape.scalar_bytes()).unit;
    const auto plans = mtsm_plans(shape, machine_of(arch));
    ASSERT_FALSE(plans.empty()) << n;
    batch.add("mtsm.cuh", arch,
              kernel_of(plans.front(), shape, machine_of(arch)).value().expression);
}

TEST(Nvrtc, CompilesMtsmWithoutSpills) {
    Batch batch(8);
    for (const bool along_sum : {false, true}) {
        for (const int n : {1, 2, 5, 8, 16, 32, 64}) {
            add_mtsm(batch, "sm_90", Dtype::d, n, along_sum, false);
        }
        for (const Dtype a : {Dtype::s, Dtype::c, Dtype::z, Dtype::h}) {
            const bool is_complex = a == Dtype::c || a == Dtype::z;
            add_mtsm(batch, "sm_90", a, along_sum ? 3 : 16, along_sum, is_complex);
            add_mtsm(batch, "sm_90", a, 32, along_sum, false);
        }
        add_mtsm(batch, "sm_90", Dtype::h, 64, along_sum, false);
        add_mtsm(batch, "sm_90", Dtype::b, 24, along_sum, false);
        add_mtsm(batch, "sm_80", Dtype::z, 16, along_sum, true);
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 36u);
    EXPECT_EQ(report("mtsm, sm_90 and sm_80", all), 0);
}

TEST(Nvrtc, CompilesShiftedMtsmWithoutSpills) {
    Batch batch(4);
    for (const bool along_sum : {false, true}) {
        for (const int n : {1, 2, 4, 8, 13, 16, 20, 24}) {
            MtsmShape shape;
            shape.a = shape.scalar = Dtype::s;
            shape.n = n;
            shape.along_sum = shape.x_rows = along_sum;
            shape.unit_a = 4;
            shape.unit_x = along_sum ? Layout::of(nullptr, n, n, sizeof(float)).unit : 4;
            const MtsmPlan plan = mtsm_plans(shape, Machine{}).front();
            ASSERT_TRUE(plan.shifted);
            const auto kernel = kernel_of(plan, shape, Machine{});
            batch.add(kernel->source, "sm_90", kernel->expression);
        }
    }

    const auto all = batch.compile_all();

    EXPECT_EQ(batch.offered(), 16u);
    EXPECT_EQ(report("shifted mtsm, sm_90", all), 0);
}

/// Plans that only experiments use (plan_fields.hpp).
TEST(Nvrtc, CompilesPlansOfExperiments) {
    Batch batch(2);
    const auto add = [&]<class Plan>(const typename Plan::Request& request, const char* fields) {
        for (const auto& [clocks, plan] : plans_with<Plan>(request, {}, PlanFields(fields), 1)) {
            const auto kernel = kernel_of(plan, request, {});
            batch.add(kernel->source, "sm_90", kernel->expression);
        }
    };
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::z}) {
        for (const int width : {5, 8, 32}) {
            const ProductShape shape(scalar, width, width);
            const Served request{shape, plain(shape, width), plain(shape, width)};
            add.operator()<TsmttsmPlan>(request, "tensor=0 stages=1");
            add.operator()<TsmttsmPlan>(request, "tensor=0 stages=3 blocked=1 unroll=8");
            add.operator()<TsmttsmPlan>(request, "stages=1");
            add.operator()<TsmmPlan>(request, "stages=1");
        }
        MtsmShape shape;
        shape.a = shape.scalar = scalar;
        shape.n = 16;
        for (const char* const fields :
             {"plain=1 direct=0", "plain=2 direct=0", "plain=0 direct=0 stages=1"}) {
            add.operator()<MtsmPlan>(shape, fields);
        }
    }
    MixedShape mixed;
    mixed.m = mixed.n = 3;
    add.operator()<MixedPlan>(mixed, "fold=1");

    const auto all = batch.compile_all();

    EXPECT_GT(batch.offered(), 40u);
    report("plans of experiments, sm_90", all);
}

TEST(Nvrtc, CompilesDirectMtsmWithoutSpills) {
    Batch batch(8);
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (const int n : {1, 2, 4, 7, 8, 12, 16, 20}) {
            for (const int unit : {4, 8, 16}) {
                MtsmShape shape;
                shape.a = shape.scalar = scalar;
                shape.n = n;
                shape.conjugated = scalar == Dtype::c;
                shape.unit_a = shape.unit_y = unit;
                shape.log_m = 20;
                shape.log_k = 4;
                const auto plans = mtsm_plans(shape, Machine{});
                const auto plan = std::find_if(plans.begin(), plans.end(),
                                               [](const MtsmPlan& each) { return each.direct; });
                if (plan != plans.end()) {
                    const auto kernel = kernel_of(*plan, shape, Machine{});
                    batch.add(kernel->source, "sm_90", kernel->expression);
                }
            }
        }
    }

    const auto all = batch.compile_all();

    EXPECT_GT(batch.offered(), 60u);
    EXPECT_EQ(report("direct mtsm, sm_90", all), 0);
}

/// The model never chooses these. Tests of random plans run them.
TEST(Nvrtc, CompilesShiftedMtsmOfOtherScalars) {
    Batch batch;
    for (const Dtype a : {Dtype::d, Dtype::c, Dtype::z}) {
        for (const bool along_sum : {false, true}) {
            MtsmShape shape;
            shape.a = shape.scalar = a;
            shape.n = 8;
            shape.along_sum = shape.x_rows = along_sum;
            shape.unit_a = a == Dtype::c ? 4 : 8;
            const auto plans = mtsm_plans(shape, Machine{});
            const auto plan = std::find_if(plans.begin(), plans.end(),
                                           [](const MtsmPlan& each) { return each.shifted; });
            ASSERT_NE(plan, plans.end());
            const auto kernel = kernel_of(*plan, shape, Machine{});
            batch.add(kernel->source, "sm_90", kernel->expression);
        }
    }
    const auto all = batch.compile_all();
    EXPECT_EQ(all.size(), 6u);
    report("shifted mtsm of other scalars, sm_90", all);
}

TEST(Nvrtc, NamesTheCodeAndTheFirstErrors) {
    try {
        compile({"column_ops.cuh", {"quiver::fill<quadruple>"}, "sm_90"});
        FAIL() << "a type that does not exist was compiled";
    } catch (const DeviceError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("NVRTC_ERROR_"), std::string::npos) << text;
        EXPECT_NE(text.find("\"quadruple\" is undefined"), std::string::npos) << text;
        EXPECT_NE(text.find("quiver::fill<quadruple>"), std::string::npos) << text;
    }
    EXPECT_THROW(compile({"no_such_source.cuh", {}, "sm_90"}), DeviceError);
    EXPECT_THROW(compile({"column_ops.cuh", {"quiver::fill<float>"}, "sm_1"}), DeviceError);
}

TEST(Nvrtc, TakesPtxForDevicesItDoesNotKnow) {
    EXPECT_EQ(arch_for(9, 0), "sm_90");
    EXPECT_EQ(arch_for(8, 0), "sm_80");
    EXPECT_THROW(arch_for(1, 0), DeviceError);
    const std::string newest = arch_for(99, 0);
    ASSERT_EQ(newest.rfind("compute_", 0), 0u) << newest;

    const auto program = compile({"column_ops.cuh", {"quiver::fill<float>"}, newest});

    EXPECT_NE(program.image.find(".entry " + program.lowered_names.front()), std::string::npos);
    EXPECT_EQ(program.image.back(), '\0');
}

}  // namespace
}  // namespace quiver::cuda
