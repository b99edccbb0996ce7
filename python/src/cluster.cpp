// SPDX-License-Identifier: BSD-3-Clause
// k-means from Python.
#include <algorithm>
#include <optional>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"
#include "python/src/shared_context.hpp"
#include "solvers/cluster/kmeans.hpp"

namespace quiver::python {

namespace {

using nb::literals::operator""_a;

struct KmeansRequest {
    int k = 8;
    double tol = 1e-4;
    int max_iterations = 300;
    int runs = 1;
    std::uint64_t seed = 0;
};

struct KmeansOutcome {
    double inertia = 0;
    bool converged = false;
    int iterations = 0;
    int relocated = 0;
    int run = 0;
    std::vector<std::int64_t> sizes;
    std::vector<double> inertias;
    std::vector<double> history;
};

/// `starts` and `centres` are k x d in host memory, `labels` is int32 in the place of X.
template <class T>
KmeansOutcome kmeans_of(SharedContext& shared, const KmeansRequest& request, const InputArray& x,
                        const std::optional<InputArray>& starts, const OutputArray& labels,
                        const OutputArray& centres) {
    const BlockView<const T> points = block_of<T>(x);
    const BlockView<const T> first = optional_block<T>(starts);
    const std::span<int> label = span_of<int>(labels);
    const BlockView<T> found = block_of<T>(centres);
    KmeansOptions options;
    options.k = request.k;
    options.tol = request.tol;
    options.max_iterations = request.max_iterations;
    options.runs = request.runs;
    options.seed = request.seed;
    options.keep_going = [](const IterationEvent&) {
        return call_python([] {
            if (PyErr_CheckSignals() != 0) {
                nb::raise_python_error();
            }
        });
    };
    return run(shared, [&](Context& ctx) {
        SmallMatrix<T> given(static_cast<int>(first.rows), first.cols);
        for (std::int64_t j = 0; j < first.rows; ++j) {
            std::copy_n(first.data + j * first.ld, first.cols, given.data() + j * first.cols);
        }
        const RowMap map = RowMap::by_local_rows(ctx.comm(), points.rows);
        const KmeansResult<T> result = kmeans<T>(ctx, map, points, options, label, given);
        for (int j = 0; j < result.centres.rows(); ++j) {
            std::copy_n(result.centres.data() + j * found.cols, found.cols,
                        found.data + j * found.ld);
        }
        return KmeansOutcome{result.inertia, result.converged, result.iterations, result.relocated,
                             result.run,     result.sizes,     result.inertias,   result.history};
    });
}

KmeansOutcome kmeans_any(SharedContext& shared, const KmeansRequest& request, const InputArray& x,
                         const std::optional<InputArray>& starts, const OutputArray& labels,
                         const OutputArray& centres) {
    return x.dtype() == dlpack_type<float>()
               ? kmeans_of<float>(shared, request, x, starts, labels, centres)
               : kmeans_of<double>(shared, request, x, starts, labels, centres);
}

}  // namespace

void bind_cluster(nb::module_& module) {
    nb::class_<KmeansRequest>(module, "KmeansRequest")
        .def(nb::init<>())
        .def_rw("k", &KmeansRequest::k)
        .def_rw("tol", &KmeansRequest::tol)
        .def_rw("max_iterations", &KmeansRequest::max_iterations)
        .def_rw("runs", &KmeansRequest::runs)
        .def_rw("seed", &KmeansRequest::seed);
    nb::class_<KmeansOutcome>(module, "KmeansOutcome")
        .def_ro("inertia", &KmeansOutcome::inertia)
        .def_ro("converged", &KmeansOutcome::converged)
        .def_ro("iterations", &KmeansOutcome::iterations)
        .def_ro("relocated", &KmeansOutcome::relocated)
        .def_ro("run", &KmeansOutcome::run)
        .def_ro("sizes", &KmeansOutcome::sizes)
        .def_ro("inertias", &KmeansOutcome::inertias)
        .def_ro("history", &KmeansOutcome::history);
    module.def("kmeans", &kmeans_any, "context"_a, "request"_a, "x"_a, "starts"_a.none(),
               "labels"_a, "centres"_a);
}

}  // namespace quiver::python
