// SPDX-License-Identifier: BSD-3-Clause
#include "apps/report_parts.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench/kernel.hpp"
#include "blockvec/config.hpp"

namespace quiver::apps {
namespace {

constexpr std::size_t most_kernels_shown = 12;

using nlohmann::ordered_json;

double rate(double amount, double seconds) {
    return amount / seconds * 1e-9;  // not finite if kernels were not timed
}

ordered_json to_json(const KernelRecord& record) {
    return {{"name", record.call.name},
            {"scalar", std::string(1, letter(record.call.dtype))},
            {"place", to_string(record.call.place)},
            {"rows", record.call.rows},
            {"m", record.call.m},
            {"n", record.call.n},
            {"calls", record.calls},
            {"seconds", json_number(record.seconds)},
            {"bytes", json_number(record.bytes)},
            {"flops", json_number(record.flops)},
            {"gb_per_s", json_number(rate(record.bytes, record.seconds))},
            {"gflop_per_s", json_number(rate(record.flops, record.seconds))}};
}

/// The numbers of the phases; one number alone for a single phase.
ordered_json json_seconds(const RunFacts& run) {
    if (run.seconds.size() == 1) {
        return json_number(run.seconds.front().second);
    }
    ordered_json result;
    for (const auto& [name, seconds] : run.seconds) {
        result[name] = json_number(seconds);
    }
    return result;
}

/// The seconds that a kernel's calls take at the ceilings; 0 without a measured stream. A kernel
/// that the bench does not know counts as a copy.
double least_seconds(const KernelRecord& record, const bench::Ceilings& ceilings) {
    const bench::Kernel* kernel = bench::find_kernel(record.call.name);
    const double speed = ceilings.of(kernel == nullptr ? Traffic::copy : kernel->traffic());
    const double peak = ceilings.flops(record.call.dtype);
    return speed > 0 ? std::max(record.bytes / speed, peak > 0 ? record.flops / peak : 0) : 0;
}

}  // namespace

std::string json_report(const char* command, const ordered_json& fields, const RunFacts& run) {
    return json_report(command, fields, run, ordered_json::object());
}

std::string json_report(const char* command, const ordered_json& fields, const RunFacts& run,
                        const ordered_json& more) {
    ordered_json json = {{"schema", report_schema},
                         {"command", command},
                         {"version", config::version},
                         {"date", utc_now()}};
    json.update(fields);
    if (!run.seconds.empty()) {
        json["seconds"] = json_seconds(run);
    }
    json.update({{"ranks", run.where.ranks},
                 {"threads", run.where.threads},
                 {"device", run.where.device},
                 {"device_name", run.where.device_name},
                 {"device_note", run.where.note}});
    json.update(more);
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json json_number(double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json json_numbers(const std::vector<double>& values) {
    ordered_json result = ordered_json::array();
    for (const double value : values) {
        result.push_back(json_number(value));
    }
    return result;
}

std::vector<int> correct_digits(const EigsReport& report) {
    std::vector<int> digits;
    for (std::size_t j = 0; j < report.errors.size(); ++j) {
        const double certain =
            std::floor(std::log10(std::abs(report.eigenvalues[j]) / report.errors[j]));
        digits.push_back(certain > 0 ? static_cast<int>(std::min(
                                           certain, is_single(report.matrix.scalar) ? 7.0 : 15.0))
                                     : 0);
    }
    return digits;
}

std::string digits_line(const EigsReport& report) {
    const std::vector<int> digits = correct_digits(report);
    const auto without = std::count(digits.begin(), digits.end(), 0);
    if (without == 0 || !report.converged) {
        return "";
    }
    constexpr double rounding_units = 64;
    const double rounding =
        rounding_units * report.norm_estimate *
        (is_single(report.matrix.scalar) ? std::numeric_limits<float>::epsilon()
                                         : std::numeric_limits<double>::epsilon());
    const bool may_help = report.method != "dense" && !report.tolerance_raised &&
                          std::any_of(report.residuals.begin(), report.residuals.end(),
                                      [&](double residual) { return residual > rounding; });
    std::vector<std::string> options;
    if (may_help) {
        options.emplace_back("a smaller --tol");
    }
    if (report.method_reason.empty() && report.method != "shift-invert") {
        options.emplace_back("--method shift-invert");
    }
    if (is_single(report.matrix.scalar)) {
        options.emplace_back(report.matrix.scalar == Dtype::s ? "--scalar d" : "--scalar z");
    }
    return fmt::format(
        "digits      {} below the error bound, so that no digit is certain{}{}\n",
        without == 1 ? "1 eigenvalue lies" : fmt::format("{} eigenvalues lie", without),
        may_help ? "" : "; rounding errors allow no more in this precision",
        options.empty() ? "" : fmt::format("; {} may give more", fmt::join(options, " or ")));
}

ordered_json json_matrix(const EigsReport::Matrix& matrix) {
    return {{"spec", matrix.spec},
            {"rows", matrix.rows},
            {"nnz", matrix.nonzeros},
            {"scalar", std::string(1, letter(matrix.scalar))},
            {"symmetry", to_string(matrix.symmetry)}};
}

ordered_json json_kernels(const std::vector<KernelRecord>& kernels) {
    ordered_json result = ordered_json::array();
    for (const KernelRecord& record : kernels) {
        result.push_back(to_json(record));
    }
    return result;
}

ordered_json json_overhead(const std::vector<OverheadRecord>& overhead) {
    ordered_json result = ordered_json::array();
    for (std::size_t i = 0; i < overhead.size(); ++i) {
        result.push_back({{"name", to_string(static_cast<Overhead>(i))},
                          {"count", overhead[i].count},
                          {"bytes", json_number(overhead[i].bytes)},
                          {"seconds", json_number(overhead[i].seconds)}});
    }
    return result;
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

std::string heading(const EigsReport::Matrix& matrix, const RunFacts::Where& where) {
    std::string text = fmt::format("matrix      {}: {}, {}, {}, {}\n", matrix.spec,
                                   plural(matrix.rows, "row"), plural(matrix.nonzeros, "nonzero"),
                                   name_of(matrix.scalar), to_string(matrix.symmetry));
    return text + where_lines(where, where.note.empty() ? ""
                                     : where.mixed      ? " (" + where.note + ")"
                                                   : " (no GPU: quiver info devices says why)");
}

std::string where_lines(const RunFacts::Where& where, const std::string& note) {
    return fmt::format("device      {}{}{}{}\nprocesses   {} of {}\n", where.device,
                       where.device_name.empty() ? "" : " ", where.device_name, note,
                       plural(where.ranks, "rank"), plural(where.threads, "thread"));
}

std::string abft_line(const EigsReport::Abft& abft) {
    const AbftCounts& counts = abft.counts;
    std::string text = fmt::format("abft        {}: {} of {} checked, ", abft.mode, counts.checked,
                                   plural(counts.products, abft.unit));
    if (counts.updates > 0) {
        text += fmt::format("{} of {}, ", counts.updates_checked,
                            plural(counts.updates, "block update"));
    }
    text += fmt::format("{} found", plural(counts.faults, "fault"));
    if (abft.mode == "correct") {
        text += fmt::format(", {} mended, {} redone, {} NOT", counts.mended, counts.redone,
                            counts.failed);
    }
    if (abft.injects) {
        text += fmt::format("; {} flipped by --inject{}", plural(counts.injected, "bit"),
                            abft.mode != "off" && counts.injected > counts.faults
                                ? ", some not found: below the bounds or where nothing is checked"
                                : "");
    }
    return text + "\n";
}

nlohmann::ordered_json json_abft(const EigsReport::Abft& abft) {
    const AbftCounts& counts = abft.counts;
    return {{"mode", abft.mode},
            {"products", counts.products},
            {"checked", counts.checked},
            {"basis_checks", counts.basis_checks},
            {"alarms", counts.alarms},
            {"rounding", counts.rounding},
            {"faults", counts.faults},
            {"mended", counts.mended},
            {"redone", counts.redone},
            {"failed", counts.failed},
            {"injected", counts.injected},
            {"updates", counts.updates},
            {"updates_checked", counts.updates_checked}};
}

double seconds_of(const RunFacts& run, const std::string& name) {
    for (const auto& [phase, seconds] : run.seconds) {
        if (phase == name) {
            return seconds;
        }
    }
    return 0;
}

std::string seconds_line(const RunFacts& run) {
    std::string text;
    for (const auto& [name, seconds] : run.seconds) {
        text += fmt::format("{}{}{}{:.3f}", text.empty() ? "seconds     " : ", ", name,
                            name.empty() ? "" : " ", seconds);
    }
    return text + "\n";
}

std::string kernel_table(const std::vector<KernelRecord>& kernels) {
    std::string text =
        fmt::format("\n{:<20} {:>6} {:>10} {:>5} {:>5} {:>8} {:>10} {:>8} {:>9}\n", "kernel",
                    "scalar", "rows", "m", "n", "calls", "seconds", "GB/s", "GFLOP/s");
    for (std::size_t i = 0; i < std::min(kernels.size(), most_kernels_shown); ++i) {
        const KernelRecord& record = kernels[i];
        text += fmt::format("{:<20} {:>6} {:>10} {:>5} {:>5} {:>8} {:>10.4f} {:>8.1f} {:>9.1f}\n",
                            record.call.name, letter(record.call.dtype), record.call.rows,
                            record.call.m, record.call.n, record.calls, record.seconds,
                            rate(record.bytes, record.seconds), rate(record.flops, record.seconds));
    }
    if (kernels.size() > most_kernels_shown) {
        text += fmt::format("and {} more in the JSON\n", kernels.size() - most_kernels_shown);
    }
    return text;
}

std::string profile_table(const std::vector<KernelRecord>& kernels,
                          const std::vector<OverheadRecord>& overhead, std::int64_t iterations,
                          double seconds, const bench::Ceilings& ceilings) {
    struct Row {
        std::string name;
        double calls = 0;
        double bytes = 0;
        double seconds = 0;
        /// At the ceilings.
        double least_seconds = 0;
    };
    std::vector<Row> rows;
    for (const KernelRecord& record : kernels) {
        auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Row& other) { return other.name == record.call.name; });
        if (row == rows.end()) {
            row = rows.insert(row, Row{record.call.name});
        }
        row->calls += static_cast<double>(record.calls);
        row->bytes += record.bytes;
        row->seconds += record.seconds;
        row->least_seconds += least_seconds(record, ceilings);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
    Row all{"all kernels"};
    for (const Row& row : rows) {
        all.calls += row.calls;
        all.bytes += row.bytes;
        all.seconds += row.seconds;
        all.least_seconds += row.least_seconds;
    }
    rows.push_back(all);
    for (std::size_t i = 0; i < overhead.size(); ++i) {
        const OverheadRecord& record = overhead[i];
        if (record.count > 0) {
            rows.push_back({to_string(static_cast<Overhead>(i)), static_cast<double>(record.count),
                            record.bytes, record.seconds});
        }
    }
    const double each = 1 / static_cast<double>(std::max<std::int64_t>(iterations, 1));
    std::string text = fmt::format(
        "\naverage of an iteration; number of iterations {}, {:.1f} us each\n\n"
        "| what | count | KB | us | % of the solve | % of ceiling |\n|---|---|---|---|---|---|\n",
        iterations, 1e6 * seconds * each);
    for (const Row& row : rows) {
        text += fmt::format("| {} | {:.2f} | {:.1f} | {:.2f} | {:.1f} | {} |\n", row.name,
                            row.calls * each, row.bytes * each / 1e3, 1e6 * row.seconds * each,
                            seconds > 0 ? 100 * row.seconds / seconds : 0.0,
                            row.least_seconds > 0 && row.seconds > 0
                                ? fmt::format("{:.0f}", 100 * row.least_seconds / row.seconds)
                                : "");
    }
    return text;
}

}  // namespace quiver::apps
