// SPDX-License-Identifier: BSD-3-Clause
// The bench runner: its measurements, the check of results, and the budget.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "apps/bench/bench_report.hpp"
#include "apps/bench/kept_ceilings.hpp"
#include "apps/bench/kernels/stencil.hpp"
#include "apps/bench/runner.hpp"
#include "apps/matrices/generators.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "tests/support/address_space_limit.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/shared_folder.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps::bench {
namespace {

/// A Context of this process alone, in the place under test, created as by the command.
Context own_context() {
    return Context(Comm(), test::test_place() == Place::device ? Device::cuda() : Device::host());
}

/// What a contender does: it runs quiver's kernel and then damages the result, does nothing, or
/// throws.
enum class Harm { none, no_op, last_row, one_element, throws };

Contender harmful(Context& ctx, Workload& workload, Harm harm) {
    // The name marks a variant of this library, whose first call may compile.
    return {std::string(quiver_name) + ", harmed", [&ctx, &workload, harm](std::int64_t set) {
                if (harm == Harm::throws) {
                    throw NumericalError("on purpose");
                }
                if (harm == Harm::no_op) {
                    return;
                }
                workload.run(set);
                if (harm == Harm::none) {
                    return;
                }
                std::visit(
                    [&]<class T>(BlockView<T> out) {
                        if (harm == Harm::last_row) {
                            fill(ctx, T(0), out.row_range(out.rows - 1, 1));
                        } else {
                            // A row that the samples may not reach: only the check for finite
                            // values covers every row.
                            const T nan(std::numeric_limits<real_t<T>>::quiet_NaN());
                            fill(ctx, nan, out.row_range(out.rows / 2, 1).columns(0, 1));
                        }
                    },
                    workload.output(set));
            }};
}

Case make_case(const Kernel& kernel, Dtype scalar, std::int64_t rows) {
    return {&kernel, scalar, kernel.has_two_widths() ? Shape{3, 5} : Shape{4, 4},
            kernel.round_rows(rows)};
}

Result measure_one(const Case& c, Harm harm, double least_bytes = 0) {
    Context ctx = own_context();
    const auto workload = c.kernel->prepare(ctx, c, least_bytes);
    const auto results = measure(ctx, c, *workload, {harmful(ctx, *workload, harm)},
                                 {.repeat = 3, .least_bytes = least_bytes}, Budget(60));
    EXPECT_EQ(results.size(), 1u);
    return results.at(0);
}

const Kernel& kernel(const char* name) {
    return *find_kernel(name);
}

std::vector<const Kernel*> kernels_for(Dtype scalar) {
    std::vector<const Kernel*> kernels;
    for (const Kernel* each : all_kernels()) {
        if (each->takes(scalar)) {
            kernels.push_back(each);
        }
    }
    return kernels;
}

class BenchOf : public ::testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Scalars, BenchOf,
                         ::testing::Values(Dtype::s, Dtype::d, Dtype::c, Dtype::z, Dtype::h,
                                           Dtype::b),
                         [](const auto& info) { return std::string(1, letter(info.param)); });

TEST_P(BenchOf, CorrectResultsPass) {
    for (const Kernel* each : kernels_for(GetParam())) {
        for (const std::int64_t rows : {1, 7, 1021, 5000}) {
            const auto result = measure_one(make_case(*each, GetParam(), rows), Harm::none);
            EXPECT_EQ(result.outcome, Outcome::passed)
                << each->name() << ' ' << rows << " rows: " << result.error << ' '
                << result.message;
            EXPECT_EQ(result.samples, 3);
            EXPECT_GT(result.seconds.least, 0);
        }
    }
}

TEST_P(BenchOf, EverySetIsChecked) {
    for (const Kernel* each : kernels_for(GetParam())) {
        const Case c = make_case(*each, GetParam(), 1500);
        const double five_sets = 5.0 * static_cast<double>(c.rows) * each->row_bytes(c);
        const auto result = measure_one(c, Harm::none, std::max(2e6, five_sets));
        EXPECT_EQ(result.outcome, Outcome::passed) << each->name() << ' ' << result.error;
        EXPECT_GT(result.sets, 4);
    }
}

