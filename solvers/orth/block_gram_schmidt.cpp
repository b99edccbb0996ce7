// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/block_gram_schmidt.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "solvers/orth/orthonormaliser.hpp"

namespace quiver {
namespace {

/// Copies `part` to the entries of `target` from (row, column) on.
template <class T>
void copy_into(SmallMatrix<T>& target, int row, int column, const SmallMatrix<T>& part) {
    for (int i = 0; i < part.rows(); ++i) {
        std::copy_n(&part(i, 0), part.cols(), &target(row + i, column));
    }
}

/// W_in = V h + Q r by panels of W, each orthonormalised against V and the panels before it. For a
/// method that reveals the rank. Missing directions are dropped.
template <class T>
OrthResult<T> orthonormalise_panels(Context& ctx, OrthTask<T> task) {
    const BlockView<T> w = task.w;
    const BlockView<T> bw = task.bw;
    const bool with_b = task.inner.b != nullptr;
    OrthResult<T> result;
    result.h = SmallMatrix<T>(task.v.x.cols, w.cols);
    SmallMatrix<T> r(w.cols, w.cols);
    std::vector<int> found;
    for (int first = 0; first < w.cols; first += widest_orth_panel) {
        const int width = std::min(widest_orth_panel, w.cols - first);
        task.q.x = w.columns(0, first);
        task.w = w.columns(first, width);
        task.first_column = first;
        if (with_b) {
            task.q.bx = bw.columns(0, first);
            task.bw = bw.columns(first, width);
        }
        Orthonormaliser<T> panel(ctx, task);
        const OrthResult<T> part = panel.run();
        copy_into(result.h, 0, first, part.h);
        copy_into(r, 0, first, panel.on_q());
        copy_into(r, first, first, part.r);
        result.passes = std::max(result.passes, part.passes);
        result.used_svqb = result.used_svqb || part.used_svqb;
        for (int j = 0; j < part.columns; ++j) {
            found.push_back(first + j);
        }
        // Zero columns in the place of missing directions do not change the projections of later
        // panels.
        const int missing = width - part.columns;
        fill(ctx, T(0), w.columns(first + part.columns, missing));
        if (with_b) {
            fill(ctx, T(0), bw.columns(first + part.columns, missing));
        }
    }
    result.columns = result.rank = static_cast<int>(found.size());
    result.r = SmallMatrix<T>(result.columns, w.cols);
    for (int i = 0; i < result.columns; ++i) {
        std::copy_n(&r(found[static_cast<std::size_t>(i)], 0), w.cols, &result.r(i, 0));
    }
    if (result.columns < w.cols) {
        gather_columns(ctx, w, found, w.columns(0, result.columns));
        if (with_b) {
            gather_columns(ctx, bw, found, bw.columns(0, result.columns));
        }
    }
    return result;
}

template <class T>
OrthResult<T> orthonormalise(Context& ctx, const RowMap& map, const InnerProduct<T>& inner,
                             const OrthBasis<T>& v, BlockView<T> w, BlockView<T> bw,
                             const OrthOptions& options) {
    OrthTask<T> task{.inner = inner,
                     .v = v,
                     .q = {{nullptr, w.rows, 0, 0, w.place}},
                     .w = w,
                     .bw = bw,
                     .bw_given = options.product_given,
                     .method = options.method,
                     .projection = options.projection,
                     .panel = std::max(1, options.panel)};
    const bool by_panels = w.cols > widest_orth_panel && options.method == OrthMethod::robust &&
                           options.projection == Projection::classical_twice;
    OrthResult<T> result =
        by_panels ? orthonormalise_panels(ctx, task) : Orthonormaliser<T>(ctx, task).run();
    if (options.replace_deficient && result.breakdown < 0) {
        const auto wanted =
            static_cast<int>(std::min<std::int64_t>(w.cols, map.global_rows() - v.x.cols));
        result.columns = complete(ctx, task, result.columns, wanted, map.first_row(), options.seed,
                                  result.passes);
    }
    if (result.columns > result.rank) {
        SmallMatrix<T> r(result.columns, w.cols);
        std::copy_n(result.r.data(),
                    static_cast<std::size_t>(result.rank) * static_cast<std::size_t>(w.cols),
                    r.data());
        result.r = std::move(r);
    }
    return result;
}

template <class T>
void require_layout(const RowMap& map, const BlockView<const T>& v, const BlockView<T>& w) {
    require_shape(v.cols == 0 || v.rows == w.rows, "block_gram_schmidt", "V and W differ in rows",
                  [&] { return describe(v) + "; " + describe(w); });
    require_shape(w.rows == map.local_rows(), "block_gram_schmidt",
                  "W does not have the map's local rows",
                  [&] { return describe(w) + "; map " + std::to_string(map.local_rows()); });
}

}  // namespace

const char* to_string(OrthMethod method) {
    switch (method) {
        case OrthMethod::robust:
            return "robust";
        case OrthMethod::cholesky_qr:
            return "cholesky-qr";
        case OrthMethod::cholesky_qr2:
            return "cholesky-qr2";
        case OrthMethod::shifted_cholesky_qr3:
            return "shifted-cholesky-qr3";
        case OrthMethod::svqb:
            return "svqb";
        case OrthMethod::tsqr:
            return "tsqr";
        case OrthMethod::mixed_cholesky_qr:
            return "mixed-cholesky-qr";
    }
    return "";
}

const char* to_string(Projection projection) {
    switch (projection) {
        case Projection::classical_once:
            return "classical-once";
        case Projection::classical_twice:
            return "classical-twice";
        case Projection::modified:
            return "modified";
    }
    return "";
}

template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, BlockView<const T> v,
                                 BlockView<T> w, const OrthOptions& options) {
    require_layout(map, v, w);
    require_shape(options.method != OrthMethod::tsqr || v.cols + w.cols <= map.global_rows(),
                  "block_gram_schmidt", "TSQR would make more columns than there are rows", [&] {
                      return std::to_string(v.cols + w.cols) + " columns, " +
                             std::to_string(map.global_rows()) + " rows";
                  });
    return orthonormalise<T>(ctx, map, {}, {v}, w, {}, options);
}

