// SPDX-License-Identifier: BSD-3-Clause
// Checks of the rows that make a sparse matrix, and of the arguments of its products. Private to
// kernels/sparse/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "blockvec/shape.hpp"
#include "kernels/operation.hpp"
#include "kernels/operations/spmmv.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Throws ShapeError, on this rank, unless offsets, columns and values fit the local rows.
template <class T>
void require_offsets(const CsrRows<T>& rows) {
    const auto local_rows = static_cast<std::size_t>(rows.map.local_rows());
    if (rows.row_start.size() != local_rows + 1 || rows.row_start.front() != 0 ||
        !std::is_sorted(rows.row_start.begin(), rows.row_start.end()) ||
        rows.row_start.back() != rows.nonzeros() || rows.column.size() != rows.value.size()) {
        throw ShapeError("sparse matrix: row offsets, columns and values do not match " +
                         std::to_string(local_rows) + " rows");
    }
}

/// Throws, on this rank: ShapeError unless rows and columns fit their maps and the communicator, or
/// if a rectangular matrix is declared symmetric or Hermitian; InputError for a column out of
/// range.
template <class T>
void check_rows(const Comm& comm, const CsrRows<T>& rows, int threads) {
    const RowMap& map = rows.map;
    const auto local_rows = static_cast<std::size_t>(map.local_rows());
    if (map.ranks() != comm.size() || map.rank() != comm.rank()) {
        throw ShapeError("sparse matrix: the row map is that of rank " +
                         std::to_string(map.rank()) + " of " + std::to_string(map.ranks()) +
                         ", but this is rank " + std::to_string(comm.rank()) + " of " +
                         std::to_string(comm.size()));
    }
    require_offsets(rows);
    const RowMap domain = rows.domain_map();
    if (domain.ranks() != map.ranks() || domain.rank() != map.rank() ||
        domain.global_rows() != rows.global_cols) {
        throw ShapeError("sparse matrix: the map of the columns has " +
                         std::to_string(domain.global_rows()) + " rows on " +
                         std::to_string(domain.ranks()) + " ranks, but the matrix has " +
                         std::to_string(rows.global_cols) + " columns on " +
                         std::to_string(map.ranks()) + " ranks");
    }
    if (!rows.is_square() && rows.symmetry != Symmetry::general) {
        throw ShapeError(std::string("sparse matrix: ") + std::to_string(map.global_rows()) +
                         " rows and " + std::to_string(rows.global_cols) + " columns; a " +
                         to_string(rows.symmetry) + " matrix is square");
    }
    bool fits = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : fits)
    for (std::size_t k = 0; k < rows.column.size(); ++k) {
        fits = fits && rows.column[k] >= 0 && rows.column[k] < rows.global_cols;
    }
    for (std::size_t i = 0; i < local_rows && !fits; ++i) {
        for (auto k = static_cast<std::size_t>(rows.row_start[i]);
             k < static_cast<std::size_t>(rows.row_start[i + 1]); ++k) {
            if (rows.column[k] < 0 || rows.column[k] >= rows.global_cols) {
                throw InputError("sparse matrix: row " +
                                 std::to_string(map.first_row() + static_cast<std::int64_t>(i)) +
                                 " has column " + std::to_string(rows.column[k]) +
                                 ", but the matrix has columns 0 .. " +
                                 std::to_string(rows.global_cols - 1));
            }
        }
    }
}

/// Throws ShapeError unless X, Y, shifts and dots fit the matrix; see spmmv().
template <class T>
void check_arguments(const Context& ctx, Place place, const RowMap& map, const RowMap& domain,
                     BlockView<const T> x, BlockView<T> y, const ApplyOptions<T>& options) {
    constexpr const char* name = operations::spmmv.name;
    require_valid(x, name, "X");
    require_valid(y, name, "Y");
    const auto both = [&] { return "X: " + describe(x) + "; Y: " + describe(y); };
    require_shape(ctx.place() == place && x.place == place && y.place == place, name,
                  "Context, matrix and blocks must be in one place", [&] {
                      return std::string("Context: ") + to_string(ctx.place()) +
                             "; matrix: " + to_string(place) + "; " + both();
                  });
    require_shape(
        ctx.comm().size() == map.ranks() && ctx.comm().rank() == map.rank(), name,
        "the Context must have the ranks of the matrix",
        [&] { return std::to_string(ctx.comm().size()) + " and " + std::to_string(map.ranks()); });
    const bool aligned = map == domain;
    require_shape(
        aligned || (options.shift.empty() && options.dot_xy.empty() && options.dot_xx.empty()),
        name, "a shift and dots with X need a square matrix and one distribution of X and Y", [&] {
            return std::to_string(map.global_rows()) + " x " +
                   std::to_string(domain.global_rows()) + "; " + both();
        });
    require_shape(x.rows == domain.local_rows() && y.rows == map.local_rows(), name,
                  aligned ? "X and Y must have this rank's rows of the matrix"
                          : "X must have this rank's columns of the matrix, and Y its rows",
                  [&] {
                      return (aligned ? "" : std::to_string(domain.local_rows()) + " columns, ") +
                             std::to_string(map.local_rows()) + " rows; " + both();
                  });
    require_shape(x.cols == y.cols, name, "X and Y must have the same width", both);
    require_shape(!overlap(x, y), name, "X and Y must not overlap", both);
    const auto width = static_cast<std::size_t>(x.cols);
    require_shape(options.shift.size() <= 1 || options.shift.size() == width, name,
                  "there must be no shift, one, or one per column",
                  [&] { return std::to_string(options.shift.size()) + " shifts; " + both(); });
    const auto fits = [&](std::size_t size) { return size == 0 || size == width; };
    require_shape(
        fits(options.dot_yy.size()) && fits(options.dot_xy.size()) && fits(options.dot_xx.size()),
        name, "there must be one dot per column", [&] {
            return std::to_string(options.dot_yy.size()) + ", " +
                   std::to_string(options.dot_xy.size()) + " and " +
                   std::to_string(options.dot_xx.size()) + " dots; " + both();
        });
}

}  // namespace quiver
