// SPDX-License-Identifier: BSD-3-Clause
// TriangularFactors: incomplete LU factors on a device, by cuSPARSE. Private to kernels/.
#pragma once

#include <memory>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver::cuda {

/// A matrix in compressed rows whose strict lower triangle is that of L (with unit diagonal) and
/// whose upper triangle is U. csrilu02 computes the factors of A in place, L U = A on the pattern
/// of A; SpSM solves with both. csric02, which computes L L^H, would need a separate implementation
/// and a positive pivot in every row; L U of a Hermitian matrix is the same preconditioner.
///
/// cuSPARSE is loaded at the first use (UnsupportedError if it is not found); its errors are
/// DeviceError. The Context must outlive this object.
template <class T>
class TriangularFactors {
  public:
    /// Copies the arrays, with columns from 0 in ascending order, to the device. If `factorise`,
    /// they are A; otherwise the factors.
    TriangularFactors(Context& ctx, const std::vector<int>& row_start,
                      const std::vector<int>& column, const std::vector<T>& value, bool factorise);
    ~TriangularFactors();
    /// Copies the entries of the factors to host memory, in the order of A's entries. Waits for the
    /// device.
    void download(Context& ctx, std::vector<T>& value) const;
    /// Y = (L U)^-1 X in device memory. Enqueued, except that the first block of a width needs an
    /// analysis. Needs scratch memory for two blocks.
    void solve(Context& ctx, BlockView<const T> x, BlockView<T> y);

  private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace quiver::cuda
