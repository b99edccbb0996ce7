// SPDX-License-Identifier: BSD-3-Clause
// What the drivers of other eigensolvers share: the request, the file, fresh residuals, the report.
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
    /// A pair has converged when ||A x - lambda x|| <= residual, ||x|| = 1.
    double residual = 0;
    /// ||A||_2, and about where the wanted end lies: for rivals whose tolerances are relative to
    /// the eigenvalue.
    double norm = 1;
    double end = 0;
};

/// The problem as a rival gets it: its rows, and a product with a vector for those without one.
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
    /// Of the solve: nothing is read, no matrix is assembled.
    double seconds = 0;
    /// With a vector; 0 where the rival does not tell.
    long products = 0;
    std::vector<double> eigenvalues;
    /// Column j belongs to eigenvalues[j].
    BlockVector<double> vectors;
};

/// Seconds of an action between two barriers, the same on all ranks.
double timed(const Context& ctx, const std::function<void()>& action);

/// main() of a driver: DRIVER METHOD FILE K smallest|largest RESIDUAL NORM END. Rank 0 prints one
/// JSON object: library, converged, seconds, products, eigenvalues ascending, residuals from fresh
/// products. Returns the exit status.
int run(int argc, char** argv, const std::function<Answer(const Problem&)>& solve);

}  // namespace quiver::rivals
