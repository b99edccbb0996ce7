// SPDX-License-Identifier: BSD-3-Clause
// A bench session as a person reads it.
#pragma once

#include <string>

#include "apps/bench/bench_json.hpp"
#include "apps/bench/runner.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

Environment describe_environment(const Context& ctx, const std::string& device_note,
                                 const Rivals& rivals);

/// Environment, ceilings and the head of the table; then the rows of each case; then what was not
/// run.
std::string table_head(const Environment& environment, const Ceilings& ceilings);
std::string table_row(const Result& result);
std::string table_foot(const Session& session, double seconds);
/// A line for each library asked for that does not know some of the kernels.
std::string not_compared(const Document& document);

/// A line for each kernel, scalar, gap between rows, sort of shape (m = n or not) and bound: the
/// median and least share of the roofline and how many miss their aim; short blocks within their
/// limit; for each rival the geometric mean of its times over ours, the least and where, and which
/// cases it won by more than the noise; what the variants of this library took.
std::string summary(const Document& document);

}  // namespace quiver::apps::bench
