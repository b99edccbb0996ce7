// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/ceilings.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/bench/timer.hpp"
#include "blockvec/block_vector.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr double mega = 1e6;
constexpr int passes = 10;

/// The sizes of the last-level caches, each counted once however many processors share it.
double host_cache_bytes() {
    std::map<std::string, double> caches;
    for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); ++cpu) {
        for (int index = 9; index >= 0; --index) {
            const std::string folder =
                fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
            double kilobytes = 0;
            std::string sharers;
            if (std::ifstream(folder + "size") >> kilobytes &&
                std::ifstream(folder + "shared_cpu_list") >> sharers) {
                caches[sharers] = 1024 * kilobytes;
                break;
            }
        }
    }
    double sum = 0;
    for (const auto& [sharers, bytes] : caches) {
        sum += bytes;
    }
    return sum > 0 ? sum : 32 * mega;
}

double memory_bytes(const Context& ctx) {
    if (ctx.place() == Place::device) {
        return static_cast<double>(device::properties(ctx.device().id).free_bytes);
    }
    return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

/// Keeps the compiler from leaving out a computation whose result nobody reads.
void keep(double value) {
    asm volatile("" : : "g"(&value) : "memory");
}

double read_all(const double* x, std::int64_t count, int threads) {
    // Sixteen sums a thread: one would wait for its own additions.
    constexpr std::int64_t lanes = 16;
    double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
    {
        double sums[lanes] = {};
#pragma omp for schedule(static)
        for (std::int64_t i = 0; i < count / lanes; ++i) {
            for (std::int64_t lane = 0; lane < lanes; ++lane) {
                sums[lane] += x[i * lanes + lane];
            }
        }
        for (const double sum : sums) {
            total += sum;
        }
    }
    return total;
}

void scale_all(double* x, std::int64_t count, int threads) {
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
        x[i] *= -1.0;
    }
}

/// `steps` times 12 multiply-adds on vectors of `bytes` bytes, which wait for none of the others.
template <class R, int bytes>
struct MultiplyAdds {
    static constexpr int chains = 12;
    static constexpr double flops_a_step = 2.0 * chains * bytes / sizeof(R);

    [[gnu::always_inline]] static inline void run(std::int64_t steps) {
        typedef R Vector __attribute__((vector_size(bytes)));
        // Different, and none the fixed point 2, or the compiler would leave chains out.
        Vector sums[chains];
#pragma GCC unroll 12
        for (int chain = 0; chain < chains; ++chain) {
            sums[chain] = Vector{} + R(chain + 3);
        }
        const Vector factor = Vector{} + R(0.5);
        const Vector addend = Vector{} + R(1);
        for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
            for (int chain = 0; chain < chains; ++chain) {
                sums[chain] = sums[chain] * factor + addend;
            }
        }
        // Unrolled like the loop above: an index known only at run time keeps the sums in memory.
        Vector total = sums[0];
#pragma GCC unroll 12
        for (int chain = 1; chain < chains; ++chain) {
            total += sums[chain];
        }
        keep(static_cast<double>(total[0]));
    }
};

#if defined(__x86_64__)
template <class R>
[[gnu::target("avx2,fma"), gnu::noinline]] void run_avx2(std::int64_t steps) {
    MultiplyAdds<R, 32>::run(steps);
}
template <class R>
[[gnu::target("avx512f,fma"), gnu::noinline]] void run_avx512(std::int64_t steps) {
    MultiplyAdds<R, 64>::run(steps);
}
#endif
template <class R>
void run_baseline(std::int64_t steps) {
    MultiplyAdds<R, 16>::run(steps);
}

template <class R>
double host_flops(const Context& ctx, Timer& timer) {
    void (*run)(std::int64_t) = run_baseline<R>;
    double flops_a_step = MultiplyAdds<R, 16>::flops_a_step;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        run = run_avx512<R>;
        flops_a_step = MultiplyAdds<R, 64>::flops_a_step;
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        run = run_avx2<R>;
        flops_a_step = MultiplyAdds<R, 32>::flops_a_step;
    }
