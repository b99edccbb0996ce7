// SPDX-License-Identifier: BSD-3-Clause
// The memory that a search takes for its blocks. Private to solvers/eigen.
#pragma once

#include <string>

#include "blockvec/context.hpp"
#include "blockvec/event.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/row_map.hpp"

namespace quiver {

/// Called before a search allocates `columns` columns. Throws MemoryError on all ranks if host
/// memory cannot hold them; the message begins with `what`, for instance "LOBPCG: blocks". A
/// NoticeEvent announces blocks that take a gigabyte or more on some rank. Collective, also for
/// ranks on a GPU: they take no host memory.
template <class T>
void claim_block_memory(Context& ctx, const RowMap& map, int columns, const std::string& what) {
    constexpr double announced = 1e9;
    const double bytes =
        static_cast<double>(sizeof(T)) * columns * static_cast<double>(map.local_rows());
    const std::string text = what + " of " + std::to_string(columns) + " columns take";
    require_host_memory(ctx.comm(), ctx.place() == Place::host ? bytes : 0, text);
    const double most = ctx.comm().max(bytes);
    if (most >= announced) {
        ctx.emit(NoticeEvent{text + " " + number_text(1e-6 * most, 4) + " MB" +
                             (ctx.comm().size() > 1 ? " on a rank" : "")});
    }
}

}  // namespace quiver
