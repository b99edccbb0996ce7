// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigensolver.hpp"

#include <complex>
#include <utility>

#include "blockvec/error.hpp"
#include "solvers/eigen/block_lanczos.hpp"
#include "solvers/eigen/jacobi_davidson.hpp"

namespace quiver {

template <class T>
MethodChoice choose_method(const EigenProblem<T>& problem, const EigenOptions& options) {
    if (options.method != Method::automatic) {
        return {options.method, "asked for"};
    }
    if (options.which == Which::target) {
        return {Method::jacobi_davidson, "eigenvalues nearest a target"};
    }
    if (problem.b != nullptr) {
        return {Method::lobpcg, "B is given"};
    }
    if (problem.preconditioner != nullptr) {
        return {Method::lobpcg, "a preconditioner is given"};
    }
    return {Method::lanczos, "an end of the spectrum"};
}

template <class T>
EigenResult<T> eigensolve(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options) {
    MethodChoice choice = choose_method(problem, options);
    if (options.which == Which::target && choice.method != Method::jacobi_davidson) {
        InputError error(std::string("eigensolver: method ") + to_string(choice.method) +
                         " finds an end of the spectrum; jd finds eigenvalues nearest a target");
        error.set_collective();
        throw error;
    }
    const auto solve = [&]() -> EigenResult<T> {
        switch (choice.method) {
            case Method::lanczos:
                return block_lanczos(ctx, problem, options);
            case Method::jacobi_davidson:
                return jacobi_davidson(ctx, problem, options);
            default: {
                InputError error(std::string("eigensolver: method ") + to_string(choice.method) +
                                 " is not in this build");
                error.set_collective();
                throw error;
            }
        }
    };
    EigenResult<T> result = solve();
    result.method_reason = std::move(choice.reason);
    return result;
}

template MethodChoice choose_method(const EigenProblem<float>&, const EigenOptions&);
template MethodChoice choose_method(const EigenProblem<double>&, const EigenOptions&);
template MethodChoice choose_method(const EigenProblem<std::complex<float>>&, const EigenOptions&);
template MethodChoice choose_method(const EigenProblem<std::complex<double>>&, const EigenOptions&);
template EigenResult<float> eigensolve(Context&, const EigenProblem<float>&, const EigenOptions&);
template EigenResult<double> eigensolve(Context&, const EigenProblem<double>&, const EigenOptions&);
template EigenResult<std::complex<float>> eigensolve(Context&,
                                                     const EigenProblem<std::complex<float>>&,
                                                     const EigenOptions&);
template EigenResult<std::complex<double>> eigensolve(Context&,
                                                      const EigenProblem<std::complex<double>>&,
                                                      const EigenOptions&);

}  // namespace quiver
