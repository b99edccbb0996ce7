// SPDX-License-Identifier: BSD-3-Clause
// The output of a bench session: JSON that can be read again, summaries, charts, the comparison
// with a paper.
#include "apps/bench/bench_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/bench/choose_cases.hpp"
#include "apps/bench/reproduce.hpp"
#include "blockvec/config.hpp"
#include "blockvec/error.hpp"
#include "kernels/cuda/plan_listing.hpp"
#include "tests/apps/plot_script.hpp"
#include "tests/support/shared_folder.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::apps::bench {
namespace {

/// A result of 4 ms and 50% of the roofline; the tests change it.
Result made_up(const char* kernel, Dtype scalar, Shape shape, std::int64_t rows,
               const char* library = "quiver") {
    Result result;
    result.which = {find_kernel(kernel), scalar, shape, rows};
    result.library = library;
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
        theirs.library = "cublas";
        theirs.ratio = width == 1 ? 8 : width == 2 ? 2 : 0.5;
        theirs.timed_once = width == 1;
        document.session.results.push_back(ours);
        document.session.results.push_back(theirs);
    }
    return document;
}

std::string save(const test::SharedFolder& folder, const std::string& text) {
    std::string path = folder.path("saved.json");
    std::ofstream(path) << text;
    return path;
}

std::size_t count(const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        ++found;
    }
    return found;
}

/// The page that apps/bench/plot.py makes of a document, or the text that it prints if it fails.
/// `page` is svg or markdown.
std::string page_of(const std::string& page, const Document& document) {
    const test::SharedFolder folder{Comm()};
    const std::string out = folder.path("page");
    const std::string command = test::python_with_matplotlib() +
                                " " QUIVER_SOURCE_DIR "/apps/bench/plot.py " +
                                save(folder, to_json(document)) + " --" + page + " " + out;
    const bool done = std::system((command + " 2>" + folder.path("error")).c_str()) == 0;
    std::ostringstream text;
    text << std::ifstream(done ? out : folder.path("error")).rdbuf();
    return text.str();
}

