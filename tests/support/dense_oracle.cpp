// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/dense_oracle.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>

namespace quiver::test::oracle {
namespace {

using Real = Eigen::MatrixXd;
using Complex = Eigen::MatrixXcd;

// Real matrices are computed as complex ones, so that each decomposition is compiled once.
Complex widen(const Real& a) {
    return a.cast<std::complex<double>>();
}

}  // namespace

Complex product(const Complex& a, const Complex& b) {
    return a * b;
}
Real product(const Real& a, const Real& b) {
    return product(widen(a), widen(b)).real();
}

Complex solution(const Complex& a, const Complex& b) {
    return a.partialPivLu().solve(b);
}
Complex inverse(const Complex& a) {
    return solution(a, Complex::Identity(a.rows(), a.cols()));
}
Real inverse(const Real& a) {
    return inverse(widen(a)).real();
}

double least_residual(const Complex& a, const Complex& b) {
    return (b - product(a, a.colPivHouseholderQr().solve(b))).norm();
}

Eigen::VectorXd eigenvalues(const Complex& a) {
    return Eigen::SelfAdjointEigenSolver<Complex>(a, Eigen::EigenvaluesOnly).eigenvalues();
}
Eigen::VectorXd eigenvalues(const Real& a) {
    return eigenvalues(widen(a));
}

// With B = L L^H the eigenvalues are those of L^-1 A L^-H.
Eigen::VectorXd eigenvalues(const Complex& a, const Complex& b) {
    const Complex lower = b.llt().matrixL();
    const Complex left = solution(lower, a);
    return eigenvalues(solution(lower, left.adjoint()));
}
Eigen::VectorXd eigenvalues(const Real& a, const Real& b) {
    return eigenvalues(widen(a), widen(b));
}

Eigenpairs eigenpairs(const Complex& a) {
    const Eigen::SelfAdjointEigenSolver<Complex> solver(a);
    return {solver.eigenvalues(), solver.eigenvectors()};
}

// The eigenvalues of [0 A; A^H 0] are the singular values of A and their negatives.
double least_singular_value(const Complex& a) {
    const Eigen::Index n = a.rows();
    Complex both = Complex::Zero(2 * n, 2 * n);
    both.topRightCorner(n, n) = a;
    both.bottomLeftCorner(n, n) = a.adjoint();
    return eigenvalues(both).cwiseAbs().minCoeff();
}

}  // namespace quiver::test::oracle
