// SPDX-License-Identifier: BSD-3-Clause
// Eigen's products, dense and sparse, and its QR, compiled once for each instruction set: Eigen
// chooses its vector instructions at compile time, and a build that runs on every processor would
// be too slow for a fair comparison. Each copy has its own namespace (the macro Eigen in
// apps/bench/rivals/CMakeLists.txt), so that the linker cannot merge functions of different copies.
#pragma once

#include "apps/bench/rivals/rival.hpp"

namespace quiver::apps::bench {

std::unique_ptr<Gemm> make_eigen_gemm_baseline(int threads);
std::unique_ptr<Gemm> make_eigen_gemm_avx2(int threads);
std::unique_ptr<Gemm> make_eigen_gemm_avx512(int threads);
std::unique_ptr<Qr> make_eigen_qr_baseline();
std::unique_ptr<Qr> make_eigen_qr_avx2();
std::unique_ptr<Qr> make_eigen_qr_avx512();
std::unique_ptr<Spmm> make_eigen_spmm_baseline();
std::unique_ptr<Spmm> make_eigen_spmm_avx2();
std::unique_ptr<Spmm> make_eigen_spmm_avx512();

}  // namespace quiver::apps::bench
