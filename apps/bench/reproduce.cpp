// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/reproduce.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

constexpr const char* ernst2020 = "ernst2020";
constexpr const char* tsm2x2021 = "tsm2x2021";
constexpr int widest = 64;
/// Below this width the paper found its kernels near the roofline.
constexpr int wide = 32;
/// Widths of the sweep over rows (figure 19 names two, one of them 4).
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

/// Least percent of the roofline over widths first to last, of our results or a rival's; nothing
/// unless at least one was measured.
std::optional<double> least_percent(const Session& session, const char* kernel, Dtype scalar,
                                    int first, int last, bool ours) {
    std::optional<double> least;
    for (const Result& result : session.results) {
        const Case& c = result.which;
        if (c.kernel->name() == std::string(kernel) && c.scalar == scalar && !is_sweep(c.rows) &&
            c.shape.m == c.shape.n && c.shape.n >= first && c.shape.n <= last &&
            (ours ? result.ours() : result.rival()) && result.measured()) {
            least = std::min(least.value_or(result.roofline_percent), result.roofline_percent);
        }
    }
    return least;
}

std::string shown(const std::optional<double>& value, const char* unit) {
    return value ? fmt::format("{:.0f}{}", *value, unit) : "not run";
}

std::string line(const char* figure, const std::string& what, const std::string& paper,
                 const std::string& ours) {
    return fmt::format("  {:<10} {:<66} {:<30} {}\n", figure, what, paper, ours);
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

/// Rows per second at `rows` over those of the longest sweep, in percent.
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

std::vector<Case> cases_of_ernst(double operand_bytes) {
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
            // Up to sixteen times the operands of the others, as the paper fills its memory.
            if (tsmttsm->bytes(c) <= 16 * operand_bytes) {
                cases.push_back(c);
            }
        }
    }
    return cases;
}

