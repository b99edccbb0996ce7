// SPDX-License-Identifier: BSD-3-Clause
// What a bench session leaves: JSON that reads back, summaries, charts, the paper's comparison.
#include "apps/bench/bench_report.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/bench/plot.hpp"
#include "apps/bench/reproduce.hpp"
#include "blockvec/error.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps::bench {
namespace {

/// A result of 4 ms and 50% of the roofline, which the cases change.
Result made_up(const char* kernel, Dtype scalar, Shape shape, std::int64_t rows,
               const char* provider = "quiver") {
    Result result;
    result.which = {find_kernel(kernel), scalar, shape, rows};
    result.provider = provider;
    result.outcome = Outcome::passed;
    result.error = 0.25;
    result.seconds = {4e-3, 3e-3, 5e-3, 2e-3};
    result.samples = 20;
    result.calls_per_sample = 3;
    result.sets = 2;
    result.bytes = result.which.kernel->bytes(result.which);
    result.flops = result.which.kernel->flops(result.which);
    result.ceiling = "read";
    result.roofline_percent = 50;
    return result;
}

Document made_up_document() {
    Document document{"tsmttsm", 20, 60, {}, {}};
    document.environment = {"a processor", 4, "cuda", "a GPU", "", 5e7, {{"cublas", "13.1.0"}}};
    Ceilings ceilings;
    ceilings.read = 4e12;
    ceilings.copy = 3e12;
    ceilings.scale = 3.5e12;
    ceilings.peaks = {{"FMA single", 5e13, true}, {"tensor double 16x8x4", 6e13, false}};
    document.session.runs = {{"2026-01-01T00:00:00Z", {}, {}, 1.5},
                             {"2026-01-02T00:00:00Z", ceilings, {"cublas"}, 2.5}};
    for (const int width : {1, 2, 64}) {
        Result ours = made_up("tsmttsm", Dtype::d, {width, width}, 100000);
        ours.run = 1;
        ours.roofline_percent = 100 - width;
        ours.ceiling = width == 64 ? "flops" : "read";
        Result theirs = ours;
        theirs.provider = "cublas";
        theirs.ratio = width == 1 ? 8 : width == 2 ? 2 : 0.5;
        theirs.timed_once = width == 1;
        document.session.results.push_back(ours);
        document.session.results.push_back(theirs);
    }
    return document;
}

std::string save(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::temp_directory_path() / name;
    std::ofstream(path) << text;
    return path.string();
}

TEST(BenchReport, JsonHasTheFieldsOfItsSchema) {
    Document document = made_up_document();
    document.session.results[0].limit_seconds = 3e-3;
    document.session.results[2].outcome = Outcome::incorrect;
    document.session.results[2].error = std::numeric_limits<double>::infinity();
    document.session.results[4].outcome = Outcome::failed;
    document.session.results[4].message = "on purpose";
    document.session.not_run.push_back({find_kernel("tsmm"), Dtype::c, {64, 2}, 77});
    const auto json = nlohmann::json::parse(to_json(document));
    EXPECT_EQ(json["schema"], 2);
    EXPECT_EQ(json["command"], "bench");
    EXPECT_TRUE(json["version"].is_string());
    for (const char* field :
         {"cpu", "threads", "device", "gpu", "cuda", "device_note", "cache_bytes", "rivals"}) {
        EXPECT_TRUE(json["environment"].contains(field)) << field;
    }
    ASSERT_EQ(json["runs"].size(), 2u);
    EXPECT_TRUE(json["runs"][0]["ceilings"]["read_gb_per_s"].is_null()) << "it was not measured";
    const auto& ceilings = json["runs"][1]["ceilings"];
    EXPECT_EQ(ceilings["read_gb_per_s"], 4000);
    EXPECT_EQ(ceilings["single_gflop_per_s"], 50000);
    EXPECT_EQ(ceilings["double_gflop_per_s"], 60000);
    EXPECT_EQ(ceilings["arithmetic"][1]["name"], "tensor double 16x8x4");
    ASSERT_EQ(json["results"].size(), 6u);
    const auto& good = json["results"][0];
    EXPECT_EQ(good["kernel"], "tsmttsm");
    EXPECT_EQ(good["scalar"], "d");
    EXPECT_EQ(good["m"], 1);
    EXPECT_EQ(good["n"], 1);
    EXPECT_EQ(good["rows"], 100000);
    EXPECT_EQ(good["provider"], "quiver");
    EXPECT_EQ(good["outcome"], "passed");
    EXPECT_EQ(good["bytes"], 8 * 100000 * 2);
    EXPECT_DOUBLE_EQ(good["gb_per_s"], 8 * 100000 * 2 / 4e-3 * 1e-9);
    EXPECT_TRUE(good["ratio"].is_null());
    EXPECT_EQ(good["limit_seconds"], 3e-3);
    EXPECT_EQ(json["results"][1]["ratio"], 8);
    EXPECT_EQ(json["results"][1]["timed_once"], true);
    EXPECT_TRUE(json["results"][2]["error"].is_null()) << "the result was not finite";
    EXPECT_EQ(json["results"][4]["message"], "on purpose");
    EXPECT_EQ(json["not_run"][0]["m"], 64);

    const std::string path = save("quiver_bench_report_test.json", to_json(document));
    EXPECT_EQ(to_json(read_document(path)), to_json(document)) << "it reads back";
    std::filesystem::remove(path);
}

TEST(BenchReport, FilesThatAreNoResultsAreRefused) {
    EXPECT_THROW(read_document("/nonexistent/file.json"), InputError);
    std::string wrong_schema = to_json(made_up_document());
    wrong_schema.replace(wrong_schema.find("\"schema\": 2"), 11, "\"schema\": 1");
    std::string wrong_kernel = to_json(made_up_document());
    wrong_kernel.replace(wrong_kernel.find("\"kernel\": \"tsmttsm\",\n      \"scalar\""), 19,
                         "\"kernel\": \"tsmttsX\"");
    for (const std::string& text :
         {std::string("{"), std::string("[]"), std::string("{\"command\": \"eigs\"}"), wrong_schema,
          wrong_kernel}) {
        const std::string path = save("quiver_bench_bad.json", text);
        try {
            read_document(path);
            ADD_FAILURE() << "accepted " << text.substr(0, 40);
        } catch (const InputError& error) {
            EXPECT_EQ(std::string(error.what()).find(path), 0u) << error.what();
        }
        std::filesystem::remove(path);
    }
}

TEST(BenchReport, ASessionKnowsWhatItHas) {
    Session session = made_up_document().session;
    const Case c = session.results.front().which;
    EXPECT_TRUE(session.has(c, {}));
    EXPECT_TRUE(session.has(c, {"cublas"}));
    EXPECT_FALSE(session.has(c, {"cublas", "eigen"})) << "that run did not meet eigen";
    Case other = c;
    other.rows += 1;
    EXPECT_FALSE(session.has(other, {}));
    session.runs.emplace_back();
    session.add({made_up("tsmttsm", Dtype::d, {1, 1}, 100000)});
    EXPECT_EQ(session.results.size(), 5u) << "both old results of the case have gone";
    EXPECT_EQ(session.results.back().run, 2);
    EXPECT_FALSE(session.has(c, {"cublas"}));
    session.results.back().outcome = Outcome::failed;
    EXPECT_FALSE(session.has(c, {})) << "a failed case runs again";
}

TEST(BenchReport, SummaryCountsAndAverages) {
    Document document = made_up_document();
    const std::string text = summary(document.session);
    EXPECT_NE(text.find("at least 98.0% of the roofline (2x2, 100000 rows)"), std::string::npos)
        << text;
    EXPECT_NE(text.find("at least 36.0% of the roofline (64x64"), std::string::npos) << text;
    // Of 2 and 1/2; the 8 was timed once.
    EXPECT_NE(text.find("vs cublas     1.00 times as fast on the geometric mean of 2 cases, least "
                        "0.50 (64x64, 100000 rows), 1 below 0.98, 1 case left out"),
              std::string::npos)
        << text;
    document.session.results[0].limit_seconds = 5e-3;
    document.session.results[2].limit_seconds = 1e-3;
    EXPECT_NE(summary(document.session).find("1 of 2 within roofline / 0.9 + 5 us; most 4.00"),
              std::string::npos);
    EXPECT_EQ(summary(Session{}), "");
}

std::size_t count(const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        ++found;
    }
    return found;
}

