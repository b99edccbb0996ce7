// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/eigen_options.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"

namespace quiver {

const char* to_string(Method method) {
    switch (method) {
        case Method::lanczos:
            return "lanczos";
        case Method::chebyshev:
            return "chebyshev";
        case Method::lobpcg:
            return "lobpcg";
        case Method::filter:
            return "filter";
        case Method::jacobi_davidson:
            return "jd";
        case Method::dense:
            return "dense";
        case Method::shift_invert:
            return "shift-invert";
        default:
            return "auto";
    }
}

const char* to_string(Which which) {
    switch (which) {
        case Which::smallest:
            return "smallest";
        case Which::largest:
            return "largest";
        case Which::target:
            return "target";
        case Which::largest_magnitude:
            return "largest-magnitude";
        case Which::smallest_magnitude:
            return "smallest-magnitude";
        default:
            return "both-ends";
    }
}

const char* to_string(InnerSolver inner) {
    switch (inner) {
        case InnerSolver::cg:
            return "cg";
        case InnerSolver::gmres:
            return "gmres";
        case InnerSolver::jdqmr:
            return "jdqmr";
        default:
            return "minres";
    }
}

int step_width(const EigenOptions& options) {
    return options.block > 0 ? options.block : std::min(4, options.k);
}

std::int64_t least_basis(const EigenOptions& options, std::int64_t rows) {
    return std::min<std::int64_t>(rows,
                                  std::int64_t{options.k} + 3 * std::max(step_width(options), 2));
}

void check_options(const EigenOptions& options, std::int64_t rows) {
    const auto refuse = [](const std::string& text) {
        InputError error("eigensolver: " + text);
        error.set_collective();  // options and global sizes are the same on all ranks
        throw error;
    };
    if (options.window &&
        !(std::isfinite(options.window->low) && std::isfinite(options.window->high) &&
          options.window->low <= options.window->high)) {
        refuse("window " + number_text(options.window->low, 15) + " to " +
               number_text(options.window->high, 15) + ", must be finite and ascending");
    }
    if (options.window) {
        EigenOptions others = options;
        others.window.reset();
        others.k = 1;
        others.which = Which::smallest;
        check_options(others, rows);
        return;
    }
    if (options.k > max_pairs) {
        refuse("k = " + std::to_string(options.k) + " eigenpairs; at most " +
               std::to_string(max_pairs) + " are possible");
    }
    if (options.k < 1 || options.k > rows) {
        refuse("k = " + std::to_string(options.k) + " eigenpairs requested, but the space has " +
               std::to_string(rows) + " dimensions");
    }
    if (options.block < 0 || options.block > max_block_width || options.block > rows) {
        refuse("block = " + std::to_string(options.block) + ", must be 1 to " +
               std::to_string(std::min<std::int64_t>(max_block_width, rows)) + ", or 0");
    }
    if (!(options.tol > 0 && options.tol < 1)) {
        refuse("tol = " + number_text(options.tol) + ", must be above 0 and below 1");
    }
    if (options.which != Which::smallest && options.which != Which::largest &&
        options.which != Which::target) {
        refuse(std::string("a method by itself does not find ") + to_string(options.which) +
               ": call eigensolve()");
    }
    if (options.which == Which::target && !std::isfinite(options.target)) {
        refuse("the target is not a finite number");
    }
    if (options.which == Which::target && options.inner == InnerSolver::cg) {
        refuse(
            "inner = cg: for a target the correction equations are indefinite; use minres or "
            "gmres");
    }
    const std::int64_t least = least_basis(options, rows);
    if (options.max_basis != 0 && (options.max_basis < least || options.max_basis > max_pairs)) {
        refuse("max_basis = " + std::to_string(options.max_basis) + ", must be " +
               std::to_string(least) + " to " + std::to_string(max_pairs) + ", or 0");
    }
    if (options.max_iterations < 0) {
        refuse("max_iterations must be at least 1, or 0 for no limit, but is " +
               std::to_string(options.max_iterations));
    }
    if (options.max_in_window < 0) {
        refuse("max_in_window must be at least 1, or 0 for no limit, but is " +
               std::to_string(options.max_in_window));
    }
    if (!(options.max_seconds >= 0 && std::isfinite(options.max_seconds))) {
        refuse("max_seconds must be a positive number, or 0 for no limit, but is " +
               number_text(options.max_seconds, 4));
    }
}

double remaining_seconds(const Comm& comm, const EigenOptions& options, double spent) {
    constexpr double least = 1e-3;
    return options.max_seconds > 0 ? std::max(options.max_seconds - comm.max(spent), least) : 0;
}

}  // namespace quiver
