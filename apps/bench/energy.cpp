// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/energy.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "blockvec/device.hpp"
#include "blockvec/error.hpp"
#include "blockvec/shared_library.hpp"

namespace quiver::apps::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double least_seconds = 0.5;
/// A counter that does not advance for this long is broken.
constexpr double most_seconds = 5;
constexpr double batch_seconds = 2e-3;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The functions of NVIDIA's management library, as in its documentation.
using Init = int();
using HandleByBus = int(const char* bus, void** device);
using ReadEnergy = int(void* device, unsigned long long* millijoules);
using ErrorText = const char*(int code);

}  // namespace

EnergyMeter::EnergyMeter(const Context& ctx) : ctx_(ctx) {
    if (ctx.place() == Place::host) {
        throw UnsupportedError("--energy: only GPUs measure their energy; choose --device cuda");
    }
    const SharedLibrary library("libnvidia-ml.so.1");
    auto* const text = library.find<ErrorText>("nvmlErrorString");
    const auto check = [&](int code, const char* what) {
        if (code != 0) {
            throw UnsupportedError(std::string("--energy: ") + what + ": " + text(code));
        }
    };
    check(library.find<Init>("nvmlInit_v2")(), "nvmlInit");
    const std::string bus = device::properties(ctx.device().id).pci_bus;
    check(library.find<HandleByBus>("nvmlDeviceGetHandleByPciBusId_v2")(bus.c_str(), &device_),
          "nvmlDeviceGetHandleByPciBusId");
    read_ = library.find<ReadEnergy>("nvmlDeviceGetTotalEnergyConsumption");
    unsigned long long millijoules = 0;
    check(read_(device_, &millijoules), "nvmlDeviceGetTotalEnergyConsumption");
}

double EnergyMeter::joules() const {
    unsigned long long millijoules = 0;
    if (read_(device_, &millijoules) != 0) {
        throw DeviceError("--energy: the GPU's counter can no longer be read");
    }
    return 1e-3 * static_cast<double>(millijoules);
}

double EnergyMeter::joules_a_call(const std::function<void()>& call) const {
    call();
    ctx_.synchronize();
    const Clock::time_point first = Clock::now();
    call();
    ctx_.synchronize();
    const auto batch =
        static_cast<long>(std::clamp(batch_seconds / std::max(since(first), 1e-7), 1.0, 10'000.0));
    long calls = 0;
    /// Repeats the call for at least `seconds` and until the counter steps.
    const auto until_step = [&](double seconds) {
        const Clock::time_point begin = Clock::now();
        const double before = joules();
        double now = before;
        double last = before;
        do {
            last = now;
            for (long i = 0; i < batch; ++i) {
                call();
            }
            ctx_.synchronize();
            calls += batch;
            now = joules();
            if (since(begin) > seconds + most_seconds) {
                throw UnsupportedError("--energy: the GPU's counter does not advance");
            }
        } while (now == last || since(begin) < seconds);
        return now;
    };
    const double begin = until_step(0);
    calls = 0;
    const double end = until_step(least_seconds);
    return (end - begin) / static_cast<double>(calls);
}

}  // namespace quiver::apps::bench
