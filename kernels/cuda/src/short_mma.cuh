// SPDX-License-Identifier: BSD-3-Clause
// Products of half precision and bfloat16 on the tensor cores, and the copies of their operands.
#pragma once

#include "convert.cuh"
#include "stage.cuh"

namespace quiver {

template <class T>
inline constexpr bool is_bfloat = false;
template <>
inline constexpr bool is_bfloat<bfloat16_t> = true;

/// D += A B for A 16 x 16, B 16 x 8, D 16 x 8 in float. With g = lane / 4 and t = lane % 4, low
/// half first: a[0] = A(g, 2t..2t+1), a[1] = A(g + 8, same), a[2] = A(g, 2t+8..2t+9), a[3] = A(g +
/// 8, same); b0 = B(2t..2t+1, g), b1 = B(2t+8..2t+9, g); d[2 h + e] = D(g + 8 h, 2 t + e). PTX ISA,
/// mma.m16n8k16 for .f16 and .bf16.
template <class T>
void short_mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (is_bfloat<T>) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}

/// Loads four 8 x 8 matrices from shared memory. Lanes 8 q .. 8 q + 7 pass the addresses of the
/// rows of matrix q, 16 bytes each; word q of a lane is (row g, columns 2t..2t+1) of matrix q.
inline void load_matrices(unsigned (&word)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(address)
                 : "memory");
}
/// load_matrices with transposed matrices: word q of a lane is (rows 2t..2t+1, column g).
inline void load_matrices_transposed(unsigned (&word)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(address)
                 : "memory");
}

/// Copies ROWS contiguous rows of COLUMNS elements to shared memory; FOLD rows form a long row, and
/// long rows are PITCH elements apart. One warp issues bulk copies: a single one if the long rows
/// are contiguous on both sides, otherwise one per long row. The lanes themselves copy the elements
/// that remain after the last piece.
template <class T, int ROWS, int COLUMNS, int FOLD, int PITCH>
class FoldedCopy {
    static constexpr int long_row = FOLD * COLUMNS;
    static constexpr int piece = PITCH == long_row ? ROWS * COLUMNS : long_row;
    static constexpr int pieces = ROWS * COLUMNS / piece;
    static constexpr int unit = 16 / sizeof(T);
    static_assert(long_row % unit == 0 && PITCH % unit == 0);

  public:
    FoldedCopy(const T* block, std::int64_t rows) : block_(block), rows_(rows) {}

    /// Bytes of the copies that start() issues and the barrier waits for.
    unsigned bytes(std::int64_t first) const {
        return present(first) / unit * unit * static_cast<unsigned>(sizeof(T));
    }
    /// In the last rows: writes zeros beyond the block, and copies the elements that belong to no
    /// piece.
    void fill_up(T* shared, std::int64_t first) const {
        const int count = present(first);
        const int begin = count / unit * unit;
        for (int e = begin + threadIdx.x % 32; e < ROWS * COLUMNS; e += 32) {
            shared[e / piece * (pieces == 1 ? 0 : PITCH) + e % piece] =
                e < count ? block_[first * COLUMNS + e] : T{};
        }
    }
    void start(const Barrier& barrier, T* shared, std::int64_t first) const {
        const int count = present(first) / unit * unit;
        const T* const from = block_ + first * COLUMNS;
        for (int p = threadIdx.x % 32; p < pieces; p += 32) {
            const int size = minimum(piece, count - p * piece);
            if (size > 0) {
                barrier.copy(shared_address(shared + p * PITCH), from + p * piece,
                             size * static_cast<int>(sizeof(T)));
            }
        }
    }
    /// Alternative without the copy engine: all THREADS threads copy, with zeros beyond the block.
    template <int THREADS>
    void start_by_threads(T* shared, std::int64_t first) const {
        const int count = present(first);
        const T* const from = block_ + first * COLUMNS;
#pragma unroll 4
        for (int e = threadIdx.x * unit; e < ROWS * COLUMNS; e += THREADS * unit) {
            const int left = minimum(count - e, unit);
            copy_async_part(
                shared_address(shared + (pieces == 1 ? e : e / long_row * PITCH + e % long_row)),
                left > 0 ? from + e : block_, left > 0 ? left * static_cast<int>(sizeof(T)) : 0);
        }
    }

  private:
    /// Number of elements in this stage.
    int present(std::int64_t first) const {
        return static_cast<int>(minimum<std::int64_t>(ROWS, rows_ - first)) * COLUMNS;
    }
    const T* const block_;
    const std::int64_t rows_;
};

}  // namespace quiver
