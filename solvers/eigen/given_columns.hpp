// SPDX-License-Identifier: BSD-3-Clause
// What solvers make of the columns that a caller gives. Private to solvers/eigen.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// The block to start with, not yet orthonormal: the guesses, with random columns where there are
/// fewer than the block has, or random combinations of them where there are more.
template <class T>
void fill_start_block(Context& ctx, const RowMap& map, std::uint64_t seed,
                      BlockView<const T> guesses, BlockView<T> block);

/// `block` <- an orthonormal basis of the constraints. Throws InputError, on all ranks, for columns
/// that are linearly dependent.
template <class T>
void take_constraints(Context& ctx, const RowMap& map, BlockView<const T> constraints,
                      BlockView<T> block);

}  // namespace quiver
