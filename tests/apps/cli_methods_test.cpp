// SPDX-License-Identifier: BSD-3-Clause
// `quiver eigs`: methods, windows, inertia counts, preconditioners, and interruption by a signal.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/run_command.hpp"

namespace quiver::test {
namespace {

TEST(Eigs, AllMethodsAgreeAndReportTheirNames) {
    for (const char* method : {"lanczos", "chebyshev"}) {
        const EigsOutcome outcome =
            run_eigs("gen:laplace3d,nx=9 -k 7 --method " + std::string(method));
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.json["method"], method);
        EXPECT_EQ(outcome.json["method_reason"], "");
        for (std::size_t j = 0; j < 7; ++j) {
            EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                        outcome.json["exact_eigenvalues"][j].get<double>(), 2e-9);
        }
    }
    const EigsOutcome chosen = run_eigs("gen:laplace3d,nx=9 -k 7");
    EXPECT_NE(chosen.json["method"], "auto");
    EXPECT_NE(chosen.json["method_reason"], "");
    EXPECT_NE(chosen.out.find("reason      "), std::string::npos) << chosen.out;
}

TEST(Eigs, EigenvaluesByMagnitudeAndFromBothEnds) {
    for (const std::string arguments :
         {"both-ends --method lanczos", "largest-magnitude --method chebyshev",
          "smallest-magnitude --method jd", "both-ends", "largest-magnitude",
          "smallest-magnitude"}) {
        const EigsOutcome outcome =
            run_eigs("gen:laplace3d,nx=7,ny=6,nz=5 -k 5 --which " + arguments);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const std::string which = arguments.substr(0, arguments.find(' '));
        EXPECT_EQ(outcome.json["which"], which);
        ASSERT_EQ(outcome.json["exact_eigenvalues"].size(), 5u);
        for (std::size_t j = 0; j < 5; ++j) {
            EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                        outcome.json["exact_eigenvalues"][j].get<double>(), 2e-9);
        }
    }
    const EigsOutcome refused = run_eigs("gen:laplace3d,nx=7 --which both-ends --verify inertia");
    EXPECT_EQ(refused.status, 2);
    EXPECT_NE(refused.err.find("two solves"), std::string::npos) << refused.err;
}

TEST(Eigs, InnerSolversOfJacobiDavidson) {
    std::vector<int> products;
    for (const std::string arguments :
         {"smallest", "smallest --inner minres", "smallest --inner cg", "smallest --inner gmres",
          "smallest --inner jdqmr", "target:2.1 --inner gmres"}) {
        const EigsOutcome outcome =
            run_eigs("gen:laplace3d,nx=9,ny=8,nz=7 -k 5 --method jd --which " + arguments);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        products.push_back(outcome.json["operator_applications"].get<int>());
        ASSERT_EQ(outcome.json["exact_eigenvalues"].size(), 5u);
        for (std::size_t j = 0; j < 5; ++j) {
            EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                        outcome.json["exact_eigenvalues"][j].get<double>(), 2e-9);
        }
    }
    EXPECT_EQ(products[0], products[1]);
    EXPECT_NE(products[0], products[2]);
    EXPECT_NE(products[0], products[3]);
}

TEST(Eigs, AWindowHasAllItsEigenvalues) {
    for (const auto& [ranks, method] :
         std::vector<std::pair<int, std::string>>{{1, "filter"},
                                                  {2, "filter"},
                                                  {1, "dense"},
                                                  {2, "dense"},
                                                  {1, "shift-invert"},
                                                  {2, "shift-invert"}}) {
        const EigsOutcome outcome = run_eigs(
            "gen:laplace2d,nx=17,ny=15 --window 2.5:3.05 --verify inertia --method " + method,
            ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err << outcome.out;
        std::vector<double> exact;
        const auto line = [](int n, int i) {
            return 2 - 2 * std::cos(std::numbers::pi * i / (n + 1));
        };
        for (int i = 1; i <= 17; ++i) {
            for (int j = 1; j <= 15; ++j) {
                const double value = line(17, i) + line(15, j);
                if (value >= 2.5 && value <= 3.05) {
                    exact.push_back(value);
                }
            }
        }
        std::sort(exact.begin(), exact.end());
        EXPECT_EQ(outcome.json["which"], "window");
        EXPECT_EQ(outcome.json["method"], method);
        EXPECT_EQ(outcome.out.find("density of states") == std::string::npos, method != "filter")
            << outcome.out;
        EXPECT_EQ(outcome.json["k"], exact.size());
        EXPECT_EQ(outcome.json["window"][1], 3.05);
        ASSERT_EQ(outcome.json["eigenvalues"].size(), exact.size());
        EXPECT_EQ(outcome.json["exact_eigenvalues"].size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(), exact[j], 1e-8);
        }
        const auto& counts = outcome.json["inertia"];
        ASSERT_EQ(counts.size(), 2u);
        EXPECT_EQ(counts[1]["counted"].get<int>() - counts[0]["counted"].get<int>(),
                  static_cast<int>(exact.size()));
    }
}

