// SPDX-License-Identifier: BSD-3-Clause
// Counters of a Context's work between kernels: launches, waits, copies, all-reduces.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "blockvec/context.hpp"

namespace quiver {

enum class Overhead : std::uint8_t {
    /// Kernel launches on a device.
    launch,
    /// Results, in either place, that the host waited for while no later work was enqueued, so that
    /// a device is idle.
    result,
    /// Results that the host waited for after later work was enqueued.
    late_result,
    /// Small host arrays uploaded for a device kernel.
    upload,
    /// All-reduces over more than one rank.
    all_reduce,
    /// Kernels loaded from disk or compiled.
    kernel_load,
    /// Searches for a kernel plan that is not cached.
    plan_search,
};
inline constexpr std::size_t overhead_kinds = 7;
/// "launch", "late result", ...
const char* to_string(Overhead kind);

/// The totals of one kind of overhead.
struct OverheadRecord {
    std::int64_t count = 0;
    double bytes = 0;
    /// Host seconds; 0 unless the ledger's timing was on, except for kernel_load and plan_search.
    double seconds = 0;
};

/// Counts overheads and, if the ledger's timing is on, times them; a service of the Context. Makes
/// no collective call.
class OverheadCounts {
  public:
    explicit OverheadCounts(Context& ctx) : ledger_(ctx.ledger()) {}
    static OverheadCounts& of(Context& ctx) { return ctx.service<OverheadCounts>(); }

    void count(Overhead kind, double bytes = 0, double seconds = 0);
    const OverheadRecord& operator[](Overhead kind) const {
        return records_[static_cast<std::size_t>(kind)];
    }
    void clear() { records_ = {}; }

    /// Calls count() at the end of the scope. Passes the duration of the scope if the ledger's
    /// timing is on or if `always` is true, otherwise 0.
    class Pause {
      public:
        Pause(Context& ctx, Overhead kind, double bytes, bool always = false)
            : Pause(of(ctx), kind, bytes, always) {}
        Pause(OverheadCounts& counts, Overhead kind, double bytes, bool always = false);
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;
        ~Pause();

      private:
        OverheadCounts& counts_;
        Overhead kind_;
        double bytes_;
        bool timed_;
        std::chrono::steady_clock::time_point begin_{};
    };

  private:
    Ledger& ledger_;
    std::array<OverheadRecord, overhead_kinds> records_{};
};

}  // namespace quiver
