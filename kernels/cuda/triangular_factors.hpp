// SPDX-License-Identifier: BSD-3-Clause
// Incomplete LU factors on a device, by cuSPARSE. Private to kernels/.
#pragma once

#include <memory>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver::cuda {

/// A matrix in compressed rows whose strict lower triangle is that of L (of unit diagonal) and
/// whose upper triangle is U. csrilu02 makes one of A in place, L U = A on the pattern of A; SpSM
/// solves with both. csric02, which makes L L^H, would need a pass of its own and a positive
/// pivot in every row; L U of a Hermitian matrix is the same preconditioner.
///
/// cuSPARSE is loaded when first asked for (UnsupportedError where it is not found); its errors are
/// DeviceError. The Context outlives this.
template <class T>
class TriangularFactors {
  public:
    /// Copies the arrays, columns from 0 and ascending, to the device; `factorise`: they are A.
    TriangularFactors(Context& ctx, const std::vector<int>& row_start,
                      const std::vector<int>& column, const std::vector<T>& value, bool factorise);
    ~TriangularFactors();
    /// The factors' entries into host memory, in the order of A's. Waits for the device.
    void download(Context& ctx, std::vector<T>& value) const;
    /// Y = (L U)^-1 X, device memory. Enqueued, but for the first block of a width, which takes an
    /// analysis. Scratch: two blocks.
    void solve(Context& ctx, BlockView<const T> x, BlockView<T> y);

  private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace quiver::cuda
