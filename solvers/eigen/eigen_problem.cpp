// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigen_problem.hpp"

#include <string>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "solvers/equal_options.hpp"

namespace quiver {
namespace {

template <class T>
void check_block(const Context& ctx, const RowMap& map, BlockView<const T> block,
                 const char* requirement) {
    require_shape(block.cols == 0 || (block.rows == map.local_rows() && block.place == ctx.place()),
                  "eigensolver", requirement, [&] {
                      return describe(block) + "; the operator has " +
                             std::to_string(map.local_rows()) + " rows here, the place is " +
                             to_string(ctx.place());
                  });
}

template <class T>
void check_operator(const RowMap& map, const Operator<T>* other, const char* requirement) {
    require_shape(other == nullptr || other->row_map() == map, "eigensolver", requirement, [&] {
        return std::to_string(map.global_rows()) + " and " +
               std::to_string(other->row_map().global_rows()) + " rows";
    });
}

}  // namespace

template <class T>
void require_equal_options(const Comm& comm, const EigenProblem<T>& problem,
                           const EigenOptions& options) {
    EqualOptions all("eigensolver");
    all.add_choice("method", static_cast<int>(options.method),
                   [](int method) { return to_string(static_cast<Method>(method)); });
    all.add_choice("which", static_cast<int>(options.which),
                   [](int which) { return to_string(static_cast<Which>(which)); });
    all.add_choice("inner", static_cast<int>(options.inner),
                   [](int inner) { return to_string(static_cast<InnerSolver>(inner)); });
    all.add("k", options.k);
    all.add("target", options.target);
    all.add("block", options.block);
    all.add("tol", options.tol);
    all.add("max_iterations", options.max_iterations);
    all.add("max_seconds", options.max_seconds);
    all.add("seed", options.seed);
    all.add("max_basis", options.max_basis);
    const Window window = options.window.value_or(Window{});
    all.add("window (whether it is given)", options.window.has_value());
    all.add("window.low", window.low);
    all.add("window.high", window.high);
    all.add("max_in_window", options.max_in_window);
    all.add("keep_going (whether it is given)", static_cast<bool>(options.keep_going));
    all.add("b (whether it is given)", problem.b != nullptr);
    all.add("preconditioner (whether it is given)", problem.preconditioner != nullptr);
    all.add("inverse (whether it is given)", problem.inverse != nullptr);
    all.add("start (its columns)", problem.start.cols);
    all.add("constraints (its columns)", problem.constraints.cols);
    all.add("checkpoint (whether it is given)", problem.checkpoint != nullptr);
    all.add("protection (whether it is given)", problem.protection != nullptr);
    all.require(comm);
}

template <class T>
void check_problem(const Context& ctx, const EigenProblem<T>& problem,
                   const EigenOptions& options) {
    require_equal_options(ctx.comm(), problem, options);
    const RowMap& map = problem.a.row_map();
    ctx.comm().agree([&] {
        check_operator(map, problem.b, "A and B have different row maps");
        check_operator(map, problem.preconditioner,
                       "A and the preconditioner have different row maps");
        check_operator(map, problem.inverse, "A and the inverse have different row maps");
        check_block(ctx, map, problem.start,
                    "start vectors need the rows of A and the place of the Context");
        check_block(ctx, map, problem.constraints,
                    "constraint vectors need the rows of A and the place of the Context");
    });
}

#define QUIVER_INSTANTIATE(T)                                                                 \
    template void check_problem(const Context&, const EigenProblem<T>&, const EigenOptions&); \
    template void require_equal_options(const Comm&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
