// SPDX-License-Identifier: BSD-3-Clause
// Singular values and principal components from Python.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kernels/column_ops.hpp"
#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"
#include "python/src/operators.hpp"
#include "python/src/shared_context.hpp"
#include "solvers/svd/dense_svd.hpp"
#include "solvers/svd/pca.hpp"
#include "solvers/svd/sparse_svd.hpp"
#include "solvers/svd/tall_svd.hpp"

namespace quiver::python {

namespace {

using nb::literals::operator""_a;

struct SvdOutcome {
    std::vector<double> values;
    std::vector<double> errors;
    int rank = 0;
    bool from_gram = false;
};

/// `right`: columns x k in host memory; `left`: rows x k in the place of X, without columns if it
/// is not wanted.
template <class T>
SvdOutcome svd_of(SharedContext& shared, const InputArray& x, int k, bool one_pass,
                  const OutputArray& left, const OutputArray& right) {
    const BlockView<const T> block = block_of<T>(x);
    const BlockView<T> u = block_of<T>(left);
    const BlockView<T> v = block_of<T>(right);
    return run(shared, [&](Context& ctx) {
        const RowMap map = RowMap::by_local_rows(ctx.comm(), block.rows);
        TallSvdOptions options;
        options.k = k;
        options.left = u.cols > 0;
        options.one_pass = one_pass;
        const TallSvd<T> svd = tall_svd<T>(ctx, map, block, options);
        copy(ctx, svd.right.view(), v);
        if (u.cols > 0) {
            copy(ctx, svd.left.view(), u);
        }
        return SvdOutcome{svd.values, svd.errors, svd.rank, svd.from_gram};
    });
}

SvdOutcome svd_any(SharedContext& shared, const std::string& dtype, const InputArray& x, int k,
                   bool one_pass, const OutputArray& left, const OutputArray& right) {
    return visit_dtype(dtype_of(dtype),
                       [&]<class T>() { return svd_of<T>(shared, x, k, one_pass, left, right); });
}

/// The components as rows, one after the other.
std::vector<double> components_of(const PcaResult& result) {
    const SmallMatrix<double>& c = result.components;
    return {c.data(),
            c.data() + static_cast<std::size_t>(c.rows()) * static_cast<std::size_t>(c.cols())};
}

template <class T>
PcaResult pca_of(SharedContext& shared, const InputArray& x, int k) {
    const BlockView<const T> block = block_of<T>(x);
    return run(shared, [&](Context& ctx) {
        PcaOptions options;
        options.k = k;
        return pca<T>(ctx, RowMap::by_local_rows(ctx.comm(), block.rows), block, options);
    });
}

PcaResult pca_any(SharedContext& shared, const InputArray& x, int k) {
    return x.dtype() == dlpack_type<float>() ? pca_of<float>(shared, x, k)
                                             : pca_of<double>(shared, x, k);
}

template <class T>
void scores_of(SharedContext& shared, const PcaResult& pca, const InputArray& x,
               const OutputArray& y) {
    const BlockView<const T> block = block_of<T>(x);
    const BlockView<T> scores = block_of<T>(y);
    run(shared, [&](Context& ctx) { pca_scores<T>(ctx, pca, block, scores); });
}

void scores_any(SharedContext& shared, const PcaResult& pca, const InputArray& x,
                const OutputArray& y) {
    x.dtype() == dlpack_type<float>() ? scores_of<float>(shared, pca, x, y)
                                      : scores_of<double>(shared, pca, x, y);
}

struct SvdsRequest {
    int k = 6;
    bool smallest = false;
    double tol = 1e-10;
    int max_basis = 0;
    std::int64_t max_iterations = 0;
    double max_seconds = 0;
};

/// The result of svds of any scalar.
struct SvdsOutcome {
    std::vector<double> values, residuals, errors;
    double norm_estimate = 0, seconds = 0;
    bool converged = false, verified = false, dense = false, interrupted = false;
    std::int64_t iterations = 0, products = 0;
    std::string message;
    Dtype dtype = Dtype::d;
    std::shared_ptr<void> left, right;  // BlockVector<T>
    std::shared_ptr<SharedContext> home;

