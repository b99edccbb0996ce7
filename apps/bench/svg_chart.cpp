// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/svg_chart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace quiver::apps::bench {
namespace {

constexpr double panel_width = 380;
constexpr double panel_height = 270;
constexpr double left = 62;
constexpr double right = 22;
constexpr double top = 34;
constexpr double bottom = 48;
constexpr double legend_height = 34;
constexpr double line_height = 16;
constexpr double letter_width = 6.6;
constexpr double decades_with_more_ticks = 2.3;
constexpr const char* ink = "#333333";
constexpr const char* faint = "#e3e3e3";
constexpr const char* grey = "#777777";

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char letter : text) {
        switch (letter) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            default:
                safe += letter;
        }
    }
    return safe;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor = "start",
                    const char* more = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                       anchor, more, escaped(text));
}

std::string line_from(double x0, double y0, double x1, double y1, const char* colour,
                      const char* more = "") {
    return fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x0, y0,
        x1, y1, colour, more);
}

std::string marker_at(double x, double y, int kind, const std::string& colour) {
    constexpr double r = 2.6;
    switch (kind) {
        case 1:
            return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x, y,
                               r, colour);
        case 2:
            return fmt::format(
                "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x - r,
                y - r, 2 * r, 2 * r, colour);
        case 3:
            return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}h{}z\" fill=\"{}\"/>\n", x,
                               y - 1.3 * r, 1.3 * r, 2.2 * r, -2.6 * r, colour);
        case 4:
            return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}l{} {}l{} {}z\" fill=\"{}\"/>\n", x,
                               y - 1.4 * r, 1.4 * r, 1.4 * r, -1.4 * r, 1.4 * r, -1.4 * r, -1.4 * r,
                               colour);
        default:
            return "";
    }
}

std::string tick_label(const Axis& axis, double value) {
    if (!axis.logarithmic) {
        return fmt::format("{:g}", value);
    }
    const double power = std::floor(std::log10(value) + 1e-9);
    return std::abs(power) < 4 || value != std::pow(10, power) ? fmt::format("{:g}", value)
                                                               : fmt::format("1e{:g}", power);
}

/// One chart with its upper left corner at (x0, y0).
class Panel {
  public:
    Panel(const Chart& chart, double x0, double y0) : chart_(chart), x0_(x0), y0_(y0) {}

    std::string draw() const {
        std::string svg = text_at(x0_ + left, y0_ + top - 12, chart_.title, "start",
                                  " font-weight=\"bold\" font-size=\"13\"");
        svg += ticks();
        svg += marks();
        for (const Series& series : chart_.series) {
            svg += draw(series);
        }
        svg += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
            "stroke=\"{}\"/>\n",
            x_min(), y_max(), x_max() - x_min(), y_min() - y_max(), ink);
        svg += text_at((x_min() + x_max()) / 2, y0_ + panel_height - 10, chart_.x.label, "middle");
        const double middle = (y_min() + y_max()) / 2;
        svg += text_at(
            x0_ + 16, middle, chart_.y.label, "middle",
            fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", x0_ + 16, middle).c_str());
        return svg;
    }

  private:
    double x_min() const { return x0_ + left; }
    double x_max() const { return x0_ + panel_width - right; }
    double y_min() const { return y0_ + panel_height - bottom; }
    double y_max() const { return y0_ + top; }

    /// 0 at the low end of the axis, 1 at the high one.
    static double share(const Axis& axis, double value) {
        const auto scale = [&](double v) {
            return axis.logarithmic ? std::log10(std::max(v, 1e-300)) : v;
        };
        return std::clamp((scale(value) - scale(axis.low)) / (scale(axis.high) - scale(axis.low)),
                          0.0, 1.0);
    }
    double x_of(double value) const {
        return x_min() + share(chart_.x, value) * (x_max() - x_min());
    }
    double y_of(double value) const {
        return y_min() + share(chart_.y, value) * (y_max() - y_min());
    }

    static std::vector<double> tick_values(const Axis& axis) {
        std::vector<double> values;
        if (axis.logarithmic) {
            const bool few = std::log10(axis.high / axis.low) < decades_with_more_ticks;
            for (double power = std::floor(std::log10(axis.low)); power <= std::log10(axis.high);
                 ++power) {
                for (const double factor : {1.0, 2.0, 5.0}) {
                    const double value = factor * std::pow(10, power);
                    if ((few || factor == 1) && value >= axis.low && value <= axis.high) {
                        values.push_back(value);
                    }
                }
            }
            return values;
        }
        for (double tick = std::ceil(axis.low / axis.step); tick * axis.step <= axis.high; ++tick) {
            values.push_back(tick * axis.step);
        }
        return values;
    }

