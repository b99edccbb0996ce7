// SPDX-License-Identifier: BSD-3-Clause
// Rows of a block with a vector subtracted, in parts that stay in a cache. Private to solvers/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/kmeans_step.hpp"
#include "kernels/tsmm.hpp"

namespace quiver {

/// Z = [f (X - 1 c^T), 1] for some rows of X at a time. The last column gives the sums of the
/// others in products of Z with itself.
template <class In>
class CentredRows {
    using T = centre_t<In>;

  public:
    /// Throws MemoryError. Not collective.
    CentredRows(Context& ctx, BlockView<const In> x)
        : ctx_(ctx),
          x_(x),
          most_(std::clamp<std::int64_t>(bytes_of_part(ctx) / row_bytes(), 64,
                                         std::max<std::int64_t>(x.rows, 1))),
          memory_(
              ctx.scratch(memory_kind(ctx.place()), static_cast<std::size_t>(most_ * row_bytes()))),
          z_(memory_.template as<T>(), most_, x.cols + 1, x.cols + 1, ctx.place()) {
        fill<T>(ctx_, T(1), z_.columns(x.cols, 1));
    }

    /// Calls use(Z, first row of this part) for all rows, in order.
    template <class Use>
    void for_each_part(std::span<const T> shift, Use use, T factor = T(1)) {
        SmallMatrix<T> minus(1, x_.cols);
        std::transform(shift.begin(), shift.end(), minus.data(), [](T value) { return -value; });
        for (std::int64_t first = 0; first < x_.rows; first += most_) {
            const std::int64_t count = std::min(most_, x_.rows - first);
            const BlockView<T> z = z_.row_range(0, count);
            copy(ctx_, x_.row_range(first, count), z.columns(0, x_.cols));
            tsmm<T>(ctx_, T(1), z.columns(x_.cols, 1), minus, T(1), z.columns(0, x_.cols));
            if (factor != T(1)) {
                scale<T>(ctx_, factor, z.columns(0, x_.cols));
            }
            use(z, first);
        }
    }

  private:
    std::int64_t row_bytes() const {
        return static_cast<std::int64_t>(sizeof(T)) * (std::int64_t{x_.cols} + 1);
    }
    /// So many bytes of rows fit the second-level caches of the host's threads (256 KiB each), or
    /// the cache of a device (16 MiB).
    static std::int64_t bytes_of_part(const Context& ctx) {
        return ctx.place() == Place::device ? std::int64_t{1} << 24
                                            : std::int64_t{ctx.threads()} << 18;
    }

    Context& ctx_;
    BlockView<const In> x_;
    std::int64_t most_;
    Scratch memory_;
    BlockView<T> z_;
};

}  // namespace quiver
