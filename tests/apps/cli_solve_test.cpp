// SPDX-License-Identifier: BSD-3-Clause
// `quiver solve`: its output, files and exit status, for valid and invalid use.
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

struct SolveOutcome : Outcome {
    nlohmann::json json;
};

SolveOutcome run_solve(const std::string& arguments, int ranks = 1) {
    const Folder folder;
    const std::string file = folder.path("out.json");
    SolveOutcome outcome{run_command("solve " + arguments + " --json " + file, ranks), {}};
    if (std::filesystem::exists(file)) {
        outcome.json = nlohmann::json::parse(read_file(file));
    }
    return outcome;
}

/// The values, row by row, of a coordinate file that stores every entry of a block.
std::vector<double> read_block(const std::string& file) {
    std::istringstream text(read_file(file));
    std::string line;
    std::getline(text, line);
    EXPECT_EQ(line, "%%MatrixMarket matrix coordinate real general");
    while (text.peek() == '%') {
        std::getline(text, line);
    }
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t entries = 0;
    text >> rows >> columns >> entries;
    EXPECT_EQ(entries, rows * columns);
    std::vector<double> values(rows * columns);
    for (std::size_t e = 0; e < entries; ++e) {
        std::size_t i = 0;
        std::size_t j = 0;
        double value = 0;
        text >> i >> j >> value;
        values.at((i - 1) * columns + j - 1) = value;
    }
    return values;
}

/// The solution of tridiag(-1, 2, -1) u = 1 is u_i = i (n + 1 - i) / 2.
TEST(Solve, FindsTheParabola) {
    const int n = 30;
    for (const std::string method : {"auto", "cg", "minres", "gmres --restart 30", "bicgstab"}) {
        for (const int ranks : {1, 2, 3}) {
            const Folder folder;
            const std::string x = folder.path("x.mtx");
            const SolveOutcome outcome = run_solve(
                "gen:laplace1d,nx=30 --rhs ones --tol 1e-12 --method " + method + " -o " + x,
                ranks);
            ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
            const std::vector<double> values = read_block(x);
            ASSERT_EQ(values.size(), 30u);
            // ||x - x*|| <= ||A^-1|| tol ||b||; ||b|| = sqrt(n), the least eigenvalue is 4 s^2.
            const double s = std::sin(0.5 * std::acos(-1.0) / (n + 1));
            const double bound = 1e-12 * std::sqrt(n) / (4 * s * s);
            for (int i = 1; i <= n; ++i) {
                EXPECT_NEAR(values[static_cast<std::size_t>(i - 1)], 0.5 * i * (n + 1 - i), bound)
                    << method;
            }
            EXPECT_EQ(outcome.json["ranks"], ranks);
            EXPECT_EQ(outcome.err, "");
        }
    }
}

TEST(Solve, ReadsFilesOfRightHandSides) {
    const Folder folder;
    const std::string a = folder.write("a.mtx",
                                       "%%MatrixMarket matrix coordinate real general\n"
                                       "3 3 5\n1 1 2\n1 2 1\n2 2 4\n3 3 5\n3 1 5\n");
    // Columns A e1, A (1 2 3)^T, 0.
    const std::string array = folder.write("b.mtx",
                                           "%%MatrixMarket matrix array real general\n"
                                           "3 3\n2\n0\n5\n4\n8\n20\n0\n0\n0\n");
    const std::string coordinate = folder.write("c.mtx",
                                                "%%MatrixMarket matrix coordinate real general\n"
                                                "3 3 5\n1 1 2\n3 1 5\n1 2 4\n2 2 8\n3 2 20\n");
    const std::vector<double> expected{1, 1, 0, 0, 2, 0, 0, 3, 0};
    for (const std::string& b : {array, coordinate}) {
        for (const int ranks : {1, 2, 4}) {
            const std::string x = folder.path("x.mtx");
            const SolveOutcome outcome = run_solve(a + " " + b + " -o " + x, ranks);
            ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
            EXPECT_EQ(outcome.json["method"], "gmres");
            const std::vector<double> values = read_block(x);
            ASSERT_EQ(values.size(), expected.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
                EXPECT_NEAR(values[i], expected[i], 1e-8);
            }
        }
    }
}

TEST(Solve, TakesComplexRightHandSidesOfARealMatrix) {
    const Folder folder;
    const std::string b = folder.write("b.mtx",
                                       "%%MatrixMarket matrix array complex general\n"
                                       "4 1\n1 1\n0 2\n3 0\n0 0\n");
    const SolveOutcome outcome = run_solve("gen:laplace1d,nx=4 " + b, 2);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.json["matrix"]["scalar"], "z");
    EXPECT_EQ(outcome.json["method"], "cg");
    const SolveOutcome real = run_solve("gen:laplace1d,nx=4 " + b + " --scalar d");
    EXPECT_EQ(real.status, 2);
    EXPECT_NE(real.err.find("b.mtx"), std::string::npos) << real.err;
}

