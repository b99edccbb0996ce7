// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/kernel_requests.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/expressions.hpp"
#include "kernels/cuda/plan_arithmetic.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/cuda/spmmv_tiling.hpp"

namespace quiver::cuda {
namespace {

// NOLINTBEGIN(performance-no-int-to-ptr): addresses of which only the alignment is used
/// Fictitious operands, aligned like memory that the library allocates.
template <class T>
struct Nowhere {
    T* v = reinterpret_cast<T*>(std::uintptr_t{1} << 20);
    T* w = reinterpret_cast<T*>(std::uintptr_t{2} << 20);
    T* small = reinterpret_cast<T*>(std::uintptr_t{3} << 20);
};
// NOLINTEND(performance-no-int-to-ptr)

template <class T>
TsmttsmArgs<T> sums(std::int64_t rows, int m, const T* a, std::int64_t lda, int n, const T* b,
                    std::int64_t ldb) {
    return {rows, m, n, T(1), a, lda, b, ldb, T(0), Nowhere<T>().small, n};
}
template <class T>
TsmmArgs<T> update(std::int64_t rows, int m, const T* x, std::int64_t ldx, int n, T beta, T* y,
                   std::int64_t ldy) {
    return {rows, m, n, T(1), x, ldx, Nowhere<T>().small, n, beta, y, ldy};
}

/// The products of a block of n columns with itself; the block is contiguous or the end of a basis.
template <class T>
void append_block(Planner& planner, std::int64_t rows, int n, std::int64_t ld, KernelList& list) {
    const Nowhere<T> at;
    append_kernels(planner, sums<T>(rows, n, at.w, ld, n, at.w, ld), list);
    append_kernels(planner,
                   TsmmGramArgs<T>{update<T>(rows, n, at.w, ld, n, T(0), at.w, ld), at.small, n},
                   list);
    append_kernels(planner, update<T>(rows, n, at.w, ld, n, T(0), at.w, ld), list);
    append_kernels(planner, sums<T>(rows, n, at.v, ld, n, at.w, n), list);
    append_kernels(planner, update<T>(rows, n, at.v, ld, n, T(1), at.w, n), list);
}

/// V^H W and W - V H for m columns of V.
template <class T>
void append_base(Planner& planner, const BlockDemand& demand, int m, KernelList& list) {
    const Nowhere<T> at;
    const std::int64_t rows = demand.rows;
    const std::int64_t stride = demand.stride;
    for (const int n : demand.blocks) {
        append_kernels(planner, sums<T>(rows, m, at.v, stride, n, at.w, n), list);
        append_kernels(planner, update<T>(rows, m, at.v, stride, n, T(1), at.w, n), list);
        if (demand.rotations) {
            append_kernels(planner, sums<T>(rows, n, at.w, n, m, at.v, stride), list);
            append_kernels(planner, update<T>(rows, n, at.w, n, m, T(1), at.v, stride), list);
        }
    }
    if (demand.rotations) {
        append_kernels(planner, update<T>(rows, m, at.v, stride, m, T(0), at.w, m), list);
    }
}

/// The list with only the first occurrence of each kernel.
KernelList without_repetitions(KernelList list) {
    std::set<std::string> seen;
    std::erase_if(
        list, [&](const KernelInstance& kernel) { return !seen.insert(kernel.expression).second; });
    return list;
}

/// Shared memory, copy engine and multiprocessors of the largest GPU of an architecture. Source:
/// NVIDIA, CUDA C++ Programming Guide 13.0, technical specifications for each compute capability.
Machine machine_of(int capability) {
    constexpr std::size_t kilobyte = 1024;
    Machine machine;
    machine.capability = capability;
    machine.bulk_copies = capability >= 90;
    const bool small = capability == 86 || capability == 89 || capability >= 120;
    const bool large = capability >= 90 && capability < 120;
    machine.shared_per_multiprocessor = kilobyte * (large ? 228 : small ? 100 : 164);
    machine.shared_per_block = machine.shared_per_multiprocessor - kilobyte;
    // A100, RTX 3090, L40, H100 and H200, B200, RTX PRO 6000.
    constexpr std::pair<int, int> counts[] = {{80, 108}, {86, 84},   {89, 142},
                                              {90, 132}, {100, 148}, {120, 188}};
    for (const auto& [from, multiprocessors] : counts) {
        machine.multiprocessors = capability >= from ? multiprocessors : machine.multiprocessors;
    }
    return machine;
}

int capability_of(const std::string& arch) {
    int capability = 0;
    if (arch.rfind("sm_", 0) == 0) {
        capability = std::atoi(arch.c_str() + 3);
    }
    if (capability < 80) {
        throw InputError("\"" + arch + "\" is not an architecture with packs: use sm_80 or newer");
    }
    return capability;
}

/// The streamed kernels of tsmm: for a Y of at most 16 columns those of all alignments of Y, for a
/// wider Y only that of aligned blocks.
template <class T>
void append_streamed(Planner& planner, KernelList& list) {
    const Layout aligned{false, 16, true};
    const Layout any = Layout::any(sizeof(T));
    constexpr int narrow = 16;
    for (const ProductShape& shape : ProductShape::streamed_products(dtype_v<T>)) {
        for (const Layout& y : {aligned, any}) {
            // Only the kernels for the tensor cores depend on the alignment of Y.
            const bool is_used = has_tensor_kernels(dtype_v<T>) || y.unit == any.unit;
            if (is_used && (shape.n <= narrow || y.unit == 16)) {
                planner.append<TsmmPlan>({shape, aligned, y}, list);
            }
        }
    }
}

/// The streamed kernels of tsmttsm.
template <class T>
void append_streamed_sums(Planner& planner, KernelList& list) {
    for (const ProductShape& shape : ProductShape::streamed_sums(dtype_v<T>)) {
        planner.append<TsmttsmPlan>({shape, Layout{false, 16, true}, Layout::any(sizeof(T))}, list);
    }
}

/// The kernels that solvers use by default: all shared kernels of products, so that no width of
/// small operands waits for the compiler, and sparse products of some widths. `wide`: all widths up
/// to 32, for several storage formats of a matrix without a halo.
template <class T>
void append_pack(Planner& planner, bool wide, KernelList& list) {
    const auto append = [&](KernelList more) {
        std::move(more.begin(), more.end(), std::back_inserter(list));
    };
    append(column_kernels<T>());
    append({{"csr.cuh", instance("diagonal_blocks", device_name<T>(), "int")},
            {"csr.cuh", instance("rows_of_blocks", "int")}});
    const Layout any = Layout::any(sizeof(T));
    for (const ProductShape& shape : ProductShape::shared_products(dtype_v<T>)) {
        planner.append<TsmttsmPlan>({shape, any, any}, list);
        planner.append<TsmmPlan>({shape, any, any}, list);
        if (shape.m == shape.n) {
            ProductShape same = shape;
            same.same = true;
            planner.append<TsmttsmPlan>({same, any, any}, list);
        }
        for (const bool adds : {false, true}) {
            ProductShape fused = shape;
            fused.adds = adds;
            if ((adds || shape.m == shape.n) && planner.exists<TsmmGramPlan>(fused)) {
                planner.append<TsmmGramPlan>({fused, any, any}, list);
            }
        }
    }
    for (const int width : frequent_widths) {
        ProductShape shape(dtype_v<T>, width, width);
        planner.append<TsmttsmPlan>({shape, {}, {}}, list);
        planner.append<TsmmPlan>({shape, {}, {}}, list);
        planner.append<TsmmGramPlan>({shape, {}, {}}, list);
        shape.same = true;
        planner.append<TsmttsmPlan>({shape, {}, {}}, list);
    }
    for (const ProductShape& shape : ProductShape::shared_pairs(dtype_v<T>)) {
        if (planner.exists<TsmmPlan>(shape)) {
            planner.append<TsmmPlan>({shape, any, any}, list);
        }
    }
    append_streamed<T>(planner, list);
    append_streamed_sums<T>(planner, list);
    append(sparse_kernels<T>({.widths = {std::begin(pack_widths), std::end(pack_widths)}}));
    append(sparse_kernels<T>({.widths = {1, 2, 4, 8, 16}, .dots = true}));
    if (wide) {
        std::vector<int> widths(32);
        std::iota(widths.begin(), widths.end(), 1);
        for (const std::int64_t entries : {4, 7, 32}) {
            for (const int tile : {0, 512}) {
                append(sparse_kernels<T>(
                    {.tile = tile, .row_entries = entries, .widths = widths, .dots = true}));
            }
        }
    }
}

}  // namespace

template <class T>
KernelList kernels_of(Planner& planner, const BlockDemand& demand) {
    KernelList list;
    const Nowhere<T> at;
    for (const int n : demand.blocks) {
        append_block<T>(planner, demand.rows, n, n, list);
        if (demand.stride > n) {
            append_block<T>(planner, demand.rows, n, demand.stride, list);
        }
        if (demand.pairs) {
            TsmmArgs<T> pair = update<T>(demand.rows, n, at.v, n, n, T(1), at.w, n);
            pair.d = at.small;
            pair.ldd = n;
            append_kernels(planner, pair, list);
        }
    }
    for (const int m : demand.bases) {
        append_base<T>(planner, demand, m, list);
    }
    for (const int n : demand.kept) {
        const int m = demand.bases.empty() ? n : demand.bases.back();
        append_kernels(planner, update<T>(demand.rows, m, at.v, demand.stride, n, T(0), at.w, n),
                       list);
    }
    return without_repetitions(std::move(list));
}

template <class T>
KernelList column_kernels() {
    const std::string name = device_name<T>();
    KernelList list;
    for (const char* kernel :
         {"axpby", "dots", "fill", "gather_columns", "gather_columns_in_place", "gather_rows"}) {
        list.push_back({"column_ops.cuh", instance(kernel, name)});
    }
    list.push_back({"convert.cuh", instance("convert", name, name)});
    for (const KernelList& csr : {csr_kernels<T, std::int32_t>(), csr_kernels<T, std::int64_t>()}) {
        list.insert(list.end(), csr.begin(), csr.end());
    }
    list.push_back({"csr.cuh", instance("check_values", name)});
    list.push_back({"csr.cuh", instance("count_entries", "int")});
    list.push_back({"random.cuh", instance("fill_random", name)});
    list.push_back({"gram_factor.cuh", instance("gram_factor", name)});
    return without_repetitions(std::move(list));
}

template <class T>
KernelList sparse_kernels(const SparseDemand& demand) {
    KernelList list;
    for (const int width : demand.widths) {
        if (width < 1 || width > widest_panel) {
            continue;
        }
        for (const SpmmvEnding ending :
             {SpmmvEnding::scaled, SpmmvEnding::fused, SpmmvEnding::dotted}) {
            const bool dots = ending == SpmmvEnding::dotted;
            if (dots && !demand.dots) {
                continue;
            }
            const SpmmvTiling tiling({.scalar_bytes = sizeof(T),
                                      .width = width,
                                      .align = spmmv_alignment(width * static_cast<int>(sizeof(T))),
                                      .chunk = demand.chunk,
                                      .row_entries = demand.row_entries,
                                      .tile = demand.tile,
                                      .halo = demand.halo,
                                      .fused = ending == SpmmvEnding::fused,
                                      .dots = dots,
                                      .apart = demand.apart},
                                     spmmv_settings({}, dots));
            const bool in_packs = demand.chunk == SparseDemand().chunk && !demand.wide &&
                                  !demand.halo && !demand.checked;
            list.push_back({"spmmv.cuh",
                            expression<T>(tiling, demand.wide ? "long" : "int", demand.halo, ending,
                                          demand.checked),
                            in_packs && tiling.split == 1 && !dots});
        }
    }
    return without_repetitions(std::move(list));
}

PackContents pack_contents(const std::string& arch, bool wide) {
    const int capability = capability_of(arch);
    Context ctx;
    Planner planner(ctx, machine_of(capability));
    KernelList list;
#define QUIVER_APPEND(T) append_pack<T>(planner, wide, list);
    QUIVER_FOR_EACH_SCALAR(QUIVER_APPEND)
#undef QUIVER_APPEND
    return {without_repetitions(std::move(list)), planner.version(), planner.plans()};
}

namespace {

/// A Context's planner for the threads that list kernels.
struct BackgroundPlanner {
    std::mutex mutex;
    Planner planner;
};
/// A service of the Context. Later changes of the Context's plans do not affect it.
struct BackgroundPlannerOf {
    explicit BackgroundPlannerOf(Context& ctx)
        : planner(new BackgroundPlanner{{}, ctx.service<Planner>().copy()}) {}
    std::shared_ptr<BackgroundPlanner> planner;
};

}  // namespace

void open_compiler(Context& ctx) {
    static_cast<void>(ctx.service<Specialiser>());
}

void wait_for_kernels(Context& ctx) {
    ctx.service<Specialiser>().wait();
}

template <class T>
void request_products(Context& ctx, const BlockDemand& demand) {
    const std::shared_ptr<BackgroundPlanner> background =
        ctx.service<BackgroundPlannerOf>().planner;
    ctx.service<Specialiser>().request_all([background, demand](const Specialiser::Use& use) {
        // Other threads may run tasks of the same Context.
        const std::lock_guard lock(background->mutex);
        Planner* const planner = &background->planner;
        const auto all = [&](const KernelList& list) {
            return std::all_of(list.begin(), list.end(), use);
        };
        bool goes_on = all(column_kernels<T>());
        const BlockDemand blocks{demand.rows, demand.blocks, {}, demand.stride, {}, demand.pairs};
        goes_on = goes_on && all(kernels_of<T>(*planner, blocks));
        for (const int base : demand.bases) {
            KernelList list;
            append_base<T>(*planner, demand, base, list);
            goes_on = goes_on && all(list);
        }
        if (goes_on && !demand.bases.empty()) {
            const BlockDemand restart{
                demand.rows, {}, {demand.bases.back()}, demand.stride, demand.kept};
            static_cast<void>(all(kernels_of<T>(*planner, restart)));
        }
    });
}

template <class T>
void request_spmmv(Context& ctx, const SpmmvArgs<T>& args, std::span<const int> widths, bool dots) {
    const std::int64_t rows = std::max<std::int64_t>(args.rows, 1);
    const SparseDemand demand{args.chunk,
                              args.tile,
                              args.column64 != nullptr,
                              args.halo != nullptr,
                              (args.entries + rows - 1) / rows,
                              {widths.begin(), widths.end()},
                              dots,
                              args.columns > 0,
                              args.apart};
    ctx.service<Specialiser>().request_all([demand](const Specialiser::Use& use) {
        const KernelList list = sparse_kernels<T>(demand);
        static_cast<void>(std::all_of(list.begin(), list.end(), use));
    });
}

#define QUIVER_INSTANTIATE(T)                                                               \
    template KernelList kernels_of<T>(Planner&, const BlockDemand&);                        \
    template void request_products<T>(Context&, const BlockDemand&);                        \
    template void request_spmmv(Context&, const SpmmvArgs<T>&, std::span<const int>, bool); \
    template KernelList column_kernels<T>();                                                \
    template KernelList sparse_kernels<T>(const SparseDemand&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
