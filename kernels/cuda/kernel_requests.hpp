// SPDX-License-Identifier: BSD-3-Clause
// The kernels that operations will launch, named before they run: for the contents of a pack, and
// for the requests of a solver at set-up. Requires no GPU.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/kernel_list.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/prepare.hpp"

namespace quiver::cuda {

/// Appends the kernels that the leaf with the same arguments launches. Of a pointer only three
/// properties matter: its alignment, whether it is null, and which other pointers equal it.
template <class T>
void append_kernels(Planner& planner, const TsmttsmArgs<T>& args, KernelList& list);
template <class T>
void append_kernels(Planner& planner, const TsmmArgs<T>& args, KernelList& list);
template <class T>
void append_kernels(Planner& planner, const TsmmGramArgs<T>& args, KernelList& list);

/// The kernels of a demand, in the order in which a solver needs them.
template <class T>
KernelList kernels_of(Planner& planner, const BlockDemand& demand);

/// The kernels that do not depend on widths: column updates, copies, random columns.
template <class T>
KernelList column_kernels();
/// The kernels that store compressed rows with offsets and columns of type From, where the matrix
/// has 32-bit indices.
template <class T, class From>
KernelList csr_kernels();

/// A demand for kernels of sparse products Y = alpha (A - shift) X + beta Y.
struct SparseDemand {
    /// The chunk of SpmmvArgs.
    int chunk = 32;
    int tile = 0;
    bool wide = false;
    bool halo = false;
    /// Average entries of a row, rounded up.
    std::int64_t row_entries = 7;
    std::vector<int> widths = {};
    /// If true, also the kernels with dot products.
    bool dots = false;
    /// If true, the kernels that check indices instead of those that do not.
    bool checked = false;
    /// The `apart` of SpmmvArgs.
    bool apart = false;
};
/// The widths of the sparse products in every pack.
inline constexpr int pack_widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 20, 26};
template <class T>
KernelList sparse_kernels(const SparseDemand& demand);

/// The contents of a pack for an architecture ("sm_90"): the kernels that solvers use with their
/// default options, and the plans chosen for them. `wide`: also the kernels for rarer widths.
struct PackContents {
    KernelList kernels;
    /// See Planner::version and plans.
    std::string version;
    std::string plans;
};
PackContents pack_contents(const std::string& arch, bool wide);

}  // namespace quiver::cuda
