// SPDX-License-Identifier: BSD-3-Clause
// SparseMatrix: a sparse matrix distributed by rows, and its product with blocks.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// A caller's compressed rows of this rank, in host memory or on the Context's device. row_start
/// has one entry more than there are rows and may begin with any number; columns are global.
template <class T, class Index>
struct CsrArrays {
    std::span<const Index> row_start;
    std::span<const Index> column;
    std::span<const T> value;
    Place place = Place::host;
    /// The distribution of the columns, which is that of the rows of X. None: a square matrix, with
    /// the distribution of its rows.
    std::optional<RowMap> column_map = std::nullopt;
};

enum class Symmetry : std::uint8_t { general, symmetric, skew_symmetric, hermitian };

const char* to_string(Symmetry symmetry);

/// This rank's rows of a matrix in compressed rows with global column indices: row map.first_row()
/// + i has entries row_start[i] .. row_start[i + 1] - 1, with ascending and unique columns within a
/// row. Both triangles are stored for every `symmetry`.
template <class T>
struct CsrRows {
    RowMap map;
    std::int64_t global_cols = 0;
    Symmetry symmetry = Symmetry::general;
    std::vector<std::int64_t> row_start{0};
    std::vector<std::int64_t> column;
    std::vector<T> value;
    /// The distribution of the columns, which is that of the rows of X. None: the distribution of
    /// the rows if the matrix is square, else as even as possible.
    std::optional<RowMap> column_map = std::nullopt;

    std::int64_t nonzeros() const { return static_cast<std::int64_t>(column.size()); }
    bool is_square() const { return global_cols == map.global_rows(); }
    /// column_map, or the distribution that stands for none. Throws InputError for a negative
    /// global_cols.
    RowMap domain_map() const {
        return column_map ? *column_map : is_square() ? map : map.evenly(global_cols);
    }
};

/// The storage format of the rows of a SparseMatrix: compressed rows (CSR) or SELL-C-sigma.
/// SELL-C-sigma stores chunks of C rows entry by entry, padded to the longest row of the chunk, and
/// sorts the rows by length within windows of sigma rows to reduce the padding. The numbering of X
/// and Y does not change.
/// Source: Kreutzer, Hager, Wellein, Fehske, Bishop, SIAM J. Sci. Comput. 36, 2014.
///
/// On a device, `automatic` selects sell, so that the lanes of a warp read adjacent entries: C =
/// 32, a warp, and the smallest sigma of 1, 8 C, 128 C that keeps the padding below 5%. If a few
/// long rows would pad the others by more than 50%, or would take longer than all others, rows of
/// more than 64 entries (or twice the average) are stored apart, as compressed rows; those of more
/// than 512 entries are cut into pieces that many threads compute, and whose sums are added in a
/// fixed order. Without such rows it selects compressed rows if the padding would exceed 50%. On
/// the host, real blocks whose width is known to be 1 get sell with C = the lanes of a vector
/// register, one lane per row, and the smallest sigma as on a device, if the padding stays below
/// 10%. Everything else gets compressed rows: with AVX2 or AVX-512 they have 1.3 to 2 times the
/// speed of sell for 2 to 8 columns, and 0.8 to 1.2 times for one. Each rank chooses for its own
/// rows. The format affects results only by the rounding of sums; on the host only those of a
/// single column, on processors with AVX-512.
///
/// A device computes unsorted rows of sell in tiles that reuse rows of X (bricks of a grid, for
/// instance, instead of lines), if that saves at least a quarter of the rows that its L1 caches
/// read. Rows stay together in runs of 16, and the numbering of X and Y does not change.
struct SparseFormat {
    enum Kind : std::uint8_t { automatic, compressed_rows, sell };
    Kind kind = automatic;
    /// C: a power of two, 1 to 256; 0: the library's choice.
    int chunk = 0;
    /// 1 (not sorted) or a multiple of C; 0: the library's choice.
    std::int64_t sigma = 0;
    /// Width of the blocks to be multiplied; 0: unknown.
    int width = 0;
    /// Rows of a tile on a device: a power of two, 32 to 4096; 1: rows in natural order; 0: the
    /// library's choice.
    int tile = 0;
};

/// The actual storage of one rank's rows.
struct SparseStorage {
    /// Never automatic; chunk and sigma are positive. Not for rows that are stored apart.
    SparseFormat format;
    /// Number of stored entries of the matrix, padding included.
    std::int64_t entries = 0;
    /// Rows that are stored apart, as compressed rows.
    std::int64_t long_rows = 0;
};

/// The storage that a SparseMatrix in this place will use for these rows. No communication. Cost:
/// one pass over the columns. Memory: a few numbers per row.
template <class T>
SparseStorage storage_of(const CsrRows<T>& rows, Place place, const SparseFormat& format = {});

struct SpmmvSums;

/// One array of a matrix in memory.
struct MatrixArray {
    const char* name;
    void* data;
    std::size_t bytes;
};

