// SPDX-License-Identifier: BSD-3-Clause
// The kernels that are timed; kernel_table.cpp lists them.
#pragma once

#include "apps/bench/kernel.hpp"

namespace quiver::apps::bench {

// tsmttsm.cpp
const Kernel& tsmttsm_kernel();
const Kernel& gram_kernel();
// tsmm.cpp
const Kernel& tsmm_kernel();
const Kernel& tsmm_beta_kernel();
// tsmm_pair.cpp, tsmm_gram.cpp, tsmm_in_place.cpp, axpby.cpp, dots.cpp, spmmv.cpp
const Kernel& tsmm_pair_kernel();
const Kernel& tsmm_gram_kernel();
const Kernel& tsmm_in_place_kernel();
const Kernel& axpby_kernel();
const Kernel& dots_kernel();
const Kernel& spmmv_kernel();
struct MatrixSize {
    std::int64_t rows = 0;
    std::int64_t nonzeros = 0;
    bool complex = false;
};
/// Of a square MATRIX. Collective; throws InputError on all ranks.
MatrixSize size_of_matrix(const Context& ctx, const std::string& matrix);
// batched.cpp
const Kernel& batched_lu_kernel();
const Kernel& batched_cholesky_kernel();
// mtsm.cpp
const Kernel& mtsm_kernel();
const Kernel& mtsm_columns_kernel();
const Kernel& tsmm_columns_kernel();
// mixed.cpp
const Kernel& tsmttsm_mixed_kernel();
const Kernel& tsmm_mixed_kernel();
// orth.cpp: one a method
std::span<const Kernel* const> orth_kernels();

}  // namespace quiver::apps::bench
