// SPDX-License-Identifier: BSD-3-Clause
// Eigensolves and spectral embeddings from Python.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "c/shared/eigen_request.hpp"
#include "c/shared/renumbered.hpp"
#include "kernels/column_ops.hpp"
#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"
#include "python/src/operators.hpp"
#include "solvers/eigen/modes.hpp"
#include "solvers/graph/spectral_embedding.hpp"

namespace quiver::python {

namespace {

using nb::literals::operator""_a;

/// Eigenvectors of any scalar.
struct AnyVectors {
    Dtype dtype = Dtype::d;
    std::shared_ptr<void> block;  // BlockVector<T>
    std::shared_ptr<SharedContext> home;
};

/// The result of an eigensolve: an EigenResult of any scalar.
struct EigenOutcome {
    std::vector<double> eigenvalues, residuals, errors;
    double norm_estimate = 0, tolerance = 0, seconds = 0;
    bool tolerance_raised = false, converged = false, verified = false, cluster_cut = false;
    bool interrupted = false;
    std::int64_t iterations = 0, operator_applications = 0, faults = 0;
    int block = 0, basis = 0;
    std::string method, method_reason, message;
    AnyVectors vectors;

    /// Writes the eigenvectors to an array of the caller, n x eigenvalues.size().
    void copy_vectors(const OutputArray& out) const {
        visit_dtype(vectors.dtype, [&]<class T>() {
            const BlockView<T> to = block_of<T>(out);
            const auto* from = static_cast<const BlockVector<T>*>(vectors.block.get());
            run(*vectors.home, [&](Context& ctx) { copy(ctx, from->view(), to); });
        });
    }
};

struct EigenRequest {
    int k = 6;
    std::string which = "smallest";
    double target = 0;
    double tol = 1e-10;
    int block = 0;
    int max_basis = 0;
    std::int64_t max_iterations = 0;
    double max_seconds = 0;
    std::uint64_t seed = 1;
    std::string method = "auto";
    std::string inner = "minres";
    std::optional<std::tuple<double, double>> window;
    std::string abft = "off";
    bool check_hermitian = true;
};

template <class Enum>
Enum parse(const char* what, const std::string& text, std::initializer_list<Enum> values) {
    std::string names;
    for (const Enum value : values) {
        if (text == to_string(value)) {
            return value;
        }
        names += std::string(names.empty() ? "" : ", ") + to_string(value);
    }
    throw InputError(std::string(what) + "='" + text + "' is not one of " + names);
}

EigenOptions options_of(const EigenRequest& request) {
    EigenOptions options;
    options.k = request.k;
    options.which = parse("which", request.which,
                          {Which::smallest, Which::largest, Which::target, Which::largest_magnitude,
                           Which::smallest_magnitude, Which::both_ends});
    options.target = request.target;
    options.tol = request.tol;
    options.block = request.block;
    options.max_basis = request.max_basis;
    options.max_iterations = request.max_iterations;
    options.max_seconds = request.max_seconds;
    options.seed = request.seed;
    options.method =
        parse("method", request.method,
              {Method::automatic, Method::lanczos, Method::chebyshev, Method::lobpcg,
               Method::filter, Method::jacobi_davidson, Method::dense, Method::shift_invert});
    options.inner =
        parse("inner", request.inner,
              {InnerSolver::minres, InnerSolver::cg, InnerSolver::gmres, InnerSolver::jdqmr});
    if (request.window) {
        options.window = Window{std::get<0>(*request.window), std::get<1>(*request.window)};
    }
    return options;
}

template <class T>
EigenOutcome take(EigenResult<T> result, std::int64_t faults) {
    EigenOutcome out;
    out.eigenvalues = std::move(result.eigenvalues);
    out.residuals = std::move(result.residuals);
    out.errors = std::move(result.errors);
    out.norm_estimate = result.norm_estimate;
    out.tolerance = result.tolerance;
    out.seconds = result.seconds;
    out.tolerance_raised = result.tolerance_raised;
    out.verified = result.multiplicity == Multiplicity::verified;
    out.converged = result.converged;
    out.cluster_cut = result.cluster_cut;
    out.interrupted = result.interrupted;
    out.iterations = result.iterations;
    out.operator_applications = result.operator_applications;
    out.block = result.block;
    out.basis = result.basis;
    out.method = to_string(result.method);
    out.method_reason = std::move(result.method_reason);
    out.message = std::move(result.message);
    out.faults = faults;
    out.vectors.dtype = dtype_v<T>;
    out.vectors.block = std::make_shared<BlockVector<T>>(std::move(result.vectors));
    return out;
}

/// Calls `callback`, which must outlive the result, after each iteration, and checks for signals.
std::function<bool(const IterationEvent&)> keep_going_of(const nb::object& callback) {
    return [&callback](const IterationEvent& event) {
        return call_python([&] {
            if (PyErr_CheckSignals() != 0) {
                nb::raise_python_error();
            }
            if (!callback.is_none()) {
                callback(event.iteration, event.converged, event.wanted, event.residual,
                         event.seconds, event.stage);
            }
        });
    };
}

EigenOutcome eigensolve_any(std::shared_ptr<SharedContext> shared, const EigenRequest& request,
                            const AnyOperator& a, const AnyOperator* b,
                            const AnyOperator* preconditioner, const AnyOperator* inverse,
                            const std::optional<InputArray>& start,
                            const std::optional<InputArray>& constraints, nb::object callback) {
    return visit_dtype(a.dtype, [&]<class T>() {
        const BlockView<const T> first = optional_block<T>(start);
        const BlockView<const T> known = optional_block<T>(constraints);
        EigenOutcome out = run(*shared, [&](Context& ctx) {
            doors::EigenRequest call{{&a, b, preconditioner, inverse}, options_of(request)};
            call.options.keep_going = keep_going_of(callback);
            call.abft =
                parse("abft", request.abft, {AbftMode::off, AbftMode::detect, AbftMode::correct});
            call.check_hermitian = request.check_hermitian;
            auto [result, faults] = doors::solve<T>(ctx, call, first, known);
            return take(std::move(result), faults);
        });
        out.vectors.home = shared;
        return out;
    });
}

/// The part of a SpectralEmbedding that an EigenOutcome does not have.
struct EmbeddingOutcome {
    EigenOutcome pairs;
    std::vector<std::int64_t> labels, sizes;
    std::int64_t isolated = 0;
    int null_vectors = 0;
};

/// The options of spectral_embedding() that an EigenRequest does not have.
struct GraphRequest {
    std::string laplacian = "symmetric";
    std::string scale = "scikit-learn";
    bool drop_first = true;
    bool symmetrise = false;
};

SpectralEmbeddingOptions embedding_options(const EigenRequest& request, const GraphRequest& graph) {
    SpectralEmbeddingOptions options;
    options.k = request.k;
    options.laplacian =
        parse("laplacian", graph.laplacian,
              {LaplacianKind::symmetric, LaplacianKind::random_walk, LaplacianKind::combinatorial});
    options.scale =
        parse("scale", graph.scale, {EmbeddingScale::scikit_learn, EmbeddingScale::pyg});
    options.drop_first = graph.drop_first;
    options.symmetrise = graph.symmetrise;
    options.solver = options_of(request);
    return options;
}

/// The graph's rows are CSR arrays in host memory with 64-bit indices.
EmbeddingOutcome embed_any(std::shared_ptr<SharedContext> shared, const EigenRequest& request,
                           const GraphRequest& graph, const InputArray& row_start,
                           const InputArray& column, const InputArray& value, nb::object callback) {
    const auto embed = [&]<class T>(T /*type*/) {
        const auto start = span_of<std::int64_t>(row_start),
                   columns = span_of<std::int64_t>(column);
        const auto values = span_of<T>(value);
        return run(*shared, [&](Context& ctx) {
            SpectralEmbeddingOptions options = embedding_options(request, graph);
            options.solver.keep_going = keep_going_of(callback);
            const Comm& comm = ctx.comm();
            SpectralEmbedding<T> result =
                spectral_embedding(ctx,
                                   rows_from_csr<T, std::int64_t>(
                                       comm, RowMap::by_local_rows(comm, std::ssize(start) - 1),
                                       Symmetry::general, start, columns, values, ctx.threads()),
                                   options);
            return EmbeddingOutcome{take(std::move(result.pairs), 0), std::move(result.labels),
                                    std::move(result.sizes), result.isolated, result.null_vectors};
        });
    };
    EmbeddingOutcome out = value.dtype() == dlpack_type<float>() ? embed(float{}) : embed(double{});
    out.pairs.vectors.home = shared;
    return out;
}

struct ModesRequest : EigenRequest {
    std::optional<std::tuple<double, double>> range;
    std::optional<double> near;
    double unit = hertz;
    double rigid_below = 0;
};

struct ModesOutcome : EigenOutcome {
    ModesFacts facts;
};

template <class T>
ModesOutcome modes_of(const std::shared_ptr<SharedContext>& shared, const ModesOptions& options,
                      const AnyOperator& k, const AnyOperator& m,
                      const std::optional<InputArray>& directions) {
    const BlockView<const T> given = optional_block<T>(directions);
    ModesOutcome out = run(*shared, [&](Context& ctx) {
        doors::require_hermitian(ctx, k.get<T>(), "K");
        doors::require_hermitian(ctx, m.get<T>(), "M");
        doors::require_same_numbering(k, m, "M");
        const Reordering* const numbering = k.numbering.get();
        const doors::RenumberedBlock<T> moved(ctx, numbering, given);
        ModesResult<T> result =
            modes<T>(ctx, *k.sparse<T>(), *m.sparse<T>(), options, moved.view());
        if (numbering != nullptr) {
            result.eigen.vectors =
                numbering->to_user<T>(ctx, std::as_const(result.eigen.vectors).view());
        }
        ModesOutcome found;
        static_cast<EigenOutcome&>(found) = take(std::move(result.eigen), 0);
        found.facts = std::move(result);
        return found;
    });
    out.vectors.home = shared;
    return out;
}

ModesOutcome modes_any(std::shared_ptr<SharedContext> shared, const ModesRequest& request,
                       const AnyOperator& k, const AnyOperator& m,
                       const std::optional<InputArray>& directions, nb::object callback) {
    ModesOptions options;
    options.solver = options_of(request);
    options.solver.keep_going = keep_going_of(callback);
    options.near = request.near;
    options.unit = request.unit;
    options.rigid_below = request.rigid_below;
    if (request.range) {
        options.range = Window{std::get<0>(*request.range), std::get<1>(*request.range)};
    }
    return k.dtype == Dtype::s ? modes_of<float>(shared, options, k, m, directions)
                               : modes_of<double>(shared, options, k, m, directions);
}

void bind_modes(nb::module_& module) {
    nb::class_<ModesRequest, EigenRequest>(module, "ModesRequest")
        .def(nb::init<>())
        .def_rw("range", &ModesRequest::range, nb::arg().none())
        .def_rw("near", &ModesRequest::near, nb::arg().none())
        .def_rw("unit", &ModesRequest::unit)
        .def_rw("rigid_below", &ModesRequest::rigid_below);
    const auto fact = [](auto member) {
        return [member](const ModesOutcome& outcome) { return outcome.facts.*member; };
    };
    nb::class_<ModesOutcome, EigenOutcome>(module, "ModesOutcome")
        .def_prop_ro("frequencies", fact(&ModesFacts::frequencies))
        .def_prop_ro("modal_masses", fact(&ModesFacts::modal_masses))
        .def_prop_ro("total_masses", fact(&ModesFacts::total_masses))
        .def_prop_ro("participation", fact(&ModesFacts::participation))
        .def_prop_ro("rigid", fact(&ModesFacts::rigid))
        .def_prop_ro("unstable", fact(&ModesFacts::unstable))
        .def_prop_ro("rigid_limit", fact(&ModesFacts::rigid_limit))
        .def_prop_ro("infinite", fact(&ModesFacts::infinite))
        .def_prop_ro("infinite_at_least", fact(&ModesFacts::infinite_at_least));
    module.def("modes", &modes_any, "context"_a, "request"_a, "k"_a, "m"_a,
               "directions"_a.none() = nb::none(), "callback"_a.none() = nb::none());
    module.attr("hertz") = hertz;
}

}  // namespace

void bind_eigen(nb::module_& module) {
    nb::class_<EigenRequest>(module, "EigenRequest")
        .def(nb::init<>())
        .def_rw("k", &EigenRequest::k)
        .def_rw("which", &EigenRequest::which)
        .def_rw("target", &EigenRequest::target)
        .def_rw("tol", &EigenRequest::tol)
        .def_rw("block", &EigenRequest::block)
        .def_rw("max_basis", &EigenRequest::max_basis)
        .def_rw("max_iterations", &EigenRequest::max_iterations)
        .def_rw("max_seconds", &EigenRequest::max_seconds)
        .def_rw("seed", &EigenRequest::seed)
        .def_rw("method", &EigenRequest::method)
        .def_rw("inner", &EigenRequest::inner)
        .def_rw("window", &EigenRequest::window, nb::arg().none())
        .def_rw("abft", &EigenRequest::abft)
        .def_rw("check_hermitian", &EigenRequest::check_hermitian);
    nb::class_<EigenOutcome>(module, "EigenOutcome")
        .def_ro("eigenvalues", &EigenOutcome::eigenvalues)
        .def_ro("residuals", &EigenOutcome::residuals)
        .def_ro("errors", &EigenOutcome::errors)
        .def_ro("norm_estimate", &EigenOutcome::norm_estimate)
        .def_ro("tolerance", &EigenOutcome::tolerance)
        .def_ro("tolerance_raised", &EigenOutcome::tolerance_raised)
        .def_ro("converged", &EigenOutcome::converged)
        .def_ro("verified", &EigenOutcome::verified)
        .def_ro("cluster_cut", &EigenOutcome::cluster_cut)
        .def_ro("interrupted", &EigenOutcome::interrupted)
        .def_ro("iterations", &EigenOutcome::iterations)
        .def_ro("operator_applications", &EigenOutcome::operator_applications)
        .def_ro("faults", &EigenOutcome::faults)
        .def_ro("block", &EigenOutcome::block)
        .def_ro("basis", &EigenOutcome::basis)
        .def_ro("seconds", &EigenOutcome::seconds)
        .def_ro("method", &EigenOutcome::method)
        .def_ro("method_reason", &EigenOutcome::method_reason)
        .def_ro("message", &EigenOutcome::message)
        .def("copy_vectors", &EigenOutcome::copy_vectors, "out"_a);
    module.def("eigensolve", &eigensolve_any, "context"_a, "request"_a, "a"_a,
               "b"_a.none() = nb::none(), "preconditioner"_a.none() = nb::none(),
               "inverse"_a.none() = nb::none(), "start"_a.none() = nb::none(),
               "constraints"_a.none() = nb::none(), "callback"_a.none() = nb::none());
    nb::class_<GraphRequest>(module, "GraphRequest")
        .def(nb::init<>())
        .def_rw("laplacian", &GraphRequest::laplacian)
        .def_rw("scale", &GraphRequest::scale)
        .def_rw("drop_first", &GraphRequest::drop_first)
        .def_rw("symmetrise", &GraphRequest::symmetrise);
    nb::class_<EmbeddingOutcome>(module, "EmbeddingOutcome")
        .def_ro("pairs", &EmbeddingOutcome::pairs)
        .def_ro("labels", &EmbeddingOutcome::labels)
        .def_ro("sizes", &EmbeddingOutcome::sizes)
        .def_ro("isolated", &EmbeddingOutcome::isolated)
        .def_ro("null_vectors", &EmbeddingOutcome::null_vectors);
    module.def("spectral_embedding", &embed_any, "context"_a, "request"_a, "graph"_a, "indptr"_a,
               "indices"_a, "data"_a, "callback"_a.none() = nb::none());
    bind_modes(module);
}

}  // namespace quiver::python