/// Distributed sparse matrix, square or rectangular. Y has the distribution range_map() and X has
/// domain_map(). The rows of this rank are held once, in the Context's place, with local column
/// indices: 0 .. domain_map().local_rows() - 1 are this rank's own rows of X, followed by the rows
/// received from other ranks (the halo), sorted by owner. Indices have 32 bits if they fit. Rows
/// without halo entries are computed while the halo is in flight.
///
/// Solvers and everything else that takes an Operator need equal distributions of X and Y.
/// row_map() throws ShapeError, on all ranks, if they differ; so do the functions below that need
/// equal distributions.
template <class T>
class SparseMatrix final : public Operator<T> {
  public:
    /// Plans the halo exchange and moves the rows to the Context's place. Collective. Throws
    /// ShapeError for maps that do not fit the matrix or the Context, or a symmetry other than
    /// general without a square matrix; InputError for a column out of range or an invalid format.
    /// Peak memory: about twice the result.
    SparseMatrix(Context& ctx, CsrRows<T> rows, const SparseFormat& format = {});
    /// A matrix of a caller's arrays, whose columns may have any order; duplicates are summed.
    /// Index: 32 or 64 bits. Collective. On one rank whose Context has a device, the device
    /// checks, arranges and stores arrays of either place whose columns ascend in each row without
    /// duplicates. It copies row_start to the host if rows must be stored apart or windows of more
    /// than 4096 rows must be sorted, and row_start and the columns if a sample shows that tiles
    /// may be useful, which only a square matrix has. All other arrays pass through host memory.
    /// All ways give the same matrix. The arrays must not change before the Context's stream has
    /// passed this call. Throws ShapeError and InputError as rows_from_csr.
    template <class Index>
    static SparseMatrix from_csr(Context& ctx, const RowMap& map, Symmetry symmetry,
                                 const CsrArrays<T, Index>& csr, const SparseFormat& format = {});
    /// Replaces the values of this rank's entries; rows, columns, storage and symmetry() stay. The
    /// new values must have the same symmetry, which is not checked. `value`: one for each entry of
    /// the arrays from which the matrix was made, in their order (for an adjoint: in the order of
    /// its rows, with ascending columns), in host memory or on the Context's device. Duplicates are
    /// summed again. After from_csr() with unsorted columns the matrix keeps their order (8 bytes
    /// per entry of host memory) and sorts new values on the host. Preconditioners, factorisations,
    /// checksums and adjoints that were made before keep the former values; but an adjoint that
    /// shares the memory of this matrix changes with it.
    /// Collective. Throws ShapeError for another number of values or another place, InputError for
    /// a value that is not finite; the matrix then keeps all values. Cost: one pass over the values
    /// and columns. Memory: 8 bytes per row, and a copy of host values on a device.
    void replace_values(Context& ctx, std::span<const T> value, Place place = Place::host);
    /// A matrix that was moved from may be destroyed and assigned to; any other use throws
    /// InputError.
    SparseMatrix(SparseMatrix&&) noexcept;
    SparseMatrix& operator=(SparseMatrix&&) noexcept;
    ~SparseMatrix() override;

    /// The distribution of the rows of X and of Y. Throws ShapeError if X and Y have different
    /// ones.
    const RowMap& row_map() const override;
    /// The distribution of the rows of the matrix and of Y.
    const RowMap& range_map() const;
    /// The distribution of the columns of the matrix and of the rows of X.
    const RowMap& domain_map() const;
    std::int64_t global_nonzeros() const;
    std::int64_t local_nonzeros() const;
    /// Rows of X that this rank receives in one product.
    std::int64_t halo_size() const;
    /// Rows of this rank that need rows of X from other ranks.
    std::int64_t boundary_rows() const;
    Symmetry symmetry() const;
    /// The storage format of this rank's rows: never automatic; chunk and sigma are positive.
    const SparseFormat& format() const;
    /// Stored entries per nonzero of this rank; 1 without padding.
    double padding() const;
    /// This rank's rows without the columns of other ranks, in host memory, for preconditioners. No
    /// communication. Cost: one pass over the entries; entries on a device are copied first. Throws
    /// as row_map().
    CsrRows<T> diagonal_block(Context& ctx) const;

    /// The blocks of `size` consecutive rows of this rank on the diagonal, in the matrix's place,
    /// each row by row and without gaps; rows of the identity complete the last block. Throws as
    /// row_map(), and ShapeError for a Context in another place. No communication. Cost: one pass
    /// over the entries; on a device the work is enqueued.
    Buffer diagonal_blocks(Context& ctx, int size) const;
    /// The matrix with such blocks, distributed by `map`, and without other entries: `blocks` as
    /// diagonal_blocks() returns them, in the Context's place. The rows and columns beyond the last
    /// row are omitted. Collective. On a device, peak memory is about 3 times that of `blocks`.
    static SparseMatrix from_diagonal_blocks(Context& ctx, const RowMap& map, int size,
                                             Buffer blocks);

