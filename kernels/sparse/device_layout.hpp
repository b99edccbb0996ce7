// SPDX-License-Identifier: BSD-3-Clause
// DeviceLayout: the storage of rows in device memory, chosen there. Private to kernels/sparse/.
#pragma once

#include <cstdint>
#include <vector>

#include "blockvec/context.hpp"
#include "kernels/cuda/csr_layout.hpp"
#include "kernels/sparse/sparse_layout.hpp"
#include "kernels/sparse/storage_choice.hpp"

namespace quiver {

/// The storage of all rows of a matrix on one rank, as SparseLayout chooses it for the same rows.
/// Only square matrices get tiles, which follow the diagonal.
/// The columns of a few sampled rows are copied to the host; if they show that tiles may be useful,
/// all row offsets and columns are. Otherwise these stay on the device.
template <class Index>
class DeviceLayout {
  public:
    /// The columns of `rows` must be in 0 .. columns - 1.
    DeviceLayout(Context& ctx, const FormatChoice& choice, const cuda::RowsOnDevice<Index>& rows,
                 std::int64_t columns, const RowCounts& counts);

    /// False if there are no entries, if rows must be stored apart, or if windows or rows are too
    /// long to be sorted. The other members then have no meaning, and SparseLayout must choose.
    bool complete = true;
    SparseFormat format;
    std::vector<SparseLayout::Part> part;
    std::int64_t stored = 0;  // all entries, with padding
    bool wide = false;        // `list` has 64-bit integers
    Buffer start;             // see SparseLayout
    Buffer list;              // see SparseLayout::list()

  private:
    struct Steps;
    void arrange(Context& ctx, int chunk, std::int64_t sigma);
    void arrange_chunks(Context& ctx);
    void arrange_tiles(Context& ctx, const FormatChoice& choice);
    void find_runs(Context& ctx);

    cuda::RowsOnDevice<Index> rows_;
    std::int64_t columns_;
    RowCounts counts_;
    Buffer row_;  // the row of each slot; empty: slot s is row s
};

}  // namespace quiver
