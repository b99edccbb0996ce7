// SPDX-License-Identifier: BSD-3-Clause
// Matrix Market coordinate files, plain or gzip'd.
#pragma once

#include <string>

#include "blockvec/comm.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// What the first lines of a Matrix Market file say.
struct MatrixMarketHeader {
    enum class Field : std::uint8_t { real, integer, complex, pattern };
    Field field = Field::real;
    Symmetry symmetry = Symmetry::general;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t entries = 0;
    bool is_complex() const { return field == Field::complex; }
};

/// Reads only the header. Collective: rank 0 reads, all ranks get it. Throws InputError with file
/// and line, on all ranks.
MatrixMarketHeader read_matrix_market_header(const Comm& comm, const std::string& path);

/// Reads a whole matrix, expands its symmetry, deals its rows to the ranks. Real files may be read
/// into complex scalars, not the other way. Collective: a plain file is cut into byte ranges that
/// all ranks parse; of a .gz file rank 0 inflates and deals out the text. Throws InputError with
/// file and line on all ranks.
template <class T>
CsrRows<T> read_matrix_market(const Comm& comm, const std::string& path,
                              Partition partition = Partition::by_nonzeros);

}  // namespace quiver
