// SPDX-License-Identifier: BSD-3-Clause
// Results as charts.
#pragma once

#include <string>

#include "apps/bench/bench_json.hpp"

namespace quiver::apps::bench {

/// An SVG page with a chart for every kernel and scalar: percent of the roofline over the width of
/// square shapes; over flops per byte for other shapes; time over rows where a shape was run with
/// three or more numbers of rows. Throws InputError where nothing was measured.
std::string plot(const Document& document);

/// The results of several saved sessions in one, later ones in the place of earlier ones of the
/// same case and provider. At least one.
Document merge(const std::vector<Document>& documents);

}  // namespace quiver::apps::bench
