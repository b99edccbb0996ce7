// SPDX-License-Identifier: BSD-3-Clause
// What a Context does between kernels: launches, waits, copies, sums over ranks.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "blockvec/context.hpp"

namespace quiver {

enum class Overhead : std::uint8_t {
    /// Launches on a device.
    launch,
    /// Results that the host asked for and had to wait for, in either place: a device has nothing
    /// to do meanwhile.
    result,
    /// Results asked for when later work was on its way already.
    late_result,
    /// Small arrays of the host that a kernel of a device needed.
    upload,
    /// Sums over several ranks.
    all_reduce,
    /// Kernels brought from disk or compiled.
    kernel_load,
    /// Plans of kernels that were not remembered.
    plan_search,
};
inline constexpr std::size_t overhead_kinds = 7;
/// "launch", "late result", ...
const char* to_string(Overhead kind);

struct OverheadRecord {
    std::int64_t count = 0;
    double bytes = 0;
    /// Of the host; 0 unless the ledger's timing was on, but for kernel_load and plan_search.
    double seconds = 0;
};

/// Counts and, where the ledger takes times, times it; a service of the Context. Makes no
/// collective call.
class OverheadCounts {
  public:
    explicit OverheadCounts(Context& ctx) : ledger_(ctx.ledger()) {}
    static OverheadCounts& of(Context& ctx) { return ctx.service<OverheadCounts>(); }

    void count(Overhead kind, double bytes = 0, double seconds = 0);
    const OverheadRecord& operator[](Overhead kind) const {
        return records_[static_cast<std::size_t>(kind)];
    }
    void clear() { records_ = {}; }

    /// count() with the time until it goes out of scope, if the ledger takes times or `always`.
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