/// The command takes the norms that the library scales.
TEST(Eigs, NormsWhoseSquaresOverflowOrUnderflow) {
    const Folder folder;
    for (const std::string exponent : {"-160", "160"}) {
        std::string lines = "%%MatrixMarket matrix coordinate real symmetric\n80 80 80\n";
        for (int i = 1; i <= 80; ++i) {
            const std::string row = std::to_string(i);
            lines += row + " " + row + " " + row + "e" + exponent + "\n";
        }
        const std::string file = folder.write("size.mtx", lines);
        const double size = std::stod("1e" + exponent);
        for (const std::string method :
             {"lanczos", "chebyshev", "lobpcg", "jd", "dense", "shift-invert"}) {
            const EigsOutcome outcome = run_eigs(file + " -k 3 --method " + method);
            ASSERT_EQ(outcome.status, 0) << method << exponent << outcome.err << outcome.out;
            ASSERT_EQ(outcome.json["eigenvalues"].size(), 3u);
            for (std::size_t j = 0; j < 3; ++j) {
                EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>() / size,
                            static_cast<double>(j + 1), 1e-7);
            }
        }
        const EigsOutcome window =
            run_eigs(file + " --method filter --window=9.5e" + exponent + ":12.5e" + exponent);
        ASSERT_EQ(window.status, 0) << window.err << window.out;
        ASSERT_EQ(window.json["eigenvalues"].size(), 3u);
        EXPECT_NEAR(window.json["eigenvalues"][0].get<double>() / size, 10, 1e-7);
    }
}