    void copy_block(const std::shared_ptr<void>& block, const OutputArray& out) const {
        visit_dtype(dtype, [&]<class T>() {
            const BlockView<T> to = block_of<T>(out);
            const auto* from = static_cast<const BlockVector<T>*>(block.get());
            run(*home, [&](Context& ctx) { copy(ctx, from->view(), to); });
        });
    }
    void copy_left(const OutputArray& out) const { copy_block(left, out); }
    void copy_right(const OutputArray& out) const { copy_block(right, out); }
    /// The number of rows of right vectors on this rank.
    std::int64_t right_rows() const {
        return visit_dtype(dtype, [&]<class T>() {
            return static_cast<const BlockVector<T>*>(right.get())->rows();
        });
    }
};

/// All of a result except its vectors.
template <class T>
SvdsOutcome outcome_of(const SparseSvd<T>& found) {
    SvdsOutcome out;
    out.values = found.values;
    out.residuals = found.residuals;
    out.errors = found.errors;
    out.norm_estimate = found.norm_estimate;
    out.seconds = found.seconds;
    out.converged = found.converged;
    out.verified = found.multiplicity == Multiplicity::verified;
    out.dense = found.dense;
    out.interrupted = found.interrupted;
    out.iterations = found.iterations;
    out.products = found.products;
    out.message = found.message;
    out.dtype = dtype_v<T>;
    return out;
}

template <class T>
void take_vectors(SparseSvd<T>& found, SvdsOutcome& out) {
    out.left = std::make_shared<BlockVector<T>>(std::move(found.left));
    out.right = std::make_shared<BlockVector<T>>(std::move(found.right));
}

template <class T>
SvdsOutcome svds_of(Context& ctx, const AnyOperator& a, const AnyOperator& adjoint,
                    const SvdsOptions& options) {
    SparseSvd<T> found = svds(ctx, *a.sparse<T>(), *adjoint.sparse<T>(), options);
    SvdsOutcome out = outcome_of(found);
    if (a.numbering) {
        for (BlockVector<T>* const block : {&found.left, &found.right}) {
            *block = a.numbering->to_user<T>(ctx, std::as_const(*block).view());
        }
    }
    take_vectors(found, out);
    return out;
}

SvdsOptions options_of(const SvdsRequest& request) {
    SvdsOptions options;
    options.k = request.k;
    options.smallest = request.smallest;
    options.tol = request.tol;
    options.max_basis = request.max_basis;
    options.max_iterations = request.max_iterations;
    options.max_seconds = request.max_seconds;
    options.keep_going = [](const IterationEvent&) { return check_signals(); };
    return options;
}

SvdsOutcome svds_any(const SvdsRequest& request, const AnyOperator& a, const AnyOperator& adjoint) {
    const SvdsOptions options = options_of(request);
    return visit_dtype(a.dtype, [&]<class T>() {
        SvdsOutcome out =
            run(*a.home, [&](Context& ctx) { return svds_of<T>(ctx, a, adjoint, options); });
        out.home = a.home;
        return out;
    });
}

SvdsOutcome svds_dense(const SvdsRequest& request, std::shared_ptr<SharedContext> shared,
                       const std::string& dtype, const InputArray& a) {
    const SvdsOptions options = options_of(request);
    return visit_dtype(dtype_of(dtype), [&]<class T>() {
        const MatrixView<const T> matrix = matrix_of<T>(a);
        SvdsOutcome out = run(*shared, [&](Context& ctx) {
            const RowMap map = RowMap::by_local_rows(ctx.comm(), matrix.rows);
            SparseSvd<T> found = svds<T>(ctx, map, matrix, options);
            SvdsOutcome result = outcome_of(found);
            take_vectors(found, result);
            return result;
        });
        out.home = std::move(shared);
        return out;
    });
}

}  // namespace

void bind_svd(nb::module_& module) {
    nb::class_<SvdOutcome>(module, "SvdOutcome")
        .def_ro("values", &SvdOutcome::values)
        .def_ro("errors", &SvdOutcome::errors)
        .def_ro("rank", &SvdOutcome::rank)
        .def_ro("from_gram", &SvdOutcome::from_gram);
    module.def("svd", &svd_any, "context"_a, "dtype"_a, "x"_a, "k"_a, "one_pass"_a, "left"_a,
               "right"_a);
    nb::class_<PcaResult>(module, "PcaResult")
        .def_ro("mean", &PcaResult::mean)
        .def_ro("variances", &PcaResult::variances)
        .def_ro("ratios", &PcaResult::ratios)
        .def_ro("singular_values", &PcaResult::singular_values)
        .def_ro("noise_variance", &PcaResult::noise_variance)
        .def_ro("error", &PcaResult::error)
        .def_prop_ro("components", &components_of);
    module.def("pca", &pca_any, "context"_a, "x"_a, "k"_a);
    module.def("pca_scores", &scores_any, "context"_a, "pca"_a, "x"_a, "y"_a);
    nb::class_<SvdsRequest>(module, "SvdsRequest")
        .def(nb::init<>())
        .def_rw("k", &SvdsRequest::k)
        .def_rw("smallest", &SvdsRequest::smallest)
        .def_rw("tol", &SvdsRequest::tol)
        .def_rw("max_basis", &SvdsRequest::max_basis)
        .def_rw("max_iterations", &SvdsRequest::max_iterations)
        .def_rw("max_seconds", &SvdsRequest::max_seconds);
    nb::class_<SvdsOutcome>(module, "SvdsOutcome")
        .def_ro("values", &SvdsOutcome::values)
        .def_ro("residuals", &SvdsOutcome::residuals)
        .def_ro("errors", &SvdsOutcome::errors)
        .def_ro("norm_estimate", &SvdsOutcome::norm_estimate)
        .def_ro("seconds", &SvdsOutcome::seconds)
        .def_ro("converged", &SvdsOutcome::converged)
        .def_ro("verified", &SvdsOutcome::verified)
        .def_ro("dense", &SvdsOutcome::dense)
        .def_ro("interrupted", &SvdsOutcome::interrupted)
        .def_ro("iterations", &SvdsOutcome::iterations)
        .def_ro("products", &SvdsOutcome::products)
        .def_ro("message", &SvdsOutcome::message)
        .def_prop_ro("right_rows", &SvdsOutcome::right_rows)
        .def("copy_left", &SvdsOutcome::copy_left, "out"_a)
        .def("copy_right", &SvdsOutcome::copy_right, "out"_a);
    module.def("svds", &svds_any, "request"_a, "a"_a, "adjoint"_a);
    module.def("svds_dense", &svds_dense, "request"_a, "context"_a, "dtype"_a, "a"_a);
}

}  // namespace quiver::python
