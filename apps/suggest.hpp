// SPDX-License-Identifier: BSD-3-Clause
// Suggests names for a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quiver::apps {

/// True if the edit distance between word and name, ignoring case, is at most a third of the name's
/// length (at least 1 is allowed), or if the word has two letters or more and the name starts with
/// it.
bool is_close(std::string_view word, std::string_view name);

/// Returns "; close ones: A, B" with the close names, or "; there are: A, B, ..." with all names if
/// none is close.
std::string suggest(std::string_view word, const std::vector<std::string>& names);

}  // namespace quiver::apps
