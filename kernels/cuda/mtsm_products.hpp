// SPDX-License-Identifier: BSD-3-Clause
// mtsm with a given plan, for the property tests: one launch, with at most widest_mtsm columns and
// at least one row.
#pragma once

#include "kernels/cuda/mtsm_plan.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {

/// The shape that the kernel for these arguments is compiled for.
template <class A, class T>
MtsmShape mtsm_shape(const MtsmArgs<A, T>& args);

template <class A, class T>
std::size_t workspace_bytes(Context& ctx, const MtsmArgs<A, T>& args, const MtsmPlan& plan);
template <class A, class T>
void mtsm(Context& ctx, const MtsmArgs<A, T>& args, const MtsmPlan& plan, void* workspace);

}  // namespace quiver::cuda
