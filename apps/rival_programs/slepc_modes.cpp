// SPDX-License-Identifier: BSD-3-Clause
// SLEPc for K x = lambda M x: quiver_rival_slepc_modes K M COUNT SHIFT, or K M LOW:HIGH. K and M
// are MATRIX arguments of quiver. The first form is Krylov-Schur with (K - SHIFT M)^-1 for the
// COUNT eigenvalues nearest SHIFT, the second spectrum slicing; MUMPS factorises. Prints the
// processor seconds of the solve and the eigenvalues. One process.
#include <cstdio>
#include <string>
#include <vector>

#include <slepceps.h>
#include <sys/resource.h>

#include "apps/problem.hpp"
#include "apps/rival_programs/petsc.hpp"

namespace quiver::rivals {
namespace {

double processor_seconds() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

Mat load(const std::string& spec) {
    const Comm comm;
    const auto rows =
        apps::load_problem<double>(comm, apps::inspect_problem(comm, spec), 1, Partition::by_rows);
    const std::vector<PetscInt> start(rows.row_start.begin(), rows.row_start.end());
    const std::vector<PetscInt> column(rows.column.begin(), rows.column.end());
    const auto size = static_cast<PetscInt>(rows.global_cols);
    Mat matrix = nullptr;
    check(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, size, size, size, size, start.data(),
                                    column.data(), rows.value.data(), &matrix));
    check(MatSetOption(matrix, MAT_SYMMETRIC, PETSC_TRUE));
    return matrix;
}

void solve(const std::vector<std::string>& words) {
    Mat k = load(words.at(1));
    Mat m = load(words.at(2));
    EPS solver = nullptr;
    ST transform = nullptr;
    KSP inner = nullptr;
    PC factors = nullptr;
    check(EPSCreate(PETSC_COMM_WORLD, &solver));
    check(EPSSetOperators(solver, k, m));
    check(EPSSetProblemType(solver, EPS_GHEP));
    check(EPSSetType(solver, EPSKRYLOVSCHUR));
    check(EPSSetTolerances(solver, 1e-10, PETSC_DEFAULT));
    check(EPSGetST(solver, &transform));
    check(STSetType(transform, STSINVERT));
    if (words.size() == 4) {
        const std::size_t colon = words[3].find(':');
        check(EPSSetWhichEigenpairs(solver, EPS_ALL));
        check(EPSSetInterval(solver, std::stod(words[3]), std::stod(words[3].substr(colon + 1))));
        check(EPSKrylovSchurGetKSP(solver, &inner));
    } else {
        check(EPSSetDimensions(solver, std::stoi(words.at(3)), PETSC_DEFAULT, PETSC_DEFAULT));
        check(EPSSetTarget(solver, std::stod(words.at(4))));
        check(EPSSetWhichEigenpairs(solver, EPS_TARGET_MAGNITUDE));
        check(STGetKSP(transform, &inner));
    }
    check(KSPSetType(inner, KSPPREONLY));
    check(KSPGetPC(inner, &factors));
    check(PCSetType(factors, PCCHOLESKY));
    check(PCFactorSetMatSolverType(factors, MATSOLVERMUMPS));
    check(EPSSetFromOptions(solver));
    const double begin = processor_seconds();
    check(EPSSolve(solver));
    const double seconds = processor_seconds() - begin;
    PetscInt found = 0;
    check(EPSGetConverged(solver, &found));
    std::printf("%.2f seconds, %d eigenvalues\n", seconds, static_cast<int>(found));
    for (PetscInt j = 0; j < found; ++j) {
        PetscScalar value = 0;
        check(EPSGetEigenvalue(solver, j, &value, nullptr));
        std::printf("%.12g\n", value);
    }
    check(EPSDestroy(&solver));
    check(MatDestroy(&k));
    check(MatDestroy(&m));
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    using namespace quiver::rivals;
    try {
        check(SlepcInitialize(nullptr, nullptr, nullptr, nullptr));
        solve(std::vector<std::string>(argv, argv + argc));
        check(SlepcFinalize());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "slepc_modes: %s\n", error.what());
        return 1;
    }
}
