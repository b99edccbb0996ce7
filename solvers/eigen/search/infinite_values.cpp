// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/infinite_values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/orth/indefinite_error.hpp"

namespace quiver {

std::string finite_request(const EigenOptions& options, Which which, bool low, bool high) {
    if (options.window) {
        return "request a narrower window";
    }
    if (which == Which::target) {
        return "request fewer eigenvalues, or those nearest another target";
    }
    const std::string target = "those nearest a target";
    if (which != Which::smallest && low) {
        return "request the smallest, or " + target;
    }
    return "request " + (which != Which::largest && high ? "the largest, or " + target : target);
}

bool wants_low_end(const EigenOptions& options, Which which) {
    return !options.window && (which == Which::smallest || which == Which::largest_magnitude ||
                               (which == Which::both_ends && options.k > 1));
}

bool wants_high_end(const EigenOptions& options, Which which) {
    return !options.window && (which == Which::largest || which == Which::largest_magnitude ||
                               which == Which::both_ends);
}

template <class T>
void refuse_infinite_ends(Context& ctx, const EigenProblem<T>& problem,
                          const EigenOptions& options) {
    const auto* a = dynamic_cast<const SparseMatrix<T>*>(&problem.a);
    const auto* b = dynamic_cast<const SparseMatrix<T>*>(problem.b);
    const Which which = options.which;
    const bool wants_low = wants_low_end(options, which);
    const bool wants_high = wants_high_end(options, which);
    if (a == nullptr || b == nullptr || !(wants_low || wants_high) ||
        problem.constraints.cols > 0) {
        return;
    }
    struct Row {
        double diagonal = 0;  // of A
        bool zero_a = true;
        bool zero_b = true;
    };
    std::vector<Row> rows(static_cast<std::size_t>(problem.a.row_map().local_rows()));
    ctx.comm().agree([&] {
        b->for_each_entry(ctx, [&](std::size_t row, std::int64_t, T value) {
            rows[row].zero_b = rows[row].zero_b && value == T(0);
        });
    });
    const auto is_zero_row = [](const Row& row) { return row.zero_b; };
    if (ctx.comm().sum(std::int64_t{std::count_if(rows.begin(), rows.end(), is_zero_row)}) == 0) {
        return;
    }
    ctx.comm().agree([&] {
        a->for_each_entry(ctx, [&](std::size_t row, std::int64_t column, T value) {
            rows[row].zero_a = rows[row].zero_a && value == T(0);
            if (column == static_cast<std::int64_t>(row)) {
                rows[row].diagonal += static_cast<double>(real_part(value));
            }
        });
    });
    // If row i of B is zero, its unit vector v is a null vector of B. Then v^H A v = a_ii > 0 shows
    // an infinite eigenvalue at the upper end, a_ii < 0 one at the lower end, and a_ii = 0 with A v
    // not 0 one at each end.
    std::int64_t zero = 0;
    std::int64_t negative = 0;
    std::int64_t positive = 0;
    for (const Row& row : rows) {
        if (row.zero_b && !row.zero_a) {
            ++zero;
            negative += row.diagonal <= 0 ? 1 : 0;
            positive += row.diagonal >= 0 ? 1 : 0;
        }
    }
    zero = ctx.comm().sum(zero);
    const bool low = ctx.comm().sum(negative) > 0;
    const bool high = ctx.comm().sum(positive) > 0;
    const std::int64_t most = problem.a.row_map().global_rows() - zero;
    if (zero == 0 || !((low && wants_low) || (high && wants_high) || options.k > most)) {
        return;
    }
    const std::string text = "eigensolver: B has " + std::to_string(zero) + " zero rows of " +
                             std::to_string(problem.a.row_map().global_rows()) +
                             ", and at least as many eigenvalues are infinite";
    throw_indefinite<InfiniteEigenvalueError>(
        (low && wants_low) || (high && wants_high)
            ? text + ", among them wanted ones; " + finite_request(options, which, !low, !high)
            : text + "; request at most " + std::to_string(most));
}

#define QUIVER_INSTANTIATE(T) \
    template void refuse_infinite_ends(Context&, const EigenProblem<T>&, const EigenOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
