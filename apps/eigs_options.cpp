// SPDX-License-Identifier: BSD-3-Clause
// Converts the options of `quiver eigs` to those of the solver, and refuses options that exclude
// each other.
#include <cmath>

#include <fmt/format.h>

#include "apps/eigs.hpp"
#include "apps/standard_input.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"

namespace quiver::apps {
namespace {

void take_which(EigsOptions& options);
void set_task(EigsOptions& options);
void settle_mixed(EigsOptions& options);
void check_options(const EigsOptions& options);
void take_preconditioner(EigsOptions& options);
void take_distribution(EigsOptions& options);

}  // namespace

Method method_named(const std::string& name) {
    for (const Method method : {Method::lanczos, Method::chebyshev, Method::lobpcg, Method::filter,
                                Method::jacobi_davidson, Method::dense, Method::shift_invert}) {
        if (name == to_string(method)) {
            return method;
        }
    }
    return Method::automatic;
}

Window parse_window(const std::string& option, const std::string& text) {
    const std::size_t colon = text.find(':');
    Window window;
    if (colon == std::string::npos ||
        parse_real(text.substr(0, colon), window.low) != std::errc() ||
        parse_real(text.substr(colon + 1), window.high) != std::errc() ||
        !(window.low <= window.high)) {
        throw InputError(
            fmt::format("{} {}: two numbers LOW:HIGH, ascending, are wanted", option, text));
    }
    return window;
}

void resolve_options(EigsOptions& options, int rank) {
    take_which(options);
    set_task(options);
    settle_mixed(options);
    resolve_faults(options.faults);
    check_options(options);
    take_preconditioner(options);
    take_distribution(options);
    check_checkpoint(options.checkpoint, rank);
    require_one_standard_input({options.matrix, options.mass});
    if (rank == 0) {
        check_outputs({&options.json, &options.vectors}, {{options.matrix}, {options.mass}});
    }
}

namespace {

/// Parses --which: one of its words, or "target:VALUE".
void take_which(EigsOptions& options) {
    EigenOptions& solver = options.solver;
    const std::string prefix = "target:";
    if (!options.which.starts_with(prefix)) {
        for (const Which which : {Which::smallest, Which::largest, Which::largest_magnitude,
                                  Which::smallest_magnitude, Which::both_ends}) {
            if (options.which == to_string(which)) {
                solver.which = which;
            }
        }
        if (solver.which == Which::smallest_magnitude) {
            solver.which = Which::target;  // solver.target is 0
        }
        return;
    }
    solver.which = Which::target;
    if (parse_real(options.which.substr(prefix.size()), solver.target) != std::errc() ||
        !std::isfinite(solver.target)) {
        throw InputError(
            fmt::format("--which {}: target takes a number, as in target:0.5", options.which));
    }
}

/// Sets the solver's method and window. Throws InputError for combinations that no method supports.
void set_task(EigsOptions& options) {
    if (options.mass_given && options.verify == "inertia") {
        throw InputError("--verify inertia counts eigenvalues of A alone; omit --mass");
    }
    const Which which = options.solver.which;
    if ((which == Which::largest_magnitude || which == Which::both_ends) &&
        (options.verify == "inertia" || options.checkpoint.asked())) {
        throw InputError(fmt::format(
            "--which {} runs two solves, and does not support --verify inertia, --checkpoint or "
            "--resume; solve for the smallest and for the largest instead",
            options.which));
    }
    options.solver.method = method_named(options.method);
    if (options.window_given) {
        if (options.k_given || options.which_given) {
            throw InputError("--window finds all eigenvalues in it; omit -k and --which");
        }
        const Method method = options.solver.method;
        const bool factorises = method == Method::dense || method == Method::shift_invert;
        if (method != Method::automatic && method != Method::filter && !factorises) {
            throw InputError(fmt::format(
                "--method {}: a window needs filter, dense or shift-invert", options.method));
        }
        options.solver.window = parse_window("--window", options.window);
    } else if (options.solver.method == Method::filter) {
        throw InputError("--method filter needs a --window LOW:HIGH");
    }
}

/// True if the method accepts a preconditioner, or is chosen automatically.
bool takes_preconditioner(const EigsOptions& options) {
    const Method method = options.solver.method;
    return method == Method::automatic || method == Method::lobpcg ||
           method == Method::jacobi_davidson;
}

/// Restricts --device mixed to block Lanczos: in other methods, ranks on the host and on GPUs would
/// choose different panels.
void settle_mixed(EigsOptions& options) {
    const bool lanczos =
        options.solver.method == Method::lanczos || options.solver.method == Method::automatic;
    if (options.device != "mixed") {
        return;
    }
    if (!lanczos || options.window_given || options.mass_given ||
        options.preconditioner != "none" || options.solver.which == Which::target) {
        throw InputError(
            "--device mixed: block Lanczos for an end of the spectrum is the only solver for host "
            "and GPU ranks together; omit --window, --mass, --precond and other methods");
    }
    options.solver.method = Method::lanczos;
}

void check_options(const EigsOptions& options) {
    const EigenOptions& solver = options.solver;
    if (solver.k < 1) {
        throw InputError(fmt::format("-k {}: ask for at least one eigenpair", solver.k));
    }
    if (solver.block < 0 || solver.block > max_block_width) {
        throw InputError(fmt::format("--block {}: 1 to {} columns, or 0 to let the solver choose",
                                     solver.block, max_block_width));
    }
    if (!(solver.tol > 0 && solver.tol < 1)) {
        throw InputError(
            fmt::format("--tol {}: a tolerance is a number above 0 and below 1", solver.tol));
    }
    if (solver.max_basis < 0) {
        throw InputError(fmt::format(
            "--basis {}: a number of columns, or 0 to let the solver choose", solver.max_basis));
    }
    if (solver.max_iterations < 0) {
        throw InputError(fmt::format("--max-iterations {}: at least 1, or 0 for no limit",
                                     solver.max_iterations));
    }
    if (!(solver.max_seconds >= 0 && std::isfinite(solver.max_seconds))) {
        throw InputError(fmt::format("--max-seconds {}: a number of seconds, or 0 for no limit",
                                     solver.max_seconds));
    }
    if (solver.inner == InnerSolver::cg && solver.which == Which::target) {
        throw InputError(
            "--inner cg: the correction equations of a target are indefinite; use minres or gmres");
    }
    const Method method = solver.method;
    const bool factors_mass =
        method == Method::lanczos || method == Method::chebyshev || method == Method::filter;
    if (options.mass_given && factors_mass &&
        (options.checkpoint.asked() || options.faults.asked())) {
        throw InputError(fmt::format(
            "--mass: --method {} supports no --checkpoint, --resume, --abft or --inject with it; "
            "{}",
            options.method,
            method == Method::filter ? "no method for a window does" : "lobpcg and jd do"));
    }
}

/// Parses --precond. Throws InputError if the method or the wanted eigenvalues cannot use the
/// preconditioner, which approximates the inverse of A or of A - sigma B.
void take_preconditioner(EigsOptions& options) {
    PreconditionerOptions& precond = options.precond;
    precond = parse_preconditioner(options.preconditioner);
    if (precond.kind == PreconditionerKind::none) {
        return;
    }
    const auto refuse = [&](const std::string& why) {
        throw InputError(fmt::format("--precond {}: {}", options.preconditioner, why));
    };
    if (options.window_given) {
        refuse("a --window uses a filter or a factorisation, which need no preconditioner");
    }
    if (options.solver.method == Method::dense || options.solver.method == Method::shift_invert) {
        refuse(fmt::format("{} needs no preconditioner",
                           options.method == "dense" ? "a dense solve" : "--method shift-invert"));
    }
    if (!takes_preconditioner(options)) {
        refuse(fmt::format("--method {} only multiplies with A; lobpcg and jd take one",
                           options.method));
    }
    const Which which = options.solver.which;
    if (which != Which::smallest && which != Which::target && !precond.shift) {
        refuse(
            "the inverse of A does not help with the largest eigenvalues; ldlt,shift=VALUE with a "
            "value near them does");
    }
    if (options.solver.which == Which::target && precond.kind == PreconditionerKind::ldlt) {
        precond.shift = precond.shift.value_or(options.solver.target);
        precond.absolute = false;
    }
    precond.wants_definite = precond.absolute;
}

/// Sets the distribution of the rows. `auto` keeps ranges for the methods that gather the matrix on
/// one rank, because they take few products.
void take_distribution(EigsOptions& options) {
    resolve_distribution(options.rows);
    const Method method = options.solver.method;
    if (options.rows.options.partition == RowPartition::automatic &&
        (method == Method::dense || method == Method::shift_invert)) {
        options.rows.options.partition = RowPartition::rows;
    }
}

}  // namespace
}  // namespace quiver::apps