TEST(BenchReport, JsonHasTheFieldsOfItsSchema) {
    Document document = made_up_document();
    document.session.results[0].limit_seconds = 3e-3;
    document.session.results[2].outcome = Outcome::incorrect;
    document.session.results[2].error = std::numeric_limits<double>::infinity();
    document.session.results[4].outcome = Outcome::failed;
    document.session.results[4].message = "on purpose";
    document.session.results[5].which.ld_extra = 3;
    document.session.results[3].in_cache = true;
    document.session.results[3].roofline_percent = 0;
    document.session.runs[1].command = "quiver bench x";
    document.environment.driver = "580.1";
    document.environment.version = "0.0.1";
    document.session.not_run.push_back({find_kernel("tsmm"), Dtype::c, {64, 2}, 77});
    const auto json = nlohmann::json::parse(to_json(document));
    EXPECT_EQ(json["schema"], 5);
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
    EXPECT_EQ(good["ld_extra"], 0);
    EXPECT_EQ(json["results"][5]["ld_extra"], 3);
    EXPECT_EQ(json["environment"]["driver"], "580.1");
    EXPECT_EQ(json["version"], "0.0.1") << "of the session, not of this build";
    EXPECT_EQ(json["runs"][1]["command_line"], "quiver bench x");
    EXPECT_EQ(good["library"], "quiver");
    EXPECT_EQ(good["outcome"], "passed");
    EXPECT_EQ(good["bytes"], 8 * 100000 * 2);
    EXPECT_DOUBLE_EQ(good["gb_per_s"], 8 * 100000 * 2 / 4e-3 * 1e-9);
    EXPECT_TRUE(good["ratio"].is_null());
    EXPECT_EQ(good["limit_seconds"], 3e-3);
    EXPECT_EQ(json["results"][1]["ratio"], 8);
    EXPECT_EQ(json["results"][1]["timed_once"], true);
    EXPECT_TRUE(json["results"][2]["error"].is_null()) << "the result was not finite";
    EXPECT_EQ(json["results"][4]["message"], "on purpose");
    EXPECT_EQ(good["in_cache"], false);
    EXPECT_EQ(json["results"][3]["in_cache"], true);
    EXPECT_TRUE(json["results"][3]["roofline_percent"].is_null()) << "its operands were in a cache";
    EXPECT_EQ(json["not_run"][0]["m"], 64);
    EXPECT_EQ(json["kernels"].size(), 1u) << "those that have results";
    EXPECT_EQ(json["kernels"]["tsmttsm"]["formula"], "C = X^H Y");
    EXPECT_EQ(json["kernels"]["tsmttsm"]["stream"], "read");
    EXPECT_EQ(json["kernels"]["tsmttsm"]["two_widths"], true);
    EXPECT_EQ(good["misses_aim"], true) << "it takes longer than its limit";
    EXPECT_EQ(json["results"][1]["misses_aim"], false) << "a rival has no aim";
    EXPECT_EQ(json["least_ratio"], 0.98);
    EXPECT_EQ("\n" + json["summary"][0].get<std::string>(),
              summary(document).substr(0, summary(document).find('\n', 1)));

    const test::SharedFolder folder{Comm()};
    EXPECT_EQ(to_json(read_document(save(folder, to_json(document)))), to_json(document))
        << "it reads back";

    // A file of schema 2 calls the library `provider` and has no field for gaps.
    auto older = json;
    older["schema"] = 2;
    for (auto& result : older["results"]) {
        result["provider"] = result["library"];
        result.erase("library");
        result.erase("ld_extra");
        result.erase("in_cache");
    }
    older["runs"][1].erase("command_line");
    older["environment"].erase("driver");
    const Document read = read_document(save(folder, older.dump()));
    EXPECT_EQ(read.session.results.at(5).which.ld_extra, 0);
    EXPECT_EQ(read.session.results.at(1).library, "cublas");
}

TEST(BenchReport, FilesThatAreNoResultsAreRefused) {
    const test::SharedFolder folder{Comm()};
    EXPECT_THROW(read_document(folder.path("missing.json")), InputError);
    std::string wrong_schema = to_json(made_up_document());
    wrong_schema.replace(wrong_schema.find("\"schema\": 5"), 11, "\"schema\": 1");
    std::string wrong_kernel = to_json(made_up_document());
    wrong_kernel.replace(wrong_kernel.find("\"kernel\": \"tsmttsm\",\n      \"scalar\""), 19,
                         "\"kernel\": \"tsmttsX\"");
    for (const std::string& text :
         {std::string("{"), std::string("[]"), std::string("{\"command\": \"eigs\"}"), wrong_schema,
          wrong_kernel}) {
        const std::string path = save(folder, text);
        try {
            read_document(path);
            ADD_FAILURE() << "accepted " << text.substr(0, 40);
        } catch (const InputError& error) {
            EXPECT_EQ(std::string(error.what()).find(path), 0u) << error.what();
        }
    }
}

TEST(BenchReport, ASessionKnowsWhatItHas) {
    Session session = made_up_document().session;
    const Case c = session.results.front().which;
    EXPECT_TRUE(session.has(c, {}));
    EXPECT_TRUE(session.has(c, {"cublas"}));
    EXPECT_FALSE(session.has(c, {"cublas", "eigen"})) << "that run was without eigen";
    Case other = c;
    other.rows += 1;
    EXPECT_FALSE(session.has(other, {}));
    session.runs.emplace_back();
    session.add({made_up("tsmttsm", Dtype::d, {1, 1}, 100000)});
    EXPECT_EQ(session.results.size(), 5u) << "the new result replaces both old ones of the case";
    EXPECT_EQ(session.results.back().run, 2);
    EXPECT_FALSE(session.has(c, {"cublas"}));
    session.results.back().outcome = Outcome::failed;
    EXPECT_FALSE(session.has(c, {})) << "a failed case runs again";
}

