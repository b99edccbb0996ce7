// SPDX-License-Identifier: BSD-3-Clause
// Replaces the tuning of plans in a build without CUDA.
#include "blockvec/error.hpp"
#include "kernels/tuning.hpp"

namespace quiver {
namespace {

[[noreturn]] void refuse_tuning() {
    throw UnsupportedError(
        "plans: this build has no CUDA, and only kernels on a GPU have plans to "
        "choose from (build with CUDA 12.8 or newer)");
}

}  // namespace

void choose_plans(Context&, const PlanChoice&) {}

std::vector<ListedPlan> list_plans(Context&, const PlannedProduct&, const std::string&, int) {
    refuse_tuning();
}
void compile_plans(Context&, std::span<const std::pair<PlannedProduct, std::string>>) {
    refuse_tuning();
}

void tune(Context&, std::span<const TuneCase>, const TuneOptions&,
          const std::function<void(const TuneResult&)>&) {
    refuse_tuning();
}
void save_tuning(Context&, const std::string&, std::span<const TuneResult>) {
    refuse_tuning();
}
std::string default_tuning_file() {
    return "";
}
std::vector<std::string> tuned_rows(Context&, const std::string&) {
    return {};
}
std::string tuning_row(const TuneCase&) {
    return "";
}

}  // namespace quiver
