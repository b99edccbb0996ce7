// SPDX-License-Identifier: BSD-3-Clause
// A bench session as a person reads it and, in the schema of docs/bench.md, as programs do.
#pragma once

#include <string>

#include "apps/bench/ceilings.hpp"
#include "apps/bench/runner.hpp"
#include "blockvec/context.hpp"

namespace quiver::apps::bench {

/// Where a session ran.
struct Environment {
    std::string cpu;
    int threads = 1;
    /// "host" or "cuda".
    std::string device = "host";
    /// The GPU's name, empty on the host.
    std::string gpu;
    /// Why --device auto took the host.
    std::string device_note;
    double cache_bytes = 0;
};

Environment describe_environment(const Context& ctx, const std::string& device_note);

/// What the session was asked for.
struct Asked {
    std::string kernel;
    int repeat = 0;
    double budget = 0;
};

/// Environment, ceilings and the head of the table; then one line a result; then what was not run.
std::string table_head(const Environment& environment, const Ceilings& ceilings);
std::string table_row(const Result& result);
std::string table_foot(const Session& session, double seconds);

/// One JSON object, schema 1; numbers that are not finite become null.
std::string to_json(const Environment& environment, const Ceilings& ceilings, const Asked& asked,
                    const Session& session, double seconds);

}  // namespace quiver::apps::bench
