// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/ceilings.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/bench/kernel.hpp"
#include "apps/bench/timer.hpp"
#include "blockvec/block_vector.hpp"
#include "blockvec/host_memory.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr double mega = 1e6;
constexpr int first_passes = 3;
constexpr int more_passes = 10;
/// After this time no more passes are needed: long passes are accurate enough. Caches of gigabytes
/// need operands so large that all passes would take too long.
constexpr double enough_seconds = 0.2;
constexpr double affordable_share = 0.75;
constexpr double arithmetic_seconds = 5e-3;
constexpr std::int64_t most_steps = 100'000'000;
constexpr double limit_share = 0.9;
constexpr double limit_extra_seconds = 5e-6;

/// The sum of the sizes of the last-level caches; a cache that several processors share counts
/// once.
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

/// The least time of at most `times` passes; stops once they took enough_seconds together.
template <class Work>
double least_seconds(Timer& timer, int times, Work&& work) {
    double least = timer.time(1, work);
    double spent = least;
    for (int i = 1; i < times && spent < enough_seconds; ++i) {
        const double seconds = timer.time(1, work);
        spent += seconds;
        least = std::min(least, seconds);
    }
    return least;
}

/// Bytes per second of the fastest form of the stream.
double measure_traffic(Context& ctx, Timer& timer, Traffic traffic, BlockView<double> x,
                       double* y) {
    const std::int64_t count = x.rows * x.cols;
    const auto seconds = [&](int form, int times) {
        // A factor of -1 keeps the numbers from growing or shrinking.
        return least_seconds(timer, times,
                             [&] { run_traffic(ctx, traffic, form, -1, x.data, y, count); });
    };
    int fastest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int form = 0; form < traffic_forms(ctx, traffic); ++form) {
        if (ctx.place() == Place::device) {
            seconds(form, 1);  // compiles the kernel
        }
        const double found = seconds(form, first_passes);
        if (found < least) {
            least = found;
            fastest = form;
        }
    }
    least = std::min(least, seconds(fastest, more_passes));
    return (traffic == Traffic::read ? 8.0 : 16.0) * static_cast<double>(count) / least;
}

double measure_arithmetic(Context& ctx, Timer& timer, Arithmetic arithmetic) {
    const std::int64_t size = arithmetic_results(ctx, arithmetic);
    BlockVector<double> results(ctx, RowMap::by_rows(ctx.comm(), size), 1);
    double flops = 0;
    std::int64_t steps = 1024;
    const auto work = [&] { flops = run_arithmetic(ctx, arithmetic, steps, results.view().data); };
    timer.time(1, work);
    // Quadruple the steps until the time grows at least threefold: then the arithmetic dominates,
    // and not threads that wait for a core.
    double seconds = least_seconds(timer, first_passes, work);
    for (bool grows = false; !(grows && seconds >= arithmetic_seconds) && steps < most_steps;) {
        steps *= 4;
        const double longer = least_seconds(timer, first_passes, work);
        grows = longer > 3 * seconds;
        seconds = longer;
    }
    return flops / std::min(seconds, least_seconds(timer, more_passes, work));
}

/// Measures the streams. Reading and scaling pass over all of `bytes`; copying goes from one half
/// to the other.
void measure_streams(Context& ctx, Timer& timer, double bytes, Ceilings& ceilings) {
    constexpr std::int64_t granule = std::int64_t{1} << 16;  // of run_traffic
    const std::int64_t half =
        std::max(static_cast<std::int64_t>(bytes / 16) / granule, std::int64_t{1}) * granule;
    BlockVector<double> all(ctx, RowMap::by_rows(ctx.comm(), 2 * half / 8), 8);
    BlockVector<double> sums(ctx, RowMap::by_rows(ctx.comm(), 2 * half / 16), 1);
    fill_random(ctx, 1, all);
    fill(ctx, 0.0, sums.view());
    const BlockView<double> x = all.view();
    const BlockView<double> from = x.row_range(0, half / 8);
    const BlockView<double> to = x.row_range(half / 8, half / 8);
    ceilings.copy = measure_traffic(ctx, timer, Traffic::copy, from, to.data);
    ceilings.scale = measure_traffic(ctx, timer, Traffic::scale, x, nullptr);
    ceilings.read = measure_traffic(ctx, timer, Traffic::read, x, sums.view().data);
}

}  // namespace

double cache_bytes(const Context& ctx) {
    return ctx.place() == Place::device
               ? static_cast<double>(device::properties(ctx.device().id).l2_bytes)
               : host_cache_bytes();
}

double default_operand_bytes(const Context& ctx, double caches) {
    const double least = ctx.place() == Place::device ? 2000 * mega : 64 * mega;
    return std::min(std::max(least, cold_caches * caches), memory_bytes(ctx) / 4);
}

double affordable_bytes(const Context& ctx) {
    return affordable_share * (ctx.place() == Place::device
                                   ? memory_bytes(ctx)
                                   : std::min(available_host_bytes(), available_address_space()));
}

double Ceilings::of(Traffic traffic) const {
    return traffic == Traffic::read ? read : traffic == Traffic::copy ? copy : scale;
}

double Ceilings::flops(Dtype scalar) const {
    if (scalar == Dtype::h || scalar == Dtype::b) {
        return 0;  // no kernel of these types comes near the peak
    }
    const bool single = scalar == Dtype::s || scalar == Dtype::c;
    double most = 0;
    for (const Peak& peak : peaks) {
        most = peak.single == single ? std::max(most, peak.flops) : most;
    }
    return most;
}

const char* to_string(Traffic traffic) {
    constexpr const char* names[] = {"read", "copy", "scale"};
    return names[static_cast<int>(traffic)];
}

std::string bandwidth_text(double bytes_per_second) {
    return bytes_per_second > 0 ? fmt::format("{:.0f} GB/s", 1e-9 * bytes_per_second)
                                : "not measured";
}

Ceilings measure_ceilings(Context& ctx, double bytes, double least_bytes) {
    Timer timer(ctx);
    Ceilings ceilings;
    const double affordable = std::min(bytes, affordable_bytes(ctx));
    if (affordable >= least_bytes) {
        measure_streams(ctx, timer, affordable, ceilings);
    }
    for (const Arithmetic arithmetic : all_arithmetic) {
        if (can_run(ctx, arithmetic)) {
            ceilings.peaks.push_back({quiver::to_string(arithmetic),
                                      measure_arithmetic(ctx, timer, arithmetic),
                                      arithmetic == Arithmetic::single_fma});
        }
    }
    return ceilings;
}

void hold_against(const Ceilings& ceilings, bool short_rows, Result& result) {
    const Kernel& kernel = *result.which.kernel;
    result.bytes = kernel.bytes(result.which);
    result.flops = kernel.flops(result.which);
    if (ceilings.of(kernel.traffic()) == 0 || result.in_cache) {
        return;
    }
    const double peak = ceilings.flops(result.which.scalar);
    const double memory_time = result.bytes / ceilings.of(kernel.traffic());
    const double flop_time = peak > 0 ? result.flops / peak : 0;
    const double least = std::max(memory_time, flop_time);
    result.ceiling = flop_time > memory_time ? "flops" : to_string(kernel.traffic());
    result.roofline_percent = result.samples > 0 ? 100 * least / result.seconds.median : 0;
    result.limit_seconds = short_rows ? least / limit_share + limit_extra_seconds : 0;
}

}  // namespace quiver::apps::bench
