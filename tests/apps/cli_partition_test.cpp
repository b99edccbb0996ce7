// SPDX-License-Identifier: BSD-3-Clause
// --partition, --order and `quiver info --ranks`: results have the numbering of the file.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/config.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/sparse/reordering.hpp"
#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

bool has_scotch() {
    return std::string(scotch_version()) != "";
}

/// The five-point Laplacian of a grid whose points are numbered at random, as a file.
class ShuffledGridFile {
  public:
    static constexpr int nx = 18;
    static constexpr int ny = 13;
    static constexpr int rows = nx * ny;

    explicit ShuffledGridFile(const Folder& folder) : number_(rows) {
        std::iota(number_.begin(), number_.end(), 0);
        std::shuffle(number_.begin(), number_.end(), std::mt19937_64(5));
        std::ostringstream text;
        std::ostringstream entries;
        int count = 0;
        for (int point = 0; point < rows; ++point) {
            for (const int to : {point, point % nx == 0 ? -1 : point - 1, point - nx}) {
                if (to >= 0) {
                    const int i = number_[static_cast<std::size_t>(point)];
                    const int j = number_[static_cast<std::size_t>(to)];
                    entries << std::max(i, j) + 1 << ' ' << std::min(i, j) + 1 << ' '
                            << (i == j ? 4 : -1) << '\n';
                    ++count;
                }
            }
        }
        text << "%%MatrixMarket matrix coordinate real symmetric\n"
             << rows << ' ' << rows << ' ' << count << '\n'
             << entries.str();
        path_ = folder.write("grid.mtx", text.str());
    }
    const std::string& path() const { return path_; }
    /// A x in the numbering of the file.
    std::vector<double> product(const std::vector<double>& x) const {
        std::vector<double> y(rows);
        for (int point = 0; point < rows; ++point) {
            const auto at = [&](int p, bool inside) {
                return inside ? x[static_cast<std::size_t>(number_[static_cast<std::size_t>(p)])]
                              : 0.0;
            };
            y[static_cast<std::size_t>(number_[static_cast<std::size_t>(point)])] =
                4 * at(point, true) - at(point - 1, point % nx != 0) -
                at(point + 1, point % nx != nx - 1) - at(point - nx, point >= nx) -
                at(point + nx, point + nx < rows);
        }
        return y;
    }
    static std::vector<double> smallest(int k) {
        std::vector<double> values;
        const auto line = [](int n, int i) {
            const double s = std::sin(0.5 * std::acos(-1.0) * i / (n + 1));
            return 4 * s * s;
        };
        for (int i = 1; i <= nx; ++i) {
            for (int j = 1; j <= ny; ++j) {
                values.push_back(line(nx, i) + line(ny, j));
            }
        }
        std::sort(values.begin(), values.end());
        values.resize(static_cast<std::size_t>(k));
        return values;
    }

  private:
    std::vector<int> number_;
    std::string path_;
};

void expect_eigenvalues(const EigsOutcome& outcome) {
    ASSERT_EQ(outcome.status, 0) << outcome.err << outcome.out;
    const std::vector<double> exact = ShuffledGridFile::smallest(3);
    for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_NEAR(outcome.json["eigenvalues"][i].get<double>(), exact[i], 1e-9);
    }
}

void expect_eigenvectors(const ShuffledGridFile& grid, const std::string& path) {
    Context ctx;
    const auto block = read_block_vector<double>(ctx, path);
    const std::vector<double> exact = ShuffledGridFile::smallest(3);
    for (int j = 0; j < 3; ++j) {
        std::vector<double> x(ShuffledGridFile::rows);
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = block.view()(static_cast<std::int64_t>(i), j);
        }
        const std::vector<double> y = grid.product(x);
        double residual = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            residual += std::pow(y[i] - exact[static_cast<std::size_t>(j)] * x[i], 2);
        }
        EXPECT_LT(std::sqrt(residual), 1e-8) << j;
    }
}

