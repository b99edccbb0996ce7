// SPDX-License-Identifier: BSD-3-Clause
// The words of `quiver eigs --help`.
#pragma once

#include <string>

namespace quiver::apps {

inline constexpr const char* eigs_description =
    "The k smallest or largest eigenvalues, or all in a window, of a sparse symmetric or Hermitian "
    "matrix, with every copy of a multiple one";

/// What MATRIX and PRECONDITIONER may be, examples, exit status.
std::string eigs_footer();

}  // namespace quiver::apps
