// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/tiling.hpp"

namespace quiver::cuda {
namespace {

template <class Index>
constexpr const char* index_name = sizeof(Index) == 4 ? "int" : "long";

/// Numbers of a thread in prefix sums.
constexpr int prefix_items = 8;

LaunchShape shape_of(const Context& ctx, std::int64_t rows) {
    return {.blocks = blocks_for(ctx, rows, block_threads, 16), .threads = block_threads};
}

/// Calls use(flag) with a zeroed word of the device, and returns whether the word is still zero
/// after the work that was enqueued.
template <class Use>
bool stays_zero(Context& ctx, Use&& use) {
    const Scratch flag = ctx.scratch(MemoryKind::device, sizeof(unsigned));
    device::set_zero(flag.as<void>(), sizeof(unsigned), ctx.stream());
    use(flag.as<unsigned>());
    unsigned found = 1;
    device::copy(&found, flag.as<void>(), sizeof(unsigned), ctx.stream());
    ctx.synchronize();
    return found == 0;
}

}  // namespace

template <class T, class From>
KernelList csr_kernels() {
    const char* from = index_name<From>;
    KernelList list{{"csr.cuh", instance("csr_check", device_name<T>(), from)},
                    {"csr.cuh", instance("csr_to_chunks", device_name<T>(), from, "int")}};
    for (const char* name :
         {"csr_facts", "sort_windows", "chunk_entries", "group_bounds", "group_columns"}) {
        list.push_back({"csr_layout.cuh", instance(name, from)});
    }
    list.push_back({"csr_layout.cuh", instance("first_rows", "int")});
    for (const char* name : {"row_breaks", "rows_of_groups"}) {
        list.push_back({"csr_layout.cuh", instance(name, block_threads)});
    }
    for (const char* name : {"prefix_tiles", "prefix_of_tiles", "prefix_in_tiles"}) {
        list.push_back({"prefix_sums.cuh", instance(name, prefix_items)});
    }
    return list;
}

template <class T, class From>
void request_csr_kernels(Context& ctx) {
    for (const KernelInstance& kernel : csr_kernels<T, From>()) {
        ctx.service<Specialiser>().request(kernel.source, kernel.expression);
    }
}

template <class T, class From>
bool csr_fits(Context& ctx, const CsrOnDevice<T, From>& csr, std::int64_t columns) {
    return stays_zero(ctx, [&](unsigned* unfit) {
        launch(ctx,
               ctx.service<Specialiser>().get(
                   ctx, "csr.cuh", instance("csr_check", device_name<T>(), index_name<From>)),
               shape_of(ctx, csr.rows), csr, columns, unfit);
    });
}

template <class T>
bool values_are_finite(Context& ctx, const T* value, std::int64_t count) {
    return stays_zero(ctx, [&](unsigned* infinite) {
        launch(ctx,
               ctx.service<Specialiser>().get(ctx, "csr.cuh",
                                              instance("check_values", device_name<T>())),
               shape_of(ctx, count), value, count, infinite);
    });
}

template <class T, class From, class Index>
void csr_to_chunks(Context& ctx, const CsrToChunksArgs<T, From, Index>& args) {
    launch(ctx,
           ctx.service<Specialiser>().get(
               ctx, "csr.cuh",
               instance("csr_to_chunks", device_name<T>(), index_name<From>, index_name<Index>)),
           shape_of(ctx, args.slots), args);
}

template <class Index>
void count_entries(Context& ctx, const PartSlots<Index>& part, std::int64_t* counts) {
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "csr.cuh",
                                          instance("count_entries", index_name<Index>)),
           shape_of(ctx, part.slots), part, counts);
}

template <class T, class Index>
void diagonal_blocks(Context& ctx, const DiagonalBlocksArgs<T, Index>& args) {
    launch(ctx,
           ctx.service<Specialiser>().get(
               ctx, "csr.cuh", instance("diagonal_blocks", device_name<T>(), index_name<Index>)),
           shape_of(ctx, args.part.slots), args);
}

template <class Index>
void rows_of_blocks(Context& ctx, std::int64_t rows, int size, Index* row_start, Index* column) {
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "csr.cuh",
                                          instance("rows_of_blocks", index_name<Index>)),
           shape_of(ctx, rows), rows, size, row_start, column);
}

void prefix_sums(Context& ctx, std::int64_t* data, std::int64_t count) {
    auto& specialiser = ctx.service<Specialiser>();
    const auto kernel = [&](const char* name) -> Kernel& {
        return specialiser.get(ctx, "prefix_sums.cuh", instance(name, prefix_items));
    };
    constexpr int prefix_tile = block_threads * prefix_items;
    const auto tiles =
        static_cast<unsigned>(std::max<std::int64_t>((count + prefix_tile - 1) / prefix_tile, 1));
    const Scratch sums =
        ctx.scratch(MemoryKind::device, (std::size_t{tiles} + 1) * sizeof(std::int64_t));
    const LaunchShape all{.blocks = tiles, .threads = block_threads};
    launch(ctx, kernel("prefix_tiles"), all, data, count, sums.as<std::int64_t>());
    launch(ctx, kernel("prefix_of_tiles"), {.threads = block_threads}, sums.as<std::int64_t>(),
           std::int64_t{tiles});
    launch(ctx, kernel("prefix_in_tiles"), all, data, count, sums.as<std::int64_t>());
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define QUIVER_INSTANTIATE(Index)                                                  \
    template void count_entries(Context&, const PartSlots<Index>&, std::int64_t*); \
    template void rows_of_blocks(Context&, std::int64_t, int, Index*, Index*);
// NOLINTEND(bugprone-macro-parentheses)
QUIVER_INSTANTIATE(std::int32_t)
QUIVER_INSTANTIATE(std::int64_t)
#undef QUIVER_INSTANTIATE
#define QUIVER_INSTANTIATE_FROM(T, From)                                                  \
    template KernelList csr_kernels<T, From>();                                           \
    template void request_csr_kernels<T, From>(Context&);                                 \
    template bool csr_fits(Context&, const CsrOnDevice<T, From>&, std::int64_t);          \
    template void csr_to_chunks(Context&, const CsrToChunksArgs<T, From, std::int32_t>&); \
    template void csr_to_chunks(Context&, const CsrToChunksArgs<T, From, std::int64_t>&);
#define QUIVER_INSTANTIATE(T)                                                            \
    template bool values_are_finite(Context&, const T*, std::int64_t);                   \
    template void diagonal_blocks(Context&, const DiagonalBlocksArgs<T, std::int32_t>&); \
    template void diagonal_blocks(Context&, const DiagonalBlocksArgs<T, std::int64_t>&); \
    QUIVER_INSTANTIATE_FROM(T, std::int32_t)                                             \
    QUIVER_INSTANTIATE_FROM(T, std::int64_t)
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE
#undef QUIVER_INSTANTIATE_FROM

}  // namespace quiver::cuda
