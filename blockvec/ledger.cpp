// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/ledger.hpp"

#include <algorithm>

#include "blockvec/error.hpp"

namespace quiver {

Ledger::Entry::Entry(Ledger& ledger, const KernelCall& call)
    : ledger_(ledger),
      record_(ledger.records_[{call.name, call.dtype, call.place, call.rows, call.m, call.n}]) {
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
    if (begin_event_ != nullptr) {
        DeviceEvent end = nullptr;
        try {
            end = ledger_.take_event();
            device::record(end, ledger_.stream_);
            ledger_.pending_.push_back({&record_, begin_event_, end});
        } catch (const std::exception&) {
            // A destructor must not throw. The next device call reports the error, and the loss of
            // one timing is harmless.
            device::destroy_event(begin_event_);
            if (end != nullptr) {
                device::destroy_event(end);
            }
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
}

}  // namespace quiver
