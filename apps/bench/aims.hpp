// SPDX-License-Identifier: BSD-3-Clause
// The speeds that kernels should reach, so that a report can name the results that fall short:
// docs/bench.md, "Aims".
#pragma once

#include "apps/bench/bench_json.hpp"

namespace quiver::apps::bench {

/// A rival whose time is below this share of ours is faster by more than the noise.
inline constexpr double least_ratio = 0.98;
/// The most that the reproducible reduction may take over atomics, for at least this many rows.
inline constexpr double most_over_atomics = 1.03;
inline constexpr std::int64_t rows_of_atomics_aim = 1'000'000;
/// The most that the model's first choice may take over the tuning table's, as a geometric mean.
inline constexpr double most_over_table = 1.15;

/// The percentage of the roofline that a result should reach; 0 without such an aim. Short blocks
/// have a limit in seconds instead, see falls_short().
double aim_percent(const Result& result, const Environment& environment);

/// The geometric mean of cuBLAS's times over ours that square shapes should reach; 0: no aim.
double aim_of_mean(const Kernel& kernel, Dtype scalar);

/// Whether one of our results misses its limit in seconds or, without a limit, its aim.
bool falls_short(const Result& result, const Environment& environment);

}  // namespace quiver::apps::bench
