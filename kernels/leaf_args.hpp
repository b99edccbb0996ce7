// SPDX-License-Identifier: BSD-3-Clause
// The plain arguments of the leaves: pointers, sizes, strides and scalars, the same for the
// reference, host and CUDA forms of an operation. The public faces check them; the leaves do not.
#pragma once

#include <cstdint>

namespace quiver {

/// C = alpha A^H B + beta C over the rows given; beta = 0 does not read C.
template <class T>
struct TsmttsmArgs {
    std::int64_t rows;
    int m, n;
    T alpha;
    const T* a;  // rows x m
    std::int64_t lda;
    const T* b;  // rows x n
    std::int64_t ldb;
    T beta;
    T* c;  // m x n
    std::int64_t ldc;
};

/// Y = alpha X C + beta Y; beta = 0 does not read Y. x == y with ldx == ldy: in place, and then m
/// and n may differ. With d: Y = alpha X C + beta Y D, m and beta are not 0 and x is not y.
template <class T>
struct TsmmArgs {
    std::int64_t rows;
    int m, n;
    T alpha;
    const T* x;  // rows x m
    std::int64_t ldx;
    const T* c;  // m x n
    std::int64_t ldc;
    T beta;
    T* y;  // rows x n
    std::int64_t ldy;
    const T* d = nullptr;  // n x n, or null
    std::int64_t ldd = 0;
};

/// Y = alpha B X + beta Y; beta = 0 does not read Y. B(i, j), or its conjugate where `conjugated`,
/// is a[i lda + j] (along_sum) or a[j lda + i].
template <class A, class T>
struct MtsmArgs {
    std::int64_t m, k;
    int n;
    T alpha;
    const A* a;  // B: m x k
    std::int64_t lda;
    bool along_sum, conjugated;
    const T* x;  // k x n
    std::int64_t x_row, x_col;
    T beta;
    T* y;  // m x n
    std::int64_t y_row, y_col;
};

/// G = R^H R and S = R^-1, upper triangles with zeros below; all n x n.
template <class T>
struct GramFactorArgs {
    int n;
    const T* g;
    std::int64_t ldg;
    T* r;
    std::int64_t ldr;
    T* s;
    std::int64_t lds;
};

/// The update, without d, and G = Y^H Y of its result.
template <class T>
struct TsmmGramArgs {
    TsmmArgs<T> update;
    T* g;  // n x n
    std::int64_t ldg;
};

/// Y(:, j) = alpha_j X(:, j) + beta_j Y(:, j). Where the pointer is null the scalar holds for all
/// columns. A zero beta does not read Y, a zero alpha does not read X. x may equal y.
template <class T>
struct AxpbyArgs {
    std::int64_t rows;
    int cols;
    T alpha;
    const T* alphas;  // cols, in the place of the blocks, or null
    const T* x;
    std::int64_t ldx;
    T beta;
    const T* betas;  // cols, in the place of the blocks, or null
    T* y;
    std::int64_t ldy;
};

/// result_j = x_j^H y_j over the rows given.
template <class T>
struct DotsArgs {
    std::int64_t rows;
    int cols;
    const T* x;
    std::int64_t ldx;
    const T* y;
    std::int64_t ldy;
    T* result;  // cols
};

/// Y = X with a change of precision.
template <class U, class T>
struct ConvertArgs {
    std::int64_t rows;
    int cols;
    const U* x;
    std::int64_t ldx;
    T* y;
    std::int64_t ldy;
};

/// Y(:, j) = X(:, source_j). x == y with ldx == ldy: in place, any source.
template <class T>
struct GatherColumnsArgs {
    std::int64_t rows;
    int x_cols, y_cols;
    const T* x;
    std::int64_t ldx;
    const int* source;  // y_cols, in the place of the blocks
    T* y;
    std::int64_t ldy;
};

/// X(i, j) = value.
template <class T>
struct FillArgs {
    std::int64_t rows;
    int cols;
    T value;
    T* x;
    std::int64_t ldx;
};

/// The second weight of a chunk's row is this / 2^16: rows in an order without pattern, 1 to 2^16
/// and none twice, so that sums with it do not cancel where those of a matrix' columns do.
constexpr std::uint32_t mixed_row(std::uint32_t row) {
    row = row * 0x9e3bu & 0xffffu;
    row ^= row >> 8;
    row = row * 0x6f4bu & 0xffffu;
    row ^= row >> 7;
    return row + 1;
}
inline constexpr double mixed_row_unit = 0x1p-16;
/// Of a row from which `left` rows of its chunk are left, itself included: 1 + left (left - 1) / 2,
/// which sums of sums give without a product. See ChecksumWord.
constexpr std::uint32_t word_factor(std::uint32_t left) {
    return 1 + left * (left - 1) / 2;
}

/// See checksum in kernels/checksum.hpp; S is checksum_t<T>.
template <class T, class S>
struct ChecksumArgs {
    std::int64_t rows;
    int cols;
    int log_chunk;
    const T* x;
    std::int64_t ldx;
    const S* weights;  // rows x 2, or null
    std::int64_t ldw;
    S* sums;               // (chunks 3) x cols, or (chunks 5) x cols with weights
    std::uint64_t* words;  // (chunks 2) x (cols reals), or null
    int block;             // columns that are summed as if there were no others
};

/// See parity in kernels/checksum.hpp.
struct ParityArgs {
    const void* data;
    std::int64_t bytes;
    std::uint64_t* parity;  // pieces x 17
};

/// See fill_random in kernels/random.hpp.
template <class T>
struct RandomArgs {
    std::int64_t rows;
    int cols;
    std::uint64_t seed;
    std::int64_t first_row;
    int first_column;
    T* x;
    std::int64_t ldx;
};

/// Y(i, :) = X(row_i, :): the halo's send buffer. Y is contiguous, ld = cols.
template <class T>
struct GatherRowsArgs {
    std::int64_t rows;  // of Y
    int cols;
    const T* x;
    std::int64_t ldx;
    const std::int64_t* row;  // rows, in the place of the blocks
    T* y;
};

/// For every slot s = 0 .. rows - 1, which stands for row i = row_of(s): Y(i,:) = alpha ((A X)(i,:)
/// - shift X(i,:)) + beta Y(i,:), and partial column dots over these rows. The slots come in chunks
/// of `chunk`, a power of two: entry k of slot s lies at start[s / chunk] + k chunk + s % chunk,
/// below start[s / chunk + 1]; a column of -1 is padding. chunk = 1: compressed rows, without
/// padding. Columns below `own` are rows of X, the others rows of halo (ld = width). 32-bit indices
/// when column64 is null.
template <class T>
struct SpmmvArgs {
    std::int64_t rows;           // slots
    const std::int32_t* list32;  // row of every 2^log_run-th slot; both null: row i = s
    const std::int64_t* list64;
    int log_run;
    int tile;  // slots that share rows of X, a power of two; 0: not known
    int chunk;
    const std::int64_t* start;  // of each chunk, and the end of the last one
    const std::int32_t* full;   // of each chunk: no slot is padded below this k; chunk > 1 only
    std::int64_t entries;       // of all these slots, with padding
    int width;
    std::int64_t own;
    const std::int32_t* column32;
    const std::int64_t* column64;
    const T* value;
    T alpha, beta;
    T shift;
    const T* shifts;  // width, in the place of the blocks, or null
    const T* x;       // own x width
    std::int64_t ldx;
    const T* halo;
    T* y;  // own x width
    std::int64_t ldy;
    T* dot_yy;  // width, overwritten, or null
    T* dot_xy;  // width, overwritten, or null

