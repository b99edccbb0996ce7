// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/orth/tsqr.hpp"

#include <algorithm>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/orth/orthonormaliser.hpp"
#include "solvers/small_dense.hpp"
#include "solvers/small_dense_qr.hpp"

namespace quiver {
namespace {

constexpr int up_tag = 74;
constexpr int down_tag = 75;

/// Rows first .. first + count - 1.
template <class T>
SmallMatrix<T> rows_of(const SmallMatrix<T>& a, int first, int count) {
    SmallMatrix<T> result(count, a.cols());
    std::copy_n(a.data() + first * a.cols(), count * a.cols(), result.data());
    return result;
}

/// The first `count` columns.
template <class T>
SmallMatrix<T> columns_of(const SmallMatrix<T>& a, int count) {
    SmallMatrix<T> result(a.rows(), count);
    for (int i = 0; i < a.rows(); ++i) {
        std::copy_n(a.data() + i * a.cols(), count, result.data() + i * count);
    }
    return result;
}

template <class T>
void send(const Comm& comm, const SmallMatrix<T>& a, int to, int tag) {
    check_mpi(MPI_Send(a.data(), a.rows() * a.cols(), mpi_type<T>(), to, tag, comm.handle()),
              "MPI_Send");
}

/// Receives a matrix of n columns and at most n rows.
template <class T>
SmallMatrix<T> receive(const Comm& comm, int n, int from, int tag) {
    SmallMatrix<T> a(n, n);
    MPI_Status status;
    check_mpi(MPI_Recv(a.data(), n * n, mpi_type<T>(), from, tag, comm.handle(), &status),
              "MPI_Recv");
    int count = 0;
    check_mpi(MPI_Get_count(&status, mpi_type<T>(), &count), "MPI_Get_count");
    return rows_of(a, 0, count / n);
}

/// A matrix with ones on its diagonal and zeros elsewhere.
template <class T>
SmallMatrix<T> identity_of(int rows, int cols) {
    SmallMatrix<T> result(rows, cols);
    for (int i = 0; i < std::min(rows, cols); ++i) {
        result(i, i) = T(1);
    }
    return result;
}

/// D of R's shape such that R = D R' and the diagonal of R' is not negative.
template <class T>
SmallMatrix<T> signs_of(const SmallMatrix<T>& r) {
    SmallMatrix<T> d = identity_of<T>(r.rows(), r.cols());
    for (int i = 0; i < r.rows(); ++i) {
        const real_t<T> size = std::abs(r(i, i));
        if (size > real_t<T>(0)) {
            d(i, i) = r(i, i) / size;
        }
    }
    return d;
}

/// Combines the R of all ranks (each has up to n rows) by a binary tree. `r` becomes the n x n
/// factor R of all of them, stacked; returns this rank's part of the orthonormal factor of the
/// stack, with as many rows as its own R had. An R with missing rows is not padded with zeros: zero
/// rows would take a component of the orthonormal factor, about eps times the condition number, and
/// destroy the orthogonality of the rest.
template <class T>
SmallMatrix<T> factor_over_ranks(const Comm& comm, SmallMatrix<T>& r) {
    const int n = r.cols();
    const int rank = comm.rank();
    struct Level {
        int partner;
        int rows;          // rows of this rank's part
        SmallMatrix<T> q;  // the orthonormal factor of both parts, in the first columns
    };
    std::vector<Level> levels;
    int parent = -1;
    for (int step = 1; step < comm.size() && parent < 0; step *= 2) {
        if (rank % (2 * step) != 0) {
            parent = rank - step;
            send(comm, r, parent, up_tag);
        } else if (rank + step < comm.size()) {
            const SmallMatrix<T> theirs = receive<T>(comm, n, rank + step, up_tag);
            const int rows = r.rows();
            SmallMatrix<T> both(rows + theirs.rows(), n);
            std::copy_n(r.data(), rows * n, both.data());
            std::copy_n(theirs.data(), theirs.rows() * n, both.data() + rows * n);
            householder_qr<T>(both, 1, [&](SmallMatrix<T> of_both) {
                r = std::move(of_both);
                return identity_of<T>(r.rows(), n);
            });
            levels.push_back({rank + step, rows, std::move(both)});
        }
    }
    SmallMatrix<T> m;
    SmallMatrix<T> whole(n, n);
    if (parent >= 0) {
        m = receive<T>(comm, n, parent, down_tag);
    } else {
        m = signs_of(r);
        for (int i = 0; i < r.rows(); ++i) {
            for (int j = i; j < n; ++j) {
                whole(i, j) = multiply(conjugate(m(i, i)), r(i, j));
            }
        }
    }
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        const SmallMatrix<T> q = columns_of(level->q, m.rows());
        const SmallMatrix<T> both = product(q, m);
        send(comm, rows_of(both, level->rows, both.rows() - level->rows), level->partner, down_tag);
        m = rows_of(both, 0, level->rows);
    }
    comm.broadcast(whole.data(), static_cast<std::size_t>(n * n) * sizeof(T), 0);
    r = std::move(whole);
    return m;
}

/// The local factorisation by products: W, which has at least as many rows as columns, receives
/// orthonormal columns. Returns R with as many rows as there are columns; rows for columns that
/// only fill up W are zero.
template <class T>
SmallMatrix<T> factor_by_products(Context& ctx, BlockView<T> w) {
    const BlockView<const T> none(nullptr, w.rows, 0, 0, w.place);
    const OrthTask<T> task{.v = {none}, .q = {none}, .w = w, .reduce = Reduce::this_rank};
    SmallMatrix<T> r(w.cols, w.cols);
    try {
        OrthResult<T> own = Orthonormaliser<T>(ctx, task).run();
        std::copy_n(own.r.data(), own.columns * w.cols, r.data());
        const int have = complete(ctx, task, own.columns, w.cols, 0, 1, own.passes);
        return have < w.cols ? rows_of(r, 0, have) : r;
    } catch (const NumericalError&) {
        std::fill_n(r.data(), r.rows() * r.cols(), T(std::numeric_limits<real_t<T>>::quiet_NaN()));
        return r;
    }
}

}  // namespace

