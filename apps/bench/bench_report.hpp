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

/// By kernel and scalar: cases, the least share of the roofline and where, short blocks within
/// their limit; for each rival the geometric mean of its times over ours, the least and where, and
/// how often it was the faster by more than the noise.
std::string summary(const Session& session);

}  // namespace quiver::apps::bench
