// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "apps/bench/svg_chart.hpp"
#include "apps/report.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

constexpr std::size_t rows_of_a_sweep = 3;
constexpr std::size_t charts_across = 4;
constexpr const char* roofline_name = "roofline";

using Group = std::vector<const Result*>;

/// Colours that those who see few of them can tell apart (Okabe and Ito).
std::string colour_of(const std::string& provider) {
    static const std::map<std::string, std::string> colours{
        {quiver_name, "#0072B2"}, {"cublas", "#D55E00"},     {"cusparse", "#E69F00"},
        {model_name, "#56B4E9"},  {atomics_name, "#F0E442"}, {"openblas", "#009E73"},
        {"eigen", "#CC79A7"}};
    const auto found = colours.find(provider);
    return found == colours.end() ? "#000000" : found->second;
}

int marker_of(const std::string& provider) {
    return provider == quiver_name     ? 1
           : is_this_library(provider) ? 4
           : provider == "eigen"       ? 3
                                       : 2;
}

/// Ours last, so that it lies on top.
std::vector<std::string> providers_of(const Group& group) {
    std::vector<std::string> providers;
    for (const Result* result : group) {
        if (std::find(providers.begin(), providers.end(), result->provider) == providers.end()) {
            providers.push_back(result->provider);
        }
    }
    std::stable_partition(providers.begin(), providers.end(),
                          [](const std::string& each) { return each != quiver_name; });
    return providers;
}

template <class X>
Chart percent_chart(const Group& group, X&& x_of, bool line) {
    Chart chart;
    chart.y = {"% of the roofline", 0, 110, false, 20};
    for (const Result* result : group) {
        chart.y.high = std::max(chart.y.high, std::min(result->roofline_percent + 10, 200.0));
    }
    for (const std::string& provider : providers_of(group)) {
        Series series{provider, colour_of(provider), {}, line, false, marker_of(provider)};
        for (const Result* result : group) {
            if (result->provider == provider && result->has_roofline()) {
                series.points.emplace_back(x_of(*result), result->roofline_percent);
            }
        }
        std::sort(series.points.begin(), series.points.end());
        chart.series.push_back(std::move(series));
    }
    return chart;
}

/// "ceiling: 4646 GB/s read, 64.7 TFLOP/s"
std::string ceiling_text(const Document& document, const Result& result) {
    const Ceilings& ceilings =
        document.session.runs.at(static_cast<std::size_t>(result.run)).ceilings;
    const Traffic traffic = result.which.kernel->traffic();
    std::string text =
        fmt::format("ceiling: {} {}", bandwidth_text(ceilings.of(traffic)), to_string(traffic));
    const double peak = ceilings.flops(result.which.scalar);
    return peak > 0 ? text + ", " + flops_text(peak) : text;
}

Chart width_chart(const Document& document, const Group& group) {
    Chart chart = percent_chart(
        group, [](const Result& result) { return result.which.shape.n; }, true);
    int widest = 1;
    int first_by_flops = std::numeric_limits<int>::max();
    for (const Result* result : group) {
        widest = std::max(widest, result->which.shape.n);
        if (result->ceiling == "flops") {
            first_by_flops = std::min(first_by_flops, result->which.shape.n);
        }
    }
    const double step = widest <= 16 ? 2 : widest <= 64 ? 8 : 64;
    chart.x = {"width m = n", 0, widest + step / 4, false, step};
    chart.marks.push_back({100, ceiling_text(document, *group.front()), false});
    if (first_by_flops <= widest && first_by_flops > 1) {
        chart.marks.push_back({first_by_flops - 0.5, "bound by flops", true});
    }
    return chart;
}

/// A logarithmic axis around all values, with some air.
Axis around(const char* label, double least, double most, double air) {
    return {label, least / 1.5, most * air, true, 1};
}

Chart intensity_chart(const Document& document, const Group& group) {
    const auto intensity = [](const Result& result) { return result.flops / result.bytes; };
    Chart chart = percent_chart(group, intensity, false);
    double least = std::numeric_limits<double>::max();
    double most = 0;
    for (const Result* result : group) {
        least = std::min(least, intensity(*result));
        most = std::max(most, intensity(*result));
    }
    chart.x = around("flops per byte (m and n differ)", least, most, 1.5);
    chart.marks.push_back({100, ceiling_text(document, *group.front()), false});
    return chart;
}