TEST_P(BenchOf, GapsBetweenRowsStayUnchanged) {
    for (const Kernel* each : kernels_for(GetParam())) {
        for (const int gap : {1, 3}) {
            Case c = make_case(*each, GetParam(), 1500);
            c.ld_extra = gap;
            const auto result = measure_one(c, Harm::none, 1e5);
            EXPECT_EQ(result.outcome, Outcome::passed)
                << each->name() << ' ' << result.error << ' ' << result.message;
            EXPECT_EQ(measure_one(c, Harm::no_op).outcome, Outcome::incorrect) << each->name();
            const double bytes = each->bytes(c);
            c.ld_extra = 0;
            EXPECT_EQ(bytes, each->bytes(c)) << "gaps need not be read or written";
        }
    }
}

TEST_P(BenchOf, OtherPlansAreMeasuredInTheSameRun) {
    Context ctx = own_context();
    Rivals none;
    for (const Kernel* each : kernels_for(GetParam())) {
        const Case c = make_case(*each, GetParam(), 3000);
        const auto results =
            run_case(ctx, c, none, {.repeat = 3, .model = true, .atomics = true}, Budget(60));
        std::vector<std::string> libraries;
        for (const Result& result : results) {
            libraries.push_back(result.library);
            EXPECT_EQ(result.outcome, Outcome::passed)
                << each->name() << ' ' << result.library << ' ' << result.error;
            EXPECT_EQ(result.ratio > 0, !result.ours());
            EXPECT_FALSE(result.rival());
            EXPECT_FALSE(result.timed_once) << "it may have to be compiled first";
        }
        const std::string name = each->name();
        std::vector<std::string> expected{quiver_name};
        // The table has no plans for these kernels, so the model always chooses.
        const bool untuned =
            name == "tsmm-gram" || name.ends_with("-mixed") || name.ends_with("-columns");
        if ((name.starts_with("ts") && !untuned) || name == "gram") {
            expected.emplace_back(model_name);
        }
        if (name == "tsmttsm" || name == "gram") {
            expected.emplace_back(atomics_name);
        }
        EXPECT_EQ(libraries, expected) << name;
    }
}

TEST_P(BenchOf, AContenderThatDoesNothingIsIncorrect) {
    for (const Kernel* each : kernels_for(GetParam())) {
        const auto result = measure_one(make_case(*each, GetParam(), 5000), Harm::no_op);
        EXPECT_EQ(result.outcome, Outcome::incorrect) << each->name();
        EXPECT_GT(result.error, 1) << each->name();
    }
}

TEST_P(BenchOf, OneWrongRowOrElementIsIncorrect) {
    for (const char* name :
         {"tsmttsm", "gram", "tsmm", "tsmm-beta", "tsmm-pair", "tsmm-gram", "tsmm-in-place",
          "axpby", "spmmv", "batched-lu", "batched-cholesky", "batched-solve", "batched-inverse",
          "batched-determinant", "tsmttsm-mixed", "tsmm-mixed", "mtsm", "mtsm-columns",
          "tsmm-columns"}) {
        if (!kernel(name).takes(GetParam())) {
            continue;
        }
        for (const Harm harm : {Harm::last_row, Harm::one_element}) {
            const auto result = measure_one(make_case(kernel(name), GetParam(), 50000), harm);
            EXPECT_EQ(result.outcome, Outcome::incorrect)
                << name << ' ' << static_cast<int>(harm) << ' ' << result.error;
        }
    }
}

