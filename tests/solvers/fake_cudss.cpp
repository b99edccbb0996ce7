// SPDX-License-Identifier: BSD-3-Clause
// A library whose only function reports version 0.7.1 of cuDSS.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int cudssGetProperty(int property, int* value) {
    constexpr int version[] = {0, 7, 1};
    *value = version[property];
    return 0;
}
