// SPDX-License-Identifier: BSD-3-Clause
// BlockSums: checksums that travel with a block from one product to the next.
#pragma once

#include <vector>

#include "kernels/checksum_kinds.hpp"

namespace quiver {

/// The checksums of a block over this rank's rows, for a recurrence whose products read what
/// earlier products have written (ApplyOptions). An operator with checks writes them; the owner of
/// the block calls forget() whenever the block changes otherwise.
template <class T>
struct BlockSums {
    /// Kind k of column j at k columns + j, for all kinds; empty: not known.
    std::vector<checksum_t<T>> totals;

    bool known() const { return !totals.empty(); }
    void forget() { totals.clear(); }
};

}  // namespace quiver