TEST(BenchReport, SummaryCountsAndAverages) {
    Document document = made_up_document();
    const auto expect_line = [&](const std::string& line) {
        EXPECT_NE(summary(document).find(line + "\n"), std::string::npos) << line << "\nis not in\n"
                                                                          << summary(document);
    };
    expect_line(
        "tsmttsm d, m = n             memory-bound   2 cases: median 99.0%, least 98.0% (2x2) of "
        "the roofline; 0 below the aim of 90%");
    expect_line(
        "tsmttsm d, m = n             compute-bound  1 case: median 36.0%, least 36.0% (64x64) of "
        "the roofline; 1 below the aim of 75%");
    // The mean of the ratios 2 and 1/2; the ratio 8 was timed once and is omitted.
    expect_line(
        "tsmttsm d, m = n             vs cublas      2 cases: 1.00 times as fast (geometric mean, "
        "aim 1.6), least 0.50 (64x64); 1 below 0.98: 64x64; 1 case left out (over 1 s, timed "
        "once)");
    EXPECT_EQ(summary({}), "");

    document.environment.device = "host";
    document.session.results[0].roofline_percent = 79;
    expect_line(
        "tsmttsm d, m = n             memory-bound   2 cases: median 98.0%, least 79.0% (1x1) of "
        "the roofline; 1 below the aim of 80%");
    expect_line(
        "tsmttsm d, m = n             compute-bound  1 case: median 36.0%, least 36.0% (64x64) of "
        "the roofline; 1 below the aim of 60%");
}

TEST(BenchReport, SummarySeparatesCasesWithDifferentAims) {
    Document document = made_up_document();
    document.session.results.clear();
    const auto add = [&](const Result& result) { document.session.results.push_back(result); };
    add(made_up("tsmm", Dtype::z, {40, 4}, 1000));
    Result gap = made_up("tsmm", Dtype::z, {8, 8}, 1000);
    gap.which.ld_extra = 3;
    add(gap);
    for (const std::int64_t rows : {1000, 2000}) {
        Result ours = made_up("tsmm", Dtype::z, {4, 4}, rows);
        ours.limit_seconds = rows == 1000 ? 5e-3 : 1e-3;
        add(ours);
    }
    add(made_up("dots", Dtype::d, {4, 4}, 1000));

    const std::string text = summary(document);

    for (const char* line :
         {"tsmm z, m x n                memory-bound   1 case: median 50.0%, least 50.0% (40x4) of "
          "the roofline; 1 below the aim of 85%\n",
          "tsmm z, m = n, ld + 3        memory-bound   1 case: median 50.0%, least 50.0% (8x8) of "
          "the roofline; 1 below the aim of 90%\n",
          "tsmm z, m = n, short         limit          1 of 2 cases within roofline / 0.9 + 5 us; "
          "most 4.00 times it (4x4, 2000 rows)\n",
          "dots d                       memory-bound   1 case: median 50.0%, least 50.0% (width 4) "
          "of the roofline\n"}) {
        EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
    }
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
}

TEST(BenchReport, SummaryComparesOtherPlans) {
    Document document = made_up_document();
    document.session.results.clear();
    for (const auto& [width, rows, model, atomics] :
         {std::tuple{1, 100, 1.0, 0.5}, {2, 1'000'000, 1.21, 1.0}, {3, 2'000'000, 1.0, 0.95}}) {
        Result result = made_up("gram", Dtype::d, {width, width}, rows);
        document.session.results.push_back(result);
        result.library = model_name;
        result.ratio = model;
        document.session.results.push_back(result);
        result.library = atomics_name;
        result.ratio = atomics;
        document.session.results.push_back(result);
    }
    const std::string text = summary(document);
    for (const char* line :
         {"gram d                       model          3 cases: model's first choice over the "
          "table's: geometric mean 1.066 (aim 1.15), worst 1.21 (width 2)\n",
          "gram d                       atomics        3 cases: reproducible over atomics: worst "
          "2.000 (width 1), geometric mean 1.282; 1 of 2 with 10^6 rows and more above 1.03: width "
          "3\n"}) {
        EXPECT_NE(text.find(line), std::string::npos) << line << "is not in\n" << text;
    }
    EXPECT_EQ(text.find(" vs "), std::string::npos) << "a variant is no rival: " << text;
}

