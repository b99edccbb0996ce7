// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/bench_json.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/aims.hpp"
#include "apps/bench/bench_report.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int schema = 5;
/// An older schema that can still be read; it has `provider` instead of `library`.
constexpr int former_schema = 2;

using nlohmann::ordered_json;

double giga(double amount) {
    return amount / 1e9;
}

ordered_json measured_or_null(double value) {
    return value > 0 ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json describe(const Case& c) {
    ordered_json json = {{"kernel", c.kernel->name()},
                         {"scalar", std::string(1, letter(c.scalar))},
                         {"m", c.shape.m},
                         {"n", c.shape.n},
                         {"rows", c.rows},
                         {"ld_extra", c.ld_extra}};
    if (!c.matrix.empty()) {
        json["matrix"] = c.matrix;
        json["nonzeros"] = c.nonzeros;
    }
    if (c.tile > 0) {
        json["tile"] = c.tile;
    }
    return json;
}

ordered_json describe(const Result& result, const Environment& environment) {
    ordered_json json = describe(result.which);
    json["library"] = result.library;
    json["run"] = result.run;
    json["outcome"] = to_string(result.outcome);
    json["message"] = result.message;
    if (!result.measured()) {
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
    json["gb_per_s"] = giga(result.bytes) / seconds.median;
    json["gflop_per_s"] = giga(result.flops) / seconds.median;
    json["in_cache"] = result.in_cache;
    json["ceiling"] = result.ceiling;
    json["roofline_percent"] = measured_or_null(result.roofline_percent);
    json["ratio"] = measured_or_null(result.ratio);
    json["timed_once"] = result.timed_once;
    json["limit_seconds"] = measured_or_null(result.limit_seconds);
    json["misses_aim"] = result.ours() && falls_short(result, environment);
    json["joules"] = measured_or_null(result.joules);
    return json;
}

ordered_json describe(const Run& run) {
    return {{"date", run.date},
            {"command_line", run.command},
            {"rivals", run.rivals},
            {"seconds", run.seconds},
            {"ceilings", json_ceilings(run.ceilings)}};
}

/// Properties of each kernel that has results, for readers of the file.
ordered_json describe_kernels(const Session& session) {
    ordered_json kernels = ordered_json::object();
    for (const Kernel* kernel : all_kernels()) {
        if (std::any_of(session.results.begin(), session.results.end(),
                        [&](const Result& result) { return result.which.kernel == kernel; })) {
            kernels[kernel->name()] = {{"formula", kernel->formula()},
                                       {"stream", to_string(kernel->traffic())},
                                       {"two_widths", kernel->has_two_widths()}};
        }
    }
    return kernels;
}

ordered_json describe(const FigureTable& table) {
    ordered_json rows = ordered_json::array();
    for (const auto& [label, cells] : table.rows) {
        ordered_json values = ordered_json::array();
        for (const FigureCell& cell : cells) {
            values.push_back({{"value", cell.value ? ordered_json(*cell.value) : nullptr},
                              {"library", cell.library}});
        }
        rows.push_back({{"row", label}, {"cells", std::move(values)}});
    }
    return {
        {"paper", table.paper},     {"figure", table.figure},       {"title", table.title},
        {"unit", table.unit},       {"published", table.published}, {"row_name", table.row_name},
        {"columns", table.columns}, {"rows", std::move(rows)},      {"remarks", table.remarks}};
}

/// The summary, line by line.
ordered_json describe_summary(const Document& document) {
    ordered_json lines = ordered_json::array();
    std::istringstream text(summary(document));
    for (std::string line; std::getline(text, line);) {
        if (!line.empty()) {
            lines.push_back(line);
        }
    }
    return lines;
}

/// The number, or `if_null` for null, which stands for numbers that are not finite.
double number(const ordered_json& json, double if_null = 0) {
    return json.is_null() ? if_null : json.get<double>();
}

Case read_case(const ordered_json& json) {
    Case c;
    const auto name = json.at("kernel").get<std::string>();
    c.kernel = find_kernel(name);
    if (c.kernel == nullptr) {
        throw InputError("there is no kernel " + name);
    }
    c.scalar = parse_scalars(json.at("scalar").get<std::string>()).front();
    c.shape = {json.at("m").get<int>(), json.at("n").get<int>()};
    c.rows = json.at("rows").get<std::int64_t>();
    c.ld_extra = json.value("ld_extra", 0);
    c.matrix = json.value("matrix", "");
    c.nonzeros = json.value("nonzeros", std::int64_t{0});
    c.tile = json.value("tile", 0);
    return c;
}

Outcome read_outcome(const std::string& text) {
    for (const Outcome outcome : {Outcome::passed, Outcome::incorrect, Outcome::failed}) {
        if (text == to_string(outcome)) {
            return outcome;
        }
    }
    throw InputError("there is no outcome " + text);
}

Result read_result(const ordered_json& json, std::size_t runs, bool former) {
    Result result;
    result.which = read_case(json);
    result.library = json.at(former ? "provider" : "library").get<std::string>();
    result.run = json.at("run").get<int>();
    if (result.run < 0 || static_cast<std::size_t>(result.run) >= runs) {
        throw InputError(
            fmt::format("a result belongs to run {}, but there are {}", result.run, runs));
    }
    result.outcome = read_outcome(json.at("outcome").get<std::string>());
    result.message = json.at("message").get<std::string>();
    if (!result.measured()) {
        return result;
    }
    result.error = number(json.at("error"), std::numeric_limits<double>::infinity());
    const ordered_json& seconds = json.at("seconds");
    result.seconds = {
        seconds.at("median").get<double>(), seconds.at("lower_quartile").get<double>(),
        seconds.at("upper_quartile").get<double>(), seconds.at("least").get<double>()};
    result.samples = json.at("samples").get<int>();
    result.calls_per_sample = json.at("calls_per_sample").get<int>();
    result.sets = json.at("sets").get<std::int64_t>();
    result.bytes = json.at("bytes").get<double>();
    result.flops = json.at("flops").get<double>();
    result.in_cache = json.value("in_cache", false);
    result.ceiling = json.at("ceiling").get<std::string>();
    result.roofline_percent = number(json.at("roofline_percent"));
    result.ratio = number(json.at("ratio"));
    result.timed_once = json.at("timed_once").get<bool>();
    result.limit_seconds = number(json.at("limit_seconds"));
    result.joules = json.contains("joules") ? number(json.at("joules")) : 0;
    return result;
}

Run read_run(const ordered_json& json) {
    Run run;
    run.date = json.at("date").get<std::string>();
    run.command = json.value("command_line", "");
    run.rivals = json.at("rivals").get<std::vector<std::string>>();
    run.seconds = number(json.at("seconds"));
    run.ceilings = read_ceilings(json.at("ceilings"));
    return run;
}

Environment read_environment(const ordered_json& json) {
    Environment environment;
    environment.cpu = json.at("cpu").get<std::string>();
    environment.threads = json.at("threads").get<int>();
    environment.device = json.at("device").get<std::string>();
    environment.gpu = json.at("gpu").get<std::string>();
    environment.device_note = json.at("device_note").get<std::string>();
    environment.cache_bytes = json.at("cache_bytes").get<double>();
    environment.rivals = json.at("rivals").get<std::map<std::string, std::string>>();
    environment.driver = json.value("driver", "");
    environment.cuda = json.at("cuda").is_null() ? "" : json.at("cuda").get<std::string>();
    return environment;
}

/// Throws InputError for different machines. On a GPU the host's threads are not compared.
void require_same_machine(const Environment& one, const Environment& other) {
    if (one.gpu != other.gpu || one.cpu != other.cpu ||
        (one.gpu.empty() && one.threads != other.threads)) {
        throw InputError(fmt::format(
            "the files were measured on different machines, {} {}, {} threads, and {} {}, {} "
            "threads; summarise them separately",
            one.cpu, one.gpu, one.threads, other.cpu, other.gpu, other.threads));
    }
}

}  // namespace

ordered_json json_ceilings(const Ceilings& ceilings) {
    ordered_json peaks = ordered_json::array();
    for (const Ceilings::Peak& peak : ceilings.peaks) {
        peaks.push_back({{"name", peak.name},
                         {"scalar", peak.single ? "s" : "d"},
                         {"gflop_per_s", giga(peak.flops)}});
    }
    return {{"read_gb_per_s", measured_or_null(giga(ceilings.read))},
            {"copy_gb_per_s", measured_or_null(giga(ceilings.copy))},
            {"scale_gb_per_s", measured_or_null(giga(ceilings.scale))},
            {"single_gflop_per_s", measured_or_null(giga(ceilings.flops(Dtype::s)))},
            {"double_gflop_per_s", measured_or_null(giga(ceilings.flops(Dtype::d)))},
            {"arithmetic", std::move(peaks)}};
}

Ceilings read_ceilings(const ordered_json& json) {
    Ceilings ceilings;
    ceilings.read = 1e9 * number(json.at("read_gb_per_s"));
    ceilings.copy = 1e9 * number(json.at("copy_gb_per_s"));
    ceilings.scale = 1e9 * number(json.at("scale_gb_per_s"));
    for (const ordered_json& peak : json.at("arithmetic")) {
        ceilings.peaks.push_back({peak.at("name").get<std::string>(),
                                  1e9 * peak.at("gflop_per_s").get<double>(),
                                  peak.at("scalar").get<std::string>() == "s"});
    }
    return ceilings;
}

std::string to_json(const Document& document) {
    const Environment& environment = document.environment;
    ordered_json runs = ordered_json::array();
    for (const Run& run : document.session.runs) {
        runs.push_back(describe(run));
    }
    ordered_json results = ordered_json::array();
    for (const Result& result : document.session.results) {
        results.push_back(describe(result, environment));
    }
    ordered_json not_run = ordered_json::array();
    for (const Case& c : document.session.not_run) {
        not_run.push_back(describe(c));
    }
    ordered_json figures = ordered_json::array();
    for (const FigureTable& table : document.figures) {
        figures.push_back(describe(table));
    }
    const ordered_json json = {
        {"schema", schema},
        {"command", "bench"},
        {"version", environment.version},
        {"kernel", document.kernel},
        {"repeat", document.repeat},
        {"budget", document.budget},
        {"environment",
         {{"cpu", environment.cpu},
          {"threads", environment.threads},
          {"device", environment.device},
          {"gpu", environment.gpu},
          {"cuda",
           environment.cuda.empty() ? ordered_json(nullptr) : ordered_json(environment.cuda)},
          {"driver", environment.driver},
          {"device_note", environment.device_note},
          {"cache_bytes", environment.cache_bytes},
          {"rivals", environment.rivals}}},
        {"runs", std::move(runs)},
        {"kernels", describe_kernels(document.session)},
        {"least_ratio", least_ratio},
        {"summary", describe_summary(document)},
        {"results", std::move(results)},
        {"not_run", std::move(not_run)},
        {"figures", std::move(figures)}};
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Document read_document(const std::string& path) {
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) {
        throw InputError(path + " is a folder, not a result of quiver bench");
    }
    std::ifstream file(path);
    if (!file) {
        throw InputError("cannot read " + path);
    }
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    try {
        const ordered_json json = ordered_json::parse(text);
        const bool former = json.at("schema") == former_schema;
        if (json.at("command") != "bench" || (json.at("schema") != schema && !former)) {
            throw InputError(fmt::format("not a result of quiver bench of schema {}", schema));
        }
        Document document;
        document.kernel = json.at("kernel").get<std::string>();
        document.repeat = json.at("repeat").get<int>();
        document.budget = json.at("budget").get<double>();
        document.environment = read_environment(json.at("environment"));
        document.environment.version = json.at("version").get<std::string>();
        for (const ordered_json& run : json.at("runs")) {
            document.session.runs.push_back(read_run(run));
        }
        for (const ordered_json& result : json.at("results")) {
            document.session.results.push_back(
                read_result(result, document.session.runs.size(), former));
        }
        for (const ordered_json& c : json.at("not_run")) {
            document.session.not_run.push_back(read_case(c));
        }
        return document;
    } catch (const Error& error) {
        throw InputError(path + ": " + error.what());
    } catch (const ordered_json::parse_error& error) {
        const std::string read = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
        throw InputError(
            path, 1 + std::count(read.begin(), read.end(), '\n'),
            fmt::format("invalid JSON at byte {}: not a result of quiver bench", error.byte));
    } catch (const ordered_json::exception&) {
        throw InputError(
            path +
            ": JSON with missing keys or values of a wrong type: not a result of quiver bench");
    }
}

Document merge(const std::vector<Document>& documents) {
    Document all = documents.front();
    for (std::size_t i = 1; i < documents.size(); ++i) {
        const Document& other = documents[i];
        require_same_machine(all.environment, other.environment);
        const int first_run = static_cast<int>(all.session.runs.size());
        all.session.runs.insert(all.session.runs.end(), other.session.runs.begin(),
                                other.session.runs.end());
        all.environment.rivals.insert(other.environment.rivals.begin(),
                                      other.environment.rivals.end());
        for (Result result : other.session.results) {
            result.run += first_run;
            std::erase_if(all.session.results, [&](const Result& old) {
                return old.which == result.which && old.library == result.library;
            });
            all.session.results.push_back(std::move(result));
        }
        all.session.not_run.insert(all.session.not_run.end(), other.session.not_run.begin(),
                                   other.session.not_run.end());
    }
    std::vector<Case> left;
    for (const Case& c : all.session.not_run) {
        const bool is_measured =
            std::any_of(all.session.results.begin(), all.session.results.end(),
                        [&](const Result& result) { return result.which == c; });
        if (!is_measured && std::find(left.begin(), left.end(), c) == left.end()) {
            left.push_back(c);
        }
    }
    all.session.not_run = std::move(left);
    return all;
}

}  // namespace quiver::apps::bench