TEST_P(BenchOf, AvailableRivalsAreCorrectAndCompared) {
    Context ctx = own_context();
    const bool on_device = ctx.place() == Place::device;
    Rivals rivals;
    for (const char* name : {"openblas", "eigen", "cublas", "cusparse", "cusolver"}) {
        try {
            rivals.push_back(std::move(make_rivals(ctx, name).front()));
            EXPECT_EQ(rivals.back()->name(), std::string(name));
            EXPECT_FALSE(rivals.back()->version().empty());
        } catch (const UnsupportedError&) {  // not in this build
        } catch (const InputError&) {        // a library for the other place
        }
    }
    std::size_t compared = 0;
    for (const char* name :
         {"tsmttsm", "gram", "tsmm", "tsmm-beta", "tsmm-pair", "tsmm-gram", "spmmv", "batched-lu",
          "batched-cholesky", "batched-solve", "batched-inverse", "tsmttsm-mixed", "tsmm-mixed",
          "mtsm", "mtsm-columns", "tsmm-columns", "orth-tsqr"}) {
        if (!kernel(name).takes(GetParam())) {
            continue;
        }
        for (const std::int64_t rows : {1, 1021, 5000}) {
            Case c = make_case(kernel(name), GetParam(), rows);
            c.ld_extra = rows == 5000 ? 1 : 0;
            const auto results =
                run_case(ctx, c, rivals, {.repeat = 3, .least_bytes = 1e5}, Budget(60));
            EXPECT_EQ(results.front().library, "quiver");
            for (const Result& result : results) {
                EXPECT_EQ(result.outcome, Outcome::passed)
                    << name << ' ' << result.library << ' ' << rows << " rows: " << result.error
                    << ' ' << result.message;
                EXPECT_EQ(result.ratio > 0, !result.ours());
                if (!result.ours()) {
                    EXPECT_EQ(result.ratio, result.seconds.median / results.front().seconds.median);
                    ++compared;
                }
            }
        }
    }
    if (rivals.empty() || (compared == 0 && GetParam() >= Dtype::h && !on_device)) {
        GTEST_SKIP() << "this build has no rivals for the " << (on_device ? "device" : "host");
    }
    EXPECT_GE(compared, 3u);
}

TEST(Bench, JoulesAreThoseOfAGpu) {
    Context ctx = own_context();
    if (ctx.place() == Place::host) {
        EXPECT_THROW(EnergyMeter{ctx}, UnsupportedError);
        return;
    }
    std::optional<EnergyMeter> meter;
    try {
        meter.emplace(ctx);
    } catch (const UnsupportedError& error) {
        GTEST_SKIP() << error.what();
    }
    const Case c = make_case(kernel("dots"), Dtype::d, 1'000'000);
    const auto workload = c.kernel->prepare(ctx, c, 0);
    const double joules = meter->joules_a_call([&] { workload->run(0); });
    // A call moves 64 MB, at some hundreds of watts and thousands of GB/s; the bounds are wide.
    EXPECT_GT(joules, 1e-5);
    EXPECT_LT(joules, 1);
}

TEST(Bench, SamplesAreTakenInTurn) {
    Context ctx = own_context();
    const Case c = make_case(kernel("tsmm"), Dtype::d, 5000);
    const auto workload = c.kernel->prepare(ctx, c, 0);
    std::string order;
    const auto contender = [&](const char* name) {
        return Contender{name, [&order, &workload, name](std::int64_t set) {
                             workload->run(set);
                             if (order.empty() || order.back() != *name) {
                                 order += *name;
                             }
                         }};
    };
    measure(ctx, c, *workload, {contender("a"), contender("b")}, {.repeat = 5, .most_seconds = 1e9},
            Budget(1e9));
    // Warm-up, four rounds, and the checked calls.
    EXPECT_EQ(order, "abababababab");
}