TEST(BenchReport, ChartsHoldEveryResult) {
    const std::string svg = plot(made_up_document());
    EXPECT_EQ(svg.find("<svg "), 0u);
    EXPECT_NE(svg.find("</svg>"), std::string::npos);
    // Three points each and one in the legend.
    EXPECT_EQ(count(svg, "fill=\"#0072B2\"/>"), 4u);
    EXPECT_EQ(count(svg, "fill=\"#D55E00\"/>"), 4u);
    EXPECT_EQ(count(svg, "<polyline"), 2u);
    for (const char* text :
         {"width m = n", "% of the roofline", ">cublas<", ">quiver<",
          "ceiling: 4000 GB/s read, 60.0 TFLOP/s", "bound by flops", "tsmttsm d: C = X^H Y",
          "a GPU. quiver ", "2026-01-02", "cublas 13.1.0"}) {
        EXPECT_EQ(count(svg, text), 1u) << text;
    }

    Document sweep = made_up_document();
    for (Result& result : sweep.session.results) {
        result.which.rows = 1000 * result.which.shape.n;
        result.which.shape = {4, 4};
    }
    const std::string rows = plot(sweep);
    EXPECT_EQ(count(rows, "time of a call, us"), 1u);
    EXPECT_EQ(count(rows, ">4x4<"), 1u);
    EXPECT_EQ(count(rows, ">roofline<"), 1u);
    EXPECT_EQ(count(rows, "width m = n"), 0u);

    Document other = made_up_document();
    for (Result& result : other.session.results) {
        result.which.shape.m += 1;
    }
    EXPECT_EQ(count(plot(other), "flops per byte"), 1u);
    EXPECT_THROW(plot(Document{}), InputError);
}

