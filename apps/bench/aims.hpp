// SPDX-License-Identifier: BSD-3-Clause
// What the products are meant to reach, so that a report can say what falls short: docs/bench.md,
// "Aims".
#pragma once

#include "apps/bench/bench_json.hpp"

namespace quiver::apps::bench {

/// A rival below this share of our time is the faster by more than the noise.
inline constexpr double least_ratio = 0.98;
/// The reproducible reduction over atomics, from so many rows on.
inline constexpr double most_over_atomics = 1.03;
inline constexpr std::int64_t rows_of_atomics_aim = 1'000'000;
/// The model's first choice over the tuning table's, on the geometric mean.
inline constexpr double most_over_table = 1.15;

/// The percentage of the roofline that a result should reach; 0 where there is no such aim: for
/// what is no product, and for short blocks, which have a limit in seconds.
double aim_percent(const Result& result, const Environment& environment);

/// The geometric mean of cuBLAS' times over ours that square shapes should reach; 0 without an aim.
double aim_of_mean(const Kernel& kernel, Dtype scalar);

/// Whether one of our results misses its aim or its limit.
bool falls_short(const Result& result, const Environment& environment);

}  // namespace quiver::apps::bench
