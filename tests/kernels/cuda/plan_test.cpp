// SPDX-License-Identifier: BSD-3-Clause
// Tests plans and tuning tables. Needs no GPU.
#include "kernels/cuda/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "blockvec/error.hpp"
#include "kernels/cuda/batched_tiling.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/plan_fields.hpp"
#include "kernels/cuda/plan_listing.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/cuda/shipped_tuning.hpp"

namespace quiver::cuda {
namespace {

TEST(Plans, EveryRowOfTheShippedTableIsReadAndLegal) {
    TuningTable table;
    table.add(shipped_tuning(), "the shipped tuning table");
    for (const auto& [key, plan] : table.rows()) {
        char operation[8];
        char scalar = 0;
        int m = 0;
        int n = 0;
        char same[5] = "";
        ASSERT_GE(std::sscanf(key.c_str(), "%7s %c %dx%d %4s", operation, &scalar, &m, &n, same), 4)
            << key;
        const Dtype dtype = scalar == 's'   ? Dtype::s
                            : scalar == 'd' ? Dtype::d
                            : scalar == 'c' ? Dtype::c
                                            : Dtype::z;
        const ProductShape shape(dtype, m, n, std::string(same) == "same");
        const double clocks = std::string(operation) == "tsmm"
                                  ? model_clocks(plan_of<TsmmPlan>(plan).value(), shape, {})
                                  : model_clocks(plan_of<TsmttsmPlan>(plan).value(), shape, {});
        EXPECT_LT(clocks, HUGE_VAL) << key << " " << plan;
    }
}

TEST(Plans, TextIsReadBackAndOtherTextRefused) {
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        const ProductShape shape(scalar, 7, 7);
        for (auto plan : tsmttsm_plans(shape, {}, 20)) {
            EXPECT_EQ(plan_of<TsmttsmPlan>(to_text(plan)), plan);
            EXPECT_FALSE(plan.atomics) << "a search finds only reproducible plans";
            const std::string text = to_text(plan);
            plan.atomics = true;
            EXPECT_EQ(to_text(plan), text + " atomics");
            EXPECT_EQ(plan_of<TsmttsmPlan>(to_text(plan)), plan);
        }
        for (const auto& plan : tsmm_plans(shape, {}, 20)) {
            EXPECT_EQ(plan_of<TsmmPlan>(to_text(plan)), plan);
        }
    }
    const std::string whole = "tile_m=1 tile_n=1 vector=1 rows=8 stages=3 team=32 threads=128 ";
    EXPECT_TRUE(plan_of<TsmttsmPlan>(whole + "blocks=2 atomics"));
    for (const std::string& text :
         {std::string(), std::string("tensor"), whole, whole + "blocks", whole + "blocks=",
          whole + "blocks=2x", whole + "blocks=2 blocks=2", whole + "blocks=2 atomic",
          whole + "blocks=2 atomics=1", whole + "blocks=2 atomics atomics",
          std::string("fma 1x1x1 rows 8x3 copy team 32/128 blocks 2")}) {
        EXPECT_FALSE(plan_of<TsmttsmPlan>(text)) << text;
        EXPECT_FALSE(plan_of<TsmmPlan>(text)) << text;
    }
    TuningTable table;
    EXPECT_NO_THROW(table.add("# a comment\n\n", "empty"));
    try {
        table.add("\ntsmttsm d 8x8 tensor tile_m=1\n", "bad.txt");
        FAIL() << "an incomplete plan was accepted";
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("bad.txt, line 2"), std::string::npos)
            << error.what();
    }
}

TEST(Plans, AtomicsAreAnotherKernelOfTheSameGeometry) {
    const ProductShape shape(Dtype::z, 8, 8, true);
    TsmttsmPlan plan = tsmttsm_plans(shape, {}, 1).at(0);
    const PlannedKernel sums = kernel_of(plan, shape, {}, {}, {}).value();
    plan.atomics = true;
    const PlannedKernel adds = kernel_of(plan, shape, {}, {}, {}).value();
    EXPECT_FALSE(sums.atomics);
    EXPECT_TRUE(adds.atomics);
    EXPECT_NE(adds.expression, sums.expression);
    EXPECT_EQ(adds.threads, sums.threads);
    EXPECT_EQ(adds.shared_bytes, sums.shared_bytes);
    EXPECT_EQ(adds.rows, sums.rows);
}

TEST(Plans, ATableIsReadFromItsFile) {
    const std::string path = ::testing::TempDir() + "quiver_tuning_" + std::to_string(getpid());
    const ProductShape shape(Dtype::d, 8, 8);
    const std::string plan = to_text(tsmm_plans(shape, {}, 1).at(0));
    std::ofstream(path) << "gpu 9.0 NVIDIA H200\ntsmm d 8x8 " << plan << "\n";

    TuningTable table;
    table.add_file(path);
    std::remove(path.c_str());
    table.add_file(path);  // a missing file is no error

    ASSERT_NE(table.find("tsmm", shape), nullptr);
    EXPECT_EQ(*table.find("tsmm", shape), plan);
    EXPECT_EQ(table.find("tsmttsm", shape), nullptr);
}

