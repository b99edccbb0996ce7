// SPDX-License-Identifier: BSD-3-Clause
// `quiver modes`: its report and files, on any number of ranks.
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/hdf5_file.hpp"
#include "tests/apps/plot_script.hpp"
#include "tests/apps/run_command.hpp"
#include "tests/support/data_folder.hpp"

namespace quiver::test {
namespace {

using nlohmann::json;

const std::string beam = "gen:hexahedra,nx=6,ny=2,nz=1,lx=3,ly=0.5,lz=0.2";

class Modes : public ::testing::Test {
  protected:
    json report() const { return json::parse(read_file(folder.path("report.json"))); }
    Outcome run(const std::string& arguments, int ranks = 1) {
        return run_command(
            "modes " + arguments + " --device host --json " + folder.path("report.json"), ranks);
    }
    /// Three masses (the second one 0) between springs, as Matrix Market files.
    std::string chain(const char* second_mass = "0") {
        const std::string k = folder.write("k.mtx",
                                           "%%MatrixMarket matrix coordinate real symmetric\n"
                                           "3 3 5\n1 1 1\n2 1 -1\n2 2 2\n3 2 -1\n3 3 1\n");
        const std::string m = folder.write("m.mtx",
                                           "%%MatrixMarket matrix coordinate real symmetric\n"
                                           "3 3 3\n1 1 1\n2 2 " +
                                               std::string(second_mass) + "\n3 3 1\n");
        return k + " " + m;
    }

    Folder folder;
};

TEST_F(Modes, ReportsAChainWithAMasslessNode) {
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run(chain() + " -k 2 --unit rad/s", ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_NE(outcome.out.find("modes       2, verified: 1 rigid, 0 unstable"),
                  std::string::npos)
            << outcome.out;
        EXPECT_NE(outcome.out.find("infinite    1 eigenvalue: the null space of M"),
                  std::string::npos)
            << outcome.out;
        const json result = report();
        EXPECT_EQ(result["command"], "modes");
        EXPECT_EQ(result["ranks"], ranks);
        EXPECT_EQ(result["infinite"], 1);
        EXPECT_EQ(result["rigid"], 1);
        EXPECT_EQ(result["converged"], true);
        EXPECT_EQ(result["frequencies"][0], 0);
        // The massless node halves the spring: the masses move against each other with lambda = 1.
        EXPECT_NEAR(result["frequencies"][1].get<double>(), 1, 1e-12);
        EXPECT_NEAR(result["modal_masses"][1].get<double>(), 2, 1e-10);
        EXPECT_GE(result["digits"][1], 10);
        EXPECT_LT(std::abs(result["eigenvalues"][1].get<double>() - 1),
                  result["errors"][1].get<double>());
        EXPECT_NE(outcome.out.find("\nrigid       up to "), std::string::npos) << outcome.out;
        EXPECT_TRUE(result["directions"].empty());
    }
}

/// The big-endian floats of a VTK file after the line that begins with `head`.
std::vector<float> vtk_floats(const std::string& text, const std::string& head, std::size_t count) {
    const std::size_t at = text.find('\n', text.find("\n" + head) + 1) + 1;
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < 4; ++byte) {
            bits = bits << 8 | static_cast<unsigned char>(text.at(at + 4 * i + byte));
        }
        values.push_back(std::bit_cast<float>(bits));
    }
    return values;
}

