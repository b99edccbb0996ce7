// SPDX-License-Identifier: BSD-3-Clause
// Replaces scotch_partition.cpp in a build without SCOTCH.
#include "blockvec/error.hpp"
#include "kernels/sparse/row_graph.hpp"

namespace quiver {

const char* scotch_version() {
    return "";
}

std::string why_no_partitioner() {
    return "this build has no SCOTCH: install libscotch-dev, then configure and build again, or "
           "partition by rows";
}

std::vector<int> partition_graph(const RowPattern& /*graph*/, int /*ranks*/,
                                 std::span<const double> /*weights*/) {
    throw UnsupportedError(why_no_partitioner());
}

}  // namespace quiver