TEST(Bench, ASlowRivalIsTimedOnceAndChecked) {
    Context ctx = own_context();
    const Case c = make_case(kernel("tsmttsm"), Dtype::d, 5000);
    const auto workload = c.kernel->prepare(ctx, c, 0);
    int calls = 0;
    const Contender ours{"quiver", [&](std::int64_t set) { workload->run(set); }};
    const Contender slow{"slow", [&](std::int64_t set) {
                             ++calls;
                             workload->run(set);
                         }};
    const auto results =
        measure(ctx, c, *workload, {ours, slow},
                {.repeat = 5, .slow_seconds = 0, .most_seconds = 1e9}, Budget(1e9));
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(results[0].timed_once);
    EXPECT_EQ(results[0].samples, 5);
    EXPECT_TRUE(results[1].timed_once);
    EXPECT_EQ(results[1].samples, 1);
    EXPECT_EQ(results[1].outcome, Outcome::passed);
    EXPECT_NE(table_row(results[1]).find("timed once"), std::string::npos);
}

TEST(Bench, ASampleHasTheRequestedNumberOfCalls) {
    Context ctx = own_context();
    const Case c = make_case(kernel("tsmttsm"), Dtype::d, 1000);
    Rivals none;
    // most_sample_seconds is so large that no call exceeds it, however busy the machine is.
    const auto results =
        run_case(ctx, c, none,
                 {.repeat = 3, .least_bytes = 1e6, .least_calls = 100, .most_sample_seconds = 1e9},
                 Budget(60));
    EXPECT_GE(results.front().calls_per_sample, 100);
    EXPECT_EQ(results.front().outcome, Outcome::passed);
}

TEST(Bench, AContenderThatThrowsHasFailedWithItsMessage) {
    const auto result = measure_one(make_case(kernel("tsmm"), Dtype::d, 100), Harm::throws);
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_EQ(result.message, "on purpose");
    EXPECT_NE(table_row(result).find("failed: on purpose"), std::string::npos);
}

TEST(Bench, ASettingThatDoesNotExistHasNoResult) {
    Context ctx = own_context();
    const Case c = make_case(kernel("dots"), Dtype::d, 100);
    const auto workload = c.kernel->prepare(ctx, c, 0);
    const auto refuse = [](std::int64_t) { throw UnsupportedError("no such kernel"); };
    const auto results = measure(ctx, c, *workload,
                                 {harmful(ctx, *workload, Harm::none),
                                  {figure_variant("threads=7"), refuse},
                                  {figure_variant("unchecked"), [](std::int64_t) {}, false},
                                  {"quiver (other)", refuse}},
                                 {.repeat = 3}, Budget(60));
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[1].library, figure_variant("unchecked"));
    EXPECT_EQ(results[1].outcome, Outcome::passed);
    EXPECT_EQ(results[2].message, "no such kernel");
}

TEST(Bench, LeastBytesAndFlopsAreThoseOfTheLedger) {
    Context ctx = own_context();
    for (const Kernel* each : kernels_for(Dtype::z)) {
        const Case c = make_case(*each, Dtype::z, 600);
        const auto workload = each->prepare(ctx, c, 0);
        workload->reset();
        ctx.ledger().clear();
        workload->run(0);
        const std::string name = each->name();
        if (name.starts_with("orth-")) {
            // Not compared: mixed-cholesky-qr, whose ledger counts the operations of twofold sums,
            // and TSQR on a device, which uses products.
            double bytes = 0;
            double flops = 0;
            for (const KernelRecord& record : ctx.ledger().records()) {
                bytes += record.bytes;
                flops += record.flops;
            }
            const bool by_products = name == "orth-tsqr" && ctx.place() == Place::device;
            if (name != "orth-mixed-cholesky-qr" && !by_products) {
                EXPECT_EQ(bytes, each->bytes(c)) << name;
                EXPECT_EQ(flops, each->flops(c)) << name;
            }
            continue;
        }
        const bool triangle = name.starts_with("batched-cholesky");
        const std::string entry = name == "gram"                   ? "tsmttsm"
                                  : name == "weighted"             ? "weighted_tsmttsm"
                                  : name == "tsmm-gram"            ? "tsmm_gram"
                                  : name == "shifted-gram"         ? "shifted_gram"
                                  : name.starts_with("batched-lu") ? "lu_factor"
                                  : triangle                       ? "cholesky_factor"
                                  : name == "batched-solve"        ? "lu_solve"
                                  : name == "batched-inverse"      ? "lu_inverse"
                                  : name == "batched-determinant"  ? "lu_determinant"
                                                                   : name.substr(0, name.find('-'));
        bool found = false;
        for (const KernelRecord& record : ctx.ledger().records()) {
            if (record.call.name == entry) {
                found = true;
                if (triangle) {
                    // The bench counts whole matrices, the ledger one triangle.
                    EXPECT_LT(record.bytes, each->bytes(c)) << name;
                } else {
                    EXPECT_EQ(record.bytes, each->bytes(c)) << name;
                }
                EXPECT_EQ(record.flops, each->flops(c)) << name;
            }
        }
        EXPECT_TRUE(found) << name;
    }
}

