// SPDX-License-Identifier: BSD-3-Clause
// SLEPc: any EPS type by its name (krylovschur, lobpcg, ...) on an AIJ matrix; sinvert:
// Krylov-Schur with (A - shift I)^-1, factorized by MUMPS.
#include <algorithm>
#include <string>
#include <vector>

#include <slepceps.h>

#include "apps/rival_programs/driver.hpp"
#include "apps/rival_programs/petsc.hpp"

namespace quiver::rivals {
namespace {

Mat assemble(const CsrRows<double>& rows) {
    const auto local = static_cast<PetscInt>(rows.map.local_rows());
    const auto global = static_cast<PetscInt>(rows.map.global_rows());
    const std::vector<PetscInt> start(rows.row_start.begin(), rows.row_start.end());
    const std::vector<PetscInt> column(rows.column.begin(), rows.column.end());
    Mat matrix = nullptr;
    check(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, local, local, global, global, start.data(),
                                    column.data(), rows.value.data(), &matrix));
    check(MatSetOption(matrix, MAT_SYMMETRIC, PETSC_TRUE));
    return matrix;
}

/// No preconditioner instead of SLEPc's default, Jacobi.
void set_lobpcg(EPS solver, int k) {
    check(EPSLOBPCGSetBlockSize(solver, k));
    ST transform = nullptr;
    KSP inner = nullptr;
    PC preconditioner = nullptr;
    check(EPSGetST(solver, &transform));
    check(STSetType(transform, STPRECOND));
    check(STGetKSP(transform, &inner));
    check(KSPGetPC(inner, &preconditioner));
    check(PCSetType(preconditioner, PCNONE));
}

/// The default test of convergence, relative to theta = 1 / (lambda - shift), implies a residual of
/// at most `tolerance` ||A - shift I|| for A.
void set_shift_invert(EPS solver, const Request& request) {
    ST transform = nullptr;
    KSP inner = nullptr;
    PC factors = nullptr;
    check(EPSSetTarget(solver, request.outer_shift()));
    check(EPSSetWhichEigenpairs(solver, EPS_TARGET_MAGNITUDE));
    check(EPSSetTolerances(solver, request.residual / request.norm, 100000));
    check(EPSSetConvergenceTest(solver, EPS_CONV_REL));
    check(EPSGetST(solver, &transform));
    check(STSetType(transform, STSINVERT));
    check(STGetKSP(transform, &inner));
    check(KSPSetType(inner, KSPPREONLY));
    check(KSPGetPC(inner, &factors));
    check(PCSetType(factors, PCCHOLESKY));
    check(PCFactorSetMatSolverType(factors, MATSOLVERMUMPS));
}

Answer solve(const Problem& problem) {
    const Request& request = problem.request;
    check(SlepcInitialize(nullptr, nullptr, nullptr, nullptr));
    check(PetscLogDefaultBegin());  // counts the products
    Answer answer;
    answer.library = "SLEPc " + std::to_string(SLEPC_VERSION_MAJOR) + "." +
                     std::to_string(SLEPC_VERSION_MINOR) + "." +
                     std::to_string(SLEPC_VERSION_SUBMINOR);
    Mat matrix = assemble(problem.rows);
    EPS solver = nullptr;
    check(EPSCreate(PETSC_COMM_WORLD, &solver));
    check(EPSSetOperators(solver, matrix, nullptr));
    check(EPSSetProblemType(solver, EPS_HEP));
    const bool inverse = request.method == "sinvert";
    check(EPSSetType(solver, inverse ? EPSKRYLOVSCHUR : request.method.c_str()));
    check(EPSSetWhichEigenpairs(solver, request.largest ? EPS_LARGEST_REAL : EPS_SMALLEST_REAL));
    check(EPSSetDimensions(solver, request.k, PETSC_DEFAULT, PETSC_DEFAULT));
    check(EPSSetTolerances(solver, request.residual, 100000));
    check(EPSSetConvergenceTest(solver, EPS_CONV_ABS));
    if (request.method == EPSLOBPCG) {
        set_lobpcg(solver, request.k);
    } else if (inverse) {
        set_shift_invert(solver, request);
    }
    answer.seconds = timed(problem.ctx, [&] { check(EPSSolve(solver)); });
    PetscInt found = 0;
    check(EPSGetConverged(solver, &found));
    answer.converged = found >= request.k;
    const int count = std::min(static_cast<int>(found), request.k);
    PetscLogEvent event = 0;
    PetscEventPerfInfo info;
    check(PetscLogEventGetId(inverse ? "MatSolve" : "MatMult", &event));
    check(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
    answer.products = info.count;
    answer.vectors = BlockVector<double>(problem.ctx, problem.rows.map, count);
    Vec vector = nullptr;
    check(MatCreateVecs(matrix, &vector, nullptr));
    const BlockView<double> columns = answer.vectors.view();
    for (int j = 0; j < count; ++j) {
        PetscScalar value = 0;
        check(EPSGetEigenpair(solver, j, &value, nullptr, vector, nullptr));
        answer.eigenvalues.push_back(value);
        const PetscScalar* entries = nullptr;
        check(VecGetArrayRead(vector, &entries));
        for (std::int64_t i = 0; i < columns.rows; ++i) {
            columns.data[i * columns.ld + j] = entries[i];
        }
        check(VecRestoreArrayRead(vector, &entries));
    }
    check(VecDestroy(&vector));
    check(EPSDestroy(&solver));
    check(MatDestroy(&matrix));
    check(SlepcFinalize());
    return answer;
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    return quiver::rivals::run(argc, argv, quiver::rivals::solve);
}