/// A tuning file that planners read during the lifetime of this object.
class TuningFile {
  public:
    explicit TuningFile(const std::string& text)
        : path_(::testing::TempDir() + "quiver_tuned_" + std::to_string(getpid())) {
        std::ofstream(path_) << text;
        setenv("QUIVER_TUNING", path_.c_str(), 1);
    }
    TuningFile(const TuningFile&) = delete;
    TuningFile& operator=(const TuningFile&) = delete;
    ~TuningFile() {
        unsetenv("QUIVER_TUNING");
        std::remove(path_.c_str());
    }

  private:
    std::string path_;
};

TEST(Plans, ATableIsForTheGpusOfItsComputeCapability) {
    const ProductShape shape(Dtype::d, 8, 8);
    const TsmmPlan favourite = tsmm_plans(shape, {}, 1).at(0);
    const TsmmPlan other = tsmm_plans(shape, {}, 9).at(8);
    const std::string row = "tsmm d 8x8 " + to_text(other) + "\n";
    Machine hopper;
    Machine blackwell;
    blackwell.capability = 100;
    for (const auto& [gpu, machine, is_used] : {std::tuple{"gpu 9.0 NVIDIA H100\n", hopper, true},
                                                {"gpu 9.0 NVIDIA H200\n", blackwell, false},
                                                {"gpu 10.0 NVIDIA B200\n", blackwell, true}}) {
        const TuningFile file(gpu + row);
        Context ctx;
        std::string told;
        ctx.set_event_sink([&](const Event& event) {
            if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
                told = fallback->what;
            }
        });
        Planner planner(ctx, machine);
        const auto plan = planner.plan<TsmmPlan>({shape, {}, {}});
        EXPECT_EQ(plan, is_used ? other : favourite) << gpu;
        EXPECT_EQ(told.empty(), is_used) << told;
        EXPECT_TRUE(is_used || told.find("NVIDIA H200 (compute capability 9.0)") < told.size())
            << told;
    }
    TuningTable table;
    EXPECT_NO_THROW(table.require(blackwell, "none.txt")) << "a table without rows";
    table.add("gpu 9.0 NVIDIA H200\n" + row, "h200.txt");
    EXPECT_NO_THROW(table.require(hopper, "h200.txt"));
    EXPECT_THROW(table.require(blackwell, "h200.txt"), InputError);
    for (const char* gpu : {"", "gpu\n", "gpu 9\n", "gpu nine NVIDIA H200\n"}) {
        TuningTable unnamed;
        EXPECT_THROW(unnamed.add(gpu + row, "old.txt"), InputError) << gpu;
    }
}

/// A block without gaps at an aligned address.
Layout gapless(Dtype scalar, int columns) {
    const int bytes = ProductShape(scalar, 1, 1).scalar_bytes();
    return Layout::of(nullptr, columns, columns, bytes);
}

template <class Plan>
std::vector<Plan> run_plans(std::vector<Plan> plans) {
    std::erase_if(plans, [](const Plan& plan) { return !plan.run; });
    return plans;
}

