// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/svd/dense_svd.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/mtsm.hpp"
#include "solvers/equal_options.hpp"
#include "solvers/svd/singular_triplets.hpp"

namespace quiver {
namespace {

/// A or A^H for this rank's rows of A.
template <class T>
class DenseTripletMatrix final : public TripletMatrix<T> {
  public:
    DenseTripletMatrix(const RowMap& rows, const RowMap& columns, MatrixView<const T> a,
                       bool adjoint)
        : rows_(rows), columns_(columns), a_(a), adjoint_(adjoint) {}

    const RowMap& range_map() const override { return adjoint_ ? columns_ : rows_; }
    const RowMap& domain_map() const override { return adjoint_ ? rows_ : columns_; }
    void multiply(Context& ctx, T factor, BlockView<const T> x, BlockView<T> y) override {
        if (adjoint_) {
            mtsm_adjoint<T>(ctx, factor, a_, x, T(0), columns_, y);
        } else {
            mtsm<T>(ctx, factor, a_, columns_, x, T(0), y);
        }
    }
    double largest_modulus(Context& ctx) override {
        // One line at a time, which a device copies to the host: only matrices whose squares
        // underflow or overflow are read.
        const std::int64_t length = a_.line_length();
        std::vector<T> line(static_cast<std::size_t>(length));
        double largest = 0;
        for (std::int64_t i = 0; i < (a_.empty() ? 0 : a_.lines()); ++i) {
            const auto columns = static_cast<int>(length);
            copy(ctx, BlockView<const T>(a_.data + i * a_.ld, 1, columns, length, a_.place),
                 BlockView<T>(line.data(), 1, columns, length));
            for (const T& value : line) {
                largest = std::max(largest, static_cast<double>(std::abs(value)));
            }
        }
        return largest;
    }
    bool is_dense() const override { return true; }

  private:
    const RowMap& rows_;
    const RowMap& columns_;
    const MatrixView<const T> a_;
    const bool adjoint_;
};

template <class T>
void check_dense(Context& ctx, const RowMap& map, const MatrixView<const T>& a,
                 const SvdsOptions& options) {
    EqualOptions equal("svds");
    equal.add("rows", map.global_rows());
    equal.add("columns", a.cols);
    equal.require(ctx.comm());
    check_svds(ctx.comm(), map.global_rows(), a.cols, options);
    ctx.comm().agree([&] {
        require_shape(a.rows == map.local_rows() && map.ranks() == ctx.comm().size() &&
                          (a.empty() || a.place == ctx.place()),
                      "svds", "the rows or the place of A, the row map and the Context disagree",
                      [&] {
                          return "A has " + std::to_string(a.rows) +
                                 " rows on this rank, the map " + std::to_string(map.local_rows());
                      });
    });
}

/// Throws InputError on all ranks if a column of A has NaN or infinity, which A^H X has then, too.
template <class T>
void require_finite(Context& ctx, TripletMatrix<T>& adjoint) {
    const RowMap& rows = adjoint.domain_map();
    const RowMap& columns = adjoint.range_map();
    BlockVector<T> x;
    BlockVector<T> sums;
    BlockVector<T> here;
    ctx.comm().agree([&] {
        x = BlockVector<T>(ctx, rows, 1);
        sums = BlockVector<T>(ctx, columns, 1);
        here = BlockVector<T>(ctx, columns, 1, 0, Place::host);
    });
    // Sums of finite entries with these factors do not overflow.
    fill<T>(ctx, T(real_t<T>(0.25) / static_cast<real_t<T>>(rows.global_rows())), x.view());
    adjoint.multiply(ctx, T(1), std::as_const(x).view(), sums.view());
    copy(ctx, std::as_const(sums).view(), here.view());
    // The negative number, so that the maximum is the first column.
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
    std::int64_t found = none;
    for (std::int64_t i = columns.local_rows() - 1; i >= 0; --i) {
        const T sum = here.view()(i, 0);
        if (!std::isfinite(std::real(sum)) || !std::isfinite(std::imag(sum))) {
            found = -(columns.first_row() + i);
        }
    }
    found = ctx.comm().max(found);
    if (found != none) {
        throw_collective(ErrorKind::input, "svds: column " + std::to_string(-found) +
                                               " of A (counted from 0) has NaN or infinity");
    }
}

}  // namespace

template <class T>
SparseSvd<T> svds(Context& ctx, const RowMap& map, MatrixView<const T> a,
                  const SvdsOptions& options) {
    check_dense(ctx, map, a, options);
    const RowMap columns = map.evenly(a.cols);
    DenseTripletMatrix<T> products(map, columns, a, false);
    DenseTripletMatrix<T> adjoint(map, columns, a, true);
    require_finite<T>(ctx, adjoint);
    return singular_triplets<T>(ctx, products, adjoint, options);
}

#define QUIVER_INSTANTIATE(T) \
    template SparseSvd<T> svds(Context&, const RowMap&, MatrixView<const T>, const SvdsOptions&);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
