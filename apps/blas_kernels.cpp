// SPDX-License-Identifier: BSD-3-Clause
#include "apps/blas_kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

namespace quiver::apps {
namespace {

constexpr const char* kernels_variable = "OPENBLAS_CORETYPE";

/// The best kernels of OpenBLAS that this processor can run; null if these are not better than
/// those for processors without AVX2.
const char* fitting_kernels() {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return "SkylakeX";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return "Haswell";
    }
#endif
    return nullptr;
}

/// True for processors without AVX2, whose kernels OpenBLAS takes for a processor that it does not
/// know.
bool is_without_avx2(std::string_view kernels) {
    constexpr std::string_view old[] = {"Prescott",    "Core2",     "Penryn",    "Dunnington",
                                        "Atom",        "Nehalem",   "Opteron",   "Opteron_SSE3",
                                        "Barcelona",   "Bobcat",    "Nano",      "Generic",
                                        "Sandybridge", "Bulldozer", "Piledriver"};
    return std::find(std::begin(old), std::end(old), kernels) != std::end(old);
}

}  // namespace

std::string blas_kernels() {
    using CoreName = char*();
    void* const found = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    return found == nullptr ? "" : reinterpret_cast<CoreName*>(found)();
}

void restart_with_fitting_blas_kernels(char** argv) {
    const char* const fitting = fitting_kernels();
    if (fitting == nullptr || std::getenv(kernels_variable) != nullptr ||
        !is_without_avx2(blas_kernels())) {
        return;
    }
    ::setenv(kernels_variable, fitting, 1);
    ::execv("/proc/self/exe", argv);
    // Without /proc the program goes on with the kernels that it has.
}

}  // namespace quiver::apps
