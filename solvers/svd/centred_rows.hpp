// SPDX-License-Identifier: BSD-3-Clause
// Rows of a block with a vector subtracted, a part at a time. Private to solvers/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/kmeans_step.hpp"
#include "kernels/tsmm.hpp"

namespace quiver {

/// Z = X - 1 c^T for some rows of X at a time.
template <class In>
class CentredRows {
    using T = centre_t<In>;

  public:
    /// c = shift. Throws MemoryError. Not collective.
    CentredRows(Context& ctx, BlockView<const In> x, std::span<const T> shift)
        : ctx_(ctx),
          x_(x),
          minus_(1, x.cols),
          plain_(std::is_same_v<In, T> &&
                 std::ranges::all_of(shift, [](T c) { return c == T(0); })),
          most_(std::min(std::max<std::int64_t>(bytes_of_part(ctx) / row_bytes(), 64),
                         std::max<std::int64_t>(x.rows, 1))),
          memory_(ctx.scratch(memory_kind(ctx.place()),
                              static_cast<std::size_t>(most_) *
                                  (plain_ ? sizeof(T) : static_cast<std::size_t>(row_bytes())))),
          ones_(memory_.template as<T>() + (plain_ ? 0 : most_ * x.cols), most_, 1, 1,
                ctx.place()) {
        std::transform(shift.begin(), shift.end(), minus_.data(), [](T value) { return -value; });
        fill<T>(ctx_, T(1), ones_);
    }

    /// Calls use(Z, ones, first row of this part) for all rows, in order; `ones` is a column of
    /// ones with as many rows as Z. With c = 0, Z is X itself if X is in single or double
    /// precision, otherwise a copy.
    template <class Use>
    void for_each_part(Use use) {
        for (std::int64_t first = 0; first < x_.rows; first += most_) {
            const std::int64_t count = std::min(most_, x_.rows - first);
            const BlockView<const T> ones = ones_.row_range(0, count);
            if constexpr (std::is_same_v<In, T>) {
                if (plain_) {
                    use(x_.row_range(first, count), ones, first);
                    continue;
                }
            }
            const BlockView<T> z(memory_.template as<T>(), count, x_.cols, x_.cols, ctx_.place());
            copy(ctx_, x_.row_range(first, count), z);
            tsmm<T>(ctx_, T(1), ones, minus_, T(1), z);
            use(BlockView<const T>(z), ones, first);
        }
    }

  private:
    std::int64_t row_bytes() const {
        return static_cast<std::int64_t>(sizeof(T)) * (std::int64_t{x_.cols} + 1);
    }
    /// On a host, a part fits the second-level caches of the threads (256 KiB each). On a device,
    /// parts are so large that the launches of their kernels cost little.
    static std::int64_t bytes_of_part(const Context& ctx) {
        return ctx.place() == Place::device ? std::int64_t{1} << 28
                                            : std::int64_t{ctx.threads()} << 18;
    }

    Context& ctx_;
    BlockView<const In> x_;
    SmallMatrix<T> minus_;
    bool plain_;
    std::int64_t most_;
    Scratch memory_;
    BlockView<T> ones_;
};

}  // namespace quiver
