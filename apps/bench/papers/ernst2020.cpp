// SPDX-License-Identifier: BSD-3-Clause
// Ernst, Hager, Thies, Wellein, IJHPCA 2020, figures 18, 19 and 23.
#include <algorithm>

#include <fmt/format.h>

#include "apps/bench/papers/papers.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int widest = 64;
/// Below this width the paper measured its kernels near the roofline.
constexpr int wide = 32;
/// Widths of the sweep over rows. Figure 19 shows two widths, one of which is 4.
constexpr int sweep_widths[] = {4, 32};
constexpr double sweep_rows[] = {1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8};

bool is_sweep(std::int64_t rows) {
    return std::find(std::begin(sweep_rows), std::end(sweep_rows), static_cast<double>(rows)) !=
           std::end(sweep_rows);
}

const Result* find(const Session& session, const Case& c) {
    for (const Result& result : session.results) {
        if (result.which == c && result.ours() && result.measured()) {
            return &result;
        }
    }
    return nullptr;
}

/// The least percentage of the roofline over the widths `first` to `last`, of our results or of the
/// rivals', with the number of results unless all widths have one; "not run" without results.
std::string least_percent(const Session& session, const char* kernel, Dtype scalar, int first,
                          int last, bool ours) {
    double least = 0;
    int count = 0;
    for (const Result& result : session.results) {
        const Case& c = result.which;
        if (c.kernel->name() == std::string(kernel) && c.scalar == scalar && !is_sweep(c.rows) &&
            c.shape.m == c.shape.n && c.shape.n >= first && c.shape.n <= last &&
            (ours ? result.ours() : result.rival()) && result.has_roofline()) {
            least = count == 0 ? result.roofline_percent : std::min(least, result.roofline_percent);
            ++count;
        }
    }
    if (count == 0) {
        return "not run";
    }
    return count > last - first ? fmt::format("{:.0f}%", least)
                                : fmt::format("{:.0f}%, of {} widths", least, count);
}

std::string shown(const std::optional<double>& value, const char* unit) {
    return value ? fmt::format("{:.0f}{}", *value, unit) : "not run";
}

struct Figure {
    const char* figure;
    const char* kernel;
};

const char* cublas_in_the_paper(const Figure& figure, Dtype scalar) {
    if (figure.kernel == std::string("tsmttsm")) {
        return "\"far below\" (section 5.4)";
    }
    return scalar == Dtype::d ? "\"very well\" (section 6.4)" : "\"strong drop\" (section 6.4)";
}

/// Bytes per second at `rows` over those at the largest number of rows, in percent.
std::optional<double> ramp(const Session& session, int width, double rows) {
    Case c{find_kernel("tsmttsm"), Dtype::d, {width, width}, static_cast<std::int64_t>(rows)};
    const Result* const at = find(session, c);
    const Result* longest = nullptr;
    for (const double each : sweep_rows) {
        c.rows = static_cast<std::int64_t>(each);
        if (const Result* const found = find(session, c)) {
            longest = found;
        }
    }
    if (at == nullptr || longest == at) {
        return std::nullopt;
    }
    const auto speed = [](const Result& result) { return result.bytes / result.seconds.median; };
    return 100 * speed(*at) / speed(*longest);
}

std::vector<Case> cases(double operand_bytes) {
    const Kernel* const tsmttsm = find_kernel("tsmttsm");
    const Kernel* const tsmm = find_kernel("tsmm");
    std::vector<Shape> shapes = parse_widths(fmt::format("1:{}", widest));
    order_by_meaning(shapes);
    std::vector<Case> cases;
    for (const Shape& shape : shapes) {
        for (const Dtype scalar : {Dtype::d, Dtype::z}) {
            for (const Kernel* kernel : {tsmttsm, tsmm}) {
                Case c{kernel, scalar, shape, 1};
                c.rows = std::max(static_cast<std::int64_t>(operand_bytes / kernel->row_bytes(c)),
                                  std::int64_t{1});
                cases.push_back(c);
            }
        }
    }
    for (const int width : sweep_widths) {
        for (const double rows : sweep_rows) {
            const Case c{tsmttsm, Dtype::d, {width, width}, static_cast<std::int64_t>(rows)};
            // Up to sixteen times the operands of the other cases, because the paper fills the
            // GPU's memory.
            if (tsmttsm->bytes(c) <= 16 * operand_bytes) {
                cases.push_back(c);
            }
        }
    }
    return cases;
}

std::string compare(const Session& session) {
    std::string text =
        "\nErnst, Hager, Thies, Wellein, IJHPCA 2020 (NVIDIA V100-PCIe-16GB, CUDA 10.1), and "
        "here:\n";
    text += paper_line("", "", "published", "here");
    const Ceilings& ceilings = session.runs.back().ceilings;
    text +=
        paper_line("sec. 1.6", "bandwidth, read only", "880 GB/s", bandwidth_text(ceilings.read));
    text += paper_line("sec. 1.6", "bandwidth, read and write (scale)", "820 GB/s",
                       bandwidth_text(ceilings.scale));
    text += paper_line("sec. 1.6", "peak in double", "7066 GFLOP/s",
                       fmt::format("{:.0f} GFLOP/s", 1e-9 * ceilings.flops(Dtype::d)));
    for (const Figure& each : {Figure{"figure 18", "tsmttsm"}, Figure{"figure 23", "tsmm"}}) {
        for (const Dtype scalar : {Dtype::d, Dtype::z}) {
            const std::string what =
                fmt::format("{} {}, least % of the roofline, width", each.kernel, letter(scalar));
            text += paper_line(each.figure, what + " 1 to 31", "near 100% (conclusion)",
                               least_percent(session, each.kernel, scalar, 1, wide - 1, true));
            text += paper_line(each.figure, what + " 32 to 64", "60 to 67% (conclusion)",
                               least_percent(session, each.kernel, scalar, wide, widest, true));
            text +=
                paper_line(each.figure, what + " 1 to 64, rival", cublas_in_the_paper(each, scalar),
                           least_percent(session, each.kernel, scalar, 1, widest, false));
        }
    }
    const auto found =
        std::find_if(session.results.begin(), session.results.end(), [](const Result& result) {
            return result.which.kernel == find_kernel("tsmttsm") &&
                   result.which.scalar == Dtype::d && result.which.shape == Shape{64, 64} &&
                   result.ours() && result.measured();
        });
    text += paper_line(
        "sec. 5.2", "tsmttsm d, width 64", "4766 GFLOP/s, 2/3 of the peak",
        found == session.results.end()
            ? "not run"
            : fmt::format("{:.0f} GFLOP/s, {:.0f}% of the peak",
                          1e-9 * found->flops / found->seconds.median,
                          100 * found->flops / found->seconds.median / ceilings.flops(Dtype::d)));
    for (const int width : sweep_widths) {
        for (const double rows : {1e4, 1e5, 1e6}) {
            text +=
                paper_line("figure 19",
                           fmt::format("tsmttsm d, width {}, speed at {:g} rows / longest block's",
                                       width, rows),
                           rows > 1e5   ? "near 100% of no reduction"
                           : rows > 1e4 ? ""
                                        : "over 90% of no reduction",
                           shown(ramp(session, width, rows), "%"));
        }
    }
    return text +
           "  The paper's figure 19 is relative to a kernel without a reduction, ours to the "
           "longest block.\n";
}

}  // namespace

const Paper& ernst2020() {
    static const Paper paper{"ernst2020", cases, compare, ernst2020_figures()};
    return paper;
}

}  // namespace quiver::apps::bench
