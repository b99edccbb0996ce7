// SPDX-License-Identifier: BSD-3-Clause
// Operands in half precision or bfloat16.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "apps/bench/operands.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver::apps::bench {

/// Calls f.operator()<T>() with the storage type of h or b.
template <class F>
decltype(auto) visit_short(Dtype scalar, F&& f) {
    return scalar == Dtype::h ? f.template operator()<half_t>()
                              : f.template operator()<bfloat16_t>();
}

/// Like PeriodicBlock (operands.hpp), for a type without arithmetic.
template <class T>
class ShortBlock {
  public:
    ShortBlock(Context& ctx, const Sets& sets, int cols, std::uint64_t seed)
        : sets_(sets),
          cols_(cols),
          block_(make_block<T>(ctx, sets.stride * sets.count, cols + sets.gap)),
          period_(static_cast<std::size_t>(std::min(period, block_.rows()) * cols)) {
        const std::int64_t rows = std::min(period, block_.rows());
        BlockVector<float> values = make_block<float>(ctx, rows, cols + sets.gap);
        fill(ctx, std::numeric_limits<float>::quiet_NaN(), values.view().columns(cols, sets.gap));
        fill_random(ctx, seed, 0, 0, values.view().columns(0, cols));
        copy(ctx, values.view(), block_.view().row_range(0, rows));
        for (std::int64_t filled = rows; filled < block_.rows();) {
            const std::int64_t count = std::min(filled, block_.rows() - filled);
            copy(ctx, block_.view().row_range(0, count), block_.view().row_range(filled, count));
            filled += count;
        }
        Context host;
        std::vector<T> rounded(period_.size());
        fill_random(host, seed, 0, 0, BlockView<float>(period_.data(), rows, cols, cols));
        const BlockView<T> as_stored(rounded.data(), rows, cols, cols);
        copy(host, BlockView<const float>(period_.data(), rows, cols, cols), as_stored);
        copy(host, as_stored, BlockView<float>(period_.data(), rows, cols, cols));
    }

    BlockView<const T> view(std::int64_t set) {
        return block_.view().row_range(set * sets_.stride, sets_.rows).columns(0, cols_);
    }
    /// Row `row` of a set, rounded to T.
    const float* row(std::int64_t set, std::int64_t row) const {
        return period_.data() + (set * sets_.stride + row) % period * cols_;
    }

  private:
    Sets sets_;
    int cols_;
    BlockVector<T> block_;
    std::vector<float> period_;
};

}  // namespace quiver::apps::bench
