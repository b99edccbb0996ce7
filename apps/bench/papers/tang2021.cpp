// SPDX-License-Identifier: BSD-3-Clause
// Tang, Komatsu, Sato, Kobayashi, IJNC 11(2), 2021: products of half precision with results in
// float; figures 12 and 14 to 16.
#include <algorithm>

#include <fmt/format.h>

#include "apps/bench/papers/papers.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int widest = 32;
/// Numbers of rows: of the sweep over widths; of figure 12 (two to these powers); of tsmm in
/// figures 16a and 16b.
constexpr std::int64_t tall_rows = std::int64_t{1} << 23;
constexpr int least_power = 14;
constexpr int largest_power = 22;
constexpr std::int64_t tsmm_rows[] = {std::int64_t{1} << 16, std::int64_t{1} << 20};

std::vector<Case> cases(double operand_bytes) {
    const Kernel* const tsmttsm = find_kernel("tsmttsm-mixed");
    const Kernel* const tsmm = find_kernel("tsmm-mixed");
    std::vector<Shape> shapes = parse_widths(fmt::format("1:{}", widest));
    order_by_meaning(shapes);
    std::vector<Case> cases;
    for (int power = least_power; power <= largest_power; ++power) {
        add_affordable(cases, {tsmttsm, Dtype::h, {widest, widest}, std::int64_t{1} << power},
                       operand_bytes);
    }
    for (const Shape& shape : shapes) {
        add_affordable(cases, {tsmttsm, Dtype::h, shape, tall_rows}, operand_bytes);
        for (const std::int64_t rows : tsmm_rows) {
            add_affordable(cases, {tsmm, Dtype::h, shape, rows}, operand_bytes);
        }
    }
    return cases;
}

/// The percentage of a rival's joules per call that our call saves, over the cases where both were
/// measured.
std::optional<Spread> saved_energy(const Session& session, const Keep& keep) {
    std::optional<Spread> saved;
    for (const Result& rival : session.results) {
        if (!rival.rival() || rival.joules <= 0 || !keep(rival.which)) {
            continue;
        }
        for (const Result& own : session.results) {
            if (own.ours() && own.joules > 0 && own.which == rival.which) {
                const double percent = 100 * (1 - own.joules / rival.joules);
                const Spread so_far = saved.value_or(Spread{0, percent, percent});
                saved = Spread{so_far.mean + percent, std::min(so_far.least, percent),
                               std::max(so_far.largest, percent), so_far.count + 1};
            }
        }
    }
    if (saved) {
        saved->mean /= saved->count;
    }
    return saved;
}

/// The times of width 32 on so many rows, ours and the rivals': "5.1 us, 5.0 to 5.2; cublas ...".
std::string quartiles_text(const Session& session, std::int64_t rows) {
    std::string text;
    for (const Result& result : session.results) {
        const Case& c = result.which;
        if (c.kernel == find_kernel("tsmttsm-mixed") && c.scalar == Dtype::h && c.rows == rows &&
            c.shape == Shape{widest, widest} && result.measured() &&
            !is_figure_variant(result.library)) {
            const Times& seconds = result.seconds;
            text += fmt::format("{}{}{:.1f} us, {:.1f} to {:.1f}", text.empty() ? "" : "; ",
                                result.ours() ? "" : result.library + " ", 1e6 * seconds.median,
                                1e6 * seconds.lower_quartile, 1e6 * seconds.upper_quartile);
        }
    }
    return text.empty() ? "not run" : text;
}

/// Figure 13: several rows in one product of the tensor cores.
std::vector<Setting> folding(double operand_bytes) {
    std::vector<Setting> settings;
    for (const int width : {1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 14, 20, 28, 31}) {
        const Case c{find_kernel("tsmttsm-mixed"), Dtype::h, {width, width}, tall_rows};
        if (c.kernel->bytes(c) > 16 * operand_bytes) {
            continue;
        }
        settings.push_back({std::to_string(width), "not folded", c, "fold=1", 3});
        settings.push_back({std::to_string(width), "folded", c, "", 3});
    }
    return settings;
}

std::vector<Figure> figures() {
    return {{"13", "tsmttsm h, 2^23 rows: several rows in one product of the tensor cores", "width",
             Quantity::bandwidth,
             "1 to 48% faster for widths 1 to 8 on an A100, most for the smallest (section 4.1)",
             folding}};
}

std::string compare(const Session& session) {
    std::string text =
        "\nTang, Komatsu, Sato, Kobayashi, IJNC 11(2), 2021 (NVIDIA A100, figure 16: V100; cuBLAS "
        "11.0), and here:\n";
    text += paper_line("", "", "published", "here");
    text += paper_line("table 1", "bandwidth, read only", "1550 GB/s",
                       bandwidth_text(session.runs.back().ceilings.read));
    const auto of = [](const char* kernel, int first, int last, std::int64_t rows) -> Keep {
        return [=](const Case& c) {
            return c.kernel == find_kernel(kernel) && c.scalar == Dtype::h &&
                   c.shape.m == c.shape.n && c.shape.n >= first && c.shape.n <= last &&
                   c.rows == rows;
        };
    };
    const char* const tsmttsm = "tsmttsm-mixed";
    const auto faster = [&](const char* figure, const std::string& what, const char* paper,
                            const Keep& keep) {
        text += paper_line(figure, fmt::format("{}, times as fast as the rival", what), paper,
                           ratios_text(ratios_of(session, keep)));
    };
    for (int power = least_power; power <= largest_power; ++power) {
        const std::int64_t rows = std::int64_t{1} << power;
        faster("figure 12", fmt::format("tsmttsm h, width 32, 2^{} rows", power),
               power == least_power ? "less than with 2^18 rows"
               : power < 18         ? "growing to 2^18 rows"
                                    : "over 1",
               of(tsmttsm, widest, widest, rows));
        text += paper_line("", "  median, quartiles", "", quartiles_text(session, rows));
    }
    faster("abstract", "tsmttsm h, width 1 to 32, 2^23 rows", "1.04 to 3.70",
           of(tsmttsm, 1, widest, tall_rows));
    faster("sec. 4.1", "tsmttsm h, width 3, 2^23 rows", "3.70, the most",
           of(tsmttsm, 3, 3, tall_rows));
    text += paper_line("figure 14", "tsmttsm h, width 2 to 32, energy saved against the rival",
                       "62 to 82% (abstract)",
                       percents_text(saved_energy(session, of(tsmttsm, 2, widest, tall_rows))));
    text += paper_line("figure 15", "tsmttsm h, width 1 to 32, % of the roofline",
                       "close to it for most",
                       percents_text(percents_of(session, of(tsmttsm, 1, widest, tall_rows))));
    const char* const tsmm = "tsmm-mixed";
    faster("figure 16a", "tsmm h, width 1 to 32, 2^16 rows", "1.15 to 1.41",
           of(tsmm, 1, widest, tsmm_rows[0]));
    faster("figure 16b", "tsmm h, width 1 to 32, 2^20 rows", "1.07 to 1.29",
           of(tsmm, 1, widest, tsmm_rows[1]));
    return text +
           "  Here: mean, least to largest. Energy is measured with --energy. --figure 13 measures "
           "figure 13.\n";
}

}  // namespace

const Paper& tang2021() {
    static const Paper paper{"tang2021", cases, compare, figures()};
    return paper;
}

}  // namespace quiver::apps::bench
