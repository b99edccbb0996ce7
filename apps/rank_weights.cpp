// SPDX-License-Identifier: BSD-3-Clause
#include "apps/rank_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>

#include <fmt/format.h>

#include "apps/report.hpp"
#include "apps/run.hpp"
#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/ceilings.hpp"

namespace quiver::apps {
namespace {

std::vector<double> parse_weights(const std::string& text, int ranks) {
    std::vector<double> weights;
    std::istringstream list(text);
    for (std::string word; std::getline(list, word, ',');) {
        double weight = -1;
        if (parse_real(word, weight) != std::errc() || !(weight >= 0) || !std::isfinite(weight)) {
            throw InputError(
                fmt::format("--weights {}: '{}' is not a number of at least 0", text, word));
        }
        weights.push_back(weight);
    }
    if (weights.size() != static_cast<std::size_t>(ranks)) {
        throw InputError(fmt::format("--weights {}: {} for {}", text,
                                     plural(std::ssize(weights), "weight"), plural(ranks, "rank")));
    }
    if (*std::max_element(weights.begin(), weights.end()) == 0) {
        throw InputError(fmt::format("--weights {}: all are 0", text));
    }
    return weights;
}

}  // namespace

double stream_speed(const Device& device) {
    Context ctx(Comm(), device);
    const bool cuda = ctx.place() == Place::device;
    const std::int64_t count = std::int64_t{1} << (cuda ? 26 : 23);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
    const Buffer x = ctx.allocate(memory_kind(ctx.place()), bytes, "bandwidth");
    const Buffer y = ctx.allocate(memory_kind(ctx.place()), bytes, "bandwidth");
    if (cuda) {
        device::set_zero(x.as<void>(), bytes, ctx.stream());
        device::set_zero(y.as<void>(), bytes, ctx.stream());
    } else {
        std::fill_n(x.as<double>(), count, 0.0);
        std::fill_n(y.as<double>(), count, 0.0);
    }
    double least = std::numeric_limits<double>::infinity();
    Stopwatch watch;
    for (int run = 0; run < 6; ++run) {
        ctx.synchronize();
        watch.lap();
        run_traffic(ctx, Traffic::copy, 0, 2.0, x.as<double>(), y.as<double>(), count);
        ctx.synchronize();
        const double seconds = watch.lap();
        least = run == 0 ? least : std::min(least, seconds);  // the first run compiles kernels
    }
    return 2 * static_cast<double>(bytes) / least;
}

std::vector<double> rank_weights(const Comm& comm, const Device& device, const std::string& text) {
    const bool measured = text == "measured";
    if (text != "equal" && text != "auto" && !measured) {
        std::vector<double> weights;
        comm.agree([&] { weights = parse_weights(text, comm.size()); });
        return weights;
    }
    if (text == "equal" || comm.size() == 1) {
        return {};
    }
    const std::int64_t gpus = comm.sum(std::int64_t{device.place == Place::device ? 1 : 0});
    if (!measured && (gpus == 0 || gpus == comm.size())) {
        return {};
    }
    std::vector<double> weights(static_cast<std::size_t>(comm.size()), 0.0);
    comm.barrier();
    comm.agree([&] { weights[static_cast<std::size_t>(comm.rank())] = stream_speed(device); });
    comm.sum(std::span<double>(weights));
    return weights;
}

}  // namespace quiver::apps
