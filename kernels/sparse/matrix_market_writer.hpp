// SPDX-License-Identifier: BSD-3-Clause
// Writing Matrix Market files, plain or gzip'd.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/comm.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// Throws InputError on all ranks unless rank 0 can write a file of this name: for use before long
/// work. Collective.
void check_matrix_market_path(const Comm& comm, const std::string& path);

/// Writes a matrix in coordinate format, field real or complex as T, symmetry as the rows declare
/// it: of a symmetric or Hermitian matrix the lower triangle, of a skew-symmetric one without the
/// diagonal. Rows ascend, and so do columns within a row. gzip'd when the name ends in ".gz".
/// `comment` becomes one comment line. Returns how many entries the file lists.
///
/// Numbers are the shortest decimals that give the same double back, so that read_matrix_market
/// returns the same entries; -0 is written as 0 (and comes back as -0 only where a mirrored entry
/// is its negative or conjugate). Rank 0 writes what the ranks send in blocks; no rank holds more
/// text than two of them. The text goes to a temporary name in the same folder, which is renamed at
/// the end and removed on failure.
///
/// Collective. Throws on all ranks: InputError for a bad path and for entries that the format does
/// not hold (not finite; a diagonal that a Hermitian or skew-symmetric matrix cannot have), Error
/// when the disk fails. Cost: one pass over the entries to check, one to write.
template <class T>
std::int64_t write_matrix_market(const Comm& comm, const std::string& path, const CsrRows<T>& rows,
                                 const std::string& comment = "");

}  // namespace quiver
