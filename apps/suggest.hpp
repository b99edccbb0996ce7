// SPDX-License-Identifier: BSD-3-Clause
// Suggests names for a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quiver::apps {

/// Whether at most a third of the name's letters differ (one is always allowed), or the name starts
/// with the word. Ignores case.
bool is_close(std::string_view word, std::string_view name);

/// "; close ones: A, B", or "; there are: " and all names if none is close.
std::string suggest(std::string_view word, const std::vector<std::string>& names);

}  // namespace quiver::apps
