// SPDX-License-Identifier: BSD-3-Clause
// The bench runner: what it measures, that it tells right from wrong, that it keeps to its budget.
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/bench/bench_report.hpp"
#include "apps/bench/runner.hpp"
#include "apps/bench/stencil.hpp"
#include "apps/matrices/generators.hpp"
#include "blockvec/error.hpp"
#include "kernels/column_ops.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps::bench {
namespace {

/// A Context of this process alone, in the place under test, as the command makes it.
Context own_context() {
    return Context(Comm(), test::test_place() == Place::device ? Device::cuda() : Device::host());
}

/// Does what quiver does, then harms the result, or does nothing at all.
enum class Harm { none, no_op, last_row, one_element, throws };

template <class T>
class Harmful final : public Provider<T> {
  public:
    explicit Harmful(Harm harm) : harm_(harm) {}
    const char* name() const override { return "harmful"; }
    void run(Context& ctx, Kernel kernel, const Operands<T>& operands) override {
        if (harm_ == Harm::throws) {
            throw NumericalError("on purpose");
        }
        if (harm_ == Harm::no_op) {
            return;
        }
        quiver_->run(ctx, kernel, operands);
        const BlockView<T> out = kernel == Kernel::tsmttsm ? operands.small : operands.y;
        if (harm_ == Harm::last_row) {
            fill(ctx, T(0), out.row_range(out.rows - 1, 1));
        }
        if (harm_ == Harm::one_element) {
            // In a row that no sample need hit: only finiteness is known of every row.
            const real_t<T> nan = std::numeric_limits<real_t<T>>::quiet_NaN();
            fill(ctx, T(nan), out.row_range(out.rows / 2, 1).columns(0, 1));
        }
    }

  private:
    Harm harm_;
    std::unique_ptr<Provider<T>> quiver_ = std::move(make_providers<T>().front());
};

template <class T>
Result measure_one(Kernel kernel, Shape shape, std::int64_t rows, Harm harm,
                   double least_bytes = 0) {
    Context ctx = own_context();
    const Case c{kernel, dtype_v<T>, shape, kernel == Kernel::spmmv ? Stencil(rows).rows() : rows};
    Providers<T> providers;
    providers.push_back(std::make_unique<Harmful<T>>(harm));
    const auto results =
        run_case<T>(ctx, c, providers, {.repeat = 3, .least_bytes = least_bytes}, Budget(60));
    EXPECT_EQ(results.size(), 1u);
    return results.at(0);
}

Shape shape_of(Kernel kernel) {
    return has_two_widths(kernel) ? Shape{3, 5} : Shape{4, 4};
}

template <class T>
class BenchOf : public ::testing::Test {};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BenchOf, Scalars);

TYPED_TEST(BenchOf, CorrectResultsPass) {
    for (const Kernel kernel : all_kernels) {
        for (const std::int64_t rows : {1, 7, 1021, 5000}) {
            const auto result = measure_one<TypeParam>(kernel, shape_of(kernel), rows, Harm::none);
            EXPECT_EQ(result.outcome, Outcome::passed)
                << to_string(kernel) << ' ' << rows << " rows: " << result.error << ' '
                << result.message;
            EXPECT_EQ(result.samples, 3);
            EXPECT_GT(result.seconds.least, 0);
        }
    }
}

TYPED_TEST(BenchOf, SetsTakenInTurnAreCheckedWhereTheyAre) {
    for (const Kernel kernel : all_kernels) {
        const auto result = measure_one<TypeParam>(kernel, shape_of(kernel), 1500, Harm::none, 1e6);
        EXPECT_EQ(result.outcome, Outcome::passed) << to_string(kernel) << ' ' << result.error;
        EXPECT_GT(result.sets, 4);
    }
}

TYPED_TEST(BenchOf, AProviderThatDoesNothingIsIncorrect) {
    for (const Kernel kernel : all_kernels) {
        const auto result = measure_one<TypeParam>(kernel, shape_of(kernel), 5000, Harm::no_op);
        EXPECT_EQ(result.outcome, Outcome::incorrect) << to_string(kernel);
        EXPECT_GT(result.error, 1) << to_string(kernel);
    }
}