TEST(Bench, TheStencilIsTheGeneratorsMatrix) {
    const Stencil grid(90);  // 4 x 4 x 5
    const auto rows = generate<double>(Comm(), "gen:laplace3d,nx=4,ny=4,nz=5", 1);
    ASSERT_EQ(rows.map.global_rows(), grid.rows());
    EXPECT_EQ(rows.nonzeros(), grid.nonzeros());
    EXPECT_EQ(Stencil(grid.rows()).rows(), grid.rows()) << "a grid's size gives that grid again";
    for (std::int64_t row = 0; row < grid.rows(); ++row) {
        std::vector<double> expected(static_cast<std::size_t>(grid.rows()), 0.0);
        grid.row_entries(row, [&](std::int64_t column, double value) {
            expected.at(static_cast<std::size_t>(column)) = value;
        });
        for (std::int64_t e = rows.row_start[static_cast<std::size_t>(row)];
             e < rows.row_start[static_cast<std::size_t>(row) + 1]; ++e) {
            const auto entry = static_cast<std::size_t>(e);
            double& value = expected[static_cast<std::size_t>(rows.column[entry])];
            EXPECT_EQ(value, rows.value[entry]);
            value = 0;
        }
        EXPECT_EQ(std::count(expected.begin(), expected.end(), 0.0), std::ssize(expected));
    }
}

TEST(Bench, KeepsItsBudgetAndReportsOmittedCases) {
    std::vector<Case> cases;
    for (int width = 1; width <= 40; ++width) {
        cases.push_back({&kernel("tsmm"), Dtype::d, {width, width}, 100});
    }
    const auto slow = [](const Case& c) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        Result result;
        result.which = c;
        result.library = "quiver";
        return std::vector<Result>{result};
    };
    std::size_t shown = 0;
    const Budget budget(0.1);
    Session session;
    session.runs.emplace_back();
    run_all(
        cases, budget, slow, [&](const std::vector<Result>& results) { shown += results.size(); },
        session);
    EXPECT_EQ(shown, session.results.size());
    EXPECT_LE(session.results.size(), 6u) << "the sixth starts after 0.1 s at the latest";
    ASSERT_GE(session.results.size(), 1u);
    ASSERT_EQ(session.results.size() + session.not_run.size(), cases.size());
    EXPECT_EQ(session.results.front().which.shape, cases.front().shape);
    EXPECT_EQ(session.not_run.back().shape, cases.back().shape);
    EXPECT_NE(table_foot(session, 0.1).find("no time left"), std::string::npos);

    const Budget spent(0);
    Session shortest;
    shortest.runs.emplace_back();
    run_all(
        cases, spent, slow, [](const std::vector<Result>&) {}, shortest);
    EXPECT_EQ(shortest.results.size(), 1u) << "the first case always runs";
}

