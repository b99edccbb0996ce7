// SPDX-License-Identifier: BSD-3-Clause
// The dense products of the host, split into set-up and application to ranges of rows: building
// blocks of fused operations, which keep a block of rows in the caches between two products.
#pragma once

#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {

/// `bytes` rounded up to whole cache lines.
constexpr std::size_t cache_lines(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/// Y = alpha X C + beta Y for any range of rows. The state is stored in `workspace`.
template <class T>
class BlockUpdate {
  public:
    static std::size_t workspace_bytes(int chunks, const TsmmArgs<T>& args);
    /// args without d. may_stream: Y may be written with non-temporal stores; rows() must then get
    /// whole chunks.
    BlockUpdate(const TsmmArgs<T>& args, bool may_stream, void* workspace);
    void rows(Chunk chunk) const;

  private:
    const void* product_ = nullptr;
};

/// C = alpha A^H B + beta C, accumulated piece by piece. The state is stored in `workspace`.
template <class T>
class BlockSums {
  public:
    static std::size_t workspace_bytes(int chunks, const TsmttsmArgs<T>& args);
    BlockSums(int chunks, const TsmttsmArgs<T>& args, void* workspace);
    /// Adds a piece to the sums of the chunk with the piece's index. The pieces of a chunk must
    /// come in order, first to last. Vector loads may read rows before row `readable`, also beyond
    /// the piece.
    void add(Chunk piece, std::int64_t readable, bool first, bool last) const;
    /// Combines the chunks into C; call it after all chunks are complete.
    void finish() const;

  private:
    int chunks_;
    TsmttsmArgs<T> args_;
    void* workspace_;
};

/// The number of chunks into which the threads divide an update.
template <class T>
int update_chunks(int threads, const TsmmArgs<T>& args);

/// Calls use(piece) for pieces of a chunk that fit the L2 cache, at least once.
template <class Use>
void for_cached_pieces(Chunk chunk, std::size_t row_bytes, const Use& use) {
    constexpr std::size_t cached_bytes = 512 << 10;
    const auto step =
        static_cast<std::int64_t>(std::max<std::size_t>(64, cached_bytes / row_bytes));
    std::int64_t first = chunk.first;
    do {
        const std::int64_t last = std::min(first + step, chunk.last);
        use(Chunk{first, last, chunk.index});
        first = last;
    } while (first < chunk.last);
}

}  // namespace quiver::host
