// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/mtsm.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/operation.hpp"
#include "kernels/rank_links.hpp"

namespace quiver {
namespace {

/// The memory of a matrix as a block whose rows are its lines. Their length must have passed
/// fits_block.
template <class T>
BlockView<T> lines_of(const MatrixView<T>& matrix) {
    return {matrix.data, matrix.lines(), static_cast<int>(matrix.line_length()), matrix.ld,
            matrix.place};
}

template <class T>
std::string describe(const MatrixView<T>& matrix) {
    return std::to_string(matrix.rows) + " x " + std::to_string(matrix.cols) +
           (matrix.by_rows() ? ", row-major, ld " : ", column-major, ld ") +
           std::to_string(matrix.ld) + ", " + to_string(matrix.place);
}

template <class T>
void require_matrix(const MatrixView<T>& matrix, const char* operation, const char* name) {
    const auto details = [&] { return std::string(name) + ": " + describe(matrix); };
    require_shape(matrix.line_length() <= std::numeric_limits<int>::max(), operation,
                  "a matrix has lines of more than 2^31 - 1 elements", details);
    require_valid(lines_of(matrix), operation, name);
}

/// Checks all arguments except the place of X, which may be either for tsmm.
template <class A, class T>
void require_mtsm(const Context& ctx, const char* operation, bool adjoint,
                  const MatrixView<const A>& a, const MatrixView<const T>& x,
                  const MatrixView<T>& y) {
    require_matrix(a, operation, "A");
    require_matrix(x, operation, "X");
    require_matrix(y, operation, "Y");
    const auto all = [&] {
        return "A: " + describe(a) + "; X: " + describe(x) + "; Y: " + describe(y) +
               "; Context: " + to_string(ctx.place());
    };
    require_shape((a.empty() || a.place == ctx.place()) && (y.empty() || y.place == ctx.place()),
                  operation, "a matrix is not in the Context's place", all);
    require_shape((adjoint ? a.cols : a.rows) == y.rows && (adjoint ? a.rows : a.cols) == x.rows &&
                      x.cols == y.cols,
                  operation,
                  adjoint ? "Y is not (columns of A) x (columns of X), or A and X differ in rows"
                          : "Y is not (rows of A) x (columns of X), or X has not the columns of A "
                            "as rows",
                  all);
    require_shape(!overlap(lines_of(a), lines_of(y)) && !overlap(lines_of(x), lines_of(y)),
                  operation, "Y overlaps an operand", all);
}

/// Y = alpha op(A) X + beta Y for checked arguments, with X in the Context's place.
template <const auto& operation, class A, class T>
void run_mtsm(Context& ctx, T alpha, const MatrixView<const A>& a, const T* x, std::int64_t x_row,
              std::int64_t x_col, T beta, const MatrixView<T>& y) {
    if (y.empty()) {
        return;
    }
    constexpr bool adjoint = std::string_view(operation.name) == operations::mtsm_adjoint.name;
    dispatch<operation, A>(ctx, [&](const auto& kernel) {
        kernel(MtsmArgs<A, T>{y.rows, adjoint ? a.rows : a.cols, static_cast<int>(y.cols), alpha,
                              a.data, a.ld, a.by_rows() != adjoint, adjoint && is_complex_v<T>, x,
                              x_row, x_col, beta, y.data, y.row_step(), y.col_step()});
    });
}

/// Implements mtsm and mtsm_adjoint for views.
template <const auto& operation, class A, class T>
void multiply(Context& ctx, T alpha, const MatrixView<const A>& a, const MatrixView<const T>& x,
              T beta, const MatrixView<T>& y) {
    require_mtsm(ctx, operation.name,
                 std::string_view(operation.name) == operations::mtsm_adjoint.name, a, x, y);
    require_shape(x.empty() || x.place == ctx.place(), operation.name,
                  "a matrix is not in the Context's place",
                  [&] { return "X: " + describe(x) + "; Context: " + to_string(ctx.place()); });
    run_mtsm<operation>(ctx, alpha, a, x.data, x.row_step(), x.col_step(), beta, y);
}

/// Gathers in host memory all rows of a distributed block. `all` already has this rank's rows.
template <class T>
void gather_on_host(const Comm& comm, const RowMap& map, int width, T* all) {
    std::vector<int> counts;
    std::vector<int> firsts;
    for (int rank = 0; rank < map.ranks(); ++rank) {
        counts.push_back(static_cast<int>(map.local_rows(rank)));
        firsts.push_back(static_cast<int>(map.first_row(rank)));
    }
    MPI_Datatype row = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_contiguous(width, mpi_type<T>(), &row), "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&row), "MPI_Type_commit");
    const int code = MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts.data(),
                                    firsts.data(), row, comm.handle());
    check_mpi(MPI_Type_free(&row), "MPI_Type_free");
    check_mpi(code, "MPI_Allgatherv");
}

/// Throws ShapeError unless the distributed blocks fit the rows and columns of A, and all three the
/// Context. `map` distributes the rows that correspond to the columns of A. The ranks may differ in
/// the result, because each has its own rows of A.
template <class T>
void require_parts(const Context& ctx, const char* operation, const MatrixView<const T>& a,
                   const BlockView<const T>& of_rows, const RowMap& map,
                   const BlockView<const T>& of_columns) {
    require_matrix(a, operation, "A");
    require_shape(of_rows.rows == a.rows && map.global_rows() == a.cols &&
                      map.local_rows() == of_columns.rows && map.ranks() == ctx.comm().size() &&
                      of_rows.cols == of_columns.cols,
                  operation, "the distributed blocks do not fit A, or their widths differ", [&] {
                      return "A: " + describe(a) + "; " + std::to_string(of_rows.rows) +
                             " local rows for its rows, " + std::to_string(map.global_rows()) +
                             " global rows for its columns; widths " +
                             std::to_string(of_rows.cols) + " and " +
                             std::to_string(of_columns.cols);
                  });
    require_shape(map.global_rows() <= std::numeric_limits<int>::max(), operation,
                  "a distributed block has more than 2^31 - 1 rows", [&] { return describe(a); });
    const auto is_here = [&](const auto& view) {
        return view.empty() || view.place == ctx.place();
    };
    require_shape(is_here(a) && is_here(of_rows) && is_here(of_columns), operation,
                  "a matrix or block is not in the Context's place",
                  [&] { return "A: " + describe(a) + "; Context: " + to_string(ctx.place()); });
}

/// The number of elements of a distributed block.
std::size_t elements_of(const RowMap& map, int width) {
    return static_cast<std::size_t>(map.global_rows()) * static_cast<std::size_t>(width);
}

}  // namespace

