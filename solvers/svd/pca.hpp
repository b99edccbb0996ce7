// SPDX-License-Identifier: BSD-3-Clause
// Principal components of the rows of a tall & skinny block.
#pragma once

#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/kmeans_step.hpp"

namespace quiver {

struct PcaOptions {
    /// The number of components, the largest variance first; 0: as many as X has columns or, if
    /// that is less, rows.
    int k = 0;
};

/// The result of pca, the same on all ranks, in double precision for any X.
struct PcaResult {
    /// The mean of each column is mean + mean_rest, where mean_rest is its rounding error.
    std::vector<double> mean;
    std::vector<double> mean_rest;
    /// k x columns: orthonormal rows. The element of largest modulus of each one is positive.
    SmallMatrix<double> components;
    /// For each component the variance of its scores, with divisor rows - 1; descending. A variance
    /// beyond the range of double is 0 or infinite; ratios and singular values have no such limit.
    std::vector<double> variances;
    /// The variances over the sum of the variances of all columns; 0 if that sum is 0.
    std::vector<double> ratios;
    /// The singular values of the centred X, sqrt((rows - 1) variances).
    std::vector<double> singular_values;
    /// The mean of the variances of the components beyond the k-th; 0 if there are none.
    double noise_variance = 0;
    double total_variance = 0;
    /// A bound of the rounding errors of each variance; docs/svd.md has its derivation.
    double error = 0;
    /// The passes over X: 1, and another one if the sample that gives the first shift was not
    /// representative, or if squares leave the range of double.
    int passes = 0;
    double seconds = 0;
};

/// The eigenvectors of the covariance matrix C = (X - 1 m^T)^T (X - 1 m^T) / (rows - 1), where m
/// has the means of the columns.
///
/// X: rows x columns, this rank's rows of a global block that `map` distributes, in the Context's
/// place; s, d, h (half) or b (bfloat16). One pass over X (shifted_gram in
/// kernels/shifted_gram.hpp) forms the sums and the products of z_i = x_i - c in double, where c is
/// the mean of 256 rows, one out of each of 256 equal ranges of all rows, or 0 if in all columns
/// the mean of these rows is at most their mean absolute deviation. C then follows without loss of
/// digits if the mean of z is at most 4 standard deviations in each column; if not, c becomes the
/// mean of all rows and the pass is repeated. If squares of z underflow or overflow, the pass is
/// repeated with z times a power of two.
///
/// Throws on all ranks: InputError for k out of range, fewer than two rows, no columns, NaN,
/// infinity or differences from the mean that overflow (naming the column), options that differ
/// between ranks; ShapeError if block and map disagree; MemoryError. Cost: one pass over X (seldom
/// two), 2 rows columns^2 flops, O(columns^3) on every rank, two all-reduces.
template <class In>
PcaResult pca(Context& ctx, const RowMap& map, BlockView<const In> x,
              const PcaOptions& options = {});

/// The scores Y = (X - 1 m^T) V of the rows of any X in the components of `pca`; Y V^T + 1 m^T is
/// X's projection. The means are subtracted first, so that large means cost no digits.
///
/// X: rows x columns, Y: rows x k, in the Context's place, no overlap. Throws ShapeError. Cost: one
/// pass over X and Y. No communication.
template <class In>
void pca_scores(Context& ctx, const PcaResult& pca, BlockView<const In> x,
                BlockView<centre_t<In>> y);

}  // namespace quiver
