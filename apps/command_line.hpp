// SPDX-License-Identifier: BSD-3-Clause
// Parts of the command lines of several subcommands.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>

#include "apps/number_option.hpp"
#include "apps/outputs.hpp"
#include "apps/report.hpp"
#include "apps/subcommands.hpp"

namespace quiver::apps {

/// Adds an option whose value is one of `words`, with the current value as its default.
inline CLI::Option* add_word(CLI::App& command, const std::string& names, std::string& word,
                             const std::string& meaning, std::vector<std::string> words) {
    return command.add_option(names, word, meaning)
        ->check(CLI::IsMember(std::move(words)))
        ->capture_default_str();
}

/// Adds the option --device of subcommands without mixed devices.
inline void add_device(CLI::App& command, std::string& device) {
    add_word(command, "--device", device, "Where to run; auto chooses a GPU if there is one",
             {"auto", "host", "cuda"});
}

/// Adds an output option; messages call it by the first of its names.
inline CLI::Option* add_output(CLI::App& command, const std::string& names, Output& output,
                               const std::string& meaning, const std::string& format = "") {
    output.option = names.substr(0, names.find(','));
    output.format = format;
    return command.add_option_function<std::string>(
        names,
        [&output](const std::string& path) {
            output.path = path;
            output.given = true;
        },
        meaning);
}

inline void add_json(CLI::App& command, Output& json) {
    add_output(command, "--json", json, json_option);
}

/// If the subcommand is on the command line, read_options() is called, and `chosen` becomes
/// run(comm, *options). The result of `run` is true if everything has converged and is verified; it
/// decides between the exit statuses success and not_converged. Errors have the other statuses.
template <class Options, class Run>
void set_action(CLI::App& command, Action& chosen, std::shared_ptr<Options> options, Run run,
                const std::function<void()>& read_options = {}) {
    command.callback([=, &chosen] {
        if (read_options) {
            read_options();
        }
        chosen = [=](const Comm& comm) { return run(comm, *options) ? success : not_converged; };
    });
}

}  // namespace quiver::apps
