// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/batched_tiling.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/settings_text.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {
namespace {

/// The number of blocks of a grid. The limit exceeds any batch that fits into memory, but the
/// caller may pass any count.
unsigned grid_of(std::int64_t blocks, const char* operation) {
    if (blocks > INT32_MAX) {
        throw UnsupportedError(std::string(operation) + ": " + std::to_string(blocks) +
                               " blocks exceed the limit of a launch; split the batch");
    }
    return static_cast<unsigned>(blocks);
}

template <class T>
bool is_by_rows(const BatchOf<T>& batch) {
    return batch.col_step <= batch.row_step;
}

template <class T>
BatchPacking packing_of(const BatchOf<T>& batch) {
    const std::int64_t n = batch.rows;
    const bool interleaved = batch.pointers == nullptr && batch.matrix_step == 1 &&
                             batch.row_step > 1 && batch.col_step > 1;
    if (interleaved) {
        return BatchPacking::interleaved;
    }
    const bool packed = batch.pointers == nullptr && batch.sizes == nullptr &&
                        batch.row_step * batch.col_step == n &&
                        (batch.matrix_step == n * n || batch.count == 1) &&
                        reinterpret_cast<std::uintptr_t>(batch.data) % 16 == 0;
    return packed ? BatchPacking::packed : BatchPacking::general;
}

/// This Context's overrides of the tilings, if any.
struct ChosenBatchedSettings {
    explicit ChosenBatchedSettings(Context&) {}
    BatchedSettings settings;
};

template <class T, class Args>
void factor_in_registers(Context& ctx, Factorisation factorisation, const Args& args) {
    const BatchedSettings& wish = ctx.service<ChosenBatchedSettings>().settings;
    const bool is_lu = factorisation == Factorisation::lu;
    const BatchedTiling tiling =
        batched_tiling<T>(factorisation, args.a.rows, packing_of(args.a), is_by_rows(args.a), wish);
    if (!tiling.allows(wish, shared_bytes_per_block(ctx))) {
        throw UnsupportedError(std::string(is_lu ? "lu" : "cholesky") +
                               ": no kernel for matrices of order " + std::to_string(args.a.rows) +
                               " has the chosen threads");
    }
    const std::int64_t blocks = (args.a.count + tiling.matrices - 1) / tiling.matrices;
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, is_lu ? "batched_lu.cuh" : "batched_cholesky.cuh",
                                          expression<T>(factorisation, tiling, args.a.rows)),
           {.blocks = grid_of(blocks, is_lu ? "lu" : "cholesky"),
            .threads = static_cast<unsigned>(tiling.threads),
            .shared_bytes = tiling.shared_bytes},
           args);
}

BatchedSettings batched_settings(const std::string& text) {
    BatchedSettings settings;
    read_settings("tiling of a batched factorisation", text,
                  {{"threads", settings.threads},
                   {"by_thread", settings.by_thread},
                   {"panels", settings.panels}});
    return settings;
}

}  // namespace

void choose_batched(Context& ctx, const std::string& text) {
    ctx.service<ChosenBatchedSettings>().settings = batched_settings(text);
}

KernelInstance batched_kernel(bool cholesky, bool interleaved, Dtype scalar, int n,
                              const std::string& text) {
    const BatchedSettings wish = batched_settings(text);
    const char* const source = cholesky ? "batched_cholesky.cuh" : "batched_lu.cuh";
    return visit_dtype(scalar, [&]<class T>() -> KernelInstance {
        if (cholesky && (n > largest_in_registers || wish.panels == 1)) {
            return {source, expression<T>(PanelTiling(sizeof(T), n, false), false)};
        }
        const auto which = cholesky ? Factorisation::cholesky : Factorisation::lu;
        const BatchedTiling tiling = batched_tiling<T>(
            which, n, interleaved ? BatchPacking::interleaved : BatchPacking::packed, n == 1, wish);
        return {source, expression<T>(which, tiling, n)};
    });
}

template <class T>
void lu_factor(Context& ctx, const LuArgs<T>& args) {
    factor_in_registers<T>(ctx, Factorisation::lu, args);
}

template <class T>
void cholesky_factor(Context& ctx, const CholeskyArgs<T>& args) {
    const bool panels = ctx.service<ChosenBatchedSettings>().settings.panels == 1;
    if (args.a.rows <= largest_in_registers && !panels) {
        factor_in_registers<T>(ctx, Factorisation::cholesky, args);
        return;
    }
    const bool by_rows = is_by_rows(args.a);
    const PanelTiling tiling(sizeof(T), args.a.rows, by_rows);
    if (tiling.shared_bytes > shared_bytes_per_block(ctx)) {
        throw UnsupportedError(
            "cholesky_factor: a panel of order " + std::to_string(args.a.rows) + " needs " +
            std::to_string(tiling.shared_bytes) + " bytes of the GPU's shared memory of " +
            std::to_string(shared_bytes_per_block(ctx)) + "; use smaller matrices");
    }
    launch(
        ctx,
        ctx.service<Specialiser>().get(ctx, "batched_cholesky.cuh", expression<T>(tiling, by_rows)),
        {.blocks = grid_of(args.a.count, "cholesky"),
         .threads = static_cast<unsigned>(tiling.threads),
         .shared_bytes = tiling.shared_bytes},
        args);
}

template <class T>
void batched_solve(Context& ctx, const BatchedSolveArgs<T>& args) {
    constexpr int threads = 128;
    const SolveTiling tiling(args.factor.rows, args.b.cols);
    const std::int64_t groups = args.b.count * ceil_div(args.b.cols, tiling.columns);
    const std::int64_t blocks = (groups * tiling.lanes + threads - 1) / threads;
    launch(ctx,
           ctx.service<Specialiser>().get(ctx, "batched_solve.cuh",
                                          expression<T>(tiling, args.pivots == nullptr)),
           {.blocks = grid_of(blocks, "batched_solve"), .threads = threads}, args);
}

/// A name that the macro below can use.
template <class T>
using DeterminantOf = DeterminantArgs<T, real_t<T>>;

template <class T, class R>
void batched_determinant(Context& ctx, const DeterminantArgs<T, R>& args) {
    constexpr int threads = 128;
    launch(ctx,
           ctx.service<Specialiser>().get(
               ctx, "batched_solve.cuh",
               instance("batched_determinant", device_name<T>(), device_name<R>())),
           {.blocks = grid_of((args.factor.count + threads - 1) / threads, "batched_determinant"),
            .threads = threads},
           args);
}

#define QUIVER_INSTANTIATE(T)                                          \
    template void lu_factor(Context&, const LuArgs<T>&);               \
    template void cholesky_factor(Context&, const CholeskyArgs<T>&);   \
    template void batched_solve(Context&, const BatchedSolveArgs<T>&); \
    template void batched_determinant(Context&, const DeterminantOf<T>&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
