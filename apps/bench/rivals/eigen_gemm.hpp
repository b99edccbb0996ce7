// SPDX-License-Identifier: BSD-3-Clause
// Eigen's products, dense and sparse, and its QR, compiled once for each instruction set: Eigen
// chooses its vectors at compile time, and one built for every processor would be no match. The
// copies live in namespaces of their own (the macro Eigen in apps/bench/rivals/CMakeLists.txt), so
// that the linker mixes none of them.
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