Chart rows_chart(const Group& group) {
    Chart chart;
    double least_rows = std::numeric_limits<double>::max();
    double most_rows = 0;
    double least_time = std::numeric_limits<double>::max();
    double most_time = 0;
    std::map<std::pair<int, int>, int> markers;
    const auto microseconds = [](const Result& result) { return 1e6 * result.seconds.median; };
    const auto bound = [&](const Result& result) {
        return microseconds(result) * result.roofline_percent / 100;
    };
    for (const Result* result : group) {
        const auto rows = static_cast<double>(result->which.rows);
        least_rows = std::min(least_rows, rows);
        most_rows = std::max(most_rows, rows);
        least_time = std::min(least_time, microseconds(*result));
        most_time = std::max(most_time, microseconds(*result));
        markers.emplace(std::pair(result->which.shape.m, result->which.shape.n), 0);
    }
    int next = 0;
    for (auto& [shape, marker] : markers) {
        marker = next++ % 4 + 1;
    }
    chart.x = around("rows", least_rows, most_rows, 6);
    chart.y = around("time of a call, us", least_time, most_time, 1.5);
    for (const std::string& provider : providers_of(group)) {
        for (const auto& [shape, marker] : markers) {
            const auto [m, n] = shape;
            Series series{provider, colour_of(provider), {}, true, false, marker};
            Series roofline{roofline_name, "#777777", {}, true, true, 0};
            for (const Result* result : group) {
                if (result->provider != provider || result->which.shape != Shape{m, n}) {
                    continue;
                }
                const auto rows = static_cast<double>(result->which.rows);
                series.points.emplace_back(rows, microseconds(*result));
                if (bound(*result) >= chart.y.low) {
                    roofline.points.emplace_back(rows, bound(*result));
                }
            }
            std::sort(series.points.begin(), series.points.end());
            std::sort(roofline.points.begin(), roofline.points.end());
            if (provider == quiver_name) {
                series.end_label = fmt::format("{}x{}", m, n);
                chart.series.push_back(std::move(roofline));
            }
            chart.series.push_back(std::move(series));
        }
    }
    return chart;
}

/// Of one kernel, scalar and gap between rows at most three: of square shapes, of others, of sweeps
/// over rows.
void add_charts(const Document& document, const Group& all, std::vector<Chart>& charts) {
    const Case& any = all.front()->which;
    std::map<std::pair<int, int>, std::size_t> numbers_of_rows;
    for (const Result* result : all) {
        if (result->ours()) {
            ++numbers_of_rows[{result->which.shape.m, result->which.shape.n}];
        }
    }
    Group square;
    Group other;
    Group sweep;
    for (const Result* result : all) {
        const auto [m, n] = result->which.shape;
        Group& chosen = numbers_of_rows[{m, n}] >= rows_of_a_sweep ? sweep
                        : m == n                                   ? square
                                                                   : other;
        chosen.push_back(result);
    }
    const auto add = [&](const Group& group, auto&& make) {
        if (!group.empty()) {
            charts.push_back(make(group));
            charts.back().title = fmt::format("{} {}: {}{}", any.kernel->name(), letter(any.scalar),
                                              any.kernel->formula(), gap_text(any.ld_extra));
        }
    };
    add(square, [&](const Group& group) { return width_chart(document, group); });
    add(other, [&](const Group& group) { return intensity_chart(document, group); });
    add(sweep, [](const Group& group) { return rows_chart(group); });
}

std::vector<std::string> caption_of(const Document& document) {
    const Environment& environment = document.environment;
    std::string first = environment.gpu.empty() ? fmt::format("{}, {}", environment.cpu,
                                                              plural(environment.threads, "thread"))
                                                : environment.gpu;
    first += fmt::format(". quiver {}", environment.version);
    for (const auto& [name, version] : environment.rivals) {
        first += fmt::format(", {} {}", name, version);
    }
    const Run& run = document.session.runs.back();
    first += fmt::format(". {}.", run.date.substr(0, 10));
    return {first, "Ceilings: " + to_text(run.ceilings) + "."};
}

}  // namespace

namespace {

/// One page tells of one machine. Threads of the host beside a GPU make no difference.
void require_same_machine(const Environment& one, const Environment& other) {
    if (one.gpu != other.gpu || one.cpu != other.cpu ||
        (one.gpu.empty() && one.threads != other.threads)) {
        throw InputError(fmt::format(
            "--plot-from: the files were measured on different machines, {} {}, {} threads, and "
            "{} {}, {} threads; draw them apart",
            one.cpu, one.gpu, one.threads, other.cpu, other.gpu, other.threads));
    }
}

}  // namespace

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
                return old.which == result.which && old.provider == result.provider;
            });
            all.session.results.push_back(std::move(result));
        }
    }
    return all;
}

std::string plot(const Document& document) {
    std::vector<std::vector<Chart>> rows_of_charts;
    for (const Kernel* kernel : all_kernels()) {
        std::vector<Chart> charts;
        for (const Dtype scalar : all_scalars) {
            std::map<int, Group> by_gap;
            for (const Result& result : document.session.results) {
                if (result.which.kernel == kernel && result.which.scalar == scalar &&
                    result.measured()) {
                    by_gap[result.which.ld_extra].push_back(&result);
                }
            }
            for (const auto& [gap, group] : by_gap) {
                add_charts(document, group, charts);
            }
        }
        for (std::size_t i = 0; i < charts.size(); ++i) {
            if (i % charts_across == 0) {
                rows_of_charts.emplace_back();
            }
            rows_of_charts.back().push_back(std::move(charts[i]));
        }
    }
    if (rows_of_charts.empty()) {
        throw InputError("nothing to plot: no case was measured");
    }
    return draw_svg(rows_of_charts, caption_of(document));
}

}  // namespace quiver::apps::bench
