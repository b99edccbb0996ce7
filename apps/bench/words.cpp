// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/words.hpp"

#include <cmath>

#include <fmt/format.h>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"

namespace quiver::apps::bench {

std::vector<std::string> split_list(const char* option, const std::string& text) {
    std::vector<std::string> words(1);
    for (const char letter : text) {
        if (letter == ',') {
            words.emplace_back();
        } else if (letter != ' ') {
            words.back() += letter;
        }
    }
    for (const std::string& word : words) {
        if (word.empty()) {
            throw InputError(fmt::format("{} \"{}\": an entry of the list is empty", option, text));
        }
    }
    return words;
}

std::int64_t parse_number(const char* option, std::string_view word, std::int64_t least,
                          std::int64_t most) {
    double value = 0;
    const bool whole = parse_real(word, value) == std::errc() && value == std::floor(value) &&
                       std::abs(value) < 0x1p53;
    if (!whole || value < static_cast<double>(least) || value > static_cast<double>(most)) {
        throw InputError(fmt::format("{}: \"{}\" is not a whole number from {} to {}", option, word,
                                     least, most));
    }
    return static_cast<std::int64_t>(value);
}

}  // namespace quiver::apps::bench