TEST(PartitionCli, EigenvectorsHaveTheNumberingOfTheFile) {
    const Folder folder;
    const ShuffledGridFile grid(folder);
    const std::string with_vectors =
        config::have_hdf5 ? " --vectors " + folder.path("x.h5") : std::string();
    const std::string problem = grid.path() + " -k 3 --method lanczos" + with_vectors;
    const auto run = [&](const std::string& options, int ranks) {
        const EigsOutcome outcome = run_eigs(problem + options, ranks);
        expect_eigenvalues(outcome);
        if (config::have_hdf5) {
            expect_eigenvectors(grid, folder.path("x.h5"));
        }
        return outcome;
    };
    const EigsOutcome rcm = run(" --order rcm", 1);
    EXPECT_EQ(rcm.json["distribution"]["order"], "rcm");
    EXPECT_NE(rcm.out.find("in the order rcm"), std::string::npos) << rcm.out;
    if (!has_scotch()) {
        return;
    }
    const EigsOutcome graph = run(" --partition graph --order rcm", 3);
    const auto& facts = graph.json["distribution"];
    EXPECT_EQ(facts["partition"], "graph");
    EXPECT_LT(facts["halo"]["largest"].get<int>(), facts["halo_before"]["largest"].get<int>() / 2);
    EXPECT_NE(graph.out.find("by graph"), std::string::npos) << graph.out;
}

TEST(PartitionCli, SolutionsHaveTheNumberingOfTheFile) {
    const Folder folder;
    const ShuffledGridFile grid(folder);
    std::vector<double> exact(ShuffledGridFile::rows);
    std::iota(exact.begin(), exact.end(), 1.0);
    std::ostringstream rhs;
    rhs << "%%MatrixMarket matrix array real general\n" << exact.size() << " 1\n";
    for (const double value : grid.product(exact)) {
        rhs << value << '\n';
    }
    const std::string options = has_scotch() ? " --partition graph --order rcm" : " --order rcm";
    const Outcome outcome =
        run_command("solve " + grid.path() + " " + folder.write("b.mtx", rhs.str()) + " -o " +
                        folder.path("x.mtx") + " --tol 1e-12 --device host" + options,
                    2);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(read_file(folder.path("x.mtx")));
    std::size_t found = 0;
    for (std::string line; std::getline(lines, line);) {
        std::size_t row = 0;
        std::size_t column = 0;
        double value = 0;
        if (line.starts_with("%") || !(std::istringstream(line) >> row >> column >> value) ||
            found++ == 0) {
            continue;  // comments, and the line with the sizes
        }
        EXPECT_NEAR(value, exact[row - 1], 1e-7);
    }
    EXPECT_EQ(found, exact.size() + 1);
}

TEST(PartitionCli, APencilIsPermutedAsAWhole) {
    const Folder folder;
    const ShuffledGridFile grid(folder);
    // B = 2 on even rows and 1/2 on odd rows: A x = lambda B x differs in every numbering.
    std::ostringstream mass;
    mass << "%%MatrixMarket matrix coordinate real symmetric\n"
         << ShuffledGridFile::rows << ' ' << ShuffledGridFile::rows << ' ' << ShuffledGridFile::rows
         << '\n';
    for (int row = 1; row <= ShuffledGridFile::rows; ++row) {
        mass << row << ' ' << row << ' ' << (row % 2 == 0 ? 2.0 : 0.5) << '\n';
    }
    const std::string problem =
        grid.path() + " --mass " + folder.write("b.mtx", mass.str()) + " -k 3";
    const EigsOutcome one = run_eigs(problem + " --method dense");
    const EigsOutcome moved = run_eigs(problem + " --method lobpcg --precond jacobi" +
                                           (has_scotch() ? " --partition graph" : " --order rcm"),
                                       2);
    ASSERT_EQ(one.status, 0) << one.err;
    ASSERT_EQ(moved.status, 0) << moved.err;
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(one.json["eigenvalues"][i].get<double>(),
                    moved.json["eigenvalues"][i].get<double>(), 1e-9);
    }
}

TEST(PartitionCli, ACheckpointResumesInAnotherPartition) {
    if (!config::have_hdf5 || !has_scotch()) {
        GTEST_SKIP() << "built without HDF5 or SCOTCH";
    }
    const Folder folder;
    const ShuffledGridFile grid(folder);
    const std::string state = folder.path("state");
    const std::string problem = grid.path() + " -k 3 --method lanczos --block 2 --basis 20 " +
                                "--vectors " + folder.path("x.h5") + " --checkpoint " + state;
    const EigsOutcome begun = run_eigs(problem + " --partition graph --max-iterations 25", 3);
    ASSERT_EQ(begun.status, 1) << begun.err;
    const EigsOutcome resumed = run_eigs(problem + " --resume " + state + " --order rcm", 2);
    expect_eigenvalues(resumed);
    expect_eigenvectors(grid, folder.path("x.h5"));
    const EigsOutcome fresh =
        run_eigs(grid.path() + " -k 3 --method lanczos --block 2 --basis 20 --partition rows", 2);
    ASSERT_EQ(fresh.status, 0) << fresh.err;
    // Blocks in another numbering would be a random start, as that of the fresh run.
    EXPECT_LT(resumed.json["residuals"][0].get<double>(), 1e-8);
    EXPECT_LE(resumed.json["iterations"].get<int>(), fresh.json["iterations"].get<int>() + 5);
}