TEST(BenchReport, MergedSessionsKeepTheLaterOfTwoResults) {
    const Document first = made_up_document();
    Document second = made_up_document();
    second.session.results.resize(1);
    second.session.results[0].seconds.median = 1;
    const Document both = merge({first, second});
    EXPECT_EQ(both.session.runs.size(), 4u);
    ASSERT_EQ(both.session.results.size(), 6u);
    EXPECT_EQ(both.session.results.back().seconds.median, 1);
    EXPECT_EQ(both.session.results.back().run, 3);
}

TEST(BenchReport, ThePapersNumbersStandBesideOurs) {
    const auto cases = cases_of("ernst2020", 1e6);
    int widths = 0;
    int rows = 0;
    for (const Case& c : cases) {
        EXPECT_LE(c.kernel->bytes(c), 16e6);
        EXPECT_GE(c.rows, 1);
        widths += c.kernel == find_kernel("tsmm") && c.scalar == Dtype::z;
        rows += c.shape == Shape{4, 4} && c.rows == 1000;
    }
    EXPECT_EQ(widths, 64);
    EXPECT_EQ(rows, 1);
    EXPECT_THROW(cases_of("smith1999", 1e6), InputError);

    Session session = made_up_document().session;
    for (Result& result : session.results) {
        result.which.rows = 123456;  // as many as no sweep over rows has
    }
    const std::string text = compare_with("ernst2020", session);
    for (const char* words : {"880 GB/s", "4000 GB/s", "figure 18", "figure 19", "figure 23",
                              "4766 GFLOP/s", "not run"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << '\n' << text;
    }
    EXPECT_NE(text.find("near 100% (conclusion)         98%"), std::string::npos) << text;
    EXPECT_EQ(compare_with("", made_up_document().session), "");
}

}  // namespace
}  // namespace quiver::apps::bench
