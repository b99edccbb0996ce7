// SPDX-License-Identifier: BSD-3-Clause
// The dense products of the host made ready once and then formed for some rows at a time: what
// fused operations are made of, a block of rows staying in the caches between them.
#pragma once

#include "kernels/host/simd.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::host {

/// Bytes in whole cache lines.
constexpr std::size_t cache_lines(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/// Y = alpha X C + beta Y for any rows. Lives in its workspace.
template <class T>
class BlockUpdate {
  public:
    static std::size_t workspace_bytes(int chunks, const TsmmArgs<T>& args);
    /// args without d; may_stream: Y may go past the caches, chunks then come whole.
    BlockUpdate(const TsmmArgs<T>& args, bool may_stream, void* workspace);
    void rows(Chunk chunk) const;

  private:
    const void* product_ = nullptr;
};

/// C = alpha A^H B + beta C, sums added up piece by piece. Lives in its workspace.
template <class T>
class BlockSums {
  public:
    static std::size_t workspace_bytes(int chunks, const TsmttsmArgs<T>& args);
    BlockSums(int chunks, const TsmttsmArgs<T>& args, void* workspace);
    /// A piece of the chunk of its index; the pieces of a chunk come in one order, first to last.
    /// Vectors may reach into rows before `readable`.
    void add(Chunk piece, std::int64_t readable, bool first, bool last) const;
    /// When all chunks are through.
    void finish() const;

  private:
    int chunks_;
    TsmttsmArgs<T> args_;
    void* workspace_;
};

/// In how many chunks the threads share an update.
template <class T>
int update_chunks(int threads, const TsmmArgs<T>& args);

/// Calls use(piece) for pieces of a chunk that stay in the second cache, at least once.
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
