// SPDX-License-Identifier: BSD-3-Clause
// The products with a given plan, for the search and the property tests. Each is one launch; args
// must not be wider than a panel (see the .cpp files).
#pragma once

#include "kernels/cuda/plan.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmttsmArgs<T>& args, const TsmttsmPlan& plan);
/// Throws DeviceError if the plan is not legal for these arguments.
template <class T>
void tsmttsm(Context& ctx, const TsmttsmArgs<T>& args, const TsmttsmPlan& plan, void* workspace);
template <class T>
void tsmm(Context& ctx, const TsmmArgs<T>& args, const TsmmPlan& plan);
template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmGramArgs<T>& args, const TsmmGramPlan& plan);
template <class T>
void tsmm_gram(Context& ctx, const TsmmGramArgs<T>& args, const TsmmGramPlan& plan,
               void* workspace);

}  // namespace quiver::cuda