template <Scalar T>
SmallMatrix<T> tsqr(Context& ctx, BlockView<T> w, LocalQr local) {
    SmallMatrix<T> r(w.cols, w.cols);
    if (w.cols == 0) {
        return r;
    }
    if (local == LocalQr::automatic) {
        local = ctx.place() == Place::host ? LocalQr::householder : LocalQr::products;
    }
    const auto over_ranks = [&](SmallMatrix<T> own) {
        r = std::move(own);
        return factor_over_ranks(ctx.comm(), r);
    };
    if (local == LocalQr::householder) {
        const double elements = static_cast<double>(w.rows) * w.cols;
        const Ledger::Entry entry(ctx.ledger(), {"tsqr", dtype_v<T>, w.place, w.rows, w.cols,
                                                 w.cols, 4.0 * sizeof(T) * elements,
                                                 3 * multiply_add_flops_v<T> * elements * w.cols});
        householder_qr<T>(w, ctx.threads(), over_ranks);
        return r;
    }
    if (w.rows < w.cols) {
        // The Gram matrix of a block without full rank would lose half of the digits.
        SmallMatrix<T> few(static_cast<int>(w.rows), w.cols);
        copy(ctx, w, few.view());
        householder_qr<T>(few, 1, over_ranks);
        copy(ctx, few.view(), w);
        return r;
    }
    // The R of the products is not triangular if SVQB was used, so it is factored again.
    SmallMatrix<T> own = factor_by_products(ctx, w);
    householder_qr<T>(own, 1, over_ranks);
    tsmm(ctx, T(1), w.columns(0, own.rows()), own.view(), T(0), w);
    return r;
}

#define QUIVER_INSTANTIATE(T) template SmallMatrix<T> tsqr(Context&, BlockView<T>, LocalQr);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
