// SPDX-License-Identifier: BSD-3-Clause
// Exact diagonalisation from Python.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kernels/column_ops.hpp"
#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"
#include "python/src/shared_context.hpp"
#include "solvers/eigen/exact_diagonalisation.hpp"

namespace quiver::python {

namespace {

using nb::literals::operator""_a;

struct EdRequest {
    int k = 6;
    double tol = 1e-10;
    std::uint64_t seed = 1;
    bool density = false;
    int moments = 512;
    int columns = 16;
    int points = 512;
};

struct EdOutcome {
    std::vector<double> energies, residuals;
    std::vector<std::pair<double, int>> levels;
    double gap = 0;
    std::int64_t states = 0, local_rows = 0;
    bool converged = false;
    std::optional<SpectralDensity> density, probe;
    Dtype dtype = Dtype::d;
    std::shared_ptr<void> vectors;  // BlockVector<T>
    std::shared_ptr<SharedContext> home;

    /// Writes the states to an array of the caller, local_rows x energies.size().
    void copy_vectors(const OutputArray& out) const {
        visit_dtype(dtype, [&]<class T>() {
            const BlockView<T> to = block_of<T>(out);
            const auto* from = static_cast<const BlockVector<T>*>(vectors.get());
            run(*home, [&](Context& ctx) { copy(ctx, from->view(), to); });
        });
    }
};

ExactOptions options_of_request(const EdRequest& request) {
    const auto keep_going = [](const IterationEvent&) {
        return call_python([] {
            if (PyErr_CheckSignals() != 0) {
                nb::raise_python_error();
            }
        });
    };
    ExactOptions options;
    options.eigen.k = request.k;
    options.eigen.tol = request.tol;
    options.eigen.seed = request.seed;
    options.eigen.keep_going = keep_going;
    if (request.density) {
        options.density = DensityOptions{.moments = request.moments,
                                         .columns = request.columns,
                                         .points = request.points,
                                         .seed = request.seed,
                                         .keep_going = keep_going};
    }
    return options;
}

template <class T>
EdOutcome take_outcome(ExactResult<T> result) {
    EdOutcome out;
    out.energies = std::move(result.eigen.eigenvalues);
    out.residuals = std::move(result.eigen.residuals);
    for (const EnergyLevel& level : result.levels) {
        out.levels.emplace_back(level.energy, level.degeneracy);
    }
    out.gap = result.gap;
    out.states = result.states;
    out.local_rows = result.eigen.vectors.rows();
    out.converged = result.eigen.converged && result.eigen.multiplicity == Multiplicity::verified;
    out.density = std::move(result.density);
    out.probe = std::move(result.probe);
    out.dtype = dtype_v<T>;
    out.vectors = std::make_shared<BlockVector<T>>(std::move(result.eigen.vectors));
    return out;
}

/// `text` and the sectors are the same on all ranks.
EdOutcome exact(std::shared_ptr<SharedContext> shared, const std::string& dtype,
                const std::string& text, const EdRequest& request) {
    return visit_dtype(dtype_of(dtype), [&]<class T>() {
        EdOutcome out = run(*shared, [&](Context& ctx) {
            const HamiltonianModel model = parse_hamiltonian(text, "terms");
            EdOutcome result =
                take_outcome(exact_diagonalisation<T>(ctx, model, options_of_request(request)));
            ctx.synchronize();
            return result;
        });
        out.home = shared;
        return out;
    });
}

}  // namespace

void bind_hamiltonian(nb::module_& module) {
    nb::class_<EdRequest>(module, "EdRequest")
        .def(nb::init<>())
        .def_rw("k", &EdRequest::k)
        .def_rw("tol", &EdRequest::tol)
        .def_rw("seed", &EdRequest::seed)
        .def_rw("density", &EdRequest::density)
        .def_rw("moments", &EdRequest::moments)
        .def_rw("columns", &EdRequest::columns)
        .def_rw("points", &EdRequest::points);
    nb::class_<SpectralDensity>(module, "SpectralDensity")
        .def_ro("energies", &SpectralDensity::energies)
        .def_ro("density", &SpectralDensity::density)
        .def_ro("errors", &SpectralDensity::errors)
        .def_ro("moments", &SpectralDensity::moments)
        .def_ro("resolution", &SpectralDensity::resolution)
        .def_prop_ro("bounds", [](const SpectralDensity& density) {
            return std::pair(density.bounds.low, density.bounds.high);
        });
    nb::class_<EdOutcome>(module, "EdOutcome")
        .def_ro("energies", &EdOutcome::energies)
        .def_ro("residuals", &EdOutcome::residuals)
        .def_ro("levels", &EdOutcome::levels)
        .def_ro("gap", &EdOutcome::gap)
        .def_ro("states", &EdOutcome::states)
        .def_ro("local_rows", &EdOutcome::local_rows)
        .def_ro("converged", &EdOutcome::converged)
        .def_ro("density", &EdOutcome::density)
        .def_ro("probe", &EdOutcome::probe)
        .def("copy_vectors", &EdOutcome::copy_vectors, "out"_a);
    module.def("model_text", &model_text, "spec"_a);
    module.def(
        "is_complex",
        [](const std::string& text) { return parse_hamiltonian(text, "terms").is_complex(); },
        "text"_a);
    module.def("exact_diagonalisation", &exact, "context"_a, "dtype"_a, "text"_a, "request"_a);
}

}  // namespace quiver::python
