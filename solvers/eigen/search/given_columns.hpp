// SPDX-License-Identifier: BSD-3-Clause
// Start block and constraints, made from the columns that the caller gives. Private to
// solvers/eigen.
#pragma once

#include <cstdint>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"
#include "solvers/guarded_operator.hpp"

namespace quiver {

/// Fills the start block, not yet orthonormal: the guesses, followed by random columns if there are
/// too few guesses; random combinations of the guesses if there are too many.
template <class T>
void fill_start_block(Context& ctx, const RowMap& map, std::uint64_t seed,
                      BlockView<const T> guesses, BlockView<T> block);

/// `block` <- an orthonormal basis of the constraints. Throws InputError on all ranks if the
/// columns are linearly dependent.
template <class T>
void take_constraints(Context& ctx, const RowMap& map, BlockView<const T> constraints,
                      BlockView<T> block);

/// max ||A c_j|| over orthonormal columns: a lower bound of ||A||. A may vanish on the complement
/// of constraints, so a norm that is estimated there can be too small for tolerances relative to
/// ||A||. 0 without columns. Collective; one product with all columns, one all-reduce.
template <class T>
double largest_image(Context& ctx, GuardedOperator<T>& a, BlockView<const T> columns);

/// ||A r|| / ||r|| for a random column r: a lower bound of ||A||, also where a search starts from
/// null vectors of A. Collective; one product, two all-reduces.
template <class T>
double random_image(Context& ctx, GuardedOperator<T>& a, std::uint64_t seed);

}  // namespace quiver
