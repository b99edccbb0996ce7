// SPDX-License-Identifier: BSD-3-Clause
// Products and orthogonalisation of the caller's blocks.
#include <complex>

#include "c/shared/qr.hpp"
#include "c/src/handles.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver::c {

namespace {

template <class T>
T coefficient(quiver_scalar value, const char* name) {
    if (!is_complex_v<T> && value.im != 0) {
        throw InputError(std::string(name) + " has an imaginary part, but the blocks are real");
    }
    return doors::scalar_of<T>({value.re, value.im});
}

/// Calls f.operator()<T>() for the scalar of a block.
template <class F>
void visit_block(const quiver_block* block, const char* name, F&& f) {
    visit_dtype(dtype_of(require(block, name).type), std::forward<F>(f));
}

template <class T>
void copy_to(Context& ctx, BlockView<const T> from, const quiver_block& to) {
    visit_dtype(dtype_of(to.type), [&]<class U>() {
        if constexpr (is_complex_v<T> == is_complex_v<U>) {
            copy(ctx, from, view_of<U>(&to, "to"));
        } else {
            throw ShapeError("copy: one block is complex, the other one is real");
        }
    });
}

}  // namespace
}  // namespace quiver::c

using namespace quiver;
using namespace quiver::c;

quiver_status quiver_tsmttsm(quiver_context* context, quiver_scalar alpha, const quiver_block* a,
                             const quiver_block* b, quiver_scalar beta, const quiver_block* c) {
    return enter(context, [&](Context& ctx) {
        visit_block(a, "A", [&]<class T>() {
            tsmttsm(ctx, coefficient<T>(alpha, "alpha"), view_of<T>(a, "A"), view_of<T>(b, "B"),
                    coefficient<T>(beta, "beta"), view_of<T>(c, "C"));
        });
    });
}

quiver_status quiver_tsmm(quiver_context* context, quiver_scalar alpha, const quiver_block* x,
                          const quiver_block* c, quiver_scalar beta, const quiver_block* y) {
    return enter(context, [&](Context& ctx) {
        visit_block(x, "X", [&]<class T>() {
            tsmm(ctx, coefficient<T>(alpha, "alpha"), view_of<T>(x, "X"), view_of<T>(c, "C"),
                 coefficient<T>(beta, "beta"), view_of<T>(y, "Y"));
        });
    });
}

quiver_status quiver_spmm(quiver_context* context, const quiver_operator* a, quiver_scalar alpha,
                          const quiver_block* x, quiver_scalar beta, const quiver_block* y) {
    return enter(context, [&](Context& ctx) {
        const doors::AnyOperator& op = require_operator(context, a, "A");
        visit_dtype(op.dtype, [&]<class T>() {
            ApplyOptions<T> options;
            options.alpha = coefficient<T>(alpha, "alpha");
            options.beta = coefficient<T>(beta, "beta");
            op.get<T>().apply_fused(ctx, view_of<T>(x, "X"), view_of<T>(y, "Y"), options);
        });
    });
}

quiver_status quiver_qr(quiver_context* context, const quiver_block* x, const quiver_block* q,
                        const quiver_block* r) {
    return enter(context, [&](Context& ctx) {
        visit_block(x, "X", [&]<class T>() {
            doors::qr<T>(ctx, view_of<T>(x, "X"), view_of<T>(q, "Q"), view_of<T>(r, "R"));
        });
    });
}

quiver_status quiver_orthonormalise(quiver_context* context, const quiver_block* v,
                                    const quiver_block* w, int32_t* rank) {
    return enter(context, [&](Context& ctx) {
        visit_block(w, "W", [&]<class T>() {
            const BlockView<T> block = view_of<T>(w, "W");
            const auto basis = v == nullptr
                                   ? BlockView<const T>(nullptr, block.rows, 0, 0, ctx.place())
                                   : optional_view<T>(v, "V");
            OrthOptions options;
            options.replace_deficient = false;
            const auto map = RowMap::by_local_rows(ctx.comm(), block.rows);
            const int columns = block_gram_schmidt(ctx, map, basis, block, options).columns;
            if (rank != nullptr) {
                *rank = columns;
            }
        });
    });
}

quiver_status quiver_copy(quiver_context* context, const quiver_block* from,
                          const quiver_block* to) {
    return enter(context, [&](Context& ctx) {
        (void)require(to, "to");
        visit_block(from, "from",
                    [&]<class T>() { copy_to<T>(ctx, view_of<T>(from, "from"), *to); });
    });
}
