// SPDX-License-Identifier: BSD-3-Clause
// Eigensolves and linear solves, and the results that the caller reads.
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "c/shared/eigen_request.hpp"
#include "c/src/handles.hpp"
#include "solvers/linear/linear_solve.hpp"

/// `info` contains pointers to the other members.
struct quiver_eigen_result {
    std::shared_ptr<quiver::doors::SharedContext> home;
    std::vector<double> values, residuals;
    std::shared_ptr<void> vectors;  // BlockVector<T>
    std::string message;
    quiver_eigen_info info{};
};

/// `info` contains pointers to the other members.
struct quiver_linear_result {
    std::vector<double> residuals, b_norms;
    std::vector<std::int64_t> iterations;
    std::vector<std::int32_t> converged;
    std::string message;
    quiver_linear_info info{};
};

namespace quiver::c {

namespace {

static_assert(static_cast<int>(Which::smallest) == QUIVER_SMALLEST &&
              static_cast<int>(Which::largest) == QUIVER_LARGEST &&
              static_cast<int>(Which::target) == QUIVER_TARGET &&
              static_cast<int>(Which::largest_magnitude) == QUIVER_LARGEST_MAGNITUDE &&
              static_cast<int>(Which::smallest_magnitude) == QUIVER_SMALLEST_MAGNITUDE &&
              static_cast<int>(Which::both_ends) == QUIVER_BOTH_ENDS);
static_assert(static_cast<int>(Method::automatic) == QUIVER_EIGEN_AUTO &&
              static_cast<int>(Method::lanczos) == QUIVER_LANCZOS &&
              static_cast<int>(Method::chebyshev) == QUIVER_CHEBYSHEV &&
              static_cast<int>(Method::lobpcg) == QUIVER_LOBPCG &&
              static_cast<int>(Method::filter) == QUIVER_FILTER &&
              static_cast<int>(Method::jacobi_davidson) == QUIVER_JACOBI_DAVIDSON &&
              static_cast<int>(Method::dense) == QUIVER_DENSE &&
              static_cast<int>(Method::shift_invert) == QUIVER_SHIFT_INVERT);
static_assert(static_cast<int>(InnerSolver::minres) == QUIVER_INNER_MINRES &&
              static_cast<int>(InnerSolver::cg) == QUIVER_INNER_CG &&
              static_cast<int>(InnerSolver::gmres) == QUIVER_INNER_GMRES &&
              static_cast<int>(InnerSolver::jdqmr) == QUIVER_INNER_JDQMR);
static_assert(static_cast<int>(AbftMode::off) == QUIVER_ABFT_OFF &&
              static_cast<int>(AbftMode::detect) == QUIVER_ABFT_DETECT &&
              static_cast<int>(AbftMode::correct) == QUIVER_ABFT_CORRECT);
static_assert(static_cast<int>(LinearMethod::cg) == QUIVER_CG &&
              static_cast<int>(LinearMethod::minres) == QUIVER_MINRES &&
              static_cast<int>(LinearMethod::gmres) == QUIVER_GMRES &&
              static_cast<int>(LinearMethod::bicgstab) == QUIVER_BICGSTAB);

/// `value`, or `otherwise` if it is 0.
template <class V>
V or_default(V value, V otherwise) {
    return value == V(0) ? otherwise : value;
}

EigenOptions eigen_options(const quiver_eigen_options& given) {
    EigenOptions options;
    options.k = or_default(given.k, options.k);
    options.which = enumerator<Which>(given.which, 6, "which");
    options.target = given.target;
    options.tol = or_default(given.tol, options.tol);
    options.max_iterations = given.max_iterations;
    options.max_seconds = given.max_seconds;
    options.seed = or_default(given.seed, options.seed);
    options.method = enumerator<Method>(given.method, 8, "method");
    options.inner = enumerator<InnerSolver>(given.inner, 4, "inner");
    options.block = given.block;
    options.max_basis = given.max_basis;
    if (given.use_window != 0) {
        options.window = Window{given.window_low, given.window_high};
    }
    if (given.progress != nullptr) {
        options.keep_going = [progress = given.progress,
                              user = given.progress_user](const IterationEvent& event) {
            const quiver_progress now{sizeof(quiver_progress), event.solver,    event.stage,
                                      event.iteration,         event.converged, event.wanted,
                                      event.residual,          event.seconds};
            return progress(user, &now) == 0;
        };
    }
    return options;
}

template <class T>
std::unique_ptr<quiver_eigen_result> take(EigenResult<T> result, std::int64_t faults) {
    auto out = std::make_unique<quiver_eigen_result>();
    out->values = std::move(result.eigenvalues);
    out->residuals = std::move(result.residuals);
    out->message = std::move(result.message);
    const auto vectors = std::make_shared<BlockVector<T>>(std::move(result.vectors));
    out->vectors = vectors;
    quiver_eigen_info& info = out->info;
    info.count = static_cast<std::int32_t>(out->values.size());
    info.converged = result.converged ? 1 : 0;
    info.verified = result.multiplicity == Multiplicity::verified ? 1 : 0;
    info.cluster_cut = result.cluster_cut ? 1 : 0;
    info.interrupted = result.interrupted ? 1 : 0;
    info.method = static_cast<std::int32_t>(result.method);
    info.values = out->values.data();
    info.residuals = out->residuals.data();
    info.vectors = block_of(vectors->view());
    info.norm_estimate = result.norm_estimate;
    info.tolerance = result.tolerance;
    info.seconds = result.seconds;
    info.iterations = result.iterations;
    info.operator_applications = result.operator_applications;
    info.faults = faults;
    info.message = out->message.c_str();
    return out;
}

LinearOptions linear_options(const quiver_linear_options& given, int columns) {
    LinearOptions options;
    options.tol = or_default(given.tol, options.tol);
    if (given.column_tol != nullptr) {
        options.column_tol = {given.column_tol, static_cast<std::size_t>(columns)};
    }
    options.max_iterations = or_default(given.max_iterations, options.max_iterations);
    options.x_is_guess = given.x_is_guess != 0;
    options.restart = or_default(given.restart, options.restart);
    return options;
}

std::unique_ptr<quiver_linear_result> take(const LinearResult& result) {
    auto out = std::make_unique<quiver_linear_result>();
    for (const LinearColumn& column : result.columns) {
        out->residuals.push_back(column.residual);
        out->b_norms.push_back(column.b_norm);
        out->iterations.push_back(column.iterations);
        out->converged.push_back(column.status == LinearStatus::converged ? 1 : 0);
    }
    out->message = result.message;
    quiver_linear_info& info = out->info;
    info.count = static_cast<std::int32_t>(result.columns.size());
    info.converged = result.converged ? 1 : 0;
    info.residuals = out->residuals.data();
    info.b_norms = out->b_norms.data();
    info.column_iterations = out->iterations.data();
    info.column_converged = out->converged.data();
    info.iterations = result.iterations;
    info.operator_applications = result.operator_applications;
    info.preconditioner_applications = result.preconditioner_applications;
    info.seconds = result.seconds;
    info.message = out->message.c_str();
    return out;
}

/// The status of a solve that has a result.
quiver_status outcome(bool converged, const std::string& message) {
    if (converged) {
        return QUIVER_OK;
    }
    set_message(message.empty() ? "the solver has not converged" : message.c_str());
    return QUIVER_NOT_CONVERGED;
}

}  // namespace
}  // namespace quiver::c

