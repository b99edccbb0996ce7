// SPDX-License-Identifier: BSD-3-Clause
// Parses lists on the command line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quiver::apps::bench {

/// Splits at commas and removes blanks. Throws InputError for an empty entry.
std::vector<std::string> split_list(const char* option, const std::string& text);

/// Parses a whole number from `least` to `most`, such as "1000" or "1e6". Throws InputError for
/// anything else.
std::int64_t parse_number(const char* option, std::string_view word, std::int64_t least,
                          std::int64_t most);

template <class V>
void add_once(std::vector<V>& list, const V& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) {
        list.push_back(value);
    }
}

}  // namespace quiver::apps::bench