    constexpr std::int64_t row_of(std::int64_t slot) const {
        if (list32 == nullptr && list64 == nullptr) {
            return slot;
        }
        const std::int64_t run = slot >> log_run;
        return (list32 != nullptr ? list32[run] : list64[run]) + (slot - (run << log_run));
    }
};

/// `count` matrices: element (i, j) of matrix b is matrix(b)[i row_step + j col_step]. One of the
/// steps is 1 unless the batch is interleaved (matrix_step = 1).
template <class T>
struct BatchOf {
    T* data;
    T* const* pointers;  // count, or null
    const int* sizes;    // count, or null: all `rows`
    std::int64_t count;
    int rows, cols;
    std::int64_t matrix_step, row_step, col_step;

    constexpr T* matrix(std::int64_t b) const {
        return pointers != nullptr ? pointers[b] : data + b * matrix_step;
    }
    /// The order of a square matrix.
    constexpr int size(std::int64_t b) const {
        if (sizes == nullptr) {
            return rows;
        }
        return sizes[b] < 0 ? 0 : sizes[b] < rows ? sizes[b] : rows;
    }
};

/// See lu_factor in kernels/batched.hpp.
template <class T>
struct LuArgs {
    BatchOf<T> a;
    int* pivots;  // count x a.rows
    int* status;  // count
};

/// See cholesky_factor in kernels/batched.hpp.
template <class T>
struct CholeskyArgs {
    BatchOf<T> a;
    int* status;  // count
};

/// B = A^-1 B with the factors of A: of LU with its pivots, or of Cholesky when they are null.
/// from_identity: B is not read but taken as the identity.
template <class T>
struct BatchedSolveArgs {
    BatchOf<const T> factor;
    const int* pivots;  // count x factor.rows, or null
    BatchOf<T> b;
    bool from_identity;
};

/// Sign and logarithm of the determinant of A from its factors, as above; sign is null for
/// Cholesky.
template <class T, class R>
struct DeterminantArgs {
    BatchOf<const T> factor;
    const int* pivots;
    T* sign;
    R* log_abs;
};

}  // namespace quiver