TEST(Solve, TakesEveryPreconditioner) {
    const SolveOutcome plain = run_solve("gen:laplace2d,nx=24 --rhs random:3 --method cg");
    ASSERT_EQ(plain.status, 0) << plain.err;
    for (const std::string text :
         {"jacobi", "block-jacobi,size=24", "chebyshev,degree=5", "ic", "ilu"}) {
        for (const int ranks : {1, 2}) {
            const SolveOutcome outcome = run_solve(
                "gen:laplace2d,nx=24 --rhs random:3 --device host --method cg --precond " + text,
                ranks);
            EXPECT_EQ(outcome.status, 0) << outcome.err;
            EXPECT_EQ(outcome.json["preconditioner"], text);
            EXPECT_GT(outcome.json["preconditioner_applications"].get<int>(), 0);
            if (text != "jacobi") {
                EXPECT_LT(outcome.json["iterations"].get<int>(),
                          plain.json["iterations"].get<int>());
            }
        }
    }
}

TEST(Solve, SolvesInAllScalars) {
    for (const std::string scalar : {"s", "d", "c", "z"}) {
        const SolveOutcome outcome =
            run_solve("gen:laplace2d,nx=12 --rhs random:4 --tol 1e-4 --scalar " + scalar);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.json["matrix"]["scalar"], scalar);
    }
}

/// The matrix has a positive diagonal, but is not positive definite.
TEST(Solve, ContinuesIfAMethodBreaksDown) {
    const Folder folder;
    const std::string a = folder.write("a.mtx",
                                       "%%MatrixMarket matrix coordinate real symmetric\n"
                                       "3 3 5\n1 1 1\n2 1 2\n2 2 1\n3 2 2\n3 3 1\n");
    for (const int ranks : {1, 2}) {
        const SolveOutcome outcome = run_solve(a + " --rhs random:2", ranks);
        EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        EXPECT_EQ(outcome.json["method"], "minres");
        EXPECT_EQ(outcome.json["broken_methods"], nlohmann::json::array({"cg"}));
        EXPECT_NE(outcome.err.find("continuing with minres"), std::string::npos) << outcome.err;
        const SolveOutcome asked = run_solve(a + " --rhs random:2 --method cg", ranks);
        EXPECT_EQ(asked.status, 1);
        EXPECT_NE(asked.out.find("not positive definite"), std::string::npos) << asked.out;
        EXPECT_NE(asked.out.find("converged   NO"), std::string::npos) << asked.out;
        EXPECT_EQ(asked.json["converged"], false);
        EXPECT_EQ(asked.json["statuses"][0], "breakdown");
    }
}

/// The Neumann Laplacian: A u = 0 for constants.
TEST(Solve, DoesNotCallASingularSystemSolved) {
    const Folder folder;
    const int n = 300;
    std::string text = "%%MatrixMarket matrix coordinate real symmetric\n300 300 599\n1 1 1\n";
    for (int i = 2; i <= n; ++i) {
        const std::string row = std::to_string(i);
        text += row + " " + std::to_string(i - 1) + " -1\n" + row + " " + row +
                (i < n ? " 2\n" : " 1\n");
    }
    const std::string a = folder.write("neumann.mtx", text);
    for (const std::string method : {"auto", "cg", "minres", "gmres", "bicgstab"}) {
        for (const std::string rhs : {"ones", "random:3"}) {
            SCOPED_TRACE(method + " " + rhs);
            const SolveOutcome outcome = run_solve(a + " --rhs " + rhs + " --method " + method);
            EXPECT_EQ(outcome.status, 1) << outcome.err;
            const std::size_t columns = rhs == "ones" ? 1 : 3;
            ASSERT_EQ(outcome.json["residuals"].size(), columns);
            for (std::size_t j = 0; j < columns; ++j) {
                const std::string status = outcome.json["statuses"][j];
                EXPECT_NE(status, "converged");
                // Conjugate gradients may raise the residual while the error falls.
                if (method != "cg" || status != "out of iterations") {
                    EXPECT_LE(outcome.json["residuals"][j].get<double>(),
                              outcome.json["b_norms"][j].get<double>());
                }
            }
        }
    }
}

