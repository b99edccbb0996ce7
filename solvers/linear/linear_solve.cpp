// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/linear/linear_solve.hpp"

#include "blockvec/scalar_list.hpp"
#include "solvers/linear/bicgstab.hpp"
#include "solvers/linear/block_cg.hpp"
#include "solvers/linear/block_gmres.hpp"
#include "solvers/linear/block_minres.hpp"

namespace quiver {

const char* to_string(LinearMethod method) {
    switch (method) {
        case LinearMethod::cg:
            return "cg";
        case LinearMethod::minres:
            return "minres";
        case LinearMethod::gmres:
            return "gmres";
        default:
            return "bicgstab";
    }
}

template <class T>
LinearResult linear_solve(Context& ctx, LinearMethod method, const LinearProblem<T>& problem,
                          BlockView<T> x, const LinearOptions& options,
                          LinearWorkspace<T>& workspace) {
    switch (method) {
        case LinearMethod::cg:
            return block_cg(ctx, problem, x, options, workspace);
        case LinearMethod::minres:
            return block_minres(ctx, problem, x, options, workspace);
        case LinearMethod::gmres:
            return block_gmres(ctx, problem, x, options, workspace);
        default:
            return bicgstab(ctx, problem, x, options, workspace);
    }
}

#define QUIVER_INSTANTIATE(T)                                                           \
    template LinearResult linear_solve(Context&, LinearMethod, const LinearProblem<T>&, \
                                       BlockView<T>, const LinearOptions&, LinearWorkspace<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
