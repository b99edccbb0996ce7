// SPDX-License-Identifier: BSD-3-Clause
// The linear solvers by name, with or without a workspace.
#pragma once

#include "solvers/linear/linear_problem.hpp"
#include "solvers/linear/linear_workspace.hpp"

namespace quiver {

/// cg: Hermitian positive definite; minres: Hermitian; gmres, bicgstab: any. docs/solvers.md says
/// when to take which.
enum class LinearMethod : std::uint8_t { cg, minres, gmres, bicgstab };

const char* to_string(LinearMethod method);

/// block_cg, block_minres, block_gmres or bicgstab, whose headers say what they ask and cost.
/// A workspace kept between calls saves allocations: with one, steps allocate no block.
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
