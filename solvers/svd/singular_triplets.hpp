// SPDX-License-Identifier: BSD-3-Clause
// The algorithm of svds for a matrix of any kind. Private to solvers/.
#pragma once

#include <cstdint>
#include <span>

#include "blockvec/comm.hpp"
#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "blockvec/view.hpp"
#include "solvers/svd/sparse_svd.hpp"

namespace quiver {

/// A large matrix A, or its adjoint, by its products. Y has the distribution range_map(), X has
/// domain_map().
template <class T>
class TripletMatrix {
  public:
    virtual ~TripletMatrix() = default;
    virtual const RowMap& range_map() const = 0;
    virtual const RowMap& domain_map() const = 0;
    /// Y = factor A X. Collective.
    virtual void multiply(Context& ctx, T factor, BlockView<const T> x, BlockView<T> y) = 0;
    /// The largest modulus of this rank's entries. No communication.
    virtual double largest_modulus(Context& ctx) = 0;
    /// As Operator::prepare().
    virtual void prepare(Context& /*ctx*/, std::span<const int> /*widths*/) {}
    /// True if A is stored as a dense matrix.
    virtual bool is_dense() const { return false; }
};

/// Throws InputError on all ranks for options out of range or different between the ranks.
/// Collective.
void check_svds(const Comm& comm, std::int64_t rows, std::int64_t columns,
                const SvdsOptions& options);

/// The triplets of `a` as svds() describes them, for checked options and finite entries. `adjoint`:
/// A^H. Collective.
template <class T>
SparseSvd<T> singular_triplets(Context& ctx, TripletMatrix<T>& a, TripletMatrix<T>& adjoint,
                               const SvdsOptions& options);

}  // namespace quiver