TEST(Bench, RooflineUsesTheLimitingCeiling) {
    Ceilings ceilings;
    ceilings.read = 1e9;
    ceilings.copy = 5e8;
    ceilings.scale = 2.5e8;
    ceilings.peaks = {{"plain", 5e8, false}, {"tensor", 1e9, false}, {"single", 8e9, true}};
    Result result;
    result.samples = 1;
    result.seconds.median = 1;
    result.which = {&kernel("tsmttsm"), Dtype::d, {1, 1}, 1000000};  // 16 MB, 2 Mflop
    hold_against(ceilings, false, result);
    EXPECT_EQ(result.ceiling, "read");
    EXPECT_DOUBLE_EQ(result.roofline_percent, 1.6);
    EXPECT_EQ(result.limit_seconds, 0);
    hold_against(ceilings, true, result);
    EXPECT_DOUBLE_EQ(result.limit_seconds, 0.016 / 0.9 + 5e-6);
    result.which.kernel = &kernel("tsmm");
    hold_against(ceilings, false, result);
    EXPECT_EQ(result.ceiling, "copy");
    EXPECT_DOUBLE_EQ(result.roofline_percent, 3.2);
    result.which.kernel = &kernel("axpby");  // 24 MB
    hold_against(ceilings, false, result);
    EXPECT_EQ(result.ceiling, "scale");
    EXPECT_DOUBLE_EQ(result.roofline_percent, 9.6);
    result.which.kernel = &kernel("tsmm");
    result.which.shape = {64, 64};  // 1 GB, 8.2 Gflop
    hold_against(ceilings, false, result);
    EXPECT_EQ(result.ceiling, "flops") << "the higher of two peaks counts";
    EXPECT_NEAR(result.roofline_percent, 819.2, 1e-9);
    result.which.scalar = Dtype::s;
    hold_against(ceilings, false, result);
    EXPECT_NEAR(result.roofline_percent, 102.4, 1e-9) << "0.5 GB at 5e8, 8.2 Gflop at 8e9";
}

TEST(Bench, CeilingsAreMeasured) {
    Context ctx = own_context();
    const Ceilings ceilings = measure_ceilings(ctx, 64e6, 1);
    for (const Traffic traffic : {Traffic::read, Traffic::copy, Traffic::scale}) {
        EXPECT_GT(ceilings.of(traffic), 1e8) << to_string(traffic);
        EXPECT_LT(ceilings.of(traffic), 1e14) << to_string(traffic);
    }
    EXPECT_GT(ceilings.flops(Dtype::d), 1e8);
    EXPECT_GT(ceilings.flops(Dtype::s), 1e8);
    EXPECT_EQ(ceilings.flops(Dtype::z), ceilings.flops(Dtype::d));
    EXPECT_EQ(ceilings.flops(Dtype::c), ceilings.flops(Dtype::s));
}

TEST(Bench, CeilingsAreMeasuredOnceAndKept) {
    Context ctx = own_context();
    const test::SharedFolder folder(ctx.comm());
    const test::Environment cache("QUIVER_CACHE", folder.path("new").c_str());
    int measurements = 0;
    const auto measure = [&](Context& alone, double share) {
        EXPECT_EQ(alone.place(), ctx.place());
        EXPECT_EQ(share, 1);
        ++measurements;
        Ceilings ceilings;
        ceilings.read = 1e9 * measurements;
        ceilings.copy = 4e9;
        ceilings.scale = measurements < 4 ? 5e9 : 0;
        ceilings.peaks = {{"FMA single", 3e9, true}, {"FMA double", 2e9, false}};
        return ceilings;
    };
    for (int run = 0; run < 3; ++run) {
        const Ceilings ceilings = kept_ceilings(ctx, measure);
        EXPECT_EQ(ceilings.read, 1e9) << run;
        EXPECT_EQ(ceilings.copy, 4e9) << run;
        EXPECT_EQ(ceilings.scale, 5e9) << run;
        EXPECT_EQ(ceilings.flops(Dtype::s), 3e9) << run;
        EXPECT_EQ(ceilings.flops(Dtype::z), 2e9) << run;
    }
    EXPECT_EQ(measurements, 1);
    for (const auto& file : std::filesystem::directory_iterator(folder.path("new"))) {
        std::filesystem::resize_file(file, 30);
    }
    EXPECT_EQ(kept_ceilings(ctx, measure).read, 2e9) << "a damaged file is measured again";
    EXPECT_EQ(kept_ceilings(ctx, measure).read, 2e9);
    const test::Environment nowhere("QUIVER_CACHE", "/proc/none");
    EXPECT_EQ(kept_ceilings(ctx, measure).read, 3e9) << "without a folder";
    const test::Environment other("QUIVER_CACHE", folder.path("other").c_str());
    EXPECT_EQ(kept_ceilings(ctx, measure).read, 4e9);
    EXPECT_EQ(kept_ceilings(ctx, measure).read, 5e9) << "a stream was not measured";
}

