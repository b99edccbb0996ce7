// SPDX-License-Identifier: BSD-3-Clause
// What `quiver info MATRIX` tells of a matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/hermitian_check.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// What reading or generating the matrix took.
struct ReadCost {
    double seconds = 0;
    /// Size of the file, as it lies on the disk; 0 for a generated matrix.
    double megabytes = 0;
    /// The most memory that each rank had in use until then, libraries included.
    std::vector<std::int64_t> rank_peak_bytes;
};

/// How each rank would store its rows as a SparseMatrix.
struct StorageFacts {
    Place place = Place::host;
    std::vector<SparseStorage> ranks;
};

struct MatrixFacts {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nonzeros = 0;
    /// Entries per row.
    std::int64_t shortest_row = 0;
    std::int64_t longest_row = 0;
    /// Largest |row - column| of an entry.
    std::int64_t bandwidth = 0;
    /// Entries on the diagonal.
    std::int64_t diagonal = 0;
    /// Largest column sum and largest row sum of |a_ij|, and (sum |a_ij|^2)^(1/2).
    double one_norm = 0;
    double infinity_norm = 0;
    double frobenius_norm = 0;
    /// What the file or generator says, and how far the entries are from Hermitian.
    Symmetry declared = Symmetry::general;
    HermitianCheck check;
    /// Rows and nonzeros of each rank.
    std::vector<std::int64_t> rank_rows;
    std::vector<std::int64_t> rank_nonzeros;
    /// Not known unless the ranks' peaks are filled in.
    ReadCost read;
    /// Without ranks where the matrix is not square.
    StorageFacts storage;
};

/// Collective; the same on all ranks. Cost: two passes over the entries and, for the column sums,
/// an all-reduce of one number per column.
template <class T>
MatrixFacts facts_of(const Comm& comm, const CsrRows<T>& rows);

/// Of a square matrix. Collective; the same on all ranks.
template <class T>
StorageFacts storage_facts(const Comm& comm, const CsrRows<T>& rows, Place place);

std::string to_table(const std::string& spec, Dtype scalar, const MatrixFacts& facts);

}  // namespace quiver::apps
