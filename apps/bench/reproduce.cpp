// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/reproduce.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "apps/bench/papers/papers.hpp"
#include "apps/bench/words.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

std::array<const Paper*, 4> all_papers() {
    return {&ernst2020(), &tsm2x2021(), &tang2021(), &haidar2018()};
}

const Paper* find_paper(const std::string& name) {
    for (const Paper* const paper : all_papers()) {
        if (name == paper->name) {
            return paper;
        }
    }
    return nullptr;
}

const Paper& known_paper(const std::string& name) {
    if (const Paper* const found = find_paper(name)) {
        return *found;
    }
    std::string known;
    for (const Paper* const each : all_papers()) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each->name);
    }
    throw InputError(fmt::format("PAPER {}: the papers are {}", name, known));
}

/// The spread of value(result) over the results that `takes` accepts. For ratios the mean is
/// geometric.
template <class Takes, class Value>
std::optional<Spread> spread_of(const Session& session, bool geometric, Takes&& takes,
                                Value&& value) {
    double sum = 0;
    Spread spread;
    int& count = spread.count;
    for (const Result& result : session.results) {
        if (!result.measured() || !takes(result)) {
            continue;
        }
        const double each = value(result);
        sum += geometric ? std::log(each) : each;
        spread.least = count == 0 ? each : std::min(spread.least, each);
        spread.largest = std::max(spread.largest, each);
        ++count;
    }
    if (count == 0) {
        return std::nullopt;
    }
    spread.mean = geometric ? std::exp(sum / count) : sum / count;
    return spread;
}

}  // namespace

std::string paper_line(const char* figure, const std::string& what, const std::string& paper,
                       const std::string& ours) {
    return fmt::format("  {:<10} {:<66} {:<30} {}\n", figure, what, paper, ours);
}

void add_affordable(std::vector<Case>& cases, const Case& c, double operand_bytes) {
    if (c.kernel->bytes(c) <= 16 * operand_bytes || cases.empty()) {
        cases.push_back(c);
    }
}

std::optional<Spread> percents_of(const Session& session, const Keep& keep) {
    return spread_of(
        session, false,
        [&](const Result& result) {
            return result.ours() && result.has_roofline() && keep(result.which);
        },
        [](const Result& result) { return result.roofline_percent; });
}

std::optional<Spread> ratios_of(const Session& session, const Keep& keep) {
    return spread_of(
        session, true,
        [&](const Result& result) {
            return result.rival() && !result.timed_once && keep(result.which);
        },
        [](const Result& result) { return result.ratio; });
}

std::string percents_text(const std::optional<Spread>& spread) {
    return spread ? fmt::format("{:.0f}%, {:.0f} to {:.0f}% of {}", spread->mean, spread->least,
                                spread->largest, spread->count)
                  : "not run";
}

std::string ratios_text(const std::optional<Spread>& spread) {
    return spread ? fmt::format("{:.2f}, {:.2f} to {:.2f} of {}", spread->mean, spread->least,
                                spread->largest, spread->count)
                  : "not run";
}

Case square_case(const char* kernel, Dtype scalar, int n) {
    return {find_kernel(kernel), scalar, {n, n}, 0};
}

std::vector<Case> cases_of(const std::string& paper, double operand_bytes) {
    return known_paper(paper).cases(operand_bytes);
}

std::vector<const Figure*> figures_of(const std::string& paper, const std::string& list) {
    const std::vector<Figure>& all = known_paper(paper).figures;
    std::vector<const Figure*> figures;
    for (const std::string& name : split_list("--figure", list)) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const Figure& each) { return name == each.name; });
        if (found == all.end()) {
            std::string known;
            for (const Figure& each : all) {
                known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
            }
            throw InputError(
                fmt::format("--figure {}: the figures of {} are {}", name, paper, known));
        }
        add_once(figures, &*found);
    }
    return figures;
}

std::string compare_with(const std::string& paper, const Session& session) {
    const Paper* const found = find_paper(paper);
    return found != nullptr ? found->compare(session) : "";
}

}  // namespace quiver::apps::bench
