// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/processor.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

constexpr int baseline = 16;
constexpr int avx2 = 32;
constexpr int avx512 = 64;

int widest() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return baseline;
    }
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    return wide ? avx512 : avx2;
#else
    return baseline;
#endif
}

int most_asked_for() {
    const char* text = std::getenv("QUIVER_VECTORS");
    const std::string name = text == nullptr ? "" : text;
    if (name.empty() || name == "avx512") {
        return avx512;
    }
    if (name == "avx2") {
        return avx2;
    }
    if (name == "none") {
        return baseline;
    }
    throw InputError("QUIVER_VECTORS=" + name + ": expected avx512, avx2 or none");
}

}  // namespace

int vector_bytes() {
    static const int bytes = std::min(widest(), most_asked_for());
    return bytes;
}

}  // namespace quiver
