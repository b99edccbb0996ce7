// SPDX-License-Identifier: BSD-3-Clause
// Dense reference algebra for tests, by Eigen. It is compiled once (dense_oracle.cpp), because
// Eigen's products and decompositions take long to compile.
#pragma once

#include <Eigen/Core>

namespace quiver::test::oracle {

/// A B.
Eigen::MatrixXd product(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);
Eigen::MatrixXcd product(const Eigen::MatrixXcd& a, const Eigen::MatrixXcd& b);

/// A^-1 and A^-1 B, by LU with partial pivoting.
Eigen::MatrixXd inverse(const Eigen::MatrixXd& a);
Eigen::MatrixXcd inverse(const Eigen::MatrixXcd& a);
Eigen::MatrixXcd solution(const Eigen::MatrixXcd& a, const Eigen::MatrixXcd& b);

/// The least ||B - A X|| over all X, by QR with column pivoting.
double least_residual(const Eigen::MatrixXcd& a, const Eigen::MatrixXcd& b);

/// The least singular value of a square A.
double least_singular_value(const Eigen::MatrixXcd& a);

/// The eigenvalues of a Hermitian A, ascending; reads the lower triangle.
Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& a);
Eigen::VectorXd eigenvalues(const Eigen::MatrixXcd& a);

/// The eigenvalues of A x = lambda B x, ascending; A is Hermitian, B positive definite.
Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);
Eigen::VectorXd eigenvalues(const Eigen::MatrixXcd& a, const Eigen::MatrixXcd& b);

struct Eigenpairs {
    Eigen::VectorXd values;  // ascending
    Eigen::MatrixXcd vectors;
};
Eigenpairs eigenpairs(const Eigen::MatrixXcd& a);

}  // namespace quiver::test::oracle
