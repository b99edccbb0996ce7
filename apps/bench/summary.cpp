// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "apps/bench/bench_report.hpp"
#include "apps/report.hpp"

namespace quiver::apps::bench {
namespace {

/// Below this a rival is the faster by more than the noise.
constexpr double even = 0.98;

std::string where(const Result& result) {
    return fmt::format("{}x{}, {} rows", result.which.shape.m, result.which.shape.n,
                       result.which.rows);
}

/// The results of one kernel and scalar.
using Group = std::vector<const Result*>;

template <class Keep>
Group filtered(const Group& group, Keep&& keep) {
    Group kept;
    std::copy_if(group.begin(), group.end(), std::back_inserter(kept), keep);
    return kept;
}

/// "67.1% at 64x64, 100 rows, median 80.2% of 12 cases"
std::string roofline_of(const char* what, Group group) {
    if (group.empty()) {
        return "";
    }
    std::sort(group.begin(), group.end(), [](const Result* a, const Result* b) {
        return a->roofline_percent < b->roofline_percent;
    });
    return fmt::format("  {:<13} at least {:.1f}% of the roofline ({}), median {:.1f}%, {}\n", what,
                       group.front()->roofline_percent, where(*group.front()),
                       group[group.size() / 2]->roofline_percent,
                       plural(std::ssize(group), "case"));
}

std::string limits_of(const Group& ours) {
    const Group limited =
        filtered(ours, [](const Result* each) { return each->limit_seconds > 0; });
    if (limited.empty()) {
        return "";
    }
    const auto excess = [](const Result* each) {
        return each->seconds.median / each->limit_seconds;
    };
    const auto within = std::count_if(limited.begin(), limited.end(),
                                      [&](const Result* each) { return excess(each) <= 1; });
    const Result* worst =
        *std::max_element(limited.begin(), limited.end(),
                          [&](const Result* a, const Result* b) { return excess(a) < excess(b); });
    return fmt::format(
        "  {:<13} {} of {} within roofline / 0.9 + 5 us; most {:.2f} times it ({})\n",
        "short blocks", within, limited.size(), excess(worst), where(*worst));
}

std::string ratios_of(const std::string& rival, const Group& theirs) {
    const Group compared =
        filtered(theirs, [](const Result* each) { return each->ratio > 0 && !each->timed_once; });
    const auto slow = std::count_if(theirs.begin(), theirs.end(),
                                    [](const Result* each) { return each->timed_once; });
    const std::string left_out =
        slow > 0 ? fmt::format(", {} left out (over 1 s, timed once)", plural(slow, "case")) : "";
    if (compared.empty()) {
        return fmt::format("  {:<13} no ratio{}\n", "vs " + rival, left_out);
    }
    double logs = 0;
    for (const Result* each : compared) {
        logs += std::log(each->ratio);
    }
    const Result* least =
        *std::min_element(compared.begin(), compared.end(),
                          [](const Result* a, const Result* b) { return a->ratio < b->ratio; });
    const auto slower = std::count_if(compared.begin(), compared.end(),
                                      [](const Result* each) { return each->ratio < even; });
    return fmt::format(
        "  {:<13} {:.2f} times as fast on the geometric mean of {}, least {:.2f} ({}), {} below "
        "{}{}\n",
        "vs " + rival, std::exp(logs / static_cast<double>(compared.size())),
        plural(std::ssize(compared), "case"), least->ratio, where(*least), slower, even, left_out);
}

}  // namespace

std::string summary(const Session& session) {
    std::string text;
    for (const Kernel* kernel : all_kernels()) {
        for (const Dtype scalar : {Dtype::s, Dtype::d, Dtype::c, Dtype::z}) {
            Group group;
            std::vector<std::string> rivals;
            for (const Result& result : session.results) {
                if (result.which.kernel == kernel && result.which.scalar == scalar &&
                    result.measured()) {
                    group.push_back(&result);
                    if (!result.ours() &&
                        std::find(rivals.begin(), rivals.end(), result.provider) == rivals.end()) {
                        rivals.push_back(result.provider);
                    }
                }
            }
            const Group ours = filtered(group, [](const Result* each) { return each->ours(); });
            if (ours.empty()) {
                continue;
            }
            text += fmt::format("{} {}\n", kernel->name(), letter(scalar));
            const auto is_short = [](const Result* each) { return each->limit_seconds > 0; };
            const auto by_flops = [](const Result* each) { return each->ceiling == "flops"; };
            text += roofline_of("memory-bound", filtered(ours, [&](const Result* each) {
                                    return !is_short(each) && !by_flops(each);
                                }));
            text += roofline_of("compute-bound", filtered(ours, [&](const Result* each) {
                                    return !is_short(each) && by_flops(each);
                                }));
            text += limits_of(ours);
            for (const std::string& rival : rivals) {
                text += ratios_of(rival, filtered(group, [&](const Result* each) {
                                      return each->provider == rival;
                                  }));
            }
        }
    }
    return text.empty() ? text : "\n" + text;
}

}  // namespace quiver::apps::bench