TEST(Eigs, InertiaCountsBothEndsAndClusters) {
    for (const std::string which : {"smallest", "largest"}) {
        const EigsOutcome gap =
            run_eigs("gen:laplace3d,nx=7 -k 4 --verify inertia --which " + which);
        ASSERT_EQ(gap.status, 0) << gap.err << gap.out;
        ASSERT_EQ(gap.json["inertia"].size(), 2u);
        EXPECT_EQ(gap.json["inertia"][0]["counted"], 1);
        EXPECT_EQ(gap.json["inertia"][1]["counted"], 4);
        const EigsOutcome cut =
            run_eigs("gen:laplace3d,nx=7 -k 3 --verify inertia --which " + which);
        ASSERT_EQ(cut.status, 0) << cut.err << cut.out;
        ASSERT_EQ(cut.json["inertia"].size(), 1u);
        EXPECT_EQ(cut.json["inertia"][0]["counted"], 1);
    }
    // Eigenvalues that equal diagonal entries. Close to such an eigenvalue a factorisation without
    // pivoting counts wrongly, so the check must move its shifts.
    const std::pair<const char*, std::vector<int>> close[] = {
        {"gen:laplace2d,nx=9 -k 40", {36}},
        {"gen:laplace2d,nx=9 --window=4:8", {36, 81}},
        {"gen:laplace2d,nx=5 --window=3:3", {6, 8}},
        {"gen:laplace3d,nx=5 --window=3:3", {10, 11}},
        {"gen:laplace3d,nx=5 --which target:3 -k 1", {10, 11}},
        {"gen:spinSZ,L=8 --window=-8:0", {7, 42}},
        {"gen:spinSZ,L=8 -k 20", {19, 20}},
        {"gen:spinSZ,L=8 -k 38", {37}},
        {"gen:spinSZ,L=8 -k 42", {37, 42}},
    };
    for (const auto& [arguments, counts] : close) {
        const EigsOutcome outcome = run_eigs(std::string(arguments) + " --verify inertia");
        EXPECT_EQ(outcome.status, 0) << arguments << outcome.err << outcome.out;
        std::vector<int> found;
        for (const auto& count : outcome.json["inertia"]) {
            found.push_back(count["counted"].get<int>());
            EXPECT_EQ(count["reliable"], true) << arguments;
        }
        EXPECT_EQ(found, counts) << arguments;
    }
    // The norm of the zero matrix gives no scale. No count is expected on the side of a cluster
    // that the result cuts.
    const Folder folder;
    const std::string zero = folder.write(
        "zero.mtx", "%%MatrixMarket matrix coordinate real symmetric\n10 10 1\n1 1 0\n");
    const std::pair<const char*, std::vector<int>> counted[] = {
        {"-k 2", {0}},
        {"-k 10", {0, 10}},
        {"-k 2 --which largest", {0}},
        {"-k 2 --which target:0", {}},
        {"-k 10 --which target:0", {0, 10}},
        {"-k 2 --which target:1", {10, 10}},
        {"--window 0:1", {0, 10}},
        {"--window -1:0", {0, 10}},
    };
    for (const auto& [arguments, counts] : counted) {
        const EigsOutcome outcome = run_eigs(zero + " --verify inertia " + arguments);
        EXPECT_EQ(outcome.status, 0) << arguments << outcome.err << outcome.out;
        std::vector<int> found;
        for (const auto& count : outcome.json["inertia"]) {
            found.push_back(count["counted"].get<int>());
        }
        EXPECT_EQ(found, counts) << arguments;
    }
    // A complex Hermitian matrix on two ranks.
    EXPECT_EQ(run_eigs("gen:topi,nx=4 -k 3 --verify inertia", 2).status, 0);
    const Outcome large =
        run_command("eigs gen:laplace2d,nx=300 -k 3 --verify inertia --device host");
    EXPECT_EQ(large.status, 2);
    EXPECT_NE(large.err.find("at most 50000 rows, but the matrix has 90000"), std::string::npos)
        << large.err;
}

TEST(Eigs, ASignalEndsTheSolveRegularly) {
    for (const int ranks : {1, 2}) {
        const Folder folder;
        // Every rank sends itself SIGINT one second after it has installed its handler (bit 1 of
        // the last digit of SigCgt), which may take long on a busy machine. The solve takes far
        // longer than a second.
        const Outcome outcome = run_script(
            "(until grep -q '^SigCgt:.*[2367abef]$' /proc/$$/status; do sleep 0.05; done; sleep 1; "
            "kill -INT $$) & quiver eigs gen:laplace3d,nx=48 -k 60 --tol 1e-13 --basis "
            "72 --block 1 --method lanczos --device host --json out.json",
            ranks, folder, 500);
        EXPECT_EQ(outcome.status, 1) << outcome.err;
        ASSERT_TRUE(nlohmann::json::accept(read_file(folder.path("out.json")))) << outcome.err;
        const auto json = nlohmann::json::parse(read_file(folder.path("out.json")));
        EXPECT_EQ(json["interrupted"], true);
        EXPECT_EQ(json["converged"], false);
        EXPECT_NE(json["message"].get<std::string>().find("interrupted after"), std::string::npos);
        EXPECT_NE(outcome.out.find("interrupted after"), std::string::npos) << outcome.out;
    }
}

