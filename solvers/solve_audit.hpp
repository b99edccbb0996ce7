// SPDX-License-Identifier: BSD-3-Clause
// SolveAudit: compares an operator's memory with its checksums at the end of every solve, so that
// no result of a corrupted matrix counts as verified. Private to solvers/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/operator.hpp"

namespace quiver {

/// Silent faults of one solve, over all ranks.
struct SolveFaults {
    /// Faults that were found and not repaired: the result is not verified.
    std::int64_t left = 0;
    /// Words of the matrix that the last audit has repaired. The result was computed with the
    /// corrupted words, so its residuals must be computed again.
    std::int64_t repaired = 0;

    /// True if the operator repairs faults where it can.
    bool repairs = false;

    /// Why a result with `left` faults is not verified, and the cure.
    std::string reason() const {
        return "checksums found " + std::to_string(left) +
               (left == 1 ? " silent fault" : " silent faults") +
               (repairs ? " of the matrix that cannot be repaired"
                        : ", which mode `detect` does not repair") +
               ": the result is not verified; read the matrix again and solve again" +
               (repairs ? "" : ", with mode `correct` (--abft correct)");
    }
};

/// Construct an object before the first product of a solve, and call finish() after the last one.
template <class T>
class SolveAudit {
  public:
    explicit SolveAudit(Operator<T>& a) : a_(a), before_(a.faults().left) {}

    /// Audits the operator. Collective; one all-reduce, none if the operator has no checks.
    SolveFaults finish(Context& ctx) const {
        if (!a_.faults().checks) {
            return {};
        }
        const std::int64_t repaired_before = a_.faults().repaired;
        a_.audit(ctx);
        const OperatorFaults now = a_.faults();
        std::array<std::int64_t, 2> counts{now.left - before_, now.repaired - repaired_before};
        if (ctx.comm().size() > 1) {
            ctx.comm().sum(std::span<std::int64_t>(counts));
        }
        return {counts[0], counts[1], now.repairs};
    }
    /// Repairs the operator after a solve that has thrown, perhaps on this rank only. Local.
    void clean_up(Context& ctx) const noexcept {
        try {
            a_.audit(ctx);
        } catch (...) {  // the exception of the solve is the one to report
        }
    }

  private:
    Operator<T>& a_;
    std::int64_t before_;
};

}  // namespace quiver
