// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/svd/sparse_svd.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "solvers/svd/singular_triplets.hpp"

namespace quiver {
namespace {

template <class T>
class SparseTripletMatrix final : public TripletMatrix<T> {
  public:
    explicit SparseTripletMatrix(SparseMatrix<T>& a) : a_(a) {}

    const RowMap& range_map() const override { return a_.range_map(); }
    const RowMap& domain_map() const override { return a_.domain_map(); }
    void multiply(Context& ctx, T factor, BlockView<const T> x, BlockView<T> y) override {
        if (factor == T(1)) {
            a_.apply(ctx, x, y);
            return;
        }
        ApplyOptions<T> options;
        options.alpha = factor;
        a_.apply_fused(ctx, x, y, options);
    }
    double largest_modulus(Context& ctx) override {
        double largest = 0;
        a_.for_each_entry(ctx, [&](std::size_t, std::int64_t, T value) {
            largest = std::max(largest, static_cast<double>(std::abs(value)));
        });
        return largest;
    }
    void prepare(Context& ctx, std::span<const int> widths) override { a_.prepare(ctx, widths); }

  private:
    SparseMatrix<T>& a_;
};

template <class T>
void check_sparse_svds(const Context& ctx, const SparseMatrix<T>& a, const SvdsOptions& options) {
    check_svds(ctx.comm(), a.range_map().global_rows(), a.domain_map().global_rows(), options);
}

}  // namespace

template <class T>
SparseSvd<T> svds(Context& ctx, SparseMatrix<T>& a, const SvdsOptions& options) {
    check_sparse_svds(ctx, a, options);
    SparseMatrix<T> adjoint = a.adjoint(ctx);
    return svds(ctx, a, adjoint, options);
}

template <class T>
SparseSvd<T> svds(Context& ctx, SparseMatrix<T>& a, SparseMatrix<T>& adjoint,
                  const SvdsOptions& options) {
    check_sparse_svds(ctx, a, options);
    ctx.comm().agree([&] {
        if (!(adjoint.range_map() == a.domain_map()) || !(adjoint.domain_map() == a.range_map())) {
            throw ShapeError("svds: the rows and columns of A^H are not the columns and rows of A");
        }
    });
    SparseTripletMatrix<T> products(a);
    SparseTripletMatrix<T> of_adjoint(adjoint);
    return singular_triplets<T>(ctx, products, of_adjoint, options);
}

#define QUIVER_INSTANTIATE(T)                                                   \
    template SparseSvd<T> svds(Context&, SparseMatrix<T>&, const SvdsOptions&); \
    template SparseSvd<T> svds(Context&, SparseMatrix<T>&, SparseMatrix<T>&, const SvdsOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
