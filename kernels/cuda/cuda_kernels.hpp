// SPDX-License-Identifier: BSD-3-Clause
// The CUDA leaves. Private to kernels/: the public functions check the arguments and call these.
#pragma once

#include <span>
#include <string>

#include "blockvec/context.hpp"
#include "kernels/leaf_args.hpp"
#include "kernels/prepare.hpp"

// Every pointer in the arguments is device memory. The functions enqueue on the Context's stream
// and return; they throw DeviceError if a launch fails. `workspace` has at least
// workspace_bytes(args) bytes of device memory; later work on the same stream may reuse it.
namespace quiver::cuda {

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmttsmArgs<T>& args);
template <class T>
void tsmttsm(Context& ctx, const TsmttsmArgs<T>& args, void* workspace);

/// An in-place product with more columns than one panel needs workspace.
template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmArgs<T>& args);
template <class T>
void tsmm(Context& ctx, const TsmmArgs<T>& args, void* workspace);

template <class In, class Sum>
std::size_t workspace_bytes(Context& ctx, const MixedTsmttsmArgs<In, Sum>& args);
template <class In, class Sum>
void tsmttsm_mixed(Context& ctx, const MixedTsmttsmArgs<In, Sum>& args, void* workspace);
std::size_t workspace_bytes(Context& ctx, const TwofoldTsmttsmArgs& args);
void tsmttsm_twofold(Context& ctx, const TwofoldTsmttsmArgs& args, void* workspace);
template <class In, class Small, class Out>
void tsmm_mixed(Context& ctx, const MixedTsmmArgs<In, Small, Out>& args);

template <class A, class T>
std::size_t workspace_bytes(Context& ctx, const MtsmArgs<A, T>& args);
template <class A, class T>
void mtsm(Context& ctx, const MtsmArgs<A, T>& args, void* workspace);

template <class T>
std::size_t workspace_bytes(Context& ctx, const TsmmGramArgs<T>& args);
template <class T>
void tsmm_gram(Context& ctx, const TsmmGramArgs<T>& args, void* workspace);

template <class T>
std::size_t workspace_bytes(const Context& ctx, const DotsArgs<T>& args);
template <class T>
void dots(Context& ctx, const DotsArgs<T>& args, void* workspace);

template <class T>
std::size_t workspace_bytes(const Context& ctx, const SpmmvArgs<T>& args);
/// `beside_others`: thread blocks are short-lived, so that a kernel on another stream gets its
/// turn.
template <class T>
void spmmv(Context& ctx, const SpmmvArgs<T>& args, void* workspace, bool beside_others = false);
/// Sets this Context's overrides of the model for sparse products, see SpmmvSettings.
void choose_spmmv(Context& ctx, const std::string& text);

/// See kernels/prepare.hpp.
template <class T>
void request_products(Context& ctx, const BlockDemand& demand);
/// Starts to compile the kernels for products of the matrix in `args` with blocks of these widths.
template <class T>
void request_spmmv(Context& ctx, const SpmmvArgs<T>& args, std::span<const int> widths, bool dots);

template <class T>
void gram_factor(Context& ctx, const GramFactorArgs<T>& args);
template <class T>
void axpby(Context& ctx, const AxpbyArgs<T>& args);
template <class U, class T>
void convert(Context& ctx, const ConvertArgs<U, T>& args);
template <class T>
void gather_columns(Context& ctx, const GatherColumnsArgs<T>& args);
template <class T>
void fill(Context& ctx, const FillArgs<T>& args);
template <class T>
void fill_random(Context& ctx, const RandomArgs<T>& args);
template <class T>
void gather_rows(Context& ctx, const GatherRowsArgs<T>& args);
template <class T, class S>
void checksum(Context& ctx, const ChecksumArgs<T, S>& args);
void parity(Context& ctx, const ParityArgs& args);

template <class T>
void lu_factor(Context& ctx, const LuArgs<T>& args);
template <class T>
void cholesky_factor(Context& ctx, const CholeskyArgs<T>& args);
template <class T>
void batched_solve(Context& ctx, const BatchedSolveArgs<T>& args);
template <class T, class R>
void batched_determinant(Context& ctx, const DeterminantArgs<T, R>& args);

}  // namespace quiver::cuda
