// SPDX-License-Identifier: BSD-3-Clause
// Linear solves from Python.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "c/shared/renumbered.hpp"
#include "kernels/column_ops.hpp"
#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"
#include "python/src/operators.hpp"
#include "solvers/linear/linear_solve.hpp"

namespace quiver::python {

namespace {

using nb::literals::operator""_a;

/// One right-hand side of a solve.
struct LinearColumnOutcome {
    std::string status;
    double residual = 0;
    double b_norm = 0;
    std::int64_t iterations = 0;
    std::string message;
};

struct LinearOutcome {
    std::vector<LinearColumnOutcome> columns;
    bool converged = false;
    std::int64_t iterations = 0;
    std::int64_t operator_applications = 0;
    double seconds = 0;
    std::string message;
};

struct LinearRequest {
    std::string method = "cg";
    std::vector<double> tol;  // one for each column
    std::int64_t max_iterations = 1000;
    bool x_is_guess = false;
    int restart = 30;
    double shift = 0;
};

LinearMethod method_of(const std::string& name) {
    for (const LinearMethod method :
         {LinearMethod::cg, LinearMethod::minres, LinearMethod::gmres, LinearMethod::bicgstab}) {
        if (name == to_string(method)) {
            return method;
        }
    }
    throw InputError("linear solve: no method is called '" + name + "'");
}

LinearOutcome take(const LinearResult& result) {
    LinearOutcome out;
    for (const LinearColumn& column : result.columns) {
        out.columns.push_back({to_string(column.status), column.residual, column.b_norm,
                               column.iterations, column.message});
    }
    out.converged = result.converged;
    out.iterations = result.iterations;
    out.operator_applications = result.operator_applications;
    out.seconds = result.seconds;
    out.message = result.message;
    return out;
}

LinearOutcome solve(SharedContext& shared, const LinearRequest& request, const AnyOperator& a,
                    const InputArray& b, const OutputArray& x, const AnyOperator* preconditioner,
                    nb::object callback) {
    const auto report = [&](const Event& event) {
        if (const auto* now = std::get_if<IterationEvent>(&event)) {
            call_python([&] {
                callback(now->iteration, now->converged, now->wanted, now->residual, now->seconds,
                         now->stage);
            });
        }
    };
    const EventSink sink = callback.is_none() ? EventSink() : EventSink(report);
    return visit_dtype(a.dtype, [&]<class T>() {
        const BlockView<const T> right = block_of<T>(b);
        const BlockView<T> left = block_of<T>(x);
        return run(shared, [&](Context& ctx) {
            const doors::ScopedSink scope(shared, sink);
            InterruptibleOperator<T> op(a.get<T>());
            const std::vector<T> shift(1, T(static_cast<real_t<T>>(request.shift)));
            const Reordering* const numbering = a.numbering.get();
            const doors::RenumberedBlock<T> moved_right(ctx, numbering, right);
            const doors::RenumberedBlock<T> guess(ctx, request.x_is_guess ? numbering : nullptr,
                                                  left);
            LinearProblem<T> problem{op, moved_right.view()};
            if (request.shift != 0) {
                problem.shift = shift;
            }
            const AnyOperator inverse =
                preconditioner ? doors::in_numbering_of<T>(a, *preconditioner, "M") : AnyOperator();
            problem.preconditioner = preconditioner ? &inverse.get<T>() : nullptr;
            LinearOptions options;
            options.column_tol = request.tol;
            options.max_iterations = request.max_iterations;
            options.x_is_guess = request.x_is_guess;
            options.restart = request.restart;
            return doors::compute_renumbered(ctx, numbering, left, [&](BlockView<T> solution) {
                if (numbering != nullptr && request.x_is_guess) {
                    copy(ctx, guess.view(), solution);
                }
                return take(
                    linear_solve(ctx, method_of(request.method), problem, solution, options));
            });
        });
    });
}

}  // namespace

void bind_linear(nb::module_& module) {
    nb::class_<LinearColumnOutcome>(module, "LinearColumn")
        .def_ro("status", &LinearColumnOutcome::status)
        .def_ro("residual", &LinearColumnOutcome::residual)
        .def_ro("b_norm", &LinearColumnOutcome::b_norm)
        .def_ro("iterations", &LinearColumnOutcome::iterations)
        .def_ro("message", &LinearColumnOutcome::message);
    nb::class_<LinearOutcome>(module, "LinearOutcome")
        .def_ro("columns", &LinearOutcome::columns)
        .def_ro("converged", &LinearOutcome::converged)
        .def_ro("iterations", &LinearOutcome::iterations)
        .def_ro("operator_applications", &LinearOutcome::operator_applications)
        .def_ro("seconds", &LinearOutcome::seconds)
        .def_ro("message", &LinearOutcome::message);
    nb::class_<LinearRequest>(module, "LinearRequest")
        .def(nb::init<>())
        .def_rw("method", &LinearRequest::method)
        .def_rw("tol", &LinearRequest::tol)
        .def_rw("max_iterations", &LinearRequest::max_iterations)
        .def_rw("x_is_guess", &LinearRequest::x_is_guess)
        .def_rw("restart", &LinearRequest::restart)
        .def_rw("shift", &LinearRequest::shift);
    module.def("linear_solve", &solve, "context"_a, "request"_a, "a"_a, "b"_a, "x"_a,
               "preconditioner"_a.none() = nb::none(), "callback"_a.none() = nb::none());
}

}  // namespace quiver::python
