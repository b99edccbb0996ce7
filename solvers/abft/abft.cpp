// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/abft.hpp"

#include <array>
#include <span>

namespace quiver {

const char* to_string(AbftMode mode) {
    return mode == AbftMode::detect ? "detect" : mode == AbftMode::correct ? "correct" : "off";
}

AbftCounts AbftCounts::summed(const Comm& comm) const {
    std::array<std::int64_t, 12> all{products, checked,  basis_checks, alarms,
                                     rounding, faults,   mended,       redone,
                                     failed,   injected, updates,      updates_checked};
    comm.sum(std::span<std::int64_t>(all));
    return {all[0], all[1], all[2], all[3], all[4],  all[5],
            all[6], all[7], all[8], all[9], all[10], all[11]};
}

void AbftCounts::add_updates(const AbftCounts& kernels) {
    updates += kernels.products;
    updates_checked += kernels.checked;
    alarms += kernels.alarms;
    rounding += kernels.rounding;
    faults += kernels.faults;
    mended += kernels.mended;
    redone += kernels.redone;
    failed += kernels.failed;
    injected += kernels.injected;
}

}  // namespace quiver