/// Runs are for rows that are no multiples of 16 bytes, without gaps and from an aligned address.
TEST(Plans, RunsNeedOddRowsWithoutGaps) {
    const auto check = [](const auto& plans, const ProductShape& shape) {
        ASSERT_FALSE(plans.empty());
        const Layout left = gapless(shape.scalar, shape.m);
        const Layout right = gapless(shape.scalar, shape.n);
        Layout padded = left;
        padded.contiguous = false;
        Layout shifted = left;
        shifted.aligned = false;
        for (std::size_t i = 0; i < plans.size(); i += 1 + plans.size() / 50) {
            const auto& plan = plans[i];
            const auto kernel = kernel_of(plan, shape, left, right, {});
            ASSERT_TRUE(kernel) << to_text(plan);
            EXPECT_TRUE(kernel->run && !kernel->bulk) << to_text(plan);
            for (const char* single : {"bytes_x=4", "bytes_a=4"}) {
                EXPECT_EQ(kernel->expression.find(single), std::string::npos);
            }
            for (const Layout& other : {padded, shifted}) {
                EXPECT_FALSE(kernel_of(plan, shape, other, right, {})) << to_text(plan);
            }
        }
    };
    for (const Dtype scalar : {Dtype::s, Dtype::c}) {
        const ProductShape odd(scalar, 41, 11);
        check(run_plans(tsmttsm_plans(odd, {}, 100'000)), odd);
        check(run_plans(tsmm_plans(odd, {}, 100'000)), odd);
        const ProductShape even(scalar, 40, 12);
        EXPECT_TRUE(run_plans(tsmttsm_plans(even, {}, 100'000)).empty());
        EXPECT_TRUE(run_plans(tsmm_plans(even, {}, 100'000)).empty());
        EXPECT_TRUE(run_plans(tsmttsm_plans(odd.shared(), {}, 100'000)).empty());
        EXPECT_TRUE(run_plans(tsmm_plans(odd.shared(), {}, 100'000)).empty());
    }
}

/// The plan of a neighbour's row is kept unless the model's first choice is clearly faster.
TEST(Plans, AFavouriteReplacesOnlyAClearlySlowerNeighbour) {
    const ProductShape shape(Dtype::s, 10, 41);
    const Served served{shape, gapless(Dtype::s, 10), gapless(Dtype::s, 41)};
    std::vector<TsmmPlan> plans = tsmm_plans(shape, {}, 100'000);
    const double least = model_clocks(plans.front(), shape, {});
    const auto slower_by = [&](double factor) {
        return *std::find_if(plans.begin(), plans.end(), [&](const TsmmPlan& plan) {
            return model_clocks(plan, shape, {}) >= factor * least && kernel_of(plan, served, {});
        });
    };
    const auto chosen = [&](const TsmmPlan& neighbour) {
        TuningTable table;
        table.add("gpu 9.0 NVIDIA H100\ntsmm s 11x45 " + to_text(neighbour) + "\n", "table");
        return best_plan<TsmmPlan>(table, served, {}, [&] { return plans; });
    };
    const TsmmPlan near = slower_by(1.05);
    EXPECT_EQ(chosen(near), near);
    EXPECT_EQ(chosen(slower_by(1.5)), plans.front());
    EXPECT_EQ(best_plan<TsmmPlan>(TuningTable(), served, {}, [&] { return plans; }), plans.front());
}

/// A row with runs does not serve operands whose layout does not allow them.
TEST(Plans, ARowWithRunsIsForOperandsWithoutGaps) {
    const ProductShape shape(Dtype::s, 41, 10);
    const TsmttsmPlan runs = run_plans(tsmttsm_plans(shape, {}, 100'000)).at(0);
    TuningTable table;
    table.add("gpu 9.0 NVIDIA H100\ntsmttsm s 41x10 " + to_text(runs) + "\n", "table");
    const auto choice = [&](const Layout& a) {
        return best_plan<TsmttsmPlan>(table, {shape, a, gapless(Dtype::s, 10)}, {},
                                      [&] { return tsmttsm_plans(shape, {}, 100'000); });
    };
    EXPECT_EQ(choice(gapless(Dtype::s, 41)), runs);
    const auto other = choice(Layout::any(4));
    ASSERT_TRUE(other);
    EXPECT_FALSE(other->run);
}

TEST(Plans, EveryPanelOfTsmttsmHasOne) {
    const Machine ampere{163 * 1024, 164 * 1024, false};
    for (const Machine& machine : {Machine{}, ampere}) {
        for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
            for (const int n : {1, 3, 5, 24, 47, 64}) {
                const int widest = widest_tsmttsm_panel(scalar, n);
                for (const int m : {1, 33, widest / 2 + 1, widest}) {
                    const ProductShape shape(scalar, m, n);
                    EXPECT_FALSE(tsmttsm_plans(shape, machine, 1).empty())
                        << letter(scalar) << " " << m << "x" << n;
                }
            }
        }
    }
}

TEST(Plans, EveryShapeOfTsmmHasOneInPanels) {
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (const int n : {1, 7, 64}) {
            EXPECT_FALSE(tsmm_plans({scalar, 32, n}, {163 * 1024, 164 * 1024, false}, 1).empty())
                << letter(scalar) << " 32x" << n;
        }
    }
}

TEST(Plans, TwoSourcesHaveOneInPanels) {
    const Machine ampere{163 * 1024, 164 * 1024, false};
    for (const Machine& machine : {Machine{}, ampere}) {
        for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
            for (int n = 1; n <= 32; n += 5) {
                const auto shape = ProductShape::pair(scalar, 16, n);
                EXPECT_EQ(shape.m, 16 + shape.n);
                const auto plans = tsmm_plans(shape, machine, 1000);
                const Layout worst{false, std::min(8, shape.scalar_bytes()), false};
                for (const Layout& layout : {Layout{}, worst}) {
                    const auto fits = [&](const TsmmPlan& plan) {
                        const auto kernel = kernel_of(plan, shape, layout, layout, machine);
                        EXPECT_FALSE(kernel && kernel->bulk) << "two sources use no bulk copies";
                        return kernel.has_value();
                    };
                    EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), fits))
                        << letter(scalar) << " 16x" << n;
                }
            }
        }
    }
}

TEST(Plans, UpdatesAreFusedWithTheirSumsAtEveryWidth) {
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
        for (int width = 1; width <= 64; width += width < 8 ? 1 : 7) {
            ProductShape shape(scalar, width, width);
            for (const bool adds : {false, true}) {
                shape.adds = adds;
                const auto plans = tsmm_gram_plans(shape, {}, 10);
                if (scalar == Dtype::z && width > 60 && adds) {
                    continue;  // does not fit beside two stages of V and W
                }
                ASSERT_FALSE(plans.empty()) << letter(scalar) << " " << width;
                for (const auto& plan : plans) {
                    const auto kernel = kernel_of(plan, shape, {}, {}, {});
                    ASSERT_TRUE(kernel);
                    EXPECT_LE(kernel->shared_bytes *
                                  static_cast<std::size_t>(kernel->blocks_per_multiprocessor),
                              Machine{}.shared_per_multiprocessor);
                    EXPECT_LT(model_clocks(plan, shape, {}), HUGE_VAL);
                }
                TsmmGramPlan bad = plans.front();
                bad.sums.team *= 2;
                EXPECT_FALSE(kernel_of(bad, shape, {}, {}, {})) << "teams of two sizes";
                bad = plans.front();
                bad.update.stages = 4096;
                EXPECT_EQ(model_clocks(bad, shape, {}), HUGE_VAL);
            }
        }
    }
}

constexpr Dtype scalars[] = {Dtype::s, Dtype::d, Dtype::c, Dtype::z};

/// A solve with a growing basis must not wait for the compiler: all m have the same kernel.
TEST(Plans, OneStreamedKernelServesAllWidthsOfX) {
    const Machine ampere{163 * 1024, 164 * 1024, false};
    for (const Machine& machine : {Machine{}, ampere}) {
        for (const Dtype scalar : scalars) {
            for (int n = 1; n <= 16; ++n) {
                std::string name;
                for (int m = 129; m <= 400; ++m) {
                    const auto shape = ProductShape::streams(scalar, m, n);
                    EXPECT_GE(shape.m, m);
                    EXPECT_GE(shape.n, n);
                    const auto plans = tsmm_plans(shape, machine, 1);
                    if (plans.empty()) {
                        ASSERT_FALSE(machine.bulk_copies) << letter(scalar) << m << "x" << n;
                        continue;  // computed in panels
                    }
                    EXPECT_TRUE(plans[0].streamed);
                    EXPECT_EQ(plan_of<TsmmPlan>(to_text(plans[0])), plans[0]);
                    const auto kernel = kernel_of(plans[0], shape, {}, {}, machine).value();
                    EXPECT_STREQ(kernel.source, "tsmm_streamed.cuh");
                    EXPECT_LT(model_clocks(plans[0], shape, machine), HUGE_VAL);
                    EXPECT_TRUE(name.empty() || name == kernel.expression) << kernel.expression;
                    name = kernel.expression;
                }
                EXPECT_FALSE(name.empty()) << letter(scalar) << " " << n;
            }
        }
    }
}

TEST(Plans, StreamsAreForAWideXOnly) {
    for (const Dtype scalar : scalars) {
        const bool is_double = scalar == Dtype::d || scalar == Dtype::z;
        for (const int n : {1, 4, 16, 64}) {
            for (const int m : {1, 8, 32, 64}) {
                EXPECT_FALSE(prefers_streams(scalar, m, n)) << m << "x" << n;
            }
            for (const int m : {65, 100, 128}) {
                EXPECT_EQ(prefers_streams(scalar, m, n), is_double && n <= 16) << m << "x" << n;
                for (const auto& plan : tsmm_plans({scalar, m, n}, {}, 100'000)) {
                    ASSERT_FALSE(plan.streamed) << m << "x" << n;
                }
            }
        }
        EXPECT_FALSE(prefers_streams(scalar, 400, 17));
        for (const int m : {129, 130, 200, 2000}) {
            for (const int n : {1, 4, 11, 16}) {
                EXPECT_TRUE(prefers_streams(scalar, m, n)) << m << "x" << n;
            }
        }
        for (const int n : {65, 80, 128}) {
            EXPECT_EQ(prefers_streams(scalar, n, n), scalar == Dtype::z);
        }
        EXPECT_FALSE(prefers_streams(scalar, 129, 129));
    }
}

/// Rows that start behind a multiple of 16 bytes use the kernel of other rows, with room for the
/// columns before them.
TEST(Plans, StreamedKernelsServeRowsThatStartAnywhere) {
    for (const Dtype scalar : scalars) {
        const int bytes = ProductShape(scalar, 1, 1).scalar_bytes();
        const Layout aligned{false, 16, true};
        const Layout behind{false, std::min(bytes, 16), true};
        const Layout between{false, bytes / 2, false};
        for (const int m : {200, 255, 256, 400}) {
            const auto sums = Served::streams_of_sums(scalar, m, 11, aligned);
            const auto more = Served::streams_of_sums(scalar, m, 11, behind);
            EXPECT_EQ(sums.a.unit, 16);
            EXPECT_EQ(more.a.unit, 16);
            EXPECT_GE(sums.shape.m, m);
            EXPECT_GE(more.shape.m, m + 16 / bytes - 1);
            EXPECT_LT(Served::streams_of_sums(scalar, m, 11, between).a.unit, 16);
            EXPECT_GE(Served::streams(scalar, m, 11, behind, aligned).shape.m, m + 16 / bytes - 1);
            EXPECT_EQ(Served::streams(scalar, m, 11, behind, aligned).a.unit, 16);
            EXPECT_LT(Served::streams(scalar, m, 11, between, aligned).a.unit, 16);
            const auto plan = tsmttsm_plans(more.shape, {}, 1).at(0);
            EXPECT_EQ(kernel_of(plan, more, {}).value().row_classes, 4);
        }
        for (int m = 129; m <= 2000; ++m) {
            for (const bool is_aligned : {false, true}) {
                for (const int n : {4, 16}) {
                    const int panel = streamed_sums_panel(scalar, m, is_aligned);
                    const int count = (m + panel - 1) / panel;
                    const int widest = (m + count - 1) / count;
                    const bool exact = is_aligned && count == 1;
                    const auto& layout = exact ? aligned : behind;
                    EXPECT_LE(Served::streams_of_sums(scalar, widest, n, layout).shape.m,
                              widest_streamed_sums)
                        << m;
                }
            }
        }
    }
}

/// Wide products by cuBLAS: cases of docs/notes/kernels.md. Narrow ones never, except z with more
/// than 256 columns of A and 8 of B.
TEST(Plans, CublasIsForTwoWideOperandsOnly) {
    for (const Dtype scalar : scalars) {
        for (const int m : {1, 16, 40, 64, 200, 400, 5000}) {
            for (const int n : {1, 8, 16}) {
                const bool is_wide = scalar == Dtype::z && m > 256 && n > 8;
                EXPECT_FALSE(prefers_cublas_tsmm(scalar, m, n)) << m << "x" << n;
                EXPECT_EQ(prefers_cublas_tsmttsm(scalar, m, n), is_wide) << m << "x" << n;
                EXPECT_FALSE(prefers_cublas_tsmttsm(scalar, n, m)) << n << "x" << m;
            }
        }
        for (int m = 1; m <= 56; ++m) {
            EXPECT_FALSE(prefers_cublas_tsmm(scalar, m, m)) << m;
            EXPECT_FALSE(prefers_cublas_tsmttsm(scalar, m, m)) << m;
        }
        for (const int m : {300, 400, 1000}) {
            for (const int n : {64, 128, 300}) {
                EXPECT_TRUE(prefers_cublas_tsmm(scalar, m, n)) << m << "x" << n;
                EXPECT_TRUE(prefers_cublas_tsmttsm(scalar, m, n)) << m << "x" << n;
            }
        }
        EXPECT_EQ(prefers_cublas_tsmm(scalar, 112, 112), scalar != Dtype::z);
        EXPECT_EQ(prefers_cublas_tsmttsm(scalar, 72, 72), scalar == Dtype::z);
    }
}

TEST(Plans, ATableDoesNotReplaceAStreamedPlan) {
    const ProductShape shape = ProductShape::streams(Dtype::d, 384, 16);
    const TsmmPlan other = tsmm_plans({Dtype::d, 384, 16}, {}, 1).at(0);
    const TuningFile file("gpu 9.0 NVIDIA H200\ntsmm d 384x16 " + to_text(other) + "\n");
    Context ctx;
    Planner planner(ctx, Machine{});
    EXPECT_EQ(planner.plan<TsmmPlan>({{Dtype::d, 384, 16}, {}, {}}), other);
    EXPECT_EQ(planner.plan<TsmmPlan>({shape, {}, {}}), tsmm_plans(shape, {}, 1).at(0));
}

/// A solve with a growing basis waits for the compiler at most once per 128 columns.
TEST(Plans, FewStreamedKernelsServeAllWidthsOfA) {
    for (const Dtype scalar : scalars) {
        const auto shapes = ProductShape::streamed_sums(scalar);
        for (int n = 1; n <= 16; ++n) {
            std::set<std::string> names;
            for (int m = 1; m <= 512; ++m) {
                if (!prefers_streamed_sums(scalar, m, n)) {
                    continue;
                }
                const auto shape = ProductShape::streams_of_sums(scalar, m, n);
                EXPECT_GE(shape.m, m);
                EXPECT_GE(shape.n, n);
                EXPECT_TRUE(std::any_of(
                    shapes.begin(), shapes.end(),
                    [&](const auto& listed) { return listed.m == shape.m && listed.n == shape.n; }))
                    << m << "x" << n;
                const auto plan = tsmttsm_plans(shape, {}, 1).at(0);
                EXPECT_TRUE(plan.streamed);
                EXPECT_EQ(plan_of<TsmttsmPlan>(to_text(plan)), plan);
                const auto kernel = kernel_of(plan, shape, {}, {}, {}).value();
                EXPECT_STREQ(kernel.source, "tsmttsm_streamed.cuh");
                EXPECT_LT(model_clocks(plan, shape, {}), HUGE_VAL);
                names.insert(kernel.expression);
            }
            EXPECT_LE(names.size(), 3u) << letter(scalar) << " " << n;
        }
    }
}

/// Cases of docs/notes/kernels.md, "Streamed products".
TEST(Plans, StreamedSumsAreForAWideAOnly) {
    for (const Dtype scalar : scalars) {
        for (const int n : {1, 8, 11, 16, 17, 64}) {
            EXPECT_FALSE(prefers_streamed_sums(scalar, 128, n)) << n;
            EXPECT_FALSE(prefers_streamed_sums(scalar, n, n)) << n;
        }
        for (const int m : {200, 211, 256, 300, 333, 400}) {
            EXPECT_FALSE(prefers_streamed_sums(scalar, m, 17)) << m;
            for (const int n : {1, 4, 8, 11, 13, 16}) {
                const bool slower = (scalar == Dtype::c && m == 256 && n >= 13) ||
                                    (scalar == Dtype::c && m < 256 && n == 16);
                EXPECT_EQ(prefers_streamed_sums(scalar, m, n), scalar == Dtype::d ? n > 8 : !slower)
                    << letter(scalar) << " " << m << "x" << n;
            }
        }
        EXPECT_EQ(prefers_streamed_sums(scalar, 192, 11), scalar == Dtype::d);
        for (const auto& plan : tsmttsm_plans({scalar, 200, 4}, {}, 100'000)) {
            ASSERT_FALSE(plan.streamed);
        }
    }
}

TEST(Plans, IllegalStreamedSumsAreRefused) {
    for (const Dtype scalar : scalars) {
        const ProductShape shape = ProductShape::streams_of_sums(scalar, 400, 11);
        const TsmttsmPlan good = tsmttsm_plans(shape, {}, 1).at(0);
        ASSERT_TRUE(kernel_of(good, shape, {}, {}, {}));
        for (const auto& change : std::vector<std::function<void(TsmttsmPlan&)>>{
                 [](auto& plan) { plan.streamed = false; }, [](auto& plan) { plan.stages = 1; },
                 [](auto& plan) { plan.team = 48; }, [](auto& plan) { plan.threads += 16; },
                 [](auto& plan) { plan.stages = 4096; }, [](auto& plan) { plan.tile_m = 0; },
                 [](auto& plan) { plan.tile_m = 64; }, [](auto& plan) { plan.bulk = true; },
                 [](auto& plan) { plan.run = true; }, [](auto& plan) { plan.rows = 0; },
                 [](auto& plan) { plan.tile_n = 2; }, [](auto& plan) { plan.blocks = 4; },
                 [](auto& plan) { plan.vector = 2; }, [](auto& plan) { plan.tile_n = 3; }}) {
            TsmttsmPlan bad = good;
            change(bad);
            EXPECT_FALSE(kernel_of(bad, shape, {}, {}, {})) << to_text(bad);
            EXPECT_EQ(model_clocks(bad, shape, {}), HUGE_VAL) << to_text(bad);
        }
        ProductShape gram = shape;
        gram.same = true;
        EXPECT_FALSE(kernel_of(good, gram, {}, {}, {}));
    }
}

/// A block has 15 barriers for teams of more than one warp.
TEST(Plans, StreamedSumsHaveABarrierForEveryTeam) {
    ProductShape shape = ProductShape::streams_of_sums(Dtype::s, 128, 2);
    shape.n = 1;  // few registers
    TsmttsmPlan plan;
    plan.streamed = true;
    plan.tile_m = 4;
    plan.rows = 1;
    plan.stages = 2;
    for (const auto& [team, teams, fits] :
         {std::tuple{64, 15, true}, {64, 16, false}, {32, 32, true}}) {
        plan.team = team;
        plan.threads = team * teams;
        EXPECT_EQ(kernel_of(plan, shape, {}, {}, {}).has_value(), fits) << to_text(plan);
    }
}

TEST(Plans, ATableDoesNotReplaceAStreamedPlanOfSums) {
    const ProductShape shape = ProductShape::streams_of_sums(Dtype::z, 384, 12);
    const TsmttsmPlan other = tsmttsm_plans({Dtype::z, 128, 12}, {}, 1).at(0);
    const TuningFile file("gpu 9.0 NVIDIA H200\ntsmttsm z 384x12 " + to_text(other) + "\n");
    Context ctx;
    Planner planner(ctx, Machine{});
    EXPECT_EQ(planner.plan<TsmttsmPlan>({shape, {}, {}}), tsmttsm_plans(shape, {}, 1).at(0));
}

TEST(Plans, IllegalStreamedOnesAreRefused) {
    for (const Dtype scalar : scalars) {
        const ProductShape shape = ProductShape::streams(scalar, 400, 11);
        const TsmmPlan good = tsmm_plans(shape, {}, 1).at(0);
        ASSERT_TRUE(kernel_of(good, shape, {}, {}, {}));
        for (const auto& change : std::vector<std::function<void(TsmmPlan&)>>{
                 [](auto& plan) { plan.streamed = false; }, [](auto& plan) { plan.stages = 1; },
                 [](auto& plan) { plan.team = 64; }, [](auto& plan) { plan.threads = 48; },
                 [](auto& plan) { plan.stages = 4096; }, [](auto& plan) { plan.tile_rows = 0; },
                 [](auto& plan) { plan.tile_rows = 64; }, [](auto& plan) { plan.bulk = true; },
                 [](auto& plan) { plan.run = true; }, [](auto& plan) { plan.staged = true; },
                 [](auto& plan) { plan.tile_n = 0; }, [](auto& plan) { plan.blocks = 4; }}) {
            TsmmPlan bad = good;
            change(bad);
            EXPECT_FALSE(kernel_of(bad, shape, {}, {}, {})) << to_text(bad);
            EXPECT_EQ(model_clocks(bad, shape, {}), HUGE_VAL) << to_text(bad);
        }
        EXPECT_FALSE(kernel_of(good, ProductShape::pair(scalar, 200, 11), {}, {}, {}));
        TsmmGramPlan fused = tsmm_gram_plans({scalar, 8, 8}, {}, 1).at(0);
        fused.update.streamed = true;
        EXPECT_FALSE(kernel_of(fused, {scalar, 8, 8}, {}, {}, {}));
    }
}

TEST(Plans, IllegalOnesAreRefused) {
    const ProductShape shape(Dtype::d, 8, 8);
    const TsmttsmPlan good = tsmttsm_plans(shape, {}, 1).at(0);
    for (const auto& change : std::vector<std::function<void(TsmttsmPlan&)>>{
             [](auto& plan) { plan.rows = 0; }, [](auto& plan) { plan.stages = 0; },
             [](auto& plan) { plan.bulk = true, plan.stages = 1; },
             [](auto& plan) { plan.unroll = -1; }, [](auto& plan) { plan.team = 48; },
             [](auto& plan) { plan.team = 0; }, [](auto& plan) { plan.rows *= 4096; },
             [](auto& plan) { plan.tile_m = 0; }}) {
        TsmttsmPlan bad = good;
        change(bad);
        EXPECT_EQ(model_clocks(bad, shape, {}), HUGE_VAL) << to_text(bad);
    }
}

/// The request for a product of contiguous blocks.
Served contiguous(Dtype scalar, int m, int n) {
    const ProductShape shape(scalar, m, n);
    const int bytes = shape.scalar_bytes();
    return {shape, Layout::of(nullptr, m, m, bytes), Layout::of(nullptr, n, n, bytes)};
}

TEST(PlanFields, PlansOfProductsHaveTheGivenFields) {
    for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::z}) {
        const int tile = scalar == Dtype::z ? 2 : 4;
        const PlanFields fields("tensor=0 stages=1 blocked=1 unroll=8 tile_n=" +
                                std::to_string(tile));
        const auto found = plans_with<TsmttsmPlan>(contiguous(scalar, 32, 32), {}, fields, 5);
        ASSERT_EQ(found.size(), 5u);
        for (const auto& [clocks, plan] : found) {
            EXPECT_TRUE(!plan.tensor && plan.stages == 1 && plan.blocked && plan.unroll == 8 &&
                        plan.tile_n == tile)
                << to_text(plan);
            EXPECT_EQ(plan_of<TsmttsmPlan>(to_text(plan)), plan);
            EXPECT_LE(found.front().first, clocks);
            EXPECT_GT(clocks, 0);
        }
        const PlanFields of_rows("tensor=0 in_registers=1 threads=64 tile_rows=2");
        for (const auto& [clocks, plan] :
             plans_with<TsmmPlan>(contiguous(scalar, 4, 4), {}, of_rows, 5)) {
            EXPECT_TRUE(plan.in_registers && plan.threads == 64 && plan.tile_rows == 2)
                << to_text(plan);
        }
        EXPECT_FALSE(plans_with<TsmmPlan>(contiguous(scalar, 4, 4), {}, of_rows, 5).empty());
    }
    const Served any = contiguous(Dtype::d, 8, 8);
    EXPECT_THROW(plans_with<TsmmPlan>(any, {}, PlanFields("tile_m=1"), 1), InputError);
    for (const char* const text : {"stages", "stages=", "stages=x", "=3"}) {
        EXPECT_THROW(plans_with<TsmmPlan>(any, {}, PlanFields(text), 1), InputError) << text;
    }
    EXPECT_EQ(plans_with<TsmttsmPlan>(any, {}, PlanFields(""), 1).front().second,
              tsmttsm_plans(any.shape, {}, 1).front());
}

TEST(PlanFields, OneStageCannotBeCopiedInBulk) {
    const Served request = contiguous(Dtype::d, 16, 16);
    EXPECT_TRUE(plans_with<TsmttsmPlan>(request, {}, PlanFields("stages=1 bulk=1"), 1).empty());
    EXPECT_TRUE(plans_with<TsmmPlan>(request, {}, PlanFields("stages=1 bulk=1"), 1).empty());
    EXPECT_FALSE(plans_with<TsmmPlan>(request, {}, PlanFields("stages=1 bulk=0"), 1).empty());
    EXPECT_TRUE(plans_with<TsmttsmPlan>(request, {}, PlanFields("tensor=1 blocked=1"), 1).empty());
}

TEST(PlanFields, ExperimentsOfTsm2x) {
    MtsmShape shape;
    shape.n = 16;
    shape.x_rows = false;
    shape.unit_x = 8;
    shape.unit_y = 16;
    shape.log_m = 20;
    shape.log_k = 4;
    const auto one = [&](const char* fields) {
        const auto found = plans_with<MtsmPlan>(shape, {}, PlanFields(fields), 1);
        EXPECT_EQ(found.size(), 1u) << fields;
        return found.empty() ? MtsmPlan{} : found.front().second;
    };
    const auto blocks = kernel_of(one("direct=1 tcf=64"), shape, {});
    ASSERT_TRUE(blocks);
    EXPECT_EQ(blocks->rows_a_block, 64 * MtsmPlan::threads);
    EXPECT_EQ(kernel_of(one("direct=1 tcf=1"), shape, {})->rows_a_block, MtsmPlan::threads);
    for (const char* const version : {"plain=1 direct=0", "plain=2 direct=0"}) {
        const auto kernel = kernel_of(one(version), shape, {});
        ASSERT_TRUE(kernel);
        EXPECT_NE(kernel->expression.find("mtsm_plain"), std::string::npos);
        EXPECT_EQ(kernel->shared_bytes, 0u);
    }
    EXPECT_EQ(one("plain=0 direct=0 stages=1").stages, 1);
    for (const MtsmPlan& plan : mtsm_plans(shape, {})) {
        EXPECT_TRUE(plan.plain == 0 && plan.tcf == 0 && plan.stages > 1) << to_text(plan);
    }
}

TEST(PlanFields, RowsNeedNotBeFolded) {
    MixedShape shape;
    shape.m = 3;
    shape.n = 3;
    const auto folded = plans_with<MixedPlan>(shape, {}, PlanFields(""), 3);
    const auto apart = plans_with<MixedPlan>(shape, {}, PlanFields("fold=1"), 3);
    ASSERT_TRUE(!folded.empty() && !apart.empty());
    EXPECT_EQ(folded.front().second.fold, 8);
    EXPECT_EQ(apart.front().second.fold, 1);
    EXPECT_NE(kernel_of(folded.front().second, shape, {})->expression,
              kernel_of(apart.front().second, shape, {})->expression);
}

TEST(PlanChoice, APlannerUsesTheGivenPlanForItsOperationOnly) {
    Context ctx;
    Planner planner(ctx, Machine{});
    const Served request = contiguous(Dtype::d, 32, 32);
    const auto usual = planner.plan<TsmttsmPlan>(request);
    const auto usual_rows = planner.plan<TsmmPlan>(request);
    const PlannedProduct product{"tsmttsm", Dtype::d, 32, 32, 1'000'000};
    const std::string text = list_plans(Machine{}, product, "tensor=0 stages=1", 1).at(0).plan;

    planner.choose({.plan = text, .exact = true});

    EXPECT_EQ(to_text(planner.plan<TsmttsmPlan>(request).value()), text);
    EXPECT_NE(planner.plan<TsmttsmPlan>(request), usual);
    EXPECT_EQ(planner.plan<TsmmPlan>(request), usual_rows);
    EXPECT_TRUE(planner.exists<TsmmPlan>(request.shape));
    KernelList kernels;
    planner.append<TsmttsmPlan>(request, kernels);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].expression, kernel_of_listed(Machine{}, product, text).value().expression);
    EXPECT_THROW(planner.choose({.plan = "tile_m=1"}), InputError);
    planner.choose({});
    EXPECT_EQ(planner.plan<TsmttsmPlan>(request), usual);
    EXPECT_THROW(list_plans(Machine{}, {"gram", Dtype::d, 4, 4, 1000}, "", 1), InputError);
}

TEST(BatchedSettings, ChooseTheKernel) {
    const auto named = [](bool cholesky, int n, const char* settings) {
        return batched_kernel(cholesky, false, Dtype::d, n, settings).expression;
    };
    EXPECT_NE(named(false, 4, "").find("lu_by_thread"), std::string::npos);
    EXPECT_NE(named(false, 4, "by_thread=0").find("lu_by_rows"), std::string::npos);
    EXPECT_NE(named(false, 4, "threads=512").find("512"), std::string::npos);
    EXPECT_NE(named(true, 16, "panels=1").find("cholesky_by_panels"), std::string::npos);
    EXPECT_NE(named(true, 16, "").find("cholesky_by_rows"), std::string::npos);
    EXPECT_THROW(named(false, 4, "thread=512"), InputError);
    const BatchedSettings many{.threads = 1024};
    const auto tiling =
        batched_tiling<double>(Factorisation::lu, 16, BatchPacking::packed, false, many);
    EXPECT_EQ(tiling.matrices, 64);
    EXPECT_TRUE(tiling.allows(many, 227 * 1024));
    EXPECT_FALSE(tiling.allows(many, 1024)) << "too little shared memory";
    EXPECT_FALSE(tiling.allows({.by_thread = 1}, 227 * 1024)) << "the matrix needs many registers";
}

}  // namespace
}  // namespace quiver::cuda