template <class T>
void mtsm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<T> beta,
          MatrixView<T> y) {
    multiply<operations::mtsm>(ctx, alpha, a, x, beta, y);
}

template <class T>
void mtsm_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                  std::type_identity_t<MatrixView<const T>> a,
                  std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<T> beta,
                  MatrixView<T> y) {
    multiply<operations::mtsm_adjoint>(ctx, alpha, a, x, beta, y);
}

void mtsm(Context& ctx, float alpha, MatrixView<const half_t> a, MatrixView<const float> x,
          float beta, MatrixView<float> y) {
    multiply<operations::mtsm>(ctx, alpha, a, x, beta, y);
}
void mtsm(Context& ctx, float alpha, MatrixView<const bfloat16_t> a, MatrixView<const float> x,
          float beta, MatrixView<float> y) {
    multiply<operations::mtsm>(ctx, alpha, a, x, beta, y);
}
void mtsm_adjoint(Context& ctx, float alpha, MatrixView<const half_t> a, MatrixView<const float> x,
                  float beta, MatrixView<float> y) {
    multiply<operations::mtsm_adjoint>(ctx, alpha, a, x, beta, y);
}
void mtsm_adjoint(Context& ctx, float alpha, MatrixView<const bfloat16_t> a,
                  MatrixView<const float> x, float beta, MatrixView<float> y) {
    multiply<operations::mtsm_adjoint>(ctx, alpha, a, x, beta, y);
}

template <class T>
void mtsm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          const BlockVector<T>& x, std::type_identity_t<T> beta, BlockVector<T>& y) {
    mtsm<T>(ctx, alpha, a, x.row_map(), x.view(), beta, y.view());
}

template <class T>
void mtsm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          const RowMap& map, std::type_identity_t<BlockView<const T>> x,
          std::type_identity_t<T> beta, BlockView<T> y) {
    const auto product = [&](const BlockView<const T>& all) {
        multiply<operations::mtsm, T, T>(ctx, alpha, a, all, beta, y);
    };
    if (ctx.comm().size() == 1) {
        require_parts<T>(ctx, operations::mtsm.name, a, y, map, x);
        product(x);
        return;
    }
    RankLinks& links = ctx.service<RankLinks>();
    const bool on_device = ctx.place() == Place::device && links.halos_on_device();
    const int width = x.cols;
    const std::size_t count = elements_of(map, width);
    std::optional<Scratch> gathered;
    // An error of one rank must end the call on all ranks before they wait for each other's rows.
    ctx.comm().agree([&] {
        require_parts<T>(ctx, operations::mtsm.name, a, y, map, x);
        if (!on_device && count > 0) {
            gathered.emplace(ctx.memory(), MemoryKind::host, count * sizeof(T));
            copy(ctx, x,
                 BlockView<T>(gathered->template as<T>() + map.first_row() * width, x.rows, width,
                              width, Place::host));
        }
    });
    if (count == 0) {
        product(BlockView<const T>(nullptr, a.cols, width, width, ctx.place()));
    } else if (on_device) {
        const auto size = [](std::int64_t elements) {
            return static_cast<std::size_t>(elements) * sizeof(T);
        };
        const void* const all = links.gather_rows(ctx, map, x.data, size(x.ld), size(width));
        product({static_cast<const T*>(all), a.cols, width, width, Place::device});
    } else {
        gather_on_host(ctx.comm(), map, width, gathered->template as<T>());
        const LeafArray<T> all(
            ctx, BlockView<const T>(gathered->template as<T>(), a.cols, width, width));
        product({all.data(), a.cols, width, width, ctx.place()});
    }
}

