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
    /// -1 for generated right-hand sides, which have as many rows as the matrix.
    std::int64_t rows = -1;
    std::int64_t columns = 1;
};

/// Reads the header of `file`, or parses `made`, which is "ones" or "random:N". Exactly one of
/// the two must be empty. Collective; throws InputError on all ranks.
RightHandSides inspect_right_hand_sides(const Comm& comm, const std::string& file,
                                        const std::string& made);

/// Reads or generates the block of right-hand sides, whose rows are distributed by `map`, which
/// must come from RowMap::by_rows(). `seed` is used by random:N. Collective; throws InputError on
/// all ranks.
template <class T>
BlockVector<T> load_right_hand_sides(Context& ctx, const RightHandSides& sides, const RowMap& map,
                                     std::uint64_t seed);

/// Converts a block to a rows x width matrix in which all entries are stored. Collective.
template <class T>
CsrRows<T> rows_of_block(Context& ctx, const BlockVector<T>& block);

}  // namespace quiver::apps
