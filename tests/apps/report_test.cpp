// SPDX-License-Identifier: BSD-3-Clause
#include "apps/report.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

EigsReport small_report() {
    EigsReport report;
    report.matrix = {"some \"matrix\"", 12, 34, Dtype::z, Symmetry::hermitian};
    report.method = "lanczos";
    report.k = 2;
    report.which = "smallest";
    report.eigenvalues = {-1.5, std::numeric_limits<double>::quiet_NaN()};
    report.residuals = {1e-12, std::numeric_limits<double>::infinity()};
    report.norm_estimate = 10;
    report.tolerance = 1e-10;
    report.kernels.push_back(
        {{"tsmm", Dtype::z, Place::host, 12, 3, 4, 100, 200}, 5, 500, 1000, 0});
    return report;
}

TEST(Report, JsonHoldsNullWhereANumberIsNotFinite) {
    const auto json = nlohmann::json::parse(to_json(small_report()));
    EXPECT_EQ(json["eigenvalues"][0], -1.5);
    EXPECT_TRUE(json["eigenvalues"][1].is_null());
    EXPECT_TRUE(json["residuals"][1].is_null());
    EXPECT_TRUE(json["kernels"][0]["gb_per_s"].is_null()) << "no time was taken";
    EXPECT_EQ(json["kernels"][0]["bytes"], 500);
    EXPECT_EQ(json["matrix"]["spec"], "some \"matrix\"");
    EXPECT_EQ(json["matrix"]["symmetry"], "hermitian");
}

TEST(Report, TableMarksWhatIsNotGoodEnough) {
    EigsReport report = small_report();
    report.eigenvalues = {1, 2};
    report.residuals = {1e-12, 1e-3};
    report.errors = {1e-11, 1e-3};
    const std::string table = to_table(report, true);
    EXPECT_NE(table.find("1.0e-03       3  *"), std::string::npos) << table;
    EXPECT_EQ(table.find("1.0e-12      11  *"), std::string::npos) << table;
    EXPECT_NE(table.find("converged   NO, multiplicity UNVERIFIED"), std::string::npos) << table;
    EXPECT_NE(table.find("||A|| is about 10\n"), std::string::npos) << table;
    EXPECT_NE(table.find("tsmm"), std::string::npos) << table;
    EXPECT_EQ(to_table(report, false).find("tsmm"), std::string::npos);
}

TEST(Report, AdviceStandsInTableAndJson) {
    EigsReport report = small_report();
    const auto advice = [&] { return nlohmann::json::parse(to_json(report))["advice"]; };
    EXPECT_TRUE(advice().empty());
    report.message = "stopped after 9 block products";
    report.basis = 77;
    for (const auto& sentence : advice()) {
        EXPECT_NE(to_table(report, false).find(sentence.get<std::string>()), std::string::npos);
    }
    ASSERT_EQ(advice().size(), 2U);
    EXPECT_NE(advice()[1].get<std::string>().find("--basis (now 77)"), std::string::npos);
}

TEST(Report, DigitsFollowFromErrorBounds) {
    EigsReport report = small_report();
    report.matrix.scalar = Dtype::d;
    report.tolerance = 1e-7;
    report.verified = report.converged = true;
    report.eigenvalues = {1e-7, 1, -2, 0, 3};
    report.residuals = {1e-6, 1e-6, 1e-6, 1e-6, 0};
    report.errors = {1e-6, 1e-12, 1e-6, 1e-6, 1e-300};
    const auto digits = [&] {
        return nlohmann::json::parse(to_json(report))["digits"].get<std::vector<int>>();
    };
    EXPECT_EQ(digits(), (std::vector<int>{0, 12, 6, 0, 15}));
    const std::string table = to_table(report, false);
    EXPECT_NE(table.find("1.0e-06      12\n"), std::string::npos) << table;
    EXPECT_NE(table.find("digits      2 eigenvalues lie below the error bound"), std::string::npos)
        << table;
    report.tolerance_raised = true;
    EXPECT_NE(to_table(report, false).find("rounding errors allow no more in this precision"),
              std::string::npos);
    report.matrix.scalar = Dtype::s;
    EXPECT_EQ(digits(), (std::vector<int>{0, 7, 6, 0, 7}));
    report.errors.clear();
    EXPECT_TRUE(digits().empty());
    EXPECT_EQ(to_table(report, false).find("digits"), std::string::npos);
}

TEST(Report, ProfileShowsTheCostOfAnIteration) {
    EigsReport report = small_report();
    report.iterations = 10;
    report.run.seconds = {{"solve", 1.0}};
    report.kernels[0].seconds = 0.5;
    report.kernels.push_back(
        {{"tsmm", Dtype::z, Place::host, 12, 5, 4, 100, 200}, 15, 1500, 1000, 0.25});
    report.overhead.resize(overhead_kinds);
    report.overhead[static_cast<std::size_t>(Overhead::result)] = {30, 4000, 0.125};
    EXPECT_EQ(to_table(report, false).find("average of an iteration"), std::string::npos);
    report.ceilings = bench::Ceilings();
    // Both shapes together: 20 calls, 2000 bytes and 0.75 s of ten iterations.
    EXPECT_NE(to_table(report, false).find("| tsmm | 2.00 | 0.2 | 75000.00 | 75.0 |  |\n"),
              std::string::npos)
        << to_table(report, false);
    // At 10^4 bytes a second 0.2 s of the 0.75 s.
    report.ceilings->copy = 1e4;
    const std::string table = to_table(report, false);
    EXPECT_NE(table.find("| tsmm | 2.00 | 0.2 | 75000.00 | 75.0 | 27 |\n"), std::string::npos)
        << table;
    EXPECT_NE(table.find("| result | 3.00 | 0.4 | 12500.00 | 12.5 |  |\n"), std::string::npos)
        << table;
    EXPECT_EQ(table.find("late result"), std::string::npos) << "did not happen";
    const auto json = nlohmann::json::parse(to_json(report));
    EXPECT_EQ(json["overhead"].size(), overhead_kinds);
    EXPECT_EQ(json["overhead"][1]["name"], "result");
    EXPECT_EQ(json["overhead"][1]["count"], 30);
}

TEST(Report, TableHintsAtAWiderBasisOnlyWhereItMayHelp) {
    EigsReport report = small_report();
    report.basis = 40;
    EXPECT_EQ(to_table(report, false).find("--basis"), std::string::npos);
    report.message = "stopped after 3 block steps";
    const std::string table = to_table(report, false);
    EXPECT_NE(table.find("stopped after 3 block steps\n"), std::string::npos) << table;
    EXPECT_NE(table.find("larger --basis (now 40)"), std::string::npos) << table;
    EXPECT_EQ(nlohmann::json::parse(to_json(report))["basis"], 40);
}

TEST(Report, FilesAreReplacedAsAWhole) {
    namespace fs = std::filesystem;
    const fs::path folder =
        fs::temp_directory_path() / ("quiver-report-" + std::to_string(getpid()));
    fs::create_directory(folder);
    const std::string path = (folder / "out.json").string();
    check_writable(path);
    EXPECT_TRUE(fs::is_empty(folder)) << "a check leaves nothing behind";
    write_file(path, "one");
    write_file(path, "two");
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), "two");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);

    EXPECT_THROW(check_writable(""), InputError);
    EXPECT_THROW(check_writable(folder.string()), InputError);
    EXPECT_THROW(check_writable(path + "/out.json"), InputError);
    EXPECT_THROW(write_file(path + "/out.json", "x"), Error);
    fs::remove_all(folder);
}

}  // namespace
}  // namespace quiver::apps
