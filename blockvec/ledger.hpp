// SPDX-License-Identifier: BSD-3-Clause
// Ledger: records every kernel call with its shape, minimum bytes and flops, and optionally its
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "blockvec/device.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// The description of one kernel call. `name` must outlive the ledger (a string literal).
struct KernelCall {
    const char* name = "";
    Dtype dtype = Dtype::d;
    Place place = Place::host;
    std::int64_t rows = 0;
    int m = 0;
    int n = 0;
    /// Minimum memory traffic: every input read once, every output written once.
    double bytes = 0;
    double flops = 0;
};

/// The totals of all calls of one kernel with one shape.
struct KernelRecord {
    KernelCall call;
    std::int64_t calls = 0;
    double bytes = 0;
    double flops = 0;
    /// 0 unless timing was on.
    double seconds = 0;
};

/// Counts kernel calls and, with timing on, times them: by a host clock on the host, by events of
/// the stream on a device. Makes no collective call. With timing off, an entry costs one map
/// look-up.
class Ledger {
  public:
    explicit Ledger(Stream stream = nullptr) : stream_(stream) {}
    Ledger(const Ledger&) = delete;
    Ledger& operator=(const Ledger&) = delete;
    ~Ledger();

    /// One kernel call in scope: the constructor counts the call, the destructor ends its time.
    class Entry {
      public:
        Entry(Ledger& ledger, const KernelCall& call);
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        ~Entry();

      private:
        Ledger& ledger_;
        KernelRecord& record_;
        std::chrono::steady_clock::time_point begin_{};
        DeviceEvent begin_event_ = nullptr;
    };

    void set_timing(bool on) { timing_ = on; }
    bool timing() const { return timing_; }
    /// Waits for the timed device calls, then returns all records, sorted by descending seconds,
    /// then bytes.
    std::vector<KernelRecord> records();
    void clear();

  private:
    using Key = std::tuple<const char*, Dtype, Place, std::int64_t, int, int>;
    struct Pending {
        KernelRecord* record;
        DeviceEvent begin;
        DeviceEvent end;
    };
    /// Waits for the pending events and adds their times to the records.
    void settle();
    DeviceEvent take_event();

    Stream stream_;
    bool timing_ = false;
    std::map<Key, KernelRecord> records_;
    std::vector<Pending> pending_;
    std::vector<DeviceEvent> idle_events_;
};

}  // namespace quiver