/// The line of the table of `info --ranks` that begins with these two words.
std::vector<double> numbers_of_line(const std::string& text, const std::string& ranks,
                                    const std::string& distribution) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first;
        std::string second;
        words >> first >> second;
        if (first == ranks && second == distribution) {
            std::vector<double> numbers;
            for (double number = 0; words >> number;) {
                numbers.push_back(number);
            }
            return numbers;
        }
    }
    return {};
}

TEST(PartitionCli, InfoCountsTheHalosOfRanksThatAreNotThere) {
    const Folder folder;
    const ShuffledGridFile grid(folder);
    const std::string matrices[] = {grid.path(), "gen:laplace2d,nx=30,ny=12"};
    for (const std::string& matrix : matrices) {
        const Outcome info = run_command("info " + matrix + " --ranks 2,3");
        ASSERT_EQ(info.status, 0) << info.err;
        std::vector<std::pair<std::string, std::string>> runs{
            {"rcm", " --partition rows --order rcm"}};
        if (has_scotch()) {
            runs.emplace_back("graph", " --partition graph");
        }
        for (const auto& [distribution, options] : runs) {
            const EigsOutcome outcome = run_eigs(matrix + " -k 1 --tol 1e-3" + options, 3);
            ASSERT_EQ(outcome.status, 0) << outcome.err;
            const std::vector<std::pair<std::string, std::string>> compared{{"rows", "halo_before"},
                                                                            {distribution, "halo"}};
            for (const auto& [name, field] : compared) {
                const std::vector<double> line = numbers_of_line(info.out, "3", name);
                ASSERT_EQ(line.size(), 5U) << info.out;
                const auto& counts = outcome.json["distribution"][field];
                EXPECT_EQ(line[0], counts["sum"].get<double>()) << name;
                EXPECT_EQ(line[1], counts["largest"].get<double>()) << name;
                EXPECT_EQ(line[2], counts["boundary_rows"].get<double>()) << name;
                EXPECT_NEAR(line[3], counts["imbalance"].get<double>(), 1e-3) << name;
            }
        }
        // The ranks that run the command do not matter.
        const Outcome two = run_command("info " + matrix + " --ranks 2,3", 2);
        EXPECT_EQ(numbers_of_line(two.out, "2", "rcm")[0], numbers_of_line(info.out, "2", "rcm")[0])
            << two.out;
    }
}

TEST(PartitionCli, ErrorsNameTheCure) {
    const Outcome missing =
        run_command("eigs gen:laplace2d,nx=9 --partition graph", 2, "QUIVER_SCOTCH=none ");
    EXPECT_NE(missing.status, 0);
    EXPECT_NE(missing.err.find("--partition graph: "), std::string::npos) << missing.err;
    EXPECT_NE(missing.err.find(has_scotch() ? "unset it" : "install libscotch-dev"),
              std::string::npos)
        << missing.err;
    const Outcome none = run_command("info gen:laplace2d,nx=9 --ranks 2", 1, "QUIVER_SCOTCH=none ");
    EXPECT_EQ(none.status, 0) << none.err;
    EXPECT_NE(none.out.find("no lines graph: "), std::string::npos) << none.out;
    for (const std::string ranks : {"0", "2,x", "''", "2:8"}) {
        const Outcome wrong = run_command("info gen:laplace2d,nx=9 --ranks " + ranks);
        EXPECT_EQ(wrong.status, 2) << ranks;
        EXPECT_NE(wrong.err.find("--ranks 2,4,8"), std::string::npos) << wrong.err;
    }
    EXPECT_EQ(run_command("eigs gen:laplace2d,nx=9 --partition best").status, 2);
    EXPECT_EQ(run_command("info gen:laplace2d,nx=9 --order rcm").status, 2);
}

}  // namespace
}  // namespace quiver::test
