// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/bench_report.hpp"

#include <ctime>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/report.hpp"
#include "blockvec/config.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int schema = 1;
constexpr std::size_t most_left_out_shown = 8;

using nlohmann::ordered_json;

std::string cpu_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.find("model name") == 0) {
            return line.substr(std::min(line.find(':') + 2, line.size()));
        }
    }
    return "unknown processor";
}

double giga(double amount) {
    return amount * 1e-9;
}

/// Amount per second of the median call; null in JSON for a case that failed.
double rate(double amount, const Result& result) {
    return giga(amount) / result.seconds.median;
}

ordered_json measured_or_null(double value) {
    return value > 0 ? ordered_json(giga(value)) : ordered_json(nullptr);
}

ordered_json describe(const Case& c) {
    return {{"kernel", to_string(c.kernel)},
            {"scalar", std::string(1, letter(c.scalar))},
            {"m", c.shape.m},
            {"n", c.shape.n},
            {"rows", c.rows}};
}

ordered_json describe(const Result& result) {
    ordered_json json = describe(result.which);
    json["provider"] = result.provider;
    json["outcome"] = to_string(result.outcome);
    json["message"] = result.message;
    if (result.outcome == Outcome::failed) {
        return json;
    }
    const Times& seconds = result.seconds;
    json["error"] = result.error;
    json["seconds"] = {{"median", seconds.median},
                       {"lower_quartile", seconds.lower_quartile},
                       {"upper_quartile", seconds.upper_quartile},
                       {"least", seconds.least}};
    json["samples"] = result.samples;
    json["calls_per_sample"] = result.calls_per_sample;
    json["sets"] = result.sets;
    json["bytes"] = result.bytes;
    json["flops"] = result.flops;
    json["gb_per_s"] = rate(result.bytes, result);
    json["gflop_per_s"] = rate(result.flops, result);
    json["ceiling"] = result.ceiling;
    json["roofline_percent"] = result.roofline_percent;
    return json;
}

}  // namespace

Environment describe_environment(const Context& ctx, const std::string& device_note) {
    Environment environment;
    environment.cpu = cpu_name();
    environment.threads = ctx.threads();
    environment.device_note = device_note;
    environment.cache_bytes = cache_bytes(ctx);
    if (ctx.place() == Place::device) {
        environment.device = "cuda";
        environment.gpu = device::properties(ctx.device().id).name;
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
    text += fmt::format("\nceilings    read {:.1f} GB/s, scale {:.1f} GB/s, ", giga(ceilings.read),
                        giga(ceilings.scale));
    text += ceilings.double_flops > 0
                ? fmt::format("{:.1f} GFLOP/s single, {:.1f} double\n", giga(ceilings.single_flops),
                              giga(ceilings.double_flops))
                : "flops not measured: bandwidth alone is the roofline\n";
    text +=
        fmt::format("\n{:<8} {:>6} {:>4} {:>4} {:>11} {:<9} {:>10} {:>21} {:>8} {:>9} {:>14}  {}\n",
                    "kernel", "scalar", "m", "n", "rows", "provider", "median us", "quartiles us",
                    "GB/s", "GFLOP/s", "% of roofline", "result");
    return text;
}

std::string table_row(const Result& result) {
    const Case& c = result.which;
    std::string text = fmt::format("{:<8} {:>6} {:>4} {:>4} {:>11} {:<9} ", to_string(c.kernel),
                                   letter(c.scalar), c.shape.m, c.shape.n, c.rows, result.provider);
    if (result.outcome == Outcome::failed) {
        return text + fmt::format("{}: {}\n", to_string(result.outcome), result.message);
    }
    const Times& seconds = result.seconds;
    const std::string quartiles =
        fmt::format("{:.1f} .. {:.1f}", 1e6 * seconds.lower_quartile, 1e6 * seconds.upper_quartile);
    text +=
        fmt::format("{:>10.1f} {:>21} {:>8.1f} {:>9.1f} {:>8.1f} {:<5}  {}", 1e6 * seconds.median,
                    quartiles, rate(result.bytes, result), rate(result.flops, result),
                    result.roofline_percent, result.ceiling, to_string(result.outcome));
    if (result.outcome == Outcome::incorrect) {
        text += fmt::format(": {:.3g} times the bound of rounding", result.error);
    }
    return text + '\n';
}

std::string table_foot(const Session& session, double seconds) {
    std::string text =
        fmt::format("\n{} in {:.1f} s\n", plural(std::ssize(session.results), "result"), seconds);
    const auto& left = session.not_run;
    if (!left.empty()) {
        text += fmt::format("not run     {} for want of time (--budget): ",
                            plural(std::ssize(left), "case"));
        for (std::size_t i = 0; i < std::min(left.size(), most_left_out_shown); ++i) {
            text += fmt::format("{}{} {} {}x{}", i == 0 ? "" : ", ", to_string(left[i].kernel),
                                letter(left[i].scalar), left[i].shape.m, left[i].shape.n);
        }
        text += left.size() > most_left_out_shown ? ", ... (all in the JSON)\n" : "\n";
    }
    return text;
}

std::string to_json(const Environment& environment, const Ceilings& ceilings, const Asked& asked,
                    const Session& session, double seconds) {
    ordered_json results = ordered_json::array();
    for (const Result& result : session.results) {
        results.push_back(describe(result));
    }
    ordered_json not_run = ordered_json::array();
    for (const Case& c : session.not_run) {
        not_run.push_back(describe(c));
    }
    const ordered_json json = {
        {"schema", schema},
        {"command", "bench"},
        {"version", config::version},
        {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
        {"kernel", asked.kernel},
        {"repeat", asked.repeat},
        {"budget", asked.budget},
        {"seconds", seconds},
        {"environment",
         {{"cpu", environment.cpu},
          {"threads", environment.threads},
          {"device", environment.device},
          {"gpu", environment.gpu},
          {"cuda", config::have_cuda ? ordered_json(config::cuda_version) : ordered_json(nullptr)},
          {"device_note", environment.device_note},
          {"cache_bytes", environment.cache_bytes}}},
        {"ceilings",
         {{"read_gb_per_s", measured_or_null(ceilings.read)},
          {"scale_gb_per_s", measured_or_null(ceilings.scale)},
          {"single_gflop_per_s", measured_or_null(ceilings.single_flops)},
          {"double_gflop_per_s", measured_or_null(ceilings.double_flops)}}},
        {"results", std::move(results)},
        {"not_run", std::move(not_run)}};
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace quiver::apps::bench
