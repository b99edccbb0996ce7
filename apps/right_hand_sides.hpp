// SPDX-License-Identifier: BSD-3-Clause
// The right-hand sides of `quiver solve`, and its solution as a file.
#pragma once

#include <cstdint>
#include <string>

#include "apps/problem.hpp"
#include "blockvec/block_vector.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps {

/// A Matrix Market file (array or coordinate, a column for each right-hand side), or made ones.
struct RightHandSides {
    /// The file's name, or "ones" or "random:N".
    std::string spec;
    bool is_file = false;
    bool complex = false;
    /// -1 where they are made as the matrix needs them.
    std::int64_t rows = -1;
    std::int64_t columns = 1;
};

/// Reads a file's header; `made` is "ones" or "random:N", and just one of the two is given.
/// Collective; throws InputError on all ranks.
RightHandSides inspect_right_hand_sides(const Comm& comm, const std::string& file,
                                        const std::string& made);

/// The block, rows dealt as `map` says, which must be RowMap::by_rows(). Collective; throws
/// InputError on all ranks.
template <class T>
BlockVector<T> load_right_hand_sides(Context& ctx, const RightHandSides& sides, const RowMap& map,
                                     std::uint64_t seed);

/// A block as the rows of a rows x width matrix with all entries stored.
template <class T>
CsrRows<T> rows_of_block(Context& ctx, const BlockVector<T>& block);

}  // namespace quiver::apps
