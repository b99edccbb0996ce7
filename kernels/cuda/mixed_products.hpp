// SPDX-License-Identifier: BSD-3-Clause
// The mixed-precision products with a given plan, for the property tests: one launch each, for
// blocks no wider than widest_mixed.
#pragma once

#include "kernels/cuda/mixed_plan.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {

/// The shape that the kernel for these arguments is compiled for.
template <class T>
MixedShape mixed_shape(const MixedTsmttsmArgs<T, float>& args);
template <class T, class Small, class Out>
MixedShape mixed_shape(const MixedTsmmArgs<T, Small, Out>& args);

template <class T>
std::size_t workspace_bytes(Context& ctx, const MixedTsmttsmArgs<T, float>& args,
                            const MixedPlan& plan);
template <class T>
void tsmttsm_mixed(Context& ctx, const MixedTsmttsmArgs<T, float>& args, const MixedPlan& plan,
                   void* workspace);
template <class T, class Small, class Out>
void tsmm_mixed(Context& ctx, const MixedTsmmArgs<T, Small, Out>& args, const MixedPlan& plan);

}  // namespace quiver::cuda
