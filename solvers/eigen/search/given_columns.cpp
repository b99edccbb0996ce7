// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/given_columns.hpp"

#include <algorithm>
#include <string>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmm.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {

template <class T>
void fill_start_block(Context& ctx, const RowMap& map, std::uint64_t seed,
                      BlockView<const T> guesses, BlockView<T> block) {
    const int given = std::min(guesses.cols, block.cols);
    fill_random(ctx, seed, map.first_row(), 0, block.columns(given, block.cols - given));
    if (guesses.cols > block.cols) {
        SmallMatrix<T> mix(guesses.cols, block.cols);
        for (int i = 0; i < mix.rows(); ++i) {
            for (int j = 0; j < mix.cols(); ++j) {
                mix(i, j) = T(static_cast<real_t<T>>(2 * uniform(seed, i, j) - 1));
            }
        }
        tsmm(ctx, T(1), guesses, mix.view(), T(0), block);
    } else if (given > 0) {
        copy(ctx, guesses, block.columns(0, given));
    }
}

template <class T>
void take_constraints(Context& ctx, const RowMap& map, BlockView<const T> constraints,
                      BlockView<T> block) {
    if (constraints.cols == 0) {
        return;
    }
    copy(ctx, constraints, block);
    OrthOptions options;
    options.replace_deficient = false;
    const int rank = block_gram_schmidt<T>(ctx, map, block.columns(0, 0), block, options).columns;
    if (rank < constraints.cols) {
        InputError error("eigensolver: " + std::to_string(constraints.cols) +
                         " constraint vectors are linearly dependent, of rank " +
                         std::to_string(rank));
        error.set_collective();
        throw error;
    }
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template void fill_start_block(Context&, const RowMap&, std::uint64_t, BlockView<const T>, \
                                   BlockView<T>);                                              \
    template void take_constraints(Context&, const RowMap&, BlockView<const T>, BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
