// SPDX-License-Identifier: BSD-3-Clause
// Read first by clang-tidy only (tests/tidy.sh): replaces features of g++ that clang lacks.
#pragma once

#pragma clang diagnostic ignored "-Wunknown-pragmas"  // GCC ivdep

template <class V, class Lanes>
V __builtin_shuffle(const V& v, const Lanes& lanes);  // NOLINT
template <class V, class Lanes>
V __builtin_shuffle(const V& v, const V& w, const Lanes& lanes);  // NOLINT
