// SPDX-License-Identifier: BSD-3-Clause
// Writers of Matrix Market files, plain or gzip-compressed.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Throws InputError on all ranks unless rank 0 can write an output of this name
/// (kernels/output_file.hpp); call it before long work. Creates missing parent folders. Collective.
void check_matrix_market_path(const Comm& comm, const std::string& path);

/// Writes a matrix in coordinate format. The field is real or complex as T, the symmetry that of
/// the rows: for a symmetric or Hermitian matrix the lower triangle, for a skew-symmetric matrix
/// the strict lower triangle. Rows ascend, and so do columns within a row. The file is
/// gzip-compressed if its name ends in ".gz". `comment` becomes one comment line. Returns the
/// number of entries in the file.
///
/// Numbers are the shortest decimals that reproduce the same double, so that read_matrix_market
/// returns the same entries. -0 is written as 0 (and read back as -0 only if a mirrored entry is
/// its negative or conjugate). Rank 0 writes the blocks of text that the ranks send; no rank holds
/// more than two such blocks. `path` is an output as defined in kernels/output_file.hpp: a regular
/// file appears whole or not at all; `-`, pipes and character devices are written directly.
///
/// Collective. Throws on all ranks: InputError for a bad path and for entries that the format
/// cannot hold (not finite; a diagonal that a Hermitian or skew-symmetric matrix cannot have),
/// Error if writing fails. Cost: one pass over the entries to check, one to write.
template <class T>
std::int64_t write_matrix_market(const Comm& comm, const std::string& path, const CsrRows<T>& rows,
                                 const std::string& comment = "");

}  // namespace quiver
