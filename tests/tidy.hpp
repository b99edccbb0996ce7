// SPDX-License-Identifier: BSD-3-Clause
// tests/tidy.sh includes this file before every source: it declares features of g++ that clang
// lacks.
#pragma once

#pragma clang diagnostic ignored "-Wunknown-pragmas"  // GCC ivdep

template <class V, class Lanes>
V __builtin_shuffle(const V& v, const Lanes& lanes);  // NOLINT
template <class V, class Lanes>
V __builtin_shuffle(const V& v, const V& w, const Lanes& lanes);  // NOLINT
