// SPDX-License-Identifier: BSD-3-Clause
// The properties that `quiver info MATRIX` shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/hermitian_check.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// The cost of reading or generating the matrix.
struct ReadCost {
    double seconds = 0;
    /// Size of the file on the disk; 0 for a generated matrix.
    double megabytes = 0;
    /// Peak memory of each rank up to the end of reading, libraries included.
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
    /// The symmetry that the file or generator declares, and how far the entries are from
    /// Hermitian.
    Symmetry declared = Symmetry::general;
    HermitianCheck check;
    /// Rows and nonzeros of each rank.
    std::vector<std::int64_t> rank_rows;
    std::vector<std::int64_t> rank_nonzeros;
    /// Not measured if rank_peak_bytes is empty.
    ReadCost read;
    /// Not computed if `ranks` is empty, as for a matrix that is not square.
    StorageFacts storage;
};

/// Computes the facts of a matrix, without `read` and `storage`. Collective; the same on all ranks
/// and for any number of threads. Cost: three passes over the entries and, for the column sums, an
/// all-reduce of one number per column.
template <class T>
MatrixFacts facts_of(const Comm& comm, const CsrRows<T>& rows, int threads);

/// The storage of a square matrix. Collective; the same on all ranks.
template <class T>
StorageFacts storage_facts(const Comm& comm, const CsrRows<T>& rows, Place place);

std::string to_table(const std::string& spec, Dtype scalar, const MatrixFacts& facts);

}  // namespace quiver::apps