TEST(Eigs, ATargetHasTheNearestOnEitherSide) {
    for (const int ranks : {1, 2}) {
        const EigsOutcome outcome = run_eigs(
            "gen:laplace2d,nx=17,ny=15 --which target:2.6 -k 7 --verify inertia --method jd",
            ranks);
        ASSERT_EQ(outcome.status, 0) << outcome.err << outcome.out;
        std::vector<double> exact;
        const auto line = [](int n, int i) {
            return 2 - 2 * std::cos(std::numbers::pi * i / (n + 1));
        };
        for (int i = 1; i <= 17; ++i) {
            for (int j = 1; j <= 15; ++j) {
                exact.push_back(line(17, i) + line(15, j));
            }
        }
        std::sort(exact.begin(), exact.end(),
                  [](double a, double b) { return std::abs(a - 2.6) < std::abs(b - 2.6); });
        exact.resize(7);
        std::sort(exact.begin(), exact.end());
        EXPECT_EQ(outcome.json["which"], "target:2.6");
        EXPECT_EQ(outcome.json["method"], "jd");
        ASSERT_EQ(outcome.json["eigenvalues"].size(), exact.size());
        EXPECT_EQ(outcome.json["exact_eigenvalues"].size(), exact.size());
        for (std::size_t j = 0; j < exact.size(); ++j) {
            EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(), exact[j], 1e-8);
        }
        const auto& counts = outcome.json["inertia"];
        ASSERT_EQ(counts.size(), 2u);
        EXPECT_EQ(counts[1]["counted"].get<int>() - counts[0]["counted"].get<int>(), 7);
    }
}

TEST(Eigs, TakesEveryPreconditioner) {
    int ranks = 1;
    for (const std::string method : {"lobpcg", "jd"}) {
        for (const std::string precond :
             {"none", "jacobi", "block-jacobi,size=6", "chebyshev,degree=4", "ic", "ilu", "ldlt"}) {
            ranks = 3 - ranks;  // every second run on two ranks
            const EigsOutcome outcome = run_eigs(
                "gen:laplace2d,nx=24 -k 5 --method " + method + " --precond " + precond, ranks);
            ASSERT_EQ(outcome.status, 0) << method << ' ' << precond << outcome.err;
            EXPECT_EQ(outcome.json["preconditioner"], precond);
            EXPECT_EQ(outcome.json["method"], method);
            EXPECT_EQ(outcome.out.find("precond     " + precond) != std::string::npos,
                      precond != "none")
                << outcome.out;
            for (std::size_t j = 0; j < 5; ++j) {
                EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                            outcome.json["exact_eigenvalues"][j].get<double>(), 1e-9);
            }
        }
    }
    // With a preconditioner the automatic choice is LOBPCG. Both methods accept a preconditioner
    // together with a mass matrix.
    EXPECT_EQ(run_eigs("gen:laplace2d,nx=60 -k 5 --precond ic").json["method"], "lobpcg");
    for (const std::string method : {"lobpcg", "jd"}) {
        const EigsOutcome pencil = run_eigs(
            "gen:laplace2d,nx=12 --mass gen:laplace1d,nx=144 -k 4 --precond ldlt "
            "--method " +
            method);
        EXPECT_EQ(pencil.status, 0) << pencil.err << pencil.out;
    }
}

TEST(Eigs, AnIndefiniteFactorisationIsNoPreconditionerAtAnEnd) {
    const EigsOutcome outcome = run_eigs("gen:anderson,L=11 -k 4 --precond ldlt");
    EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
    EXPECT_NE(
        outcome.err.find("quiver: note: preconditioner ldlt: of the matrix minus its shift 0,"),
        std::string::npos)
        << outcome.err;
    const EigsOutcome plain = run_eigs("gen:anderson,L=11 -k 4");
    for (std::size_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                    plain.json["eigenvalues"][j].get<double>(), 1e-8);
    }
    // A is singular: the shift moves to a value where A minus the shift is definite.
    const Folder folder;
    std::ofstream(folder.path("ring.mtx")) << [] {
        std::string text = "%%MatrixMarket matrix coordinate real symmetric\n1200 1200 2400\n";
        for (int i = 1; i <= 1200; ++i) {
            text += std::to_string(i) + " " + std::to_string(i) + " 2\n";
            text += std::to_string(i == 1200 ? 1200 : i + 1) + " " +
                    std::to_string(i == 1200 ? 1 : i) + " -1\n";
        }
        return text;
    }();
    const EigsOutcome ring = run_eigs(folder.path("ring.mtx") + " -k 3 --precond ldlt");
    EXPECT_EQ(ring.status, 0) << ring.err << ring.out;
    EXPECT_EQ(ring.err.find("note: preconditioner"), std::string::npos) << ring.err;
    EXPECT_EQ(ring.json["method"], "lobpcg");
}

