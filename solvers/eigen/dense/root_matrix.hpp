// SPDX-License-Identifier: BSD-3-Clause
// Matrices that a dense solve gathers on rank 0. Private to solvers/eigen.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/small_matrix.hpp"
#include "kernels/operator.hpp"

namespace quiver {

/// The precision of dense solves.
template <class T>
using Wide = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
template <class T>
using WideMatrix = SmallMatrix<Wide<T>>;

/// Columns that are gathered, sent and multiplied at once.
constexpr int root_panel = 64;

/// The matrix of an operator on rank 0; empty elsewhere. Reads the entries of a SparseMatrix on one
/// rank; otherwise multiplies n unit vectors, takes the Hermitian part of the product, and adds n
/// to `products`. Throws NumericalError on all ranks for entries that are not finite. Collective.
template <class T>
WideMatrix<T> matrix_on_root(Context& ctx, Operator<T>& a, std::int64_t& products);

/// The rows of X of all ranks, on every rank. Collective.
template <class T>
WideMatrix<T> all_columns(Context& ctx, const BlockVector<T>& x);

/// A matrix whose entries were multiplied by 2^-exponent.
template <class W>
struct ScaledMatrix {
    SmallMatrix<W> entries;
    int exponent = 0;
    /// The largest 2-norm of a column of the unscaled matrix: at most ||A||_2, and at least a
    /// fraction 1 / sqrt(n) of it.
    double column_norm = 0;
};

/// Scales by a power of two, without rounding, so that the largest entry is near 1.
template <class W>
ScaledMatrix<W> scaled(SmallMatrix<W> a);

/// 2^-exponent D M D with D = diag(2^units).
template <class W>
SmallMatrix<W> in_units(SmallMatrix<W> m, const std::vector<int>& units, int exponent = 0);

}  // namespace quiver
