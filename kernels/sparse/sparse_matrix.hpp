// SPDX-License-Identifier: BSD-3-Clause
// SparseMatrix: a square sparse matrix distributed by rows, and its product with blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "kernels/operator.hpp"

namespace quiver {

enum class Symmetry : std::uint8_t { general, symmetric, skew_symmetric, hermitian };

const char* to_string(Symmetry symmetry);

/// This rank's rows of a matrix in compressed rows with global column indices: row
/// map.first_row() + i has entries row_start[i] .. row_start[i + 1] - 1, columns ascending and
/// unique within a row. Both triangles are stored whatever `symmetry` says of the matrix.
template <class T>
struct CsrRows {
    RowMap map;
    std::int64_t global_cols = 0;
    Symmetry symmetry = Symmetry::general;
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;
    std::vector<T> value;

    std::int64_t nonzeros() const { return static_cast<std::int64_t>(column.size()); }
};

/// How the rows of a SparseMatrix are stored: compressed rows (CSR) or SELL-C-sigma. In the latter,
/// chunks of C rows are stored entry by entry, padded to their longest row, and rows are sorted by
/// length within windows of sigma rows to keep the padding small. The numbering of X and Y stays.
/// Source: Kreutzer, Hager, Wellein, Fehske, Bishop, SIAM J. Sci. Comput. 36, 2014.
///
/// `automatic` on a device takes sell, where the lanes of a warp read neighbouring entries: C = 32,
/// a warp, and the smallest sigma of 1, 8 C, 128 C that keeps the padding below 5%; compressed rows
/// if more than 50% would remain, as with a few long rows. On the host, real blocks that may be of
/// width 1 get sell with C of a vector register, a lane for a row (1.4 times the speed of
/// compressed rows), if the padding stays below 10%; sorted only if the width is said to be 1, for
/// wider blocks lose more by rows of X that are far apart than they gain. All others get compressed
/// rows. Each rank chooses for its own rows. Results do not depend on the format but for the
/// rounding of sums, on the host not even in that.
///
/// A device computes unsorted rows of sell in tiles that read few rows of X twice, where that
/// spares a quarter of what its L1 caches read or more: bricks of a grid, say, in the place of
/// lines. Rows stay together in runs of 16, and the numbering of X and Y stays here, too.
struct SparseFormat {
    enum Kind : std::uint8_t { automatic, compressed_rows, sell };
    Kind kind = automatic;
    /// C: a power of two, 1 to 256; 0: the library's choice.
    int chunk = 0;
    /// 1 (not sorted) or a multiple of C; 0: the library's choice.
    std::int64_t sigma = 0;
    /// Of the blocks to be multiplied; 0: not known.
    int width = 0;
    /// Rows of a tile on a device: a power of two, 32 to 4096; 1: rows in their order; 0: the
    /// library's choice.
    int tile = 0;
};

/// How one rank's rows are stored.
struct SparseStorage {
    /// Never automatic, chunk and sigma positive.
    SparseFormat format;
    /// Entries stored, those of the padding included.
    std::int64_t entries = 0;
};

/// How a SparseMatrix in this place will store these rows. No communication. Cost: one pass over
/// the columns; memory: a few numbers a row.
template <class T>
SparseStorage storage_of(const CsrRows<T>& rows, Place place, const SparseFormat& format = {});

/// Some of a matrix' memory.
struct MatrixArray {
    const char* name;
    void* data;
    std::size_t bytes;
};

/// Distributed square sparse matrix. The rows of this rank are held once, in the Context's place,
/// with local column indices: 0 .. local_rows - 1 are this rank's own entries of x, then come those
/// received from other ranks (the halo), ordered by owner and column. Indices are 32 bits wide
/// where they fit. Rows without halo entries are computed while the halo travels.
template <class T>
class SparseMatrix final : public Operator<T> {
  public:
    /// Plans the halo exchange and moves the rows to the Context's place. Collective. Throws
    /// ShapeError when the matrix is not square, InputError for a column out of range or a format
    /// that cannot be. Memory while it works: about twice that of the result.
    SparseMatrix(Context& ctx, CsrRows<T> rows, const SparseFormat& format = {});
    SparseMatrix(SparseMatrix&&) noexcept;
    SparseMatrix& operator=(SparseMatrix&&) noexcept;
    ~SparseMatrix() override;

    const RowMap& row_map() const override;
    std::int64_t global_nonzeros() const;
    std::int64_t local_nonzeros() const;
    /// Entries of x that this rank receives in one product, per column.
    std::int64_t halo_size() const;
    /// Rows of this rank that need entries of x from others.
    std::int64_t boundary_rows() const;
    Symmetry symmetry() const;
    /// How this rank's rows are stored: never automatic, chunk and sigma positive.
    const SparseFormat& format() const;
    /// Entries stored for each nonzero of this rank, 1 without padding.
    double padding() const;
    /// This rank's rows without the columns of other ranks, in host memory: what preconditioners
    /// are made of. No communication. Cost: one pass over the entries, copied from a device.
    CsrRows<T> diagonal_block(Context& ctx) const;

    /// Calls use(row, column, value) for this rank's entries, those of a row in their order: local
    /// rows, and columns as they are stored (own ones first, then the halo's). No communication.
    /// Cost: one pass over the entries, copied from a device.
    void for_each_entry(Context& ctx,
                        const std::function<void(std::size_t, std::int64_t, T)>& use) const;
    /// The memory that products read, in the Context's place: entries first, then what says where
    /// they belong. Whoever changes it changes the matrix.
    std::vector<MatrixArray> arrays() const;
    /// The rows of X that the last product has received from other ranks, halo_size() x width.
    BlockView<const T> received(int width) const;
    /// The last product again, from the halo that it has received: of the same X, without dots.
    /// Same bits. No communication, this rank alone may call it.
    void repeat(Context& ctx, BlockView<const T> x, BlockView<T> y,
                const ApplyOptions<T>& options = {});

    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    /// Y = alpha (A - shift) X + beta Y with column dots, in one pass over A, X and Y; see spmmv.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) override;

  private:
    struct Data;
    std::unique_ptr<Data> data_;
};

/// Y = alpha (A - shift) X + beta Y, with (Y, Y) and (X, Y) by columns in the same pass.
///
/// X, Y: local_rows x width, any width, in the Context's place, no overlap. beta = 0 overwrites Y.
/// Throws ShapeError. Cost: bytes nonzeros (sizeof(T) + 4) + sizeof(T) rows width (2, or 3 with
/// beta), flops 2 nonzeros width (8 for complex); one halo exchange, planned once; one all-reduce
/// when dots are wanted. Source: Kreutzer et al., IPDPS 2015 (fused block products).
template <class T>
void spmmv(Context& ctx, SparseMatrix<T>& a, std::type_identity_t<BlockView<const T>> x,
           BlockView<T> y, const std::type_identity_t<ApplyOptions<T>>& options = {}) {
    a.apply_fused(ctx, x, y, options);
}

}  // namespace quiver
