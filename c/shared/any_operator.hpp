// SPDX-License-Identifier: BSD-3-Clause
// Shared parts of the interfaces to other languages: a Context for several threads, operators whose
// scalar type is known only at run time, and the functions that create them.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/operator.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/gathered_rows.hpp"
#include "kernels/sparse/reordering.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/precond/preconditioner.hpp"

namespace quiver::doors {

/// A Context with the mutex that a thread holds while it uses the Context. The mutex is recursive,
/// because a callback of a solve may call the library again.
struct SharedContext {
    SharedContext(const Comm& comm, const Device& device) : context(comm, device) {}
    Context context;
    std::recursive_mutex mutex;
    EventSink sink;  // the sink of `context`; ScopedSink sets both
};

/// Sends the Context's events to `sink`. The destructor restores the previous sink, which is that
/// of the outer call if a callback makes this call. The caller holds the Context's mutex.
class ScopedSink {
  public:
    ScopedSink(SharedContext& shared, EventSink sink)
        : shared_(shared), outer_(std::exchange(shared.sink, std::move(sink))) {
        shared_.context.set_event_sink(shared_.sink);
    }
    ScopedSink(const ScopedSink&) = delete;
    ScopedSink& operator=(const ScopedSink&) = delete;
    ~ScopedSink() {
        shared_.sink = std::move(outer_);
        shared_.context.set_event_sink(shared_.sink);
    }

  private:
    SharedContext& shared_;
    EventSink outer_;
};

/// An operator of one of the four scalars, shared by objects of another language.
struct AnyOperator {
    Dtype dtype = Dtype::d;
    std::int64_t rows = 0;
    std::shared_ptr<void> matrix;     // SparseMatrix<T>, or null
    std::shared_ptr<void> operation;  // Operator<T>; the same object as `matrix` if that is set
    std::shared_ptr<SharedContext> home;
    std::shared_ptr<void> keep_alive;  // an operator to which this one refers
    /// The numbering of the rows of a partitioned matrix and of what is made from it; null: the
    /// caller's (c/shared/renumbered.hpp).
    std::shared_ptr<const Reordering> numbering;

