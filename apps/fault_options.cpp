// SPDX-License-Identifier: BSD-3-Clause
#include "apps/fault_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "blockvec/error.hpp"

namespace quiver::apps {

void add_fault_options(CLI::App& command, FaultOptions& options, const std::string& covered) {
    command.add_option("--abft", options.abft, covered + ": off, detect, correct")
        ->check(CLI::IsMember({"off", "detect", "correct"}))
        ->capture_default_str();
    command.add_flag("--abft-updates", options.checks.updates,
                     "With --abft: also check each product and update of blocks. lanczos does not "
                     "need this; docs/abft.md has the cost");
    command
        .add_option("--inject", options.inject,
                    "Flip bits to test --abft: rate=0.01,where=output+matrix,bit=any,seed=1")
        ->each([&options](const std::string&) { options.inject_given = true; });
}

void resolve_faults(FaultOptions& options) {
    for (const AbftMode mode : {AbftMode::detect, AbftMode::correct}) {
        if (options.abft == to_string(mode)) {
            options.checks.mode = mode;
        }
    }
    if (options.checks.updates && options.abft == "off") {
        throw InputError("--abft-updates needs --abft detect or correct");
    }
    if (options.inject_given) {
        options.checks.inject = parse_injection(options.inject);
    }
}

}  // namespace quiver::apps
