// SPDX-License-Identifier: BSD-3-Clause
// Reads settings such as "threads=512,tile=1024".
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "blockvec/error.hpp"

namespace quiver::cuda {

struct NamedSetting {
    const char* name;
    int& value;
};

/// Assigns the numbers of `text` to the settings that it names. Throws InputError for an unknown
/// name or a value that is not a number up to 65536. `what` begins the message.
inline void read_settings(const char* what, std::string_view text,
                          std::initializer_list<NamedSetting> known) {
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(','));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        const std::string_view name = word.substr(0, word.find('='));
        const std::string_view digits = word.substr(std::min(name.size() + 1, word.size()));
        const auto* const found =
            std::find_if(known.begin(), known.end(), [&](const auto& k) { return name == k.name; });
        const bool number = !digits.empty() && digits.size() <= 5 &&
                            digits.find_first_not_of("0123456789") == std::string_view::npos;
        if (found == known.end() || !number || std::stoi(std::string(digits)) > 65536) {
            std::string names;
            for (const NamedSetting& each : known) {
                names += (names.empty() ? "" : ", ") + std::string(each.name);
            }
            throw InputError(std::string(what) + ": \"" + std::string(word) + "\" is not one of " +
                             names + " = a number up to 65536");
        }
        found->value = std::stoi(std::string(digits));
    }
}

}  // namespace quiver::cuda
