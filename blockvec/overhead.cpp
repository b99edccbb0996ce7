// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/overhead.hpp"

namespace quiver {

void OverheadCounts::count(Overhead kind, double bytes, double seconds) {
    OverheadRecord& record = records_[static_cast<std::size_t>(kind)];
    ++record.count;
    record.bytes += bytes;
    record.seconds += seconds;
}

OverheadCounts::Pause::Pause(OverheadCounts& counts, Overhead kind, double bytes, bool always)
    : counts_(counts), kind_(kind), bytes_(bytes), timed_(always || counts.ledger_.timing()) {
    if (timed_) {
        begin_ = std::chrono::steady_clock::now();
    }
}

OverheadCounts::Pause::~Pause() {
    const std::chrono::duration<double> passed =
        timed_ ? std::chrono::steady_clock::now() - begin_ : std::chrono::steady_clock::duration{};
    counts_.count(kind_, bytes_, passed.count());
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