    /// Calls use(row, column, value) for this rank's entries, those of a row in order. Rows are
    /// local; columns have the stored numbering (those of domain_map() first, then the halo).
    /// Throws NumericalError, on this rank alone, if an index is out of range, which means a fault
    /// in memory. No communication. Cost: one pass over the entries; entries on a device are copied
    /// first.
    void for_each_entry(Context& ctx,
                        const std::function<void(std::size_t, std::int64_t, T)>& use) const;
    /// A^H, distributed by domain_map(), as a matrix of its own: each entry is conjugated and sent
    /// to the rank of its column, once. Products with A^H are then products of rows like those with
    /// A: same speed, no atomic additions, the same bits in every run. Collective. If A is declared
    /// Hermitian, or real and symmetric, with equal distributions of X and Y, A^H is A: the result
    /// shares its memory (`format` is ignored), replace_values() of either changes both, and there
    /// is no communication. Otherwise the cost is one product of width 2, one pass over the entries
    /// and one exchange of all entries that other ranks need, and the result takes the memory of A
    /// once more. Peak memory besides A and the result: about 40 bytes per entry for double, 56 for
    /// complex double. Throws MemoryError.
    SparseMatrix adjoint(Context& ctx, const SparseFormat& format = {});
    /// The arrays that products read, in the Context's place: entries first, then the index arrays.
    /// Writing to them changes the matrix.
    std::vector<MatrixArray> arrays() const;
    /// apply_fused() without dots, which also forms the checksums that `sums` requests. On a device
    /// the checksums are ready in stream order. On the host the product also injects the fault that
    /// `sums` describes. Without a fault Y has the bits of apply_fused(). Requires a living handle
    /// of check_indices(). For solvers/abft.
    void apply_summed(Context& ctx, BlockView<const T> x, BlockView<T> y,
                      const ApplyOptions<T>& options, SpmmvSums& sums);
    /// While the returned handle lives, products check the range of each index before they use it.
    /// A product with wrong indices then has wrong rows, but it reads and writes no other memory.
    /// Cost: each index is compared once more; not measured. For solvers/abft, which find and
    /// repair wrong products.
    std::shared_ptr<const void> check_indices();
    /// The rows of X that the last product received from other ranks, halo_size() x width.
    BlockView<const T> received(int width) const;
    /// Repeats the last product with the halo that it received, for the same X and without dots. Y
    /// gets the same bits. No communication; one rank alone may call it. sums: as for
    /// apply_summed(), or null.
    void repeat(Context& ctx, BlockView<const T> x, BlockView<T> y,
                const ApplyOptions<T>& options = {}, SpmmvSums* sums = nullptr);

    void apply(Context& ctx, BlockView<const T> x, BlockView<T> y) override;
    /// Y = alpha (A - shift) X + beta Y with column dots, in one pass over A, X and Y; see spmmv.
    void apply_fused(Context& ctx, BlockView<const T> x, BlockView<T> y,
                     const ApplyOptions<T>& options) override;
    void prepare(Context& ctx, std::span<const int> widths, bool dots = false) override;

  private:
    struct Data;
    /// Without rows.
    SparseMatrix(Context& ctx, const RowMap& range, const RowMap& domain, Symmetry symmetry);
    explicit SparseMatrix(std::shared_ptr<Data> data);
    Data& data() const;
    void product(Context& ctx, BlockView<const T> x, BlockView<T> y, const ApplyOptions<T>& options,
                 SpmmvSums* sums);
    std::shared_ptr<Data> data_;  // the adjoint of a Hermitian matrix has the same
};

/// Y = alpha (A - shift) X + beta Y, with the column dots (Y, Y), (X, Y) and (X, X) in the same
/// pass.
///
/// X: this rank's rows of a.domain_map() x width, Y: those of a.range_map() x width, any width, in
/// the Context's place, no overlap. beta = 0 overwrites Y. Throws ShapeError, also for a shift or
/// dots with X if these two maps differ. Cost: bytes nonzeros (sizeof(T) + 4) + sizeof(T) rows
/// width (2, or 3 with beta), flops 2 nonzeros width (8 for complex); one halo exchange, planned
/// once; one all-reduce if dots are requested. Source: Kreutzer et al., IPDPS 2015 (fused block
/// products).
template <class T>
void spmmv(Context& ctx, SparseMatrix<T>& a, std::type_identity_t<BlockView<const T>> x,
           BlockView<T> y, const std::type_identity_t<ApplyOptions<T>>& options = {}) {
    a.apply_fused(ctx, x, y, options);
}

/// The same for a real A and complex blocks: one product with blocks of twice the width, the real
/// and the imaginary parts. alpha, beta and shifts must be real; InputError otherwise. dot_yy and
/// dot_xx come with the product; dot_xy takes a pass over X and Y, and one more all-reduce. Cost:
/// that of a real product of width 2 width, which is half of the flops of a complex A.
template <class R>
requires std::is_floating_point_v<R>
void spmmv(Context& ctx, SparseMatrix<R>& a,
           std::type_identity_t<BlockView<const std::complex<R>>> x,
           std::type_identity_t<BlockView<std::complex<R>>> y,
           const std::type_identity_t<ApplyOptions<std::complex<R>>>& options = {});

}  // namespace quiver
