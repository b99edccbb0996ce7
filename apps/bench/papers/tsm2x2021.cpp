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
    static const Paper paper{"tsm2x2021", cases, compare};
    return paper;
}

}  // namespace quiver::apps::bench
