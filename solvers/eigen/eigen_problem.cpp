// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigen_problem.hpp"

#include <string>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"

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
void check_problem(const Context& ctx, const EigenProblem<T>& problem) {
    const RowMap& map = problem.a.row_map();
    ctx.comm().agree([&] {
        check_operator(map, problem.b, "A and B have different row maps");
        check_operator(map, problem.preconditioner,
                       "A and the preconditioner have different row maps");
        check_operator(map, problem.inverse, "A and the inverse have different row maps");
        check_block(ctx, map, problem.start, "start vectors are not laid out as A");
        check_block(ctx, map, problem.constraints, "constraint vectors are not laid out as A");
    });
}

template <class T>
void require_standard(const EigenProblem<T>& problem, const char* solver) {
    if (problem.b != nullptr) {
        InputError error(
            std::string(solver) +
            ": A x = lambda B x would need the inverse of B; use lobpcg, which does not");
        error.set_collective();
        throw error;
    }
}

#define QUIVER_INSTANTIATE(T)                                            \
    template void check_problem(const Context&, const EigenProblem<T>&); \
    template void require_standard(const EigenProblem<T>&, const char*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
