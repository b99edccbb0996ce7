// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of one step of Lloyd's iteration: distances, nearest centres, sums.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

namespace quiver {

/// The nearest centre of every row of X - 1 origin^T, and for each centre the sum of its rows,
/// their number and the sum of their squared distances. The first of several nearest centres
/// counts.
template <class In, class T>
struct KmeansStepArgs {
    std::int64_t rows;
    int d, k;
    const In* x;  // rows x d
    std::int64_t ldx;
    const T* origin;   // d
    const T* centres;  // k x d without gaps, relative to the origin
    double* sums;      // k x (d + 2) without gaps: sum of the rows, number, sum of the distances
    int* labels;       // rows; or null
    T* distances;      // rows, squared; or null
};

/// bytes sizeof(In) rows d, plus those of the labels and distances if they are written; flops
/// rows d (2 k + 5): the products with the centres, the shift by the origin, the distance to the
/// nearest centre, the sums. Centres and sums are small and not counted.
template <class In, class T>
constexpr Cost cost(const KmeansStepArgs<In, T>& args) {
    const double rows = static_cast<double>(args.rows);
    const double written =
        (args.labels != nullptr ? 4.0 : 0.0) + (args.distances != nullptr ? 1.0 * sizeof(T) : 0.0);
    return {args.rows, args.k, args.d, rows * (sizeof(In) * args.d + written),
            rows * args.d * (2.0 * args.k + 5)};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class In, class T>
std::size_t workspace_bytes(int threads, const KmeansStepArgs<In, T>& args);
template <class In, class T>
void kmeans_step(int threads, const KmeansStepArgs<In, T>& args, void* workspace);
}  // namespace host
namespace cuda {
template <class In, class T>
std::size_t workspace_bytes(Context& ctx, const KmeansStepArgs<In, T>& args);
template <class In, class T>
void kmeans_step(Context& ctx, const KmeansStepArgs<In, T>& args, void* workspace);
}  // namespace cuda
#endif

}  // namespace quiver
