// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/ledger.hpp"

#include <algorithm>

#include "blockvec/error.hpp"

namespace quiver {

Ledger::Entry::Entry(Ledger& ledger, const KernelCall& call)
    : ledger_(ledger),
      record_(ledger.records_[{call.name, call.dtype, call.place, call.rows, call.m, call.n}]),
      outer_(ledger.open_) {
    ledger.open_ = &record_;
    record_.call = call;
    ++record_.calls;
    record_.bytes += call.bytes;
    record_.flops += call.flops;
    if (!ledger_.timing_) {
        return;
    }
    if (call.place == Place::device) {
        begin_event_ = ledger_.take_event();
        device::record(begin_event_, ledger_.stream_);
    } else {
        begin_ = std::chrono::steady_clock::now();
    }
}

Ledger::Entry::~Entry() {
    ledger_.open_ = outer_;
    if (begin_event_ != nullptr) {
        try {
            const DeviceEvent end = ledger_.take_event();
            device::record(end, ledger_.stream_);
            ledger_.pending_.push_back({&record_, begin_event_, end});
        } catch (const std::exception&) {
            // The kernel's own error is on its way; an untimed call is no second one.
            device::destroy_event(begin_event_);
        }
    } else if (begin_ != std::chrono::steady_clock::time_point{}) {
        record_.seconds +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }
}

Ledger::~Ledger() {
    for (const Pending& pending : pending_) {
        device::destroy_event(pending.begin);
        device::destroy_event(pending.end);
    }
    for (const DeviceEvent event : idle_events_) {
        device::destroy_event(event);
    }
}

DeviceEvent Ledger::take_event() {
    if (idle_events_.empty()) {
        constexpr std::size_t most_pending = 4096;
        if (pending_.size() >= most_pending) {
            settle();
        }
        if (idle_events_.empty()) {
            return device::create_event(true);
        }
    }
    const DeviceEvent event = idle_events_.back();
    idle_events_.pop_back();
    return event;
}

void Ledger::settle() {
    for (const Pending& pending : pending_) {
        device::synchronize(pending.end);
        pending.record->seconds += device::elapsed_seconds(pending.begin, pending.end);
        idle_events_.push_back(pending.begin);
        idle_events_.push_back(pending.end);
    }
    pending_.clear();
}

std::vector<KernelRecord> Ledger::records() {
    settle();
    std::vector<KernelRecord> result;
    result.reserve(records_.size());
    for (const auto& [key, record] : records_) {
        result.push_back(record);
    }
    std::stable_sort(result.begin(), result.end(), [](const auto& left, const auto& right) {
        return std::tie(left.seconds, left.bytes) > std::tie(right.seconds, right.bytes);
    });
    return result;
}

void Ledger::clear() {
    settle();
    records_.clear();
    overheads_ = {};
}

void Ledger::count(Overhead kind, double bytes, double seconds) {
    OverheadRecord& record = overheads_[static_cast<std::size_t>(kind)];
    ++record.count;
    record.bytes += bytes;
    record.seconds += seconds;
    if (kind == Overhead::launch && open_ != nullptr) {
        ++open_->launches;
    }
}

Ledger::Pause::Pause(Ledger& ledger, Overhead kind, double bytes, bool always)
    : ledger_(ledger), kind_(kind), bytes_(bytes), timed_(always || ledger.timing_) {
    if (timed_) {
        begin_ = std::chrono::steady_clock::now();
    }
}

Ledger::Pause::~Pause() {
    const std::chrono::duration<double> passed =
        timed_ ? std::chrono::steady_clock::now() - begin_ : std::chrono::steady_clock::duration{};
    ledger_.count(kind_, bytes_, passed.count());
}

const char* to_string(Overhead kind) {
    switch (kind) {
        case Overhead::launch:
            return "launch";
        case Overhead::result:
            return "result";
        case Overhead::late_result:
            return "late result";
        case Overhead::upload:
            return "upload";
        case Overhead::all_reduce:
            return "all-reduce";
        case Overhead::kernel_load:
            return "kernel load";
        case Overhead::plan_search:
            return "plan search";
    }
    return "";
}

}  // namespace quiver
