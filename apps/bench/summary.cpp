// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "apps/bench/aims.hpp"
#include "apps/bench/bench_report.hpp"
#include "apps/report.hpp"

namespace quiver::apps::bench {
namespace {

using Group = std::vector<const Result*>;

constexpr std::size_t most_named = 8;

template <class Keep>
Group filtered(const Group& group, Keep&& keep) {
    Group kept;
    std::copy_if(group.begin(), group.end(), std::back_inserter(kept), keep);
    return kept;
}

double ratio_of(const Result* result) {
    return result->ratio;
}
double inverse_ratio_of(const Result* result) {
    return 1 / result->ratio;
}

template <class Value>
double geometric_mean(const Group& group, Value&& value) {
    double logs = 0;
    for (const Result* each : group) {
        logs += std::log(value(each));
    }
    return std::exp(logs / static_cast<double>(group.size()));
}

template <class Value>
const Result& least(const Group& group, Value&& value) {
    return **std::min_element(group.begin(), group.end(), [&](const Result* a, const Result* b) {
        return value(a) < value(b);
    });
}

template <class Value>
const Result& most(const Group& group, Value&& value) {
    return least(group, [&](const Result* each) { return -value(each); });
}

/// The results of one kernel, scalar, gap, kind of shape and kind of block (short or not): a line
/// for each bound, rival and variant.
class Part {
  public:
    Part(const Environment& environment, const Group& group)
        : environment_(environment), group_(group) {
        const Result& any = *group.front();
        const Case& c = any.which;
        label_ = fmt::format("{} {}", c.kernel->name(), letter(c.scalar));
        square_ = c.shape.m == c.shape.n;
        if (c.kernel->has_two_widths()) {
            label_ += square_ ? ", m = n" : ", m x n";
        }
        if (c.ld_extra > 0) {
            label_ += fmt::format(", ld + {}", c.ld_extra);
        }
        if (any.limit_seconds > 0) {
            label_ += ", short";
        }
        std::map<std::pair<int, int>, std::int64_t> rows;
        for (const Result* each : group) {
            const Case& other = each->which;
            const auto [found, added] =
                rows.try_emplace({other.shape.m, other.shape.n}, other.rows);
            names_rows_ = names_rows_ || found->second != other.rows;
        }
    }

    std::string text() const {
        const Group ours = filtered(group_, [](const Result* each) { return each->ours(); });
        const Group compared =
            filtered(ours, [](const Result* each) { return each->has_roofline(); });
        const auto by_flops = [](const Result* each) { return each->ceiling == "flops"; };
        std::string text;
        if (group_.front()->limit_seconds > 0) {
            text += limits(ours);
        } else {
            text +=
                roofline("memory-bound",
                         filtered(compared, [&](const Result* each) { return !by_flops(each); }));
            text += roofline("compute-bound", filtered(compared, by_flops));
        }
        std::set<std::string> others;
        for (const Result* each : group_) {
            if (!each->ours() && !is_figure_variant(each->library)) {
                others.insert(each->library);
            }
        }
        for (const std::string& other : others) {
            const Group theirs = filtered(group_, [&](const Result* each) {
                return each->library == other && each->ratio > 0;
            });
            text += other == model_name     ? model(theirs)
                    : other == atomics_name ? atomics(theirs)
                                            : ratios(other, theirs);
        }
        return text;
    }

  private:
    std::string line(const std::string& what, const std::string& says) const {
        return fmt::format("{:<28} {:<14} {}\n", label_, what, says);
    }

    std::string where(const Result& result) const {
        const Case& c = result.which;
        std::string text = c.kernel->has_two_widths() ? fmt::format("{}x{}", c.shape.m, c.shape.n)
                                                      : fmt::format("width {}", c.shape.n);
        return names_rows_ ? text + fmt::format(", {} rows", c.rows) : text;
    }

    /// ": 31x31, 62x62"; empty without results.
    std::string named(const Group& group) const {
        std::string text;
        for (std::size_t i = 0; i < std::min(group.size(), most_named); ++i) {
            text += (i == 0 ? ": " : names_rows_ ? "; " : ", ") + where(*group[i]);
        }
        return group.size() > most_named ? text + ", ..." : text;
    }

    /// "63 cases: median 93.0%, least 79.1% (53x53) of the roofline; 12 below the aim of 90%"
    std::string roofline(const char* bound, Group group) const {
        if (group.empty()) {
            return "";
        }
        std::sort(group.begin(), group.end(), [](const Result* a, const Result* b) {
            return a->roofline_percent < b->roofline_percent;
        });
        std::string says = fmt::format("{}: median {:.1f}%, least {:.1f}% ({}) of the roofline",
                                       plural(std::ssize(group), "case"),
                                       group[group.size() / 2]->roofline_percent,
                                       group.front()->roofline_percent, where(*group.front()));
        const auto aim = [&](const Result* each) { return aim_percent(*each, environment_); };
        const double low = aim(&least(group, aim));
        const double high = aim(&most(group, aim));
        if (low > 0) {
            const auto below = std::count_if(group.begin(), group.end(), [&](const Result* each) {
                return falls_short(*each, environment_);
            });
            says += fmt::format("; {} below the aim of {:.0f}{}%", below, low,
                                low < high ? fmt::format(" to {:.0f}", high) : "");
        }
        return line(bound, says);
    }