std::string compare_with_ernst(const Session& session) {
    std::string text =
        "\nErnst, Hager, Thies, Wellein, IJHPCA 2020 (NVIDIA V100-PCIe-16GB, CUDA 10.1), and "
        "here:\n";
    text += line("", "", "published", "here");
    const Ceilings& ceilings = session.runs.back().ceilings;
    text += line("sec. 1.6", "bandwidth, read only", "880 GB/s",
                 fmt::format("{:.0f} GB/s", 1e-9 * ceilings.read));
    text += line("sec. 1.6", "bandwidth, read and write (scale)", "820 GB/s",
                 fmt::format("{:.0f} GB/s", 1e-9 * ceilings.copy));
    text += line("sec. 1.6", "peak in double", "7066 GFLOP/s",
                 fmt::format("{:.0f} GFLOP/s", 1e-9 * ceilings.flops(Dtype::d)));
    for (const Figure& each : {Figure{"figure 18", "tsmttsm"}, Figure{"figure 23", "tsmm"}}) {
        for (const Dtype scalar : {Dtype::d, Dtype::z}) {
            const std::string what =
                fmt::format("{} {}, least % of the roofline, width", each.kernel, letter(scalar));
            text +=
                line(each.figure, what + " 1 to 31", "near 100% (conclusion)",
                     shown(least_percent(session, each.kernel, scalar, 1, wide - 1, true), "%"));
            text +=
                line(each.figure, what + " 32 to 64", "60 to 67% (conclusion)",
                     shown(least_percent(session, each.kernel, scalar, wide, widest, true), "%"));
            text += line(each.figure, what + " 1 to 64, rival", cublas_in_the_paper(each, scalar),
                         shown(least_percent(session, each.kernel, scalar, 1, widest, false), "%"));
        }
    }
    const auto found =
        std::find_if(session.results.begin(), session.results.end(), [](const Result& result) {
            return result.which.kernel == find_kernel("tsmttsm") &&
                   result.which.scalar == Dtype::d && result.which.shape == Shape{64, 64} &&
                   result.ours() && result.measured();
        });
    text += line(
        "sec. 5.2", "tsmttsm d, width 64", "4766 GFLOP/s, 2/3 of the peak",
        found == session.results.end()
            ? "not run"
            : fmt::format("{:.0f} GFLOP/s, {:.0f}% of the peak",
                          1e-9 * found->flops / found->seconds.median,
                          100 * found->flops / found->seconds.median / ceilings.flops(Dtype::d)));
    for (const int width : sweep_widths) {
        for (const double rows : {1e4, 1e5, 1e6}) {
            text += line(
                "figure 19",
                fmt::format("tsmttsm d, width {}, speed at {:g} rows of the longest", width, rows),
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

/// Of TSM2R (all stored by columns): sizes of the square matrices and columns of the other one.
constexpr std::int64_t tsm2r_sizes[] = {10240, 20480, 30720, 40960};
constexpr int tsm2r_columns[] = {2, 4, 8, 16};
/// Figure 12: rows and widths of A that is not square, n = 16.
constexpr std::int64_t flat_rows = 15360;
constexpr int flat_widths[] = {7680, 3840, 1920};
/// TSM2L.
constexpr double tsm2l_rows[] = {1e4, 1e5, 1e6, 1e7};
constexpr int tsm2l_widths[] = {8, 16};

std::vector<Case> cases_of_tsm2x(double operand_bytes) {
    const Kernel* const large = find_kernel("mtsm-columns");
    const Kernel* const tall = find_kernel("tsmm-columns");
    std::vector<Case> cases;
    const auto add = [&](const Case& c) {
        if (c.kernel->bytes(c) <= 16 * operand_bytes || cases.empty()) {
            cases.push_back(c);
        }
    };
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

/// Some number of the measured results of a kernel and scalar: mean, least and largest.
struct Spread {
    double mean = 0, least = 0, largest = 0;
};
/// Of our percents of the roofline, or the geometric mean of the rivals' times over ours.
std::optional<Spread> spread_of(const Session& session, const char* kernel, Dtype scalar,
                                bool square, bool ratios) {
    double sum = 0;
    int count = 0;
    Spread spread;
    for (const Result& result : session.results) {
        const Case& c = result.which;
        if (c.kernel->name() != std::string(kernel) || c.scalar != scalar ||
            (c.shape.m == c.shape.n) != square || !result.measured() ||
            (ratios ? !result.rival() || result.timed_once : !result.ours())) {
            continue;
        }
        const double value = ratios ? result.ratio : result.roofline_percent;
        sum += ratios ? std::log(value) : value;
        spread.least = count == 0 ? value : std::min(spread.least, value);
        spread.largest = std::max(spread.largest, value);
        ++count;
    }
    if (count == 0) {
        return std::nullopt;
    }
    spread.mean = ratios ? std::exp(sum / count) : sum / count;
    return spread;
}

std::string compare_with_tsm2x(const Session& session) {
    std::string text =
        "\nRivera, Chen, Xiong, Zhang, Song, Tao, JPDC 151, 2021 (NVIDIA V100 PCIe, cuBLAS 9.0), "
        "and here:\n";
    text += line("", "", "published", "here");
    const auto add = [&](const char* figure, const char* what, const char* paper,
                         const char* kernel, Dtype scalar, bool square, bool ratios) {
        const auto spread = spread_of(session, kernel, scalar, square, ratios);
        text += line(figure, fmt::format("{} {}", what, letter(scalar)), paper,
                     !spread  ? "not run"
                     : ratios ? fmt::format("{:.2f}, {:.2f} to {:.2f}", spread->mean, spread->least,
                                            spread->largest)
                              : fmt::format("{:.0f}%, {:.0f} to {:.0f}%", spread->mean,
                                            spread->least, spread->largest));
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

std::vector<Case> cases_of(const std::string& paper, double operand_bytes) {
    if (paper == ernst2020) {
        return cases_of_ernst(operand_bytes);
    }
    if (paper == tsm2x2021) {
        return cases_of_tsm2x(operand_bytes);
    }
    throw InputError(
        fmt::format("--reproduce {}: the papers are {} and {}", paper, ernst2020, tsm2x2021));
}

std::string compare_with(const std::string& paper, const Session& session) {
    return paper == ernst2020   ? compare_with_ernst(session)
           : paper == tsm2x2021 ? compare_with_tsm2x(session)
                                : "";
}

}  // namespace quiver::apps::bench