TYPED_TEST(BenchOf, OneWrongRowOrElementIsIncorrect) {
    for (const Kernel kernel : {Kernel::tsmttsm, Kernel::tsmm, Kernel::axpby, Kernel::spmmv}) {
        for (const Harm harm : {Harm::last_row, Harm::one_element}) {
            const auto result = measure_one<TypeParam>(kernel, shape_of(kernel), 50000, harm);
            EXPECT_EQ(result.outcome, Outcome::incorrect)
                << to_string(kernel) << ' ' << static_cast<int>(harm) << ' ' << result.error;
        }
    }
}

TEST(Bench, AProviderThatThrowsHasFailedAndSaysWhy) {
    const auto result = measure_one<double>(Kernel::tsmm, {2, 2}, 100, Harm::throws);
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_EQ(result.message, "on purpose");
    EXPECT_NE(table_row(result).find("failed: on purpose"), std::string::npos);
}

TEST(Bench, MinimumBytesAndFlopsAreThoseOfTheLedger) {
    Context ctx = own_context();
    for (const Kernel kernel : all_kernels) {
        const Case c{kernel, Dtype::z, shape_of(kernel),
                     kernel == Kernel::spmmv ? Stencil(600).rows() : 600};
        using T = std::complex<double>;
        Workload<T> workload(ctx, c, 0);
        auto providers = make_providers<T>();
        workload.reset();
        ctx.ledger().clear();
        providers.front()->run(ctx, kernel, workload.operands(0));
        bool found = false;
        for (const KernelRecord& record : ctx.ledger().records()) {
            if (record.call.name == std::string(to_string(kernel))) {
                found = true;
                EXPECT_EQ(record.bytes, minimum_bytes(c)) << to_string(kernel);
                EXPECT_EQ(record.flops, flops(c)) << to_string(kernel);
            }
        }
        EXPECT_TRUE(found) << to_string(kernel);
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

TEST(Bench, KeepsToItsBudgetAndSaysWhatItLeftOut) {
    std::vector<Case> cases;
    for (int width = 1; width <= 40; ++width) {
        cases.push_back({Kernel::tsmm, Dtype::d, {width, width}, 100});
    }
    const auto slow = [](const Case& c) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        Result result;
        result.which = c;
        return std::vector<Result>{result};
    };
    std::size_t shown = 0;
    const Budget budget(0.1);
    const Session session = run_all(cases, budget, slow, [&](const Result&) { ++shown; });
    EXPECT_EQ(shown, session.results.size());
    EXPECT_LE(session.results.size(), 6u) << "the sixth starts after 0.1 s at the latest";
    ASSERT_GE(session.results.size(), 1u);
    ASSERT_EQ(session.results.size() + session.not_run.size(), cases.size());
    EXPECT_EQ(session.results.front().which.shape, cases.front().shape);
    EXPECT_EQ(session.not_run.back().shape, cases.back().shape);
    EXPECT_NE(table_foot(session, 0.1).find("for want of time"), std::string::npos);

    const Budget spent(0);
    const Session shortest = run_all(cases, spent, slow, [](const Result&) {});
    EXPECT_EQ(shortest.results.size(), 1u) << "the most telling case always runs";
}

TEST(Bench, JsonHasTheFieldsOfItsSchema) {
    Context ctx = own_context();
    Ceilings ceilings;
    ceilings.read = 10e9;
    ceilings.scale = 8e9;
    Session session;
    session.results.push_back(measure_one<double>(Kernel::tsmttsm, {3, 5}, 4000, Harm::none));
    session.results.push_back(measure_one<double>(Kernel::tsmttsm, {3, 5}, 4000, Harm::no_op));
    session.results.push_back(measure_one<double>(Kernel::tsmttsm, {3, 5}, 4000, Harm::throws));
    for (Result& result : session.results) {
        hold_against(ceilings, result);
    }
    session.not_run.push_back({Kernel::tsmm, Dtype::c, {64, 2}, 77});
    const auto json = nlohmann::json::parse(
        to_json(describe_environment(ctx, "a note"), ceilings, {"all", 3, 60}, session, 1.5));
    EXPECT_EQ(json["schema"], 1);
    EXPECT_EQ(json["command"], "bench");
    EXPECT_TRUE(json["version"].is_string());
    EXPECT_EQ(json["date"].get<std::string>().size(), std::string("2026-01-01T00:00:00Z").size());
    for (const char* field :
         {"cpu", "threads", "device", "gpu", "cuda", "device_note", "cache_bytes"}) {
        EXPECT_TRUE(json["environment"].contains(field)) << field;
    }
    EXPECT_EQ(json["ceilings"]["read_gb_per_s"], 10);
    EXPECT_TRUE(json["ceilings"]["double_gflop_per_s"].is_null()) << "it was not measured";
    ASSERT_EQ(json["results"].size(), 3u);
    const auto& good = json["results"][0];
    for (const char* field : {"error", "samples", "calls_per_sample", "sets", "gb_per_s",
                              "gflop_per_s", "roofline_percent"}) {
        EXPECT_TRUE(good[field].is_number()) << field;
    }
    EXPECT_EQ(good["kernel"], "tsmttsm");
    EXPECT_EQ(good["scalar"], "d");
    EXPECT_EQ(good["m"], 3);
    EXPECT_EQ(good["n"], 5);
    EXPECT_EQ(good["rows"], 4000);
    EXPECT_EQ(good["provider"], "harmful");
    EXPECT_EQ(good["outcome"], "passed");
    EXPECT_EQ(good["ceiling"], "read");
    EXPECT_EQ(good["bytes"], 8 * 4000 * (3 + 5));
    EXPECT_EQ(good["flops"], 2 * 4000 * 3 * 5);
    const double median = good["seconds"]["median"];
    EXPECT_LE(good["seconds"]["least"], good["seconds"]["lower_quartile"]);
    EXPECT_LE(good["seconds"]["lower_quartile"], median);
    EXPECT_LE(median, good["seconds"]["upper_quartile"]);
    EXPECT_DOUBLE_EQ(good["gb_per_s"], 8 * 4000 * 8 / median * 1e-9);
    EXPECT_DOUBLE_EQ(good["roofline_percent"], 100 * (8 * 4000 * 8 / 10e9) / median);
    EXPECT_EQ(json["results"][1]["outcome"], "incorrect");
    EXPECT_TRUE(json["results"][1]["error"].is_null()) << "the result was not finite";
    EXPECT_EQ(json["results"][2]["outcome"], "failed");
    EXPECT_EQ(json["results"][2]["message"], "on purpose");
    EXPECT_EQ(json["not_run"][0]["kernel"], "tsmm");
    EXPECT_EQ(json["not_run"][0]["m"], 64);
}

TEST(Bench, RooflineTakesTheCeilingThatBinds) {
    Ceilings ceilings;
    ceilings.read = 1e9;
    ceilings.scale = 5e8;
    ceilings.double_flops = 1e9;
    Result result;
    result.samples = 1;
    result.seconds.median = 1;
    result.which = {Kernel::tsmttsm, Dtype::d, {1, 1}, 1000000};  // 16 MB, 2 Mflop
    hold_against(ceilings, result);
    EXPECT_EQ(result.ceiling, "read");
    EXPECT_DOUBLE_EQ(result.roofline_percent, 1.6);
    result.which.kernel = Kernel::tsmm;
    hold_against(ceilings, result);
    EXPECT_EQ(result.ceiling, "scale");
    EXPECT_DOUBLE_EQ(result.roofline_percent, 3.2);
    result.which.shape = {64, 64};  // 1 GB, 8.2 Gflop
    hold_against(ceilings, result);
    EXPECT_EQ(result.ceiling, "flops");
    EXPECT_NEAR(result.roofline_percent, 819.2, 1e-9);
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
    for (const char* bad : {"", "4", "4x", "x4", "4x0", "4x4x4"}) {
        EXPECT_THROW(parse_shapes(bad), InputError) << bad;
    }
    EXPECT_THROW(parse_scalars("d,q"), InputError);
    std::vector<Shape> shapes = parse_widths("1:9");
    order_by_meaning(shapes);
    std::vector<int> order;
    for (const Shape& shape : shapes) {
        order.push_back(shape.n);
    }
    EXPECT_EQ(order, (std::vector<int>{8, 4, 2, 1, 9, 6, 5, 3, 7}));
}

}  // namespace
}  // namespace quiver::apps::bench