TEST_F(Modes, WritesShapesAndVectors) {
    for (const int ranks : {1, 3}) {
        const std::string files = config::have_hdf5 ? " --vectors " + folder.path("m.h5") : "";
        const Outcome outcome =
            run(beam + ",support=clamped -k 3 --vtk " + folder.path("m.vtk") + files, ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const std::string vtk = read_file(folder.path("m.vtk"));
        const std::size_t nodes = 7 * 3 * 2;
        EXPECT_NE(vtk.find("DATASET UNSTRUCTURED_GRID\nPOINTS 42 float\n"), std::string::npos);
        EXPECT_NE(vtk.find("\nCELLS 12 108\n"), std::string::npos);
        EXPECT_NE(vtk.find("\nCELL_TYPES 12\n"), std::string::npos);
        const std::vector<float> points = vtk_floats(vtk, "POINTS", 3 * nodes);
        EXPECT_EQ(points[3 * nodes - 3], 3.0F);
        EXPECT_EQ(points[3 * nodes - 1], 0.2F);
        const std::vector<float> mode = vtk_floats(vtk, "VECTORS mode_1_", 3 * nodes);
        float most = 0;
        for (std::size_t i = 0; i < mode.size(); ++i) {
            most = std::max(most, std::abs(mode[i]));
            EXPECT_TRUE(points[i - i % 3] > 0 || mode[i] == 0);  // the clamped face
        }
        EXPECT_EQ(most, 1.0F);
        // The first mode bends in z, the thin direction.
        EXPECT_GT(std::abs(mode[3 * nodes - 1]), 0.99F);
        if (config::have_hdf5) {
            Context ctx;
            const auto x = read_block_vector<double>(ctx, folder.path("m.h5"));
            ASSERT_EQ(x.rows(), 6 * 3 * 2 * 3);
            ASSERT_EQ(x.width(), 3);
            const auto masses =
                read_block_vector<double>(ctx, folder.path("m.h5"), std::nullopt, "modal_masses");
            for (std::int64_t i = 0; i < x.rows(); ++i) {
                EXPECT_NEAR(x.view()(i, 0) * std::sqrt(masses.view()(0, 0)),
                            mode[static_cast<std::size_t>(i + 18)], 1e-6);
            }
        }
    }
}

TEST_F(Modes, CoordinatesOfAFileGiveTheSharesOfTheGenerator) {
    ASSERT_EQ(run(beam + " -k 8").status, 0);
    const json generated = report();
    EXPECT_EQ(generated["rigid"], 6);
    EXPECT_GT(generated["rigid_limit"], 0);
    EXPECT_LT(generated["rigid_limit"], 1);
    EXPECT_EQ(generated["directions"].size(), 6u);
    std::string text = "%%MatrixMarket matrix array real general\n42 3\n";
    for (int d = 0; d < 3; ++d) {
        for (int node = 0; node < 42; ++node) {
            const int at[] = {node / 6, node / 2 % 3, node % 2};
            const double x[] = {0.5 * at[0], 0.25 * at[1], 0.2 * at[2]};
            text += std::to_string(x[d]) + "\n";
        }
    }
    const std::string nodes = folder.write("nodes.mtx", text);
    for (const std::string matrix : {"stiffness", "mass"}) {
        ASSERT_EQ(
            run_command("gen " + beam + ",matrix=" + matrix + " -o " + folder.path(matrix + ".mtx"))
                .status,
            0);
    }
    const std::string files = folder.path("stiffness.mtx") + " " + folder.path("mass.mtx");
    for (const int ranks : {1, 2}) {
        const Outcome outcome = run(
            files + " -k 8 --coordinates " + nodes + " --vtk " + folder.path("cloud.vtk"), ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const json result = report();
        for (std::size_t d = 0; d < 6; ++d) {
            EXPECT_NEAR(result["directions"][d]["total_mass"].get<double>(),
                        generated["directions"][d]["total_mass"].get<double>(), 1e-6);
        }
        for (std::size_t i = 6; i < 8; ++i) {
            EXPECT_NEAR(result["frequencies"][i].get<double>(),
                        generated["frequencies"][i].get<double>(), 1e-6);
        }
        EXPECT_NE(read_file(folder.path("cloud.vtk")).find("\nCELLS 42 84\n"), std::string::npos);
    }
    ASSERT_EQ(run(files + " --translations").status, 0);
    EXPECT_EQ(report()["directions"].size(), 3u);
}

TEST_F(Modes, RangesAndFrequenciesNearby) {
    ASSERT_EQ(run(beam + " -k 14").status, 0);
    const json all = report();
    const auto frequency = [&](std::size_t i) { return all["frequencies"][i].get<double>(); };
    const double high = 0.5 * (frequency(9) + frequency(10));
    ASSERT_EQ(run(beam + " --range 0:" + std::to_string(high)).status, 0);
    EXPECT_EQ(report()["frequencies"].size(), 10u);
    EXPECT_EQ(report()["rigid"], 6);
    EXPECT_TRUE(report()["k"].is_null());
    ASSERT_EQ(run(beam + " -k 1 --near " + std::to_string(frequency(8))).status, 0);
    EXPECT_NEAR(report()["frequencies"][0].get<double>(), frequency(8), 1e-6 * frequency(8));
    // The same ranks give the same bits.
    for (const std::string method : {"dense", "shift-invert"}) {
        ASSERT_EQ(run(beam + " -k 9 --method " + method, 2).status, 0);
        const json first = report();
        ASSERT_EQ(run(beam + " -k 9 --method " + method, 2).status, 0);
        EXPECT_EQ(report()["frequencies"], first["frequencies"]);
        EXPECT_EQ(report()["modal_masses"], first["modal_masses"]);
    }
}

TEST_F(Modes, BadInputGetsOneLine) {
    const std::string nan = folder.write("nan.mtx",
                                         "%%MatrixMarket matrix coordinate real symmetric\n"
                                         "3 3 1\n1 1 nan\n");
    const std::string k = folder.path("k.mtx");
    const std::string files = chain();
    struct Case {
        std::string arguments;
        std::string text;
        const char* mass = "1";
        int ranks = 1;
    };
    const std::vector<Case> cases{
        {files + " -k 3", "k = 3 modes are wanted, but only 2 of 3 eigenvalues are finite", "0", 2},
        {files + " -k 4", "4 modes are wanted"},
        {files + " -k 0", "k"},
        {files, "row 2 of M has NaN, infinity, or a negative mass on the diagonal", "-1", 2},
        {k + " " + nan, "nan.mtx:3: the value 'nan' is not finite"},
        {k, "M is missing"},
        {k + " gen:laplace1d,nx=4", "4 rows, but K has 3"},
        {k + " gen:topi,nx=2", "complex"},
        {files + " --range 2:1", "--range 2:1: two numbers LOW:HIGH, ascending"},
        {files + " --range -1:1", "a frequency is a finite number from 0 on"},
        {files + " --range 0:1 -k 2", "omit -k and --near"},
        {files + " --near x", "a number is wanted"},
        {files + " --unit kHz", "--unit"},
        {files + " --vtk " + folder.path("x.vtk"), "--vtk needs the nodes"},
        {files + " --vtk " + k, "is an input file"},
        {files + " --coordinates " + k, "3 rows of K need the three coordinates of 1 nodes"},
        {"gen:laplace1d,nx=4 gen:laplace1d,nx=4 --translations", "not three for each node"},
        {"gen:hexahedra,nu=0.5", "nu is not between -1 and 0.5"},
        {"gen:hexahedra,nx=0", "nx=0"}};
    for (const auto& [arguments, text, mass, ranks] : cases) {
        chain(mass);
        const Outcome outcome = run(arguments, ranks);
        EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
        const std::size_t at = outcome.err.find("quiver: ");
        ASSERT_NE(at, std::string::npos) << arguments << "\n" << outcome.err;
        EXPECT_EQ(outcome.err.find("quiver: ", at + 1), std::string::npos) << outcome.err;
        const std::string line = outcome.err.substr(at, outcome.err.find('\n', at) - at);
        EXPECT_NE(line.find(text), std::string::npos) << arguments << "\n" << line;
    }
}

TEST_F(Modes, ThePlotDrawsTheReport) {
    const std::string python = python_with_matplotlib();
    if (python.empty()) {
        GTEST_SKIP() << no_matplotlib;
    }
    ASSERT_EQ(run(beam + ",support=clamped -k 6 --vtk " + folder.path("m.vtk")).status, 0);
    const std::string picture = folder.path("modes.svg");
    const Outcome drawn = run_script(python + " " QUIVER_SOURCE_DIR "/apps/modes_plot.py " +
                                         folder.path("report.json") + " --shapes " +
                                         folder.path("m.vtk") + " -o " + picture,
                                     1, folder, 120);
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    const std::string svg = read_file(picture);
    EXPECT_NE(svg.find("effective mass"), std::string::npos);
    EXPECT_NE(svg.find("frequency in Hz"), std::string::npos);
}

}  // namespace
}  // namespace quiver::test