TEST(BenchReport, MarkdownIsAPageWithAllNumbers) {
    if (test::python_with_matplotlib().empty()) {
        GTEST_SKIP() << test::no_matplotlib;
    }
    Document document = made_up_document();
    document.environment.driver = "580.1";
    document.environment.cuda = "13.0";
    document.session.runs[1].command = "quiver bench kernels tsmttsm --rivals cublas";
    document.session.results[2].limit_seconds = 3e-3;
    document.session.not_run.push_back({find_kernel("tsmm"), Dtype::c, {64, 2}, 77});
    Result strided = made_up("gram", Dtype::s, {3, 3}, 50);
    strided.which.ld_extra = 1;
    strided.run = 1;
    document.session.results.push_back(strided);
    Result half = made_up("tsmm-mixed", Dtype::h, {7, 7}, 61);
    half.run = 1;
    document.session.results.push_back(half);
    Result failed = made_up("tsmm", Dtype::d, {5, 6}, 70);
    failed.outcome = Outcome::failed;
    failed.message = "on purpose";
    failed.run = 1;
    document.session.results.push_back(failed);

    const std::string text = page_of("markdown", document);

    for (const char* words :
         {"# tsmttsm, gram, tsmm-mixed, tsmm on a GPU, 2026-01-02\n",
          "a GPU, CUDA 13.0, driver 580.1, cublas 13.1.0",
          "\n    quiver bench kernels tsmttsm --rivals cublas\n",
          "| 2026-01-02T00:00:00Z | 2 | read 4000, copy 3000, scale 3500 GB/s; FMA single 50.0 "
          "TFLOP/s; tensor double 16x8x4 60.0 TFLOP/s |\n",
          "\n    tsmttsm d, m = n             vs cublas ", "\n## tsmttsm d: C = X^H Y\n",
          "\n| m x n | rows | us | speed | % of roofline | bound by | limit us | cublas % | ratio "
          "|\n"
          "|---|---|---|---|---|---|---|---|---|\n",
          // 1.6 MB in 4 ms; the ratio 8 was timed once.
          "\n| 1 x 1 | 100000 | 4000.0 | 0 GB/s | 99.0 | read | | 99.0 | 8.00 (timed once) |\n",
          "\n| 2 x 2 | 100000 | **4000.0** | 1 GB/s | 98.0 | read | 3000.0 | 98.0 | 2.00 |\n",
          // 819.2 Mflop.
          "\n| 64 x 64 | 100000 | 4000.0 | 204.8 GFLOP/s | **36.0** | flops | | 36.0 | **0.50** "
          "|\n",
          "\n## gram s: C = X^H X, ld = width + 1\n",
          "\n| 3 | 50 | 4000.0 | 0 GB/s | **50.0** | read |\n",
          "\nFailed: tsmm d 5x6, 70 rows, quiver: on purpose.\n",
          "\nNot run, no time left: 1 case.\n"}) {
        EXPECT_EQ(count(text, words), 1u) << words << "\nin\n" << text;
    }
    EXPECT_EQ(count(text, "\n## tsmm-mixed h: "), 1u) << text;
    EXPECT_EQ(text.find("2026-01-01"), std::string::npos) << "a run without results";
    EXPECT_EQ(text.find("## tsmm d"), std::string::npos) << "nothing of it was measured";
    document.session.runs[1].ceilings.read = 0;
    EXPECT_EQ(count(page_of("markdown", document), "| read, copy and scale not measured; FMA"), 1u);
    EXPECT_EQ(page_of("markdown", {}), "plot.py: nothing to draw: no case was measured\n");
}

