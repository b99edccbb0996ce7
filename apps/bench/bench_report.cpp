// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/bench_report.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "apps/report.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::size_t most_left_out_shown = 8;

/// The version of the NVIDIA kernel module, from a line such as "... x86_64 580.65.06 Release Build
/// ...".
std::string driver_version() {
    std::ifstream file("/proc/driver/nvidia/version");
    for (std::string word; file >> word;) {
        if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
            word.find('.') != std::string::npos) {
            return word;
        }
    }
    return "";
}

double giga(double amount) {
    return amount / 1e9;
}

}  // namespace

std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.find("model name") == 0) {
            return line.substr(std::min(line.find(':') + 2, line.size()));
        }
    }
    return "unknown processor";
}

Environment describe_environment(const Context& ctx, const std::string& device_note,
                                 const Rivals& rivals, double caches) {
    Environment environment;
    environment.cpu = cpu_name();
    environment.threads = ctx.threads();
    environment.device_note = device_note;
    environment.cache_bytes = caches;
    if (ctx.place() == Place::device) {
        environment.device = "cuda";
        environment.gpu = device::properties(ctx.device().id).name;
        environment.driver = driver_version();
    }
    for (const auto& rival : rivals) {
        environment.rivals[rival->name()] = rival->version();
    }
    return environment;
}

std::string table_head(const Environment& environment, const Ceilings& ceilings) {
    std::string text =
        fmt::format("host        {}, {}\n", environment.cpu, plural(environment.threads, "thread"));
    text += fmt::format("device      {}", environment.device);
    if (!environment.gpu.empty()) {
        text += " " + environment.gpu;
    }
    if (!environment.device_note.empty()) {
        text += " (no GPU: " + environment.device_note + ")";
    }
    text += '\n';
    for (const auto& [name, version] : environment.rivals) {
        text += fmt::format("{:<11} {}\n", name, version);
    }
    text +=
        ceilings.read > 0
            ? fmt::format("ceilings    read {:.1f}, copy {:.1f}, scale {:.1f} GB/s\n",
                          giga(ceilings.read), giga(ceilings.copy), giga(ceilings.scale))
            : fmt::format(
                  "ceilings    read, copy and scale not measured: twice the caches are {:.0f} MB, "
                  "more than three quarters of the free memory\n",
                  1e-6 * least_cold_caches * environment.cache_bytes);
    for (const Ceilings::Peak& peak : ceilings.peaks) {
        text += fmt::format("            {} {:.1f} GFLOP/s\n", peak.name, giga(peak.flops));
    }
    text += fmt::format(
        "\n{:<25} {:>6} {:>4} {:>4} {:>11} {:>4} {:<16} {:>10} {:>21} {:>8} {:>9} {:>14} {:>6} "
        "{:>14}  "
        "{}\n",
        "kernel", "scalar", "m", "n", "rows", "+ld", "library", "median us", "quartiles us", "GB/s",
        "GFLOP/s", "% of roofline", "ratio", "limit us", "result");
    return text;
}

std::string table_row(const Result& result) {
    const Case& c = result.which;
    std::string text =
        fmt::format("{:<25} {:>6} {:>4} {:>4} {:>11} {:>4} {:<16} ", c.kernel->name(),
                    letter(c.scalar), c.shape.m, c.shape.n, c.rows, c.ld_extra, result.library);
    if (!result.measured()) {
        return text + fmt::format("{}: {}\n", to_string(result.outcome), result.message);
    }
    const Times& seconds = result.seconds;
    const std::string quartiles =
        fmt::format("{:.1f} .. {:.1f}", 1e6 * seconds.lower_quartile, 1e6 * seconds.upper_quartile);
    const std::string percent =
        result.has_roofline() ? fmt::format("{:.1f}", result.roofline_percent) : "";
    const std::string ratio = result.ratio > 0 ? fmt::format("{:.2f}", result.ratio) : "";
    const std::string limit =
        result.limit_seconds > 0
            ? fmt::format("{:.1f} {:<3}", 1e6 * result.limit_seconds,
                          seconds.median <= result.limit_seconds ? "yes" : "no")
            : "";
    text += fmt::format("{:>10.1f} {:>21} {:>8.1f} {:>9.1f} {:>8} {:<5} {:>6} {:>14}  {}",
                        1e6 * seconds.median, quartiles, giga(result.bytes) / seconds.median,
                        giga(result.flops) / seconds.median, percent, result.ceiling, ratio, limit,
                        to_string(result.outcome));
    if (result.outcome == Outcome::incorrect) {
        text += fmt::format(": {:.3g} times the bound of rounding", result.error);
    }
    if (result.timed_once) {
        text += ", timed once";
    }
    if (result.in_cache) {
        text += ", operands in a cache";
    }
    if (result.joules > 0) {
        text += fmt::format(", {:.3g} J a call", result.joules);
    }
    return text + '\n';
}

std::string not_compared(const Document& document) {
    std::string text;
    for (const auto& [rival, version] : document.environment.rivals) {
        std::map<std::string, bool> knows;
        for (const Result& result : document.session.results) {
            knows[result.which.kernel->name()] |= result.library == rival;
        }
        std::string kernels;
        for (const auto& [kernel, known] : knows) {
            kernels += known ? "" : (kernels.empty() ? "" : ", ") + kernel;
        }
        if (!kernels.empty()) {
            text += fmt::format("missing     {} has no {}\n", rival, kernels);
        }
    }
    return text;
}

std::string table_foot(const Session& session, double seconds) {
    std::string text =
        fmt::format("\n{} in {:.1f} s\n", plural(std::ssize(session.results), "result"), seconds);
    const auto& left = session.not_run;
    if (!left.empty()) {
        text += fmt::format("not run     {}, no time left (--budget): ",
                            plural(std::ssize(left), "case"));
        for (std::size_t i = 0; i < std::min(left.size(), most_left_out_shown); ++i) {
            text += fmt::format("{}{} {} {}x{} of {} rows{}", i == 0 ? "" : "; ",
                                left[i].kernel->name(), letter(left[i].scalar), left[i].shape.m,
                                left[i].shape.n, left[i].rows, gap_text(left[i].ld_extra));
        }
        text += left.size() > most_left_out_shown ? ", ... (--json has them all)\n" : "\n";
    }
    return text;
}

}  // namespace quiver::apps::bench
