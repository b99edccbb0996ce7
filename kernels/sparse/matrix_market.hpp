// SPDX-License-Identifier: BSD-3-Clause
// Matrix Market files, coordinate or array, plain or gzip'd.
#pragma once

#include <string>

#include "blockvec/comm.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// What the first lines of a Matrix Market file say.
struct MatrixMarketHeader {
    enum class Format : std::uint8_t { coordinate, array };
    enum class Field : std::uint8_t { real, integer, complex, pattern };
    Format format = Format::coordinate;
    Field field = Field::real;
    Symmetry symmetry = Symmetry::general;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    /// Entries that the file lists: of a symmetric matrix those of one triangle.
    std::int64_t entries = 0;
    bool is_complex() const { return field == Field::complex; }
};

/// Reads only the header. Collective: rank 0 reads, all ranks get it. Throws InputError with file
/// and line, on all ranks.
MatrixMarketHeader read_matrix_market_header(const Comm& comm, const std::string& path);

/// Reads a whole matrix, expands its symmetry, sums duplicates, deals its rows to the ranks. Real
/// files may be read into complex scalars, not the other way. Of a file in array format the entries
/// that are not zero are kept. Collective: a plain file is cut into byte ranges that all ranks
/// parse; of a gzip'd one (known by its first bytes) rank 0 inflates and deals out the text. No
/// rank holds more than its share of entries twice. Throws InputError with file and line on all
/// ranks: for bad syntax, an index out of range, too few or too many entries, NaN or infinity, an
/// entry of a symmetric file in the upper triangle, a diagonal entry of a skew-symmetric file, a
/// diagonal entry of a Hermitian file that is not real, damaged or truncated gzip data. Source:
/// Boisvert, Pozo, Remington, NISTIR 5935, 1996.
template <class T>
CsrRows<T> read_matrix_market(const Comm& comm, const std::string& path,
                              Partition partition = Partition::by_nonzeros);

}  // namespace quiver
