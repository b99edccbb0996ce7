// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/kept_ceilings.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/bench_json.hpp"
#include "apps/bench/bench_report.hpp"
#include "apps/report.hpp"
#include "blockvec/cache_folder.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

/// Part of the file's name: another version may measure or write something else.
constexpr int format_version = 1;

/// The ranks that share this rank's GPU or, on a host, its node. Collective.
int ranks_beside(const Context& ctx) {
    const auto ranks = static_cast<int>(ctx.comm().sum_on_node(1));
    const int gpus = ctx.place() == Place::device ? std::max(device::count(), 1) : 1;
    return (ranks + gpus - 1) / gpus;
}

/// Empty without a folder.
std::string ceilings_file(const Context& ctx, int ranks) {
    const std::string folder = cache_folder();
    if (folder.empty()) {
        return "";
    }
    std::string name = ctx.place() == Place::device
                           ? device::properties(ctx.device().id).name
                           : fmt::format("{}-{}-threads", cpu_name(), ctx.threads());
    name += fmt::format("-{}-ranks", ranks);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
    return fmt::format("{}/ceilings-{}-{}.json", folder, format_version, name);
}

std::optional<Ceilings> read_file(const std::string& path) {
    std::ifstream file(path);
    if (path.empty() || !file) {
        return std::nullopt;
    }
    try {
        return read_ceilings(nlohmann::ordered_json::parse(file));
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;  // damaged, so it is measured and written again
    }
}

}  // namespace

Ceilings measure_share(Context& ctx, double share) {
    const double caches = cache_bytes(ctx);
    return measure_ceilings(ctx, share * default_operand_bytes(ctx, caches),
                            share * least_cold_caches * caches);
}

Ceilings kept_ceilings(const Context& ctx,
                       const std::function<Ceilings(Context&, double)>& measure) {
    const Comm& comm = ctx.comm();
    const int ranks = ranks_beside(ctx);
    std::string path;
    std::optional<Ceilings> kept;
    comm.agree([&] {
        path = ceilings_file(ctx, ranks);
        kept = read_file(path);
    });
    if (comm.sum(std::int64_t{kept ? 1 : 0}) == comm.size()) {
        return *kept;
    }
    Ceilings ceilings;
    comm.agree([&] {
        Context alone(Comm(), ctx.device());
        ceilings = measure(alone, 1.0 / ranks);
    });
    // If memory was short, the streams were not measured; the next run may have more.
    if (!path.empty() && ceilings.read > 0 && ceilings.copy > 0 && ceilings.scale > 0) {
        try {
            write_file(path, json_ceilings(ceilings).dump(1) + "\n");
        } catch (const Error&) {
            // The next run measures again.
        }
    }
    return ceilings;
}

}  // namespace quiver::apps::bench