using namespace quiver;
using namespace quiver::c;

quiver_status quiver_eigensolve(quiver_context* context, const quiver_operator* a,
                                const quiver_eigen_options* options, quiver_eigen_result** result) {
    return enter(context, [&](Context& ctx) {
        require(result, "result") = nullptr;
        const auto given = read_options(options, "quiver_eigen_options");
        doors::EigenRequest request;
        const auto& matrix = require_operator(context, a, "A");
        request.operators = {
            &matrix, optional_operator(context, given.mass, "mass", matrix),
            optional_operator(context, given.preconditioner, "preconditioner", matrix),
            optional_operator(context, given.inverse, "inverse", matrix)};
        request.options = eigen_options(given);
        request.abft = enumerator<AbftMode>(given.abft, 3, "abft");
        request.check_hermitian = given.skip_hermitian_check == 0;
        auto out = visit_dtype(matrix.dtype, [&]<class T>() {
            auto [found, faults] =
                doors::solve<T>(ctx, request, optional_view<T>(given.start, "start"),
                                optional_view<T>(given.constraints, "constraints"));
            return take(std::move(found), faults);
        });
        out->home = context->shared;
        *result = out.release();
        return outcome((*result)->info.converged != 0, (*result)->message);
    });
}

quiver_status quiver_eigen_result_get(const quiver_eigen_result* result, quiver_eigen_info* info) {
    return enter([&] { write_info(require(result, "result").info, info, "quiver_eigen_info"); });
}

void quiver_eigen_result_free(quiver_eigen_result* result) {
    if (result != nullptr) {
        const auto home = result->home;
        const std::lock_guard lock(home->mutex);
        delete result;
    }
}

quiver_status quiver_linear_solve(quiver_context* context, const quiver_operator* a,
                                  const quiver_block* b, const quiver_block* x,
                                  const quiver_linear_options* options,
                                  quiver_linear_result** result) {
    return enter(context, [&](Context& ctx) {
        if (result != nullptr) {
            *result = nullptr;
        }
        const auto given = read_options(options, "quiver_linear_options");
        const auto& matrix = require_operator(context, a, "A");
        const auto* preconditioner =
            optional_operator(context, given.preconditioner, "preconditioner", matrix);
        const auto method = enumerator<LinearMethod>(given.method, 4, "method");
        const LinearResult found = visit_dtype(matrix.dtype, [&]<class T>() {
            LinearProblem<T> problem{matrix.get<T>(), view_of<T>(b, "B")};
            const T shift = doors::scalar_of<T>(given.shift);
            if (given.shift != 0) {
                problem.shift = {&shift, 1};
            }
            problem.preconditioner = preconditioner ? &preconditioner->get<T>() : nullptr;
            return linear_solve(ctx, method, problem, view_of<T>(x, "X"),
                                linear_options(given, problem.b.cols));
        });
        if (result != nullptr) {
            *result = take(found).release();
        }
        return outcome(found.converged, found.message);
    });
}

quiver_status quiver_linear_result_get(const quiver_linear_result* result,
                                       quiver_linear_info* info) {
    return enter([&] { write_info(require(result, "result").info, info, "quiver_linear_info"); });
}

void quiver_linear_result_free(quiver_linear_result* result) {
    delete result;
}
