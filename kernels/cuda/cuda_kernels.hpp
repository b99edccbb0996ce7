// SPDX-License-Identifier: BSD-3-Clause
// The functions of kernels/cuda/ that kernels/ calls, besides the leaves (kernels/operations/).
#pragma once

#include <span>
#include <string>

#include "blockvec/context.hpp"
#include "kernels/cuda/csr_args.hpp"
#include "kernels/cuda/kernel_list.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/prepare.hpp"

namespace quiver::cuda {

/// Overrides the model's tilings for the sparse products of this Context; see SpmmvSettings.
void choose_spmmv(Context& ctx, const std::string& text);

/// Overrides the tilings of batched factorisations of this Context; see BatchedSettings.
void choose_batched(Context& ctx, const std::string& text);
/// The kernel of batches of column-major matrices of order n, contiguous or interleaved, with these
/// settings; it need not compile if the settings are impossible.
KernelInstance batched_kernel(bool cholesky, bool interleaved, Dtype scalar, int n,
                              const std::string& text);

/// Starts to open the packs and NVRTC, which the first kernel needs, on another thread.
void open_compiler(Context& ctx);

/// See kernels/prepare.hpp.
template <class T>
void request_products(Context& ctx, const BlockDemand& demand);
void wait_for_kernels(Context& ctx);
/// Starts to compile the kernels for products of the matrix in `args` with blocks of these widths.
template <class T>
void request_spmmv(Context& ctx, const SpmmvArgs<T>& args, std::span<const int> widths, bool dots);

/// Starts to compile the kernel of HamiltonianOperator for blocks of this width.
template <class T>
void request_hamiltonian(Context& ctx, int width, bool symmetric);

/// Starts to compile the kernels that store compressed rows with offsets and columns of type From.
template <class T, class From>
void request_csr_kernels(Context& ctx);
/// True if csr_to_chunks may convert the rows: their columns are in 0 .. columns - 1 and ascend in
/// each row, and their values are finite. row_start must ascend. Waits for the result.
template <class T, class From>
bool csr_fits(Context& ctx, const CsrOnDevice<T, From>& csr, std::int64_t columns);
template <class T, class From, class Index>
void csr_to_chunks(Context& ctx, const CsrToChunksArgs<T, From, Index>& args);
/// True if all values are finite. Waits for the result.
template <class T>
bool values_are_finite(Context& ctx, const T* value, std::int64_t count);
/// Adds the numbers of entries of the slots to the counts of their rows.
template <class Index>
void count_entries(Context& ctx, const PartSlots<Index>& part, std::int64_t* counts);
template <class T, class Index>
void diagonal_blocks(Context& ctx, const DiagonalBlocksArgs<T, Index>& args);
/// The offsets and columns of a matrix of blocks of `size` rows on the diagonal.
template <class Index>
void rows_of_blocks(Context& ctx, std::int64_t rows, int size, Index* row_start, Index* column);
/// Replaces each of `count` numbers in device memory by the sum of those before it. data[count]
/// becomes the sum of all.
void prefix_sums(Context& ctx, std::int64_t* data, std::int64_t count);

}  // namespace quiver::cuda
