// SPDX-License-Identifier: BSD-3-Clause
// The words of `quiver bench`: of its help, and of a command given.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace quiver::apps::bench {

/// Options that take a name of a file, which may not be empty.
inline constexpr const char* file_options[] = {"--json", "--resume", "--plot", "--markdown"};

/// The kernels, examples, exit status.
std::string footer();

/// "quiver bench tsmm --widths 1:8": what was asked for, without the names of files.
std::string words_of(const CLI::App& command);

}  // namespace quiver::apps::bench