TEST(BenchReport, ChartsHoldEveryResult) {
    if (test::python_with_matplotlib().empty()) {
        GTEST_SKIP() << test::no_matplotlib;
    }
    const auto plot = [](const Document& document) { return page_of("svg", document); };
    const std::string svg = plot(made_up_document());
    EXPECT_NE(svg.find("<svg "), std::string::npos) << svg;
    EXPECT_NE(svg.find("</svg>"), std::string::npos);
    // Three points for each library, and one in the legend.
    EXPECT_EQ(count(svg, "style=\"fill: #0072b2"), 4u);
    EXPECT_EQ(count(svg, "style=\"fill: #d55e00"), 4u);
    // One line for each library, and one in the legend.
    EXPECT_EQ(count(svg, "fill: none; stroke: #0072b2"), 2u);
    EXPECT_EQ(count(svg, "fill: none; stroke: #d55e00"), 2u);
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

    Document gaps = made_up_document();
    const auto contiguous = gaps.session.results;
    for (Result result : contiguous) {
        result.which.ld_extra = 3;
        gaps.session.results.push_back(result);
    }
    EXPECT_EQ(count(plot(gaps), "width m = n"), 2u);
    EXPECT_EQ(count(plot(gaps), "tsmttsm d: C = X^H Y, ld = width + 3"), 1u);
    EXPECT_EQ(plot({}), "plot.py: nothing to draw: no case was measured\n");
}

TEST(BenchReport, MergedSessionsKeepTheLaterOfTwoResults) {
    const Document first = made_up_document();
    Document second = made_up_document();
    second.session.results.resize(1);
    second.session.results[0].seconds.median = 1;
    Case left = second.session.results[0].which;
    second.session.not_run = {left, left};  // measured
    left.rows += 1;
    second.session.not_run.insert(second.session.not_run.end(), {left, left});
    const Document both = merge({first, second});
    ASSERT_EQ(both.session.not_run.size(), 1u);
    EXPECT_EQ(both.session.not_run[0], left);
    EXPECT_EQ(both.session.runs.size(), 4u);
    ASSERT_EQ(both.session.results.size(), 6u);
    EXPECT_EQ(both.session.results.back().seconds.median, 1);
    EXPECT_EQ(both.session.results.back().run, 3);
    second.environment.gpu = "another";
    EXPECT_THROW(merge({first, second}), InputError);
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
        result.which.rows = 123456;  // a number that no sweep over rows has
    }
    const std::string text = compare_with("ernst2020", session);
    for (const char* words : {"880 GB/s", "4000 GB/s", "figure 18", "figure 19", "figure 23",
                              "4766 GFLOP/s", "not run"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << '\n' << text;
    }
    EXPECT_NE(text.find("near 100% (conclusion)         98%"), std::string::npos) << text;
    EXPECT_EQ(compare_with("", made_up_document().session), "");
}

