// SPDX-License-Identifier: BSD-3-Clause
// BlockSums: checksums that travel with a block from one product to the next.
#pragma once

#include <memory>
#include <vector>

#include "kernels/checksum_kinds.hpp"

namespace quiver {

/// The checksums of a block over this rank's rows, for a recurrence whose products read what
/// earlier products have written (ApplyOptions). An operator with checks writes them; the owner of
/// the block calls forget() whenever the block changes otherwise.
template <class T>
struct BlockSums {
    /// The checksum of kind k of column j is totals[k columns + j]. Empty if the checksums are
    /// unknown.
    std::vector<checksum_t<T>> totals;
    /// If not null, the checksums are in flight. The operator fills the vector when it checks the
    /// product that forms them, at the latest during its next product. After a fault the vector
    /// stays empty.
    std::shared_ptr<std::vector<checksum_t<T>>> later;
    /// Set by the owner of Y (ApplyOptions::y_sums): true if another product of the same recurrence
    /// follows, so that the operator may postpone the check of this product until then.
    bool may_wait = false;

    bool known() const { return !totals.empty() || later != nullptr; }
    void forget() {
        totals.clear();
        later.reset();
    }
};

}  // namespace quiver
