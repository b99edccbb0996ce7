// SPDX-License-Identifier: BSD-3-Clause
// Readers of Matrix Market files, coordinate or array format, plain or gzip-compressed.
#pragma once

#include <string>

#include "blockvec/comm.hpp"
#include "kernels/sparse/assemble.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver {

/// The contents of the first lines of a Matrix Market file.
struct MatrixMarketHeader {
    enum class Format : std::uint8_t { coordinate, array };
    enum class Field : std::uint8_t { real, integer, complex, pattern };
    Format format = Format::coordinate;
    Field field = Field::real;
    Symmetry symmetry = Symmetry::general;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    /// Number of entries in the file; for a symmetric matrix those of one triangle.
    std::int64_t entries = 0;
    bool is_complex() const { return field == Field::complex; }
};

/// The source of a matrix text: a file that all ranks can open, or one that only rank 0 can open.
struct MatrixMarketSource {
    MatrixMarketSource(const char* file) : MatrixMarketSource(std::string(file)) {}
    MatrixMarketSource(const std::string& file) : path(file), name(file) {}
    /// `path` is valid on rank 0 only; errors use `name` for the text.
    static MatrixMarketSource on_rank_0(const std::string& path, const std::string& name) {
        MatrixMarketSource source(path);
        source.name = name;
        source.only_rank_0 = true;
        return source;
    }

    std::string path;
    /// The prefix of errors.
    std::string name;
    bool only_rank_0 = false;
};

/// Reads only the header. Collective: rank 0 reads and broadcasts. Throws InputError with file and
/// line, on all ranks.
MatrixMarketHeader read_matrix_market_header(const Comm& comm, const MatrixMarketSource& source);

/// Reads a whole matrix, expands its symmetry, sums duplicates and distributes its rows. Real files
/// may be read into complex scalars, but not the reverse. From a file in array format, only nonzero
/// entries are kept. Collective: a plain file is cut into byte ranges that all ranks parse; a
/// gzip-compressed file (recognised by its first bytes) is inflated by rank 0, which distributes
/// the text, as it does for a plain file that only rank 0 can open. No rank holds more than twice
/// its share of the entries. Throws InputError with file and line on all ranks: for bad syntax, an
/// index out of range, too few or too many entries, NaN or infinity, an entry of a symmetric file
/// in the upper triangle, a diagonal entry of a skew-symmetric file, a diagonal entry of a
/// Hermitian file that is not real, damaged or truncated gzip data.
/// Source: Boisvert, Pozo, Remington, NISTIR 5935, 1996.
template <class T>
CsrRows<T> read_matrix_market(const Comm& comm, const MatrixMarketSource& source,
                              Partition partition = Partition::by_nonzeros);

}  // namespace quiver
