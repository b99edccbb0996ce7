// SPDX-License-Identifier: BSD-3-Clause
// The common part of the drivers of other eigensolvers: parses the request, reads the matrix file,
// recomputes the residuals and prints the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::rivals {

/// k eigenpairs of a real symmetric matrix at one end of the spectrum.
struct Request {
    std::string method;
    int k = 10;
    bool largest = false;
    /// A pair has converged if ||A x - lambda x|| <= residual with ||x|| = 1.
    double residual = 0;
    /// ||A||_2, and approximations of the outermost and the innermost wanted eigenvalue.
    double norm = 1;
    double end = 0;
    double inner = 0;

    /// For solvers whose tolerance is relative to the eigenvalue: the wanted eigenvalues of
    /// A - shift I are about as large as ||A||. The Krylov spaces are those of A.
    double shift_to_norm() const { return largest ? end - norm : end + norm; }
    /// For shift-invert: a shift outside of the spectrum, a tenth of the width of the wanted
    /// interval away from it.
    double outer_shift() const { return end + 0.1 * (end - inner); }
};

/// The problem for a rival: the rows of the matrix, and quiver's product for rivals without their
/// own.
struct Problem {
    Context& ctx;
    const CsrRows<double>& rows;
    SparseMatrix<double>& matrix;
    Request request;
};

struct Answer {
    /// "SLEPc 3.18.2"
    std::string library;
    bool converged = false;
    /// Seconds of the solve with its factorization, without reading and assembling the matrix.
    double seconds = 0;
    /// Products with a vector (shift-invert: solves); 0 if the rival does not count them.
    long products = 0;
    std::vector<double> eigenvalues;
    /// Column j belongs to eigenvalues[j].
    BlockVector<double> vectors;
};

/// Seconds of an action between two barriers, the same on all ranks.
double timed(const Context& ctx, const std::function<void()>& action);

/// main() of a driver: DRIVER METHOD FILE K smallest|largest RESIDUAL NORM END INNER. Rank 0 prints
/// one JSON object: library, converged, seconds, products, eigenvalues ascending, recomputed
/// residuals. Returns the exit status; an error aborts all ranks with status 3.
int run(int argc, char** argv, const std::function<Answer(const Problem&)>& solve);

}  // namespace quiver::rivals
