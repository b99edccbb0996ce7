// SPDX-License-Identifier: BSD-3-Clause
// Reads or generates the right-hand sides of `quiver solve`, and writes its solution.
#pragma once

#include <cstdint>
#include <string>

#include "apps/problem.hpp"
#include "blockvec/block_vector.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// A Matrix Market file (array or coordinate, one column for each right-hand side), or generated
/// right-hand sides.
struct RightHandSides {
    /// The file's name, or "ones" or "random:N".
    std::string spec;
    bool is_file = false;
    bool complex = false;
    /// -1 for generated right-hand sides, which have the rows of the matrix.
    std::int64_t rows = -1;
    std::int64_t columns = 1;
};

/// Reads a file's header, or parses `made`, which is "ones" or "random:N". Exactly one of the two
/// must be given. Collective; throws InputError on all ranks.
RightHandSides inspect_right_hand_sides(const Comm& comm, const std::string& file,
                                        const std::string& made);

/// The block of right-hand sides with the rows of `map`, which must be RowMap::by_rows().
/// Collective; throws InputError on all ranks.
template <class T>
BlockVector<T> load_right_hand_sides(Context& ctx, const RightHandSides& sides, const RowMap& map,
                                     std::uint64_t seed);

/// Converts a block to the rows of a rows x width matrix with all entries stored.
template <class T>
CsrRows<T> rows_of_block(Context& ctx, const BlockVector<T>& block);

}  // namespace quiver::apps
