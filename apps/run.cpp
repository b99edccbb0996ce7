// SPDX-License-Identifier: BSD-3-Clause
#include "apps/run.hpp"

namespace quiver::apps {

EigsReport::Where where_it_ran(const Context& ctx, const Execution& execution) {
    EigsReport::Where where;
    where.ranks = ctx.comm().size();
    where.threads = ctx.threads();
    where.note = execution.note;
    where.mixed = execution.mixed;
    if (ctx.place() == Place::device) {
        where.device = "cuda";
        where.device_name = device::properties(ctx.device().id).name;
    }
    return where;
}

}  // namespace quiver::apps