TEST(Bench, WithoutAStreamThereIsNoRoofline) {
    Context ctx = own_context();
    const Ceilings ceilings = measure_ceilings(ctx, 1e18, 1e18);
    for (const Traffic traffic : {Traffic::read, Traffic::copy, Traffic::scale}) {
        EXPECT_EQ(ceilings.of(traffic), 0) << to_string(traffic);
    }
    EXPECT_GT(ceilings.flops(Dtype::d), 1e8);
    Environment environment;
    environment.cache_bytes = 1e9;
    EXPECT_NE(table_head(environment, ceilings).find("twice the caches are 2000 MB"),
              std::string::npos);

    Rivals none;
    const Case c = make_case(kernel("tsmm"), Dtype::d, 1000);
    Result result = run_case(ctx, c, none, {.repeat = 3}, Budget(60)).at(0);
    hold_against(ceilings, true, result);
    EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
    EXPECT_GT(result.bytes, 0);
    EXPECT_EQ(result.ceiling, "");
    EXPECT_FALSE(result.has_roofline());
    EXPECT_EQ(result.limit_seconds, 0);
}

TEST(Bench, UsesSmallerOperandsIfMemoryIsShort) {
    if (test::address_space_is_vast) {
        GTEST_SKIP() << "the sanitizer's address space cannot be limited";
    }
    if (test::test_place() == Place::device) {
        GTEST_SKIP() << "the limit is on the memory of the host";
    }
    Context ctx = own_context();
    measure_ceilings(ctx, 1, 1);  // starts the threads now, since they map additional memory
    const test::AddressSpaceLimit limit(rlim_t{256} << 20);
    EXPECT_GT(measure_ceilings(ctx, 1e18, 64e6).read, 1e8);

    Rivals none;
    const Case c = make_case(kernel("tsmm"), Dtype::d, 1000);
    const auto run = [&](double least_bytes) {
        Result result =
            run_case(ctx, c, none, {.repeat = 3, .least_bytes = least_bytes}, Budget(60)).at(0);
        EXPECT_EQ(result.outcome, Outcome::passed) << result.message;
        Ceilings ceilings;
        ceilings.copy = 1e9;
        hold_against(ceilings, false, result);
        return result;
    };
    const Result fitting = run(150e6);
    EXPECT_FALSE(fitting.in_cache) << "more than half of what was asked for";
    EXPECT_TRUE(fitting.has_roofline());
    const Result cut = run(1e18);
    EXPECT_TRUE(cut.in_cache);
    EXPECT_FALSE(cut.has_roofline());
    EXPECT_NE(table_row(cut).find("operands in a cache"), std::string::npos);
}

TEST(Bench, QuartilesInterpolate) {
    const Times times = summarise({5, 1, 3, 2, 4});
    EXPECT_EQ(times.least, 1);
    EXPECT_EQ(times.lower_quartile, 2);
    EXPECT_EQ(times.median, 3);
    EXPECT_EQ(times.upper_quartile, 4);
    EXPECT_EQ(summarise({1, 2}).median, 1.5);
    EXPECT_EQ(summarise({7}).upper_quartile, 7);
}

