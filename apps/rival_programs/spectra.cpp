// SPDX-License-Identifier: BSD-3-Clause
// Spectra: lanczos (SymEigsSolver with quiver's sparse product) and sinvert (SymEigsShiftSolver
// with Eigen's SimplicialLDLT). Spectra runs in one process.
#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <Spectra/SymEigsShiftSolver.h>
#include <Spectra/SymEigsSolver.h>
#include <Spectra/Util/Version.h>

#include "apps/rival_programs/driver.hpp"
#include "blockvec/interop.hpp"
#include "kernels/column_ops.hpp"

namespace quiver::rivals {
namespace {

/// y = (A - shift I) x by quiver's product.
class Product {
  public:
    using Scalar = double;

    Product(const Problem& problem, double shift) : problem_(problem), shift_(shift) {}
    Eigen::Index rows() const { return problem_.rows.map.local_rows(); }
    Eigen::Index cols() const { return rows(); }
    void perform_op(const double* x, double* y) const {
        ApplyOptions<double> shifted;
        shifted.shift = std::span<const double>(&shift_, 1);
        problem_.matrix.apply_fused(problem_.ctx, host_view<const double>(x, rows(), 1),
                                    host_view(y, rows(), 1), shifted);
    }

  private:
    const Problem& problem_;
    double shift_;
};

/// y = (A - shift I)^-1 x. The shift lies outside of the spectrum, so LDL^T needs no pivoting.
class Solve {
  public:
    using Scalar = double;

    explicit Solve(const Eigen::SparseMatrix<double>& matrix) : matrix_(matrix) {}
    Eigen::Index rows() const { return matrix_.rows(); }
    Eigen::Index cols() const { return matrix_.cols(); }
    void set_shift(double shift) {
        factors_.setShift(-shift);
        factors_.compute(matrix_);
        if (factors_.info() != Eigen::Success) {
            throw std::runtime_error("SimplicialLDLT failed");
        }
    }
    void perform_op(const double* x, double* y) const {
        Eigen::Map<Eigen::VectorXd>(y, rows()) =
            factors_.solve(Eigen::Map<const Eigen::VectorXd>(x, rows()));
    }

  private:
    const Eigen::SparseMatrix<double>& matrix_;
    Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factors_;
};

Eigen::SparseMatrix<double> assemble(const CsrRows<double>& rows) {
    const auto n = static_cast<int>(rows.map.local_rows());
    const std::vector<int> start(rows.row_start.begin(), rows.row_start.end());
    const std::vector<int> column(rows.column.begin(), rows.column.end());
    return Eigen::Map<const Eigen::SparseMatrix<double, Eigen::RowMajor>>(
        n, n, start.back(), start.data(), column.data(), rows.value.data());
}

/// The solver's eigenvalues are those of A - shift I.
template <class Solver>
void take(const Problem& problem, const Solver& solver, double shift, Answer& answer) {
    const Eigen::VectorXd values = solver.eigenvalues();
    const Eigen::MatrixXd vectors = solver.eigenvectors();
    answer.products = solver.num_operations();
    answer.converged = solver.info() == Spectra::CompInfo::Successful;
    const auto n = problem.rows.map.local_rows();
    answer.vectors =
        BlockVector<double>(problem.ctx, problem.rows.map, static_cast<int>(values.size()));
    for (int j = 0; j < static_cast<int>(values.size()); ++j) {
        answer.eigenvalues.push_back(values[j] + shift);
        copy(problem.ctx, host_view<const double>(vectors.col(j).data(), n, 1),
             answer.vectors.columns(j, 1));
    }
}

/// Spectra's tolerance is relative to the eigenvalue of the operator. For sinvert, a residual of r
/// relative to 1 / (lambda - shift) means a residual of at most r ||A - shift I|| for A.
Answer solve(const Problem& problem) {
    const Request& request = problem.request;
    if (problem.ctx.comm().size() > 1) {
        throw std::runtime_error("Spectra runs on one rank");
    }
    const double tolerance = request.residual / request.norm;
    constexpr int restarts = 10000;
    const int basis = std::min(std::max(2 * request.k + 10, 30),
                               static_cast<int>(problem.rows.map.global_rows()));
    Answer answer;
    answer.library = "Spectra " + std::to_string(SPECTRA_MAJOR_VERSION) + "." +
                     std::to_string(SPECTRA_MINOR_VERSION) + "." +
                     std::to_string(SPECTRA_PATCH_VERSION);
    if (request.method == "sinvert") {
        const Eigen::SparseMatrix<double> matrix = assemble(problem.rows);
        Solve inverse(matrix);
        answer.seconds = timed(problem.ctx, [&] {
            Spectra::SymEigsShiftSolver<Solve> solver(inverse, request.k, basis,
                                                      request.outer_shift());
            solver.init();
            solver.compute(Spectra::SortRule::LargestMagn, restarts, tolerance);
            take(problem, solver, 0, answer);
        });
        return answer;
    }
    if (request.method != "lanczos") {
        throw std::runtime_error("Spectra: lanczos or sinvert, not " + request.method);
    }
    const double shift = request.shift_to_norm();
    Product product(problem, shift);
    answer.seconds = timed(problem.ctx, [&] {
        Spectra::SymEigsSolver<Product> solver(product, request.k, basis);
        solver.init();
        solver.compute(
            request.largest ? Spectra::SortRule::LargestAlge : Spectra::SortRule::SmallestAlge,
            restarts, tolerance);
        take(problem, solver, shift, answer);
    });
    return answer;
}

}  // namespace
}  // namespace quiver::rivals

int main(int argc, char** argv) {
    return quiver::rivals::run(argc, argv, quiver::rivals::solve);
}
