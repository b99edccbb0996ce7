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
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {
namespace {

constexpr double mega = 1e6;
constexpr int first_passes = 3;
constexpr int more_passes = 10;
constexpr double arithmetic_seconds = 5e-3;
constexpr std::int64_t most_steps = 100'000'000;
constexpr double limit_share = 0.9;
constexpr double limit_extra_seconds = 5e-6;

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

/// The least of some times, of more where the first ones are good.
template <class Work>
double least_seconds(Timer& timer, int times, Work&& work) {
    double least = timer.time(1, work);
    for (int i = 1; i < times; ++i) {
        least = std::min(least, timer.time(1, work));
    }
    return least;
}

/// Bytes per second of the fastest form.
double measure_traffic(Context& ctx, Timer& timer, Traffic traffic, BlockView<double> x,
                       BlockView<double> y) {
    const std::int64_t count = x.rows * x.cols;
    const auto seconds = [&](int form, int times) {
        // A factor of -1 keeps the numbers in range.
        return least_seconds(timer, times,
                             [&] { run_traffic(ctx, traffic, form, -1, x.data, y.data, count); });
    };
    int fastest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int form = 0; form < traffic_forms(ctx, traffic); ++form) {
        seconds(form, 1);  // compiles on a device
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
    // Until four times the steps take four times as long, and not threads that wait for a core.
    double seconds = least_seconds(timer, first_passes, work);
    for (bool grows = false; !(grows && seconds >= arithmetic_seconds) && steps < most_steps;) {
        steps *= 4;
        const double longer = least_seconds(timer, first_passes, work);
        grows = longer > 3 * seconds;
        seconds = longer;
    }
    return flops / std::min(seconds, least_seconds(timer, more_passes, work));
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

double Ceilings::of(Traffic traffic) const {
    return traffic == Traffic::read ? read : traffic == Traffic::copy ? copy : scale;
}

double Ceilings::flops(Dtype scalar) const {
    if (scalar == Dtype::h || scalar == Dtype::b) {
        return 0;  // no kernel of theirs comes near
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

std::string flops_text(double flops) {
    return flops >= 1e12 ? fmt::format("{:.1f} TFLOP/s", 1e-12 * flops)
                         : fmt::format("{:.1f} GFLOP/s", 1e-9 * flops);
}

std::string to_text(const Ceilings& ceilings) {
    std::string text =
        fmt::format("read {:.0f}, copy {:.0f}, scale {:.0f} GB/s", 1e-9 * ceilings.read,
                    1e-9 * ceilings.copy, 1e-9 * ceilings.scale);
    for (const Ceilings::Peak& peak : ceilings.peaks) {
        text += fmt::format("; {} {}", peak.name, flops_text(peak.flops));
    }
    return text;
}

Ceilings measure_ceilings(Context& ctx, double bytes) {
    // Each of two arrays as large as the operands of a case, in whole granules of run_traffic: a
    // stream in place touches one of them only.
    constexpr std::int64_t granule = std::int64_t{1} << 16;
    const std::int64_t count =
        std::max(static_cast<std::int64_t>(bytes / 8) / granule, std::int64_t{1}) * granule;
    const RowMap map = RowMap::by_rows(ctx.comm(), count / 8);
    BlockVector<double> x(ctx, map, 8);
    BlockVector<double> y(ctx, map, 8);
    fill_random(ctx, 1, x);
    fill(ctx, 0.0, y.view());
    Timer timer(ctx);
    Ceilings ceilings;
    ceilings.copy = measure_traffic(ctx, timer, Traffic::copy, x.view(), y.view());
    ceilings.scale = measure_traffic(ctx, timer, Traffic::scale, x.view(), y.view());
    ceilings.read = measure_traffic(ctx, timer, Traffic::read, x.view(), y.view());
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
    const double peak = ceilings.flops(result.which.scalar);
    const double memory_time = result.bytes / ceilings.of(kernel.traffic());
    const double flop_time = peak > 0 ? result.flops / peak : 0;
    const double least = std::max(memory_time, flop_time);
    result.ceiling = flop_time > memory_time ? "flops" : to_string(kernel.traffic());
    result.roofline_percent = result.samples > 0 ? 100 * least / result.seconds.median : 0;
    result.limit_seconds = short_rows ? least / limit_share + limit_extra_seconds : 0;
}

}  // namespace quiver::apps::bench
