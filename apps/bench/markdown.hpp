// SPDX-License-Identifier: BSD-3-Clause
// A bench session as a page of docs/results/.
#pragma once

#include <string>

#include "apps/bench/bench_json.hpp"

namespace quiver::apps::bench {

/// Machine, versions, commands, dates and ceilings, the summary, what failed or was not run, and a
/// table for each kernel, scalar and gap between rows, with what falls short in bold. Throws
/// InputError where nothing was measured.
std::string markdown(const Document& document);

}  // namespace quiver::apps::bench
