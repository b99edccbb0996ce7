// SPDX-License-Identifier: BSD-3-Clause
// The kernels that operations will launch, named before they run: what a pack is made of, and what
// a solver asks for while it sets itself up. Needs no GPU.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/prepare.hpp"

namespace quiver::cuda {

/// Appends the kernels that the leaf of the same arguments launches. Of the pointers only their
/// alignment counts, and which are equal or null.
template <class T>
void append_kernels(Planner& planner, const TsmttsmArgs<T>& args, KernelList& list);
template <class T>
void append_kernels(Planner& planner, const TsmmArgs<T>& args, KernelList& list);
template <class T>
void append_kernels(Planner& planner, const TsmmGramArgs<T>& args, KernelList& list);

/// The kernels of a demand, in the order in which a solver needs them.
template <class T>
KernelList kernels_of(Planner& planner, const BlockDemand& demand);

/// The kernels whose shape does not depend on widths: updates by columns, copies, random columns.
template <class T>
KernelList column_kernels();

/// Those of sparse products Y = alpha (A - shift) X + beta Y, with dots and without.
struct SparseDemand {
    /// As in SpmmvArgs.
    int chunk = 32;
    int tile = 0;
    bool wide = false;
    bool halo = false;
    /// Of a row on average, rounded up.
    std::int64_t row_entries = 7;
    std::vector<int> widths = {};
    /// Also with dot products.
    bool dots = false;
};
template <class T>
KernelList sparse_kernels(const SparseDemand& demand);

/// What a pack for an architecture ("sm_90") has: the kernels that solvers take with their default
/// options, and the plans chosen for them. `wide`: also those of rarer widths.
struct PackContents {
    KernelList kernels;
    /// See Planner::version and plans.
    std::string version;
    std::string plans;
};
PackContents pack_contents(const std::string& arch, bool wide);

}  // namespace quiver::cuda