TEST(Bench, ListsOfWidthsShapesAndScalars) {
    const auto widths = [](const std::string& text) {
        std::vector<int> result;
        for (const Shape& shape : parse_widths(text)) {
            EXPECT_EQ(shape.m, shape.n);
            result.push_back(shape.n);
        }
        return result;
    };
    EXPECT_EQ(widths("1:3, 8,2"), (std::vector<int>{1, 2, 3, 8}));
    EXPECT_EQ(parse_shapes("4x8, 64 x 1"), (std::vector<Shape>{{4, 8}, {64, 1}}));
    EXPECT_EQ(parse_scalars("d,z,d"), (std::vector<Dtype>{Dtype::d, Dtype::z}));
    for (const char* bad : {"", "0", "513", "3:2", "4x4", "1,,2", "two", "8:"}) {
        EXPECT_THROW(parse_widths(bad), InputError) << bad;
    }
    EXPECT_EQ(parse_rows("1000, 1e6,1000"), (std::vector<std::int64_t>{1000, 1000000}));
    for (const char* bad : {"", "0", "-1", "1.5", "1e30", "ten", "1,,2", "nan"}) {
        EXPECT_THROW(parse_rows(bad), InputError) << bad;
    }
    EXPECT_EQ(parse_ld_extra("0,3,1,3"), (std::vector<int>{0, 3, 1}));
    for (const char* bad : {"", "-1", "513", "1.5", "x"}) {
        EXPECT_THROW(parse_ld_extra(bad), InputError) << bad;
    }
    EXPECT_EQ(parse_kernels("tsmm,gram,tsmm").size(), 2u);
    // Two kernels, for interleaved matrices, run only by their names.
    EXPECT_EQ(parse_kernels("all").size() + 2, all_kernels().size());
    EXPECT_EQ(parse_kernels("batched").size(), 5u);
    EXPECT_EQ(parse_kernels("batched-lu-interleaved").size(), 1u);
    EXPECT_EQ(parse_kernels("orth,orth-tsqr").size(), 7u);
    EXPECT_THROW(parse_kernels("gemm"), InputError);
    for (const char* bad : {"", "4", "4x", "x4", "4x0", "4x4x4", "4x513", "1048577x1"}) {
        EXPECT_THROW(parse_shapes(bad), InputError) << bad;
    }
    EXPECT_THROW(parse_scalars("d,q"), InputError);
    std::vector<Shape> shapes = parse_widths("1:9");
    order_by_meaning(shapes);
    std::vector<int> order;
    order.reserve(shapes.size());
    for (const Shape& shape : shapes) {
        order.push_back(shape.n);
    }
    EXPECT_EQ(order, (std::vector<int>{8, 4, 2, 1, 9, 6, 5, 3, 7}));
}

TEST(Bench, ShapesThatAreNotListedOneByOne) {
    const auto shapes = random_shapes(200, 7);
    EXPECT_EQ(shapes.size(), 200u);
    EXPECT_EQ(shapes, random_shapes(200, 7)) << "the same seed, the same shapes";
    EXPECT_NE(shapes, random_shapes(200, 8));
    EXPECT_EQ(shapes.front(), (Shape{40, 35})) << "and on every machine";
    int widest = 0;
    for (const Shape& shape : shapes) {
        EXPECT_GE(std::min(shape.m, shape.n), 1);
        widest = std::max({widest, shape.m, shape.n});
    }
    EXPECT_LE(widest, 64);
    EXPECT_GT(widest, 48);
    EXPECT_EQ(random_shapes(4096, 1).size(), 4096u) << "all that there are";
    EXPECT_EQ(gram_schmidt_shapes().size(), 35u);
    EXPECT_EQ(gram_schmidt_shapes().back(), (Shape{400, 16}));
}

}  // namespace
}  // namespace quiver::apps::bench
