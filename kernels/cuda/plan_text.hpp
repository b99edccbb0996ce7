// SPDX-License-Identifier: BSD-3-Clause
// Conversion of plans to text and back, for all structures of fields.hpp.
#pragma once

#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>

namespace quiver::cuda {

template <class Plan>
concept HasFields = requires {
    Plan::name;
};

/// "tensor tile_m=2 tile_n=1": the numbers other than 0, and the flags that are set. Fields of a
/// nested plan appear as "update.tile_n=1".
template <HasFields Plan>
std::string to_text(const Plan& plan, const std::string& prefix = "") {
    std::string text;
    Plan::for_each_field(plan, [&]<class Value>(const char* field, const Value& value) {
        std::string word = prefix + field;
        if constexpr (HasFields<Value>) {
            word = to_text(value, word + ".");
        } else if constexpr (std::is_same_v<Value, bool>) {
            word = value ? word : "";
        } else {
            word = value == 0 ? "" : word + "=" + std::to_string(value);
        }
        text += (text.empty() || word.empty() ? "" : " ") + word;
    });
    return text;
}

/// Extracts the fields of `plan` from the words "name" -> "=value". Returns false if a number is
/// malformed, or is missing and its default is not 0.
template <HasFields Plan>
bool take_fields(Plan& plan, const std::string& prefix, std::map<std::string, std::string>& words) {
    bool complete = true;
    Plan::for_each_field(plan, [&]<class Value>(const char* field, Value& value) {
        if constexpr (HasFields<Value>) {
            complete = take_fields(value, prefix + field + ".", words) && complete;
        } else {
            const auto word = words.extract(prefix + field);
            const std::string text = word ? word.mapped() : "";
            if constexpr (std::is_same_v<Value, bool>) {
                value = static_cast<bool>(word);
                complete = complete && text.empty();
            } else if (word || value != 0) {
                const char* const end = text.data() + text.size();
                complete = complete && text.size() > 1 &&
                           std::from_chars(text.data() + 1, end, value).ptr == end;
            }
        }
    });
    return complete;
}

/// The plan of a text whose words may be in any order; nothing if it contains an unknown or
/// repeated field or lacks a number.
template <HasFields Plan>
std::optional<Plan> plan_of(const std::string& text) {
    std::map<std::string, std::string> words;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        const std::size_t length = std::min(word.find('='), word.size());
        if (!words.emplace(word.substr(0, length), word.substr(length)).second) {
            return std::nullopt;
        }
    }
    Plan plan;
    const bool complete = take_fields(plan, "", words);
    return complete && words.empty() ? std::optional(plan) : std::nullopt;
}

}  // namespace quiver::cuda
