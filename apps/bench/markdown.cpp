// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/markdown.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/aims.hpp"
#include "apps/bench/bench_report.hpp"
#include "apps/bench/words.hpp"
#include "apps/report.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

using Group = std::vector<const Result*>;

std::string bold_if(bool is_short, const std::string& text) {
    return is_short ? "**" + text + "**" : text;
}

std::string name_of(const Case& c) {
    return fmt::format("{} {} {}x{}, {} rows{}", c.kernel->name(), letter(c.scalar), c.shape.m,
                       c.shape.n, c.rows, gap_text(c.ld_extra));
}

/// Empty without a roofline.
std::string percent_text(const Result& result) {
    return result.has_roofline() ? fmt::format("{:.1f}", result.roofline_percent) : "";
}

/// In the unit of what binds.
std::string speed_of(const Result& result) {
    return result.ceiling == "flops"
               ? flops_text(result.flops / result.seconds.median)
               : fmt::format("{:.0f} GB/s", 1e-9 * result.bytes / result.seconds.median);
}

std::string head(const Document& document) {
    const Environment& environment = document.environment;
    const std::string host =
        fmt::format("{}, {}", environment.cpu, plural(environment.threads, "thread"));
    std::vector<std::string> kernels;
    for (const Result& result : document.session.results) {
        add_once(kernels, std::string(result.which.kernel->name()));
    }
    std::string names;
    for (const std::string& name : kernels) {
        names += (names.empty() ? "" : ", ") + name;
    }
    std::string text = fmt::format("# {} on {}, {}\n\n", names,
                                   environment.gpu.empty() ? environment.cpu : environment.gpu,
                                   document.session.runs.back().date.substr(0, 10));
    text += fmt::format("quiver {}", environment.version);
    if (!environment.gpu.empty()) {
        text += fmt::format(", {}, CUDA {}{}", environment.gpu, environment.cuda,
                            environment.driver.empty() ? "" : ", driver " + environment.driver);
    }
    for (const auto& [name, version] : environment.rivals) {
        text += fmt::format(", {} {}", name, version);
    }
    return text + fmt::format("; host: {}.\n\n", host);
}

/// The commands, each once, and the ceilings of each run that has results.
std::string runs(const Session& session) {
    std::set<int> used;
    for (const Result& result : session.results) {
        used.insert(result.run);
    }
    std::vector<std::string> commands;
    std::string table =
        "| run (UTC) | seconds | ceilings |\n"
        "|---|---|---|\n";
    for (const int index : used) {
        const Run& run = session.runs.at(static_cast<std::size_t>(index));
        if (!run.command.empty()) {
            add_once(commands, run.command);
        }
        table +=
            fmt::format("| {} | {:.0f} | {} |\n", run.date, run.seconds, to_text(run.ceilings));
    }
    std::string text;
    for (const std::string& command : commands) {
        text += "    " + command + "\n";
    }
    return text + (text.empty() ? "" : "\n") + table;
}

/// The summary's lines as a block of code, and the cases that are in no table.
std::string findings(const Document& document) {
    std::string text;
    std::string indented;
    for (const char letter : summary(document)) {
        indented += letter;
        indented += letter == '\n' ? "    " : "";
    }
    text += indented.substr(0, indented.find_last_not_of(' ') + 1);
    for (const Result& result : document.session.results) {
        if (result.outcome == Outcome::failed) {
            text += fmt::format("\nFailed: {}, {}: {}.\n", name_of(result.which), result.provider,
                                result.message);
        }
    }
    const std::size_t left = document.session.not_run.size();
    return left == 0 ? text
                     : text + fmt::format("\nNot run for want of time: {}.\n",
                                          plural(static_cast<std::int64_t>(left), "case"));
}

/// One kernel, scalar and gap.
std::string table(const Document& document, const Group& group) {
    const Case& any = group.front()->which;
    Group ours;
    std::vector<std::string> others;
    bool has_limits = false;
    for (const Result* each : group) {
        if (each->ours()) {
            ours.push_back(each);
        } else {
            add_once(others, each->provider);
        }
        has_limits = has_limits || each->limit_seconds > 0;
    }
    const auto key = [](const Result* each) {
        const Case& c = each->which;
        return std::tuple(c.shape.m != c.shape.n, c.shape.m, c.shape.n, c.rows);
    };
    std::sort(ours.begin(), ours.end(),
              [&](const Result* a, const Result* b) { return key(a) < key(b); });

    std::string text = fmt::format("\n## {} {}: {}{}\n\n", any.kernel->name(), letter(any.scalar),
                                   any.kernel->formula(), gap_text(any.ld_extra));
    std::string rule = "|---|---|---|---|---|---|";
    text += fmt::format("| {} | rows | us | speed | % of roofline | bound by |",
                        any.kernel->has_two_widths() ? "m x n" : "width");
    if (has_limits) {
        text += " limit us |";
        rule += "---|";
    }
    for (const std::string& other : others) {
        text += fmt::format(" {} % | ratio |", other);
        rule += "---|---|";
    }
    text += "\n" + rule + "\n";
    for (const Result* each : ours) {
        const Case& c = each->which;
        const bool is_short = falls_short(*each, document.environment);
        const std::string percent = percent_text(*each);
        const bool has_limit = each->limit_seconds > 0;
        text += fmt::format(
            "| {} | {} | {} | {} | {} | {} |",
            any.kernel->has_two_widths() ? fmt::format("{} x {}", c.shape.m, c.shape.n)
                                         : fmt::format("{}", c.shape.n),
            c.rows,
            bold_if(has_limit && is_short, fmt::format("{:.1f}", 1e6 * each->seconds.median)),
            speed_of(*each), bold_if(!has_limit && is_short, percent), each->ceiling);
        if (has_limits) {
            text += has_limit ? fmt::format(" {:.1f} |", 1e6 * each->limit_seconds) : " |";
        }
        for (const std::string& other : others) {
            const auto found = std::find_if(group.begin(), group.end(), [&](const Result* theirs) {
                return theirs->which == c && theirs->provider == other;
            });
            if (found == group.end()) {
                text += " | |";
                continue;
            }
            const Result& theirs = **found;
            const bool won = theirs.rival() && theirs.ratio < least_ratio;
            text += fmt::format(" {} | {}{} |", percent_text(theirs),
                                bold_if(won, fmt::format("{:.2f}", theirs.ratio)),
                                theirs.timed_once ? " (timed once)" : "");
        }
        text += each->outcome == Outcome::incorrect ? " **incorrect**\n" : "\n";
    }
    return text;
}

}  // namespace

std::string markdown(const Document& document) {
    std::string tables;
    for (const Kernel* kernel : all_kernels()) {
        for (const Dtype scalar : all_scalars) {
            std::map<int, Group> by_gap;
            for (const Result& result : document.session.results) {
                const Case& c = result.which;
                if (c.kernel == kernel && c.scalar == scalar && result.measured()) {
                    by_gap[c.ld_extra].push_back(&result);
                }
            }
            for (const auto& [gap, group] : by_gap) {
                tables += table(document, group);
            }
        }
    }
    if (tables.empty()) {
        throw InputError("nothing to tell: no case was measured");
    }
    return head(document) + runs(document.session) + findings(document) +
           "\nTimes are medians of a call. Ratio: the other's time over quiver's. **Bold**: below "
           "the "
           "aim, over the limit, or a ratio below " +
           fmt::format("{}", least_ratio) + ".\n" + tables;
}

}  // namespace quiver::apps::bench