    std::string limits(const Group& ours) const {
        if (ours.empty()) {
            return "";
        }
        const auto excess = [](const Result* each) {
            return each->seconds.median / each->limit_seconds;
        };
        const auto within = std::count_if(ours.begin(), ours.end(),
                                          [&](const Result* each) { return excess(each) <= 1; });
        const Result& worst = most(ours, excess);
        return line(
            "limit",
            fmt::format("{} of {} within roofline / 0.9 + 5 us; most {:.2f} times it ({})", within,
                        plural(std::ssize(ours), "case"), excess(&worst), where(worst)));
    }

    std::string ratios(const std::string& rival, const Group& theirs) const {
        const Group compared =
            filtered(theirs, [](const Result* each) { return !each->timed_once; });
        const std::size_t slow = theirs.size() - compared.size();
        const std::string left_out =
            slow > 0 ? fmt::format("; {} left out (over 1 s, timed once)",
                                   plural(static_cast<std::int64_t>(slow), "case"))
                     : "";
        if (compared.empty()) {
            return line("vs " + rival, "no ratio" + left_out);
        }
        const Case& c = group_.front()->which;
        const bool has_aim =
            rival == "cublas" && square_ && c.ld_extra == 0 && group_.front()->limit_seconds == 0;
        const double aim = has_aim ? aim_of_mean(*c.kernel, c.scalar) : 0;
        const Result& worst = least(compared, ratio_of);
        const Group slower =
            filtered(compared, [](const Result* each) { return each->ratio < least_ratio; });
        return line(
            "vs " + rival,
            fmt::format("{}: {:.2f} times as fast (geometric mean{}), least {:.2f} ({}); {} below "
                        "{}{}{}",
                        plural(std::ssize(compared), "case"), geometric_mean(compared, ratio_of),
                        aim > 0 ? fmt::format(", aim {}", aim) : "", worst.ratio, where(worst),
                        slower.size(), least_ratio, named(slower), left_out));
    }

    std::string model(const Group& theirs) const {
        if (theirs.empty()) {
            return "";
        }
        const Result& worst = most(theirs, ratio_of);
        return line("model", fmt::format("{}: model's first choice over the table's: geometric "
                                         "mean {:.3f} (aim {}), worst {:.2f} ({})",
                                         plural(std::ssize(theirs), "case"),
                                         geometric_mean(theirs, ratio_of), most_over_table,
                                         worst.ratio, where(worst)));
    }

    std::string atomics(const Group& theirs) const {
        if (theirs.empty()) {
            return "";
        }
        const Result& worst = most(theirs, inverse_ratio_of);
        const Group long_ones = filtered(
            theirs, [](const Result* each) { return each->which.rows >= rows_of_atomics_aim; });
        const Group above = filtered(long_ones, [](const Result* each) {
            return inverse_ratio_of(each) > most_over_atomics;
        });
        std::string says =
            fmt::format("{}: reproducible over atomics: worst {:.3f} ({}), geometric mean {:.3f}",
                        plural(std::ssize(theirs), "case"), inverse_ratio_of(&worst), where(worst),
                        geometric_mean(theirs, inverse_ratio_of));
        if (!long_ones.empty()) {
            says += fmt::format("; {} of {} with 10^6 rows and more above {}{}", above.size(),
                                long_ones.size(), most_over_atomics, named(above));
        }
        return line("atomics", says);
    }

    const Environment& environment_;
    const Group& group_;
    std::string label_;
    bool square_ = true;
    /// True if a shape occurs with several numbers of rows.
    bool names_rows_ = false;
};

}  // namespace

std::string summary(const Document& document) {
    std::string text;
    for (const Kernel* kernel : all_kernels()) {
        for (const Dtype scalar : all_scalars) {
            // The key: gap, whether m and n differ, whether the block is short.
            std::map<std::tuple<int, bool, bool>, Group> parts;
            for (const Result& result : document.session.results) {
                const Case& c = result.which;
                if (c.kernel == kernel && c.scalar == scalar && result.measured()) {
                    parts[{c.ld_extra, c.shape.m != c.shape.n, result.limit_seconds > 0}].push_back(
                        &result);
                }
            }
            for (const auto& [key, group] : parts) {
                text += Part(document.environment, group).text();
            }
        }
    }
    return text.empty() ? text : "\n" + text;
}

}  // namespace quiver::apps::bench