    std::string ticks() const {
        std::string svg;
        for (const double value : tick_values(chart_.x)) {
            svg += line_from(x_of(value), y_min(), x_of(value), y_max(), faint);
            svg += text_at(x_of(value), y_min() + 16, tick_label(chart_.x, value), "middle");
        }
        for (const double value : tick_values(chart_.y)) {
            svg += line_from(x_min(), y_of(value), x_max(), y_of(value), faint);
            svg += text_at(x_min() - 6, y_of(value) + 4, tick_label(chart_.y, value), "end");
        }
        return svg;
    }

    std::string marks() const {
        std::string svg;
        constexpr const char* dashes = " stroke-dasharray=\"5 3\"";
        for (const Mark& mark : chart_.marks) {
            if (mark.upright) {
                const double x = x_of(mark.at);
                svg += line_from(x, y_min(), x, y_max(), grey, dashes);
                svg += text_at(x + 4, y_min() - 5, mark.label, "start",
                               " font-size=\"10\" fill=\"#777777\"");
            } else {
                const double y = y_of(mark.at);
                svg += line_from(x_min(), y, x_max(), y, ink, dashes);
                svg += text_at(x_max() - 3, y - 4, mark.label, "end", " font-size=\"10\"");
            }
        }
        return svg;
    }

    std::string draw(const Series& series) const {
        std::string svg;
        if (series.line && series.points.size() > 1) {
            svg += fmt::format(
                "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\"{} points=\"",
                series.colour, series.dashed ? " stroke-dasharray=\"2 3\"" : "");
            for (const auto& [x, y] : series.points) {
                svg += fmt::format("{:.1f},{:.1f} ", x_of(x), y_of(y));
            }
            svg += "\"/>\n";
        }
        for (const auto& [x, y] : series.points) {
            svg += marker_at(x_of(x), y_of(y), series.marker, series.colour);
        }
        if (!series.end_label.empty() && !series.points.empty()) {
            const auto& [x, y] = series.points.back();
            svg +=
                text_at(x_of(x) + 6, y_of(y) + 4, series.end_label, "start", " font-size=\"10\"");
        }
        return svg;
    }

    const Chart& chart_;
    double x0_, y0_;
};

std::string draw_legend(const std::vector<std::vector<Chart>>& rows) {
    std::vector<Series> named;
    for (const auto& row : rows) {
        for (const Chart& chart : row) {
            for (const Series& series : chart.series) {
                const bool known = std::any_of(named.begin(), named.end(), [&](const Series& each) {
                    return each.name == series.name;
                });
                if (!series.name.empty() && !known) {
                    named.push_back(series);
                }
            }
        }
    }
    // What is drawn last, on top, is told first.
    std::reverse(named.begin(), named.end());
    std::string svg;
    double x = left;
    for (const Series& series : named) {
        constexpr double y = 20;
        if (series.line) {
            svg += line_from(x, y, x + 26, y, series.colour.c_str(),
                             series.dashed ? " stroke-width=\"1.4\" stroke-dasharray=\"2 3\""
                                           : " stroke-width=\"1.4\"");
        }
        svg += marker_at(x + 13, y, series.marker, series.colour);
        svg += text_at(x + 32, y + 4, series.name);
        x += 56 + letter_width * static_cast<double>(series.name.size());
    }
    return svg;
}

}  // namespace

std::string draw_svg(const std::vector<std::vector<Chart>>& rows,
                     const std::vector<std::string>& caption) {
    std::size_t across = 1;
    for (const auto& row : rows) {
        across = std::max(across, row.size());
    }
    double longest = 0;
    for (const std::string& line : caption) {
        longest = std::max(longest, static_cast<double>(line.size()));
    }
    const double below = legend_height + static_cast<double>(rows.size()) * panel_height;
    const double width =
        std::max(static_cast<double>(across) * panel_width, left + letter_width * longest);
    const double height = below + line_height * static_cast<double>(caption.size()) + 12;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" "
        "font-size=\"11\" fill=\"{2}\">\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
        width, height, ink);
    svg += draw_legend(rows);
    double y = legend_height;
    for (const auto& row : rows) {
        double x = 0;
        for (const Chart& chart : row) {
            svg += Panel(chart, x, y).draw();
            x += panel_width;
        }
        y += panel_height;
    }
    for (const std::string& line : caption) {
        y += line_height;
        svg += text_at(left, y, line);
    }
    return svg + "</svg>\n";
}

}  // namespace quiver::apps::bench
