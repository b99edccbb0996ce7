// SPDX-License-Identifier: BSD-3-Clause
// Anasazi on Epetra: bks (block Krylov-Schur) and lobpcg.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include <AnasaziBasicEigenproblem.hpp>
#include <AnasaziBlockKrylovSchurSolMgr.hpp>
#include <AnasaziEpetraAdapter.hpp>
#include <AnasaziLOBPCGSolMgr.hpp>
#include <Epetra_CrsMatrix.h>
#include <Epetra_Map.h>
#include <Epetra_MpiComm.h>
#include <Epetra_MultiVector.h>
#include <Trilinos_version.h>

#include "apps/rival_programs/driver.hpp"
#include "blockvec/interop.hpp"
#include "kernels/column_ops.hpp"

namespace quiver::rivals {
namespace {

using MultiVector = Epetra_MultiVector;
using Eigenproblem = Anasazi::BasicEigenproblem<double, MultiVector, Epetra_Operator>;
using Manager = Anasazi::SolverManager<double, MultiVector, Epetra_Operator>;

/// Counts the products of its matrix.
class Counted final : public Epetra_Operator {
  public:
    explicit Counted(const Epetra_CrsMatrix& matrix) : matrix_(matrix) {}
    long products() const { return products_; }
    int Apply(const MultiVector& x, MultiVector& y) const override {
        products_ += x.NumVectors();
        return matrix_.Multiply(false, x, y);
    }
    int SetUseTranspose(bool) override { return -1; }
    int ApplyInverse(const MultiVector&, MultiVector&) const override { return -1; }
    double NormInf() const override { return matrix_.NormInf(); }
    const char* Label() const override { return "matrix"; }
    bool UseTranspose() const override { return false; }
    bool HasNormInf() const override { return true; }
    const Epetra_Comm& Comm() const override { return matrix_.Comm(); }
    const Epetra_Map& OperatorDomainMap() const override { return matrix_.OperatorDomainMap(); }
    const Epetra_Map& OperatorRangeMap() const override { return matrix_.OperatorRangeMap(); }

  private:
    const Epetra_CrsMatrix& matrix_;
    mutable long products_ = 0;
};

Teuchos::RCP<Epetra_CrsMatrix> assemble(const CsrRows<double>& rows, const Epetra_Map& map) {
    const int local = map.NumMyElements();
    std::vector<int> length;
    for (std::size_t i = 0; i < static_cast<std::size_t>(local); ++i) {
        length.push_back(static_cast<int>(rows.row_start[i + 1] - rows.row_start[i]));
    }
    auto matrix = Teuchos::rcp(new Epetra_CrsMatrix(Copy, map, length.data(), true));
    std::vector<int> column;
    for (int i = 0; i < local; ++i) {
        const auto first = rows.row_start[static_cast<std::size_t>(i)];
        const int count = length[static_cast<std::size_t>(i)];
        column.assign(rows.column.begin() + first, rows.column.begin() + first + count);
        matrix->InsertGlobalValues(map.GID(i), count, rows.value.data() + first, column.data());
    }
    matrix->FillComplete();
    matrix->OptimizeStorage();
    return matrix;
}

std::unique_ptr<Manager> make_manager(const Teuchos::RCP<Eigenproblem>& eigenproblem,
                                      const Request& request) {
    Teuchos::ParameterList parameters;
    parameters.set("Which", request.largest ? "LR" : "SR");
    parameters.set("Convergence Tolerance", request.residual);
    parameters.set("Relative Convergence Tolerance", false);
    parameters.set("Verbosity", static_cast<int>(Anasazi::Errors));
    if (request.method == "bks") {
        constexpr int block = 2;
        parameters.set("Block Size", block);
        parameters.set("Num Blocks", std::max(20, (2 * request.k + 10) / block));
        parameters.set("Maximum Restarts", 10000);
        return std::make_unique<
            Anasazi::BlockKrylovSchurSolMgr<double, MultiVector, Epetra_Operator>>(eigenproblem,
                                                                                   parameters);
    }
    if (request.method != "lobpcg") {
        throw std::runtime_error("Anasazi: bks or lobpcg, not " + request.method);
    }
    parameters.set("Block Size", request.k);
    parameters.set("Maximum Iterations", 100000);
    parameters.set("Full Ortho", true);
    parameters.set("Use Locking", true);
    parameters.set("Locking Tolerance", request.residual / 10);
    parameters.set("Relative Locking Tolerance", false);
    return std::make_unique<Anasazi::LOBPCGSolMgr<double, MultiVector, Epetra_Operator>>(
        eigenproblem, parameters);
}

Answer solve(const Problem& problem) {
    const Request& request = problem.request;
    Epetra_MpiComm comm(MPI_COMM_WORLD);
    const Epetra_Map map(static_cast<int>(problem.rows.map.global_rows()),
                         static_cast<int>(problem.rows.map.local_rows()), 0, comm);
    const auto matrix = assemble(problem.rows, map);
    const auto counted = Teuchos::rcp(new Counted(*matrix));
    const auto start = Teuchos::rcp(new MultiVector(map, request.method == "bks" ? 2 : request.k));
    start->SetSeed(1);
    start->Random();
    const auto eigenproblem = Teuchos::rcp(new Eigenproblem(counted, start));
    eigenproblem->setHermitian(true);
    eigenproblem->setNEV(request.k);
    if (!eigenproblem->setProblem()) {
        throw std::runtime_error("Anasazi: setProblem");
    }
    const auto manager = make_manager(eigenproblem, request);
    Answer answer;
    answer.library = "Anasazi " TRILINOS_VERSION_STRING;
    answer.seconds =
        timed(problem.ctx, [&] { answer.converged = manager->solve() == Anasazi::Converged; });
    answer.products = counted->products();
    const auto& solution = eigenproblem->getSolution();
    const int count = std::min(solution.numVecs, request.k);
    answer.vectors = BlockVector<double>(problem.ctx, problem.rows.map, count);
    for (int j = 0; j < count; ++j) {
        answer.eigenvalues.push_back(solution.Evals[static_cast<std::size_t>(j)].realpart);
        copy(problem.ctx,
             host_view<const double>((*solution.Evecs)[j], problem.rows.map.local_rows(), 1),
             answer.vectors.columns(j, 1));
    }
    return answer;
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    return quiver::rivals::run(argc, argv, quiver::rivals::solve);
}
