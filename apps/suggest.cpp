// SPDX-License-Identifier: BSD-3-Clause
#include "apps/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace quiver::apps {
namespace {

/// The Levenshtein distance, ignoring case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    const auto same = [](char left, char right) { return (left | 0x20) == (right | 0x20); };
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

}  // namespace

bool is_close(std::string_view word, std::string_view name) {
    return edit_distance(word, name) <= std::max<std::size_t>(1, name.size() / 3) ||
           (word.size() >= 2 && name.substr(0, word.size()) == word);
}

std::string suggest(std::string_view word, const std::vector<std::string>& names) {
    std::string close;
    std::string all;
    for (const std::string& name : names) {
        if (is_close(word, name)) {
            close += (close.empty() ? "" : ", ") + name;
        }
        all += (all.empty() ? "" : ", ") + name;
    }
    return close.empty() ? "; there are: " + all : "; close ones: " + close;
}

}  // namespace quiver::apps
