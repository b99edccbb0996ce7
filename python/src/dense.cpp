// SPDX-License-Identifier: BSD-3-Clause
// Products of tall & skinny blocks, QR, and batches of small matrices from Python.
#include <complex>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/string.h>

#include "c/shared/qr.hpp"
#include "kernels/batched.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmm_gram.hpp"
#include "kernels/tsmttsm.hpp"
#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"
#include "python/src/shared_context.hpp"

namespace quiver::python {

namespace {

using nb::literals::operator""_a;
using Factor = std::complex<double>;

using doors::scalar_of;

/// Calls f.operator()<T>() for the scalar of an array.
template <class F>
decltype(auto) visit_array(const nb::dlpack::dtype& type, F&& f) {
    const Dtype dtype = type == dlpack_type<float>()                 ? Dtype::s
                        : type == dlpack_type<double>()              ? Dtype::d
                        : type == dlpack_type<std::complex<float>>() ? Dtype::c
                                                                     : Dtype::z;
    return visit_dtype(dtype, std::forward<F>(f));
}

void tsmttsm_any(SharedContext& shared, Factor alpha, const InputArray& a, const InputArray& b,
                 Factor beta, const OutputArray& c) {
    visit_array(a.dtype(), [&]<class T>() {
        const auto left = block_of<T>(a);
        const auto right = block_of<T>(b);
        const BlockView<T> out = block_of<T>(c);
        run(shared, [&](Context& ctx) {
            tsmttsm(ctx, scalar_of<T>(alpha), left, right, scalar_of<T>(beta), out);
        });
    });
}

void tsmm_any(SharedContext& shared, Factor alpha, const InputArray& x, const InputArray& c,
              Factor beta, const OutputArray& y) {
    visit_array(x.dtype(), [&]<class T>() {
        const auto in = block_of<T>(x);
        const auto small = block_of<T>(c);
        const BlockView<T> out = block_of<T>(y);
        run(shared, [&](Context& ctx) {
            tsmm(ctx, scalar_of<T>(alpha), in, small, scalar_of<T>(beta), out);
        });
    });
}

void tsmm_gram_any(SharedContext& shared, Factor alpha, const InputArray& v, const InputArray& h,
                   Factor beta, const OutputArray& w, const OutputArray& g) {
    visit_array(v.dtype(), [&]<class T>() {
        const auto in = block_of<T>(v);
        const auto small = block_of<T>(h);
        const BlockView<T> out = block_of<T>(w);
        const BlockView<T> gram = block_of<T>(g);
        run(shared, [&](Context& ctx) {
            tsmm_gram(ctx, scalar_of<T>(alpha), in, small, scalar_of<T>(beta), out, gram);
        });
    });
}

void qr_any(SharedContext& shared, const InputArray& x, const OutputArray& q,
            const OutputArray& r) {
    visit_array(x.dtype(), [&]<class T>() {
        const auto in = block_of<T>(x);
        const BlockView<T> out = block_of<T>(q);
        const BlockView<T> triangle = block_of<T>(r);
        run(shared, [&](Context& ctx) { doors::qr(ctx, in, out, triangle); });
    });
}

/// The batch of a contiguous array of shape (count, rows, cols).
template <class T, class Array>
auto batch_of(const Array& array) {
    using Element = std::conditional_t<Array::ReadOnly, const T, T>;
    return MatrixBatch<Element>::packed(
        data_of<T>(array), static_cast<std::int64_t>(array.shape(0)),
        static_cast<int>(array.shape(1)), static_cast<int>(array.shape(2)), place_of(array));
}

void lu_factor_any(SharedContext& shared, const OutputArray& a, const OutputArray& pivots,
                   const OutputArray& status) {
    visit_array(a.dtype(), [&]<class T>() {
        run(shared, [&](Context& ctx) {
            lu_factor(ctx, batch_of<T>(a), span_of<int>(pivots), span_of<int>(status));
        });
    });
}

void lu_solve_any(SharedContext& shared, const InputArray& lu, const InputArray& pivots,
                  const OutputArray& b) {
    visit_array(lu.dtype(), [&]<class T>() {
        run(shared, [&](Context& ctx) {
            lu_solve(ctx, batch_of<T>(lu), span_of<int>(pivots), batch_of<T>(b));
        });
    });
}

void cholesky_factor_any(SharedContext& shared, const OutputArray& a, const OutputArray& status) {
    visit_array(a.dtype(), [&]<class T>() {
        run(shared,
            [&](Context& ctx) { cholesky_factor(ctx, batch_of<T>(a), span_of<int>(status)); });
    });
}

void cholesky_solve_any(SharedContext& shared, const InputArray& l, const OutputArray& b) {
    visit_array(l.dtype(), [&]<class T>() {
        run(shared, [&](Context& ctx) { cholesky_solve(ctx, batch_of<T>(l), batch_of<T>(b)); });
    });
}

}  // namespace

void bind_dense(nb::module_& module) {
    module.def("tsmttsm", &tsmttsm_any, "context"_a, "alpha"_a, "a"_a, "b"_a, "beta"_a, "c"_a);
    module.def("tsmm", &tsmm_any, "context"_a, "alpha"_a, "x"_a, "c"_a, "beta"_a, "y"_a);
    module.def("tsmm_gram", &tsmm_gram_any, "context"_a, "alpha"_a, "v"_a, "h"_a, "beta"_a, "w"_a,
               "g"_a);
    module.def("qr", &qr_any, "context"_a, "x"_a, "q"_a, "r"_a);
    module.def("lu_factor", &lu_factor_any, "context"_a, "a"_a, "pivots"_a, "status"_a);
    module.def("lu_solve", &lu_solve_any, "context"_a, "lu"_a, "pivots"_a, "b"_a);
    module.def("cholesky_factor", &cholesky_factor_any, "context"_a, "a"_a, "status"_a);
    module.def("cholesky_solve", &cholesky_solve_any, "context"_a, "l"_a, "b"_a);
}

}  // namespace quiver::python
