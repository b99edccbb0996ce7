// SPDX-License-Identifier: BSD-3-Clause
// Ledger: every kernel call with its shape, minimum bytes and flops and, when asked, its time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "blockvec/device.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// What one kernel call is about to do. `name` must outlive the ledger (a string literal).
struct KernelCall {
    const char* name = "";
    Dtype dtype = Dtype::d;
    Place place = Place::host;
    std::int64_t rows = 0;
    int m = 0;
    int n = 0;
    /// The least traffic with memory: every input read once, every output written once.
    double bytes = 0;
    double flops = 0;
};

/// All calls of one kernel with one shape.
struct KernelRecord {
    KernelCall call;
    std::int64_t calls = 0;
    double bytes = 0;
    double flops = 0;
    /// 0 unless timing was on.
    double seconds = 0;
    /// On a device.
    std::int64_t launches = 0;
};

/// What happens between kernels.
enum class Overhead : std::uint8_t {
    /// Launches on a device, also those of no kernel call.
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
    /// Of the host; 0 unless timing was on, but for kernel_load and plan_search.
    double seconds = 0;
};

/// Counts and, with timing on, times kernel calls: by a clock on the host, by events on the stream
/// on a device. Makes no collective call; off, an entry costs one map look-up.
class Ledger {
  public:
    explicit Ledger(Stream stream = nullptr) : stream_(stream) {}
    Ledger(const Ledger&) = delete;
    Ledger& operator=(const Ledger&) = delete;
    ~Ledger();

    /// Ends its entry when it goes out of scope.
    class Entry {
      public:
        Entry(Ledger& ledger, const KernelCall& call);
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        ~Entry();

      private:
        Ledger& ledger_;
        KernelRecord& record_;
        KernelRecord* outer_;
        std::chrono::steady_clock::time_point begin_{};
        DeviceEvent begin_event_ = nullptr;
    };

    void set_timing(bool on) { timing_ = on; }
    bool timing() const { return timing_; }
    /// Waits for the timed device calls; then all records, most seconds (or most bytes) first.
    std::vector<KernelRecord> records();
    void clear();

    void count(Overhead kind, double bytes = 0, double seconds = 0);
    const OverheadRecord& overhead(Overhead kind) const {
        return overheads_[static_cast<std::size_t>(kind)];
    }
    /// count() with the time until it goes out of scope, if timing is on or `always`.
    class Pause {
      public:
        Pause(Ledger& ledger, Overhead kind, double bytes, bool always = false);
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;
        ~Pause();

      private:
        Ledger& ledger_;
        Overhead kind_;
        double bytes_;
        bool timed_;
        std::chrono::steady_clock::time_point begin_{};
    };

  private:
    using Key = std::tuple<const char*, Dtype, Place, std::int64_t, int, int>;
    struct Pending {
        KernelRecord* record;
        DeviceEvent begin;
        DeviceEvent end;
    };
    void settle();
    DeviceEvent take_event();

    Stream stream_;
    bool timing_ = false;
    std::map<Key, KernelRecord> records_;
    KernelRecord* open_ = nullptr;
    std::array<OverheadRecord, overhead_kinds> overheads_{};
    std::vector<Pending> pending_;
    std::vector<DeviceEvent> idle_events_;
};

}  // namespace quiver