    template <class T>
    Operator<T>& get() const {
        return *static_cast<Operator<T>*>(operation.get());
    }
    template <class T>
    SparseMatrix<T>* sparse() const {
        return static_cast<SparseMatrix<T>*>(matrix.get());
    }
    template <class T>
    static AnyOperator wrap(std::shared_ptr<SharedContext> home, std::shared_ptr<Operator<T>> op) {
        const std::int64_t rows = op->row_map().global_rows();
        return wrap<T>(std::move(home), std::move(op), rows);
    }
    template <class T>
    static AnyOperator wrap(std::shared_ptr<SharedContext> home, std::shared_ptr<Operator<T>> op,
                            std::int64_t rows) {
        AnyOperator any;
        any.dtype = dtype_v<T>;
        any.rows = rows;
        any.operation = std::shared_ptr<void>(op, static_cast<void*>(op.get()));
        any.home = std::move(home);
        return any;
    }
    template <class T>
    static AnyOperator wrap_matrix(std::shared_ptr<SharedContext> home,
                                   std::shared_ptr<SparseMatrix<T>> matrix) {
        const std::int64_t rows = matrix->range_map().global_rows();
        AnyOperator any = wrap<T>(std::move(home), matrix, rows);
        any.matrix = std::move(matrix);
        return any;
    }
};

/// A coefficient of any scalar as T; the caller has checked the imaginary part.
template <class T>
T scalar_of(std::complex<double> value) {
    if constexpr (is_complex_v<T>) {
        return T(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
    } else {
        return static_cast<T>(value.real());
    }
}

/// The partition of a matrix over the ranks: a new one, or that of `like`.
struct MatrixPartition {
    RowPartition rows = RowPartition::rows;
    const AnyOperator* like = nullptr;
};

/// The numbering of the rows for a partition; null if no row moves. Collective.
template <class T>
std::shared_ptr<const Reordering> plan_numbering(Context& ctx, const MatrixPartition& partition,
                                                 const CsrRows<T>& rows) {
    const Comm& comm = ctx.comm();
    ReorderingOptions options;
    options.partition = partition.rows;
    if (comm.max(std::int64_t{ctx.place() == Place::device ? 0 : 1}) == 0) {
        options.halo_bytes_per_second = halo_rate_of_gpus;
    }
    auto plan = std::make_shared<const Reordering>(plan_reordering(comm, rows, options));
    return plan->moves_rows() ? plan : nullptr;
}

/// A sparse matrix from this rank's rows. `columns`: the rows of X on this rank; none, on all
/// ranks, for a square matrix. A partitioned matrix is square and in host memory. The caller holds
/// the Context's mutex.
template <class T, class Index>
AnyOperator matrix_from_csr(const std::shared_ptr<SharedContext>& home, CsrArrays<T, Index> csr,
                            std::optional<std::int64_t> columns = std::nullopt,
                            const MatrixPartition& partition = {}) {
    Context& ctx = home->context;
    const RowMap map =
        RowMap::by_local_rows(ctx.comm(), static_cast<std::int64_t>(csr.row_start.size()) - 1);
    if (columns) {
        csr.column_map = RowMap::by_local_rows(ctx.comm(), *columns);
    }
    const bool is_square = !columns || csr.column_map->global_rows() == map.global_rows();
    // The solvers take complex matrices that are declared Hermitian only.
    const Symmetry symmetry =
        is_complex_v<T> && is_square ? Symmetry::hermitian : Symmetry::general;
    if (partition.rows != RowPartition::rows || partition.like != nullptr) {
        CsrRows<T> rows =
            rows_from_csr<T, Index>(ctx.comm(), map, symmetry, csr.row_start, csr.column, csr.value,
                                    ctx.threads(), csr.column_map);
        const std::shared_ptr<const Reordering> numbering =
            partition.like != nullptr ? partition.like->numbering
                                      : plan_numbering(ctx, partition, rows);
        if (numbering) {
            auto moved = std::make_shared<SparseMatrix<T>>(
                ctx, numbering->permute(ctx.comm(), std::move(rows)));
            ctx.synchronize();
            AnyOperator any = AnyOperator::wrap_matrix<T>(home, std::move(moved));
            any.numbering = numbering;
            return any;
        }
    }
    auto matrix =
        std::make_shared<SparseMatrix<T>>(SparseMatrix<T>::from_csr(ctx, map, symmetry, csr));
    ctx.synchronize();
    return AnyOperator::wrap_matrix<T>(home, std::move(matrix));
}

/// A^H of a sparse matrix. The entries are always exchanged, because matrix_from_csr() declares
/// every complex square matrix Hermitian. The caller holds the Context's mutex.
template <class T>
AnyOperator adjoint_of(const AnyOperator& a) {
    Context& ctx = a.home->context;
    auto matrix = std::make_shared<SparseMatrix<T>>(ctx, adjoint_rows(ctx, *a.sparse<T>()));
    ctx.synchronize();
    AnyOperator any = AnyOperator::wrap_matrix<T>(a.home, std::move(matrix));
    any.numbering = a.numbering;
    return any;
}

/// A preconditioner of a sparse matrix by its name; with a shift, the inverse of A - shift B. The
/// caller holds the Context's mutex.
template <class T>
AnyOperator named_preconditioner(const AnyOperator& a, const std::string& name,
                                 std::optional<double> shift, const AnyOperator* b) {
    PreconditionerOptions options = parse_preconditioner(name);
    if (shift) {
        options.shift = shift;
        options.absolute = false;
    }
    Context& ctx = a.home->context;
    std::shared_ptr<Operator<T>> made = make_preconditioner<T>(
        ctx, *a.sparse<T>(), options, b == nullptr ? nullptr : b->sparse<T>());
    if (!made) {
        throw InputError("preconditioner: \"none\" creates no preconditioner; omit it");
    }
    ctx.synchronize();
    AnyOperator any = AnyOperator::wrap<T>(a.home, std::move(made));
    any.keep_alive = a.operation;
    any.numbering = a.numbering;
    return any;
}

}  // namespace quiver::doors
