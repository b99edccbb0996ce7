// SPDX-License-Identifier: BSD-3-Clause
// Ledger: every kernel call with its shape, minimum bytes and flops and, when asked, its time.
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
        std::chrono::steady_clock::time_point begin_{};
        DeviceEvent begin_event_ = nullptr;
    };

    void set_timing(bool on) { timing_ = on; }
    bool timing() const { return timing_; }
    /// Waits for the timed device calls; then all records, most seconds (or most bytes) first.
    std::vector<KernelRecord> records();
    void clear();

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
    std::vector<Pending> pending_;
    std::vector<DeviceEvent> idle_events_;
};

}  // namespace quiver