template <class T>
OrthResult<T> block_gram_schmidt(Context& ctx, const RowMap& map, const InnerProduct<T>& inner,
                                 std::type_identity_t<BlockView<const T>> v,
                                 std::type_identity_t<BlockView<const T>> bv, BlockView<T> w,
                                 std::type_identity_t<BlockView<T>> bw,
                                 const OrthOptions& options) {
    if (inner.b == nullptr) {
        return block_gram_schmidt<T>(ctx, map, v, w, options);
    }
    require_layout(map, v, w);
    if (options.method == OrthMethod::tsqr || options.method == OrthMethod::mixed_cholesky_qr) {
        throw_collective(ErrorKind::unsupported,
                         std::string("block_gram_schmidt: ") + to_string(options.method) +
                             " supports no inner product with B; use shifted-cholesky-qr3");
    }
    const auto same_shape = [](const auto& x, const auto& bx) {
        return bx.cols == 0 || (bx.rows == x.rows && bx.cols == x.cols);
    };
    require_shape(same_shape(v, bv), "block_gram_schmidt", "V and B V differ in shape",
                  [&] { return describe(v) + "; " + describe(bv); });
    require_shape(same_shape(w, bw) && !overlap(w, bw), "block_gram_schmidt",
                  "W and B W differ in shape or overlap",
                  [&] { return describe(w) + "; " + describe(bw); });
    if (bw.cols > 0) {
        return orthonormalise<T>(ctx, map, inner, {v, bv}, w, bw, options);
    }
    require_shape(!options.product_given || w.cols == 0, "block_gram_schmidt",
                  "product_given is set, but B W has no columns", [&] { return describe(bw); });
    const std::size_t bytes =
        static_cast<std::size_t>(w.rows) * static_cast<std::size_t>(w.cols) * sizeof(T);
    const Scratch scratch = ctx.scratch(memory_kind(ctx.place()), bytes);
    const BlockView<T> product(scratch.as<T>(), w.rows, w.cols, w.cols, ctx.place());
    return orthonormalise<T>(ctx, map, inner, {v, bv}, w, product, options);
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template OrthResult<T> block_gram_schmidt(Context&, const RowMap&, BlockView<const T>,     \
                                              BlockView<T>, const OrthOptions&);               \
    template OrthResult<T> block_gram_schmidt(Context&, const RowMap&, const InnerProduct<T>&, \
                                              BlockView<const T>, BlockView<const T>,          \
                                              BlockView<T>, BlockView<T>, const OrthOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
