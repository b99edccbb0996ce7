// SPDX-License-Identifier: BSD-3-Clause
// The timed kernels of each file in this folder; kernel_table.cpp lists them.
#pragma once

#include <span>

#include "apps/bench/kernel.hpp"

namespace quiver::apps::bench {

std::span<const Kernel* const> tsmttsm_kernels();
std::span<const Kernel* const> tsmm_kernels();
std::span<const Kernel* const> tsmm_pair_kernels();
std::span<const Kernel* const> tsmm_gram_kernels();
std::span<const Kernel* const> tsmm_in_place_kernels();
std::span<const Kernel* const> axpby_kernels();
std::span<const Kernel* const> dots_kernels();
std::span<const Kernel* const> spmmv_kernels();
std::span<const Kernel* const> batched_kernels();
std::span<const Kernel* const> batched_solve_kernels();
std::span<const Kernel* const> mixed_kernels();
std::span<const Kernel* const> mtsm_kernels();
std::span<const Kernel* const> orth_kernels();
std::span<const Kernel* const> kmeans_kernels();
std::span<const Kernel* const> shifted_gram_kernels();

struct MatrixSize {
    std::int64_t rows = 0;
    std::int64_t nonzeros = 0;
    bool complex = false;
};
/// The size of a square MATRIX. Collective; throws InputError on all ranks.
MatrixSize size_of_matrix(const Context& ctx, const std::string& matrix);

}  // namespace quiver::apps::bench
