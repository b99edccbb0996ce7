// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/aims.hpp"

#include <algorithm>
#include <string>

namespace quiver::apps::bench {
namespace {

/// Up to this width only memory limits a product on the host.
constexpr int widest_for_memory_on_host = 24;
constexpr int widest_square = 64;

}  // namespace

double aim_percent(const Result& result, const Environment& environment) {
    const Shape& shape = result.which.shape;
    const std::string kernel = result.which.kernel->name();
    if (kernel.starts_with("batched")) {
        const bool factors = kernel == "batched-lu" || kernel == "batched-cholesky";
        const bool counted = environment.device != "host" && result.which.scalar == Dtype::d;
        return !factors || !counted || shape.n < 4 || shape.n > 32 ? 0 : shape.n <= 16 ? 75 : 50;
    }
    const bool square = shape.m == shape.n && shape.n <= widest_square;
    const std::string name = result.which.kernel->name();
    if (name.ends_with("-mixed") && environment.device != "host" && result.limit_seconds == 0) {
        return name == "tsmm-mixed" ? 88 : 90;
    }
    if (name.starts_with("mtsm") && environment.device != "host") {
        const bool large = result.which.rows >= 20480 && shape.m == shape.n;
        return result.ceiling == "flops" ? 75 : large ? 92 : 88;
    }
    if (name == "tsmm-columns" && environment.device != "host" && result.limit_seconds == 0) {
        return 85;
    }
    if (!result.which.kernel->has_plans() || result.limit_seconds > 0) {
        return 0;
    }
    if (environment.device == "host") {
        return !square ? 0 : shape.n <= widest_for_memory_on_host ? 80 : 60;
    }
    const bool by_flops = result.ceiling == "flops";
    return square ? (by_flops ? 75 : 90) : (by_flops ? 70 : 85);
}

double aim_of_mean(const Kernel& kernel, Dtype scalar) {
    const auto of = [&](double s, double d, double c, double z) {
        return scalar == Dtype::s ? s : scalar == Dtype::d ? d : scalar == Dtype::c ? c : z;
    };
    const std::string name = kernel.name();
    if (name.ends_with("-mixed")) {
        return name == "tsmm-mixed" ? 3.45 : 2.15;
    }
    if (name.starts_with("mtsm")) {
        return of(2.3, 1.03, 0, 0);
    }
    return name == "tsmttsm" ? of(3.5, 1.6, 0, 1.35) : name == "tsmm" ? of(2.6, 2.2, 0, 3.4) : 0;
}

bool falls_short(const Result& result, const Environment& environment) {
    return result.limit_seconds > 0 ? result.seconds.median > result.limit_seconds
                                    : result.has_roofline() && result.roofline_percent <
                                                                   aim_percent(result, environment);
}

}  // namespace quiver::apps::bench