template <class T>
void mtsm_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                  std::type_identity_t<MatrixView<const T>> a, const BlockVector<T>& x,
                  std::type_identity_t<T> beta, BlockVector<T>& y) {
    mtsm_adjoint<T>(ctx, alpha, a, x.view(), beta, y.row_map(), y.view());
}

template <class T>
void mtsm_adjoint(Context& ctx, std::type_identity_t<T> alpha,
                  std::type_identity_t<MatrixView<const T>> a,
                  std::type_identity_t<BlockView<const T>> x, std::type_identity_t<T> beta,
                  const RowMap& map, BlockView<T> y) {
    constexpr const auto& operation = operations::mtsm_adjoint;
    if (ctx.comm().size() == 1) {
        require_parts<T>(ctx, operation.name, a, x, map, y);
        multiply<operation, T, T>(ctx, alpha, a, x, beta, y);
        return;
    }
    const int width = y.cols;
    const std::size_t count = elements_of(map, width);
    std::optional<Scratch> partial;
    // An error of one rank must end the call on all ranks before the reduction.
    ctx.comm().agree([&] {
        require_parts<T>(ctx, operation.name, a, x, map, y);
        partial.emplace(ctx.memory(), memory_kind(ctx.place()), count * sizeof(T));
        multiply<operation, T, T>(
            ctx, alpha, a, x, T(0),
            BlockView<T>(partial->template as<T>(), a.cols, width, width, ctx.place()));
    });
    if (count == 0) {
        return;
    }
    T* const values = partial->template as<T>();
    const auto add_own_rows = [&](const T* sum, Place place) {
        if (!y.empty()) {
            add_scaled(
                ctx, BlockView<const T>(sum + map.first_row() * width, y.rows, width, width, place),
                T(beta), y);
        }
    };
    RankLinks& links = ctx.service<RankLinks>();
    if (ctx.place() == Place::device && links.sums_on_device(count * sizeof(T))) {
        sum_on_device(ctx, links, values, count);
        add_own_rows(values, Place::device);
    } else {
        reduce_to_host(ctx, values, count, Reduce::all_ranks,
                       [&](const T* sum) { add_own_rows(sum, Place::host); });
    }
}

template <class T>
void tsmm(Context& ctx, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> x,
          std::type_identity_t<MatrixView<const T>> c, std::type_identity_t<T> beta,
          MatrixView<T> y) {
    constexpr const char* operation = operations::tsmm_columns.name;
    require_mtsm(ctx, operation, false, x, c, y);
    require_shape(c.empty() || c.place == Place::host || ctx.place() == Place::device, operation,
                  "C is in device memory, but the Context works on the host",
                  [&] { return "C: " + describe(c); });
    const LeafArray<T> lines(ctx, lines_of(c));
    run_mtsm<operations::tsmm_columns, T, T>(ctx, alpha, x, lines.data(),
                                             c.by_rows() ? lines.ld() : 1,
                                             c.by_rows() ? 1 : lines.ld(), beta, y);
}

#define QUIVER_INSTANTIATE(T)                                                                    \
    template void mtsm(Context&, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>); \
    template void mtsm_adjoint(Context&, T, MatrixView<const T>, MatrixView<const T>, T,         \
                               MatrixView<T>);                                                   \
    template void tsmm(Context&, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>); \
    template void mtsm(Context&, T, MatrixView<const T>, const BlockVector<T>&, T,               \
                       BlockVector<T>&);                                                         \
    template void mtsm_adjoint(Context&, T, MatrixView<const T>, const BlockVector<T>&, T,       \
                               BlockVector<T>&);                                                 \
    template void mtsm(Context&, T, MatrixView<const T>, const RowMap&, BlockView<const T>, T,   \
                       BlockView<T>);                                                            \
    template void mtsm_adjoint(Context&, T, MatrixView<const T>, BlockView<const T>, T,          \
                               const RowMap&, BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
