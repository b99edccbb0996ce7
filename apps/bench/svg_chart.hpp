// SPDX-License-Identifier: BSD-3-Clause
// Line charts as SVG text: axes, series, a legend, several charts to a page.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace quiver::apps::bench {

struct Axis {
    std::string label;
    double low = 0;
    double high = 1;
    bool logarithmic = false;
    /// Distance of the ticks; a logarithmic axis has one at each power of ten.
    double step = 1;
};

struct Series {
    /// In the legend; series of the same name are named once.
    std::string name;
    /// "#0072B2"
    std::string colour;
    std::vector<std::pair<double, double>> points;
    bool line = true;
    bool dashed = false;
    /// 0: none, 1: disc, 2: square, 3: triangle, 4: diamond.
    int marker = 1;
    /// Beside the last point.
    std::string end_label = {};
};

/// A straight line through the whole chart, upright or level, and what it means.
struct Mark {
    double at = 0;
    std::string label;
    bool upright = false;
};

struct Chart {
    std::string title;
    Axis x, y;
    std::vector<Series> series;
    std::vector<Mark> marks;
};

/// Rows of charts below each other, one legend above, the caption's lines below.
std::string draw_svg(const std::vector<std::vector<Chart>>& rows,
                     const std::vector<std::string>& caption);

}  // namespace quiver::apps::bench
