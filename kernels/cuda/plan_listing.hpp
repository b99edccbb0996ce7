// SPDX-License-Identifier: BSD-3-Clause
// list_plans and the kernels of plans for a given machine, without a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/tuning.hpp"

namespace quiver::cuda {

/// See quiver::list_plans.
std::vector<ListedPlan> list_plans(const Machine& machine, const PlannedProduct& product,
                                   const std::string& fields, int most);
/// The kernel of a plan, or of PlanChoice::batched for batched factorisations; nothing if the plan
/// is not legal.
std::optional<KernelInstance> kernel_of_listed(const Machine& machine,
                                               const PlannedProduct& product,
                                               const std::string& plan);

}  // namespace quiver::cuda