TEST(Solve, WritesAllResultsAsJson) {
    const SolveOutcome outcome = run_solve("gen:matpde,n=12 --rhs random:2 --tol 1e-7 -v");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto& json = outcome.json;
    EXPECT_EQ(json["schema"], 1);
    EXPECT_EQ(json["command"], "solve");
    EXPECT_EQ(json["matrix"]["rows"], 144);
    EXPECT_EQ(json["rhs"], "random:2");
    EXPECT_EQ(json["method"], "gmres");
    EXPECT_EQ(json["tolerance"], 1e-7);
    EXPECT_EQ(json["message"], "");
    for (const char* key : {"residuals", "b_norms", "iterations_by_column", "statuses"}) {
        EXPECT_EQ(json[key].size(), 2u) << key;
    }
    for (std::size_t j = 0; j < 2; ++j) {
        EXPECT_LE(json["residuals"][j].get<double>(), 1e-7 * json["b_norms"][j].get<double>());
        EXPECT_EQ(json["statuses"][j], "converged");
    }
    EXPECT_GE(json["operator_applications"].get<int>(), 2 * json["iterations"].get<int>());
    EXPECT_GT(json["seconds"]["solve"].get<double>(), 0);
    EXPECT_GT(json["kernels"].size(), 0u);
    EXPECT_NE(outcome.out.find("spmmv"), std::string::npos);
}

TEST(Solve, MarksWhatHasNotConverged) {
    const SolveOutcome outcome =
        run_solve("gen:laplace2d,nx=40 --rhs random:2 --max-iterations 3", 2);
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.out.find("converged   NO"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.json["statuses"][1], "out of iterations");
    EXPECT_EQ(outcome.json["iterations"], 3);
}

/// Invalid input ends with status 2, a message that names the cause, and no output file.
TEST(Solve, RefusesInvalidInput) {
    const Folder folder;
    const std::string two =
        folder.write("two.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
    const std::string wide =
        folder.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n");
    const std::string general =
        folder.write("general.mtx",
                     "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n1 2 1\n2 2 1\n");
    const std::string zero = folder.write(
        "zero.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 1 1\n");
    const std::string a = "gen:laplace1d,nx=10 ";
    struct Case {
        std::string arguments;
        std::string text;
    };
    const std::vector<Case> cases{
        {a, "no right-hand sides: give a file, or --rhs ones or random:N"},
        {a + two + " --rhs ones", "from --rhs ones: omit one of them"},
        {a + two, "with 2 rows, the matrix gen:laplace1d,nx=10 has 10"},
        {a + "nowhere.mtx", "there is no such file"},
        {a + "gen:laplace1d", "right-hand sides must be a file"},
        {a + "--rhs twos", "--rhs twos: ones or random:N is wanted"},
        {a + "--rhs random:0", "1 to 4096"},
        {a + "--rhs random:x", "ones or random:N is wanted"},
        {a + "--rhs ones --tol 0", "--tol 0"},
        {a + "--rhs ones --tol 2", "--tol 2"},
        {a + "--rhs ones --max-iterations 0", "--max-iterations 0"},
        {a + "--rhs ones --restart 0", "--restart 0"},
        {a + "--rhs ones --precond jacobbi", "'jacobbi' is unknown"},
        {a + "--rhs ones --precond block-jacobi,size=65", "size=65"},
        {wide + " --rhs ones", "2 x 3 is not square"},
        {general + " --rhs ones --method cg", "the matrix is not symmetric"},
        {general + " --rhs ones --method minres", "the matrix is not symmetric"},
        {zero + " --rhs ones --precond jacobi", "rows 2 to 2 is singular"},
        {zero + " --rhs ones --device host --precond ilu",
         "preconditioner ilu: incomplete factorisation: row 2 has no diagonal entry"},
        {zero + " --rhs ones --device host --precond ic", "preconditioner ic: incomplete fact"},
        {two + " " + two, "2 x 1 is not square"},
        {general + " " + two + " -o " + two, "is the file of the right-hand sides"},
        {general + " " + two + " -o " + general, "is the matrix itself"},
        {general + " " + two + " -o " + folder.path("x") + " --json " + folder.path("x"),
         "name the same file"},
        {general + " " + two + " -o " + two + "/x.mtx", "cannot write"},
        {"- -", "'-' is standard input, which can hold only one matrix"},
        {general + " " + two + " -o ''", "the name of a file is wanted"},
    };
    int ranks = 1;
    for (const Case& row : cases) {
        ranks = 3 - ranks;  // every second case on two ranks
        const Outcome outcome = run_command("solve " + row.arguments, ranks);
        EXPECT_EQ(outcome.status, 2) << row.arguments << '\n' << outcome.err;
        EXPECT_NE(outcome.err.find(row.text), std::string::npos) << row.arguments << '\n'
                                                                 << outcome.err;
        EXPECT_EQ(outcome.out, "") << row.arguments;
    }
    EXPECT_FALSE(std::filesystem::exists(folder.path("x")));
}

TEST(Solve, HelpsByExample) {
    const Outcome outcome = run_command("solve --help");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.out.find("Examples:"), std::string::npos);
}

}  // namespace
}  // namespace quiver::test
