// SPDX-License-Identifier: BSD-3-Clause
// The host leaves (OpenMP and SIMD). Private to kernels/: the public functions check the arguments
// and call these. All pointers are host memory. The same arguments and number of threads give the
// same bits. `workspace` has workspace_bytes and is aligned to cache lines.
#pragma once

#include <cstddef>

#include "kernels/leaf_args.hpp"

namespace quiver::host {

template <class T>
std::size_t workspace_bytes(int threads, const TsmttsmArgs<T>& args);
template <class T>
void tsmttsm(int threads, const TsmttsmArgs<T>& args, void* workspace);
template <class T>
std::size_t workspace_bytes(int threads, const TsmmArgs<T>& args);
template <class T>
void tsmm(int threads, const TsmmArgs<T>& args, void* workspace);
template <class In, class Sum>
std::size_t workspace_bytes(int threads, const MixedTsmttsmArgs<In, Sum>& args);
template <class In, class Sum>
void tsmttsm_mixed(int threads, const MixedTsmttsmArgs<In, Sum>& args, void* workspace);
template <class In, class Small, class Out>
std::size_t workspace_bytes(int threads, const MixedTsmmArgs<In, Small, Out>& args);
template <class In, class Small, class Out>
void tsmm_mixed(int threads, const MixedTsmmArgs<In, Small, Out>& args, void* workspace);
std::size_t workspace_bytes(int threads, const TwofoldTsmttsmArgs& args);
void tsmttsm_twofold(int threads, const TwofoldTsmttsmArgs& args, void* workspace);
void sum_twofold(const TwofoldSumArgs& args);
template <class A, class T>
std::size_t workspace_bytes(int threads, const MtsmArgs<A, T>& args);
template <class A, class T>
void mtsm(int threads, const MtsmArgs<A, T>& args, void* workspace);
template <class T>
std::size_t workspace_bytes(int threads, const TsmmGramArgs<T>& args);
template <class T>
void tsmm_gram(int threads, const TsmmGramArgs<T>& args, void* workspace);
template <class T>
void dots(int threads, const DotsArgs<T>& args);
template <class T>
void spmmv(int threads, const SpmmvArgs<T>& args);
template <class T>
void gram_factor(int threads, const GramFactorArgs<T>& args);
template <class T>
void axpby(int threads, const AxpbyArgs<T>& args);
template <class U, class T>
void convert(int threads, const ConvertArgs<U, T>& args);
template <class T>
void gather_columns(int threads, const GatherColumnsArgs<T>& args);
template <class T>
void fill(int threads, const FillArgs<T>& args);
template <class T>
void fill_random(int threads, const RandomArgs<T>& args);
template <class T>
void gather_rows(int threads, const GatherRowsArgs<T>& args);
template <class T, class S>
void checksum(int threads, const ChecksumArgs<T, S>& args);
void parity(int threads, const ParityArgs& args);

template <class T>
std::size_t workspace_bytes(int threads, const LuArgs<T>& args);
template <class T>
void lu_factor(int threads, const LuArgs<T>& args, void* workspace);
template <class T>
std::size_t workspace_bytes(int threads, const CholeskyArgs<T>& args);
template <class T>
void cholesky_factor(int threads, const CholeskyArgs<T>& args, void* workspace);
template <class T>
std::size_t workspace_bytes(int threads, const BatchedSolveArgs<T>& args);
template <class T>
void batched_solve(int threads, const BatchedSolveArgs<T>& args, void* workspace);
template <class T, class R>
void batched_determinant(int threads, const DeterminantArgs<T, R>& args);

}  // namespace quiver::host
