// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class Index>
constexpr const char* index_name = sizeof(Index) == 4 ? "int" : "long";

LaunchShape shape_of(const Context& ctx, std::int64_t rows) {
    return {.blocks = blocks_for(ctx, rows, block_threads, 16), .threads = block_threads};
}

}  // namespace

template <class T, class From>
bool csr_fits(Context& ctx, const CsrOnDevice<T, From>& csr, std::int64_t columns) {
    const Scratch unfit = ctx.scratch(MemoryKind::device, sizeof(unsigned));
    device::set_zero(unfit.as<void>(), sizeof(unsigned), ctx.stream());
    launch(ctx,
           ctx.service<Specialiser>().get(
               ctx, "csr.cuh", instance("csr_check", device_name<T>(), index_name<From>)),
           shape_of(ctx, csr.rows), csr, columns, unfit.as<unsigned>());
    unsigned found = 1;
    device::copy(&found, unfit.as<void>(), sizeof(unsigned), ctx.stream());
    ctx.synchronize();
    return found == 0;
}

template <class T, class From, class Index>
void csr_to_chunks(Context& ctx, const CsrToChunksArgs<T, From, Index>& args) {
    launch(ctx,
           ctx.service<Specialiser>().get(
               ctx, "csr.cuh",
               instance("csr_to_chunks", device_name<T>(), index_name<From>, index_name<Index>)),
           shape_of(ctx, args.slots), args);
}

#define QUIVER_INSTANTIATE_FROM(T, From)                                                  \
    template bool csr_fits(Context&, const CsrOnDevice<T, From>&, std::int64_t);          \
    template void csr_to_chunks(Context&, const CsrToChunksArgs<T, From, std::int32_t>&); \
    template void csr_to_chunks(Context&, const CsrToChunksArgs<T, From, std::int64_t>&);
#define QUIVER_INSTANTIATE(T)                \
    QUIVER_INSTANTIATE_FROM(T, std::int32_t) \
    QUIVER_INSTANTIATE_FROM(T, std::int64_t)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
#undef QUIVER_INSTANTIATE_FROM

}  // namespace quiver::cuda
