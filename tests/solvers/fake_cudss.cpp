// SPDX-License-Identifier: BSD-3-Clause
// A library that says to be cuDSS 0.7.1 and has no other function.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int cudssGetProperty(int property, int* value) {
    constexpr int version[] = {0, 7, 1};
    *value = version[property];
    return 0;
}
