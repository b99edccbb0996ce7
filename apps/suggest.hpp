// SPDX-License-Identifier: BSD-3-Clause
// What a mistyped word may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quiver::apps {

/// A third of the name's letters differ at most (at least one may), or the name starts with the
/// word; case does not count.
bool is_close(std::string_view word, std::string_view name);

/// "; close ones: A, B", or "; there are: " and all names where none is close.
std::string suggest(std::string_view word, const std::vector<std::string>& names);

}  // namespace quiver::apps
