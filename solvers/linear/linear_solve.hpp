// SPDX-License-Identifier: BSD-3-Clause
// The linear solvers by name, with or without a workspace.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// cg: Hermitian positive definite; minres: Hermitian; gmres, bicgstab: any operator.
/// docs/solvers.md describes when to use which.
enum class LinearMethod : std::uint8_t { cg, minres, gmres, bicgstab };

const char* to_string(LinearMethod method);

/// Calls block_cg, block_minres, block_gmres or bicgstab; their headers state requirements and
/// cost. Keep a workspace between calls to save allocations: a call with the same or smaller shapes
/// then allocates no blocks. Right-hand sides whose squares underflow or overflow are scaled by a
/// power of two and then solved without a guess. Throws InputError on all ranks if methods, options
/// or numbers of columns differ between the ranks (one all-reduce); the message names the option
/// with its smallest and largest value.
template <class T>
LinearResult linear_solve(Context& ctx, LinearMethod method, const LinearProblem<T>& problem,
                          BlockView<T> x, const LinearOptions& options,
                          LinearWorkspace<T>& workspace);

template <class T>
LinearResult linear_solve(Context& ctx, LinearMethod method, const LinearProblem<T>& problem,
                          BlockView<T> x, const LinearOptions& options = {}) {
    LinearWorkspace<T> workspace;
    return linear_solve(ctx, method, problem, x, options, workspace);
}

}  // namespace quiver
