// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of Y = A X for a sparse A, and of packing the send buffer of its halo.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// Y(i, :) = X(row_i, :): packs the halo's send buffer. Y is contiguous, ld = cols.
template <class T>
struct GatherRowsArgs {
    std::int64_t rows;  // of Y
    int cols;
    std::int64_t own;  // rows of X
    const T* x;
    std::int64_t ldx;
    const std::int64_t* row;  // rows, in the place of the blocks
    T* y;

    /// row_i; 0 if a fault in memory has moved it out of X.
    constexpr std::int64_t row_of(std::int64_t i) const {
        const std::int64_t found = row[i];
        return static_cast<std::uint64_t>(found) < static_cast<std::uint64_t>(own) ? found : 0;
    }
};

/// bytes 2 sizeof(T) rows cols: one read and one write.
template <class T>
constexpr Cost cost(const GatherRowsArgs<T>& args) {
    return {args.rows, args.cols, args.cols,
            2.0 * sizeof(T) * static_cast<double>(args.rows) * args.cols, 0};
}

/// The rows of the slots of a sparse matrix. The slots of each run of 2^log_run stand for
/// consecutive rows; `narrow` (32 bits) or `wide` (64 bits) holds the first row of each run. If
/// both are null, slot s is row s.
struct SpmmvRowList {
    const std::int32_t* narrow;
    const std::int64_t* wide;
    int log_run;

    constexpr bool empty() const { return narrow == nullptr && wide == nullptr; }
    constexpr std::int64_t row_of(std::int64_t slot) const {
        if (empty()) {
            return slot;
        }
        const std::int64_t run = slot >> log_run;
        return (narrow != nullptr ? narrow[run] : wide[run]) + (slot - (run << log_run));
    }
};

/// See kernels/sparse/product_sums.hpp.
struct SpmmvSums;

/// Flags for the sums that a product on a device forms besides the plain, mixed and square
/// checksums of Y.
enum SpmmvSummed : int {
    spmmv_weighs_y = 1,  // Y with the given weights
    spmmv_weighs_x = 2,  // X with the given weights, and the squares of X
    spmmv_plain_x = 4,   // the plain and mixed checksums of X; only with spmmv_weighs_x
    spmmv_dots_xy = 8    // the dots x^H y
};

/// The weights of the checksums that a kernel forms, and the addresses of the sums; see SpmmvSums.
struct SpmmvSumsArgs {
    const double* weights;
    double* x;
    double* y;
    double* xy;
    std::int64_t line;  // real numbers of a row, also of columns that this kernel does not compute
    int log_chunk;
    int adds;  // 1: adds to the stored sums; 0: overwrites them
};

/// For every slot s = 0 .. rows - 1, which stands for row i = row_of(s): Y(i,:) = alpha ((A X)(i,:)
/// - shift X(i,:)) + beta Y(i,:), and partial column dots over these rows. Shifts and dots with X
/// need x_rows = y_rows. The slots are grouped into chunks of `chunk`, a power of two: entry k of
/// slot s is at start[s / chunk] + k chunk + s % chunk, below start[s / chunk + 1]; a column of -1
/// is padding. chunk = 1 gives compressed rows without padding. Columns below x_rows are rows of X,
/// the others rows of halo (ld = width). The indices have 32 bits if column64 is null.
///
/// On a device, slots may also stand for pieces of rows: row_of(s) = y_rows + p is piece p, whose
/// plain sum (without alpha, shift, beta, dots and checksums) is stored in row p of `pieces` (ld =
/// width). A later product with `pieces` as its halo adds the pieces of each row. Kernels of a
/// device read row 0 of X even if no entry refers to it; without rows of X, `x` points to `width`
/// numbers.
///
/// With `columns` > 0 the leaf checks every element of list, start, full and columns between its
/// load and its use. Whatever values these have, and whenever they change, the leaf then reads and
/// writes nothing outside of the arrays and blocks; rows with wrong indices use other rows of X,
/// miss entries, or are not written.
template <class T>
struct SpmmvArgs {
    std::int64_t rows;  // slots
    SpmmvRowList list;
    int tile;  // slots that share rows of X, a power of two; 0: unknown
    int chunk;
    const std::int64_t* start;  // of each chunk, and the end of the last one
    const std::int32_t* full;   // per chunk: no slot is padded below this k; chunk > 1 only
    std::int64_t entries;       // number of entries of all slots, with padding
    std::int64_t stored;        // number of entries in memory; used with `columns`
    int width;
    std::int64_t x_rows;   // rows of X, and columns of the matrix that belong to this rank
    std::int64_t y_rows;   // rows of Y
    std::int64_t columns;  // number of valid columns: x_rows, and the halo; 0: not checked
    const std::int32_t* column32;
    const std::int64_t* column64;
    const T* value;
    T alpha, beta;
    T shift;
    const T* shifts;  // width, in the place of the blocks, or null
    const T* x;       // x_rows x width
    std::int64_t ldx;
    const T* halo;
    T* y;  // y_rows x width
    std::int64_t ldy;
    T* dot_yy;        // width, overwritten, or null
    T* dot_xy;        // width, overwritten, or null
    T* dot_xx;        // width, overwritten, or null
    SpmmvSums* sums;  // or null; needs `columns` and, on a device, no dots
    T* pieces;        // piece_count x width, or null
    std::int64_t piece_count;
    bool apart;  // the matrix stores its long rows apart from the others, in slots of their own

    constexpr std::int64_t row_of(std::int64_t slot) const { return list.row_of(slot); }
    constexpr bool is_row(std::int64_t row) const {
        return static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(y_rows);
    }
    constexpr bool is_row_or_piece(std::int64_t row) const {
        return static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(y_rows + piece_count);
    }
    /// The offset to use: with checks, the nearest one within the entries.
    constexpr std::int64_t checked_offset(std::int64_t offset) const {
        return columns == 0 ? offset : offset < 0 ? 0 : offset > stored ? stored : offset;
    }
    /// The column to use: with checks, -1 (padding) in place of a column that is too large.
    constexpr std::int64_t checked_column(std::int64_t column) const {
        return columns == 0 || column < columns ? column : -1;
    }
};

/// The cost of the whole product with its `nonzeros` (without padding): bytes nonzeros (sizeof(T) +
/// 4, or 8 with 64-bit indices) + sizeof(T) (x_rows + y_rows) width, plus sizeof(T) y_rows width if
/// beta is not 0; flops 2 nonzeros width (8 for complex).
template <class T>
constexpr Cost cost(const SpmmvArgs<T>& args, std::int64_t nonzeros) {
    const auto entries = static_cast<double>(nonzeros);
    const double entry = sizeof(T) + (args.column64 != nullptr ? 8.0 : 4.0);
    const auto reads_and_writes = static_cast<double>(args.beta == T(0) ? 1 : 2);
    const double rows =
        static_cast<double>(args.x_rows) + reads_and_writes * static_cast<double>(args.y_rows);
    return {args.y_rows, 0, args.width, entries * entry + sizeof(T) * rows * args.width,
            flops_per_multiply_add<T> * entries * args.width};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void spmmv(int threads, const SpmmvArgs<T>& args);
template <class T>
void gather_rows(int threads, const GatherRowsArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
std::size_t workspace_bytes(const Context& ctx, const SpmmvArgs<T>& args);
/// `beside_others`: the launch consists of several waves of blocks, so that a kernel on another
/// stream can start between them.
template <class T>
void spmmv(Context& ctx, const SpmmvArgs<T>& args, void* workspace, bool beside_others = false);
template <class T>
void gather_rows(Context& ctx, const GatherRowsArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver
