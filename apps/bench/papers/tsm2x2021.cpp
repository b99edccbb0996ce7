// SPDX-License-Identifier: BSD-3-Clause
// Rivera, Chen, Xiong, Zhang, Song, Tao, JPDC 151, 2021 (TSM2X), figures 10 to 14.
#include <fmt/format.h>

#include "apps/bench/papers/papers.hpp"

namespace quiver::apps::bench {
namespace {

/// TSM2R (all stored by columns): sizes of the square matrices, and columns of the narrow one.
constexpr std::int64_t tsm2r_sizes[] = {10240, 20480, 30720, 40960};
constexpr int tsm2r_columns[] = {2, 4, 8, 16};
/// Figure 12: rows and columns of an A that is not square, n = 16.
constexpr std::int64_t flat_rows = 15360;
constexpr int flat_widths[] = {7680, 3840, 1920};
/// TSM2L: rows of the tall block, and widths.
constexpr double tsm2l_rows[] = {1e4, 1e5, 1e6, 1e7};
constexpr int tsm2l_widths[] = {8, 16};

std::vector<Case> cases(double operand_bytes) {
    const Kernel* const large = find_kernel("mtsm-columns");
    const Kernel* const tall = find_kernel("tsmm-columns");
    std::vector<Case> cases;
    const auto add = [&](const Case& c) { add_affordable(cases, c, operand_bytes); };
    for (const Dtype scalar : {Dtype::d, Dtype::s}) {
        for (const double rows : tsm2l_rows) {
            for (const int width : tsm2l_widths) {
                add({tall, scalar, {width, width}, static_cast<std::int64_t>(rows)});
            }
        }
        for (const std::int64_t size : tsm2r_sizes) {
            for (const int columns : tsm2r_columns) {
                add({large, scalar, {columns, columns}, size});
            }
        }
    }
    for (const int width : flat_widths) {
        add({large, Dtype::d, {width, 16}, flat_rows});
    }
    return cases;
}

/// Figure 6: the versions V0 to V3 of TSM2R.
std::vector<Setting> versions(double operand_bytes) {
    std::vector<Setting> settings;
    for (const Dtype scalar : {Dtype::s, Dtype::d}) {
        for (const std::int64_t size : {tsm2r_sizes[0], tsm2r_sizes[1]}) {
            for (const int columns : tsm2r_columns) {
                const Case c{find_kernel("mtsm-columns"), scalar, {columns, columns}, size};
                if (c.kernel->bytes(c) > 16 * operand_bytes) {
                    continue;
                }
                const std::string row = fmt::format("{} {}, n = {}", letter(scalar), size, columns);
                const std::string tiles = "plain=0 direct=0";
                settings.push_back({row, "V0", c, "plain=1 direct=0", 1});
                settings.push_back({row, "V1", c, "plain=2 direct=0", 1});
                settings.push_back({row, "V2", c, tiles + " stages=1", 3});
                for (const int stages : {2, 3, 4}) {
                    settings.push_back(
                        {row, "V3", c, fmt::format("{} stages={}", tiles, stages), 1});
                }
            }
        }
    }
    return settings;
}

/// Figure 5: threads of TSM2L. A thread processes tcf rows.
std::vector<Setting> thread_counts(double operand_bytes) {
    std::vector<Setting> settings;
    for (const Dtype scalar : {Dtype::s, Dtype::d}) {
        constexpr std::int64_t rows = 10'000'000;
        const Case c{find_kernel("tsmm-columns"), scalar, {16, 16}, rows};
        if (c.kernel->bytes(c) > 16 * operand_bytes) {
            continue;
        }
        for (int tcf = 1; tcf <= 1024; tcf *= 2) {
            settings.push_back({std::to_string(tcf), std::string(1, letter(scalar)), c,
                                fmt::format("direct=1 tcf={}", tcf), 2});
        }
    }
    return settings;
}

std::vector<Setting> model_of_tsm2r(double operand_bytes) {
    std::vector<Setting> settings;
    for (const Dtype scalar : {Dtype::s, Dtype::d}) {
        for (const int columns : {2, 8, 16}) {
            const Case c{find_kernel("mtsm-columns"), scalar, {columns, columns}, tsm2r_sizes[1]};
            if (c.kernel->bytes(c) > 16 * operand_bytes) {
                continue;
            }
            for (const char* const fields :
                 {"", "stages=1", "stages=2", "blocks=1", "blocks=3", "depth=8", "depth=32",
                  "rows_a_thread=1", "rows_a_thread=4", "warps_n=2", "groups=8"}) {
                settings.push_back({fmt::format("{}, n = {}", letter(scalar), columns), "plans", c,
                                    fmt::format("direct=0 plain=0 {}", fields), 3});
            }
        }
    }
    return settings;
}

std::vector<Figure> figures() {
    return {
        {"5", "TSM2L, 10^7 x 16 times 16 x 16: rows per thread (tcf)", "tcf", Quantity::bandwidth,
         "bandwidth grows with tcf; declines only once fewer than 1/64 of m threads run "
         "(section 3.2.2, V100)",
         thread_counts},
        {"6",
         "TSM2R: V0 inner product, V1 outer product, V2 = V1 with shared memory, V3 = V2 with "
         "prefetching",
         "case", Quantity::bandwidth,
         "V1 2.2 to 4.7 times V0; V2 1.1 to 2.1 times V1; V3 1.3 to 3.5 (mean 1.9) times V2 "
         "(section 4.2.1, K40c)",
         versions},
        {"model", "the model of TSM2R's plans against measured times, 20480 rows", "case",
         Quantity::bandwidth, "no numbers; its model only ranks t1, t2 and t3 (section 3.1.9)",
         model_of_tsm2r, true}};
}

std::string compare(const Session& session) {
    std::string text =
        "\nRivera, Chen, Xiong, Zhang, Song, Tao, JPDC 151, 2021 (NVIDIA V100 PCIe, cuBLAS 9.0), "
        "and here:\n";
    text += paper_line("", "", "published", "here");
    const auto add = [&](const char* figure, const char* what, const char* paper,
                         const char* kernel, Dtype scalar, bool square, bool ratios) {
        const auto keep = [&](const Case& c) {
            return c.kernel == find_kernel(kernel) && c.scalar == scalar &&
                   (c.shape.m == c.shape.n) == square;
        };
        text += paper_line(figure, fmt::format("{} {}", what, letter(scalar)), paper,
                           ratios ? ratios_text(ratios_of(session, keep))
                                  : percents_text(percents_of(session, keep)));
    };
    const char* const large = "mtsm-columns";
    const char* const tall = "tsmm-columns";
    const char* const faster = "TSM2R, times as fast as the rival: mean, range,";
    add("figure 10", faster, "1.5, to 3.2", large, Dtype::d, true, true);
    add("figure 10", faster, "0.91, to 1.35", large, Dtype::s, true, true);
    const char* const share = "TSM2R, % of the roofline,";
    add("figure 11", share, "over 90% of the bandwidth", large, Dtype::d, true, false);
    add("figure 11", share, "over 90% of the bandwidth", large, Dtype::s, true, false);
    add("figure 12", "TSM2R, A not square, % of the roofline,", "as the square ones", large,
        Dtype::d, false, false);
    const char* const tall_faster = "TSM2L, times as fast as the rival: mean, range,";
    add("figure 13", tall_faster, "1.3, 1.0 to 1.7", tall, Dtype::d, true, true);
    add("figure 13", tall_faster, "2.5, 1.1 to 3.5", tall, Dtype::s, true, true);
    const char* const tall_share = "TSM2L, % of the roofline,";
    add("figure 14", tall_share, "40% of the bandwidth, to 55", tall, Dtype::d, true, false);
    add("figure 14", tall_share, "40% of the bandwidth, to 55", tall, Dtype::s, true, false);
    return text;
}

}  // namespace

const Paper& tsm2x2021() {
    static const Paper paper{"tsm2x2021", cases, compare, figures()};
    return paper;
}

}  // namespace quiver::apps::bench
