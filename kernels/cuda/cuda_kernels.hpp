// SPDX-License-Identifier: BSD-3-Clause
// The functions of kernels/cuda/ that kernels/ calls, besides the leaves (kernels/operations/).
#pragma once

#include <span>
#include <string>

#include "blockvec/context.hpp"
#include "kernels/cuda/csr_args.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/prepare.hpp"

namespace quiver::cuda {

/// Overrides the model's tilings for the sparse products of this Context; see SpmmvSettings.
void choose_spmmv(Context& ctx, const std::string& text);

/// Starts to open the packs and NVRTC, which the first kernel needs, on another thread.
void open_compiler(Context& ctx);

/// See kernels/prepare.hpp.
template <class T>
void request_products(Context& ctx, const BlockDemand& demand);
void wait_for_kernels(Context& ctx);
/// Starts to compile the kernels for products of the matrix in `args` with blocks of these widths.
template <class T>
void request_spmmv(Context& ctx, const SpmmvArgs<T>& args, std::span<const int> widths, bool dots);

/// True if csr_to_chunks may convert the rows: their columns are in 0 .. columns - 1 and ascend in
/// each row, and their values are finite. row_start must ascend. Waits for the result.
template <class T, class From>
bool csr_fits(Context& ctx, const CsrOnDevice<T, From>& csr, std::int64_t columns);
template <class T, class From, class Index>
void csr_to_chunks(Context& ctx, const CsrToChunksArgs<T, From, Index>& args);

}  // namespace quiver::cuda
