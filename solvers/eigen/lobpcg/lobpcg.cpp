// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/lobpcg.hpp"

#include "blockvec/scalar_list.hpp"
#include "solvers/eigen/lobpcg/lobpcg_solver.hpp"
#include "solvers/eigen/search/audited_solve.hpp"

namespace quiver {

template <class T>
EigenResult<T> lobpcg(Context& ctx, const EigenProblem<T>& problem, const EigenOptions& options) {
    return audited_solve<T>(ctx, problem, [&] { return Lobpcg<T>(ctx, problem, options).run(); });
}

#define QUIVER_INSTANTIATE(T) \
    template EigenResult<T> lobpcg(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
