// SPDX-License-Identifier: BSD-3-Clause
// The options on silent faults that several subcommands have: --abft, --abft-updates, --inject.
#pragma once

#include <string>

#include <CLI/App.hpp>

#include "solvers/abft/abft.hpp"

namespace quiver::apps {

struct FaultOptions {
    std::string abft = "off";
    std::string inject;
    bool inject_given = false;
    AbftOptions checks;

    /// Whether checks or injected faults were requested.
    bool asked() const { return checks.mode != AbftMode::off || inject_given; }
};

/// Adds the options to a subcommand. The help of --abft begins with `covered`, which says what
/// --abft protects.
void add_fault_options(CLI::App& command, FaultOptions& options, const std::string& covered);

/// Sets the checks from the words of the command line. Throws InputError.
void resolve_faults(FaultOptions& options);

}  // namespace quiver::apps
