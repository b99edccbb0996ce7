// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/ceilings.hpp"

#include <string>

#include "blockvec/config.hpp"
#include "blockvec/context.hpp"
#include "blockvec/error.hpp"
#include "kernels/cuda/ceilings.hpp"
#include "kernels/host/ceilings.hpp"

namespace quiver {

int traffic_forms(const Context& ctx, Traffic traffic) {
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device) {
            return cuda::traffic_forms(traffic);
        }
    }
    return host::traffic_forms(traffic);
}

void run_traffic(Context& ctx, Traffic traffic, int form, double factor, double* x, double* y,
                 std::int64_t count) {
    constexpr std::int64_t granule = std::int64_t{1} << 16;
    if (count < granule || count % granule != 0) {
        throw UnsupportedError("run_traffic: " + std::to_string(count) +
                               " elements are not a multiple of " + std::to_string(granule));
    }
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device) {
            cuda::run_traffic(ctx, traffic, form, factor, x, y, count);
            return;
        }
    }
    host::run_traffic(ctx.threads(), traffic, form, factor, x, y, count);
}

const char* to_string(Arithmetic arithmetic) {
    constexpr const char* names[] = {"FMA single",           "FMA double",
                                     "tensor double 8x8x4",  "tensor double 16x8x4",
                                     "tensor double 16x8x8", "tensor double 16x8x16"};
    return names[static_cast<int>(arithmetic)];
}

bool can_run(const Context& ctx, Arithmetic arithmetic) {
    if (ctx.place() == Place::host) {
        return arithmetic == Arithmetic::single_fma || arithmetic == Arithmetic::double_fma;
    }
    const auto properties = device::properties(ctx.device().id);
    switch (arithmetic) {
        case Arithmetic::single_fma:
        case Arithmetic::double_fma:
            return true;
        case Arithmetic::double_mma_8x8x4:
            return properties.compute_major >= 8;
        default:
            return properties.compute_major >= 9;
    }
}

std::int64_t arithmetic_results(const Context& ctx, Arithmetic arithmetic) {
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device) {
            return cuda::arithmetic_results(ctx, arithmetic);
        }
    }
    return ctx.threads();
}

double run_arithmetic(Context& ctx, Arithmetic arithmetic, std::int64_t steps, double* results) {
    if (!can_run(ctx, arithmetic)) {
        throw UnsupportedError(std::string("run_arithmetic: this place has no ") +
                               to_string(arithmetic));
    }
    if constexpr (config::have_cuda) {
        if (ctx.place() == Place::device) {
            return cuda::run_arithmetic(ctx, arithmetic, steps, results);
        }
    }
    return host::run_arithmetic(ctx.threads(), arithmetic, steps, results);
}

}  // namespace quiver
