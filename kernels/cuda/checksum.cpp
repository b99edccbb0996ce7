// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/scalar_list.hpp"
#include "kernels/checksum_kinds.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {
namespace {

/// One block sums a chunk: as large as the kernel's launch bounds allow.
constexpr unsigned chunk_threads = 512;

}  // namespace

template <class T, class S>
void checksum(Context& ctx, const ChecksumArgs<T, S>& args) {
    const Panels panels(args.block);
    LaunchShape shape;
    shape.blocks = static_cast<unsigned>(panels.count * ceil_div(args.cols, args.block));
    shape.blocks_y = static_cast<unsigned>(
        std::min<std::int64_t>(checksum_chunks(args.rows, args.log_chunk), 65535));
    shape.threads = chunk_threads;
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "checksum.cuh",
                                          instance("checksum", device_name<T>(), device_name<S>(),
                                                   args.weights != nullptr, args.words != nullptr)),
           shape, args, panels.width);
}

void parity(Context& ctx, const ParityArgs& args) {
    const std::int64_t pieces = parity_pieces(static_cast<std::size_t>(args.bytes));
    launch(
        ctx,
        ctx.service<Specialiser>().get(ctx, "checksum.cuh", instance("parity", log_parity_words)),
        {.blocks = static_cast<unsigned>(pieces), .threads = block_threads}, args);
}

#define QUIVER_INSTANTIATE(T) \
    template void checksum(Context&, const ChecksumArgs<T, checksum_t<T>>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