TEST(Eigs, ATargetByShiftAndInvert) {
    const std::string task =
        "gen:anderson,L=7 --which target:0.5 -k 12 --verify inertia --method jd ";
    const EigsOutcome plain = run_eigs(task);
    ASSERT_EQ(plain.status, 0) << plain.err << plain.out;
    const EigsOutcome outcome = run_eigs(task + "--precond ldlt");
    ASSERT_EQ(outcome.status, 0) << outcome.err << outcome.out;
    EXPECT_EQ(outcome.json["method"], "jd");
    EXPECT_LT(3 * outcome.json["operator_applications"].get<int>(),
              plain.json["operator_applications"].get<int>());
    for (std::size_t j = 0; j < 12; ++j) {
        EXPECT_NEAR(outcome.json["eigenvalues"][j].get<double>(),
                    plain.json["eigenvalues"][j].get<double>(), 1e-8);
    }
    const EigsOutcome two = run_eigs(task + "--precond ldlt", 2);
    ASSERT_EQ(two.status, 0) << two.err << two.out;
    for (std::size_t j = 0; j < 12; ++j) {
        EXPECT_NEAR(two.json["eigenvalues"][j].get<double>(),
                    plain.json["eigenvalues"][j].get<double>(), 1e-8);
    }
    // The same at the largest end.
    const EigsOutcome largest =
        run_eigs("gen:laplace2d,nx=30 -k 4 --which largest --precond ldlt,shift=8");
    EXPECT_EQ(largest.status, 0) << largest.err << largest.out;
}

TEST(Misuse, PreconditionersOfEigs) {
    const auto refuses = [](const std::string& arguments, const std::string& words) {
        const Outcome outcome = run_command("eigs gen:laplace1d,nx=30 --device host " + arguments);
        EXPECT_EQ(outcome.status, 2) << arguments;
        EXPECT_NE(outcome.err.find(words), std::string::npos) << arguments << ": " << outcome.err;
        EXPECT_EQ(outcome.out, "") << arguments;
    };
    refuses("--precond jacobbi", "'jacobbi' is unknown: none, jacobi, block-jacobi");
    refuses("--precond ldlt,shift=near", "shift=near: a number is wanted");
    refuses("--precond ic --method lanczos", "--precond ic: --method lanczos only multiplies");
    refuses("--precond ic --method dense", "a dense solve needs no preconditioner");
    refuses("--precond ic --method chebyshev", "lobpcg and jd take one");
    refuses("--precond ic --window 1:2", "a --window uses a filter");
    refuses("--precond ic --which largest", "does not help with the largest eigenvalues");
    refuses("--precond ldlt --which largest", "ldlt,shift=VALUE");
}

TEST(Misuse, WindowsAndMethods) {
    const auto refuses = [](const std::string& arguments, const std::string& words) {
        const Outcome outcome = run_command("eigs gen:laplace1d,nx=30 --device host " + arguments);
        EXPECT_EQ(outcome.status, 2) << arguments;
        EXPECT_NE(outcome.err.find(words), std::string::npos) << arguments << ": " << outcome.err;
    };
    refuses("--window 1", "two numbers LOW:HIGH");
    refuses("--window 2:1", "two numbers LOW:HIGH");
    refuses("--window 1:x", "two numbers LOW:HIGH");
    refuses("--window nan:1", "two numbers LOW:HIGH");
    refuses("--window 1:2 -k 3", "omit -k and --which");
    refuses("--window 1:2 --mass gen:laplace1d,nx=30 --method filter --checkpoint kept",
            "--mass: --method filter supports no --checkpoint");
    refuses("--window 1:2 --which largest", "omit -k and --which");
    refuses("--window 1:2 --method lanczos", "a window needs filter");
    refuses("--method filter", "needs a --window LOW:HIGH");
    refuses("--method magic", "--method");
    refuses("--which target:", "takes a number");
    refuses("--which target:nan", "takes a number");
    refuses("--which middle", "target:VALUE");
    refuses("--which target:1 --method lanczos", "a target needs method jd");
    refuses("--verify hope", "--verify");
    refuses("--which target:1 --method jd --inner cg", "use minres or gmres");
    refuses("--method jd --inner qmr", "--inner");
}

}  // namespace
}  // namespace quiver::test