TEST(BenchReport, TheSweepsOfTsm2xAreThoseOfItsFigures) {
    const auto all = cases_of("tsm2x2021", 2e9);
    int square = 0;
    int tall = 0;
    for (const Case& c : all) {
        square += c.kernel == find_kernel("mtsm-columns") && c.shape.m == c.shape.n;
        tall += c.kernel == find_kernel("tsmm-columns");
        EXPECT_LE(c.kernel->bytes(c), 32e9);
    }
    EXPECT_EQ(square, 2 * 4 * 4);
    EXPECT_EQ(tall, 2 * 4 * 2);
    EXPECT_EQ(all.size(), 32u + 16 + 3);
    EXPECT_EQ(cases_of("tsm2x2021", 1).size(), 1u) << "at least one case";

    Session session = made_up_document().session;
    const Shape shape{16, 16};
    session.results.push_back(made_up("mtsm-columns", Dtype::d, shape, 10240));
    session.results.push_back(made_up("mtsm-columns", Dtype::d, shape, 10240, "cublas"));
    session.results.back().ratio = 2;
    session.results.push_back(made_up("mtsm-columns", Dtype::d, shape, 20480, "cublas"));
    session.results.back().ratio = 8;
    const std::string text = compare_with("tsm2x2021", session);
    for (const char* words : {"figure 10", "figure 14", "1.5, to 3.2", "4.00, 2.00 to 8.00",
                              "50%, 50 to 50%", "not run"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << '\n' << text;
    }
}

TEST(BenchReport, TheSweepsOfTangAreThoseOfItsFigures) {
    const auto all = cases_of("tang2021", 2e9);
    EXPECT_EQ(all.size(), 9u + 3 * 32);
    for (const Case& c : all) {
        EXPECT_EQ(c.scalar, Dtype::h);
        EXPECT_TRUE(c.kernel->takes(c.scalar));
    }
    EXPECT_EQ(cases_of("tang2021", 1).size(), 1u) << "at least one case";

    Session session = made_up_document().session;
    const std::int64_t rows = std::int64_t{1} << 23;
    for (const int width : {2, 3}) {
        session.results.push_back(made_up("tsmttsm-mixed", Dtype::h, {width, width}, rows));
        session.results.back().joules = 1;
        session.results.push_back(
            made_up("tsmttsm-mixed", Dtype::h, {width, width}, rows, "cublas"));
        session.results.back().ratio = width == 2 ? 2 : 8;
        session.results.back().joules = width == 2 ? 4 : 2;
    }
    const std::string text = compare_with("tang2021", session);
    for (const char* words :
         {"figure 12", "figure 16b", "1.04 to 3.70                   4.00, 2.00 to 8.00",
          "3.70, the most                 8.00, 8.00 to 8.00",
          "62 to 82% (abstract)           62%, 50 to 75%", "50%, 50 to 50%", "not run"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << '\n' << text;
    }
}

TEST(BenchReport, TheSweepsOfHaidarAreThoseOfItsFigures) {
    const auto all = cases_of("haidar2018", 2e9);
    EXPECT_EQ(all.size(), 2u * 16 + 8);
    for (const Case& c : all) {
        EXPECT_EQ(c.scalar, Dtype::d);
        EXPECT_GE(c.rows, 900);
        EXPECT_LE(c.kernel->bytes(c), 32e9);
    }
    EXPECT_EQ(cases_of("haidar2018", 1).size(), 1u) << "at least one case";

    Session session = made_up_document().session;
    session.results.push_back(made_up("batched-lu", Dtype::d, {32, 32}, 200000));
    session.results.push_back(made_up("batched-lu", Dtype::d, {32, 32}, 200000, "cublas"));
    session.results.back().ratio = 3.5;
    session.results.push_back(made_up("batched-cholesky", Dtype::d, {512, 512}, 954));
    const Result& large = session.results.back();
    const std::string text = compare_with("haidar2018", session);
    const std::string speed =
        fmt::format("{:.0f} GFLOP/s", 1e-9 * large.flops / large.seconds.median);
    for (const char* words : {"600 GB/s", "about 3                        3.50, 3.50 to 3.50",
                              "figure 2b", speed.c_str(), "50%, 50 to 50%", "not run"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << '\n' << text;
    }
}

TEST(BenchReport, EveryFigureHasSettingsThatItsKernelsTake) {
    const std::pair<const char*, const char*> all[] = {
        {"ernst2020", "15,16,16-tensor,17,19,20,21,21-sums,22,model"},
        {"tsm2x2021", "5,6,model"},
        {"tang2021", "13"},
        {"haidar2018", "1,6,7,8,layout,autotuning"}};
    for (const auto& [paper, names] : all) {
        for (const Figure* const figure : figures_of(paper, names)) {
            const auto settings = figure->settings(2e9);
            EXPECT_GT(settings.size(), 9u) << paper << ' ' << figure->name;
            EXPECT_GT(std::string(figure->published).size(), 10u);
            for (const Setting& setting : settings) {
                ASSERT_NE(setting.which.kernel, nullptr) << paper << ' ' << figure->name;
                EXPECT_TRUE(setting.which.kernel->takes(setting.which.scalar));
                EXPECT_FALSE(setting.row.empty() || setting.column.empty());
                EXPECT_EQ(setting.fields.empty() || setting.plans > 0, true) << setting.fields;
                EXPECT_EQ(setting.checked, setting.choice.reduction != Reduction::none);
            }
        }
    }
    EXPECT_EQ(figures_of("ernst2020", "16,15,16").size(), 2u);
    EXPECT_EQ(figures_of("ernst2020", "16,15").front()->name, std::string("16"));
    for (const char* list : {"99", "15,", ""}) {
        EXPECT_THROW(figures_of("ernst2020", list), InputError) << list;
    }
    EXPECT_THROW(figures_of("smith1999", "15"), InputError);
}

TEST(BenchReport, EveryRowAndColumnOfAFigureHasAPlanThatIsLegal) {
    if constexpr (config::have_cuda) {
        const std::pair<const char*, const char*> all[] = {
            {"ernst2020", "15,16,16-tensor,17,20,21,21-sums,22,model"},
            {"tsm2x2021", "5,6,model"},
            {"tang2021", "13"},
            {"haidar2018", "1"}};
        const cuda::Machine h200;
        for (const auto& [paper, names] : all) {
            for (const Figure* const figure : figures_of(paper, names)) {
                std::map<std::string, std::size_t> plans;
                for (const Setting& setting : figure->settings(2e9)) {
                    std::vector<Case> c{setting.which};
                    choose_rows(2e9, c);
                    const PlannedProduct product{c[0].kernel->name(), c[0].scalar, c[0].shape.m,
                                                 c[0].shape.n, c[0].rows};
                    const auto listed =
                        cuda::list_plans(h200, product, setting.fields, setting.plans);
                    for (const ListedPlan& each : listed) {
                        EXPECT_TRUE(cuda::kernel_of_listed(h200, product, each.plan)) << each.plan;
                    }
                    plans["row " + setting.row] += listed.size();
                    plans["column " + setting.column] += listed.size();
                }
                for (const auto& [what, count] : plans) {
                    EXPECT_GT(count, 0u) << paper << ' ' << figure->name << ' ' << what;
                }
            }
        }
    }
}

/// Two widths: the first plan of a column takes 4 ms, the second 2 ms, the library 1 ms.
TEST(BenchReport, AFigureShowsTheFastestOfItsPlans) {
    Figure figure{"1", "a title", "width", Quantity::flops, "a statement", nullptr};
    Document document = made_up_document();
    Session& session = document.session;
    session.results.clear();
    std::vector<FigurePoint> points;
    const auto add = [&](int width, const char* column, const char* plan, double clocks,
                         double ms) {
        const Case c{find_kernel("tsmttsm"), Dtype::d, {width, width}, 1000};
        Result result = made_up("tsmttsm", Dtype::d, c.shape, c.rows);
        result.library = figure_variant(plan);
        result.seconds.median = 1e-3 * ms;
        session.results.push_back(result);
        points.push_back({{std::to_string(width), column, c}, result.library, {}, clocks});
    };
    add(4, "slow", "a", 4, 4);
    add(4, "fast", "b", 3, 4);
    add(4, "fast", "c", 2, 2);
    add(8, "slow", "a", 1, 4);
    session.results.push_back(made_up("tsmttsm", Dtype::d, {4, 4}, 1000));
    session.results.back().seconds.median = 1e-3;
    session.results.push_back(made_up("tsmttsm", Dtype::d, {4, 4}, 1000, "cublas"));
    session.results.push_back(made_up("tsmttsm", Dtype::d, {8, 8}, 1000));
    session.results.back().outcome = Outcome::incorrect;

    const FigureTable table = table_of("ernst2020", figure, points, session);

    EXPECT_EQ(table.columns, (std::vector<std::string>{"slow", "fast", "library", "cublas"}));
    ASSERT_EQ(table.rows.size(), 2u);
    const double flops = 2.0 * 1000 * 16;
    const auto& cells = table.rows[0].second;
    EXPECT_DOUBLE_EQ(cells[0].value.value(), 1e-9 * flops / 4e-3);
    EXPECT_DOUBLE_EQ(cells[1].value.value(), 1e-9 * flops / 2e-3);
    EXPECT_EQ(cells[1].library, figure_variant("c"));
    EXPECT_DOUBLE_EQ(cells[2].value.value(), 1e-9 * flops / 1e-3);
    EXPECT_TRUE(cells[3].value.has_value());
    EXPECT_FALSE(table.rows[1].second[1].value || table.rows[1].second[2].value)
        << "not measured, and incorrect";
    ASSERT_EQ(table.remarks.size(), 3u);
    EXPECT_EQ(table.remarks[0],
              "fast / slow: 2.00 times as fast (geometric mean of 1 row), 2.00 to 2.00");
    const std::string text = to_text(table);
    for (const char* words : {"figure 1: a title, GFLOP/s", "paper: a statement", "cublas", " -"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << text;
    }
    EXPECT_EQ(summary(document).find("quiver:"), std::string::npos) << summary(document);

    document.figures.push_back(table);
    const auto json = nlohmann::json::parse(to_json(document));
    const auto& saved = json.at("figures").at(0);
    EXPECT_EQ(saved.at("columns").size(), 4u);
    EXPECT_EQ(saved.at("rows").at(0).at("cells").at(1).at("library"), figure_variant("c"));
    EXPECT_TRUE(saved.at("rows").at(1).at("cells").at(1).at("value").is_null());

    const auto cases = variants_of(points);
    ASSERT_EQ(cases.size(), 2u);
    EXPECT_EQ(cases[0].second.size(), 3u);
}

TEST(BenchReport, AFigureComparesAModelWithMeasurements) {
    Figure figure{"model", "a title", "case", Quantity::flops, "a statement", nullptr, true};
    Session session = made_up_document().session;
    session.results.clear();
    std::vector<FigurePoint> points;
    const Case c{find_kernel("tsmm"), Dtype::d, {8, 8}, 1000};
    // Exactly proportional but for the last one, which the model expects to be the fastest.
    const std::pair<double, double> all[] = {{2, 2e-3}, {4, 4e-3}, {8, 8e-3}, {1, 4e-3}};
    for (const auto& [clocks, seconds] : all) {
        Result result = made_up("tsmm", Dtype::d, c.shape, c.rows);
        result.library = figure_variant(std::to_string(clocks));
        result.seconds.median = seconds;
        session.results.push_back(result);
        points.push_back({{"a", "plans", c}, result.library, {}, clocks});
        points.push_back(points.back());  // listed twice, counted once
    }
    points.resize(6);
    FigureTable table = table_of("ernst2020", figure, points, session);
    EXPECT_EQ(table.rows.at(0).second.at(0).value, 3);
    EXPECT_NEAR(*table.rows.at(0).second.at(1).value, 1, 1e-12);
    EXPECT_NEAR(*table.rows.at(0).second.at(2).value, 0, 1e-9);
    EXPECT_NEAR(*table.rows.at(0).second.at(3).value, 1, 1e-12);
    points.push_back({{"a", "plans", c}, session.results.back().library, {}, 1});
    table = table_of("ernst2020", figure, points, session);
    EXPECT_NEAR(*table.rows.at(0).second.at(3).value, 2, 1e-12);
    EXPECT_LT(*table.rows.at(0).second.at(1).value, 0.9);
    EXPECT_GT(*table.rows.at(0).second.at(2).value, 10);
}

}  // namespace
}  // namespace quiver::apps::bench
