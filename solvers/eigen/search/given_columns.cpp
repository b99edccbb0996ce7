// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/search/given_columns.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
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

template <class T>
double largest_image(Context& ctx, GuardedOperator<T>& a, BlockView<const T> columns) {
    if (columns.cols == 0) {
        return 0;
    }
    BlockVector<T> image;
    ctx.comm().agree([&] { image = BlockVector<T>(ctx, a.row_map(), columns.cols); });
    a.apply(ctx, columns, image.view());
    std::vector<real_t<T>> lengths(static_cast<std::size_t>(columns.cols));
    norms<T>(ctx, image.view(), std::span<real_t<T>>(lengths));
    a.rethrow_pending();
    return static_cast<double>(*std::max_element(lengths.begin(), lengths.end()));
}

template <class T>
double random_image(Context& ctx, GuardedOperator<T>& a, std::uint64_t seed) {
    BlockVector<T> column;
    ctx.comm().agree([&] { column = BlockVector<T>(ctx, a.row_map(), 1); });
    fill_random(ctx, seed, column);
    real_t<T> length(0);
    norms<T>(ctx, std::as_const(column).view(), std::span<real_t<T>>(&length, 1));
    const double image = largest_image<T>(ctx, a, std::as_const(column).view());
    return length > 0 ? image / static_cast<double>(length) : 0;
}

#define QUIVER_INSTANTIATE(T)                                                                  \
    template void fill_start_block(Context&, const RowMap&, std::uint64_t, BlockView<const T>, \
                                   BlockView<T>);                                              \
    template void take_constraints(Context&, const RowMap&, BlockView<const T>, BlockView<T>); \
    template double largest_image(Context&, GuardedOperator<T>&, BlockView<const T>);          \
    template double random_image(Context&, GuardedOperator<T>&, std::uint64_t);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
