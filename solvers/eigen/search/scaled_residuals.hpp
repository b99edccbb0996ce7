// SPDX-License-Identifier: BSD-3-Clause
// Products and residuals of methods that solve on one rank and check the result on all. Private to
// solvers/eigen.
#pragma once

#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "solvers/eigen/eigen_options.hpp"
#include "solvers/eigen/eigen_problem.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// Called on all ranks for a product that is not finite: throws the exception of the operator on a
/// rank where it failed, else NumericalError with the method's name.
template <class T>
[[noreturn]] void refuse_product(GuardedOperator<T>& a, Method method);

/// Y = A X. Throws NumericalError on all ranks, with the method's name, if the operator fails on
/// some rank or Y is not finite. Collective; one all-reduce.
template <class T>
void checked_product(Context& ctx, Method method, Operator<T>& a, BlockView<const T> x,
                     BlockView<T> y);

/// The exponent of the power of two by which a matrix is divided so that its largest entry is near
/// 1; 0 for a zero matrix. The exponent is even, because eigenvectors scale with the square root of
/// the power of two of B.
int even_exponent(double largest);

/// The exponents a and b of the factors 2^-a and 2^-b by which A and B were scaled.
struct PencilExponents {
    int a = 0;
    int b = 0;
};

/// ||(I - N N^H) (A x_j - values[j] B x_j)|| / ||x_j|| with the orthonormal columns N = `normals`.
/// The products are scaled before their norms are taken, so that squares neither overflow nor
/// underflow for any ||A||. Collective. Cost: one product with A, one with B; memory: two times up
/// to 64 columns.
template <class T>
std::vector<double> scaled_residuals(Context& ctx, Method method, const EigenProblem<T>& problem,
                                     BlockView<const T> x, const std::vector<double>& values,
                                     PencilExponents exponents, BlockView<const T> normals = {});

/// An orthonormal basis of B times the constraints, along which residuals have components that the
/// problem does not ask to vanish; no columns without constraints. Collective.
template <class T>
BlockVector<T> constraint_normals(Context& ctx, Method method, const EigenProblem<T>& problem);

}  // namespace quiver
