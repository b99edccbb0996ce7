// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lobpcg.hpp"

#include <complex>

#include "solvers/eigen/lobpcg_solver.hpp"

namespace quiver {

template <class T>
EigenResult<T> lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options) {
    return Lobpcg<T>(ctx, problem, options).run();
}

template EigenResult<float> lobpcg(Context&, const EigenProblem<float>&, const EigenOptions&);
template EigenResult<double> lobpcg(Context&, const EigenProblem<double>&, const EigenOptions&);
template EigenResult<std::complex<float>> lobpcg(Context&, const EigenProblem<std::complex<float>>&,
                                                 const EigenOptions&);
template EigenResult<std::complex<double>> lobpcg(Context&,
                                                  const EigenProblem<std::complex<double>>&,
                                                  const EigenOptions&);

}  // namespace quiver
