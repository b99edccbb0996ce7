// SPDX-License-Identifier: BSD-3-Clause
// tsmm_gram on the host: the sums follow the update block by block, while the rows are in the
// caches.
#include "blockvec/scalar_list.hpp"
#include "kernels/host/block_products.hpp"

namespace quiver::host {
namespace {

template <class T>
TsmttsmArgs<T> sums_of(const TsmmGramArgs<T>& args) {
    const TsmmArgs<T>& update = args.update;
    return {update.rows, update.n,   update.n, T(1),   update.y, update.ldy,
            update.y,    update.ldy, T(0),     args.g, args.ldg};
}

}  // namespace

template <class T>
std::size_t workspace_bytes(int threads, const TsmmGramArgs<T>& args) {
    const int chunks = update_chunks(threads, args.update);
    return BlockUpdate<T>::workspace_bytes(chunks, args.update) +
           BlockSums<T>::workspace_bytes(chunks, sums_of(args));
}

template <class T>
void tsmm_gram(int threads, const TsmmGramArgs<T>& args, void* workspace) {
    const int chunks = update_chunks(threads, args.update);
    const BlockUpdate<T> update(args.update, false, workspace);
    const BlockSums<T> sums(
        chunks, sums_of(args),
        static_cast<char*>(workspace) + BlockUpdate<T>::workspace_bytes(chunks, args.update));
    for_chunks(chunks, args.update.rows, [&](Chunk chunk) {
        for_cached_pieces(
            chunk, static_cast<std::size_t>(args.update.m + args.update.n) * sizeof(T),
            [&](Chunk piece) {
                update.rows(piece);
                // Do not read beyond this chunk, where another thread writes.
                sums.add(piece, chunk.last, piece.first == chunk.first, piece.last == chunk.last);
            });
    });
    sums.finish();
}

#define QUIVER_INSTANTIATE(T)                                          \
    template std::size_t workspace_bytes(int, const TsmmGramArgs<T>&); \
    template void tsmm_gram(int, const TsmmGramArgs<T>&, void*);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::host