#endif
    constexpr std::int64_t steps = 1'000'000;
    double best = 0;
    for (int pass = 0; pass < passes; ++pass) {
        const double seconds = timer.time(1, [&] {
#pragma omp parallel num_threads(ctx.threads())
            run(steps);
        });
        best = std::max(best, flops_a_step * static_cast<double>(steps) * ctx.threads() / seconds);
    }
    return best;
}

}  // namespace

double cache_bytes(const Context& ctx) {
    return ctx.place() == Place::device
               ? static_cast<double>(device::properties(ctx.device().id).l2_bytes)
               : host_cache_bytes();
}

double default_operand_bytes(const Context& ctx) {
    const double least = ctx.place() == Place::device ? 2000 * mega : 64 * mega;
    return std::min(std::max(least, 4 * cache_bytes(ctx)), memory_bytes(ctx) / 4);
}

Ceilings measure_ceilings(Context& ctx) {
    // Two blocks of eight columns, together as large as the operands of a case.
    constexpr int cols = 8;
    const auto rows = static_cast<std::int64_t>(default_operand_bytes(ctx) / (2 * cols * 8.0));
    const RowMap map = RowMap::by_rows(ctx.comm(), rows);
    BlockVector<double> x(ctx, map, cols);
    BlockVector<double> y(ctx, map, cols);
    BlockVector<double> small(ctx, RowMap::by_rows(ctx.comm(), cols), cols);
    fill_random(ctx, 1, x);
    fill_random(ctx, 2, y);
    const BlockView<double> xv = x.view();
    const BlockView<double> yv = y.view();
    const std::int64_t count = rows * cols;
    const double bytes = 8.0 * static_cast<double>(count);
    Timer timer(ctx);
    const auto best_rate = [&](double moved, auto&& work) {
        work();  // compiles on a device
        ctx.synchronize();
        double best = 0;
        for (int pass = 0; pass < passes; ++pass) {
            best = std::max(best, moved / timer.time(1, work));
        }
        return best;
    };

    Ceilings ceilings;
    double sums[cols];
    ceilings.read = std::max(
        best_rate(bytes, [&] { dots<double>(ctx, xv, xv, sums); }),
        best_rate(2 * bytes, [&] { tsmttsm<double>(ctx, 1.0, xv, yv, 0.0, small.view()); }));
    ceilings.scale = std::max(best_rate(2 * bytes, [&] { scale<double>(ctx, -1.0, xv); }),
                              best_rate(2 * bytes, [&] { copy(ctx, xv, yv); }));
    if (ctx.place() == Place::host) {
        ceilings.read =
            std::max(ceilings.read,
                     best_rate(bytes, [&] { keep(read_all(xv.data, count, ctx.threads())); }));
        ceilings.scale =
            std::max(ceilings.scale,
                     best_rate(2 * bytes, [&] { scale_all(xv.data, count, ctx.threads()); }));
        ceilings.single_flops = host_flops<float>(ctx, timer);
        ceilings.double_flops = host_flops<double>(ctx, timer);
    }
    return ceilings;
}

void hold_against(const Ceilings& ceilings, Result& result) {
    result.bytes = minimum_bytes(result.which);
    result.flops = flops(result.which);
    const Kernel kernel = result.which.kernel;
    const bool reads_only = kernel == Kernel::tsmttsm || kernel == Kernel::dots;
    const Dtype scalar = result.which.scalar;
    const bool single = scalar == Dtype::s || scalar == Dtype::c;
    const double peak = single ? ceilings.single_flops : ceilings.double_flops;
    const double memory_time = result.bytes / (reads_only ? ceilings.read : ceilings.scale);
    const double flop_time = peak > 0 ? result.flops / peak : 0;
    result.ceiling = flop_time > memory_time ? "flops" : reads_only ? "read" : "scale";
    result.roofline_percent =
        result.samples > 0 ? 100 * std::max(memory_time, flop_time) / result.seconds.median : 0;
}

}  // namespace quiver::apps::bench
