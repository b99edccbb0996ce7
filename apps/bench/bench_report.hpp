// SPDX-License-Identifier: BSD-3-Clause
// A bench session as text for people.
#pragma once

#include <string>

#include "apps/bench/bench_json.hpp"
#include "apps/bench/runner.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// The name of this machine's processor, "unknown processor" if the system does not state it.
std::string cpu_name();

Environment describe_environment(const Context& ctx, const std::string& device_note,
                                 const Rivals& rivals, double caches);

/// The environment, the ceilings and the head of the table.
std::string table_head(const Environment& environment, const Ceilings& ceilings);
/// The line of one result.
std::string table_row(const Result& result);
/// The number of results, and the cases that were not run.
std::string table_foot(const Session& session, double seconds);
/// One line for each requested library that lacks some of the kernels.
std::string not_compared(const Document& document);

/// Lines for each kernel, scalar, gap between rows, kind of shape (m = n or not) and kind of block
/// (short or not):
/// - for each bound, the median and least percentage of the roofline, and how many results miss
/// their aim; for short blocks, how many are within their limit,
/// - for each rival, the geometric mean of its times over ours, the least ratio and its case, and
/// the cases in which the rival is faster by more than the noise,
/// - the times of the variants of this library.
std::string summary(const Document& document);

}  // namespace quiver::apps::bench
