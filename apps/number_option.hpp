// SPDX-License-Identifier: BSD-3-Clause
// Options whose value is a number, parsed by blockvec/number_text.hpp like all numbers in the
// project.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"

namespace quiver::apps {

/// The name of a subcommand on the command line, such as "eigs" or "bench kernels".
inline std::string full_name(const CLI::App& command) {
    const CLI::App* const parent = command.get_parent();
    const bool nested = parent != nullptr && parent->get_parent() != nullptr;
    return (nested ? full_name(*parent) + " " : "") + command.get_name();
}

/// Adds the option `name` with the current value as its default. A text that is not a number of
/// type V throws InputError on all ranks, since all ranks read the same command line.
template <class V>
CLI::Option* add_number(CLI::App& command, const std::string& name, V& value,
                        const std::string& meaning) {
    const auto read = [who = full_name(command) + ": " + name](const std::string& text) {
        const auto refuse = [&](const std::string& wanted) {
            throw_collective(
                ErrorKind::input,
                fmt::format("{} {}: {} is wanted; see quiver {} --help", who,
                            text.empty() ? "''" : text, wanted, who.substr(0, who.find(':'))));
        };
        if constexpr (std::is_floating_point_v<V>) {
            double number = 0;
            if (parse_real(text, number) != std::errc()) {
                refuse("a number");
            }
            // Keep the text unchanged if CLI11 can parse it too: bench reports show the command
            // line as it was given.
            double same = 0;
            const char* const end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, same);
            return error == std::errc() && stop == end ? text : fmt::format("{:.17g}", number);
        } else {
            // Unsigned 64-bit numbers (seeds) are limited to the range of signed ones.
            constexpr auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(
                std::numeric_limits<V>::max(), std::numeric_limits<std::int64_t>::max()));
            constexpr std::int64_t least = std::is_signed_v<V> ? std::numeric_limits<V>::min() : 0;
            std::int64_t number = 0;
            if (parse_whole(text, number) != std::errc() || number < least || number > most) {
                refuse(
                    fmt::format("a whole number {} {}", least < 0 ? "up to" : "from 0 to", most));
            }
            return fmt::format("{}", number);
        }
    };
    return command.add_option(name, value, meaning)->capture_default_str()->transform(read);
}

}  // namespace quiver::apps
