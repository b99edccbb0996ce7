// SPDX-License-Identifier: BSD-3-Clause
// A matrix from standard input: MATRIX `-` in every subcommand.
#pragma once

#include <initializer_list>
#include <string>

#include "blockvec/comm.hpp"
#include "kernels/sparse/matrix_market.hpp"

namespace quiver::apps {

/// The MATRIX that stands for standard input.
inline constexpr const char* standard_input_name = "-";

/// The source from which a matrix is read: the file `spec`, or standard input for `-`. A matrix is
/// read more than once (its header, its entries, and again for a check). Therefore the first call
/// copies rank 0's standard input, plain or gzip'd, to a temporary file without a name, which
/// disappears when the process ends. Collective; throws on all ranks if standard input cannot be
/// read or the copy cannot be written.
MatrixMarketSource matrix_source(const Comm& comm, const std::string& spec);

/// Throws InputError if more than one of these names is `-`.
void require_one_standard_input(std::initializer_list<std::string> names);

}  // namespace quiver::apps
